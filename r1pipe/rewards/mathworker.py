"""What runs in a worker (`workers.Pool`): one pair of gold and answer, compared by computer algebra.

    ["1/2", "0.5"]  ->  ["equal", ""]
    ["1/2", null]   ->  ["ok", ""]         is the gold usable?

The first of an answer is equal, different, answer (it cannot be parsed), gold (the gold cannot), ok. Nothing parsed
is ever printed: the text of a power tower does not end.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any

from r1pipe.rewards import mathtext


def prepare(argument: None) -> Callable[[tuple[str, str | None]], tuple[str, str]]:
    """Imports what the comparison needs."""
    import math_verify  # noqa: F401
    import sympy  # noqa: F401

    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)  # the parser complains about every answer that it cannot read
    sys.set_int_max_str_digits(0)
    return lambda pair: run(*pair)


def run(gold: str, answer: str | None) -> tuple[str, str]:
    """The result of one pair."""
    gold_parsed = _parse_gold(gold)
    if not gold_parsed and not mathtext.elided(gold):
        return "gold", "cannot be parsed"
    if answer is None:
        return "ok", ""
    if mathtext.elided(gold) or mathtext.elided(answer):  # `1, 3, ..., 2n-1`: item by item
        return "equal" if _same_items(gold, answer) else "different", ""
    parsed = _parse(mathtext.spell(answer))
    if not parsed:
        return "answer", "cannot be parsed"
    return "equal" if _equal(gold, gold_parsed, answer, parsed) else "different", ""


def _same_items(gold: str, answer: str) -> bool:
    left, right = mathtext.items(gold), mathtext.items(answer)
    if len(left) != len(right):
        return False
    for g, a in zip(left, right, strict=True):
        if mathtext.elided(g) or mathtext.elided(a):
            if not (mathtext.elided(g) and mathtext.elided(a)):
                return False
        elif g != a:
            gold_parsed, parsed = _parse_gold(g), _parse(mathtext.spell(a))
            if not gold_parsed or not parsed or not _equal(g, gold_parsed, a, parsed):
                return False
    return True


@functools.lru_cache(maxsize=512)
def _parse_gold(gold: str) -> tuple[Any, ...]:
    return tuple(_parse(mathtext.spell(gold)))


def _parse(text: str) -> list[Any]:
    """The sympy objects that math-verify sees in a text that is all answer; empty where there are none."""
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse

    found = parse(
        "\\boxed{" + text + "}",
        extraction_config=[LatexExtractionConfig(boxed_match_priority=0), ExprExtractionConfig()],
        parsing_timeout=None,
    )
    return [x for x in found if not isinstance(x, str)]


def _equal(gold: str, gold_parsed: tuple[Any, ...], answer: str, parsed: list[Any]) -> bool:
    from math_verify import verify

    if (exact := _numbers(gold_parsed, parsed)) is not None:
        if not exact and "°" in mathtext.degrees(gold) and "\\pi" in answer:
            return _numbers(_parse_gold(mathtext.radians(gold)), parsed) is True
        return exact
    return verify(list(gold_parsed), parsed, allow_set_relation_comp=True, timeout_seconds=None, numeric_precision=30)


def _numbers(gold_parsed: tuple[Any, ...], parsed: list[Any]) -> bool | None:
    """Two numbers, compared by their relative difference at 60 digits (rounding to some decimals makes all tiny
    numbers equal); None where one is not a finite number."""
    import sympy

    left, right = gold_parsed[0], parsed[0]
    if not (isinstance(left, sympy.Expr) and isinstance(right, sympy.Expr)):
        return None
    if not (left.is_number and right.is_number) or left.is_finite is False or right.is_finite is False:
        return None
    if left == right:
        return True
    if left.is_Rational and right.is_Rational:
        return False
    a, b = (sympy.N(x.doit(), 60, maxn=400) for x in (left, right))
    size = max(abs(a), abs(b))
    if not (size.is_Float or size.is_Integer):
        return None
    return bool(size == 0 or abs(a - b) < size * sympy.Float("1e-40"))
