r"""Reads a whole answer: lists, names and equations, inequalities, brackets, sets.

Decided here: `(a, b)` is a tuple until it meets a set of reals, `1,234` is a number at the top and two within
brackets, `x = 5` is 5 with a name, `\pm 5` is a list, an inequality in one variable is the set of its solutions,
joined by "or" (union) or "and" (intersection).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal

from r1pipe.rewards import mathlex, mathparse, mathsame, mathsets
from r1pipe.rewards.mathanswer import (
    Answer,
    Dots,
    Items,
    Named,
    Periodic,
    Piecewise,
    Relation,
    System,
    Value,
    as_reals,
    expression,
    expressions,
    spread,
)
from r1pipe.rewards.mathexact import Undefined
from r1pipe.rewards.mathlex import Token, TooHard, Unreadable
from r1pipe.rewards.mathsets import ALL, Reals
from r1pipe.rewards.mathtree import INF, MINUS_INF, symbols
from r1pipe.rewards.mathvalue import MATRICES, MAX_ITEMS, OPENING, closes, matrix, name_of, scaled, split, value
from r1pipe.rewards.shortcache import short_cache

_RELATIONS = frozenset({"=", "~", "<", ">", "<=", ">=", "!=", "in", "==", "->", "=>"})
_SEPARATORS = frozenset({",", ";", "or", "and"})
_SET_OPERATORS = frozenset({"cup", "cap", "\\"})
_DOTS = frozenset({"ldots", "cdots", "dots", "dotsc", "dotsb"})
_MATCHING = {"(": ")", "[": "]"}


@short_cache(8192)
def read(text: str) -> Answer:
    """Raises Unreadable, TooHard, Undefined."""
    tokens = mathparse.inner(mathlex.tokens(text))
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


def _parts(tokens: Sequence[Token]) -> tuple[list[Sequence[Token]], list[str]]:
    """The items of a list: `1, 2, and 3` has three."""
    parts, separators = split(tokens, _SEPARATORS)
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
    if (clause := _domain(tokens)) is not None:
        rest, name, numbers = clause
        return _periodic(rest, name) if numbers == "Z" else _answer(rest)
    parts, separators = _parts(tokens)
    if not parts:
        raise Unreadable("nothing")
    return _item(parts[0]) if len(parts) == 1 else _listed([_item(p) for p in parts], separators)


def _domain(tokens: Sequence[Token]) -> tuple[Sequence[Token], str, str] | None:
    r"""Of `2n+1, n \in \mathbb{N}`: what stands before, the name, the set (with what is written behind its letter)."""
    texts = [t.text for t in tokens]
    at = len(texts) - 1 - texts[::-1].index("in") if "in" in texts else 0
    if at < 2 or texts[at + 1 : at + 3] != ["mathbb", "{"] or texts[at + 4 : at + 5] != ["}"]:
        return None
    name, behind, rest = tokens[at - 1], "".join(texts[at + 5 :]).strip("{})"), list(tokens[: at - 1])
    while rest and (rest[-1].kind == "text" or rest[-1].text in (",", "(", ";")):
        rest.pop()
    if (
        name.kind != "name"
        or len(behind) > 4
        or r"\}" in texts[at:]
        or not any(t.kind == "name" and t.text == name.text for t in rest)
    ):
        return None
    return rest, name.text, texts[at + 3] + behind


def _periodic(tokens: Sequence[Token], name: str) -> Periodic:
    exprs = expressions(_answer(tokens))
    if not all(name in symbols(e) for e in exprs):
        raise Unreadable("values that do not depend on the whole number")
    return Periodic(name, exprs)


def _listed(items: list[Answer], separators: list[str]) -> Answer:
    """Several items in a row."""
    first = items[0]
    plain = first.value if isinstance(first, Named) else first
    holds = all(isinstance(i, Reals) for i in items[1:]) and "or" not in separators
    if isinstance(plain, Value) and symbols(plain.expr) and holds:
        return first  # y = 2x, x > 0: where it holds
    if isinstance(first, Named) and not any(isinstance(i, Named | Reals | Relation) for i in items[1:]):
        values = (first.value, *items[1:])
        return Named(first.name, Items("list", tuple(spread(values))))  # n = 2, 3, 4
    named = [i for i in items if isinstance(i, Named)]
    if len(named) == len(items):
        names = [n.name for n in named]
        if len(set(names)) == 1:
            return Named(names[0], Items("list", tuple(spread(n.value for n in named))))
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
    return Items("set" if "or" in separators else "list", tuple(spread(items)))  # `1 or 2` is no point


def _item(tokens: Sequence[Token]) -> Answer:
    parts, relations = split(tokens, _RELATIONS)
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
    if any(t.text in _DOTS for part in parts[:-1] for t in part):  # 1 + 2 + ... + n = 5050
        return _plain(parts[-1])
    name = name_of(parts[0])
    if name is None and parts[0][0].text == "(" and len(parts) == 2 and (system := _coordinates(*parts)):
        return system
    values = [_plain(p) for p in (parts[1:] if name is not None else parts)]
    if name is None and len(values) == 2 and relations == ["="]:
        if isinstance(values[0], Value) and (reverse := name_of(parts[1])):  # 5 = x
            return Named(reverse, values[0], _relation(parts))
        if not _agree(values[0], values[1], "="):
            left, right = (expression(v) for v in values)
            return Relation(left, "=", right)
        return values[1]
    # x = 2 + 3 = 5, sqrt 2 ~ 1.41: all the same, or no answer at all
    signs = relations[1:] if name is not None else relations
    for before, after, sign in zip(values, values[1:], signs, strict=False):
        formula = isinstance(before, Value) and symbols(before.expr)  # S = pi r^2 = 25 pi
        if not formula and not _agree(before, after, sign):
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
        left, right = (expression(_plain(p)) for p in parts)
    except Unreadable:
        return None
    return Relation(left, "=", right)


def _coordinates(left: Sequence[Token], right: Sequence[Token]) -> System | None:
    """`(x, y) = (1, 2)`."""
    names = [name_of(p) for p in _parts(left[1:-1])[0]]
    point = _plain(right)
    if None in names or not isinstance(point, Items) or len(point.items) != len(names) or len(names) < 2:
        return None
    return System(tuple((str(n), v) for n, v in zip(names, point.items, strict=True)))


def _inequality(parts: list[Sequence[Token]], relations: list[str]) -> Answer:
    if set(relations) - {"<", ">", "<=", ">=", "!="}:
        raise Unreadable(f"the relation {relations}")
    sides = [expression(_plain(p)) for p in parts]
    if len(relations) == 1:
        try:
            return mathsets.solve(sides[0], relations[0], sides[1])[1]
        except Unreadable:
            return Relation(sides[0], relations[0], sides[1])
    solved = [mathsets.solve(a, op, b) for a, op, b in zip(sides, relations, sides[1:], strict=False)]
    if len({name for name, _ in solved}) > 1:
        raise Unreadable("several variables in a chain")
    return mathsets.intersection(*(s for _, s in solved))


def _plain(tokens: Sequence[Token]) -> Answer:
    """An item without a relation outside of brackets."""
    if not tokens:
        raise Unreadable("nothing")
    parts, operators = split(tokens, _SET_OPERATORS)
    if operators:
        return _set_algebra(parts, operators)
    head, tail = tokens[0], tokens[-1]
    if head.kind == "cmd" and len(tokens) == 1:
        if head.text in ("emptyset", "varnothing"):
            return Items("set", ())
        if head.text in _DOTS:
            return Dots()
    if [t.text for t in tokens[:2]] == ["mathbb", "{"]:
        if len(tokens) > 4 and tokens[4].text == "-":  # R - {0}
            return _set_algebra([tokens[:4], tokens[5:]], ["\\"])
        return _number_set(tokens)
    if head.text == "{" and closes(tokens) == len(tokens) - 1 and split(tokens[1:-1], _SEPARATORS)[1]:
        return _braced(tokens[1:-1])  # {1, 2} outside of LaTeX
    if head.text in OPENING and head.text != "{" and closes(tokens) == len(tokens) - 1:
        return _bracketed(tokens[1:-1], head.text, tail.text)
    if head.text.startswith("begin ") and head.text[6:] in MATRICES and tail.text == "end " + head.text[6:]:
        return matrix(tokens[1:-1])
    if head.text == "begin cases":
        return _cases(tokens[1:])
    if head.kind == "name" and head.text.isupper() and len(tokens) > 4 and (point := _point(tokens)):
        return point
    if tail.text.startswith("end ") and tail.text[4:] in MATRICES:
        return scaled(tokens)
    return value(tokens)


def _point(tokens: Sequence[Token]) -> Items | None:
    """`A(1, 2)`; not `C(5, 2)`, which is a number."""
    if tokens[1].text != "(" or closes(tokens[1:]) != len(tokens) - 2:
        return None
    parts, _ = _parts(tokens[2:-1])
    if len(parts) == 2 and tokens[0].text in "CP":
        n, k = (p[0].value if len(p) == 1 and p[0].kind == "num" else -1 for p in parts)
        if n >= k >= 0:
            return None
    return Items("tuple", tuple(_item(p) for p in parts)) if len(parts) > 1 else None


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
        return _answer(tokens) if opening in "([" and _MATCHING[opening] == closing else value(tokens)
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


def _braced(tokens: Sequence[Token]) -> Answer:
    if not tokens:
        return Items("set", ())
    parts, _ = split(tokens, frozenset({"|", ":"}))
    if len(parts) == 2:  # { x | x > 2 }, { x in R : x > 2 }
        if [t.text for t in parts[1][1:]] == ["in", "mathbb", "{", "Z", "}"]:
            return _periodic(parts[0], parts[1][0].text)
        left, relations = split(parts[0], _RELATIONS)
        if name_of(left[0]) is None:
            raise Unreadable("a set of expressions")
        found = as_reals(_answer(parts[1]))
        if relations == ["in"]:
            found = mathsets.intersection(as_reals(_plain(left[1])), found)
        return found
    return Items("set", tuple(spread([_item(p) for p in _parts(tokens)[0]])))


def _set_algebra(parts: list[Sequence[Token]], operators: list[str]) -> Answer:
    if not all(parts):
        raise Unreadable("half a set")
    if len(parts) > mathsets.MAX_ENDS:
        raise TooHard("a set of many pieces")
    answers = [_plain(p) for p in parts]
    if set(operators) == {"cup"} and all(isinstance(a, Items) and a.kind == "set" for a in answers):
        return Items("set", tuple(i for a in answers if isinstance(a, Items) for i in a.items))
    found = as_reals(answers[0])
    for operator, answer in zip(operators, answers[1:], strict=True):
        other = as_reals(answer)
        if operator == "cup":
            found = mathsets.union(found, other)
        else:
            found = (mathsets.intersection if operator == "cap" else mathsets.difference)(found, other)
    return found


def _cases(tokens: Sequence[Token]) -> Answer:
    if not tokens or tokens[-1].text != "end cases":
        raise Unreadable("cases within a formula")
    rows = [row for row in split(tokens[:-1], frozenset({"row"}))[0] if row]
    halves = [split(row, frozenset({"&"}))[0] for row in rows]
    if all(len(half) == 2 and all(half) for half in halves):
        return Piecewise(tuple((_answer(left), _condition(right)) for left, right in halves))
    items = [_answer(row) for row in rows]
    return _listed(items, ["and"] * (len(items) - 1)) if len(items) > 1 else items[0]


def _condition(tokens: Sequence[Token]) -> Answer | None:
    r"""`\text{if } x > 0`; None for `\text{otherwise}`."""
    while tokens and tokens[0].kind == "text":
        tokens = tokens[1:]
    return _answer(tokens) if tokens else None
