r"""Exact reading of plain numbers: no floats, no sympy, no eval.

Reads integers of any length, decimals, thousands separators (`1,000`, `9{,}500`, `10\,000`, `1 234 567`, `12,34,567`),
fractions (`2/3`, `\frac{-3}{4}`, `\frac12`, `½`), mixed numbers (`2 2/3`, `2\frac12`; the fraction must be proper),
repeating decimals (`0.\overline{3}`, `0.1\dot{6}`, `0.333...`), scientific notation, percent, money, number words
(`twenty-five`, `3 million`, `1.2万`) and a unit behind the number. Anything else is None: left to the general
comparison, or not a number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from r1pipe.rewards import mathunits, numberwords
from r1pipe.rewards.mathclean import clean
from r1pipe.rewards.shortcache import short_cache

MAX_DIGITS = 20_000  # longer numbers are not read: converting them is quadratic
MAX_EXPONENT = 5_000

_INT = (
    r"(?:\d{1,3}(?:,\d{3})+|\d{1,3}(?:[ ]\d{3})+(?![\d]|[ ]?[\d/])|\d{1,3}(?:['_]\d{3})+|\d{1,2}(?:,\d{2})+,\d{3}|\d+)"
)
_DECIMAL = rf"(?:{_INT}(?:\.\d*)?|\.\d+)"
_REPEAT = (
    r"(?:\\dot\{?(?P<d1>\d)\}?(?P<d2>\d*)\\dot\{?(?P<d3>\d)\}?"
    r"|\\(?:overline|bar|dot)\{(?P<rep>\d+)\}|\((?P<rep2>\d+)\))"
)
_NUMBER = re.compile(
    rf"""(?P<sign>[+-]?)\s*(?:
      (?P<whole>{_INT})(?:\s+|\s*(?=\\frac)) (?:(?P<mn>\d+)\s*/\s*(?P<md>\d+)|\\frac\{{(?P<ln>\d+)\}}\{{(?P<ld>\d+)\}})
    | \\frac\{{(?P<fn>[+-]?\s?{_DECIMAL})\}}\{{(?P<fd>[+-]?\s?{_DECIMAL})\}}
    | (?P<n>{_DECIMAL})\s*/\s*(?P<d>{_DECIMAL})
    | (?P<pre>\d*\.\d*){_REPEAT}
    | (?P<cut>\d*\.\d+)\s*(?:\.\.\.|\\[lcd]?dots)
    | (?P<dec>{_DECIMAL})
      (?:[eE](?P<exp>[+-]?\d{{1,5}})|\s*(?:\\times|\\cdot|\*|x)\s*10(?:\^|\*\*)\{{?\(?\s?(?P<sci>[+-]?\s?\d{{1,5}})\)?\}}?)?
    )(?![\d.])""",
    re.VERBOSE,
)
_MONEY = re.compile(r"^([+-]?)\s*((?:US)?\$|[€£¥₹])\s*")
_MINUS = re.compile(r"^(?:minus|negative|负)\s*(?=\d)", re.IGNORECASE)
_SCALE = re.compile(rf"\s*({'|'.join(sorted(numberwords.SCALES, key=len, reverse=True))})(?![A-Za-z])", re.IGNORECASE)
_NOUN = re.compile(r"[^\W\d_][^\W\d_'.-]*(?:[ -][^\W\d_][^\W\d_'.-]*){0,2}")
TOKEN = re.compile(
    rf"(?<![A-Za-z0-9.^_/])[+-]?\s?[$€£¥]?{_DECIMAL}(?:\s*/\s*{_DECIMAL})?(?:[eE][+-]?\d+)?(?:\s?%)?(?![A-Za-z(^_\d])"
)


@dataclass(frozen=True, slots=True)
class Quantity:
    """An exact value; `percent` where a percent sign stood behind it; `unit` as it was written, or ""."""

    value: Fraction
    percent: bool = False
    unit: str = ""


def integer(digits: str) -> int:
    """`int` for any number of digits, without lifting Python's process-wide limit. ValueError above MAX_DIGITS."""
    digits = re.sub("[,' _]", "", digits)
    if len(digits) > MAX_DIGITS:
        raise ValueError("too many digits")
    value = 0
    for start in range(0, len(digits), 4000):
        chunk = digits[start : start + 4000]
        value = value * 10 ** len(chunk) + int(chunk)
    return value


def decimal(text: str) -> Fraction:
    """`-1,234.5e-3`. ValueError where it is too long or too large."""
    mantissa, _, exponent = text.lower().partition("e")
    sign = -1 if mantissa.startswith("-") else 1
    whole, _, after = mantissa.lstrip("+- ").partition(".")
    if exponent and abs(int(exponent)) > MAX_EXPONENT:
        raise ValueError("too large an exponent")
    value = Fraction(sign * integer((whole + after) or "0"), 10 ** len(after))
    return value * Fraction(10) ** int(exponent) if exponent else value


