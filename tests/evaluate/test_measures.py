"""pass@k, majority@k, diversity, tokens a right answer: against numbers worked out by hand or by brute force."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from r1pipe.chat import Tags
from r1pipe.errors import UserError
from r1pipe.evaluate import paired
from r1pipe.evaluate.measures import Problem, of_samples, pass_at, sizes
from r1pipe.evaluate.stats import ratio
from r1pipe.evaluate.suite import evaluate, judge
from r1pipe.generate import Sample
from r1pipe.generate.scripted import ScriptedSampler
from r1pipe.rewards.verdict import Verdict
from r1pipe.settings import DataSpec, EvalConfig, EvalSet
from r1pipe.stage import StageContext

TAGS = Tags()


def problem(kind: str, gold: str, *answers: str, **more: Any) -> Problem:
    row = {"id": "1", "kind": kind, "gold": gold, "language": "en", "messages": [{"content": "?"}], **more}
    samples = [
        Sample(TAGS.wrap(f"thought {i}", a) if a else "nothing", 10, "stop", i) for i, a in enumerate(answers)
    ]  # fmt: skip
    return judge([row], [samples], TAGS)[0]


def numbers(found: Problem) -> dict[str, float]:
    return of_samples([found], len(found.samples), TAGS, require_think=True)[0]


@pytest.mark.parametrize(("n", "right", "k"), [(6, 2, 3), (6, 0, 3), (6, 6, 1), (5, 1, 4), (4, 3, 2), (3, 1, 3)])
def test_pass_at_k_is_the_mean_over_all_choices_of_k(n: int, right: int, k: int) -> None:
    draws = list(itertools.combinations([1] * right + [0] * (n - right), k))
    assert pass_at(n, right, k) == pytest.approx(sum(map(any, draws)) / len(draws))
    assert pass_at(n, right, n + 1) is None


def test_the_sizes_of_pass_at_k() -> None:
    assert sizes(1) == [] and sizes(2) == [2] and sizes(8) == [2, 4, 8] and sizes(12) == [2, 4, 8, 12]


@pytest.mark.parametrize(
    ("kind", "gold", "answers", "share"),
    [
        ("number", "7", ("7", "7", "8"), 1.0),
        ("number", "7", ("7", "8", "8"), 0.0),
        ("number", "7", ("7", "8", "9"), 1 / 3),  # three answers with a vote each
        ("number", "7", ("7", "8", ""), 0.5),  # no answer, no vote
        ("number", "7", ("", "", ""), 0.0),
        ("number", "7", ("7.0", "7", "8", "8.00"), 0.5),  # equal by the verifier, on both sides
        ("math", "\\frac{1}{2}", ("0.5", "\\frac{2}{4}", "\\frac{1}{3}", "\\frac{2}{6}", "\\frac{3}{9}"), 0.0),
        ("choice", "B", ("B", "C", "(c)", "D"), 0.0),
        ("choice", "B", ("B", "(B)", "(c)", "C"), 0.5),
    ],
)
def test_majority_counts_answers_not_texts(kind: str, gold: str, answers: tuple[str, ...], share: float) -> None:
    assert numbers(problem(kind, gold, *answers))[f"majority@{len(answers)}"] == pytest.approx(share)


def test_diversity() -> None:
    found = numbers(problem("number", "7", "7", "8", "8", "7.0"))
    assert found["distinct_answers"] == 0.5  # two answers, four votes
    row = {"id": "1", "kind": "general", "gold": None, "language": "en", "messages": [{"content": "?"}]}
    same = Problem(row, [Sample("a b c", 3, "stop", i) for i in range(2)], [None, None])
    assert numbers(same) == {"distinct_2": 0.5}
    han = Problem(row, [Sample("一二三", 3, "stop", 0), Sample("四五六", 3, "stop", 1)], [None, None])
    assert numbers(han) == {"distinct_2": 1.0}


def test_what_is_our_fault_counts_nowhere() -> None:
    samples = [Sample(TAGS.wrap("t", "7"), 10, "stop", i) for i in range(3)]
    verdicts = [Verdict(1.0, "scored"), Verdict(None, "error", "crashed"), Verdict(0.0, "scored")]
    row = {"id": "1", "kind": "number", "gold": "7"}
    found = numbers(Problem(row, samples, verdicts))
    assert found["pass@2"] == 1.0 and "pass@3" not in found


def test_tokens_a_right_answer() -> None:
    found = ratio([100.0] * 50 + [300.0] * 50, [1.0] * 50 + [0.0] * 50, resamples=500, seed=0)
    assert found is not None and found["value"] == 400 and 280 < found["low"] < 400 < found["high"] < 620
    assert ratio([5.0, 5.0], [0.0, 0.0], resamples=100, seed=0) is None
    rare = ratio([1.0] * 20, [1.0] + [0.0] * 19, resamples=200, seed=0)
    assert rare is not None and rare["high"] is None  # many resamples have no right one at all


def test_a_whole_set_with_known_answers() -> None:
    part = EvalSet(name="s", data=DataSpec(source="generated:arithmetic", rows=1), modes=["sample"], n=4)
    rows = [
        {
            "id": str(i),
            "kind": "number",
            "gold": "7",
            "language": "en",
            "messages": [{"role": "user", "content": f"{i}?"}],
        }
        for i in range(2)
    ]
    texts = {("0", 0): "7", ("0", 1): "7", ("0", 2): "7", ("0", 3): "9", ("1", 0): "7", ("1", 1): "8", ("1", 2): "8"}
    sampler = ScriptedSampler(
        lambda c, i: TAGS.wrap("I add them up.", texts.get((c[0]["content"][0], i), "6 or 5, I do not know"))
    )
    ctx = StageContext(step="x", seed=1, inputs={}, outputs={}, work=None)  # type: ignore[arg-type]
    found = evaluate(part, "sample", rows, sampler, EvalConfig(), tags=TAGS, seed=1, ctx=ctx)
    metrics = found.metrics
    assert metrics["accuracy"]["value"] == 0.5 and metrics["accuracy"]["n"] == 2
    assert metrics["pass@2"]["value"] == pytest.approx((1.0 + 0.5) / 2)
    assert metrics["pass@4"]["value"] == 1.0 and metrics["majority@4"]["value"] == 0.5
    tokens = sum(t["tokens"] for t in found.texts)
    assert metrics["tokens_per_right"]["value"] == pytest.approx(tokens / 4)
    assert len(found.texts) == 8 and {t["status"] for t in found.texts} <= {"scored", "unverifiable"}
    assert paired(found.records, found.records, "pass@2", "s", "sample")["n"] == 2
    with pytest.raises(UserError, match="unknown metric"):
        paired(found.records, found.records, "pass@3", "s", "sample")


def test_texts_without_any_thinking_are_told() -> None:
    part = EvalSet(name="s", data=DataSpec(source="x"), modes=["greedy"])
    rows = [
        {
            "id": str(i),
            "kind": "number",
            "gold": "7",
            "language": "en",
            "messages": [{"role": "user", "content": f"{i}?"}],
        }
        for i in range(10)
    ]

    def run(**settings: Any) -> tuple[float, list[str]]:
        ctx = StageContext(step="x", seed=1, inputs={}, outputs={}, work=None)  # type: ignore[arg-type]
        sampler = ScriptedSampler(lambda c, i: "The answer is \\boxed{7}.")
        found = evaluate(part, "greedy", rows, sampler, EvalConfig(**settings), tags=TAGS, seed=1, ctx=ctx)
        return found.metrics["accuracy"]["value"], ctx.warnings

    score, warnings = run()
    assert score == 0.0 and "10 of 10 finished texts have no </think>" in warnings[0]
    assert run(require_think=False) == (1.0, [])


def test_a_whole_set_is_not_judged_in_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch has a time limit: what it does not reach would count as wrong."""
    from r1pipe.evaluate import measures
    from r1pipe.rewards import correctness

    real, sizes_seen = correctness.verify_batch, []

    def watched(texts: Any, rows: Any, **more: Any) -> Any:
        sizes_seen.append(len(texts))
        return real(texts, rows, **more)

    monkeypatch.setattr(correctness, "verify_batch", watched)
    rows = [{"kind": "number", "gold": str(i)} for i in range(600)]
    texts = [TAGS.wrap("t", str(i if i % 3 else -1)) for i in range(600)]
    found = measures.verify(texts, rows, TAGS)
    assert [v.score for v in found] == [float(i % 3 > 0) for i in range(600)]
    assert sizes_seen == [256, 256, 88]
