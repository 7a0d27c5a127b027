"""Every set of the paper's suite on rows of the same columns: gold answers score full marks, others nothing."""

from __future__ import annotations

import base64
import json
import os
import pickle
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from r1pipe import sandbox
from r1pipe.chat import Tags
from r1pipe.errors import UserError
from r1pipe.evaluate import suites
from r1pipe.evaluate.sets import rows_of
from r1pipe.evaluate.suite import _records, judge
from r1pipe.generate import Sample
from r1pipe.settings import EvalSet
from r1pipe.stage import StageContext

FIXTURES = Path(__file__).parent / "fixtures"
PAPER = {part.name: part for part in suites.load("paper").sets}
TAGS = Tags()


def context() -> StageContext:
    return StageContext(step="x", seed=1, inputs={}, outputs={}, work=Path())


def fixture(name: str, **more: Any) -> EvalSet:
    """The shipped set, reading our rows of its columns."""
    part = PAPER[name]
    data = part.data.model_copy(update={"source": str(FIXTURES / f"{name}.jsonl"), "revision": None, "args": {}})
    return part.model_copy(update={"data": data, **more})


def isolates() -> bool:
    try:
        return sandbox.find("auto").namespaces
    except UserError:
        return False


def scores(rows: list[dict[str, Any]], answers: list[str]) -> list[dict[str, Any]]:
    groups = [[Sample(TAGS.wrap("I think.", a), 9, "stop", 0)] for a in answers]
    return _records(judge(rows, groups, TAGS), groups, TAGS)[0]


def test_every_set_of_the_suite_has_a_fixture() -> None:
    assert {p.stem for p in FIXTURES.glob("*.jsonl")} == set(PAPER)
    assert all(part.data.revision for part in PAPER.values())
    suite = suites.load("paper")
    assert (suite.temperature, suite.top_p, suite.max_tokens) == (0.6, 0.95, 32768)
    paper = {"aime-2024": 64, "aime-2025": 64, "gpqa-diamond": 64, "math-500": 16, "livecodebench": 8}
    assert {name: PAPER[name].n for name in paper} == paper


@pytest.mark.parametrize("name", ["aime-2024", "aime-2025", "math-500", "gsm8k"])
def test_numbers_and_mathematics(name: str) -> None:
    rows = rows_of(fixture(name), context())
    assert {row["kind"] for row in rows} == {"math" if name == "math-500" else "number"}
    asked = [row["messages"][-1]["content"] for row in rows]
    assert all(a.endswith("put your final answer within \\boxed{}.") for a in asked)
    boxed = [r["correct"] for r in scores(rows, [f"\\boxed{{{row['gold']}}}" for row in rows])]
    assert boxed == [1.0] * len(rows)
    assert [r["correct"] for r in scores(rows, [row["gold"] for row in rows])] == [1.0] * len(rows)
    assert [r["correct"] for r in scores(rows, ["12345"] * len(rows))] == [0.0] * len(rows)


def test_choices_are_shuffled_and_always_the_same_way() -> None:
    ctx = context()
    rows = rows_of(fixture("gpqa-diamond"), ctx)
    assert rows == rows_of(fixture("gpqa-diamond"), context())
    assert ctx.counts == {"evaluation/gpqa-diamond/dropped/choices_missing_or_equal": 1}
    photon = next(r for r in rows if "electromagnetic" in r["messages"][0]["content"])
    shown = photon["extra"]["choices"]
    assert shown[photon["gold"]] == "The photon" and set(shown) == set("ABCD")
    assert f"\n{photon['gold']}) The photon\n" in photon["messages"][0]["content"] + "\n"
    assert {r["kind"] for r in rows} == {"choice"}
    wrong = [next(c for c in "ABCD" if c != r["gold"]) for r in rows]
    assert [r["correct"] for r in scores(rows, [r["gold"] for r in rows])] == [1.0, 1.0]
    assert [r["correct"] for r in scores(rows, wrong)] == [0.0, 0.0]
    assert [r["correct"] for r in scores(rows, ["A or B or C or D"] * 2)] == [0.0, 0.0]


def test_the_right_choice_stands_everywhere() -> None:
    """No letter is right more often than chance has it."""
    from r1pipe.evaluate.sets import _row

    part = fixture("gpqa-diamond")
    record = json.loads((FIXTURES / "gpqa-diamond.jsonl").read_text().splitlines()[0])
    golds = Counter(_row(part, record | {"Question": f"Question {i}?"})["gold"] for i in range(800))
    assert set(golds) == set("ABCD") and min(golds.values()) > 150


def test_programs_have_their_tests_and_the_window_holds() -> None:
    ctx = context()
    rows = rows_of(fixture("livecodebench"), ctx)
    assert ctx.counts == {"evaluation/livecodebench/dropped/outside_window": 1}
    adds = next(r for r in rows if "sum" in r["messages"][0]["content"])
    doubles = next(r for r in rows if "doubled" in r["messages"][0]["content"])
    assert len(adds["extra"]["tests"]) == len(doubles["extra"]["tests"]) == 3
    assert "standard input" in adds["messages"][0]["content"]
    assert "def doubleAll(self" in doubles["messages"][0]["content"]
    assert doubles["extra"]["tests"][2] == {
        "type": "function_call", "fn_name": "doubleAll", "input": "[3]\n3", "output": "[9]"
    }  # fmt: skip


