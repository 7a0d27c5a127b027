"""What a kind of row is made of, and how numbers and polynomials are written in LaTeX."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

# math: LaTeX, may be boxed or stand in $...$. plain: as written, never boxed. region: all that follows the thinking.
# whole: the completion itself, with {cot} where the reasoning goes.
How = Literal["math", "plain", "region", "whole"]


@dataclass(frozen=True)
class Answer:
    """One way to state an answer."""

    text: str
    how: How = "math"


@dataclass(frozen=True)
class Case:
    """A gold answer, right answers in other notations, and near misses. One of the lists may be empty."""

    gold: str
    right: Sequence[Answer | str]
    wrong: Sequence[Answer | str]


Kind = Callable[[random.Random], Case]


def plain(text: str) -> Answer:
    return Answer(text, "plain")


def region(text: str) -> Answer:
    return Answer(text, "region")


def frac(value: Fraction, command: str = r"\frac") -> str:
    r"""`-\frac{3}{4}`; an integer stays one."""
    if value.denominator == 1:
        return str(value.numerator)
    sign = "-" if value < 0 else ""
    return f"{sign}{command}{{{abs(value.numerator)}}}{{{value.denominator}}}"


def decimal(value: Fraction) -> str | None:
    """The exact decimal, where it ends within 12 places."""
    for places in range(13):
        scaled = value * 10**places
        if scaled.denominator == 1:
            digits = str(abs(scaled.numerator)).rjust(places + 1, "0")
            text = digits[: len(digits) - places] + ("." + digits[len(digits) - places :] if places else "")
            return ("-" if value < 0 else "") + text
    return None


def rounded(value: Fraction, places: int) -> str:
    """The decimal rounded half away from zero."""
    scaled = abs(value) * 10**places
    whole = (2 * scaled.numerator + scaled.denominator) // (2 * scaled.denominator)
    digits = str(whole).rjust(places + 1, "0")
    text = digits[:-places] + "." + digits[-places:] if places else digits
    return ("-" if value < 0 else "") + text


def fraction(rng: random.Random, top: int = 30, bottom: int = 20) -> Fraction:
    """A proper or improper positive fraction in lowest terms, never an integer."""
    while True:
        value = Fraction(rng.randrange(1, top), rng.randrange(2, bottom))
        if value.denominator > 1:
            return value


def nonzero(rng: random.Random, low: int, high: int) -> int:
    """An integer of low..high that is not 0."""
    return rng.choice([n for n in range(low, high + 1) if n])


def signed_sum(terms: Sequence[str]) -> str:
    """`["2x", "-3", "y"]` -> `2x-3+y`."""
    text = "".join(t if t.startswith("-") else "+" + t for t in terms if t)
    return text.removeprefix("+") or "0"


def term(coefficient: Fraction | int, symbol: str) -> str:
    """`-x`, `3x`, `\\frac{1}{2}x`; "" for 0. An empty symbol is a constant."""
    value = Fraction(coefficient)
    if value == 0:
        return ""
    if symbol and abs(value) == 1:
        return ("-" if value < 0 else "") + symbol
    return frac(value) + symbol


def power(symbol: str, exponent: int) -> str:
    """`x^2`, `x`, "" for the exponents 2, 1, 0."""
    if exponent == 0:
        return ""
    return symbol if exponent == 1 else f"{symbol}^{exponent}" if exponent < 10 else f"{symbol}^{{{exponent}}}"


def poly_terms(coefficients: Sequence[Fraction | int], symbol: str) -> list[str]:
    """The terms of a polynomial, highest power first; `coefficients[i]` belongs to the power i."""
    pairs = reversed(list(enumerate(coefficients)))
    return [t for t in (term(c, power(symbol, i)) for i, c in pairs) if t]


def poly(coefficients: Sequence[Fraction | int], symbol: str) -> str:
    return signed_sum(poly_terms(coefficients, symbol))


def multiply(a: Sequence[int], b: Sequence[int]) -> list[int]:
    """The product of two polynomials."""
    product = [0] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            product[i + j] += x * y
    return product


def shuffled(rng: random.Random, items: Sequence[str]) -> list[str]:
    """The items in an order other than the given one (where there is one)."""
    items = list(items)
    order = items[:]
    for _ in range(20):
        rng.shuffle(order)
        if order != items:
            break
    return order


def bracket(text: str) -> str:
    """`(a,b]` -> `\\left(a,b\\right]`."""
    opening, closing = text[0], text[-1]
    return rf"\left{opening}{text[1:-1]}\right{closing}"
