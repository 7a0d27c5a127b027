r"""Values that repeat: `x = \frac{\pi}{4} + k\pi, k \in \mathbb{Z}`. The name of the whole number does not matter,
nor how the values are dealt out: `k\pi` is `2k\pi` and `\pi + 2k\pi`."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm

from r1pipe.rewards import mathsame
from r1pipe.rewards.mathexact import fold
from r1pipe.rewards.mathfloat import Evaluator
from r1pipe.rewards.mathlex import TooHard
from r1pipe.rewards.mathtree import Node, neg, num, substitute, symbols

MAX_CLASSES = 48


def same(gold: Sequence[Node], name: str, answer: Sequence[Node], other: str) -> bool:
    """Are two unions of progressions over all whole numbers equal? Others than progressions must be equal one by one,
    up to the name."""
    left, right = [_progression(e, name) for e in gold], [_progression(e, other) for e in answer]
    if any(p is None for p in (*left, *right)):
        renamed = [substitute(e, other, Node("sym", name=name)) for e in answer]
        return len(gold) == len(renamed) and all(any(mathsame.equal(g, a) for a in renamed) for g in gold)
    return _union([p for p in left if p], [p for p in right if p])


def _progression(node: Node, name: str) -> tuple[Node, Node] | None:
    """Start and step of what is linear in the name, and constant else."""
    if symbols(node) != {name}:
        return None
    start = fold(substitute(node, name, num(0)))
    step = fold(Node("add", (substitute(node, name, num(1)), neg(start))))
    linear = Node("add", (start, Node("mul", (step, Node("sym", name=name)))))
    return (start, step) if mathsame.equal(node, linear) and mathsame.sign(step) else None


def _union(left: list[tuple[Node, Node]], right: list[tuple[Node, Node]]) -> bool:
    unit = left[0][1]
    steps = [_multiple(step, unit) for _, step in (*left, *right)]
    if any(s is None for s in steps):
        return False
    ratios = [abs(s) for s in steps if s is not None]
    period = Fraction(lcm(*(r.numerator for r in ratios)), 1)
    if sum(period / r for r in ratios) > MAX_CLASSES:
        raise TooHard("many classes")
    whole = Node("mul", (num(period), unit))
    classes = [
        [Node("add", (start, Node("mul", (num(ratio * k), unit)))) for k in range(int(period / ratio))]
        for (start, _), ratio in zip((*left, *right), ratios, strict=True)
    ]
    mine = [c for group in classes[: len(left)] for c in group]
    theirs = [c for group in classes[len(left) :] for c in group]
    return all(
        any(_congruent(a, b, whole) for b in others) for one, others in ((mine, theirs), (theirs, mine)) for a in one
    )


def _multiple(value: Node, unit: Node) -> Fraction | None:
    """`value / unit` where that is a simple fraction."""
    evaluator = Evaluator(128)
    ratio = evaluator.value(fold(value)) / evaluator.value(fold(unit))
    if ratio.imag != 0 or abs(ratio) > 1e6:
        return None
    guess = Fraction(float(ratio.real)).limit_denominator(720)
    return guess if guess and mathsame.equal(value, Node("mul", (num(guess), unit))) else None


def _congruent(a: Node, b: Node, period: Node) -> bool:
    difference = fold(Node("add", (a, neg(b))))
    evaluator = Evaluator(128)
    turns = evaluator.value(difference) / evaluator.value(fold(period))
    if turns.imag != 0 or abs(turns) > 1e9:
        return False
    return mathsame.equal(difference, Node("mul", (num(round(float(turns.real))), period)))
