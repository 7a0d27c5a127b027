"""Several sources, with and without weights."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from r1pipe.data.load import load_all
from r1pipe.errors import UserError
from r1pipe.settings import DataSpec
from tests.data.test_files import Counts, jsonl


@pytest.fixture
def sources(tmp_path: Path) -> list[str]:
    made = []
    for name, n in (("a", 100), ("b", 30), ("c", 50)):
        rows = ({"problem": f"{name}{i}?", "answer": i} for i in range(n))
        made.append(str(jsonl(tmp_path / f"{name}.jsonl", *rows)))
    return made


def specs(sources: list[str], *weights: float | None, **more: Any) -> list[DataSpec]:
    return [DataSpec(source=s, weight=w, **more) for s, w in zip(sources, weights, strict=True)]


def test_without_weights_all_rows_in_order(sources: list[str]) -> None:
    rows = load_all(specs(sources, None, None, None), "prompts", seed=0)
    assert [r["source"] for r in rows] == ["a.jsonl"] * 100 + ["b.jsonl"] * 30 + ["c.jsonl"] * 50
    assert load_all([], "prompts", seed=0) == []


def test_weights(sources: list[str]) -> None:
    counts = Counts()
    rows = load_all(specs(sources, 2, 1, 1), "prompts", seed=0, ctx=counts)
    taken = Counter(r["source"] for r in rows)
    assert taken == {"a.jsonl": 60, "b.jsonl": 30, "c.jsonl": 30}  # b is used up first
    assert len({r["id"] for r in rows}) == 120  # none twice
    assert counts == {f"data/mixture_unused/{sources[0]}": 40, f"data/mixture_unused/{sources[2]}": 20}
    assert rows == load_all(specs(sources, 2, 1, 1), "prompts", seed=0)
    assert rows != load_all(specs(sources, 2, 1, 1), "prompts", seed=1)
    half = Counter(r["source"] for r in rows[:60])  # mixed all over
    assert 20 <= half["a.jsonl"] <= 40
    assert len(load_all(specs(sources, 2, 1, 1, rows=20), "prompts", seed=0)) == 40  # 20 + 10 + 10


def test_some_weights_are_a_fault(sources: list[str]) -> None:
    with pytest.raises(UserError, match=r"some have none: .*c\.jsonl"):
        load_all(specs(sources, 1, 1, None), "prompts", seed=0)
    for weight in (0, -1, float("inf")):
        with pytest.raises(ValidationError):
            DataSpec(source="x", weight=weight)
