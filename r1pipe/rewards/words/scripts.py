r"""Scripts: which letters belong to which, which languages are written in them, and words counted by script.

A word is a run of letters of one script. Scripts written without spaces have a stated ratio of letters to a word
(LETTERS_PER_WORD). Latin, Cyrillic and Greek letters inside one word are a word of no language: look-alikes
(`рroblem` with a Cyrillic `р`) are how text hides. A single letter of ASCII or Greek is a variable, not a word, and
so is a short mix of Latin and Greek (`Δx`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

LETTERS_PER_WORD = {"han": 1.5, "kana": 2.5, "thai": 4.0, "lao": 4.0, "khmer": 4.0, "myanmar": 4.0, "tibetan": 4.0}
LONG = 24  # a longer run of letters without a space counts as so many words of LONG letters

MIXED = "mixed"  # letters of Latin, Cyrillic and Greek in one word
OTHER = "other"  # letters of a script that is not listed

# script -> the ranges of a character class
CLASSES = {
    "latin": "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u1e00-\u1eff",
    "han": "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
    "kana": "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d",
    "hangul": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af",
    "cyrillic": "\u0400-\u052f\u1c80-\u1c88\u2de0-\u2dff\ua640-\ua69f",
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "arabic": "\u0610-\u061a\u0620-\u065f\u066e-\u06d3\u06d5-\u06ef\u06fa-\u06ff\u0750-\u077f\u08a0-\u08ff"
    "\ufb50-\ufdff\ufe70-\ufefc",
    "hebrew": "\u0591-\u05ea",
    "devanagari": "\u0900-\u0963\u0970-\u097f",
    "bengali": "\u0980-\u09e3\u09f0\u09f1",
    "gurmukhi": "\u0a00-\u0a65\u0a70-\u0a7f",
    "gujarati": "\u0a80-\u0ae5\u0af9-\u0aff",
    "oriya": "\u0b00-\u0b65\u0b71",
    "tamil": "\u0b80-\u0be5",
    "telugu": "\u0c00-\u0c65",
    "kannada": "\u0c80-\u0ce5",
    "malayalam": "\u0d00-\u0d65\u0d7a-\u0d7f",
    "sinhala": "\u0d80-\u0de5\u0df2\u0df3",
    "thai": "\u0e01-\u0e3a\u0e40-\u0e4e",
    "lao": "\u0e80-\u0ecf\u0edc-\u0edf",
    "tibetan": "\u0f40-\u0fbc",
    "myanmar": "\u1000-\u103f\u1050-\u108f",
    "georgian": "\u10a0-\u10ff\u1c90-\u1cbf",
    "armenian": "\u0531-\u0556\u0561-\u0587",
    "ethiopic": "\u1200-\u135a",
    "khmer": "\u1780-\u17d3\u17dc\u17dd",
}
_ALPHABETS = ("latin", "cyrillic", "greek")  # told apart within a word

_LANGUAGES = {
    "latin": "en es fr de pt it vi nl pl tr id ms sv da no nn fi is cs sk sl hr bs ro hu et lv lt sq eu ca "
    "gl ga cy mt af sw tl eo la az uz",
    "han": "zh yue wuu lzh",
    "kana": "ja",
    "hangul": "ko",
    "cyrillic": "ru uk bg be mk sr kk ky mn tg tt ba",
    "greek": "el",
    "arabic": "ar fa ur ps ug ckb sd",
    "hebrew": "he yi",
    "devanagari": "hi mr ne sa",
    "bengali": "bn as",
    "gurmukhi": "pa",
    "gujarati": "gu",
    "oriya": "or",
    "tamil": "ta",
    "telugu": "te",
    "kannada": "kn",
    "malayalam": "ml",
    "sinhala": "si",
    "thai": "th",
    "lao": "lo",
    "tibetan": "bo dz",
    "myanmar": "my",
    "georgian": "ka",
    "armenian": "hy",
    "ethiopic": "am ti",
    "khmer": "km",
}
SHARED = frozenset(("latin", "cyrillic", "arabic", "devanagari"))  # so many languages that script alone says little
_ALIASES = {"nb": "no", "fil": "tl", "iw": "he", "in": "id"}
_SCRIPT_OF = {code: script for script, codes in _LANGUAGES.items() for code in codes.split()}

_ALPHA = "".join(CLASSES[s] for s in _ALPHABETS) + r"\u0300-\u036f"  # with accents that stand alone
_WORDS = re.compile(
    rf"(?P<alpha>[{_ALPHA}]+(?:['’ʼ][{_ALPHA}]+)*)|"
    + "|".join(f"(?P<{s}>[{r}]+)" for s, r in CLASSES.items() if s not in _ALPHABETS)
    + rf"|(?P<{OTHER}>[^\W\d_]+)"
)
_ASCII_WORDS = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)*")
_OF_ALPHABET = {s: re.compile(f"[{CLASSES[s]}]") for s in _ALPHABETS}
FOREIGN = re.compile("[" + "".join(r for s, r in CLASSES.items() if s not in ("latin", "greek")) + "]+")


class Word(NamedTuple):
    """A run of letters: its script, the text, where it starts, and how many words it is worth."""

    script: str
    text: str
    start: int
    worth: float


def base(language: str) -> str:
    """`zh-CN`, `pt_BR` -> `zh`, `pt`."""
    code = language.strip().lower().replace("_", "-").split("-")[0]
    return _ALIASES.get(code, code)


def script_of(language: str) -> str | None:
    """The script of a language code (`zh-CN` -> `han`); None where it is not known."""
    return _SCRIPT_OF.get(base(language))


@lru_cache(maxsize=65536)
def _alphabet(word: str) -> str:
    """The script of a word of Latin, Cyrillic and Greek letters; empty for a variable."""
    if word.isascii():
        return "latin" if len(word) > 1 else ""
    found = [s for s, pattern in _OF_ALPHABET.items() if pattern.search(word)]
    if not found or (found == ["greek"] and len(word) == 1) or (found == ["latin", "greek"] and len(word) <= 3):
        return ""
    return found[0] if len(found) == 1 else MIXED


def words(text: str) -> Iterator[Word]:
    """The words of a text, in order."""
    if text.isascii():
        for match in _ASCII_WORDS.finditer(text):
            word = match[0]
            if len(word) > 1:
                yield Word("latin", word, match.start(), 1.0 if len(word) <= LONG else len(word) / LONG)
        return
    for match in _WORDS.finditer(text):
        script, word = str(match.lastgroup), match[0]
        if script == "alpha":
            script = _alphabet(word)
            if not script:
                continue
        if script in LETTERS_PER_WORD:
            count = sum(c.isalpha() for c in word) / LETTERS_PER_WORD[script]
        else:
            count = 1.0 if len(word) <= LONG else len(word) / LONG
        if count:
            yield Word(script, word, match.start(), count)
