"""Finds an expression that solves a puzzle: for checks of rows and tests, not for scoring."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

MAX_STEPS = 200_000  # about a second; four numbers need at most some 10,000

_Term = tuple[Fraction, str]


def solve(nums: Sequence[int], target: int, *, every: bool) -> str | None:
    """An expression with the value `target` (of every number, or of some); None where none was found in time."""
    budget = [MAX_STEPS]
    return _search([(Fraction(n), str(n) if n >= 0 else f"({n})") for n in nums], Fraction(target), every, budget)


def _search(terms: list[_Term], target: Fraction, every: bool, budget: list[int]) -> str | None:
    if not every or len(terms) == 1:
        for value, text in terms:
            if value == target:
                return text
    for i, a in enumerate(terms):
        for j in range(i):
            b = terms[j]
            rest = [t for k, t in enumerate(terms) if k not in (i, j)]
            for combined in _combine(a, b):
                budget[0] -= 1
                if budget[0] < 0:
                    return None
                if found := _search([*rest, combined], target, every, budget):
                    return found
    return None


def _combine(a: _Term, b: _Term) -> Iterator[_Term]:
    (x, left), (y, right) = a, b
    yield x + y, f"({left} + {right})"
    yield x * y, f"({left} * {right})"
    yield x - y, f"({left} - {right})"
    yield y - x, f"({right} - {left})"
    if y:
        yield x / y, f"({left} / {right})"
    if x:
        yield y / x, f"({right} / {left})"
