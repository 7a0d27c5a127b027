"""What the rewards of this package share: where an answer stands, plain text, and the batch form."""

from __future__ import annotations

import re
import unicodedata
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from pydantic import Field

from r1pipe.rewards import extract
from r1pipe.rewards.verdict import NO_THINKING_END, Context, Row, Verdict
from r1pipe.settings import Strict

MAX_CUES = 10
RIGHT, WRONG = Verdict(1.0, "scored"), Verdict(0.0, "scored")

_TABLE: dict[int, str] = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}  # full width
_TABLE |= {ord(c): "'" for c in "‘’"} | {ord(c): '"' for c in "“”"} | {ord(c): "-" for c in "−‐‑"}
_WRAPPED = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathsf|mbox|emph)[ ]?\{([^{}]*)\}")
_SPACING = re.compile(r"\\[,;:! ]")
_MARKED = (  # bold, code, maths
    re.compile(r"(?<![\w*])\*\*(?=\S)((?:[^*\n]|\*(?!\*)){1,2000})\*\*(?![\w*])"),
    re.compile(r"(?<![\w`])`([^`\n]{1,2000})`(?![\w`])"),
    re.compile(r"(?<!\\)\$([^$\n]{1,2000})(?<!\\)\$"),
)
_CUE = re.compile(
    r"(?:\b(?:answers?|result)\b|答案|结果)[ \t]*(?:(?:is|are|would be|must be|为|是|应为|选)[ \t]*[:：]?|[:：=])\s*",
    re.IGNORECASE,
)


class BadGoldError(ValueError):
    """The gold answer of a row cannot be used; the message says why."""


class AnswerOptions(Strict):
    """The option that all of them have."""

    require_think: bool = Field(True, description="No answer without a closing think tag.")


class AnswerVerifier(ABC):
    """Finds the region of the answer and compares; the completions are whole."""

    COLUMNS: ClassVar[tuple[str, ...]] = ("gold",)
    MAX_ANSWER: ClassVar[int] = 25_000  # characters; longer answers are not looked at

    def __init__(self, options: AnswerOptions, context: Context) -> None:
        self.options, self.context = options, context

    @abstractmethod
    def gold(self, row: Row) -> Any:
        """The gold answer, read. Raises BadGoldError."""

    @abstractmethod
    def judge(self, region: str, gold: Any) -> Verdict:
        """The verdict on a non-empty answer region."""

    def __call__(self, completions: list[str], rows: list[Row]) -> list[Verdict]:
        return [self._one(c, r) for c, r in zip(completions, rows, strict=True)]

    def _one(self, completion: str, row: Row) -> Verdict:
        try:
            gold = self.gold(row)
        except BadGoldError as error:
            return Verdict(None, "error", str(error))
        region = extract.region(
            completion,
            self.context.tags,
            require_think=self.options.require_think,
            prefilled=self.context.prefilled,
        )
        if region is None:
            return NO_THINKING_END
        if len(region) > self.MAX_ANSWER:
            return Verdict(0.0, "unverifiable", f"the answer is longer than {self.MAX_ANSWER} characters")
        return self.judge(region, gold) if region.strip() else Verdict(0.0, "unverifiable", "no answer")


def gold_reason(verifier: AnswerVerifier, row: Row) -> str | None:
    """Why the gold answer of a row cannot be used; None where it can."""
    try:
        verifier.gold(row)
    except BadGoldError as error:
        return str(error)
    return None


def one(
    verifier: type[AnswerVerifier], options: AnswerOptions, completion: str, row: Row, context: Context
) -> Verdict:
    """The verdict on one completion as it was generated."""
    return verifier(options, context)([context.whole(completion)], [row])[0]


def statements(region: str) -> list[str]:
    """What a text may state as its answer: its box, where there is one; else the whole, and what follows the last
    "answer is" on its line. [""] where a box is left open."""
    boxed = extract.boxed_answer(region)
    return [boxed] if boxed is not None else [region, *cue_tails(region)[:1]]


def cue_tails(text: str, cue: re.Pattern[str] = _CUE) -> list[str]:
    """What follows each of the last "the answer is", to the end of its line; the last first."""
    tails = (text[m.end() :].partition("\n")[0] for m in list(cue.finditer(text))[: -MAX_CUES - 1 : -1])
    return [tail for tail in tails if tail.strip()]


def plain(text: str) -> str:
    r"""Without bold, code ticks, `\text{}` and `$ $`; full-width letters, quotes and dashes as ASCII; single spaces
    and line breaks."""
    text = unicodedata.normalize("NFC", text).translate(_TABLE)
    for pattern in (*_MARKED, _WRAPPED, _WRAPPED):
        text = pattern.sub(r"\1", text)
    text = re.sub(r"[^\S\n]+", " ", _SPACING.sub(" ", text))
    return re.sub(r" ?\n[ \n]*", "\n", text).strip()
