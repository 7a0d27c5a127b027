"""Equations and inequalities: equal up to a constant factor, which must be positive for inequalities."""

from __future__ import annotations

from fractions import Fraction

from r1pipe.rewards import mathsame
from r1pipe.rewards.mathanswer import Relation
from r1pipe.rewards.mathexact import Undefined
from r1pipe.rewards.mathtree import Node, neg, num, substitute, symbols


def equal(gold: Relation, answer: Relation) -> bool:
    """Equal up to a constant factor (a positive one for inequalities), and up to denominators."""
    op, mine = _one_sided(gold)
    other_op, theirs = _one_sided(answer)
    if op != other_op:
        return False
    if _proportional(mine, theirs, positive=op != "=" and op != "!="):
        return True
    if op != "=":
        return False
    return _proportional(_together(mine)[0], _together(theirs)[0], positive=False)


def _one_sided(relation: Relation) -> tuple[str, Node]:
    """`f = 0`, `f < 0` or `f <= 0`."""
    left, right, op = relation.left, relation.right, relation.op
    if op in (">", ">="):
        left, right, op = right, left, op.replace(">", "<")
    return op, Node("add", (left, neg(right)))


def _proportional(f: Node, g: Node, *, positive: bool) -> bool:
    names = sorted(symbols(f))
    if names != sorted(symbols(g)) or not names:
        return mathsame.equal(f, g)
    for shift in range(5):
        at = {name: num(Fraction(7 * i + 3 * shift + 5, 4)) for i, name in enumerate(names)}
        value, other = f, g
        for name, number in at.items():
            value, other = substitute(value, name, number), substitute(other, name, number)
        try:
            signs = mathsame.sign(value), mathsame.sign(other)
        except Undefined:
            continue
        if 0 in signs:
            if signs != (0, 0):
                return False
            continue
        if positive and signs[0] != signs[1]:
            return False
        return mathsame.equal(Node("mul", (f, other)), Node("mul", (g, value)))
    raise Undefined("no point where both sides are defined")


def _together(node: Node) -> tuple[Node, Node]:
    """Numerator and denominator of a sum of fractions, not reduced."""
    one = num(1)
    if node.op == "inv":
        top, bottom = _together(node.args[0])
        return bottom, top
    if node.op == "mul":
        parts = [_together(a) for a in node.args]
        return Node("mul", tuple(t for t, _ in parts)), Node("mul", tuple(b for _, b in parts))
    if node.op == "add":
        parts = [_together(a) for a in node.args]
        bottoms = list(dict.fromkeys(b for _, b in parts if not _constant(b)))
        terms = []
        for top, bottom in parts:
            others = [b for b in bottoms if b != bottom]
            factor = [Node("inv", (bottom,))] if _constant(bottom) else []
            terms.append(Node("mul", (top, *factor, *others)))
        return Node("add", tuple(terms)), Node("mul", (one, *bottoms))
    return node, one


def _constant(node: Node) -> bool:
    return not symbols(node)
