r"""Exact reading of plain numbers: no floats, no sympy, no eval.

Reads integers of any length, decimals, thousands separators (`1,000`, `9{,}500`, `10\,000`), fractions (`2/3`,
`\frac{-3}{4}`, `\frac12`, `1/2` as one character), mixed numbers (`2 2/3`, `2\frac12`; the fraction must be proper),
repeating decimals (`0.\overline{3}`), scientific notation, fullwidth digits, the Unicode minus, percent, money and a
unit behind the number. Anything else is None: left to the general comparison, or not a number.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction

MAX_DIGITS = 20_000  # longer numbers are not read: converting them is quadratic
MAX_EXPONENT = 5_000

_FULLWIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_SIGNS = {0x2212: "-", 0xFE63: "-", 0x2010: "-", 0x2011: "-", 0x2013: "-", 0x2044: "/", 0x2215: "/"}
_SPACES = {0x00A0: " ", 0x3000: " ", 0x2009: r"\,", 0x202F: r"\,", 0x2007: r"\,"}
_TABLE: dict[int, str | int | None] = {**_FULLWIDTH, **_SIGNS, **_SPACES}

_WRAPPED = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathsf|mbox|emph)\s*\{([^{}]*)\}")
_CURRENCY = re.compile(r"^([+-]?)\s*(?:US)?[$€£¥₹]\s*")
_INT = r"(?:\d{1,3}(?:,\d{3})+|\d+)"
_DECIMAL = rf"(?:{_INT}(?:\.\d*)?|\.\d+)"
_NUMBER = re.compile(
    rf"""(?P<sign>[+-]?)\s*(?:
      (?P<whole>{_INT})(?:\s+|\s*(?=\\frac)) (?:(?P<mn>\d+)\s*/\s*(?P<md>\d+)|\\frac\{{(?P<ln>\d+)\}}\{{(?P<ld>\d+)\}})
    | \\frac\{{(?P<fn>[+-]?{_DECIMAL})\}}\{{(?P<fd>[+-]?{_DECIMAL})\}}
    | (?P<n>{_DECIMAL})\s*/\s*(?P<d>{_DECIMAL})
    | (?P<pre>\d*\.\d*)(?:\\overline|\\dot|\\bar)\{{(?P<rep>\d+)\}}
    | (?P<dec>{_DECIMAL})
      (?:[eE](?P<exp>[+-]?\d{{1,5}})|\s*(?:\\times|\\cdot|×|\*)\s*10\^\{{?(?P<sci>[+-]?\d{{1,5}})\}}?)?
    )""",
    re.VERBOSE,
)
_UNIT = re.compile(r"[A-Za-z°µΩ\u4e00-\u9fff][A-Za-z°µΩ\u4e00-\u9fff/^0-9²³ .]{0,30}")
TOKEN = re.compile(rf"(?<![A-Za-z0-9.^_])[+-]?\s?[$€£¥]?{_DECIMAL}(?:\s*/\s*{_DECIMAL})?(?:\s?%)?(?![A-Za-z(^_])")


@dataclass(frozen=True, slots=True)
class Quantity:
    """An exact value; `percent` where a percent sign stood behind it; `unit` is lower-case text or ""."""

    value: Fraction
    percent: bool = False
    unit: str = ""


def clean(text: str) -> str:
    r"""One spelling for what looks the same: ASCII digits and signs, `\dfrac` as `\frac`, no `\text`, no spacing
    commands, no maths delimiters, no bold, no trailing full stop."""
    text = re.sub(r"\s+", " ", text.translate(_TABLE)).strip()
    text = re.sub(r"\*\*(.+?)\*\*", r"\1", text)
    text = re.sub(r"(?<=\d)(?:\\[,!; ]\s*|\{,\}|,\\!)+(?=\d{3}(?!\d))", ",", text)
    text = re.sub(r"\\(?:left|right|displaystyle|textstyle|limits|bigl|bigr)(?![A-Za-z])|\\[,!;:]", " ", text)
    text = text.replace("\\ ", " ").replace("~", " ").replace("\\$", "$").replace("\\%", "%")
    text = re.sub(r"\\[dtc]frac(?![A-Za-z])", r"\\frac", text)
    text = re.sub(r"\s+", " ", text)  # again: the patterns below are slow on runs of spaces
    text = re.sub(r"\\frac\s*(\d)\s*(\d)(?!\d)", r"\\frac{\1}{\2}", text)
    text = re.sub(r"\\frac\s*\{\s*([^{}]*?)\s*\}\s*\{\s*([^{}]*?)\s*\}", r"\\frac{\1}{\2}", text)
    text = _undelimit(text)
    for _ in range(3):
        text = _WRAPPED.sub(r"\1", text)
    text = re.sub(r"\^\s*\{?\s*\\circ\s*\}?|\\degree\b", "°", text)
    text = "".join(_vulgar(c) for c in text)
    return re.sub(r"\s+", " ", text).strip().rstrip("。").removesuffix(".").strip()


def _undelimit(text: str) -> str:
    for opening, closing in (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"), ("$", "$")):
        inner = text[len(opening) : -len(closing)]
        around = len(text) > len(opening) + len(closing) and text.startswith(opening) and text.endswith(closing)
        if around and opening not in inner and closing not in inner:
            return inner.strip()
    return text


def _vulgar(char: str) -> str:
    """One-half as one character -> ` 1/2`."""
    if char.isascii() or unicodedata.category(char) != "No":
        return char
    spelled = unicodedata.normalize("NFKC", char).replace("\u2044", "/")
    return f" {spelled}" if re.fullmatch(r"\d+/\d+", spelled) else char


def integer(digits: str) -> int:
    """`int` for any number of digits, without lifting Python's process-wide limit. ValueError above MAX_DIGITS."""
    digits = digits.replace(",", "")
    if len(digits) > MAX_DIGITS:
        raise ValueError("too many digits")
    value = 0
    for start in range(0, len(digits), 4000):
        chunk = digits[start : start + 4000]
        value = value * 10 ** len(chunk) + int(chunk)
    return value


