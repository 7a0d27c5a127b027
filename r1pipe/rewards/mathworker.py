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
    from math_verify import verify

    expected = _parse(gold)
    if not expected:
        return "gold", "cannot be parsed"
    if answer is None:
        return "ok", ""
    found = _parse(answer)
    if not found:
        return "answer", "cannot be parsed"
    if (equal := _numbers(expected[0], found[0])) is None:
        equal = verify(
            list(expected), list(found), allow_set_relation_comp=True, timeout_seconds=None, numeric_precision=30
        )
    return "equal" if equal else "different", ""


@functools.lru_cache(maxsize=512)
def _parse(text: str) -> tuple[Any, ...]:
    """The sympy objects that math-verify sees in a text that is all answer; empty where there are none."""
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse

    found = parse(
        "\\boxed{" + mathtext.latex(text) + "}",
        extraction_config=[LatexExtractionConfig(boxed_match_priority=0), ExprExtractionConfig()],
        parsing_timeout=None,
    )
    return tuple(x for x in found if not isinstance(x, str))


def _numbers(left: Any, right: Any) -> bool | None:
    """Two numbers, compared by their relative difference at 60 digits (rounding to some decimals makes all tiny
    numbers equal); None where one is not a finite number."""
    import sympy

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
