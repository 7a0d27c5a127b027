r"""Expressions as trees: nodes, and the few that are built from others."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from r1pipe.rewards.mathlex import Unreadable


@dataclass(frozen=True, slots=True)
class Node:
    """`op`: num (`value`), sym (`name`), pi, e, i, inf, add, mul, inv, pow, root (of, degree), fact, mod, deg, pm (the
    argument, or its negative; `name` pm or mp), sum and prod (name: body, low, high), else a function."""

    op: str
    args: tuple[Node, ...] = ()
    name: str = ""
    value: Fraction = Fraction(0)


def num(value: int | Fraction) -> Node:
    return Node("num", value=Fraction(value))


def neg(node: Node) -> Node:
    return num(-node.value) if node.op == "num" else Node("mul", (num(-1), node))


PI, EULER, IMAGINARY, INF = Node("pi"), Node("e"), Node("i"), Node("inf")
MINUS_INF = neg(INF)
_RECIPROCAL = {"cot": "tan", "sec": "cos", "csc": "sin"}


def substitute(node: Node, name: str, by: Node) -> Node:
    if node.op == "sym":
        return by if node.name == name else node
    if not node.args or (node.op in ("sum", "prod") and node.name == name):
        return node
    return Node(node.op, tuple(substitute(a, name, by) for a in node.args), node.name)


def size(node: Node) -> int:
    return 1 + sum(map(size, node.args))


def symbols(node: Node) -> frozenset[str]:
    """The free variables of a tree."""
    if node.op == "sym":
        return frozenset({node.name})
    found = frozenset[str]().union(*map(symbols, node.args))
    return found - {node.name} if node.op in ("sum", "prod") else found


def contains(node: Node, *ops: str) -> bool:
    return node.op in ops or any(contains(a, *ops) for a in node.args)


def determinant(rows: list[list[Node]]) -> Node:
    if len(rows) == 1:
        return rows[0][0]
    terms = []
    for column, entry in enumerate(rows[0]):
        minor = determinant([row[:column] + row[column + 1 :] for row in rows[1:]])
        terms.append(Node("mul", (num((-1) ** column), entry, minor)))
    return Node("add", tuple(terms))


def product(factors: list[Node]) -> Node:
    return factors[0] if len(factors) == 1 else Node("mul", tuple(factors))


def function(name: str, args: list[Node]) -> Node:
    if name in _RECIPROCAL:
        return Node("inv", (function(_RECIPROCAL[name], args),))
    if name == "exp" and len(args) == 1:
        return Node("pow", (EULER, args[0]))
    if name == "lg":
        name, args = "log", [*args, num(10)]
    if name == "arccot" and len(args) == 1:
        return Node("add", (Node("mul", (PI, num(Fraction(1, 2)))), neg(Node("arctan", tuple(args)))))
    several = name in ("max", "min", "gcd", "lcm", "binom")
    if (len(args) > 2 and not several) or (len(args) == 2 and not (several or name == "log")):
        raise Unreadable(f"{name} of {len(args)}")
    return Node(name, tuple(args))