def _decimal(text: str) -> Fraction:
    sign = -1 if text.startswith("-") else 1
    whole, _, after = text.lstrip("+-").replace(",", "").partition(".")
    return sign * Fraction(integer((whole + after) or "0"), 10 ** len(after))


def parse(text: str) -> Quantity | None:
    """The number that `text` is, as a whole; None where it is anything else."""
    text = clean(text)
    money = _CURRENCY.match(text)
    if money:
        text = money[1] + text[money.end() :]
    match = _NUMBER.match(text)
    if not match:
        return None
    try:
        value = _value(match)
    except (ValueError, ZeroDivisionError):
        return None
    if value is None:
        return None
    rest = text[match.end() :].strip()
    if rest in ("%", "percent", "per cent", "percentage"):
        return Quantity(value, percent=True)
    if not rest or rest == "$":
        return Quantity(value)
    if rest[0] in "eE" and len(rest) == 1:  # `2e`: Euler's number, not a unit
        return None
    if _UNIT.fullmatch(rest) and _is_unit(rest):
        return Quantity(value, unit=rest.lower() if len(rest) > 3 else rest)
    return None


def _is_unit(rest: str) -> bool:
    """`70,000 dollars`, `5 km`, `3 m^2`; not `3x`, `2ab`, `4 or 5`, `2 pi`. Two- and three-letter words count only
    where they are known units: they may be products of variables."""
    words = rest.split()
    if len(words) > 3 or re.search(r"(?<![A-Za-z^²³])\d", rest):
        return False
    if {w.lower().rstrip(".") for w in words} & _NO_UNIT:
        return False
    first = re.split(r"[/^ .]", rest, maxsplit=1)[0]
    return first in UNITS or len(first) > 3 or not rest.isascii()


_NO_UNIT = frozenset(
    {"or", "and", "pi", "to", "is", "if", "mod", "not", "but", "minus", "plus", "times", "over", "maybe"}
)


def _value(match: re.Match[str]) -> Fraction | None:
    g = match.groupdict()
    sign = -1 if g["sign"] == "-" else 1
    if g["whole"] is not None:
        n, d = integer(g["mn"] or g["ln"]), integer(g["md"] or g["ld"])
        return sign * (integer(g["whole"]) + Fraction(n, d)) if n < d else None
    if g["fn"] is not None:
        return sign * _decimal(g["fn"]) / _decimal(g["fd"])
    if g["n"] is not None:
        return sign * _decimal(g["n"]) / _decimal(g["d"])
    if g["rep"] is not None:
        repeated = Fraction(integer(g["rep"]), 10 ** len(g["rep"]) - 1)
        return sign * (_decimal(g["pre"]) + repeated / 10 ** len(g["pre"].partition(".")[2]))
    exponent = int(g["exp"] or g["sci"] or 0)
    if abs(exponent) > MAX_EXPONENT:
        return None
    return sign * _decimal(g["dec"]) * Fraction(10) ** exponent


# unit -> (what it measures, factor to the base unit)
UNITS: dict[str, tuple[str, Fraction]] = {
    name: (what, Fraction(factor))
    for what, units in {
        "length": {"mm": "1/1000", "cm": "1/100", "dm": "1/10", "m": "1", "km": "1000"},
        "mass": {"mg": "1/1000", "g": "1", "kg": "1000", "t": "1000000"},
        "time": {
            "ms": "1/1000",
            "s": "1",
            "min": "60",
            "h": "3600",
            "seconds": "1",
            "minutes": "60",
            "hours": "3600",
        },
        "volume": {"ml": "1/1000", "mL": "1/1000", "L": "1", "l": "1"},
        "angle": {"°": "1", "degrees": "1"},
        "money": {"cents": "1/100", "dollars": "1"},
    }.items()
    for name, factor in units.items()
}


def same(gold: Quantity, answer: Quantity) -> bool:
    """Exactly equal. Policies: a unit that only one side names is not asked for; two known units are converted, or
    differ when they measure different things; other words behind the number are not compared. A percent sign may
    be dropped or added (28 = 28 %), and 28 % = 0.28."""
    if gold.percent != answer.percent:
        percent, bare = (gold, answer) if gold.percent else (answer, gold)
        return bare.value == percent.value or bare.value == percent.value / 100
    if gold.unit != answer.unit and gold.unit in UNITS and answer.unit in UNITS:
        (kind, factor), (other, scale) = UNITS[gold.unit], UNITS[answer.unit]
        return kind == other and gold.value * factor == answer.value * scale
    return gold.value == answer.value
