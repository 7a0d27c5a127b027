r"""Exact answer: the same text, after normalisation. 1.0 or 0.0.

Always evened out: white space, Unicode composition, full-width letters, curly quotes, `\text{}`, bold, `$`. Unless
`case`, letter case; unless `punctuation`, sentence punctuation around words (not inside: 3.5 is not 35, nor -5 5).
Nothing is stemmed, no part of a text is looked for in another (known-failures d1, d2).

The answer is the last box; else the whole answer region, or what follows its last "answer is".
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from r1pipe.chat import Tags
from r1pipe.rewards import rules
from r1pipe.rewards.answers import stated
from r1pipe.rewards.verdict import Context, Row, Verdict

VERSION = "1"
_EDGE = ".,;:!?\"'()[]{}…«»。、·"


class Options(stated.AnswerOptions):
    """Options of the `exact` part."""

    case: bool = Field(False, description="Upper and lower case differ.")
    punctuation: bool = Field(False, description="Punctuation around words counts.")


class Exact(stated.AnswerVerifier):
    """Exact answer: the same text, after normalisation."""

    options: Options

    def gold(self, row: Row) -> str:
        gold = row.get("gold")
        if gold is None or not str(gold).strip():
            raise stated.BadGoldError("the row has no gold answer")
        return self.normal(rules.gold_text(str(gold)))

    def judge(self, region: str, gold: str) -> Verdict:
        found = [self.normal(text) for text in stated.statements(region)]
        if not any(found):
            return Verdict(0.0, "unverifiable", "no answer")
        return stated.RIGHT if gold in found else stated.WRONG

    def normal(self, text: str) -> str:
        words = stated.plain(text).split()
        if not self.options.punctuation and (bare := [b for w in words if (b := _bare(w))]):
            words = bare  # a text of punctuation alone keeps it
        joined = " ".join(words)
        return joined if self.options.case else joined.casefold()


def _bare(word: str) -> str:
    """A word without the punctuation around it; `.5` and `5!` keep what belongs to the number."""
    start, end = len(word) - len(word.lstrip(_EDGE)), len(word.rstrip(_EDGE))
    if word[start : start + 1].isdigit() and word[max(start - 1, 0) : start] == ".":
        start -= 1
    if word[max(end - 1, 0) : end].isdigit() and word[end : end + 1] == "!":
        end += 1
    return word[start:end]


def check_gold(row: Row) -> str | None:
    """Why the gold answer of a row cannot be used; None where it can."""
    return stated.gold_reason(Exact(Options(), Context()), row)


def right_answer(row: Row) -> str | None:
    return None if check_gold(row) else rules.gold_text(str(row["gold"]))


def wrong_answer(row: Row) -> str | None:
    return None if check_gold(row) else f"none of {rules.gold_text(str(row['gold']))}"


def verify(completion: str, row: Row, *, tags: Tags = Tags(), prefilled: bool = False, **options: Any) -> Verdict:
    """The verdict on one completion; `options` as in Options."""
    return stated.one(Exact, Options(**options), completion, row, Context(tags, prefilled))
