r"""Answers that are text: choices, words, yes and no, dates, clock times, compared by what they mean.

All functions take texts that `numbers.clean` has been over, and say None where a text is not of their kind.
"""

from __future__ import annotations

import re

from r1pipe.rewards import numbers
from r1pipe.rewards.mathclean import clean

_NOT = r"(?:not|wrong|incorrect|false|never|isn't|n't|错|不)"
_LETTER_GOLD = re.compile(r"[(\[]?([A-J])[)\]]?[.:]?(?:\s+(?P<text>.+)|$)", re.DOTALL)
_LETTERS_GOLD = re.compile(r"\(?[A-J]\)?(?:\s*(?:,|and|&|;|和|、)?\s*\(?[A-J]\)?)+")
_LETTER = re.compile(
    r"""(?:(?:the|correct|right|best|final|answer|option|choice|letter|is|选项|选择|选|答案|为|是|故|应)[\s:]*)*
    (?:[(\[]\s?(?P<a>[A-Za-z])\s?[)\]]|(?P<b>[A-Za-z])(?=[):.,、]|\s*$|\s+(?:is|was)\b))[):.,、]*(?P<rest>.*)""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_OTHER_LETTER = re.compile(
    r"(?:\bor\b|\band\b|\bmaybe\b|\bperhaps\b|[/,&;]|或|和)\s*(?:option|choice)?\s*\(?[A-J]\b|[(\[][A-J][)\]]|^\s*[A-J]\s*$"
)
_MATH = re.compile(r"[\d^_=<>+*/\\|{}\[\]±∞√]")
_DENIAL = re.compile(rf"\s*(?:is|was)?\s*{_NOT}|\s*\?", re.IGNORECASE)

# what is said instead of a value; the first spelling stands for all
_PHRASES = {
    same: group[0]
    for group in (
        ["no solution", "no solutions", "no real solution", "no real solutions", "there is no solution",
         "there are no solutions", "has no solution", "has no solutions", "无解", "empty set", "the empty set", "空集",
         "没有解", "无实数解"],
        ["all real numbers", "all reals", "any real number", "all real x", "every real number", "real numbers",
         "所有实数", "全体实数", "任意实数", "x is any real number", "all real numbers x"],
        ["does not exist", "dne", "doesn't exist", "不存在", "do not exist", "no such number exists"],
        ["infinity", "positive infinity", "+infinity", "无穷大", "正无穷", "无穷"],
        ["negative infinity", "-infinity", "minus infinity", "负无穷"],
        ["infinitely many", "infinitely many solutions", "infinite", "infinite solutions", "无数个", "无穷多个",
         "there are infinitely many", "无穷多"],
        ["yes", "是", "是的", "对", "正确", "能", "可以"],
        ["no", "否", "不是", "不", "错", "错误", "不能", "不可以"],
    )
    for same in group
}  # fmt: skip
_LATEX = {
    "no solution": r"\emptyset", "all real numbers": r"\mathbb{R}", "infinity": r"\infty",
    "negative infinity": r"-\infty",
}  # fmt: skip
_DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_MONTHS = ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
           "november", "december"]  # fmt: skip
_SHORT = {name[:3]: name for name in _DAYS + _MONTHS} | {"tues": "tuesday", "thur": "thursday", "thurs": "thursday",
          "sept": "september", "weds": "wednesday"}  # fmt: skip
_MONTH = "|".join(sorted([*_MONTHS, *_SHORT.keys() - {d[:3] for d in _DAYS}], key=len, reverse=True))
_DATES = [
    re.compile(rf"(?:[a-z]+day,? )?(?P<m>{_MONTH})\.? (?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?:,? (?P<y>\d{{4}}))?"),
    re.compile(
        rf"(?:[a-z]+day,? )?(?:the )?(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<m>{_MONTH})\.?(?:,? (?P<y>\d{{4}}))?"
    ),
    re.compile(r"(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})"),
    re.compile(r"(?P<m>\d{1,2})/(?P<d>\d{1,2})/(?P<y>\d{4})"),
    re.compile(r"(?:(?P<y>\d{4})年)?(?P<m>\d{1,2})月(?P<d>\d{1,2})[日号]"),
]
_CLOCK = re.compile(
    r"(?:(?P<half>上午|下午|晚上|早上)\s*)?(?P<h>\d{1,2})(?:[:点时](?P<m>\d{2})(?:[:分](?P<s>\d{2})?)?|(?=\s*[ap]\.?m|点|\s*o'clock)点?整?)"
    r"(?:\s*o'clock)?\s*(?P<ap>[ap])?\.?(?(ap)m?\.?)",
    re.IGNORECASE,
)

CLOCK = re.compile(r"(?<![\d:])\d{1,2}:\d{2}(?::\d{2})?(?:\s*[ap]\.?m\b)?(?![\d:])", re.IGNORECASE)


def choice(gold: str, answer: str) -> bool | None:
    """The letter, alone or with its text (`(B) 17`, `D: a polynomial`); a second letter is a hedge. None where the
    gold answer is no choice."""
    if _LETTERS_GOLD.fullmatch(gold):
        letters = set(re.findall("[A-J]", gold))
        return bool(_LETTERS_GOLD.fullmatch(answer.strip())) and set(re.findall("[A-J]", answer)) == letters
    expected = _LETTER_GOLD.fullmatch(gold)
    if not expected or (expected["text"] and not re.match(r"[(\[][A-J][)\]]|[A-J][.:)]", gold)):
        return None
    found = letter(answer)
    if found is None or found[0] != expected[1]:
        return False
    if expected["text"] and found[1]:
        mine, theirs = numbers.parse(expected["text"]), numbers.parse(found[1])
        return not (mine and theirs and not numbers.same(mine, theirs))
    return True


def choice_text(gold: str) -> str | None:
    """The text of a gold answer that is a letter with its text: `(B) 17` -> `17`."""
    match = None if _LETTERS_GOLD.fullmatch(gold) else _LETTER_GOLD.fullmatch(gold)
    return match["text"] if match and match["text"] and re.match(r"[(\[][A-J][)\]]|[A-J][.:)]", gold) else None


def letter(answer: str) -> tuple[str, str] | None:
    """The one letter that an answer chooses, and the text behind it; None where there is none, or more."""
    match = _LETTER.fullmatch(answer.strip().rstrip("."))
    if not match:
        return None
    rest = match["rest"].strip()
    if _OTHER_LETTER.search(rest) or _DENIAL.match(rest):
        return None
    return (match["a"] or match["b"]).upper(), rest


def phrase(text: str) -> str:
    """One spelling for what is said instead of a value: `No solutions.` is `no solution`, `DNE` `does not exist`."""
    if len(text) > 40:
        return text
    return _PHRASES.get(re.sub(r"\s+", " ", text.casefold().strip(" .!,'\"")), text)


def as_latex(text: str) -> str:
    r"""`no solution` as `\emptyset`, `any real number` as `\mathbb{R}`; other texts as they are."""
    return _LATEX.get(phrase(text), text)


def is_words(text: str) -> bool:
    r"""A gold answer of words: `Wednesday`, `\text{even}`; not `xy`, `\pi`, `2x`."""
    plain = clean(text)
    if not plain or _MATH.search(plain):
        return False
    if plain.casefold() in _PHRASES:
        return True
    letters = re.findall(r"[^\W\d_]{3,}", plain)
    return bool(letters) or plain != text.strip() or not plain.isascii()


def words(text: str) -> list[str]:
    """The words of a text, case folded, without punctuation and articles; days and months in full."""
    plain = phrase(clean(text))
    found = re.findall(r"[^\W_]+(?:'[^\W_]+)?", plain.casefold())
    return [_SHORT.get(w, w) for w in found if w not in ("the", "a", "an")] or found


_OPPOSITE = {"yes": "no", "no": "yes", "true": "false", "false": "true"}


def same_words(gold: str, answer: str) -> bool:
    """The same words; for yes and no the first word counts, where the other is not said."""
    expected, found = words(gold), words(answer)
    if expected == found:
        return not answer.rstrip().endswith("?")
    if len(expected) == 1 and (opposite := _OPPOSITE.get(expected[0])):
        said = re.match(r"\w+[,.;!:，。]", clean(answer))  # `Yes, because ...`
        denied = opposite in found or (expected[0] != "no" and "not" in found)
        return bool(said) and found[:1] == expected and not denied
    return False


def date(text: str) -> tuple[int | None, int, int] | None:
    """Year, month and day."""
    text = re.sub(r"\s+", " ", text.casefold()).strip(" .")
    if len(text) > 40:
        return None
    for pattern in _DATES:
        if match := pattern.fullmatch(text):
            month = match["m"]
            number = int(month) if month.isdigit() else _MONTHS.index(_SHORT.get(month, month)) + 1
            day = int(match["d"])
            if 1 <= number <= 12 and 1 <= day <= 31:
                return int(match["y"]) if match["y"] else None, number, day
    return None


def same_date(gold: str, answer: str) -> bool | None:
    mine, theirs = date(gold), date(answer)
    if mine is None:
        return None
    return theirs is not None and mine[1:] == theirs[1:] and (None in (mine[0], theirs[0]) or mine[0] == theirs[0])


def clock(text: str) -> tuple[int, int, int, str] | None:
    """Hours, minutes, seconds, and a or p ("" where it is not said, and the hour does not tell)."""
    text = {"noon": "12:00 pm", "midnight": "12:00 am"}.get(text.casefold(), text)
    match = _CLOCK.fullmatch(text.strip()) if len(text) < 30 else None
    if not match:
        return None
    h, m, s = int(match["h"]), int(match["m"] or 0), int(match["s"] or 0)
    if h > 24 or m > 59 or s > 59:
        return None
    half = {"上午": "a", "早上": "a", "下午": "p", "晚上": "p", None: ""}[match["half"]] or (match["ap"] or "").lower()
    if half and h <= 12:
        return h % 12, m, s, half
    if h > 12:
        return (h - 12) % 12, m, s, "p"
    return h, m, s, "a" if h == 0 else ""


def same_clock(gold: str, answer: str) -> bool | None:
    """None where one of them is no time of day."""
    g, a = clock(gold), clock(answer)
    if g is None or a is None:
        return None
    (hour, *rest, half), (other, *others, other_half) = g, a
    return hour % 12 == other % 12 and rest == others and ("" in (half, other_half) or half == other_half)


_BASE = re.compile(
    r"\(?\s?([0-9A-Za-z]+)\s?\)?\s?"
    r"(?:_\s?\{?\(?(\d{1,2}|[a-z]{3,8})\)?\}?|,?\s?\(?\s?(?:in )?base[- ](\d{1,2}|[a-z]{3,8})\)?)"
)
_BASES = {
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "sixteen": 16,
}


def based(text: str) -> tuple[str, int] | None:
    """Digits and their base: `101_2`, `(1F)_{16}`, `101 base 2`."""
    match = _BASE.fullmatch(text) if len(text) < 2_000 else None
    if not match:
        return None
    digits, name = match[1], match[2] or match[3]
    base = int(name) if name.isdigit() else _BASES.get(name, 0)
    if not 2 <= base <= 36 or any(c not in "0123456789abcdefghijklmnopqrstuvwxyz"[:base] for c in digits.lower()):
        return None
    return (digits, base) if re.search(r"\d", digits) or digits.isupper() else None  # `a_{12}` is a name


def same_base(gold: str, answer: str) -> bool | None:
    """A base that only the gold names is not asked for. None where the gold names none."""
    g, a = based(gold), based(answer)
    if g is None:
        return None
    if a is None:
        return g[0].lower() == answer.strip("() ").lower() if answer.strip("() ").isalnum() else None
    return int(g[0], g[1]) == int(a[0], a[1])


def ratio(text: str) -> list[str] | None:
    """The parts of a ratio: `1:2`, `3 to 4`, `1 : \\sqrt{3}`."""
    parts = re.split(r"\s*(?::|\\colon|\bto\b)\s*", text)
    return parts if 2 <= len(parts) <= 6 and all(parts) and len(text) < 200 else None
