"""Which language a text is in, for rows that do not say: by script, and by the most frequent words where languages
share one. A text that shows nothing (numbers, formulas) counts as English."""

from __future__ import annotations

import re

REMEMBERED = 1 << 17
MOST, WORDS = 400, 50  # characters and words that are looked at
ENOUGH = 3  # frequent words that another language than the script's first must show
_LATIN = re.compile(r"[A-Za-z]{2,}(?:'[A-Za-z]+)?")
_FORMULAS = re.compile(
    r"\$[^$]{0,2000}\$|\\\(.{0,2000}?\\\)|\\\[.{0,2000}?\\\]|\\[A-Za-z]+|```.*?(?:```|$)|<[^<>]{0,100}>", re.DOTALL
)
_SHARED = {  # script -> its languages that are told apart, the one that counts without evidence first
    "latin": ("en", "es", "fr", "de", "pt", "it", "vi"),
    "cyrillic": ("ru", "uk", "bg"),
    "arabic": ("ar", "fa", "ur"),
    "devanagari": ("hi", "mr"),
}
_OWN = {
    "han": "zh", "kana": "ja", "hangul": "ko", "greek": "el", "hebrew": "he", "bengali": "bn", "gurmukhi": "pa",
    "gujarati": "gu", "oriya": "or", "tamil": "ta", "telugu": "te", "kannada": "kn", "malayalam": "ml",
    "sinhala": "si", "thai": "th", "lao": "lo", "tibetan": "bo", "myanmar": "my", "georgian": "ka", "armenian": "hy",
    "ethiopic": "am", "khmer": "km",
}  # fmt: skip
_NAMES = {
    "english": "en", "chinese": "zh", "mandarin": "zh", "french": "fr", "german": "de", "spanish": "es",
    "italian": "it", "portuguese": "pt", "russian": "ru", "japanese": "ja", "korean": "ko", "vietnamese": "vi",
    "arabic": "ar", "hindi": "hi", "dutch": "nl", "polish": "pl", "turkish": "tr", "indonesian": "id", "thai": "th",
    "ukrainian": "uk", "swedish": "sv", "czech": "cs", "hebrew": "he", "greek": "el", "persian": "fa",
    "eng": "en", "zho": "zh", "cmn": "zh", "fra": "fr", "deu": "de", "spa": "es", "ita": "it", "por": "pt",
    "rus": "ru", "jpn": "ja", "kor": "ko", "cn": "zh", "jp": "ja", "kr": "ko",
}  # fmt: skip


def code(value: str | None) -> str | None:
    """The code of a language column: `English`, `EN`, `en-US`, `zho` -> `en`, `zh`; None for anything else (a
    programming language)."""
    if value is None:
        return None
    from r1pipe.rewards.words.scripts import script_of

    name = value.strip().lower().replace("_", "-").split("-")[0]
    return _NAMES.get(name) or (name if script_of(name) else None)


def guess(text: str) -> str:
    """The language of a text."""
    text = text[:MOST]
    if any(mark in text for mark in "$\\`<"):
        text = _FORMULAS.sub(" ", text)
    if text.isascii():
        return _among("latin", _LATIN.findall(text.lower()))
    from r1pipe.rewards.words import scripts

    shares: dict[str, int] = {}
    words = []
    for word in scripts.words(text):
        shares[word.script] = shares.get(word.script, 0) + len(word.text)
        words.append(word.text.lower())
    total = sum(shares.values())
    if not total:
        return "en"
    if shares.get("kana", 0) > 0.05 * total:  # Japanese is written in Han, too
        return "ja"
    for script in ("hangul", "han"):  # with names and units in Latin
        if shares.get(script, 0) > 0.2 * total:
            return _OWN[script]
    script = max(shares, key=lambda s: (shares[s], s))
    return _among(script, words) if script in _SHARED else _OWN.get(script, "en")


class _Listed(dict[str, tuple[str, ...]]):
    """word -> the languages of a script that have it among their most frequent; a letter alone is a variable."""

    def __init__(self, script: str) -> None:
        super().__init__()
        self.languages = _SHARED[script]

    def __missing__(self, word: str) -> tuple[str, ...]:
        from r1pipe.rewards.words import function_words

        found = function_words.languages(word) if len(word) > 1 else ()
        listed = tuple(x for x in self.languages if x in found)
        if len(self) < REMEMBERED:
            self[word] = listed
        return listed


_LISTED = {script: _Listed(script) for script in _SHARED}


def _among(script: str, words: list[str]) -> str:
    """The language whose frequent words are seen most; the script's first where that is not clear."""
    known = _SHARED[script]
    seen = dict.fromkeys(known, 0)
    for listed in filter(None, map(_LISTED[script].__getitem__, words[:WORDS])):
        for language in listed:
            seen[language] += 1
    best = max(known, key=lambda x: seen[x])  # the first of equals
    return best if seen[best] >= ENOUGH and seen[best] > 1.2 * seen[known[0]] else known[0]
