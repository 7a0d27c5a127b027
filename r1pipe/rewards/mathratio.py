r"""Ratios and remainders: `3:4`, `1 : \sqrt{3}`, `3^{100} \bmod 7`, `x \equiv 3 \pmod 7`. None where
a text is neither.

A ratio of two may stand as a fraction. `a \bmod m` is a number; `r \pmod m` is a class, and the number r too.
"""

from __future__ import annotations

import re

from r1pipe.rewards import answertext, mathanswer, mathread, mathsame
from r1pipe.rewards.mathexact import Undefined, fold
from r1pipe.rewards.mathlex import TooHard, Unreadable
from r1pipe.rewards.mathtree import Node, num, symbols

_MODULUS = re.compile(
    r"(?:(?P<left>[^=]*?)\s*(?:\\equiv(?![A-Za-z])|=)\s*)?(?P<value>[^=]+?)\s*,?\s*\(?\s*"
    r"(?P<op>\\pmod|\\bmod|\\mod|\bmod(?:ulo)?\b)\s*\{?\s*(?P<m>\d{1,50})\s*\}?\s*\)?"
)


def _constant(text: str) -> Node:
    value = mathread.read(text)
    if not isinstance(value, mathanswer.Value) or symbols(value.expr):
        raise Unreadable(text)
    return value.expr


def same_ratio(gold: str, answer: str) -> bool | None:
    """None where neither is a ratio, or the other cannot be read."""
    mine, theirs = parts(gold), parts(answer)
    if mine is None and theirs is None:
        return None
    try:
        left, right = mine or [_constant(gold), num(1)], theirs or [_constant(answer), num(1)]
        return len(left) == len(right) and all(
            mathsame.equal(Node("mul", (a, right[-1])), Node("mul", (b, left[-1])))
            for a, b in zip(left, right, strict=True)
        )
    except (Unreadable, Undefined, TooHard):
        return None


def parts(text: str) -> list[Node] | None:
    """The parts of a ratio; None where the text is none."""
    found = answertext.ratio(text)
    try:
        return [_constant(p) for p in found] if found else None
    except (Unreadable, Undefined, TooHard):
        return None


def lowest_terms(ratio: str) -> bool:
    """`3:4`, not `9:45`."""
    found = answertext.ratio(ratio) or []
    return all(p.isdigit() for p in found) and fold(Node("gcd", tuple(num(int(p)) for p in found))) == num(1)


def same_modulo(gold: str, answer: str) -> bool | None:
    """None where no modulus is named."""
    g, a = _MODULUS.fullmatch(gold[:500]), _MODULUS.fullmatch(answer[:500])
    if g is None and a is None:
        return None
    try:
        mine = _residue(g) if g else fold(_constant(gold))
        theirs = _residue(a) if a else fold(_constant(answer))
        if g and a and _is_class(g) and _is_class(a):
            return g["m"] == a["m"] and mine == theirs
        if g and _is_class(g):
            return False
        if a and _is_class(a):  # 4 (mod 7) is 4, 11 (mod 7) is not
            return mine == theirs and fold(_constant(a["value"])) in (mine, _power(a))
    except (Unreadable, Undefined, TooHard):
        return False
    return mine == theirs


def _is_class(match: re.Match[str]) -> bool:
    return match["op"] != "\\bmod" and not (match["op"] == "mod" and "(" not in match[0] and match["left"] is None)


def _power(match: re.Match[str]) -> Node | None:
    """The remainder itself, where what is written is a power (`3^{100} \\pmod 7`)."""
    return _residue(match) if "^" in match["value"] else None


def _residue(match: re.Match[str]) -> Node:
    """Raises Unreadable where the two sides of a congruence are constants and do not agree."""
    modulus = num(int(match["m"]))
    value = fold(Node("mod", (_constant(match["value"]), modulus)))
    if match["left"]:
        left = mathread.read(match["left"])
        constant = isinstance(left, mathanswer.Value) and not symbols(left.expr)
        if constant and fold(Node("mod", (_constant(match["left"]), modulus))) != value:
            raise Unreadable("a congruence that does not hold")
    return value
