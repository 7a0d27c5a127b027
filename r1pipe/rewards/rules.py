r"""One answer against the gold answer, by our own code: the same text, numbers, choices, dates, clock times, ratios,
bases, remainders, words, and everything that `mathanswer` reads. What is left is for computer algebra."""

from __future__ import annotations

import re
from typing import Literal

from r1pipe.rewards import answertext, mathbudget, mathcompare, mathratio, mathread, numbers
from r1pipe.rewards.answertext import is_words
from r1pipe.rewards.extract import last_boxed, strip_end, unbox
from r1pipe.rewards.mathclean import clean, undelimit
from r1pipe.rewards.mathexact import Undefined
from r1pipe.rewards.mathlex import TooHard, Unreadable
from r1pipe.rewards.shortcache import short_cache

# unreadable: the answer is no mathematics; hard: out of bounds; gold: the gold answer is; ask: computer algebra has to
# say
Judgement = Literal["equal", "different", "unreadable", "hard", "gold", "ask"]

MAX_ASKED = 400  # characters that computer algebra is given

NO_GOLD = frozenset({"", "proof", "notfound", "not found", "none", "null", "nan", "n/a", "?", "unknown"})
_COLOUR = re.compile(r"\\(?:text)?color\s*(?:\[\w*\])?\s*\{[^{}]*\}")
_STATED = re.compile(r"(?:\banswer is|####)\s*:?\s*([^\n]{1,100})\s*$", re.IGNORECASE)


def gold_text(gold: str) -> str:
    """The gold answer without box and maths delimiters; of a whole solution, its last box, or what it says the answer
    is."""
    boxed = last_boxed(gold)
    if boxed is None and (stated := _STATED.search(gold[-200:])):
        boxed = strip_end(stated[1])
    return bare(boxed if boxed is not None else gold)


def bare(answer: str) -> str:
    """An answer without box and maths delimiters."""
    text = _COLOUR.sub("", unbox(answer)) if "color" in answer else unbox(answer)
    text = undelimit(text.strip())
    while text.startswith("{") and text.endswith("}") and not re.search(r"[{},]|\\(?:choose|over)\b", text[1:-1]):
        text = text[1:-1].strip()
    return text if text.count("$") < 2 or "\\$" in text else text.replace("$", "").strip()


def canonical(text: str) -> str:
    """For the comparison of texts: spacing and spelling of LaTeX evened out."""
    return re.sub(r"(?<![0-9A-Za-z])\s+|\s+(?![0-9A-Za-z])", "", clean(text))  # `1 2` is not `12`


@short_cache(16_384)
def decide(gold: str, answer: str) -> Judgement:
    """`gold` comes from `gold_text`."""
    mathbudget.restart()
    answer = bare(answer)
    if gold == answer or canonical(gold) == canonical(answer):
        return "equal"
    mine, theirs = numbers.parse(gold), numbers.parse(answer)
    if mine and theirs:
        return _as("equal", numbers.same(mine, theirs))
    plain_gold, plain = clean(gold), clean(answer)
    if (verdict := answertext.choice(plain_gold, plain)) is not None:
        text = answertext.choice_text(plain_gold)
        if text and answertext.letter(plain) is None:
            return decide(text, answer)
        return "equal" if verdict else "different" if answertext.letter(plain) else "unreadable"
    for compare in (mathratio.same_modulo, answertext.same_date, _clock_or_ratio, answertext.same_base):
        if (verdict := compare(plain_gold, plain)) is not None:
            return _as("equal", verdict)
    if is_words(gold) and answertext.as_latex(plain_gold) == plain_gold:
        return _as("equal", answertext.same_words(gold, answer))
    if _is_notation(plain_gold):
        return "unreadable"
    if len(plain_gold) < 40 and len(plain) < 40:  # `no solution` is the empty set
        gold = gold if answertext.as_latex(plain_gold) == plain_gold else answertext.as_latex(plain_gold)
        answer = answer if answertext.as_latex(plain) == plain else answertext.as_latex(plain)
    return _mathematics(gold, answer)


def _as(judgement: Judgement, holds: bool) -> Judgement:
    return judgement if holds else "different"


def _mathematics(gold: str, answer: str) -> Judgement:
    try:
        expected = mathread.read(gold)
    except (Unreadable, Undefined):
        return _as("equal", _tokens(gold) == _tokens(answer)) if _has_words(gold) else _ask(answer)
    except TooHard:
        return "gold"
    try:
        found = mathread.read(answer)
    except Unreadable:  # an integral or a limit in place of its value is no answer: it repeats the question
        return "unreadable"
    except (TooHard, RecursionError):
        return "hard"
    except Undefined:
        return "different"
    try:
        return _as("equal", mathcompare.equal(expected, found))
    except Unreadable:
        return _ask(answer)
    except (TooHard, RecursionError):
        return "hard"
    except Undefined:
        return "different"


def _ask(answer: str) -> Judgement:
    """Computer algebra may take any time: it is asked only about what is short, flat and of small numbers."""
    large = re.search(r"\d{9}|\^[^^]{0,9}\^|\*\*.*\*\*|!.*!|[{(\[]{6}", answer)
    return "hard" if large or len(answer) > MAX_ASKED else "ask"


def _has_words(text: str) -> bool:
    return bool(re.search(r"(?<!\\)\b[A-Za-z]{3,}|[\u3400-\u9fff]", clean(text)))


def _tokens(text: str) -> list[str]:
    return re.findall(r"\\?[^\W_]+|[^\w\s]", clean(text).casefold())


def _clock_or_ratio(gold: str, answer: str) -> bool | None:
    """`9:45` is a time of day; `3:10`, in lowest terms, may be a ratio as well."""
    clock = answertext.same_clock(gold, answer)
    if clock or (clock is not None and not mathratio.lowest_terms(gold)):
        return clock
    return mathratio.same_ratio(gold, answer)


def is_choice(gold: str) -> bool:
    """A letter, or several, of the options of a question."""
    return answertext.choice(clean(gold), "") is not None


def _is_notation(plain: str) -> bool:
    """A date, a time, digits in a base, a ratio."""
    return any(
        read(plain) is not None for read in (answertext.date, answertext.clock, answertext.based, mathratio.parts)
    )


def self_sufficient(gold: str) -> bool:
    """Can this gold be compared without computer algebra?"""
    plain = clean(gold)
    if is_words(gold) or _has_words(gold) or is_choice(gold):
        return True
    if _is_notation(plain) or mathratio.same_modulo(plain, "0") is not None:
        return True
    try:
        mathread.read(answertext.as_latex(plain))
    except (Unreadable, TooHard, Undefined):
        return False
    return True
