"""The child process in which computer algebra runs: reads one task a line from stdin, writes one result a line.

    {"gold": "1/2", "answer": "0.5", "limit": 5.0}  ->  {"r": "equal"}
    {"gold": "1/2", "answer": null}                 ->  {"r": "ok"}         is the gold usable?

`r` is equal, different, answer (it cannot be parsed), gold (the gold cannot), limit (memory or depth), ok.
Nothing parsed is ever printed: the text of a power tower does not end. The kernel's alarm ends the process some
time after the limit, so that a worker whose parent was killed does not compute on.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
from typing import Any

from r1pipe.rewards import mathtext

GRACE_S = 2.0  # the parent kills at the limit; the alarm is for a parent that is gone


def main(memory_mb: int) -> None:
    """Serves until stdin closes."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    sys.set_int_max_str_digits(0)
    try:
        _limit_memory(memory_mb)
        import math_verify  # noqa: F401
        import sympy  # noqa: F401
    except Exception as error:  # noqa: BLE001 (the parent raises it)
        _send(out, {"fatal": f"{type(error).__name__}: {error}"})
        return
    _send(out, {"ready": True})
    for line in sys.stdin:
        task = json.loads(line)
        signal.setitimer(signal.ITIMER_REAL, task.get("limit", 5.0) + GRACE_S)
        try:
            result = run(task["gold"], task["answer"])
        except (MemoryError, RecursionError) as error:
            result = {"r": "limit", "d": type(error).__name__}
        signal.setitimer(signal.ITIMER_REAL, 0)
        _send(out, result)


def _send(out: Any, message: dict[str, Any]) -> None:
    out.write(json.dumps(message) + "\n")
    out.flush()


def _limit_memory(memory_mb: int) -> None:
    import resource

    size = memory_mb * 1024 * 1024
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard == resource.RLIM_INFINITY or size < hard:
        resource.setrlimit(resource.RLIMIT_AS, (size, hard))


def run(gold: str, answer: str | None) -> dict[str, str]:
    """The result of one task."""
    gold_parsed = _parse_gold(gold)
    if not gold_parsed and not mathtext.elided(gold):
        return {"r": "gold", "d": "cannot be parsed"}
    if answer is None:
        return {"r": "ok"}
    if mathtext.elided(gold) or mathtext.elided(answer):  # `1, 3, ..., 2n-1`: item by item
        return {"r": "equal" if _same_items(gold, answer) else "different"}
    parsed = _parse(mathtext.spell(answer))
    if not parsed:
        return {"r": "answer", "d": "cannot be parsed"}
    return {"r": "equal" if _equal(gold, gold_parsed, answer, parsed) else "different"}


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
