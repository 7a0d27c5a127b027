"""Gold answers: where records keep them, and how they are marked in a worked solution."""

from __future__ import annotations

import json
import re
from typing import Any

from r1pipe.data.values import Record, text

# Columns that may hold the answer, best first; the first that says one is taken, and which one is told.
GOLDS = ("gold", "answer", "final_answer", "expected_answer", "ground_truth", "solution")
VERBATIM = frozenset({"exact", "json"})  # kinds whose gold is the text as it stands, over several lines too
LONGEST = 200  # characters of an answer in words

_MARKED = re.compile(r"####[ \t]*([^\n]*)")
_NUMBER = re.compile(r"([-+−]?)\s*[$€£]?\s*([-+−]?)\s*((?:\d[\d,]*)?(?:\.\d+)?)\s*(%?)\.?")
# Two words in a row, or Chinese or Japanese text: a sentence, not an answer.
_SENTENCE = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}[.,;:]?\s+[A-Za-z]{2,}|[\u3040-\u30ff\u3400-\u9fff]{3}")

_ENDS = (".", "!", "?", "。", "！", "？")


def gsm8k_gold(answer: str) -> str | None:
    """The number after the last `####`, without commas; None where there is none."""
    found = _MARKED.findall(answer)
    number = _NUMBER.fullmatch(found[-1].strip()) if found else None
    if not number or not number[3] or not re.search(r"\d", number[3]):
        return None
    sign = "-" if (number[1] + number[2]) in ("-", "−") else ""
    return sign + number[3].replace(",", "") + number[4]


def gold_of(answer: str, *, solution: bool = False) -> str | None:
    """The answer of a text: after `####`, else the last \\boxed{}, else one line as it is, where it is no sentence;
    None for a worked text that marks no answer."""
    if "####" in answer:
        return gsm8k_gold(answer)
    from r1pipe.rewards.extract import last_boxed

    boxed = last_boxed(answer)
    if boxed:
        return boxed
    if "\n" in answer:
        return None
    sentence = solution or len(answer) > LONGEST or answer[-1:] in _ENDS
    return None if sentence and _SENTENCE.search(answer) else answer


def is_marked(answer: str | None) -> bool:
    """Does the text mark its answer?"""
    return answer is not None and ("####" in answer or "boxed" in answer)


def gold(record: Record, kind: str | None = None) -> tuple[str | None, str | None]:
    """The gold answer of a record, and the column that says it."""
    for column in GOLDS:
        value = record.get(column)
        if isinstance(value, dict) or (kind == "json" and isinstance(value, list)):
            return _json(value), column
        if (answer := text(value)) is None:
            continue
        found = answer if kind in VERBATIM else gold_of(answer, solution=column == "solution")
        if found:
            return found, column
    return None, None


def _json(value: Any) -> str | None:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False) if value else None
    except (TypeError, ValueError):
        return None


def worked(record: Record) -> str | None:
    """The worked solution of a record: a text with a `####` mark, else the solution column where it is more than the
    answer."""
    texts = {column: text(record.get(column)) for column in GOLDS}
    marked = next((t for t in texts.values() if t and "####" in t), None)
    return marked or texts["solution"]
