"""Intervals and paired changes."""

from __future__ import annotations

from typing import Any

import pytest

from r1pipe.errors import UserError
from r1pipe.evaluate import paired
from r1pipe.evaluate.stats import intervals


def record(i: int, correct: float | None, **more: Any) -> dict[str, Any]:
    return {
        "id": str(i), "set": "heldout", "mode": "sample", "kind": "number", "lookalike": False, "correct": correct,
        "format": 1.0, "language": 1.0, "tokens": 10, "truncated": 0.0, "refusal": None,
    } | more  # fmt: skip


def test_interval_of_a_proportion() -> None:
    """Close to the normal interval: 400 problems, 75 %: ±4.2 points."""
    found = intervals({"x": [1.0] * 300 + [0.0] * 100, "gap": [None] * 400}, resamples=2000, seed=0)
    assert set(found) == {"x"}
    assert found["x"]["value"] == 0.75 and found["x"]["n"] == 400
    assert found["x"]["low"] == pytest.approx(0.7076, abs=0.006)
    assert found["x"]["high"] == pytest.approx(0.7924, abs=0.006)
    assert found == intervals({"x": [1.0] * 300 + [0.0] * 100}, resamples=2000, seed=0)


def test_no_false_certainty_at_the_ends() -> None:
    columns = {"x": [1.0] * 100, "y": [0.0] * 10 + [None] * 90, "t": [1.0] * 100}
    found = intervals(columns, resamples=100, seed=0, bounded=("x", "y"))
    assert found["x"]["low"] == pytest.approx(0.9638, abs=1e-4) and found["x"]["high"] == 1
    assert found["y"]["high"] == pytest.approx(0.3085, abs=1e-4) and found["y"]["low"] == 0
    assert found["t"]["low"] == 1.0


def test_columns_with_gaps_keep_their_own_problems() -> None:
    found = intervals({"x": [1.0, None, 0.0, None] * 50}, resamples=500, seed=1)["x"]
    assert found["n"] == 100 and found["value"] == 0.5 and 0.38 < found["low"] < 0.42


def test_blocks_change_nothing_but_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    from r1pipe.evaluate import stats

    values = {"x": [float(i % 3 == 0) for i in range(50)]}
    whole = intervals(values, resamples=300, seed=2)
    monkeypatch.setattr(stats, "CELLS", 50 * 7)
    assert intervals(values, resamples=300, seed=2) == whole


def test_paired_is_narrower_than_apart() -> None:
    before = [record(i, float(i % 2)) for i in range(400)]
    after = [record(i, 1.0 if i % 10 == 0 else float(i % 2)) for i in reversed(range(400))]
    change = paired(before, after, "accuracy", "heldout", "sample")
    assert change["delta"] == 0.1 and change["n"] == 400
    assert 0.065 < change["low"] < 0.08 and 0.12 < change["high"] < 0.135  # apart it would be ±0.07


def test_paired_takes_what_both_have() -> None:
    a = [record(1, 0.0), record(2, None), record(3, 1.0), record(4, 1.0, mode="greedy")]
    b = [record(1, 1.0), record(2, 1.0), record(4, 1.0)]
    assert paired(a, b, "accuracy", "heldout", "sample")["n"] == 1
    assert paired(a, b, "accuracy", "heldout", "greedy") == {"delta": None, "low": None, "high": None, "n": 0}
    with pytest.raises(UserError, match='did you mean "accuracy"'):
        paired(a, b, "acuracy", "heldout", "sample")


def test_paired_refusals() -> None:
    a = [record(1, None, kind="safety", refusal=0.0), record(2, None, kind="general", refusal=0.0)]
    b = [record(1, None, kind="safety", refusal=1.0), record(2, None, kind="general", refusal=0.0)]
    assert paired(a, b, "refusal_unsafe", "heldout", "sample")["delta"] == 1.0
    assert paired(a, b, "refusal_safe", "heldout", "sample")["delta"] == 0.0
    assert paired(a, b, "refusal_lookalike", "heldout", "sample")["n"] == 0
