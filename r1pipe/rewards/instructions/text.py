"""Counting in text: words, sentences, paragraphs, list items, emphasis. Every pattern is bounded or linear.

Words: letters and digits, joined by an apostrophe, a hyphen, or a point between digits (`don't`, `well-known`, `3.14`
are one each). Chinese and Japanese are counted in characters, as people and word processors there count; Thai, which
writes no spaces, in CHARS_PER_THAI_WORD letters.

Sentences end at `.`, `!`, `?` before white space, at 。！？।؟۔, at a blank line, and before a list item. Not at titles
(Mr.), abbreviations (e.g.), initials, list numbers, nor at dots or quotes that a small letter follows. Headings,
`<<titles>>` and dividers are no sentences.
"""

from __future__ import annotations

import re
from functools import lru_cache

CHARS_PER_THAI_WORD = 4

_CJK = "\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_THAI = "\u0e01-\u0e4e"
# Vowel signs and accents, which `\w` leaves out, and joiners within words
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0711"
    "\u0730-\u074a\u07a6-\u07b0\u0816-\u082d\u0859-\u085b\u0898-\u0963\u0970-\u0dff\u0eb1-\u0ecd\u0f18-\u0fbc"
    "\u102b-\u109d\u135d-\u135f\u1712-\u17d3\u180b-\u180d\u1ab0-\u1c37\u1dc0-\u1dff\u200c\u200d\u20d0-\u20f0"
)
_LETTER = rf"(?:(?![{_CJK}{_THAI}])[^\W_]|[{_MARKS}])"
_WORD = re.compile(rf"{_LETTER}+(?:(?:['’\-]|(?<=\d)[.,](?=\d)){_LETTER}+)*|[{_CJK}]|[{_THAI}]+")

_LINE_START = r"^[ \t]*"
_BULLET = re.compile(_LINE_START + r"[*+\-][ \t]+(?=\S)(?![*\-_ \t]+$)", re.MULTILINE)
_ITEM = re.compile(_LINE_START + r"(?:[*+\-•]|\d{1,3}[.)])[ \t]+(?=\S)", re.MULTILINE)
_NO_SENTENCE = re.compile(_LINE_START + r"(?:#{1,6}[ \t].*|<<.*>>|[*\-_=][*\-_= \t]{2,})$", re.MULTILINE)
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_END = re.compile(r"[.!?…]{1,50}[\"'”’»)\]*_]{0,9}(?=\s|$)|[。！？।॥؟۔]{1,50}[\"”’」』）)]{0,9}")
_ABBREVIATIONS = frozenset(
    re.findall(
        r"\w+",
        "mr mrs ms mx dr prof rev hon sr jr st mt ft gen col sgt capt lt gov sen rep vs cf al ca approx dept est fig "
        "figs eq eqs sec ch vol ed eds jan feb mar apr jun jul aug sep sept oct nov dec p pp",
    )
)
_EMPHASIS = re.compile(r"(?<![*\\])(\*{1,3})(?=[^\s*])([^*\n]{1,1000})(?<=[^\s*])\1(?!\*)")
_PLACEHOLDER = re.compile(r"(?<!\\)\[([^\[\]\n]{1,200})\](?!\()")


@lru_cache(maxsize=4)  # several checks of one answer
def words(text: str) -> tuple[str, ...]:
    """The words, in order; a run of Thai as it stands."""
    return tuple(_WORD.findall(text))


def word_count(text: str) -> int:
    return sum(max(1, len(w) // CHARS_PER_THAI_WORD) if "\u0e01" <= w[0] <= "\u0e4e" else 1 for w in words(text))


def has_words(text: str) -> bool:
    return _WORD.search(text) is not None


def capital_words(text: str) -> int:
    """Words of two letters or more, all of them capital (`NASA`, `NASA's`; not `I`, `A`)."""
    bare = (re.split("['’]", w, maxsplit=1)[0] for w in words(text))
    return sum(w.isupper() and sum(c.isalpha() for c in w) > 1 for w in bare)


def occurrences(text: str, keyword: str) -> int:
    """How often a keyword stands in a text as words of its own, letter case apart. Between the characters of scripts
    without spaces any place is a word's own."""
    parts = keyword.split()
    if not parts:
        return 0
    before = rf"(?<!{_LETTER})" if re.match(_LETTER, parts[0]) else ""
    after = rf"(?!{_LETTER})" if re.search(rf"{_LETTER}$", parts[-1]) else ""
    pattern = re.compile(before + r"\s{1,9}".join(map(re.escape, parts)) + after, re.IGNORECASE)
    return sum(1 for _ in pattern.finditer(text))


def sentence_count(text: str) -> int:
    text = _NO_SENTENCE.sub("\n\n", text)
    blocks = _BLANK_LINE.split(_ITEM.sub("\n\n", text))
    return sum(_sentences(block) for block in blocks)


def _sentences(block: str) -> int:
    count = start = 0
    for match in _END.finditer(block):
        if _ends(block, start, match):
            count += has_words(block[start : match.end()])
            start = match.end()
    return count + has_words(block[start:])


def _ends(block: str, start: int, match: re.Match[str]) -> bool:
    mark = match[0]
    if mark[0] in "。！？।॥؟۔":
        return True
    following = block[match.end() : match.end() + 9].lstrip()[:1]
    if following.islower() and (mark.startswith(("..", "…")) or mark[-1] in "\"'”’»)"):
        return False  # `Well... maybe`, `"Really?" she asked`
    if mark[0] != "." or mark.startswith(".."):
        return True
    last = block[max(start, match.start() - 20) : match.start()].split()[-1:]
    word = last[0].lstrip("\"'“‘(*_") if last else ""
    if re.fullmatch(r"[A-Z]", word) and word != "I":
        return not following.isupper()  # an initial
    if re.fullmatch(r"(?:[A-Za-z]\.){1,4}[A-Za-z]", word):  # e.g., U.S.
        return not following
    if word.casefold() == "no":
        return not following.isdigit()
    return word.casefold() not in _ABBREVIATIONS


def paragraphs(text: str) -> list[str]:
    """Separated by blank lines."""
    return [p.strip() for p in _BLANK_LINE.split(text) if p.strip()]


def bullets(text: str) -> int:
    """Markdown bullets: `*`, `-` or `+`, then a space; rules such as `* * *` are none."""
    return len(_BULLET.findall(text))


def emphasised(text: str) -> int:
    """Spans in `*`, `**` or `***`, on one line."""
    return sum(has_words(m[2]) for m in _EMPHASIS.finditer(text))


def placeholders(text: str) -> int:
    """`[address]`; not `[1]`, nor the boxes of a task list, nor the text of a link."""
    return sum(any(c.isalpha() for c in m[1]) and m[1] not in "xX" for m in _PLACEHOLDER.finditer(text))
