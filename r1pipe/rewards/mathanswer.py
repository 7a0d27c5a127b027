r"""What a whole answer is: a value, a list, a set, a point, an interval, a matrix, an equation.

`read` builds it from text; `mathcompare` says whether two are equal. Decided here: `(a, b)` is a tuple until it meets a
set of reals, `1,234` is a number at the top and two within brackets, `x = 5` is 5 with a name, `\pm 5` is a list, an
inequality in one variable is the set of its solutions, joined by "or" (union) or "and" (intersection).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from r1pipe.rewards import mathlex, mathsame, mathsets, mathtree, mathunits
from r1pipe.rewards.mathexact import Undefined, contains
from r1pipe.rewards.mathlex import Token, TooHard, Unreadable
from r1pipe.rewards.mathsets import ALL, Reals
from r1pipe.rewards.mathtree import INF, MINUS_INF, Node, neg

MAX_ITEMS = 200
MAX_SIGNS = 3  # of ± in an expression

_OPENING, _CLOSING = frozenset({"(", "[", "{", r"\{", "langle"}), frozenset({")", "]", "}", r"\}", "rangle"})
_RELATIONS = frozenset({"=", "~", "<", ">", "<=", ">=", "!=", "in", "==", "->", "=>"})
_UNIT_OPERATORS = frozenset({"/", "^", "*", "-", "{", "}", "(", ")"})
_DOTS = frozenset({"ldots", "cdots", "dots", "dotsc", "dotsb"})
_MATRICES = frozenset({"matrix", "pmatrix", "bmatrix", "Bmatrix", "smallmatrix", "array"})
_NUMBER_SETS = {"R": ALL}


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
class System:
    """`x = 1, y = 2`: values by name, in the order given."""

    values: tuple[tuple[str, Answer], ...]


Answer = Value | Items | Dots | Matrix | Relation | Named | System | Reals


@functools.lru_cache(maxsize=8192)
def read(text: str) -> Answer:
    """Raises Unreadable, TooHard, Undefined."""
    tokens = mathtree.inner(mathlex.tokens(text))
    if not tokens:
        raise Unreadable("nothing")
    if tokens[0].text == "]" or tokens[-1].text == "[":  # ]2, 5[
        tokens = _french(tokens)
    return _answer(tokens)


def _french(tokens: Sequence[Token]) -> Sequence[Token]:
    ends = {"]": "(", "[": "["}, {"[": ")", "]": "]"}
    if tokens[0].text not in ends[0] or tokens[-1].text not in ends[1]:
        return tokens
    return [Token("op", ends[0][tokens[0].text]), *tokens[1:-1], Token("op", ends[1][tokens[-1].text])]


def _split(tokens: Sequence[Token], at: frozenset[str]) -> tuple[list[Sequence[Token]], list[str]]:
    """The parts between separators outside of brackets, and the separators."""
    parts: list[Sequence[Token]] = []
    found: list[str] = []
    depth = start = 0
    for index, token in enumerate(tokens):
        if token.kind != "op":
            continue
        if token.text in _OPENING or token.text.startswith("begin "):
            depth += 1
        elif token.text in _CLOSING or token.text.startswith("end "):
            depth -= 1
        elif depth == 0 and token.text in at:
            parts.append(tokens[start:index])
            found.append(token.text)
            start = index + 1
    parts.append(tokens[start:])
    return parts, found


_SEPARATORS = frozenset({",", ";", "or", "and"})


def _parts(tokens: Sequence[Token]) -> tuple[list[Sequence[Token]], list[str]]:
    """The items of a list: `1, 2, and 3` has three."""
    parts, separators = _split(tokens, _SEPARATORS)
    kept: list[Sequence[Token]] = []
    joined: list[str] = []
    for index, part in enumerate(parts):
        if not part:
            if index == 0 or (index < len(parts) - 1 and separators[index] in ",;" and separators[index - 1] in ",;"):
                raise Unreadable("an empty item")
            if joined and index < len(separators):
                joined[-1] = separators[index]
            continue
        if len(kept) > len(joined):
            joined.append(separators[index - 1])
        kept.append(part)
    if len(kept) > MAX_ITEMS:
        raise TooHard("a long list")
    return kept, joined[: len(kept) - 1]


def _answer(tokens: Sequence[Token]) -> Answer:
    while tokens and tokens[-1].kind == "op" and tokens[-1].text in (".", ",", ";", ":"):
        tokens = tokens[:-1]
    parts, separators = _parts(tokens)
    if not parts:
        raise Unreadable("nothing")
    return _item(parts[0]) if len(parts) == 1 else _listed([_item(p) for p in parts], separators)


def _listed(items: list[Answer], separators: list[str]) -> Answer:
    """Several items in a row."""
    first = items[0]
    if isinstance(first, Named) and not any(isinstance(i, Named | Reals | Relation) for i in items[1:]):
        values = (first.value, *items[1:])
        return Named(first.name, Items("list", tuple(_spread(values))))  # n = 2, 3, 4
    named = [i for i in items if isinstance(i, Named)]
    if len(named) == len(items):
        names = [n.name for n in named]
        if len(set(names)) == 1:
            return Named(names[0], Items("list", tuple(_spread(n.value for n in named))))
        if len(set(names)) == len(names):
            return System(tuple((n.name, n.value) for n in named))
    if all(isinstance(i, Reals) for i in items):
        sets = [i for i in items if isinstance(i, Reals)]
        if set(separators) == {"or"}:
            return mathsets.union(*sets)
        if any(s.bounded for s in sets) and "and" not in separators:
            return mathsets.union(*sets)
        both = mathsets.intersection(*sets)
        return mathsets.union(*sets) if mathsets.empty(both) else both
    return Items("list", tuple(_spread(items)))


def _spread(items: Iterable[Answer]) -> list[Answer]:
    """`1, \\pm 2`: a list within a list is part of it."""
    found: list[Answer] = []
    for item in items:
        found.extend(item.items if isinstance(item, Items) and item.kind == "list" else [item])
    return found


def _item(tokens: Sequence[Token]) -> Answer:
    parts, relations = _split(tokens, _RELATIONS)
    if not relations:
        return _plain(tokens)
    if not all(parts):
        if len(parts) == 2 and parts[1] and relations[0] in ("=", "~"):  # `= 5`
            return _item(parts[1])
        raise Unreadable("half a relation")
    if relations == ["in"]:
        found = _plain(parts[1])
        return Items("set", found.items) if isinstance(found, Items) and found.kind == "set" else found
    if set(relations) <= {"=", "~"}:
        return _equation(parts, relations)
    return _inequality(parts, relations)


def _equation(parts: list[Sequence[Token]], relations: list[str]) -> Answer:
    name = _name(parts[0])
    if name is None and parts[0][0].text == "(" and len(parts) == 2 and (system := _coordinates(*parts)):
        return system
    values = [_plain(p) for p in (parts[1:] if name is not None else parts)]
    if name is None and len(values) == 2 and relations == ["="]:
        if isinstance(values[0], Value) and (reverse := _name(parts[1])):  # 5 = x
            return Named(reverse, values[0], _relation(parts))
        if not _agree(values[0], values[1], "="):
            left, right = (_expression(v) for v in values)
            return Relation(left, "=", right)
        return values[1]
    # x = 2 + 3 = 5, sqrt 2 ~ 1.41: all the same, or no answer at all
    signs = relations[1:] if name is not None else relations
    for before, after, sign in zip(values, values[1:], signs, strict=False):
        if not _agree(before, after, sign):
            raise Unreadable("an equation that does not hold")
    exact = relations.index("~") if "~" in relations else len(relations)
    value = values[max(0, exact - (name is not None))]
    return value if name is None else Named(name, value, _relation(parts) if len(parts) == 2 else None)


def _agree(before: Answer, after: Answer, sign: str) -> bool:
    """Do two sides of a chain hold the same value (about the same behind ~)?"""
    if not (isinstance(before, Value) and isinstance(after, Value)):
        return before == after
    try:
        if sign == "=" or mathsame.equal(before.expr, after.expr):
            return mathsame.equal(before.expr, after.expr)
        return mathsame.close(before.expr, after.expr)
    except Undefined:
        return False


def _relation(parts: list[Sequence[Token]]) -> Relation | None:
    try:
        left, right = (_expression(_plain(p)) for p in parts)
    except Unreadable:
        return None
    return Relation(left, "=", right)


def _expression(answer: Answer) -> Node:
    if not isinstance(answer, Value) or answer.unit:
        raise Unreadable("no expression")
    return answer.expr


def _coordinates(left: Sequence[Token], right: Sequence[Token]) -> System | None:
    """`(x, y) = (1, 2)`."""
    names = [_name(p) for p in _parts(left[1:-1])[0]]
    point = _plain(right)
    if None in names or not isinstance(point, Items) or len(point.items) != len(names) or len(names) < 2:
        return None
    return System(tuple((str(n), v) for n, v in zip(names, point.items, strict=True)))


def _name(tokens: Sequence[Token]) -> str | None:
    r"""What can name a value: `x`, `a_n`, `f(x)`, `AB`, `\angle ABC`, `\overline{AB}`, `\sin A`, `\text{area}`."""
    texts = [t.text for t in tokens]
    kinds = [t.kind for t in tokens]
    if all(k == "text" for k in kinds):
        return " ".join(texts)
    if kinds[0] == "cmd" and texts[0] in ("angle", "triangle", "overline", "vec", "bar", "hat"):
        return " ".join(texts)
    if len(texts) > 2 and texts[0] == texts[-1] == "|" and all(k == "name" for k in kinds[1:-1]):  # |S|, |AB|
        return "".join(texts)
    if kinds[0] == "fn" and len(tokens) < 4 and all(k == "name" for k in kinds[1:]):
        return " ".join(texts)
    if kinds[0] != "name" or texts[0] in ("e", "i"):
        return None
    rest = texts[1:]
    if not rest:
        return texts[0]
    if rest[0] in ("_", "'", "^"):
        return "".join(texts) if rest[0] != "^" or rest[1:4] == ["{", "-", "1"] else None
    if rest[0] == "(" and rest[-1] == ")" and len(texts[0]) == 1 and "," not in rest:
        return "".join(texts)
    if all(k == "name" and t.isupper() and len(t) == 1 for k, t in zip(kinds, texts, strict=True)):
        return "".join(texts)
    return None


def _inequality(parts: list[Sequence[Token]], relations: list[str]) -> Answer:
    if set(relations) - {"<", ">", "<=", ">=", "!="}:
        raise Unreadable(f"the relation {relations}")
    sides = [_expression(_plain(p)) for p in parts]
    if len(relations) == 1:
        try:
            return mathsets.solve(sides[0], relations[0], sides[1])[1]
        except Unreadable:
            return Relation(sides[0], relations[0], sides[1])
    solved = [mathsets.solve(a, op, b) for a, op, b in zip(sides, relations, sides[1:], strict=False)]
    if len({name for name, _ in solved}) > 1:
        raise Unreadable("several variables in a chain")
    return mathsets.intersection(*(s for _, s in solved))


_SET_OPERATORS = frozenset({"cup", "cap", "\\"})


def _plain(tokens: Sequence[Token]) -> Answer:
    """An item without a relation outside of brackets."""
    if not tokens:
        raise Unreadable("nothing")
    parts, operators = _split(tokens, _SET_OPERATORS)
    if operators:
        return _set_algebra(parts, operators)
    head, tail = tokens[0], tokens[-1]
    if head.kind == "cmd" and len(tokens) == 1:
        if head.text in ("emptyset", "varnothing"):
            return Items("set", ())
        if head.text in _DOTS:
            return Dots()
    if [t.text for t in tokens[:2]] == ["mathbb", "{"]:
        return _number_set(tokens)
    if head.text in _OPENING and head.text != "{" and _closes(tokens) == len(tokens) - 1:
        return _bracketed(tokens[1:-1], head.text, tail.text)
    if head.text.startswith("begin ") and head.text[6:] in _MATRICES and tail.text == "end " + head.text[6:]:
        return _matrix(tokens[1:-1])
    if head.text == "begin cases":
        return _cases(tokens[1:])
    return _value(tokens)


def _closes(tokens: Sequence[Token]) -> int:
    """Where the bracket that stands first is closed."""
    depth = 0
    for index, token in enumerate(tokens):
        if token.kind == "op":
            depth += (token.text in _OPENING) - (token.text in _CLOSING)
            if depth == 0:
                return index
    raise Unreadable("an open bracket")


def _number_set(tokens: Sequence[Token]) -> Answer:
    texts = [t.text for t in tokens]
    if texts == ["mathbb", "{", "R", "}"]:
        return ALL
    raise Unreadable("".join(texts))


def _bracketed(tokens: Sequence[Token], opening: str, closing: str) -> Answer:
    if opening == r"\{" and closing == r"\}":
        return _braced(tokens)
    if not tokens:
        raise Unreadable("empty brackets")
    parts, separators = _parts(tokens)
    if len(parts) == 1:
        return _answer(tokens) if opening in "([" and _MATCHING[opening] == closing else _value(tokens)
    if set(separators) - {",", ";"}:
        return _answer(tokens)
    items = tuple(_item(p) for p in parts)
    if len(items) == 2 and opening in "([" and closing in ")]":
        ends = [i.expr for i in items if isinstance(i, Value) and not i.unit]
        infinite = len(ends) == 2 and bool({INF, MINUS_INF} & set(ends))
        if len(ends) == 2 and (infinite or _MATCHING[opening] != closing):
            return mathsets.interval(ends[0], ends[1], (opening == "[", closing == "]"))
    kind: Literal["tuple", "square"] = "square" if opening == "[" else "tuple"
    if any(isinstance(i, Items) and i.kind == "list" for i in items):  # (\\pm 1, 2)
        choices = [i.items if isinstance(i, Items) and i.kind == "list" else (i,) for i in items]
        return Items("list", tuple(Items(kind, c) for c in itertools.islice(itertools.product(*choices), MAX_ITEMS)))
    return Items(kind, items)


_MATCHING = {"(": ")", "[": "]"}


def _braced(tokens: Sequence[Token]) -> Answer:
    if not tokens:
        return Items("set", ())
    parts, bars = _split(tokens, frozenset({"|", ":"}))
    if len(parts) == 2:  # { x | x > 2 }, { x in R : x > 2 }
        left, relations = _split(parts[0], _RELATIONS)
        if _name(left[0]) is None:
            raise Unreadable("a set of expressions")
        found = _as_reals(_answer(parts[1]))
        if relations == ["in"]:
            found = mathsets.intersection(_as_reals(_plain(left[1])), found)
        return found
    return Items("set", tuple(_spread([_item(p) for p in _parts(tokens)[0]])))


def _as_reals(answer: Answer) -> Reals:
    """Raises Unreadable where an answer is no set of reals."""
    if isinstance(answer, Named):
        answer = answer.value
    if isinstance(answer, Value) and not answer.unit:
        return mathsets.point(answer.expr)
    if isinstance(answer, Items):
        if answer.kind in ("set", "list"):
            return mathsets.union(*map(_as_reals, answer.items)) if answer.items else mathsets.NOTHING
        ends = [i.expr for i in answer.items if isinstance(i, Value) and not i.unit]
        if len(answer.items) == len(ends) == 2:
            return mathsets.interval(ends[0], ends[1], (answer.kind == "square",) * 2)
    if isinstance(answer, Reals):
        return answer
    raise Unreadable("no set of reals")


as_reals = _as_reals


def _set_algebra(parts: list[Sequence[Token]], operators: list[str]) -> Answer:
    if not all(parts):
        raise Unreadable("half a set")
    answers = [_plain(p) for p in parts]
    if set(operators) == {"cup"} and all(isinstance(a, Items) and a.kind == "set" for a in answers):
        return Items("set", tuple(i for a in answers if isinstance(a, Items) for i in a.items))
    found = _as_reals(answers[0])
    for operator, answer in zip(operators, answers[1:], strict=True):
        other = _as_reals(answer)
        if operator == "cup":
            found = mathsets.union(found, other)
        else:
            found = (mathsets.intersection if operator == "cap" else mathsets.difference)(found, other)
    return found


def _matrix(tokens: Sequence[Token]) -> Matrix:
    rows = [row for row in _split(tokens, frozenset({"row"}))[0] if row]
    cells = [tuple(_value(cell) for cell in _split(row, frozenset({"&"}))[0]) for row in rows]
    if not cells or len({len(row) for row in cells}) > 1 or sum(map(len, cells)) > MAX_ITEMS:
        raise Unreadable("a ragged matrix")
    return Matrix(tuple(cells))


def _cases(tokens: Sequence[Token]) -> Answer:
    if tokens[-1].text != "end cases" or any(t.text == "&" for t in tokens):
        raise Unreadable("a function by cases")
    rows = [row for row in _split(tokens[:-1], frozenset({"row"}))[0] if row]
    items = [_answer(row) for row in rows]
    return _listed(items, ["and"] * (len(items) - 1)) if len(items) > 1 else items[0]


def _value(tokens: Sequence[Token]) -> Answer:
    """An expression, with the unit that stands behind it; a list where it holds ±."""
    if not tokens:
        raise Unreadable("an empty cell")
    unit = ""
    at = next((i for i, t in enumerate(tokens) if t.kind == "text"), len(tokens))
    if at < len(tokens):
        rest = tokens[at:]
        if at == 0 or not all(t.kind in ("text", "num") or t.text in _UNIT_OPERATORS for t in rest):
            raise Unreadable("words")
        unit, tokens = _unit(rest), tokens[:at]
    elif tokens[-1].text == "%" and len(tokens) > 1:
        unit, tokens = "%", tokens[:-1]
    expr = mathtree.parse(tokens)
    found = mathunits.parse(unit)
    if found is not None and found.kind == (("angle", 1),):
        unit, expr = "", Node("deg", (expr,))
    elif found is not None and found.kind == (("radians", 1),):
        unit = ""
    if not contains(expr, "pm"):
        return Value(expr, unit)
    return Items("list", tuple(Value(e, unit) for e in _signs(expr)))


def _unit(tokens: Sequence[Token]) -> str:
    words = " ".join(t.text for t in tokens if t.kind == "text")
    if any(word in _NO_UNIT for word in words.lower().split()):
        raise Unreadable(words)
    return "".join((" " if t.kind == "text" else "") + t.text for t in tokens if t.text not in "{}()").strip()


_NO_UNIT = frozenset({"or", "and", "not", "if", "but", "maybe", "where", "for", "when", "mod", "is", "than", "then"})


def _signs(expr: Node) -> list[Node]:
    """The expressions that ± stands for: with ∓ all signs change together, else each by itself."""
    names = _sign_names(expr)
    if len(names) > MAX_SIGNS:
        raise TooHard("many ±")
    if "mp" in names:
        choices = [(1,) * len(names), (-1,) * len(names)]
    else:
        choices = list(itertools.product((1, -1), repeat=len(names)))
    return [_resolved(expr, iter(signs)) for signs in choices]


def _sign_names(node: Node) -> list[str]:
    return ([node.name] if node.op == "pm" else []) + [n for a in node.args for n in _sign_names(a)]


def _resolved(node: Node, signs: Iterator[int]) -> Node:
    if node.op == "pm":
        sign = next(signs)
        inside = _resolved(node.args[0], signs)
        return inside if sign == 1 else neg(inside)
    if not node.args:
        return node
    return Node(node.op, tuple(_resolved(a, signs) for a in node.args), node.name, node.value)
