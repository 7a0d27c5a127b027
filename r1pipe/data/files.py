"""Local files: .jsonl, .json, .csv, .parquet, or a folder of them, as plain dicts.

JSON is read with `json`, not Arrow: Arrow locks a column's type at its first chunk and rounds big integers.
Decimals keep their digits as text ("0.50").
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from r1pipe.digest import file_digest, files_digest
from r1pipe.errors import UserError

SUFFIXES = (".jsonl", ".json", ".csv", ".parquet")
# File names that mean a split: where a folder has one of them, only those of the wanted split are read.
SPLITS = {"train", "test", "validation", "valid", "val", "dev", "eval", "heldout"}

Count = Callable[[str], None]


def find(source: str, split: str) -> list[Path]:
    """The files of a local source, sorted. Raises UserError where there is none."""
    path = Path(source).expanduser()
    if path.is_file():
        if path.suffix not in SUFFIXES:
            raise UserError(f"{path} is none of {', '.join(SUFFIXES)}", hint="convert it, or correct data.source")
        return [path]
    if not path.is_dir():
        raise UserError(f"there is no data file {path}", hint="correct data.source (relative to where you run r1pipe)")
    files = sorted(p for p in path.rglob("*") if p.suffix in SUFFIXES and p.is_file())
    if not files:
        raise UserError(f"the folder {path} has no {', '.join(SUFFIXES)} file", hint="correct data.source")
    named = {p: _split_of(p) for p in files}
    if not any(named.values()):
        return files
    wanted = [p for p, name in named.items() if name == split]
    if not wanted:
        found = ", ".join(sorted({n for n in named.values() if n}))
        raise UserError(f"the folder {path} has no split {split!r} (found: {found})", hint="set data.split")
    return wanted


def _split_of(path: Path) -> str | None:
    word = path.stem.replace("_", "-").split("-")[0].lower()
    return word if word in SPLITS else None


def digest(source: str, split: str) -> str:
    """sha256 of the content of the files of a local source."""
    files = find(source, split)
    if len(files) == 1:
        return file_digest(files[0])
    root = Path(source).expanduser()
    return files_digest((str(p.relative_to(root)), file_digest(p)) for p in files)


def read(path: Path, count: Count) -> Iterator[dict[str, Any]]:
    """The objects of one file. `count("torn_line")` for a cut last line; UserError, with the line, otherwise."""
    reader = {".jsonl": _jsonl, ".json": _json, ".csv": _csv, ".parquet": _parquet}[path.suffix]
    yield from reader(path, count)


def _loads(text: str) -> Any:
    return json.loads(text, parse_float=str, parse_constant=str)


def _jsonl(path: Path, count: Count) -> Iterator[dict[str, Any]]:
    with path.open("rb") as handle:  # binary: a line ends at \n alone, not at U+2028
        for number, raw in enumerate(handle, start=1):
            try:
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip("\r\n \t")
                if not text:
                    continue
                value = _loads(text)
            except ValueError as error:
                if not raw.endswith(b"\n"):  # what a killed writer leaves: only the last line can lack its end
                    count("torn_line")
                    return
                message = f"{path} line {number} is not JSON: {error}"
                raise UserError(message, hint="correct or remove the line") from None
            yield _object(value, path, number)


def _json(path: Path, count: Count) -> Iterator[dict[str, Any]]:
    try:
        value = _loads(path.read_bytes().decode("utf-8-sig"))
    except ValueError as error:
        raise UserError(f"{path} is not JSON: {error}", hint="one object a line belongs in a .jsonl file") from None
    if isinstance(value, dict) and isinstance(value.get("data"), list):
        value = value["data"]
    if not isinstance(value, list):
        raise UserError(f"{path} holds one {type(value).__name__}", hint='a list of objects, or {"data": [...]}')
    for number, item in enumerate(value, start=1):
        yield _object(item, path, number)


def _object(value: Any, path: Path, number: int) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UserError(f"{path} row {number} is a {type(value).__name__}, not an object", hint="one object a row")
    return value


def _csv(path: Path, count: Count) -> Iterator[dict[str, Any]]:
    csv.field_size_limit(1 << 30)
    with path.open(encoding="utf-8-sig", newline="") as handle:
        for row in csv.DictReader(handle):
            if None in row or None in row.values():  # more or fewer cells than the header
                count("ragged_line")
                continue
            yield row


def _parquet(path: Path, count: Count) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq

    for batch in pq.ParquetFile(path).iter_batches():
        yield from batch.to_pylist()
