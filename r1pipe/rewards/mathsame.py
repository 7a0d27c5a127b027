"""Are two expressions equal? Exactly where they are rational (numbers as fractions, functions at random points of a
prime field); else by their values to many digits: constants as such, functions at random points of the reals.

The precision grows with the numbers in the two expressions, so that tiny differences show (1/1500! and 1/1501!, sqrt 2
and sqrt 2 + 10^-200). Functions are equal where they agree wherever both are real, at every step: `ln x^2` and
`2 ln x` are, `sqrt(x^2)` and `x` are not. `log` without a base is to base 10 or natural, the same for both. Degrees
are radians, or the sign may be dropped (90 = 90°), never within a trigonometric function.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from fractions import Fraction

from r1pipe.rewards import mathexact
from r1pipe.rewards.mathexact import NotRational, Undefined, fold
from r1pipe.rewards.mathfloat import Evaluator
from r1pipe.rewards.mathlex import TooHard
from r1pipe.rewards.mathtree import INF, MINUS_INF, PI, Node, contains, neg, num, symbols

FIRST_PRECISION = 64
MAX_BITS = 20_000  # of the numbers in two expressions that are compared by their values
POINTS = 6  # where functions must agree
TRIES = 60

_TAKES_ANGLE = frozenset({"sin", "cos", "tan"})
_WHOLE = frozenset({"fact", "binom", "mod"})  # their variables are whole numbers


def equal(a: Node, b: Node) -> bool:
    """Raises TooHard, Undefined, Unreadable."""
    if a == b:
        return True
    return any(_equal(fold(left), fold(right)) for left, right in _readings(a, b))


def _readings(a: Node, b: Node) -> Iterator[tuple[Node, Node]]:
    """As radians; with the degree sign dropped where only one side has it."""
    a, b = _angles(a), _angles(b)
    yield a, b
    if contains(a, "deg") != contains(b, "deg"):
        yield _dropped(a), _dropped(b)


def _angles(node: Node) -> Node:
    """Degrees within trigonometric functions become radians."""
    if not contains(node, "deg"):
        return node
    args = tuple(_angles(a) for a in node.args)
    return Node(node.op, tuple(map(_radians, args)) if node.op in _TAKES_ANGLE else args, node.name, node.value)


def _radians(node: Node) -> Node:
    if node.op == "deg":
        return Node("mul", (node.args[0], PI, num(Fraction(1, 180))))
    return Node(node.op, tuple(map(_radians, node.args)), node.name, node.value)


def _dropped(node: Node) -> Node:
    return node.args[0] if node.op == "deg" else Node(node.op, tuple(map(_dropped, node.args)), node.name, node.value)


def _equal(a: Node, b: Node) -> bool:
    if a == b:
        return True
    if contains(a, "inf") or contains(b, "inf"):
        return False
    if a.op == b.op == "num":
        return a.value == b.value
    names = sorted(symbols(a) | symbols(b))
    if names:
        try:
            return _same_rational(a, b, names)
        except NotRational:
            return _same_function(a, b, names)
    bases = (10, None) if _bare_log(a) or _bare_log(b) else (None,)
    return any(_same_at({}, a, b, base) for base in bases)


def _bare_log(node: Node) -> bool:
    return (node.op == "log" and len(node.args) == 1) or any(map(_bare_log, node.args))


def _same_rational(a: Node, b: Node, names: list[str]) -> bool:
    rng = random.Random(1)
    agreed = 0
    for _ in range(TRIES):
        at = {name: rng.randrange(2, mathexact.PRIME) for name in names}
        try:
            if mathexact.modular(a, at) != mathexact.modular(b, at):
                return False
        except Undefined:
            continue
        agreed += 1
        if agreed == 2:
            return True
    raise Undefined("no point where both are defined")


def _same_function(a: Node, b: Node, names: list[str]) -> bool:
    bases = (10, None) if _bare_log(a) or _bare_log(b) else (None,)
    real = not (contains(a, "i") or contains(b, "i"))
    whole = _whole(a) | _whole(b)
    for base in bases:
        agreed = _agreed(a, b, names, whole, base, real)
        if agreed == 0 and real:  # nowhere real, such as arcsin(x - 50)
            agreed = _agreed(a, b, names, whole, base, False)
        if agreed == 0:
            raise Undefined("no point where both are defined")
        if agreed > 2:
            return True
    return False


def _agreed(a: Node, b: Node, names: list[str], whole: frozenset[str], base: int | None, real: bool) -> int:
    """At how many points two functions agree; -1 where they differ anywhere."""
    agreed = 0
    large: TooHard | None = None
    for at in _points(names, whole):
        try:
            if not _same_at(at, a, b, base, real=real):
                return -1
        except Undefined:
            continue
        except TooHard as error:
            large = error
            continue
        agreed += 1
        if agreed == POINTS:
            break
    if agreed == 0 and large is not None:
        raise large
    return agreed


def _points(names: list[str], whole: frozenset[str]) -> Iterator[dict[str, Fraction]]:
    """Points of all signs, near 1 in size; then others, for functions that are real elsewhere only."""
    rng = random.Random(2)
    signs = itertools.cycle(itertools.product((1, -1), repeat=min(len(names), 3)))
    for attempt in range(TRIES):
        pattern, scale = next(signs), _SCALES[attempt % len(_SCALES)] if attempt >= 2 * POINTS else 1
        at = {}
        for index, name in enumerate(names):
            value = Fraction(rng.randrange(30, 250), 97) * scale * pattern[index % len(pattern)]
            at[name] = Fraction(rng.randrange(2, 12)) if name in whole else value
        yield at


_SCALES = (1, 6, Fraction(1, 7), 40, 1)


def _whole(node: Node) -> frozenset[str]:
    """The variables that stand for whole numbers: in `n!`, `(-1)^n`, `k mod 3`."""
    found = frozenset[str]().union(*map(_whole, node.args))
    if node.op in _WHOLE or (node.op in ("sum", "prod")):
        found |= symbols(node)
    elif node.op == "pow" and node.args[0].op == "num" and node.args[0].value < 0:
        found |= symbols(node.args[1])
    return found


def _same_at(at: dict[str, Fraction], a: Node, b: Node, base: int | None, *, real: bool = False) -> bool:
    """Do two values agree, to a precision at which they could not by chance?"""
    first = Evaluator(FIRST_PRECISION, at, log_base=base, real=real)
    difference = first.value(a) - first.value(b)
    if difference != 0 and first.mp.mag(difference) > first.magnitude - FIRST_PRECISION // 2:
        return False
    if (size := _bits(a) + _bits(b)) > MAX_BITS:
        raise TooHard("numbers too large to be compared by their digits")
    slack = 2 * first.magnitude + size
    second = Evaluator(2 * (FIRST_PRECISION + slack), at, log_base=base, real=real)
    difference = second.value(a) - second.value(b)
    return difference == 0 or bool(second.mp.mag(difference) < -FIRST_PRECISION - slack)


def close(a: Node, b: Node) -> bool:
    """Do two constants differ by less than 1 %?"""
    if symbols(a) or symbols(b):
        return False
    evaluator = Evaluator(FIRST_PRECISION)
    left, right = evaluator.value(fold(_angles(a))), evaluator.value(fold(_angles(b)))
    return bool(abs(left - right) <= abs(left) / 100)


def _bits(node: Node) -> int:
    return mathexact.bits(node.value) if node.op == "num" else sum(map(_bits, node.args))


def sign(node: Node) -> int:
    """Of a real constant: -1, 0, 1. Raises Undefined where it is not real."""
    node = fold(node)
    if node in (INF, MINUS_INF):
        return 1 if node == INF else -1
    if node.op == "num":
        return (node.value > 0) - (node.value < 0)
    if symbols(node):
        raise Undefined("not a constant")
    if equal(node, num(0)):
        return 0
    value = Evaluator(FIRST_PRECISION * 4).value(node)
    if value.imag != 0:
        raise Undefined("not real")
    return 1 if value.real > 0 else -1


def compare(a: Node, b: Node) -> int:
    """-1, 0, 1 for real constants and infinities."""
    if a == b or equal(a, b):
        return 0
    for node, result in ((a, 1), (b, -1)):
        if node in (INF, MINUS_INF):
            return result if node == INF else -result
    return sign(Node("add", (a, neg(b))))
