"""Rows written and read; files as people have them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

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


@pytest.mark.skipif(not CASES.is_file(), reason="shared/cases is not beside this checkout")
@pytest.mark.parametrize(
    "name", ["bom", "crlf", "u2028", "torn-tail", "torn-middle", "empty", "late-type", "mixed-types"]
)
def test_bad_files(name: str, tmp_path: Path) -> None:
    cases = map(json.loads, CASES.read_text(encoding="utf-8").split("\n")[:-1])
    case = next(c for c in cases if c["id"] == f"data-file-{name}")
    expect, counts = case["expect"], Counts()
    (tmp_path / "x.jsonl").write_bytes(bytes.fromhex(case["input"]["bytes_hex"]))
    spec = DataSpec(source=str(tmp_path / "x.jsonl"))
    if "error" in expect:
        with pytest.raises(UserError, match=expect["error"]):
            load(spec, "prompts", seed=0)
        return
    rows = load(spec, "prompts", seed=0, ctx=counts)
    assert len(rows) == expect["rows"]
    assert counts.get("data/dropped/no_gold", 0) == expect.get("dropped", 0)
    assert counts.get("data/dropped/torn_line", 0) == expect.get("torn", 0)
    if "golds" in expect:
        assert sorted(r["gold"] for r in rows) == sorted(expect["golds"])


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