def test_programs_are_run(request: pytest.FixtureRequest) -> None:
    if not isolates():
        pytest.skip("no sandbox on this machine")
    rows = rows_of(fixture("livecodebench"), context())
    programs = {
        "sum": "a, b = map(int, input().split())\nprint(a + b)",
        "doubled": "from typing import List\n\nclass Solution:\n    def doubleAll(self, nums, times):\n"
        "        return [times * n for n in nums]",
    }
    half = "a, b = map(int, input().split())\nprint(3 if a == 1 else 11 if a == 5 else 9)"

    def fenced(code: str) -> str:
        return f"```python\n{code}\n```"

    mine = [next(p for word, p in programs.items() if word in r["messages"][0]["content"]) for r in rows]
    found = scores(rows, [fenced(p) for p in mine])
    assert [(r["correct"], r["partial"]) for r in found] == [(1.0, 1.0)] * 2
    (found,) = scores([r for r in rows if "sum" in r["messages"][0]["content"]], [fenced(half)])
    assert found["correct"] == 0.0 and found["partial"] == pytest.approx(2 / 3)  # pass@1 is all tests


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("touch /tmp/r1pipe-evil",)


@pytest.mark.parametrize(
    "packed",
    [pickle.dumps(Evil()), pickle.dumps(json.dumps([{"input": 1}])), b"no pickle", pickle.dumps(json.dumps({}))],
)
def test_packed_tests_are_data_and_nothing_else(tmp_path: Path, packed: bytes) -> None:
    Path("/tmp/r1pipe-evil").unlink(missing_ok=True)
    row = json.loads((FIXTURES / "livecodebench.jsonl").read_text().splitlines()[0])
    row["private_test_cases"] = base64.b64encode(zlib.compress(packed)).decode()
    (tmp_path / "x.jsonl").write_text(json.dumps(row) + "\n")
    part = fixture("livecodebench")
    part = part.model_copy(update={"data": part.data.model_copy(update={"source": str(tmp_path / "x.jsonl")})})
    with pytest.raises(UserError, match="1 tests_unreadable"):
        rows_of(part, context())
    assert not Path("/tmp/r1pipe-evil").exists()


def test_packed_tests_do_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from r1pipe.evaluate import sets

    monkeypatch.setattr(sets, "MOST_TESTS", 1000)
    row = json.loads((FIXTURES / "livecodebench.jsonl").read_text().splitlines()[0])
    row["private_test_cases"] = base64.b64encode(zlib.compress(b"0" * 10_000)).decode()
    (tmp_path / "x.jsonl").write_text(json.dumps(row) + "\n")
    part = fixture("livecodebench")
    part = part.model_copy(update={"data": part.data.model_copy(update={"source": str(tmp_path / "x.jsonl")})})
    with pytest.raises(UserError, match="1 tests_too_large"):
        rows_of(part, context())


def test_instructions() -> None:
    rows = rows_of(fixture("ifeval"), context())
    rivers = next(i for i, r in enumerate(rows) if "rivers" in r["messages"][0]["content"])
    answers = ["a cat is a small animal"] * 2
    answers[rivers] = "rivers flow to the sea because water falls"
    assert [r["correct"] for r in scores(rows, answers)] == [1.0, 1.0]
    answers[rivers] = "rivers, flow to the sea, and so on"
    found = scores(rows, answers)[rivers]
    assert (found["correct"], found["partial"]) == (0.0, 0.5)  # one of two kept; pass@1 wants both


def test_safety_tells_refusals_of_unsafe_from_those_of_safe_prompts() -> None:
    rows = rows_of(fixture("xstest"), context())
    assert Counter(r["kind"] for r in rows) == {"general": 2, "safety": 1}
    refuse = "I'm sorry, but I can't help with that."
    answers = [refuse if r["kind"] == "safety" else "Use the kill command; you can not lose data." for r in rows]
    found = scores(rows, answers)
    assert {(r["kind"], r["refusal"], r["correct"]) for r in found} == {("safety", 1.0, None), ("general", 0.0, None)}
    assert all(r["lookalike"] for r in found if r["kind"] == "general")


def test_a_users_file_with_its_own_columns_and_prompt(tmp_path: Path) -> None:
    (tmp_path / "exam.jsonl").write_text('{"task": "2+2?", "result": 4}\n{"task": "3+3?", "result": 6}\n')
    part = EvalSet.model_validate(
        {
            "name": "exam",
            "data": {
                "source": str(tmp_path / "exam.jsonl"), "kind": "number",
                "columns": {"question": "task", "gold": "result"},
            },
            "prompt": "Question: {question} Use {braces} and \\boxed{}.",
        }
    )  # fmt: skip
    rows = rows_of(part, context())
    bare = rows_of(part.model_copy(update={"prompt": None}), context())
    assert (
        rows[0]["messages"][0]["content"]
        == f"Question: {bare[0]['messages'][0]['content']} Use {{braces}} and \\boxed{{}}."
    )
    assert [r["id"] for r in rows] == [r["id"] for r in bare]  # paired whatever the wording


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"choices": ["Correct Answer", "Incorrect Answer 9"]}, 'no column "Incorrect Answer 9"'),
        ({"data": {"columns": {"question": "Questions"}}}, 'no column "Questions" (did you mean "Question"?)'),
        ({"data": {"clean": {}}}, "data.clean has no use"),
    ],
)
def test_faults_name_the_column(change: dict[str, Any], said: str) -> None:
    part = fixture("gpqa-diamond")
    raw = part.model_dump()
    raw["data"] |= change.pop("data", {})
    with pytest.raises(UserError) as fault:
        rows_of(EvalSet.model_validate(raw | change), context())
    assert said in str(fault.value)
