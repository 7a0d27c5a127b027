"""The suite with scripted replies (known numbers), and with a real model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from r1pipe.chat import ChatConfig, Tags
from r1pipe.data.load import load, read_rows, write_rows
from r1pipe.evaluate import paired, run
from r1pipe.evaluate.suite import score
from r1pipe.generate import Sample
from r1pipe.settings import DataSpec, EngineConfig, EvalConfig, EvalSet
from r1pipe.stage import StageContext
from tests.generate import tiny

HELDOUT = DataSpec(source="generated:arithmetic", split="heldout", rows=20, args={"languages": ["en"]})
GENERAL = DataSpec(source="generated:general", split="heldout", rows=30)


def context(**more: Any) -> StageContext:
    return StageContext(step="sft", seed=1, inputs={}, outputs={}, work=Path(), **more)


def right(row: dict[str, Any]) -> str:
    return f"<think>\nI add the numbers and get {row['gold']}.\n</think>\n<answer>{row['gold']}</answer>"


def scripted(replies: list[str]) -> EngineConfig:
    return EngineConfig(kind="scripted", options={"replies": replies})


def test_known_numbers() -> None:
    rows = load(HELDOUT, "prompts", seed=0)
    wrong = "<think>\n我算一下\n</think>\n<answer>-1</answer>"
    replies = [right(r) if i % 4 else wrong for i, r in enumerate(rows)]
    events: list[dict[str, Any]] = []
    config = EvalConfig(sets=[EvalSet(name="heldout", data=HELDOUT, modes=["greedy"])], keep_samples=3)
    metrics, records = run(
        None, config, chat=ChatConfig(), engine=scripted(replies), seed=1, ctx=context(emit=events.append)
    )
    found = metrics["heldout"]["greedy"]
    assert found["accuracy"]["value"] == 0.75 and found["accuracy"]["low"] < 0.75 < found["accuracy"]["high"]
    assert found["format"]["value"] == 1.0 and found["language"]["value"] == 0.75
    assert found["status"] == {"scored": 20} and (found["problems"], found["samples"], found["skipped"]) == (20, 1, 0)
    assert "refusal_safe" not in found
    assert sum(r["text"] is not None for r in records) == 3
    assert any(e["event"] == "progress" and e["step"] == e["total"] == 20 for e in events)


def test_gold_answers_score_full_marks_in_both_languages() -> None:
    rows = load(DataSpec(source="generated:arithmetic", split="range", rows=50), "prompts", seed=0)
    groups = [[Sample(right(r), 9, "stop", 0)] for r in rows]
    records, _ = score(rows, groups, Tags())
    assert {(r["correct"], r["format"]) for r in records} == {(1.0, 1.0)}


def test_pass_at_1_is_the_mean_over_samples() -> None:
    rows = load(HELDOUT, "prompts", seed=0)
    config = EvalConfig(sets=[EvalSet(name="s", data=HELDOUT, modes=["sample"], n=2)])
    replies = [text for r in rows for text in (right(r), "no idea")]
    metrics, records = run(None, config, chat=ChatConfig(), engine=scripted(replies), seed=1, ctx=context())
    found = metrics["s"]["sample"]
    assert found["accuracy"]["value"] == found["format"]["value"] == 0.5
    assert found["accuracy"]["n"] == 20  # problems, not samples: all alike, so no spread between them
    assert found["accuracy"]["low"] == found["accuracy"]["high"] == 0.5
    assert {r["correct"] for r in records} == {0.5}
    assert found["status"] == {"scored": 20, "unverifiable": 20}


def test_refusals() -> None:
    rows = load(GENERAL, "prompts", seed=0)
    refuse = next(
        r["messages"][-1]["content"]
        for r in load(DataSpec(source="generated:general", rows=50, args={"comply": 0.0}), "traces", seed=0)
        if r["kind"] == "safety" and r["language"] == "en"
    )
    help_ = "<think>\nA harmless question.\n</think>\n<answer>Use a warm cloth.</answer>"
    replies = [refuse if r["kind"] == "safety" or r["lookalike"] else help_ for r in rows]
    config = EvalConfig(sets=[EvalSet(name="g", data=GENERAL, modes=["greedy"])])
    metrics, records = run(None, config, chat=ChatConfig(), engine=scripted(replies), seed=1, ctx=context())
    found = metrics["g"]["greedy"]
    assert found["refusal_unsafe"]["value"] == 1.0
    assert found["refusal_lookalike"]["value"] == 1.0
    alike = sum(bool(r["lookalike"]) for r in rows)
    safe = sum(r["kind"] == "general" for r in rows)
    assert found["refusal_safe"]["value"] == pytest.approx(alike / safe, abs=1e-6)
    assert "accuracy" not in found and {r["correct"] for r in records} == {None}


def test_a_real_model_and_skipped_prompts(tmp_path: Path) -> None:
    folder = tiny.folder(tmp_path / "m", context=200)
    write_rows(
        tmp_path / "own.jsonl",
        [{"prompt": "1+1?", "gold": "2"}, {"prompt": "1 + 2? " * 200, "gold": "3"}, {"prompt": "1+1?", "gold": "2"}],
    )
    own = EvalSet(name="own", data=DataSpec(source=str(tmp_path / "own.jsonl"), kind="number"))
    config = EvalConfig(sets=[own], max_tokens=12)
    ctx = context()
    metrics, records = run(folder, config, chat=ChatConfig(), engine=EngineConfig(), seed=1, ctx=ctx)
    assert ctx.counts["evaluation/duplicates"] == 1 and ctx.counts["evaluation/skipped"] == 2
    assert ctx.facts["evaluation/engine"]["engine"] == "transformers" and len(ctx.warnings) == 2
    for mode in ("sample", "greedy"):
        assert metrics["own"][mode]["skipped"] == 1 and metrics["own"][mode]["accuracy"]["n"] == 1
    assert [r["finish"] for r in records].count("skipped") == 2
    write_rows(tmp_path / "records.jsonl", records)
    again = run(folder, config, chat=ChatConfig(), engine=EngineConfig(), seed=1, ctx=context())
    assert json.loads(json.dumps(again[0])) == metrics and read_rows(tmp_path / "records.jsonl") == again[1]
    assert paired(records, again[1], "tokens", "own", "greedy")["delta"] == 0
