"""Exact arithmetic on expression trees: what is rational becomes a number, in bounded time and memory.

`fold` computes every rational part of a tree; `modular` evaluates a rational function at a point of a prime field,
where two different functions agree with a probability of about degree / 2**61.
"""

from __future__ import annotations

import math
from fractions import Fraction

from r1pipe.rewards import mathbudget
from r1pipe.rewards.mathlex import TooHard
from r1pipe.rewards.mathtree import Node, num, size, substitute

MAX_BITS = 100_000  # of a number; larger powers and factorials stay as they are written
MAX_TERMS = 1_000  # of a sum or a product that is written out
PRIME = 2305843009213693921
ROOT_OF_MINUS_ONE = 583529827753931384  # its square is PRIME - 1


class Undefined(Exception):
    """Division by zero and the like."""


class NotRational(Exception):
    """The tree holds more than the four operations and whole exponents."""


def bits(value: Fraction) -> int:
    return value.numerator.bit_length() + value.denominator.bit_length()


def fold(node: Node) -> Node:
    """The tree with its rational parts computed. Raises Undefined, TooHard."""
    if not node.args:
        return node
    if node.op in ("sum", "prod"):
        return _iterated(node)
    args = tuple(fold(a) for a in node.args)
    if node.op == "mod" and args[1].op == "num":
        return _mod(args[0], args[1])
    if all(a.op == "num" for a in args):
        mathbudget.spend(2 + (sum(bits(a.value) for a in args) // 700) ** 2)
        value = _compute(node.op, [a.value for a in args])
        if value is not None:
            return num(value)
    return Node(node.op, args, node.name)


def _compute(op: str, v: list[Fraction]) -> Fraction | None:
    """The value of an operation on numbers; None where it is not rational, or too large."""
    whole = all(x.denominator == 1 for x in v)
    match op:
        case "add":
            return sum(v, Fraction(0)) if sum(map(bits, v)) < MAX_BITS else None
        case "mul":
            return math.prod(v, start=Fraction(1)) if sum(map(bits, v)) < MAX_BITS else None
        case "inv":
            if v[0] == 0:
                raise Undefined("division by zero")
            return 1 / v[0]
        case "pow":
            return _pow(v[0], v[1])
        case "root":
            return _pow(v[0], 1 / v[1]) if v[1] != 0 else None
        case "fact" if whole and 0 <= v[0] < 7_500:
            return Fraction(math.factorial(int(v[0])))
        case "binom" if whole and v[1] >= 0 and v[0] >= 0:
            n, k = int(v[0]), int(v[1])
            small = min(k, n - k)
            return Fraction(math.comb(n, k)) if small < 0 or small * n.bit_length() < MAX_BITS else None
        case "abs":
            return abs(v[0])
        case "floor":
            return Fraction(math.floor(v[0]))
        case "ceil":
            return Fraction(math.ceil(v[0]))
        case "max":
            return max(v)
        case "min":
            return min(v)
        case "gcd" if whole:
            return Fraction(math.gcd(*map(int, v)))
        case "lcm" if whole:
            return Fraction(math.lcm(*map(int, v))) if sum(map(bits, v)) < MAX_BITS else None
    return None


def _pow(base: Fraction, exponent: Fraction) -> Fraction | None:
    if exponent.denominator == 1:
        n = int(exponent)
        if base in (0, 1):
            if base == 0 and n <= 0:
                raise Undefined("0 to a power that is not positive")
            return base
        if base == -1:
            return Fraction(1 if n % 2 == 0 else -1)
        return base**n if abs(n) * bits(base) < MAX_BITS else None
    if base < 0:
        if exponent.denominator % 2 == 0:
            return None
        root = _pow(-base, exponent)
        return None if root is None else root * (-1) ** exponent.numerator
    if exponent.denominator > 64 or bits(base) > 20_000:
        return None
    top, bottom = _root(base.numerator, exponent.denominator), _root(base.denominator, exponent.denominator)
    return _pow(Fraction(top, bottom), Fraction(exponent.numerator)) if top is not None and bottom else None


def _root(n: int, degree: int) -> int | None:
    """The whole root of n; None where there is none."""
    if n < 2:
        return n
    guess = math.isqrt(n) if degree == 2 else 1 << -(-n.bit_length() // degree)
    while degree > 2:  # Newton's method, from above
        better = ((degree - 1) * guess + n // guess ** (degree - 1)) // degree
        if better >= guess:
            break
        guess = better
    return guess if guess**degree == n else None


def _mod(node: Node, modulus: Node) -> Node:
    m = modulus.value
    if node.op == "num":
        return num(node.value % m) if m else Node("mod", (node, modulus))
    if m.denominator == 1 and m > 0 and bits(m) < 2_000:
        try:
            return num(_residue(node, int(m)))
        except NotRational:
            pass
    return Node("mod", (node, modulus))


def _residue(node: Node, m: int) -> int:
    """An expression of whole numbers, whatever its size, modulo m."""
    match node.op:
        case "num" if node.value.denominator == 1:
            return int(node.value) % m
        case "add":
            return sum(_residue(a, m) for a in node.args) % m
        case "mul":
            return math.prod(_residue(a, m) for a in node.args) % m
        case "pow" if node.args[1].op == "num" and node.args[1].value >= 0 and node.args[1].value.denominator == 1:
            exponent = int(node.args[1].value)
            mathbudget.spend(exponent.bit_length() * (1 + m.bit_length() // 30) // 3)
            return pow(_residue(node.args[0], m), exponent, m)
    raise NotRational(node.op)


def _iterated(node: Node) -> Node:
    body, low, high = node.args[0], fold(node.args[1]), fold(node.args[2])
    if not (low.op == high.op == "num" and low.value.denominator == high.value.denominator == 1):
        return Node(node.op, (body, low, high), node.name)
    terms = int(high.value - low.value) + 1
    if terms > MAX_TERMS or max(terms, 0) * size(body) > 20_000:
        raise TooHard("a long sum")
    mathbudget.spend(20 * max(terms, 0) * size(body))
    values = [fold(substitute(body, node.name, num(low.value + i))) for i in range(max(terms, 0))]
    if not values:
        return num(0 if node.op == "sum" else 1)
    return fold(Node("add" if node.op == "sum" else "mul", tuple(values)))


def modular(node: Node, at: dict[str, int]) -> int:
    """The value of a folded tree in the prime field. Raises NotRational, Undefined."""
    mathbudget.spend(1)
    match node.op:
        case "num":
            return node.value.numerator % PRIME * _inverse(node.value.denominator % PRIME) % PRIME
        case "sym":
            return at[node.name]
        case "i":
            return ROOT_OF_MINUS_ONE
        case "add":
            return sum(modular(a, at) for a in node.args) % PRIME
        case "mul":
            product = 1
            for a in node.args:
                product = product * modular(a, at) % PRIME
            return product
        case "inv":
            return _inverse(modular(node.args[0], at))
        case "pow" if node.args[1].op == "num" and node.args[1].value.denominator == 1:
            base, exponent = modular(node.args[0], at), int(node.args[1].value)
            if base == 0 and exponent <= 0:
                raise Undefined("0 to a power that is not positive")
            mathbudget.spend(10)
            return pow(base, exponent % (PRIME - 1), PRIME) if base else 0
    raise NotRational(node.op)


def _inverse(value: int) -> int:
    if value == 0:
        raise Undefined("division by zero")
    return pow(value, -1, PRIME) if value != 1 else 1
