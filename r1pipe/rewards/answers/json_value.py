"""JSON answer: the same value as the gold JSON. 1.0 or 0.0.

The answer region is JSON as a whole, or its last code fence is. Types must agree, numbers are exact (1 equals 1.0,
0.1 is not 0.10000000000000001), the order of keys is irrelevant, that of lists counts. NaN, Infinity, a key twice in
one object, more than 64 nested brackets: not JSON (`strict_json.py`).

Gold: a JSON text, or the value itself. No schemas: a value that any answer of a shape satisfies is soon learned.
"""

from __future__ import annotations

import json
from typing import Any

from r1pipe.chat import Tags
from r1pipe.rewards.answers import stated, strict_json
from r1pipe.rewards.verdict import Context, Row, Verdict

VERSION = "1"


class Options(stated.AnswerOptions):
    """Options of the `json` part."""


class Json(stated.AnswerVerifier):
    """JSON answer: the same value as the gold JSON."""

    MAX_ANSWER = strict_json.MAX_LENGTH

    def gold(self, row: Row) -> Any:
        try:
            return strict_json.parse(_text(row))
        except strict_json.NotJsonError as error:
            raise stated.BadGoldError(f"the gold answer is not JSON: {error}") from None

    def judge(self, region: str, gold: Any) -> Verdict:
        try:
            value = strict_json.parse(strict_json.fenced(region).strip())
        except strict_json.NotJsonError as error:
            return Verdict(0.0, "unverifiable", f"not JSON: {error}")
        return stated.RIGHT if strict_json.same(gold, value) else stated.WRONG


def _text(row: Row) -> str:
    gold = row.get("gold")
    if gold is None:
        raise stated.BadGoldError("the row has no gold answer")
    try:
        return gold if isinstance(gold, str) else json.dumps(gold, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        raise stated.BadGoldError("the gold answer cannot be written as JSON") from None


def check_gold(row: Row) -> str | None:
    """Why the gold answer of a row cannot be used; None where it can."""
    return stated.gold_reason(Json(Options(), Context()), row)


def right_answer(row: Row) -> str | None:
    return None if check_gold(row) else _text(row)


def wrong_answer(row: Row) -> str | None:
    """The value inside a list of one."""
    return None if check_gold(row) else f"[{_text(row)}]"


def verify(completion: str, row: Row, *, tags: Tags = Tags(), prefilled: bool = False, **options: Any) -> Verdict:
    """The verdict on one completion; `options` as in Options."""
    return stated.one(Json, Options(**options), completion, row, Context(tags, prefilled))
