"""Shapes, columns, counts, determinism."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from r1pipe.data.adapters import gsm8k_gold
from r1pipe.data.load import load
from r1pipe.errors import UserError
from r1pipe.settings import DataSpec
from tests.data.test_files import Counts, jsonl

USER = {"role": "user", "content": "2+2?"}
ANSWER = {"role": "assistant", "content": "<think>\ntwo twos\n</think>\n<answer>4</answer>"}


def one(tmp_path: Path, row: Any, what: Any = "prompts", **spec: Any) -> dict[str, Any]:
    """The single row that comes of one record."""
    (found,) = load(DataSpec(source=str(jsonl(tmp_path / "x.jsonl", row)), **spec), what, seed=0)
    return found


def test_generated() -> None:
    spec = DataSpec(source="generated:arithmetic", split="heldout", rows=5, args={"levels": [1]})
    rows = load(spec, "prompts", seed=3)
    assert rows == load(spec, "prompts", seed=3) and {r["level"] for r in rows} == {1}
    assert len(load(DataSpec(source="generated:general", rows=4), "traces", seed=0)) == 4
    assert {"chosen", "rejected"} <= set(load(DataSpec(source="generated:general", rows=4), "pairs", seed=0)[0])


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"rows": 5, "args": {"levls": [1]}}, 'did you mean "levels"'),
        ({}, "set data.rows"),
        ({"source": "generated:arithmetics", "rows": 5}, "arithmetic"),
    ],
)
def test_generated_faults(spec: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as fault:
        load(DataSpec(**({"source": "generated:arithmetic"} | spec)), "prompts", seed=0)
    assert said in str(fault.value)


def test_our_rows_come_back(tmp_path: Path) -> None:
    for name, what in (
        ("arithmetic", "prompts"),
        ("arithmetic", "traces"),
        ("general", "pairs"),
        ("general", "labels"),
    ):
        rows = load(DataSpec(source=f"generated:{name}", rows=6), what, seed=0)
        path = jsonl(tmp_path / f"{name}-{what}.jsonl", *rows)
        back = {r["id"]: r for r in load(DataSpec(source=str(path)), what, seed=0)}
        assert len(back) == 6
        for row in rows:
            assert back[row["id"]] == {**row, "source": path.name}


def test_prompt_shapes(tmp_path: Path) -> None:
    row = one(tmp_path, {"messages": [USER, ANSWER], "gold": 4})
    assert (row["messages"], row["gold"], row["reference"]) == ([USER], "4", ANSWER["content"])
    row = one(tmp_path, {"prompt": "2+2?", "completion": "4"})
    assert (row["messages"], row["kind"], row["reference"]) == ([USER], "general", "4")
    assert one(tmp_path, {"prompt": [USER], "answer": "4"}, kind="number")["kind"] == "number"
    assert one(tmp_path, {"problem": "二加二等于几", "answer": "4"})["language"] == "zh"
    worked = one(tmp_path, {"problem": "2+2?", "answer": None, "solution": "So it is\n\\boxed{\\frac{8}{2}}"})
    assert worked["gold"] == "\\frac{8}{2}"


def test_trace_shapes(tmp_path: Path) -> None:
    assert one(tmp_path, {"messages": [USER, ANSWER, USER]}, "traces")["messages"] == [USER, ANSWER]
    assert one(tmp_path, {"prompt": [USER], "response": ANSWER["content"]}, "traces")["messages"] == [USER, ANSWER]
    row = one(tmp_path, {"question": "Beads?", "answer": "5*250=<<5*250=1250>>1250 beads.\n#### 1,250"}, "traces")
    assert row["messages"][-1]["content"] == "<think>\n5*250=1250 beads.\n</think>\n<answer>1250</answer>"
    assert row["gold"] == "1250"


def test_pair_and_label_shapes(tmp_path: Path) -> None:
    lists = {
        "chosen": [USER, {"role": "assistant", "content": "4"}],
        "rejected": [USER, {"role": "assistant", "content": "5"}],
    }
    for record in (lists, {"prompt": "2+2?", **lists}, {"prompt": "2+2?", "chosen": "4", "rejected": "5"}):
        row = one(tmp_path, record, "pairs")
        assert (row["messages"], row["chosen"], row["rejected"]) == ([USER], "4", "5")
    for label, value in ((1, 1), ("unsafe", 0), (True, 1)):
        assert one(tmp_path, {"prompt": "2+2?", "response": "4", "label": label}, "labels")["label"] == value


def test_columns(tmp_path: Path) -> None:
    record = {"frage": "2+2?", "loesung": "4", "stufe": 3}
    columns = {"prompt": "frage", "gold": "loesung", "level": "stufe"}
    row = one(tmp_path, record, columns=columns)
    assert (row["messages"], row["gold"], row["level"]) == ([USER], "4", 3)
    with pytest.raises(UserError) as fault:
        one(tmp_path, record)
    assert "frage, loesung, stufe" in str(fault.value) and "data.columns" in str(fault.value)
    with pytest.raises(UserError, match='no column "frag" \\(did you mean "frage"'):
        one(tmp_path, record, columns={"prompt": "frag"})
    with pytest.raises(UserError, match='did you mean "gold"'):
        one(tmp_path, record, columns={"golds": "loesung"})


def test_drops_are_counted(tmp_path: Path) -> None:
    path = jsonl(
        tmp_path / "x.jsonl",
        {"problem": "2+2?", "answer": "4"},
        {"problem": None, "answer": "4"},
        {"problem": "3+3?", "answer": ""},
        {"problem": "Worked", "answer": "many\nlines without a mark"},
    )
    counts = Counts()
    assert len(load(DataSpec(source=str(path), rows=3), "prompts", seed=0, ctx=counts)) == 1
    assert counts == {"data/dropped/no_question": 1, "data/dropped/no_gold": 2, "data/missing_rows": 2}
    jsonl(path, {"problem": None, "answer": "4"})
    with pytest.raises(UserError, match=r"no rows for prompts.*1 no_question"):
        load(DataSpec(source=str(path)), "prompts", seed=0)


def test_order_and_limit_by_seed(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "x.jsonl", *({"problem": f"{i}?", "answer": i} for i in range(50)))
    spec = DataSpec(source=str(path), rows=20)
    first = [r["gold"] for r in load(spec, "prompts", seed=1)]
    assert len(first) == 20 and first == [r["gold"] for r in load(spec, "prompts", seed=1)]
    assert first != [r["gold"] for r in load(spec, "prompts", seed=2)]
    assert first != sorted(first, key=int)


def test_hub_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="no pinned revision"):
        load(DataSpec(source="openai/gsm8k"), "prompts", seed=0)
    with pytest.raises(UserError, match='has "naem"'):
        load(DataSpec(source="openai/gsm8k", revision="abc", args={"naem": "main"}), "prompts", seed=0)
    import datasets

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match="cannot load openai/gsm8k-not-there@abc"):
        load(DataSpec(source="openai/gsm8k-not-there", revision="abc"), "prompts", seed=0)


def test_gsm8k_golds() -> None:
    assert gsm8k_gold("#### 5\nNo, wait.\n#### 7") == "7"
    assert gsm8k_gold("So she owes money.\n#### -1,234.5") == "-1234.5"
    assert gsm8k_gold("She has 12, altogether.\n#### ,") is None
    assert gsm8k_gold("She has 12 apples.") is None
    assert gsm8k_gold("#### $18") == "18"
