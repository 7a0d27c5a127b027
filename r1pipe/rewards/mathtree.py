r"""Expressions as trees, and the parser that builds them from tokens.

Reads what people write: `\frac12`, `2\frac{1}{2}` (a mixed number), `3ab`, `\sin^2 x`, `\sin 2\pi x`, `\log_2 8`,
`\sqrt[3]{x}`, `x^{n+1}`, `5!`, `\binom{5}{2}`, `|x|`, `a \bmod b`, `\sum_{k=1}^{10} k`, `\sin 30^\circ`. Depth and length
are bounded; brackets around brackets cost none. What it does not know raises `Unreadable`, what is out of bounds
`TooHard`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from r1pipe.rewards.mathlex import Token, TooHard, Unreadable

MAX_DEPTH = 30


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


PI, E, I, INF = Node("pi"), Node("e"), Node("i"), Node("inf")
MINUS_INF = neg(INF)
_OPENING = {"(": ")", "[": "]", "{": "}", r"\{": r"\}", "langle": "rangle"}
CLOSING = frozenset(_OPENING.values())
_BRACES = {"lfloor": ("rfloor", "floor"), "lceil": ("rceil", "ceil")}
_RECIPROCAL = {"cot": "tan", "sec": "cos", "csc": "sin"}
_INVERSE = {"sin": "arcsin", "cos": "arccos", "tan": "arctan", "cot": "arccot"}
_TRIGONOMETRIC = frozenset({"sin", "cos", "tan", "cot", "sec", "csc"})
_DECORATED = frozenset("vec overline bar hat tilde overrightarrow widehat".split())


def inner(tokens: Sequence[Token]) -> Sequence[Token]:
    """Without the pairs of round or curly brackets that directly enclose another pair: `((x))` -> `(x)`."""
    partner: dict[int, int] = {}
    stack: list[int] = []
    for index, token in enumerate(tokens):
        if token.kind == "op" and token.text in _OPENING:
            stack.append(index)
        elif token.kind == "op" and token.text in CLOSING and stack:
            partner[stack.pop()] = index
    drop = {
        i
        for opened, closed in partner.items()
        if partner.get(opened + 1) == closed - 1
        and tokens[opened].text in "({"
        and tokens[opened + 1].text == tokens[opened].text
        for i in (opened, closed)
    }
    return [t for i, t in enumerate(tokens) if i not in drop] if drop else tokens


def parse(tokens: Sequence[Token]) -> Node:
    """The expression that the tokens are, as a whole."""
    parser = _Parser(tokens)
    node = parser.sum()
    if parser.at < len(tokens):
        raise Unreadable(f"{tokens[parser.at].text} is left over")
    return node


class _Parser:
    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens, self.at, self.depth, self.bars = tokens, 0, 0, 0

    def peek(self, ahead: int = 0) -> str:
        """The text of an operator or command to come; "" for other tokens and at the end."""
        token = self.token(ahead)
        return token.text if token and token.kind in ("op", "cmd") else ""

    def token(self, ahead: int = 0) -> Token | None:
        place = self.at + ahead
        return self.tokens[place] if place < len(self.tokens) else None

    def accept(self, *texts: str) -> bool:
        if self.peek() in texts:
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise Unreadable(f"{text} is missing")

    def sum(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooHard("nested too deeply")
        terms: list[Node] = []
        while True:
            sign = self.signs(first=not terms)
            if sign is None:
                break
            term = self.product()
            if sign in ("pm", "mp"):
                terms.append(Node("pm", (term if sign == "pm" else neg(term),), sign))
            else:
                terms.append(term if sign == "+" else neg(term))
        self.depth -= 1
        if not terms:
            raise Unreadable("an empty expression")
        return terms[0] if len(terms) == 1 else Node("add", tuple(terms))

    def signs(self, *, first: bool) -> str | None:
        """The sign before a term; None where no term follows."""
        sign = None
        while (text := self.peek()) in ("+", "-", "pm", "mp"):
            self.at += 1
            if sign in ("pm", "mp"):
                raise Unreadable("a sign behind ±")
            sign = text if text in ("pm", "mp") or sign != "-" else "-" if text == "+" else "+"
        return sign or ("+" if first and self.starts() else None)

    def starts(self) -> bool:
        """Does a factor start here?"""
        token = self.token()
        if token is None or token.kind == "text":
            return False
        if token.kind in ("num", "name", "fn"):
            return True
        if token.kind == "cmd":
            return token.text not in ("choose", "over", "rfloor", "rceil")
        if token.text == "|":
            return self.bars == 0
        return token.text in ("(", "[", "{", "begin vmatrix", "\\{")

    def product(self) -> Node:
        factors = [self.signed()]
        while True:
            before = self.tokens[self.at - 1]
            if self.accept("*"):
                factors.append(self.signed())
            elif self.accept("/"):
                factors.append(Node("inv", (self.signed(),)))
            elif self.accept("mod"):
                factors = [Node("mod", (_product(factors), self.signed()))]
            elif self.starts():
                if before.kind == "num" and (mixed := self.mixed(before.value)):
                    factors[-1] = mixed
                    continue
                token = self.token()
                if token and token.kind == "num" and before.kind != "op" and before.kind != "name":
                    raise Unreadable("two numbers side by side")
                factors.append(self.power())
            else:
                return _product(factors)

    def mixed(self, whole: Fraction) -> Node | None:
        r"""`\frac{1}{2}` or `1/2` behind a whole number, where the fraction is proper."""
        start = self.at
        texts = [t.text for t in self.tokens[start : start + 7]]
        if texts[0] in ("frac", "dfrac", "tfrac"):
            self.at += 1
            top, bottom = self.argument(split=True), self.argument(split=True)
        elif len(texts) >= 3 and texts[0].isdigit() and texts[1] == "/" and texts[2].isdigit():
            top, bottom = num(int(texts[0])), num(int(texts[2]))
            self.at += 3
            if top.value >= bottom.value:
                raise Unreadable("two numbers side by side")
        else:
            return None
        proper = top.op == bottom.op == "num" and 0 < top.value < bottom.value and top.value.denominator == 1
        if not proper or whole.denominator != 1 or bottom.value.denominator != 1:
            self.at = start
            return None
        return num(whole + top.value / bottom.value)

    def signed(self) -> Node:
        if self.accept("-"):
            self.deeper()
            node = neg(self.signed())
            self.depth -= 1
            return node
        self.accept("+")
        return self.power()

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooHard("nested too deeply")

    def power(self) -> Node:
        return self.raised(self.primary())

    def raised(self, base: Node) -> Node:
        """What stands behind a factor: `!`, `°`, `'`, exponents."""
        while True:
            if self.accept("!"):
                base = Node("fact", (base,))
            elif self.accept("°"):
                base = Node("deg", (base,))
            elif self.accept("^"):
                base = Node("pow", (base, self.exponent()))
            else:
                return base

    def exponent(self) -> Node:
        self.deeper()
        if self.accept("-"):
            node = neg(self.exponent())
        elif self.accept("+"):
            node = self.exponent()
        else:
            node = self.primary()
            if self.accept("^"):  # 2^3^4
                node = Node("pow", (node, self.exponent()))
        self.depth -= 1
        return node

    def group(self, closing: str) -> Node:
        bars, self.bars = self.bars, 0
        node = self.sum()
        if self.accept("choose"):
            node = Node("binom", (node, self.sum()))
        elif self.accept("over"):
            node = _product([node, Node("inv", (self.sum(),))])
        self.expect(closing)
        self.bars = bars
        return node

    def argument(self, *, split: bool = False) -> Node:
        """The argument of a command: a group, or one token; `split` takes one digit of a number (`\\frac12`)."""
        if self.accept("{"):
            return self.group("}")
        token = self.token()
        if split and token and token.kind == "num" and token.text.isdigit() and len(token.text) > 1:
            rest = Token("num", token.text[1:], Fraction(int(token.text[1:])))
            self.tokens = [*self.tokens[: self.at], rest, *self.tokens[self.at + 1 :]]
            return num(int(token.text[0]))
        return self.primary()

    def arguments(self) -> list[Node]:
        """`(a, b)`; the opening bracket has been taken."""
        found = [self.sum()]
        while self.accept(","):
            found.append(self.sum())
        self.expect(")")
        return found

    def primary(self) -> Node:
        token = self.token()
        if token is None:
            raise Unreadable("the end")
        self.at += 1
        if token.kind == "num":
            return num(token.value)
        if token.kind == "name":
            return self.name(token.text)
        if token.kind == "fn":
            return self.function(token.text)
        if token.kind == "op":
            if token.text in ("(", "[", "{"):
                return self.group(_OPENING[token.text])
            if token.text == "|":
                self.bars += 1
                node = self.sum()
                self.expect("|")
                self.bars -= 1
                return Node("abs", (node,))
            if token.text == "begin vmatrix":
                return self.determinant()
        if token.kind == "cmd":
            return self.command(token.text)
        raise Unreadable(token.text)

    def command(self, name: str) -> Node:
        match name:
            case "frac" | "dfrac" | "tfrac" | "cfrac":
                top = self.argument(split=True)
                return _product([top, Node("inv", (self.argument(split=True),))])
            case "sqrt":
                degree = self.group("]") if self.accept("[") else num(2)
                return Node("root", (self.argument(), degree))
            case "cbrt" | "qdrt":
                return Node("root", (self.argument(), num(3 if name == "cbrt" else 4)))
            case "binom" | "dbinom" | "tbinom":
                if self.accept("("):
                    return _function("binom", self.arguments())
                top = self.argument(split=True)
                return Node("binom", (top, self.argument(split=True)))
            case "pi":
                return PI
            case "infty":
                return INF
            case "lfloor" | "lceil":
                closing, function = _BRACES[name]
                return Node(function, (self.group(closing),))
            case "sum" | "prod":
                return self.iterated(name)
        if name in _DECORATED:
            start = self.at
            self.argument()
            return self.subscripted(name + " " + "".join(t.text for t in self.tokens[start : self.at]).strip("{}"))
        raise Unreadable(f"\\{name}")

    def name(self, name: str) -> Node:
        if name == "e" and self.peek() != "_":
            return E
        if name == "i" and self.peek() != "_":
            return I
        if name in "CP" and self.peek() == "(" and (found := self.chosen(name)):
            return found
        return self.subscripted(name)

    def chosen(self, name: str) -> Node | None:
        """`C(5, 2)`, `P(5, 2)`."""
        start = self.at
        self.at += 1
        args = self.arguments()
        if len(args) == 2:
            n, k = args
            binom = Node("binom", (n, k))
            return binom if name == "C" else Node("mul", (binom, Node("fact", (k,))))
        self.at = start
        return None

    def subscripted(self, name: str) -> Node:
        if self.accept("_"):
            if self.accept("{"):
                depth, parts = 1, []
                while depth:
                    token = self.token()
                    if token is None:
                        raise Unreadable("an open brace")
                    depth += (token.text == "{") - (token.text == "}")
                    self.at += 1
                    parts.append(token.text)
                name += "_" + "".join(parts[:-1])
            elif token := self.token():
                self.at += 1
                name += "_" + token.text
        while self.accept("'"):
            name += "'"
        return Node("sym", name=name)

    def function(self, name: str) -> Node:
        base = exponent = None
        for _ in range(2):
            if name == "log" and self.accept("_"):
                base = self.argument()
            elif self.accept("^"):
                exponent = self.exponent()
        arg = self.function_argument(name)
        if exponent == num(-1) and name in _INVERSE:
            name, exponent = _INVERSE[name], None
        node = _function(name, [*arg, base] if base else arg)
        return node if exponent is None else Node("pow", (node, exponent))

    def function_argument(self, name: str) -> list[Node]:
        r"""`(x)`, `{x}`, or the factors that follow: `\sin 2\pi x`, up to a sign, a function or a bracket."""
        if self.accept("("):
            return self.arguments()
        if self.accept("{"):
            return [self.group("}")]
        if self.peek() in ("-", "+"):
            return [self.signed()]
        factors: list[Node] = []
        while self.starts():
            token = self.token()
            assert token is not None
            if factors and (token.kind == "fn" or token.text in ("sum", "prod")):
                break
            if factors and (token.text in ("[", "{") or (token.text == "(" and factors[-1].op != "num")):
                break
            if factors and token.kind == "num" and factors[-1].op == "num":
                raise Unreadable("two numbers side by side")
            before = self.tokens[self.at - 1]
            if factors and before.kind == "num" and (mixed := self.mixed(before.value)):
                factors[-1] = mixed
                continue
            factors.append(self.power())
        if not factors:
            raise Unreadable(f"{name} of nothing")
        after = self.token(1)
        if name in _TRIGONOMETRIC and PI in factors and self.peek() == "/" and after and after.kind == "num":
            self.at += 2  # sin pi/6
            factors.append(Node("inv", (num(after.value),)))
        return [_product(factors)]

    def iterated(self, op: str) -> Node:
        r"""`\sum_{k=1}^{10} k^2`: the body is the rest of the term."""
        self.expect("_")
        self.expect("{")
        variable = self.token()
        if variable is None or variable.kind != "name":
            raise Unreadable(f"\\{op} over no variable")
        self.at += 1
        self.expect("=")
        low = self.group("}")
        self.expect("^")
        high = self.argument()
        return Node(op, (self.product(), low, high), name=variable.text)

    def determinant(self) -> Node:
        rows: list[list[Node]] = [[]]
        while True:
            rows[-1].append(self.sum())
            if self.accept("row"):
                rows.append([])
            elif not self.accept("&"):
                break
        self.expect("end vmatrix")
        if len(rows) > 3 or any(len(row) != len(rows) for row in rows):
            raise Unreadable("a determinant of this size")
        return _determinant(rows)


def _determinant(rows: list[list[Node]]) -> Node:
    if len(rows) == 1:
        return rows[0][0]
    terms = []
    for column, entry in enumerate(rows[0]):
        minor = _determinant([row[:column] + row[column + 1 :] for row in rows[1:]])
        terms.append(Node("mul", (num((-1) ** column), entry, minor)))
    return Node("add", tuple(terms))


def _product(factors: list[Node]) -> Node:
    return factors[0] if len(factors) == 1 else Node("mul", tuple(factors))


def _function(name: str, args: list[Node]) -> Node:
    if name in _RECIPROCAL:
        return Node("inv", (_function(_RECIPROCAL[name], args),))
    if name == "exp" and len(args) == 1:
        return Node("pow", (E, args[0]))
    if name == "lg":
        name, args = "log", [*args, num(10)]
    if name == "arccot" and len(args) == 1:
        return Node("add", (Node("mul", (PI, num(Fraction(1, 2)))), neg(Node("arctan", tuple(args)))))
    several = name in ("max", "min", "gcd", "lcm", "binom")
    if len(args) > 2 and not several or len(args) == 2 and not (several or name == "log"):
        raise Unreadable(f"{name} of {len(args)}")
    return Node(name, tuple(args))
