"""How long a completion is, and what the rewards of this package share.

Lengths are in tokens where the row has `completion_ids`. Where it has not, `unit` says what is counted; the default,
`auto`, counts words and says so. A word is a run of letters and digits; in scripts without spaces each character is
one, and longer runs than LONG are cut (a text without spaces is not one word).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from r1pipe.rewards.verdict import Row, Verdict

Unit = Literal["auto", "tokens", "words", "characters"]
UNIT = "What lengths count. auto: tokens where they are known, else words (with a remark)."
LONG = 20
REMARK = "lengths are in words, because the rows have no `completion_ids`; `unit` chooses"

# Kana, Han, and the scripts of South-East Asia
_ALONE = (
    "\u0e01-\u0eff\u0f00-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_WORD = re.compile(rf"[{_ALONE}]|(?:(?![{_ALONE}])[^\W_]){{1,{LONG}}}")
_UNIT = re.compile(rf"{_WORD.pattern}|\S")  # and each mark


class UnknownLengthError(ValueError):
    """The row has no token ids, and the part asks for tokens."""


class Length(NamedTuple):
    size: int
    remark: str = ""


def length(completion: str, row: Row, unit: Unit) -> Length:
    """The length of a completion. Raises UnknownLengthError."""
    if unit == "characters":
        return Length(len(completion))
    ids = row.get("completion_ids")
    if unit != "words" and ids is not None:
        return Length(len(ids))
    if unit == "tokens":
        raise UnknownLengthError("the row has no `completion_ids`; `unit: words` counts words")
    words = sum(1 for _ in _WORD.finditer(completion))
    return Length(words, REMARK if unit == "auto" else "")


def units(completion: str) -> Sequence[str]:
    """The words and marks of a text, letter case apart."""
    return _UNIT.findall(completion.casefold())


def correctness(row: Row) -> float | Verdict:
    """How right the answer is, 0 to 1; a verdict where the row does not say."""
    value: Any = row.get("correct")
    if value is None:
        return Verdict(
            None,
            "error",
            "it is not known whether the answer is right: a part that says so must apply to the row and have a score "
            "(such as `accuracy`, with weight 0 where it should not count twice)",
        )
    if not isinstance(value, int | float) or not math.isfinite(value) or not 0 <= value <= 1:
        return Verdict(None, "error", f"`correct` is {value!r}, expected 0 to 1")
    return float(value)
