r"""The parser that builds expression trees from tokens.

Reads what people write: `\frac12`, `2\frac{1}{2}` (a mixed number), `3ab`, `\sin^2 x`, `\sin 2\pi x`, `\log_2 8`,
`\sqrt[3]{x}`, `x^{n+1}`, `5!`, `\binom{5}{2}`, `|x|`, `a \bmod b`, `\sum_{k=1}^{10} k`, `\sin 30^\circ`. Depth and
length are bounded; brackets around brackets cost none. What it does not know raises `Unreadable`, what is out of
bounds `TooHard`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from r1pipe.rewards.mathfactors import Factors
from r1pipe.rewards.mathlex import Token, Unreadable
from r1pipe.rewards.mathtree import Node, neg, num, product

_OPENING = {"(": ")", "[": "]", "{": "}", r"\{": r"\}", "langle": "rangle"}
_CLOSING = frozenset(_OPENING.values())


def inner(tokens: Sequence[Token]) -> Sequence[Token]:
    """Without the pairs of round or curly brackets that directly enclose another pair: `((x))` -> `(x)`."""
    partner: dict[int, int] = {}
    stack: list[int] = []
    for index, token in enumerate(tokens):
        if token.kind == "op" and token.text in _OPENING:
            stack.append(index)
        elif token.kind == "op" and token.text in _CLOSING and stack:
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


class _Parser(Factors):
    """Sums, products, powers."""

    def sum(self) -> Node:
        self.deeper()
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
                factors = [Node("mod", (product(factors), self.signed()))]
            elif self.starts():
                if before.kind == "num" and (mixed := self.mixed(before.value)):
                    factors[-1] = mixed
                    continue
                token = self.token()
                if token and token.kind == "num" and before.kind != "op" and before.kind != "name":
                    raise Unreadable("two numbers side by side")
                factors.append(self.power())
            else:
                return product(factors)

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
