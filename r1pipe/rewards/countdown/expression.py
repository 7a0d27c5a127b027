r"""Reads an arithmetic expression of integers exactly: + - * / and brackets, nothing else. Never evaluates text.

Also read: `×`, `·`, `÷`, `−`, an `x` between two numbers, `\times`, `\cdot`, `\div`, `\frac{a}{b}`, `\left( \right)`,
maths delimiters, square brackets, and a chain of equal signs (`8*3 = 24`). Refused, with the reason: powers, `//`,
signs before a number, decimals, factorials, names, and multiplication that is not written (`2(3)`, `3 4`).

All work is bounded by MAX_LENGTH characters and MAX_DEPTH nested brackets.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction

MAX_LENGTH = 2_000
MAX_DEPTH = 64
MAX_DIGITS = 40  # of one number

_TABLE: dict[int, str] = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}  # full width
_TABLE |= {ord(c): "*" for c in "×✕⋅·∗"} | {ord(c): "/" for c in "÷∕⁄"} | {ord(c): "-" for c in "−–‐‑﹣"}
_TABLE |= {ord("["): "(", ord("]"): ")", ord("【"): "(", ord("】"): ")"}
_LATEX = (
    (re.compile(r"\\(?:left|right|big|Big|bigl|bigr|Bigl|Bigr|quad|qquad|displaystyle)(?![A-Za-z])"), " "),
    (re.compile(r"\\[\[\]()]|\\[,;:! ]|[$~]"), " "),  # delimiters and spacing
    (re.compile(r"\\(?:times|cdot|ast)(?![A-Za-z])"), "*"),
    (re.compile(r"\\div(?![A-Za-z])"), "/"),
    (re.compile(r"\\[dtc]frac(?![A-Za-z])"), r"\\frac"),
    (re.compile(r"(?<=[0-9)])\s{0,9}[xX]\s{0,9}(?=[0-9(\\])"), "*"),
)
_TOKEN = re.compile(r"\s*([0-9]+|\\frac(?![A-Za-z])|[-+*/(){}=])")


class NotExpressionError(ValueError):
    """The text is no expression of the game; the message says why."""


@dataclass(frozen=True, slots=True)
class Side:
    """One side of an equation: its value, the numbers it uses, and how many operations join them."""

    value: Fraction
    numbers: tuple[int, ...]
    operations: int


def plain(text: str) -> str:
    """One spelling: ASCII operators and round brackets; LaTeX becomes spaces, never nothing (`3\\,4` is not 34)."""
    for pattern, replacement in _LATEX[:2]:  # before `[` becomes a bracket
        text = pattern.sub(replacement, text)
    text = text.translate(_TABLE)
    for pattern, replacement in _LATEX[2:]:
        text = pattern.sub(replacement, text)
    return text.strip()


def read(text: str, negative: Collection[int] = ()) -> list[Side]:
    """The sides of `a = b = ...`; one side where there is no equal sign.

    `negative`: the negative numbers of the game, before which a minus sign may stand. Raises NotExpressionError, and
    ZeroDivisionError.
    """
    if len(text) > MAX_LENGTH:
        raise NotExpressionError(f"longer than {MAX_LENGTH} characters")
    reader = _Reader(_tokens(plain(text)), frozenset(negative))
    sides = [reader.side()]
    while reader.take("="):
        sides.append(reader.side())
    if reader.peek:
        raise NotExpressionError(f'"{reader.peek}" where an operator was expected')
    return sides


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise NotExpressionError(f'"{text[position:].strip()[:1]}" is not part of an expression')
        tokens.append(match[1])
        position = match.end()
    return tokens


class _Reader:
    """Recursive descent: side = product (+|- product)*; product = factor (*|/ factor)*."""

    def __init__(self, tokens: list[str], negative: frozenset[int]) -> None:
        self.tokens, self.negative = tokens, negative
        self.position = self.depth = self.operations = 0
        self.numbers: list[int] = []

    @property
    def peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def take(self, *wanted: str) -> str:
        """The next token where it is one of `wanted`, and moves on; else ""."""
        token = self.peek
        if token not in wanted or not token:
            return ""
        self.position += 1
        return token

    def need(self, wanted: str) -> None:
        if not self.take(wanted):
            raise NotExpressionError(f'"{wanted}" expected' + (f', not "{self.peek}"' if self.peek else " at the end"))

    def side(self) -> Side:
        self.numbers, self.operations = [], 0
        value = self.sum()
        return Side(value, tuple(self.numbers), self.operations)

    def sum(self) -> Fraction:
        value = self.product()
        while operator := self.take("+", "-"):
            self.operations += 1
            other = self.product()
            value = value + other if operator == "+" else value - other
        return value

    def product(self) -> Fraction:
        value = self.factor()
        while operator := self.take("*", "/"):
            self.operations += 1
            other = self.factor()
            value = value * other if operator == "*" else value / other
        return value

    def factor(self) -> Fraction:
        if bracket := self.take("(", "{"):
            return self.group(bracket)
        if self.take("\\frac"):
            self.need("{")
            above = self.group("{")
            self.need("{")
            self.operations += 1
            return above / self.group("{")
        sign = -1 if self.take("-") else 1
        token = self.peek
        if not token.isdigit():
            raise NotExpressionError(f'"{token}" where a number was expected' if token else "a number is missing")
        if len(token) > MAX_DIGITS or (len(token) > 1 and token[0] == "0"):
            raise NotExpressionError(f'"{token[:MAX_DIGITS]}" is not a number of the game')
        number = sign * int(token)
        if sign < 0 and number not in self.negative:
            raise NotExpressionError("a sign before a number")
        self.position += 1
        self.numbers.append(number)
        return Fraction(number)

    def group(self, bracket: str) -> Fraction:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise NotExpressionError(f"more than {MAX_DEPTH} nested brackets")
        value = self.sum()
        self.need(")" if bracket == "(" else "}")
        self.depth -= 1
        return value
