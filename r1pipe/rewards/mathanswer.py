"""What a whole answer can be: a value, a list, a set, a point, an interval, a matrix, an equation. `mathread` reads
it from text, `mathcompare` says whether two are equal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from r1pipe.rewards import mathsets
from r1pipe.rewards.mathlex import Unreadable
from r1pipe.rewards.mathsets import Reals
from r1pipe.rewards.mathtree import Node, contains, symbols


@dataclass(frozen=True, slots=True)
class Value:
    expr: Node
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Items:
    """`list`: bare, in no order; `set`; `tuple` (round or angle brackets) and `square` (brackets): ordered."""

    kind: Literal["list", "set", "tuple", "square"]
    items: tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class Dots:
    """The items that a list leaves out."""


@dataclass(frozen=True, slots=True)
class Matrix:
    rows: tuple[tuple[Answer, ...], ...]


@dataclass(frozen=True, slots=True)
class Relation:
    """An equation, or an inequality that has no simple solution."""

    left: Node
    op: str
    right: Node


@dataclass(frozen=True, slots=True)
class Named:
    """`x = 5`, `f(x) = 2x`: `relation` where the name is an expression too."""

    name: str
    value: Answer
    relation: Relation | None = None


@dataclass(frozen=True, slots=True)
class Periodic:
    """`k\\pi, k \\in \\mathbb{Z}`: expressions for every whole number `name`."""

    name: str
    exprs: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Piecewise:
    """Values and their conditions; None: otherwise."""

    rows: tuple[tuple[Answer, Answer | None], ...]


@dataclass(frozen=True, slots=True)
class System:
    """`x = 1, y = 2`: values by name, in the order given."""

    values: tuple[tuple[str, Answer], ...]


Answer = Value | Items | Dots | Matrix | Relation | Named | Periodic | Piecewise | System | Reals


def expression(answer: Answer) -> Node:
    if not isinstance(answer, Value) or answer.unit:
        raise Unreadable("no expression")
    return answer.expr


def expressions(answer: Answer) -> tuple[Node, ...]:
    """One or several expressions, named or not. Raises Unreadable for others."""
    if isinstance(answer, Named):
        answer = answer.value
    if isinstance(answer, Items) and answer.kind in ("list", "set"):
        return tuple(expression(i.value if isinstance(i, Named) else i) for i in answer.items)
    return (expression(answer),)


def spread(items: Iterable[Answer]) -> list[Answer]:
    """`1, \\pm 2`: a list within a list is part of it."""
    found: list[Answer] = []
    for item in items:
        found.extend(item.items if isinstance(item, Items) and item.kind == "list" else [item])
    return found


def as_reals(answer: Answer) -> Reals:
    """Raises Unreadable where an answer is no set of reals."""
    if isinstance(answer, Named):
        answer = answer.value
    if isinstance(answer, Value) and not answer.unit and not contains(answer.expr, "inf"):
        return mathsets.point(answer.expr)
    if isinstance(answer, Items):
        if answer.kind in ("set", "list"):
            return mathsets.union(*map(as_reals, answer.items)) if answer.items else mathsets.NOTHING
        ends = [i.expr for i in answer.items if isinstance(i, Value) and not i.unit]
        if len(answer.items) == len(ends) == 2:
            return mathsets.interval(ends[0], ends[1], (answer.kind == "square",) * 2)
    if isinstance(answer, Reals):
        return answer
    raise Unreadable("no set of reals")


def periodic(answer: Answer) -> Periodic:
    """An answer that leaves `k \\in \\mathbb{Z}` out. Raises Unreadable where it is none."""
    if isinstance(answer, Periodic):
        return answer
    exprs = expressions(answer)
    names = frozenset[str]().union(*map(symbols, exprs))
    if len(names) != 1 or not names <= {"k", "n", "m"}:
        raise Unreadable("no periodic values")
    return Periodic(next(iter(names)), exprs)
