r"""The factors of an expression: numbers, names, brackets, functions, and what stands behind a LaTeX command."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from r1pipe.rewards.mathlex import Token, TooHard, Unreadable
from r1pipe.rewards.mathtree import EULER, IMAGINARY, INF, PI, Node, determinant, function, num, product

MAX_DEPTH = 30

_CLOSED_BY = {"(": ")", "[": "]", "{": "}"}
_BRACES = {"lfloor": ("rfloor", "floor"), "lceil": ("rceil", "ceil")}
_INVERSE = {"sin": "arcsin", "cos": "arccos", "tan": "arctan", "cot": "arccot"}
_TRIGONOMETRIC = frozenset({"sin", "cos", "tan", "cot", "sec", "csc"})
_DECORATED = frozenset({"vec", "overline", "bar", "hat", "tilde", "overrightarrow", "widehat"})


class Factors:
    """Reads factors at a place in the tokens; `mathparse` reads sums and products of them."""

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

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooHard("nested too deeply")

    def sum(self) -> Node:
        raise NotImplementedError

    def product(self) -> Node:
        raise NotImplementedError

    def signed(self) -> Node:
        raise NotImplementedError

    def power(self) -> Node:
        raise NotImplementedError

    def exponent(self) -> Node:
        raise NotImplementedError

    def starts(self) -> bool:
        raise NotImplementedError

    def mixed(self, whole: Fraction) -> Node | None:
        raise NotImplementedError

    def group(self, closing: str) -> Node:
        bars, self.bars = self.bars, 0
        node = self.sum()
        if self.accept("choose"):
            node = Node("binom", (node, self.sum()))
        elif self.accept("over"):
            node = product([node, Node("inv", (self.sum(),))])
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
                return self.group(_CLOSED_BY[token.text])
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
                return product([top, Node("inv", (self.argument(split=True),))])
            case "sqrt":
                degree = self.group("]") if self.accept("[") else num(2)
                return Node("root", (self.argument(), degree))
            case "cbrt" | "qdrt":
                return Node("root", (self.argument(), num(3 if name == "cbrt" else 4)))
            case "binom" | "dbinom" | "tbinom":
                if self.accept("("):
                    return function("binom", self.arguments())
                top = self.argument(split=True)
                return Node("binom", (top, self.argument(split=True)))
            case "pi":
                return PI
            case "infty":
                return INF
            case "lfloor" | "lceil":
                closing, rounding = _BRACES[name]
                return Node(rounding, (self.group(closing),))
            case "sum" | "prod":
                return self.iterated(name)
        if name in ("imath", "jmath"):
            return self.name(name[0])
        if name in _DECORATED:
            start = self.at
            self.argument()
            return self.subscripted(_decorated(name, [t.text for t in self.tokens[start : self.at]]))
        raise Unreadable(f"\\{name}")

    def name(self, name: str) -> Node:
        if name == "e" and self.peek() != "_":
            return EULER
        if name == "i" and self.peek() != "_":
            return IMAGINARY
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
        node = function(name, [*arg, base] if base else arg)
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
        return [product(factors)]

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
        return determinant(rows)


def _decorated(name: str, texts: list[str]) -> str:
    r"""`\vec{a}` is another name than `a`; `\hat{\imath}` is the unit vector i."""
    inside = "".join(texts).strip("{}").replace("imath", "i").replace("jmath", "j").removeprefix("unit ")
    return (
        f"unit {inside}"
        if inside in ("i", "j", "k") and name in ("hat", "vec", "overrightarrow")
        else f"{name} {inside}"
    )
