r"""Families of functions with free constants: `A + \frac{B}{x} - x` is `-x + C + \frac{D}{x}`.

What counts as free: `C_1, C_2, ...`, and the capitals A to D and K where the two answers name them differently, or
where one C is only added (`x^2 + C` is `x^2 - C + 1`). A capital of the same name on both sides may be given by the
question: `2Cx` is not `Cx`. Two families that are linear in their constants are equal when they hold the same
functions; others when a renaming makes them equal.
"""

from __future__ import annotations

import itertools
import random
import re
from fractions import Fraction
from typing import Any

from r1pipe.rewards import mathsame
from r1pipe.rewards.mathexact import Undefined, fold
from r1pipe.rewards.mathfloat import Evaluator
from r1pipe.rewards.mathtree import Node, neg, num, substitute, symbols

MAX_CONSTANTS = 4
PRECISION = 400
POINTS = 12

_FREE = re.compile(r"[A-DK]|[Cc]_\d")


def same(gold: Node, answer: Node) -> bool:
    mine, theirs = _constants(gold), _constants(answer)
    if not mine or len(mine) != len(theirs) or len(mine) > MAX_CONSTANTS:
        return False
    names = symbols(gold) - set(mine)
    if not names or names != symbols(answer) - set(theirs):
        return False
    left, right = _linear(gold, mine), _linear(answer, theirs)
    given = set(mine) == set(theirs) and not all("_" in name for name in mine)
    if given and (len(mine) > 1 or not (left and right and _only_added(left[1]) and _only_added(right[1]))):
        return False
    if left and right:
        return _same_functions(left, right, sorted(names))
    return any(_renamed(gold, mine, answer, order) for order in itertools.permutations(theirs))


def _only_added(factor: Node) -> bool:
    return mathsame.equal(factor, num(1)) or mathsame.equal(factor, num(-1))


def _constants(node: Node) -> list[str]:
    return sorted(name for name in symbols(node) if _FREE.fullmatch(name))


def _renamed(gold: Node, names: list[str], answer: Node, order: tuple[str, ...]) -> bool:
    for at, (name, other) in enumerate(zip(names, order, strict=True)):
        gold = substitute(gold, name, Node("sym", name=f"free {at}"))
        answer = substitute(answer, other, Node("sym", name=f"free {at}"))
    return mathsame.equal(gold, answer)


def _linear(node: Node, names: list[str]) -> list[Node] | None:
    """The part without constants and the factor of each; None where the family is not linear in them."""

    def at(values: dict[str, int]) -> Node:
        value = node
        for name in names:
            value = substitute(value, name, num(values.get(name, 0)))
        return value

    try:
        parts = [fold(at({})), *(fold(Node("add", (at({name: 1}), neg(at({}))))) for name in names)]
        terms = [Node("mul", (Node("sym", name=n), p)) for n, p in zip(names, parts[1:], strict=True)]
        return parts if mathsame.equal(Node("add", (parts[0], *terms)), node) else None
    except Undefined:
        return None


def _same_functions(left: list[Node], right: list[Node], names: list[str]) -> bool:
    """Do the factors span the same functions, and does the difference of the parts without constants lie there?"""
    rng = random.Random(3)
    rows: list[list[Any]] = [[] for _ in range(2 * len(left) - 1)]
    nodes = [*left[1:], *right[1:], Node("add", (left[0], neg(right[0])))]
    for _ in range(4 * POINTS):
        evaluator = Evaluator(PRECISION, {name: Fraction(rng.randrange(30, 250), 97) for name in names}, real=True)
        try:
            column = [evaluator.value(node) for node in nodes]
        except Undefined:
            continue
        for row, value in zip(rows, column, strict=True):
            row.append(value)
        if len(rows[0]) == POINTS:
            n = len(left) - 1
            return _rank(rows[:n]) == _rank(rows[n : 2 * n]) == _rank(rows) == n
    return False


def _rank(rows: list[list[Any]]) -> int:
    """The rank of a matrix of numbers to many digits."""
    rows = [list(row) for row in rows]
    rank = 0
    for column in range(len(rows[0])):
        best = max(range(rank, len(rows)), key=lambda r: abs(rows[r][column]), default=None)
        if best is None or abs(rows[best][column]) < 2.0 ** (-PRECISION // 2):
            continue
        rows[rank], rows[best] = rows[best], rows[rank]
        for r in range(rank + 1, len(rows)):
            factor = rows[r][column] / rows[rank][column]
            rows[r] = [a - factor * b for a, b in zip(rows[r], rows[rank], strict=True)]
        rank += 1
    return rank
