"""Sets of real numbers: intervals with any constant ends, their unions, intersections and differences.

Two sets are equal when they agree at every end of either and between any two neighbouring ends.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from r1pipe.rewards import mathsame
from r1pipe.rewards.mathexact import Undefined, fold
from r1pipe.rewards.mathlex import TooHard, Unreadable
from r1pipe.rewards.mathtree import INF, MINUS_INF, Node, contains, neg, num, substitute, symbols

MAX_ENDS = 40


@dataclass(frozen=True, slots=True)
class Reals:
    """An interval (`low`, `high`, `closed` at each), or a union, intersection or difference of `parts`."""

    op: Literal["interval", "union", "intersection", "difference"]
    parts: tuple[Reals, ...] = ()
    low: Node = MINUS_INF
    high: Node = INF
    closed: tuple[bool, bool] = (False, False)

    @property
    def bounded(self) -> bool:
        return self.op == "interval" and self.low != MINUS_INF and self.high != INF


ALL = Reals("interval")
NOTHING = Reals("union")


def interval(low: Node, high: Node, closed: tuple[bool, bool]) -> Reals:
    return Reals("interval", low=low, high=high, closed=(closed[0] and low != MINUS_INF, closed[1] and high != INF))


def point(value: Node) -> Reals:
    return Reals("interval", low=value, high=value, closed=(True, True))


def union(*parts: Reals) -> Reals:
    return parts[0] if len(parts) == 1 else Reals("union", parts)


def intersection(*parts: Reals) -> Reals:
    return parts[0] if len(parts) == 1 else Reals("intersection", parts)


def difference(whole: Reals, *without: Reals) -> Reals:
    return Reals("difference", (whole, *without))


def equal(a: Reals, b: Reals) -> bool:
    """Raises TooHard, Undefined (ends that cannot be ordered)."""
    if a == b:
        return True
    if a.op == b.op == "interval" and symbols(a.low) | symbols(a.high):
        return a.closed == b.closed and mathsame.equal(a.low, b.low) and mathsame.equal(a.high, b.high)
    names = [frozenset[str]().union(*map(symbols, _ends(s))) for s in (a, b)]
    if names[0] != names[1]:
        return False
    if names[0]:
        raise Unreadable("ends that cannot be ordered")
    ends = _sorted([*_ends(a), *_ends(b)])
    return all(_holds(a, place, ends) == _holds(b, place, ends) for place in range(2 * len(ends) + 1))


def empty(a: Reals) -> bool:
    ends = _sorted(list(_ends(a)))
    return not any(_holds(a, place, ends) for place in range(2 * len(ends) + 1))


def _ends(a: Reals) -> Iterator[Node]:
    if a.op == "interval":
        yield from (end for end in (a.low, a.high) if end not in (INF, MINUS_INF))
    for part in a.parts:
        yield from _ends(part)


def _sorted(ends: list[Node]) -> list[Node]:
    if len(ends) > MAX_ENDS:
        raise TooHard("a set of many pieces")
    found: list[Node] = []
    for end in sorted(map(fold, ends), key=functools.cmp_to_key(mathsame.compare)):
        if not found or mathsame.compare(found[-1], end) != 0:
            found.append(end)
    return found


def _holds(a: Reals, place: int, ends: list[Node]) -> bool:
    """Is the place in the set? Places: 0 before the first end, 1 the first end, 2 between it and the second, ..."""
    match a.op:
        case "union":
            return any(_holds(p, place, ends) for p in a.parts)
        case "intersection":
            return all(_holds(p, place, ends) for p in a.parts)
        case "difference":
            return _holds(a.parts[0], place, ends) and not any(_holds(p, place, ends) for p in a.parts[1:])
    low, high = _place(a.low, ends), _place(a.high, ends)
    return low < place < high or (place == low == high and all(a.closed)) or (
        low < high and ((place == low and a.closed[0]) or (place == high and a.closed[1]))
    )  # fmt: skip


def _place(end: Node, ends: list[Node]) -> int:
    if end in (INF, MINUS_INF):
        return 2 * len(ends) + 1 if end == INF else -1
    end = fold(end)
    return next(2 * i + 1 for i, e in enumerate(ends) if mathsame.compare(e, end) == 0)


_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}


def solve(left: Node, op: str, right: Node) -> tuple[str, Reals]:
    """The variable and the solutions of an inequality that is linear in its one variable, or in the absolute value
    of something linear. Raises Unreadable for others."""
    if left.op != "abs" and right.op == "abs":
        left, op, right = right, _FLIPPED[op], left
    names = symbols(left) | symbols(right)
    if len(names) != 1:
        raise Unreadable("an inequality of several variables")
    name = next(iter(names))
    if left.op == "abs" and not symbols(right):
        outer = [solve(left.args[0], op, right)[1], solve(neg(left.args[0]), op, right)[1]]
        return name, (intersection if op in ("<", "<=", "!=") else union)(*outer)
    return name, _linear(Node("add", (left, neg(right))), name, op)


def _linear(node: Node, name: str, op: str) -> Reals:
    if contains(node, "inf"):
        raise Unreadable("infinity in an inequality")
    try:
        at = [fold(substitute(node, name, num(k))) for k in (0, 1, 2, Fraction(-7, 3))]
        slope = fold(Node("add", (at[1], neg(at[0]))))
        for k, value in ((2, at[2]), (Fraction(-7, 3), at[3])):
            if not mathsame.equal(value, Node("add", (at[0], Node("mul", (num(k), slope))))):
                raise Unreadable("not linear")
        direction = mathsame.sign(slope)
    except Undefined:
        raise Unreadable("not linear") from None
    if direction == 0:
        raise Unreadable("no variable")
    bound = fold(Node("mul", (neg(at[0]), Node("inv", (slope,)))))
    if op == "!=":
        return difference(ALL, point(bound))
    if direction < 0:
        op = _FLIPPED[op]
    closed = op.endswith("=")
    return interval(MINUS_INF, bound, (False, closed)) if op[0] == "<" else interval(bound, INF, (closed, False))