@short_cache(16_384)
def parse(text: str) -> Quantity | None:
    """The number that `text` is, as a whole; None where it is anything else."""
    text = clean(text)
    if text.isdigit() and len(text) < 20:
        return Quantity(Fraction(int(text)))
    while len(text) > 2 and text[0] == "(" and text[-1] == ")" and "(" not in text[1:]:
        text = text[1:-1].strip()
    currency = ""
    if money := _MONEY.match(text):
        text, currency = money[1] + text[money.end() :], money[2].removeprefix("US")
    text = _MINUS.sub("-", text, count=1)
    percent = text.startswith("百分之")
    match = _NUMBER.match(text.removeprefix("百分之"))
    if not match:
        words = numberwords.parse(text)
        return Quantity(words) if words is not None and not currency else None
    try:
        value = _value(match)
    except (ValueError, ZeroDivisionError):
        return None
    if value is None:
        return None
    rest = match.string[match.end() :]
    if scale := _SCALE.match(rest):
        value, rest = value * numberwords.SCALES[scale[1].lower()], rest[scale.end() :]
    spaced, rest = rest.startswith(" ") or not rest.isascii(), rest.strip()
    if rest in ("%", "percent", "per cent", "percentage"):
        return Quantity(value, percent=True)
    if currency:
        return Quantity(value, unit=currency) if not rest or mathunits.parse(rest) is not None else None
    if not rest:
        return Quantity(value, percent=percent)
    if mathunits.parse(rest) is not None:
        return Quantity(value, unit=rest) if spaced or not rest.isalpha() or len(rest) > 2 or rest in _GLUED else None
    if (total := _compound(text)) is not None:
        return total
    return Quantity(value, unit=rest) if _is_noun(rest) else None


def _compound(text: str) -> Quantity | None:
    """`3 hours 30 minutes`, `5 ft 6 in`: in the last of its units, which get smaller."""
    if len(text) > 60:
        return None
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*([A-Za-z\u4e00-\u9fff]{1,12})\s*,?\s*(?:and\s+)?", text)
    if not 2 <= len(parts) <= 4 or re.sub(r"[\s,]|\band\b", "", text) != "".join(n + u for n, u in parts):
        return None
    total, unit = Fraction(0), ""
    for number, name in parts:
        ratio = mathunits.ratio(unit or name, name)
        if not ratio or (unit and ratio <= 1):
            return None
        total, unit = total * ratio + decimal(number), name
    return Quantity(total, unit=unit)


_GLUED = frozenset({"cm", "mm", "km", "kg", "mg", "ml", "mL", "ms", "ft", "kW", "Hz"})  # `5cm`; `5ab` is a product
_NO_NOUN = frozenset(
    [
        "or",
        "and",
        "pi",
        "to",
        "is",
        "if",
        "mod",
        "not",
        "but",
        "minus",
        "plus",
        "times",
        "over",
        "maybe",
        "than",
        "then",
        "times",
        "divided",
        "less",
        "more",
        "sqrt",
        "squared",
        "cubed",
        "factorial",
        "degrees",
        "sin",
        "cos",
        "tan",
        "log",
        "ln",
        "exp",
        "inf",
        "infinity",
        "either",
        "neither",
        "nor",
        "vs",
        "versus",
        "wrong",
        "incorrect",
        "right",
        "correct",
        "through",
        "until",
        "from",
        "with",
        "where",
        "when",
        "that",
    ]
)


def _is_noun(rest: str) -> bool:
    """`apples`, `red marbles`, `个苹果`; not `ab` (a product), `or 5`."""
    match = _NOUN.fullmatch(rest)
    if not match:
        return False
    words = re.split("[ -]", rest.lower())
    return not _NO_NOUN & set(words) and any(len(w) > 3 or not w.isascii() for w in words)


def _value(match: re.Match[str]) -> Fraction | None:
    g = match.groupdict()
    sign = -1 if g["sign"] == "-" else 1
    if g["whole"] is not None:
        n, d = integer(g["mn"] or g["ln"]), integer(g["md"] or g["ld"])
        return sign * (integer(g["whole"]) + Fraction(n, d)) if n < d else None
    if g["fn"] is not None:
        return sign * decimal(g["fn"]) / decimal(g["fd"])
    if g["n"] is not None:
        return sign * decimal(g["n"]) / decimal(g["d"])
    if g["pre"] is not None:
        period = g["rep"] or g["rep2"] or g["d1"] + g["d2"] + g["d3"]
        return sign * _repeating(g["pre"], period)
    if g["cut"] is not None:
        cut = _PERIOD.fullmatch(g["cut"])
        return sign * _repeating(cut[1], cut[2]) if cut else None
    value = decimal(g["dec"])
    if exponent := g["exp"] or g["sci"]:
        power = int(exponent.replace(" ", ""))
        if abs(power) > MAX_EXPONENT:
            return None
        value *= Fraction(10) ** power
    return sign * value


_PERIOD = re.compile(r"(\d*\.\d*?)(\d{2,12}?|(\d)(?=\3))\2+")  # 0.333, 0.1666, 0.142857142857: what repeats


def _repeating(before: str, period: str) -> Fraction:
    repeated = Fraction(integer(period), 10 ** len(period) - 1)
    return decimal(before) + repeated / 10 ** len(before.partition(".")[2])


def same(gold: Quantity, answer: Quantity) -> bool:
    """Exactly equal. Policies: a unit that only one side names is not asked for; two known units are converted, or
    differ when they measure different things; other words behind the number are not compared. A percent sign may
    be dropped or added (28 = 28 %), and 28 % = 0.28."""
    if gold.percent != answer.percent:
        percent, bare = (gold, answer) if gold.percent else (answer, gold)
        return not bare.unit and (bare.value == percent.value or bare.value == percent.value / 100)
    if gold.unit != answer.unit:
        ratio = mathunits.ratio(gold.unit, answer.unit)
        if ratio is not None:
            return ratio != 0 and gold.value * ratio == answer.value
    return gold.value == answer.value
