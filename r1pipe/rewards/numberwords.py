"""Numbers written in words: `minus twenty-five`, `three hundred and five`, `two thirds`, `三百零五`."""

from __future__ import annotations

from fractions import Fraction

_SMALL = {
    word: value
    for words, values in (
        ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen", range(16)),
        ("sixteen seventeen eighteen nineteen", range(16, 20)),
        ("twenty thirty forty fifty sixty seventy eighty ninety", range(20, 100, 10)),
    )
    for word, value in zip(words.split(), values, strict=True)
}
_LARGE = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_PARTS = {"half": 2, "halves": 2, "quarter": 4, "quarters": 4} | {
    name + end: d
    for name, d in {"third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "tenth": 10}.items()
    for end in ("", "s")
}
_DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
_PLACES = {"十": 10, "百": 100, "千": 1000}
SCALES = _LARGE | {"百": 10**2, "千": 10**3, "万": 10**4, "百万": 10**6, "千万": 10**7, "亿": 10**8}  # behind digits


def parse(text: str) -> Fraction | None:
    """The number that a whole text spells; None where it spells none."""
    if len(text) > 120:
        return None
    words = text.lower().replace("-", " ").split()
    sign = 1
    if words and words[0] in ("minus", "negative"):
        sign, words = -1, words[1:]
    if len(words) == 2 and words[1] in _PARTS:
        top = 1 if words[0] == "a" else _SMALL.get(words[0], 0)
        return Fraction(sign * top, _PARTS[words[1]]) if top else None
    if "分之" in text:
        denominator, numerator = (_chinese(part) for part in text.split("分之", 1))
        return Fraction(numerator, denominator) if denominator and numerator else None
    value = _english(words) if words and words[0].isascii() else _chinese(text)
    return None if value is None else Fraction(sign * value)


def _english(words: list[str]) -> int | None:
    total = current = 0
    last = 1000  # what the number before stands for: `two three` is no number, `twenty three` is
    for word in words:
        if word in _SMALL:
            number = _SMALL[word]
            if last < 100 and not (last >= 20 and 0 < number < 10):
                return None
            current, last = current + number, max(number, 1)
        elif word == "hundred" and 0 < current < 100:
            current, last = current * 100, 100
        elif word in _LARGE and current:
            total, current, last = total + current * _LARGE[word], 0, 1000
        elif word != "and" or last < 100:
            return None
    return total + current


def _chinese(text: str) -> int | None:
    """Up to 万: `三百零五`, `十二`, `两万`."""
    total = current = 0
    digit: int | None = None
    for char in text:
        if char in _DIGITS:
            if digit:
                return None
            digit = _DIGITS[char]
        elif char in _PLACES:
            current, digit = current + (1 if digit is None else digit) * _PLACES[char], None
        elif char == "万" and (current or digit):
            total, current, digit = (current + (digit or 0)) * 10_000, 0, None
        else:
            return None
    return total + current + (digit or 0) if text else None
