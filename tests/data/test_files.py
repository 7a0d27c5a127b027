"""Rows written and read; files as people have them."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from r1pipe.data import files
from r1pipe.data.load import datasets_digest, load, read_rows, source_digest, write_rows
from r1pipe.digest import rows_digest
from r1pipe.errors import UserError
from r1pipe.settings import DataSpec

CASES = Path(__file__).parents[3] / "shared" / "cases" / "dataset.jsonl"


class Counts(dict[str, float]):
    """Counts as a StageContext does."""

    def count(self, name: str, n: float = 1) -> None:
        self[name] = self.get(name, 0) + n


def jsonl(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows), encoding="utf-8")
    return path


def test_rows_round_trip(tmp_path: Path) -> None:
    rows = [{"id": "a", "text": "两行\u2028分开\u0085\n", "n": None}, {"id": "b", "x": {"z": 1, "a": 0.5}}]
    write_rows(tmp_path / "data.jsonl", rows)
    assert read_rows(tmp_path / "data.jsonl") == rows
    text = (tmp_path / "data.jsonl").read_text(encoding="utf-8")
    assert len(text.splitlines()) == 2  # a line is a row for readers that cut at U+2028, too
    assert "两行" in text
    assert datasets_digest(rows) == rows_digest(text.split("\n"))[0]
    assert datasets_digest(rows) == datasets_digest([dict(reversed(r.items())) for r in rows])
    assert datasets_digest(rows) != datasets_digest(rows[::-1])
    assert list(tmp_path.iterdir()) == [tmp_path / "data.jsonl"]


def test_read_rows_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"a": 1}\n{"a"')
    with pytest.raises(UserError, match="line 2"):
        read_rows(tmp_path / "x.jsonl")
    with pytest.raises(UserError, match="there is no dataset"):
        read_rows(tmp_path / "y.jsonl")


def test_formats_agree(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    rows = [{"problem": f"1 + {i} = ?\nSay it.", "answer": str(1 + i)} for i in range(5)]
    jsonl(tmp_path / "a.jsonl", *rows)
    (tmp_path / "a.json").write_text(json.dumps({"data": rows}), encoding="utf-8")
    lines = [f'"{r["problem"]}",{r["answer"]}' for r in rows]
    (tmp_path / "a.csv").write_bytes("\r\n".join(["\ufeffproblem,answer", *lines, "ragged"]).encode())
    pq.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    found, counts = {}, Counts()
    for suffix in ("jsonl", "json", "csv", "parquet"):
        got = load(DataSpec(source=str(tmp_path / f"a.{suffix}")), "prompts", seed=0, ctx=counts)
        found[suffix] = sorted((r["id"], r["gold"], r["messages"][0]["content"]) for r in got)
    assert found["json"] == found["csv"] == found["parquet"] == found["jsonl"]
    assert counts == {"data/dropped/ragged_line": 1}


def test_a_folder_and_its_splits(tmp_path: Path) -> None:
    jsonl(tmp_path / "train-0.jsonl", {"problem": "1+1?", "answer": 2})
    jsonl(tmp_path / "train-1.jsonl", {"problem": "1+2?", "answer": 3})
    jsonl(tmp_path / "test.jsonl", {"problem": "1+3?", "answer": 4})
    assert len(load(DataSpec(source=str(tmp_path)), "prompts", seed=0)) == 2
    assert len(load(DataSpec(source=str(tmp_path), split="test"), "prompts", seed=0)) == 1
    with pytest.raises(UserError, match="no split 'dev'"):
        load(DataSpec(source=str(tmp_path), split="dev"), "prompts", seed=0)
    assert source_digest(DataSpec(source=str(tmp_path))) != source_digest(DataSpec(source=str(tmp_path), split="test"))


def test_files_that_look_otherwise(tmp_path: Path) -> None:
    row = {"problem": "1+1?", "answer": 0.50}
    line = json.dumps(row).replace("0.5", "0.50") + "\n"
    (tmp_path / "lines.json").write_text(line * 2)  # one object a line under another name
    (tmp_path / "one.json").write_text(line)
    (tmp_path / "rows.json").write_text(json.dumps({"version": 1, "rows": [row]}))
    with gzip.open(tmp_path / "x.jsonl.gz", "wt") as handle:
        handle.write(line)
    for name, n in (("lines.json", 2), ("one.json", 1), ("rows.json", 1), ("x.jsonl.gz", 1)):
        rows = load(DataSpec(source=str(tmp_path / name)), "prompts", seed=0)
        assert [r["gold"] for r in rows] == (["0.5"] if name == "rows.json" else ["0.50"]) * n
    text = json.dumps([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}])
    quoted = text.replace('"', '""')
    (tmp_path / "x.csv").write_text(f'messages\n"{quoted}"\n', encoding="utf-8")
    assert load(DataSpec(source=str(tmp_path / "x.csv")), "traces", seed=0)[0]["messages"][1]["content"] == "Ho"


def test_long_integers_and_decimals_keep_their_digits(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(
        '{"problem": "a?", "answer": %s}\n{"problem": "b?", "answer": 1.10e-7}\n' % ("9" * 5000)
    )
    golds = [r["gold"] for r in load(DataSpec(source=str(tmp_path / "x.jsonl")), "prompts", seed=0)]
    assert sorted(golds) == ["1.10e-7", "9" * 5000]
    value = files.Float("0.50")
    assert (value, str(value), json.dumps(value), pickle.loads(pickle.dumps(value)).digits) == (
        0.5,
        "0.50",
        "0.5",
        "0.50",
    )


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.jsonl", '{"problem": "a"}\n'.encode("utf-16"), "line 1 is not JSON: it is UTF-16"),
        ("x.jsonl", '{"problem": "é"}\n{"a": 1}\n'.encode("latin-1"), "line 1 is not JSON: byte 14 is not UTF-8"),
        ("x.jsonl", b'{"a": 1}\n[1]\n', "line 2 is a list, not an object"),
        ("x.jsonl", b'"text"\n', "line 1 is a text"),
        ("x.jsonl", b"[" * 100_000 + b"]" * 100_000 + b"\n", "nested too deeply"),
        ("x.json", b'{"a": ', "is not JSON"),
        ("x.json", b"5", "holds one number"),
        ("x.json", b'[{"a": 1}, null]', "row 2 is a null"),
        ("x.csv", "a,b\né,1\n".encode("latin-1"), "is not UTF-8"),
        ("x.csv", b"a,a\n1,2\n", 'has the column "a" twice'),
        ("x.csv", b'a,b\n"open,1\n2,3\n', "is not CSV"),
        ("x.csv", b'a,b\n"a"b,1\n', "line 2 is not CSV"),
        ("x.parquet", b"PAR1 no", "is not Parquet"),
        ("x.jsonl.gz", b"no gzip", "no gzip file"),
        ("x.txt", b"a", "is none of .jsonl"),
    ],
)
def test_bad_files_are_named(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError) as fault:
        load(DataSpec(source=str(tmp_path / name)), "prompts", seed=0)
    assert said in str(fault.value) and str(tmp_path / name) in str(fault.value)


def test_splits_of_a_snapshot_of_the_hub(tmp_path: Path) -> None:
    row = {"problem": "1+1?", "answer": 2}
    for name in ("data/train_prefs-00000-of-00002", "data/train_prefs-00001-of-00002", "data/train_sft-00000-of-00001",
                 "data/test_prefs-00000-of-00001", ".cache/huggingface/train", "other/part-0"):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        jsonl(tmp_path / f"{name}.jsonl", row)
    (tmp_path / "dataset_infos.json").write_text("{}")
    assert len(files.find(str(tmp_path), "train_prefs")) == 2
    assert len(files.find(str(tmp_path), "test")) == 1
    with pytest.raises(UserError, match="several splits for 'train': train_prefs, train_sft"):
        files.find(str(tmp_path), "train")
    with pytest.raises(UserError, match=r"no split 'dev' \(found: test_prefs, train_prefs, train_sft\)"):
        files.find(str(tmp_path), "dev")
    (tmp_path / "main" / "train").mkdir(parents=True)
    jsonl(tmp_path / "main" / "train" / "part-1.jsonl", row)
    assert [p.name for p in files.find(str(tmp_path / "main"), "train")] == ["part-1.jsonl"]
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "data-00000-of-00001.arrow").touch()
    with pytest.raises(UserError, match="has no") as fault:
        files.find(str(tmp_path / "saved"), "train")
    assert "to_parquet" in str(fault.value)


def test_source_digest(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "x.jsonl", {"problem": "1+1?", "answer": 2})
    before = source_digest(DataSpec(source=str(path)))
    jsonl(path, {"problem": "1+1?", "answer": 3})
    assert source_digest(DataSpec(source=str(path))) != before
    assert source_digest(DataSpec(source="generated:arithmetic", rows=1)).startswith("arithmetic@")
    assert source_digest(DataSpec(source="openai/gsm8k", revision="abc")) == "openai/gsm8k@abc"
    with pytest.raises(UserError, match=r"no pinned revision") as fault:
        source_digest(DataSpec(source="openai/gsm8k"))
    assert "data.revision" in str(fault.value)
    with pytest.raises(UserError, match=r"no data file"):
        source_digest(DataSpec(source=str(tmp_path / "nothing.jsonl")))


def test_light() -> None:
    """Fingerprints are made by commands that load no torch."""
    import subprocess
    import sys

    code = (
        "import sys; from r1pipe.data.load import source_digest, load; from r1pipe.settings import DataSpec;"
        "source_digest(DataSpec(source='generated:arithmetic', rows=1));"
        "import r1pipe.generate, r1pipe.evaluate;"
        "sys.exit(any(m in sys.modules for m in ('torch', 'datasets', 'transformers', 'numpy', 'pyarrow')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
