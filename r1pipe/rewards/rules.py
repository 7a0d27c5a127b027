r"""Comparisons that need no computer algebra: the same text, numbers, choices, clock times, ratios, bases, words."""

from __future__ import annotations

import re
from fractions import Fraction

from r1pipe.rewards import numbers
from r1pipe.rewards.extract import last_boxed, unbox

_CHOICE_GOLD = re.compile(r"\(?([A-J])[).]?")
_CHOICE = re.compile(
    r"(?:option|choice)?\s*(?:\(([A-Za-z])\)|([A-Za-z])(?=[):.]|$))[):.]?(.*)", re.DOTALL | re.IGNORECASE
)
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?\s*([ap])?\.?(?:m\.?)?", re.IGNORECASE)
_RATIO = re.compile(r"(\d+(?:\.\d+)?)\s*:\s*(\d+(?:\.\d+)?)")
_BASE = re.compile(r"([0-9A-Fa-f]+)_\{?(\d{1,2})\}?")
_MOD = re.compile(r"(\d{1,50})(?:\^\{?(\d{1,50})\}?)?\s*\\bmod\s*\{?(\d{1,50})\}?")
_MATH = re.compile(r"[\d^_=<>+*/\\|{}\[\]±∞√]")
_ASSIGNED = re.compile(r"[A-Za-z](?:_\w+)?\s*=\s*(.+)", re.DOTALL)  # `x = 42` for the gold 42
NO_GOLD = frozenset({"", "proof", "notfound", "not found", "none", "null", "nan", "n/a", "?", "unknown"})


def gold_text(gold: str) -> str:
    """The gold answer without box and maths delimiters; of a whole solution, its last box."""
    boxed = last_boxed(gold)
    return _outer(boxed if boxed is not None else gold)


def _outer(text: str) -> str:
    text = text.strip()
    if len(text) > 2 and text[0] == text[-1] == "$" and "$" not in text.strip("$"):
        text = text.strip("$").strip()
    return text


def canonical(text: str) -> str:
    """For the comparison of texts: spacing and spelling of LaTeX evened out."""
    return re.sub(r"(?<![0-9A-Za-z])\s+|\s+(?![0-9A-Za-z])", "", numbers.clean(text))  # `1 2` is not `12`


def decide(gold: str, answer: str) -> bool | None:
    """Equal, different, or None where computer algebra has to say. `gold` comes from `gold_text`."""
    answer = _outer(unbox(answer))
    if canonical(gold) == canonical(answer):
        return True
    gold_number, number = numbers.parse(gold), numbers.parse(answer)
    if gold_number and number is None and (assigned := _ASSIGNED.fullmatch(answer)):
        number = numbers.parse(assigned[1])
    if gold_number and number:
        return numbers.same(gold_number, number)
    plain_gold, plain = numbers.clean(gold), numbers.clean(answer)
    if _CHOICE_GOLD.fullmatch(plain_gold):
        return choice(plain_gold, plain)
    if modulo := _MOD.fullmatch(plain):
        return gold_number is not None and gold_number.value == _mod(modulo)
    if "\\bmod" in plain:  # read as its last number by the parser below
        return False
    for compare in (_clock, _base, _ratio):
        if (verdict := compare(plain_gold, plain)) is not None:
            return verdict
    if is_words(gold):
        return words(gold) == words(answer)
    return None


def choice(gold: str, answer: str) -> bool:
    """The letter, alone or before its text (`(B) 17`, `D: a polynomial`); several letters are none."""
    expected = _CHOICE_GOLD.fullmatch(gold)
    match = _CHOICE.fullmatch(answer.strip())
    if not expected or not match:
        return False
    rest = match[3] or ""
    if re.search(r"\b(?:or|and)\b|或", rest, re.IGNORECASE) and re.search(r"\b[A-J]\b", rest):
        return False
    return (match[1] or match[2]).upper() == expected[1]


def _mod(match: re.Match[str]) -> Fraction | None:
    base, power, modulus = int(match[1]), int(match[2] or 1), int(match[3])
    return Fraction(pow(base, power, modulus)) if modulus else None


def _clock(gold: str, answer: str) -> bool | None:
    g, a = _CLOCK.fullmatch(gold), _CLOCK.fullmatch(answer)
    if not g or not a:
        return None
    same_half = g[4] is None or a[4] is None or g[4].lower() == a[4].lower()
    return same_half and [int(x or 0) for x in g.groups()[:3]] == [int(x or 0) for x in a.groups()[:3]]


def _ratio(gold: str, answer: str) -> bool | None:
    g, a = _RATIO.fullmatch(gold), _RATIO.fullmatch(answer)
    if not g or not a:
        return None
    return Fraction(g[1]) * Fraction(a[2]) == Fraction(g[2]) * Fraction(a[1])


def _base(gold: str, answer: str) -> bool | None:
    """`101_2`: digits in a base. A base that only one side names is not asked for."""
    g, a = _BASE.fullmatch(gold), _BASE.fullmatch(answer)
    if not g:
        return None
    if not a:
        return g[1] == answer if answer.isalnum() else None
    try:
        return int(g[1], int(g[2])) == int(a[1], int(a[2]))
    except ValueError:  # a digit outside of its base
        return False


def is_words(text: str) -> bool:
    r"""A gold answer of words: `Wednesday`, `\text{even}`; not `xy`, `\pi`, `2x`."""
    plain = numbers.clean(text)
    if not plain or _MATH.search(plain):
        return False
    letters = re.findall(r"[^\W\d_]{3,}", plain)
    return bool(letters) or plain != text.strip() or not plain.isascii()


def words(text: str) -> list[str]:
    """The words of a text, case folded, without punctuation and articles."""
    found = re.findall(r"[^\W_]+", numbers.clean(text).casefold())
    return [w for w in found if w not in ("the", "a", "an")] or found


def bare(answer: str) -> str:
    """The answer without box and maths delimiters, as computer algebra takes it."""
    return _outer(unbox(answer))


def self_sufficient(gold: str) -> bool:
    """Can this gold be compared without computer algebra?"""
    plain = numbers.clean(gold)
    return is_words(gold) or any(p.fullmatch(plain) for p in (_CHOICE_GOLD, _CLOCK, _RATIO, _BASE))
