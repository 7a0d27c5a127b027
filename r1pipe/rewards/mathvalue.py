r"""One value: an expression with its unit, a vector in unit vectors, a matrix, what `\pm` stands for; and the names
that may stand before it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction

from r1pipe.rewards import mathparse, mathsame, mathunits
from r1pipe.rewards.mathanswer import Answer, Items, Matrix, Value, expression
from r1pipe.rewards.mathlex import Token, TooHard, Unreadable
from r1pipe.rewards.mathtree import Node, contains, neg, num, substitute, symbols

MAX_ITEMS = 200
MAX_SIGNS = 3  # of ± in an expression
MATRICES = frozenset({"matrix", "pmatrix", "bmatrix", "Bmatrix", "smallmatrix", "array"})
OPENING, CLOSING = frozenset({"(", "[", "{", r"\{", "langle"}), frozenset({")", "]", "}", r"\}", "rangle"})

_UNIT_OPERATORS = frozenset({"/", "^", "*", "-", "{", "}", "(", ")"})


def split(tokens: Sequence[Token], at: frozenset[str]) -> tuple[list[Sequence[Token]], list[str]]:
    """The parts between separators outside of brackets, and the separators."""
    parts: list[Sequence[Token]] = []
    found: list[str] = []
    depth = start = 0
    for index, token in enumerate(tokens):
        if token.kind != "op":
            continue
        if token.text in OPENING or token.text.startswith("begin "):
            depth += 1
        elif token.text in CLOSING or token.text.startswith("end "):
            depth -= 1
        elif depth == 0 and token.text in at:
            parts.append(tokens[start:index])
            found.append(token.text)
            start = index + 1
    parts.append(tokens[start:])
    return parts, found


def closes(tokens: Sequence[Token]) -> int:
    """Where the bracket that stands first is closed."""
    depth = 0
    for index, token in enumerate(tokens):
        if token.kind == "op":
            depth += (token.text in OPENING) - (token.text in CLOSING)
            if depth == 0:
                return index
    raise Unreadable("an open bracket")


def name_of(tokens: Sequence[Token]) -> str | None:
    r"""What can name a value: `x`, `a_n`, `f(x)`, `AB`, `\angle ABC`, `\overline{AB}`, `\sin A`, `\text{area}`."""
    texts = [t.text for t in tokens]
    kinds = [t.kind for t in tokens]
    if all(k == "text" for k in kinds):
        return " ".join(texts)
    if kinds[0] == "cmd" and texts[0] in ("angle", "triangle", "overline", "vec", "bar", "hat"):
        return " ".join(texts)
    if len(texts) > 2 and texts[0] == texts[-1] == "|" and all(k == "name" for k in kinds[1:-1]):  # |S|, |AB|
        return "".join(texts)
    if texts[:3] == ["frac", "{", "d"] and texts[4:7] == ["}", "{", "d"] and texts[8:] == ["}"]:  # dy/dx
        return "".join(texts[2:])
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


def value(tokens: Sequence[Token]) -> Answer:
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
    expr = mathparse.parse(tokens)
    found = mathunits.parse(unit)
    if found is not None and found.kind == (("angle", 1),):
        unit, expr = "", Node("deg", (expr,))
    elif found is not None and found.kind == (("radians", 1),):
        unit = ""
    if not contains(expr, "pm"):
        return _vector(expr) or Value(expr, unit)
    return Items("list", tuple(Value(e, unit) for e in _signs(expr)))


def _vector(expr: Node) -> Items | None:
    """`3i - 2j + k`, in bold or with hats, as its coordinates."""
    names = symbols(expr)
    units = [f"unit {c}" for c in "ijk" if c == "j" or c == "i" or "unit k" in names]
    if not names & {"unit i", "unit j", "unit k"}:
        return None
    zero = {name: num(0) for name in units}
    coordinates = []
    for unit in units:
        value = expr
        for name, number in (zero | {unit: num(1)}).items():
            value = substitute(value, name, number)
        coordinates.append(Value(value))
    whole = Node(
        "add", tuple(Node("mul", (c.expr, Node("sym", name=n))) for c, n in zip(coordinates, units, strict=True))
    )
    if not mathsame.equal(whole, expr):
        raise Unreadable("no sum of unit vectors")
    return Items("tuple", tuple(coordinates))


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


def matrix(tokens: Sequence[Token]) -> Matrix:
    rows = [row for row in split(tokens, frozenset({"row"}))[0] if row]
    cells = [tuple(value(cell) for cell in split(row, frozenset({"&"}))[0]) for row in rows]
    if not cells or len({len(row) for row in cells}) > 1 or sum(map(len, cells)) > MAX_ITEMS:
        raise Unreadable("a ragged matrix")
    return Matrix(tuple(cells))


def scaled(tokens: Sequence[Token]) -> Matrix:
    r"""`\frac{1}{2}\begin{pmatrix} ... \end{pmatrix}`."""
    at = next((i for i, t in enumerate(tokens) if t.text.startswith("begin ")), 0)
    factor = list(tokens[:at])
    while factor and factor[-1].text == "*":
        factor.pop()
    if [t.text for t in factor] == ["-"]:
        factor.append(Token("num", "1", Fraction(1)))
    inside = matrix(tokens[at + 1 : -1])
    if not factor:
        raise Unreadable("a matrix in a formula")
    scale = mathparse.parse(factor)
    return Matrix(tuple(tuple(Value(Node("mul", (scale, expression(c)))) for c in row) for row in inside.rows))
