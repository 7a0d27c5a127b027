r"""Are two answers equal? On what `mathanswer.read` says they are.

Policies: a bare list is in no order and may repeat nothing that the other does not; braces make a set, where
repetitions do not count; a point may stand without its brackets, in its order; a column is the point of its entries;
a one-element set is its element. An equation may be scaled by a constant, an inequality by a positive one. A name
before a value (`x = 5`) is not asked for, but two names must be the same. Units: see `numbers.same`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

from r1pipe.rewards import mathbudget, mathfamily, mathperiod, mathread, mathrelation, mathsame, mathsets, mathunits
from r1pipe.rewards.mathanswer import (
    Answer,
    Dots,
    Items,
    Matrix,
    Named,
    Periodic,
    Piecewise,
    Relation,
    System,
    Value,
    as_reals,
    periodic,
)  # fmt: skip
from r1pipe.rewards.mathlex import TooHard, Unreadable
from r1pipe.rewards.mathsets import Reals
from r1pipe.rewards.mathtree import Node, neg, num, symbols

MAX_COMPARISONS = 5_000


def same(gold: str, answer: str) -> bool:
    """Raises Unreadable (another notation than what is read here), TooHard (out of bounds), Undefined."""
    mathbudget.restart()
    return equal(mathread.read(gold), mathread.read(answer))


def equal(gold: Answer, answer: Answer) -> bool:
    if isinstance(gold, Periodic) or isinstance(answer, Periodic):
        return _periodic(gold, answer)
    if isinstance(gold, Named) and isinstance(answer, Named):
        return _named(gold, answer)
    if isinstance(gold, Named | System) or isinstance(answer, Named | System):
        return _unnamed(gold, answer)
    if isinstance(gold, Reals) or isinstance(answer, Reals):
        return _sets(gold, answer)
    if isinstance(gold, Relation) and isinstance(answer, Relation):
        return mathrelation.equal(gold, answer)
    if isinstance(gold, Piecewise) and isinstance(answer, Piecewise):
        return _piecewise(gold, answer)
    if isinstance(gold, Matrix) or isinstance(answer, Matrix):
        return _matrices(gold, answer)
    if isinstance(gold, Items) and isinstance(answer, Items):
        return _items(gold, answer)
    if isinstance(gold, Items) or isinstance(answer, Items):
        items, other = (gold, answer) if isinstance(gold, Items) else (answer, gold)
        assert isinstance(items, Items)  # 1/2 or 0.5
        alone = len(items.items) == 1 or (items.kind in ("list", "set") and items.items)
        return bool(alone) and all(equal(item, other) for item in items.items)
    if isinstance(gold, Value) and isinstance(answer, Value):
        return _values(gold, answer)
    return isinstance(gold, Dots) and isinstance(answer, Dots)


def _values(gold: Value, answer: Value) -> bool:
    if (gold.unit == "%") != (answer.unit == "%"):
        percent, bare = (gold, answer) if gold.unit == "%" else (answer, gold)
        hundredth = Node("mul", (percent.expr, num(Fraction(1, 100))))
        return not bare.unit and (mathsame.equal(bare.expr, percent.expr) or mathsame.equal(bare.expr, hundredth))
    ratio = mathunits.ratio(gold.unit, answer.unit)
    if ratio is None or ratio == 1:
        return mathsame.equal(gold.expr, answer.expr) or mathfamily.same(gold.expr, answer.expr)
    return ratio != 0 and mathsame.equal(Node("mul", (gold.expr, num(ratio))), answer.expr)


def _periodic(gold: Answer, answer: Answer) -> bool:
    try:
        mine, theirs = periodic(gold), periodic(answer)
    except Unreadable:
        return False
    return mathperiod.same(mine.exprs, mine.name, theirs.exprs, theirs.name)


def _named(gold: Named, answer: Named) -> bool:
    if gold.name == answer.name or _names_agree(gold, answer) or _names_agree(answer, gold):
        return equal(gold.value, answer.value)
    return bool(gold.relation and answer.relation and mathrelation.equal(gold.relation, answer.relation))


def _names_agree(one: Named, other: Named) -> bool:
    """Solutions are the same whatever they solve for; `f(x) = 2x` is `y = 2x`, not `x = 2x`."""
    if isinstance(one.value, Items) and isinstance(other.value, Items):
        return True
    return "(" in one.name and isinstance(other.value, Value) and other.name not in symbols(other.value.expr)


def _unnamed(gold: Answer, answer: Answer) -> bool:
    """One side gives names."""
    if isinstance(gold, System) and isinstance(answer, System):
        mine, theirs = dict(gold.values), dict(answer.values)
        return mine.keys() == theirs.keys() and all(equal(v, theirs[n]) for n, v in mine.items())
    if isinstance(gold, System) or isinstance(answer, System):
        system, other = (gold, answer) if isinstance(gold, System) else (answer, gold)
        return isinstance(system, System) and _system(system, other)
    named, other = (gold, answer) if isinstance(gold, Named) else (answer, gold)
    assert isinstance(named, Named)
    if isinstance(other, Relation):
        return named.relation is not None and mathrelation.equal(named.relation, other)
    return equal(named.value, other)


def _system(system: System, other: Answer) -> bool:
    """`x = 1, y = 2` is the point (1, 2): in the order of the letters, other names as written. `x_1 = 2, x_2 = 3` are
    solutions in no order."""
    if isinstance(other, Named):
        return _system(system, other.value)
    if isinstance(other, Items) and len(other.items) == 1:
        return _system(system, other.items[0])
    if not isinstance(other, Items) or len(other.items) != len(system.values):
        return False
    values = system.values
    if other.kind in ("list", "set") and len({name.partition("_")[0] for name, _ in values}) == 1:
        return _unordered([v for _, v in values], other.items)
    if all(len(name) == 1 for name, _ in values):
        values = tuple(sorted(values, key=lambda pair: pair[0]))
    return other.kind != "set" and all(equal(v, i) for (_, v), i in zip(values, other.items, strict=True))


def _sets(gold: Answer, answer: Answer) -> bool:
    try:
        left, right = as_reals(gold), as_reals(answer)
    except Unreadable:
        return False
    return mathsets.equal(left, right)


def _matrices(gold: Answer, answer: Answer) -> bool:
    if isinstance(gold, Matrix) and isinstance(answer, Matrix):
        return [len(r) for r in gold.rows] == [len(r) for r in answer.rows] and all(
            equal(g, a)
            for mine, theirs in zip(gold.rows, answer.rows, strict=True)
            for g, a in zip(mine, theirs, strict=True)
        )
    matrix, other = (gold, answer) if isinstance(gold, Matrix) else (answer, gold)
    assert isinstance(matrix, Matrix)
    if isinstance(other, Items) and other.kind in ("tuple", "square"):
        if len(matrix.rows) == 1 or all(len(row) == 1 for row in matrix.rows):
            return _ordered([cell for row in matrix.rows for cell in row], other.items)
        if all(isinstance(row, Items) for row in other.items):  # [[1, 2], [3, 4]]
            rows = tuple(row.items for row in other.items if isinstance(row, Items))
            return _matrices(matrix, Matrix(rows))
    return isinstance(other, Value) and [len(r) for r in matrix.rows] == [1] and equal(matrix.rows[0][0], other)


def _piecewise(gold: Piecewise, answer: Piecewise) -> bool:
    def found(value: Answer, condition: Answer | None) -> bool:
        return any(
            equal(value, v) and (condition is c is None or bool(condition and c and equal(condition, c)))
            for v, c in answer.rows
        )

    return len(gold.rows) == len(answer.rows) and all(found(v, c) for v, c in gold.rows)


def _ordered(left: Sequence[Answer], right: Sequence[Answer]) -> bool:
    return len(left) == len(right) and all(map(equal, left, right))


def _items(gold: Items, answer: Items) -> bool:
    if any(isinstance(i, Dots) for i in (*gold.items, *answer.items)):
        return _elided(list(gold.items), list(answer.items))
    if len(gold.items) * len(answer.items) > MAX_COMPARISONS and gold != answer:
        raise TooHard("long lists")
    kinds = {gold.kind, answer.kind}
    for single, other in ((gold, answer), (answer, gold)):  # {(1, 2)} is the point
        if single.kind in ("set", "list") and len(single.items) == 1 and other.kind in ("tuple", "square"):
            return equal(single.items[0], other)
    if "set" in kinds:
        return kinds <= {"set", "list"} and all(
            any(equal(i, j) for j in theirs) for mine, theirs in _both(gold, answer) for i in mine
        )
    if kinds == {"list"}:
        return _unordered(gold.items, answer.items)
    if kinds == {"tuple", "square"} and len(gold.items) == 2:  # these may be intervals
        return False
    return _ordered(gold.items, answer.items)


def _both(gold: Items, answer: Items) -> list[tuple[tuple[Answer, ...], tuple[Answer, ...]]]:
    return [(gold.items, answer.items), (answer.items, gold.items)]


def _unordered(left: Sequence[Answer], right: Sequence[Answer]) -> bool:
    if len(left) != len(right):
        return False
    rest = list(right)
    for item in left:
        found = next((i for i, other in enumerate(rest) if equal(item, other)), None)
        if found is None:
            return False
        del rest[found]
    return True


def _elided(gold: list[Answer], answer: list[Answer]) -> bool:
    """`1, 2, ..., n` and `1, 2, 3, ..., n`: the same ends, and what only one names goes on with the same step."""
    if gold.count(Dots()) != 1 or answer.count(Dots()) != 1:
        return False
    (first, last), (head, tail) = _around(gold), _around(answer)
    if len(first) > len(head):
        first, last, head, tail = head, tail, first, last
    if not (first and _ordered(first, head[: len(first)]) and _ordered(last, tail)):
        return False
    if len(first) == len(head):
        return True
    values = [i.expr for i in head if isinstance(i, Value)]
    if len(values) < len(head):
        return False
    steps = [Node("add", (b, neg(a))) for a, b in itertools.pairwise(values)]
    return all(mathsame.equal(steps[0], step) for step in steps)


def _around(items: list[Answer]) -> tuple[list[Answer], list[Answer]]:
    at = items.index(Dots())
    return items[:at], items[at + 1 :]
