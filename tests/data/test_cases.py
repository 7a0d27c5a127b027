"""Every case of shared/cases/dataset.jsonl, through `load`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from r1pipe.data.load import load
from r1pipe.errors import UserError
from r1pipe.settings import Cleaning, DataSpec
from tests.data.test_files import CASES, Counts, jsonl

USES: dict[str, Any] = {"grpo": "prompts", "sft": "traces", "preference": "pairs", "resume": "prompts"}


def _cases() -> list[dict[str, Any]]:
    if not CASES.is_file():
        return []
    return [json.loads(line) for line in CASES.read_text(encoding="utf-8").split("\n") if line]


def _source(given: dict[str, Any], folder: Path) -> Path:
    path = folder / "x.jsonl"
    if "bytes_hex" in given:
        path.write_bytes(bytes.fromhex(given["bytes_hex"]))
        return path
    return jsonl(path, *given.get("rows", [given.get("row")]))


def _kept(given: dict[str, Any], source: Path, counts: Counts) -> list[int]:
    """Indexes of the rows that cleaning keeps."""
    against = []
    if "benchmark" in given:
        jsonl(source.parent / "benchmark.jsonl", *({"problem": text} for text in given["benchmark"]))
        against = [str(source.parent / "benchmark.jsonl")]
    options = Cleaning(decontaminate=against, ngram=given.get("n", 10))
    try:
        rows = load(DataSpec(source=str(source), clean=options), "prompts", seed=0, ctx=counts)
    except UserError:
        rows = []
    left = {row["messages"][-1]["content"] for row in rows}
    return [i for i, record in enumerate(given["rows"]) if record["problem"].strip() in left]


@pytest.mark.skipif(not CASES.is_file(), reason="shared/cases is not beside this checkout")
@pytest.mark.parametrize("case", _cases(), ids=lambda c: c["id"])
def test_case(case: dict[str, Any], tmp_path: Path) -> None:
    given, expect, counts = case["input"], case["expect"], Counts()
    source = _source(given, tmp_path)
    use = given.get("use", "grpo")
    if "keep" in expect:
        assert _kept(given, source, counts) == expect["keep"]
        return
    spec = DataSpec(source=str(source))
    if "error" in expect or "drop" in expect:
        said = expect.get("error") or f"1 {expect['drop'].replace(' ', '_')}"
        with pytest.raises(UserError, match=said):
            load(spec, USES[use], seed=0, ctx=counts)
        return
    rows = load(spec, USES[use], seed=0, ctx=counts)
    dropped = {k.removeprefix("data/dropped/"): n for k, n in counts.items() if k.startswith("data/dropped/")}
    if "rows" in expect:
        assert len(rows) == expect["rows"]
        assert dropped.get("torn_line", 0) == expect.get("torn", 0)
        assert dropped.get("no_gold", 0) == expect.get("dropped", 0)
        assert sorted(r["gold"] for r in rows) == sorted(expect.get("golds", [r["gold"] for r in rows]))
        return
    (row,) = rows
    seen = {
        **row,
        "question": row["messages"][0]["content"],
        "response": row["messages"][-1]["content"],
        "prompt": row["messages"],
    }
    assert {key: seen[key] for key in expect} == expect
