r"""The 25 verifiable instructions of IFEval (Zhou et al. 2023, arXiv 2311.07911, table 1), from their wording.

An answer without any word keeps nothing (the caller sees to that). Where the paper's own program and the wording of an
instruction differ, the wording counts:
- keywords stand as words of their own (`category` has no `cat`), and are no patterns;
- `***` divides where it stands alone, not in `***bold italics***`; blank paragraphs are not counted, nor indexed;
- a constrained response states one of its options, not two; a repeated prompt is followed by an answer, a postscript
  follows a text; the two responses differ in words; a JSON answer is an object or a list;
- sections are exactly as many as asked, at the start of a line, with text; a contents list does not double them;
- bullets need the space that markdown needs; placeholders hold a letter (`[1]` and the text of a link do not count);
- words with all capital letters have two letters or more (`I` is none);
- one pair of quotation marks goes around everything (`"yes" and "no"` does not);
- "no comma" also means the commas of other scripts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from r1pipe.rewards import language
from r1pipe.rewards.answers import strict_json
from r1pipe.rewards.instructions import arguments as args
from r1pipe.rewards.instructions import text as count
from r1pipe.settings import Strict

LANGUAGE_SHARE = 0.9  # of the words; names and terms may be foreign

_HOLDS: dict[str, Callable[[int, int], bool]] = {
    "at least": int.__ge__,
    "less than": int.__lt__,
    "at most": int.__le__,
    "more than": int.__gt__,
    "exactly": int.__eq__,
}


@dataclass(frozen=True)
class Check:
    """One instruction: the model of its arguments, and whether an answer keeps it."""

    arguments: type[Strict]
    kept: Callable[[str, Any], bool]


def _letters(text: str, a: args.Letter) -> bool:
    return _HOLDS[a.let_relation](text.casefold().count(a.letter.casefold()), a.let_frequency)


def _unfenced(text: str) -> str:
    """The content of a code fence around everything."""
    text = text.strip()
    around = len(text) > 6 and text[:3] in ("```", "~~~") and text.endswith(text[:3])
    return strict_json.fenced(text).strip() if around else text


def _in_language(text: str, code: str) -> bool:
    share = language.share(_unfenced(text), code)
    return share is not None and share >= LANGUAGE_SHARE


def _case(text: str, wrong: Callable[[str], bool]) -> bool:
    return not any(map(wrong, text)) and any(c.isalpha() for c in text) and _in_language(text.lower(), "en")


def _divided(text: str, divider: re.Pattern[str]) -> list[str] | None:
    """The parts between dividers; None where one between two of them is blank (the ends may be)."""
    parts = [p.strip() for p in divider.split(text)]
    if any(not count.has_words(p) for p in parts[1:-1]):
        return None
    return [p for p in parts if count.has_words(p)]


_DIVIDER = re.compile(r"(?:(?<=\s)|^)(?:\*\*\*|\* \* \*)(?=\s|$)")
_SIX = re.compile(r"(?<!\*)\*{6}(?!\*)")


def _paragraphs(text: str, a: args.Paragraphs) -> bool:
    parts = _divided(text, _DIVIDER)
    return parts is not None and len(parts) == a.num_paragraphs


def _two_responses(text: str, a: args.Nothing) -> bool:
    parts = _divided(text, _SIX)
    return parts is not None and len(parts) == 2 and _bare(parts[0]) != _bare(parts[1])


def _bare(text: str) -> list[str]:
    return [w.casefold() for w in count.words(text)]


def _first_word(text: str, a: args.FirstWord) -> bool:
    found = count.paragraphs(text)
    if len(found) != a.num_paragraphs:
        return False
    wanted = _bare(a.first_word)
    return bool(wanted) and _bare(found[a.nth_paragraph - 1][: 100 + 2 * len(a.first_word)])[: len(wanted)] == wanted


def _postscript(text: str, a: args.Postscript) -> bool:
    """The last line that starts with the marker; text before it and after it."""
    letters = [re.escape(c) for c in a.postscript_marker.split() if c]
    marker = r"\s{1,3}".join(letters)
    if re.fullmatch(r"[A-Za-z](?:\.\s?[A-Za-z])+\.?", a.postscript_marker.strip()):  # P.S., P.P.S
        marker = r"\.\s?".join(c for c in a.postscript_marker if c.isalpha()) + r"(?:\.|(?![A-Za-z.]))"
    found = list(re.finditer(r"^[ \t>*_#\"“(]{0,9}" + marker, text, re.IGNORECASE | re.MULTILINE))
    return bool(found) and count.has_words(text[: found[-1].start()]) and count.has_words(text[found[-1].end() :])


_OPTIONS = [
    re.compile(rf"\bmy\s{{1,9}}answer\s{{1,9}}is\s{{1,9}}{o}(?=[.!\"”'*)]|\s*$)", re.I | re.M)
    for o in ("yes", "no", "maybe")
]


def _constrained(text: str, a: args.Nothing) -> bool:
    return sum(bool(option.search(text)) for option in _OPTIONS) == 1


def _sections(text: str, a: args.Sections) -> bool:
    """Lines that begin with the word and a number; each number once (a contents list may repeat it), with text."""
    name = r"\s{1,3}".join(map(re.escape, a.section_spliter.split()))
    mark = re.compile(
        rf"^[ \t>*_#\"“(]{{0,9}}{name}\s{{0,3}}([0-9]{{1,4}}|[IVXLC]{{1,9}}\b)", re.IGNORECASE | re.MULTILINE
    )
    found = list(mark.finditer(text))
    ends = [m.start() for m in found[1:]] + [len(text)]
    filled = {m[1].upper() for m, end in zip(found, ends, strict=False) if count.has_words(text[m.end() : end])}
    return len(filled) == a.num_sections


def _json(text: str, a: args.Nothing) -> bool:
    try:
        return isinstance(strict_json.parse(_unfenced(text)), dict | list)
    except strict_json.NotJsonError:
        return False


_TITLE = re.compile(r"<<([^<>\n]{1,500})>>")


def _title(text: str, a: args.Nothing) -> bool:
    return any(count.has_words(m[1]) for m in _TITLE.finditer(text))


def _repeated(text: str, a: args.Repeat) -> bool:
    """The request word for word at the start (in quotes or bold, if need be), and an answer after it."""
    wanted = " ".join(a.prompt_to_repeat.split()).casefold()
    given = " ".join(text.split()).casefold().lstrip("\"“'‘*_>#` ")
    wanted = wanted.lstrip("\"“'‘*_>#` ")
    return given.startswith(wanted) and count.has_words(given[len(wanted) :])


def _ending(text: str, a: args.Ending) -> bool:
    """The phrase is the last thing said; quotes and emphasis may close around it."""
    wanted = " ".join(a.end_phrase.split()).casefold().strip("\"“”'*_ ")
    given = " ".join(text.split()).casefold().rstrip("\"“”'*_ ")
    return bool(wanted) and given.endswith(wanted) and not given[: -len(wanted)][-1:].isalnum()


def _quoted(text: str, a: args.Nothing) -> bool:
    """One pair of double quotes around everything; not `"yes" and "no"`."""
    text = text.strip()
    if len(text) < 3 or (text[0], text[-1]) not in (('"', '"'), ("“", "”")):
        return False
    inner = text[1:-1]
    if text[0] == "“":
        level = 0
        for mark in re.findall("[“”]", inner):
            level += 1 if mark == "“" else -1
            if level < 0:
                return False
    elif (first := inner.find('"')) >= 0:  # an inner quote must open before it closes
        before, after = inner[:first][-1:], inner[first + 1 : first + 2]
        if before and not before.isspace() and (not after or not after.isalnum()):
            return False
    return count.has_words(inner)


_COMMA = re.compile("[,，、،﹐﹑､]")

CHECKS: dict[str, Check] = {
    "keywords:existence": Check(args.Keywords, lambda t, a: all(count.occurrences(t, k) for k in a.keywords)),
    "keywords:frequency": Check(
        args.Frequency, lambda t, a: _HOLDS[a.relation](count.occurrences(t, a.keyword), a.frequency)
    ),
    "keywords:forbidden_words": Check(
        args.Forbidden, lambda t, a: not any(count.occurrences(t, w) for w in a.forbidden_words)
    ),
    "keywords:letter_frequency": Check(args.Letter, _letters),
    "language:response_language": Check(args.Language, lambda t, a: _in_language(t, a.language)),
    "length_constraints:number_sentences": Check(
        args.Sentences, lambda t, a: _HOLDS[a.relation](count.sentence_count(t), a.num_sentences)
    ),
    "length_constraints:number_paragraphs": Check(args.Paragraphs, _paragraphs),
    "length_constraints:number_words": Check(
        args.Words, lambda t, a: _HOLDS[a.relation](count.word_count(t), a.num_words)
    ),
    "length_constraints:nth_paragraph_first_word": Check(args.FirstWord, _first_word),
    "detectable_content:number_placeholders": Check(
        args.Placeholders, lambda t, a: count.placeholders(t) >= a.num_placeholders
    ),
    "detectable_content:postscript": Check(args.Postscript, _postscript),
    "detectable_format:number_bullet_lists": Check(args.Bullets, lambda t, a: count.bullets(t) == a.num_bullets),
    "detectable_format:constrained_response": Check(args.Nothing, _constrained),
    "detectable_format:number_highlighted_sections": Check(
        args.Highlights, lambda t, a: count.emphasised(t) >= a.num_highlights
    ),
    "detectable_format:multiple_sections": Check(args.Sections, _sections),
    "detectable_format:json_format": Check(args.Nothing, _json),
    "detectable_format:title": Check(args.Nothing, _title),
    "combination:two_responses": Check(args.Nothing, _two_responses),
    "combination:repeat_prompt": Check(args.Repeat, _repeated),
    "startend:end_checker": Check(args.Ending, _ending),
    "startend:quotation": Check(args.Nothing, _quoted),
    "change_case:capital_word_frequency": Check(
        args.Capitals, lambda t, a: _HOLDS[a.capital_relation](count.capital_words(t), a.capital_frequency)
    ),
    "change_case:english_capital": Check(args.Nothing, lambda t, a: _case(t, str.islower)),
    "change_case:english_lowercase": Check(args.Nothing, lambda t, a: _case(t, str.isupper)),
    "punctuation:no_comma": Check(args.Nothing, lambda t, a: not _COMMA.search(t)),
}
