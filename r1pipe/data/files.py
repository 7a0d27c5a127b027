"""Local files: .jsonl, .json, .csv, .parquet (and .gz of the text ones), or a folder of them, as plain dicts.

JSON is read with `json`, not Arrow: Arrow locks a column's type at its first chunk and rounds big integers.
Decimals keep their digits (`values.Float`). A fault names the file and the line.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from r1pipe.data.values import Float, Record
from r1pipe.digest import file_digest, files_digest
from r1pipe.errors import UserError

SUFFIXES = (".jsonl", ".json", ".csv", ".parquet")
# File names that mean a split: where a folder has one of them, only those of the wanted split are read.
SPLITS = {"train", "test", "validation", "valid", "val", "dev", "eval", "heldout"}
# What lies beside the data in folders of the hub and of `datasets`.
_NOT_DATA = {"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json"}
# Where a .json file that is one object keeps its rows.
_INSIDE = ("data", "rows", "examples", "instances", "train", "test")
PREPARED = "r1pipe-dataset"  # `format` in the manifest.json of a folder that `r1pipe data prepare` made

Count = Callable[[str], None]


def suffix(path: Path) -> str:
    """`.jsonl`, also of `x.jsonl.gz`."""
    return Path(path.stem).suffix if path.suffix == ".gz" else path.suffix


def prepared(source: str | Path) -> dict[str, Any] | None:
    """The manifest of a folder that `r1pipe data prepare` made; None for any other."""
    try:
        found = json.loads((Path(source).expanduser() / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("format") == PREPARED else None


def find(source: str, split: str) -> list[Path]:
    """The files of a local source, sorted. Raises UserError where there is none, and for a split that is not there."""
    path = Path(source).expanduser()
    if path.is_file():
        if suffix(path) not in SUFFIXES:
            raise UserError(f"{path} is none of {', '.join(SUFFIXES)}", hint="convert it, or correct data.source")
        return [path]
    if not path.is_dir():
        raise UserError(f"there is no data file {path}", hint="correct data.source (relative to where you run r1pipe)")
    if prepared(path) is not None:
        return [path / "data.jsonl"]
    files = sorted(p for p in path.rglob("*") if _is_data(p, path))
    if not files:
        why = "it was saved with save_to_disk: load it there and call to_parquet" if any(path.rglob("*.arrow")) else ""
        raise UserError(f"the folder {path} has no {', '.join(SUFFIXES)} file", hint=why or "correct data.source")
    return _of_split(path, files, split)


def _is_data(path: Path, root: Path) -> bool:
    hidden = any(part.startswith(".") for part in path.relative_to(root).parts)
    return suffix(path) in SUFFIXES and path.name not in _NOT_DATA and not hidden and path.is_file()


def _of_split(root: Path, files: list[Path], split: str) -> list[Path]:
    """The files of a split, where file or folder names speak of splits; else all."""
    names = {p: _split_of(p, root) for p in files}
    exact = [p for p, (name, _) in names.items() if name == split]
    if exact or not any(word for _, word in names.values()):
        return exact or files
    wanted = [p for p, (_, word) in names.items() if word == split]
    found = sorted({name if word else "" for name, word in names.values()} - {""})
    if not wanted:
        raise UserError(f"the folder {root} has no split {split!r} (found: {', '.join(found)})", hint="set data.split")
    several = sorted({names[p][0] for p in wanted})
    if len(several) > 1:
        raise UserError(f"the folder {root} has several splits for {split!r}: {', '.join(several)}",
                        hint="set data.split to one of them")  # fmt: skip
    return wanted


def _split_of(path: Path, root: Path) -> tuple[str, str | None]:
    """The name that a file gives its split (`train_prefs` for train_prefs-00000-of-00001.parquet), and the split that
    it is about (train), if any; the folder speaks where the file does not."""
    name = re.sub(r"[-_.]?\d+(-of-\d+)?$", "", path.name[: path.name.index(".")] if "." in path.name else path.name)
    for part in (name, *reversed(path.relative_to(root).parts[:-1])):
        word = part.replace("_", "-").replace(".", "-").split("-")[0].lower()
        if word in SPLITS:
            return part, word
    return name, None


def digest(source: str, split: str) -> str:
    """sha256 of the content of the files of a local source."""
    files = find(source, split)
    if len(files) == 1:
        return file_digest(files[0])
    root = Path(source).expanduser()
    return files_digest((str(p.relative_to(root)), file_digest(p)) for p in files)


def read(path: Path, count: Count) -> Iterator[Record]:
    """The objects of one file. `count("torn_line")` for a cut last line; UserError, with the line, otherwise."""
    reader = {".jsonl": _jsonl, ".json": _json, ".csv": _csv, ".parquet": _parquet}[suffix(path)]
    try:
        yield from reader(path, count)
    except (EOFError, gzip.BadGzipFile) as error:
        raise UserError(f"{path} is cut off or no gzip file: {error}", hint="download it again") from None


def _open(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) < 4000 else digits  # Python refuses to convert longer ones


_DECODER = json.JSONDecoder(parse_float=Float, parse_constant=float)
_LONG = json.JSONDecoder(parse_float=Float, parse_constant=float, parse_int=_integer)


def _decode(raw: bytes, start: bool = True) -> str:
    """Text of UTF-8, a byte-order mark at the start left out. ValueError, in words, for anything else."""
    if start and raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ValueError("it is UTF-16, and UTF-8 is expected")
    try:
        return raw.decode("utf-8-sig" if start else "utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start + 1} is not UTF-8") from None


def _loads(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError:
        if re.search(r"\d{4000}", text):
            return _LONG.decode(text)
        raise


def _jsonl(path: Path, count: Count) -> Iterator[Record]:
    with _open(path) as handle:  # binary: a line ends at \n alone, not at U+2028
        for number, raw in enumerate(handle, start=1):
            try:
                text = _decode(raw, start=number == 1).strip("\r\n \t")
                if not text:
                    continue
                value = _loads(text)
            except ValueError as error:
                if not raw.endswith(b"\n"):  # what a killed writer leaves: only the last line can lack its end
                    count("torn_line")
                    return
                message = f"{path} line {number} is not JSON: {error}"
                raise UserError(message, hint="correct or remove the line") from None
            yield _object(value, path, f"line {number}")


def _json(path: Path, count: Count) -> Iterator[Record]:
    with _open(path) as handle:
        raw = handle.read()
    try:
        value = _loads(_decode(raw))
    except ValueError as error:
        if str(error).startswith("Extra data"):  # one object a line: JSONL by another name, as the hub has it
            yield from _jsonl(path, count)
            return
        raise UserError(f"{path} is not JSON: {error}", hint="a list of objects is expected") from None
    if isinstance(value, dict):
        inside = next((v for k in _INSIDE if isinstance(v := value.get(k), list)), None)
        value = [value] if inside is None else inside  # one record
    if not isinstance(value, list):
        raise UserError(f"{path} holds one {_type(value)}", hint='a list of objects, or {"data": [...]}')
    for number, item in enumerate(value, start=1):
        yield _object(item, path, f"row {number}")


def _object(value: Any, path: Path, where: str) -> Record:
    if not isinstance(value, dict):
        raise UserError(f"{path} {where} is a {_type(value)}, not an object", hint="one object a row")
    return value


def _type(value: Any) -> str:
    names = {str: "text", bool: "truth value", type(None): "null", list: "list", int: "number", Float: "number"}
    return names.get(type(value), type(value).__name__)


def _csv(path: Path, count: Count) -> Iterator[Record]:
    csv.field_size_limit(1 << 30)
    with _open(path) as handle:
        reader = csv.DictReader(io.TextIOWrapper(handle, encoding="utf-8-sig", newline=""), strict=True)
        try:
            names = list(reader.fieldnames or ())
            if len(set(names)) < len(names):
                twice = next(n for n in names if names.count(n) > 1)
                raise UserError(f'{path} has the column "{twice}" twice', hint="rename one of them")
            for row in reader:
                if None in row or None in row.values():  # more or fewer cells than the header
                    count("ragged_line")
                    continue
                yield row
        except UnicodeDecodeError as error:
            message = f"{path} is not UTF-8 after line {reader.line_num}: {error.reason}"
            raise UserError(message, hint="save it as UTF-8") from None
        except csv.Error as error:
            line = reader.reader.line_num  # DictReader's own counts finished rows
            raise UserError(f"{path} line {line} is not CSV: {error}", hint="correct the line") from None


def _parquet(path: Path, count: Count) -> Iterator[Record]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        for batch in pq.ParquetFile(path).iter_batches(batch_size=4096):
            yield from batch.to_pylist()
    except pa.ArrowException as error:
        raise UserError(f"{path} is not Parquet: {str(error).splitlines()[0]}", hint="download it again") from None
