r"""Multiple choice: the letter, or the text of the choice. 1.0 or 0.0.

Row: `gold`, a letter or the text of a choice; `choices`, where the row has them: a list of texts (A, B, ...), a
mapping of letters to texts, or ARC's `{"label": [...], "text": [...]}`. Without choices the letters are A to J.

Where the answer stands: the last box that states a choice; else what follows the last "the answer is" (also
"I choose", 答案, 故选); else the whole answer; else its last line. Shapes: `B`, `(b)`, `B.`, `**B**`, `B: text`,
`\textbf{(B)}\ 17`, `option B`, `B is correct`, the text of the choice alone.

Policies: several letters are wrong ("A or B", "(A)(B)"); a letter with the text of another choice is wrong; a letter
that begins a sentence ("A good way") is an article. Letters named as reasons (after "because", "not") do not count.
Our own reading, not `rules.choice`: that one knows no choices and no prose.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from r1pipe.chat import Tags
from r1pipe.rewards import extract, rules
from r1pipe.rewards.answers import stated
from r1pipe.rewards.verdict import Context, Row, Verdict

VERSION = "1"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
SEVERAL = ""  # more than one choice is stated

_PREFIX = re.compile(r"(?:the\s)?(?:correct\s|final\s)?(?:option|choice|选项)\s?[:：]?\s?", re.IGNORECASE)
_LABEL = re.compile(r"(?P<open>[(\[])?\s?(?P<label>[A-Za-z0-9])\s?(?P<close>[)\]])?(?![A-Za-z0-9_'])")
_ENDS = re.compile(
    r"\s*(?:$|\n|[).:,;/&|+。，、：；–—-]|\b(?:because|since|as|or|and|not)\b|或|和|(?P<said>\bis\b|正确))"
)
_SAID = re.compile(r"\s*(?:is|正确)\s?(?:the\s)?(?:correct|right|best|answer|$|\W)", re.IGNORECASE)
_DENIED = re.compile(r"\s*(?:is|are)\s(?:not|wrong|incorrect|false)\b|\s*(?:不|错)", re.IGNORECASE)
_REASON = re.compile(r"\b(?:because|since|as|not|rather)\b|因为|而不", re.IGNORECASE)
_ASIDE = re.compile(r"\b(?:wrong|incorrect|false|not|distractor|eliminated|ruled out)\b|n't\b|错|排除", re.IGNORECASE)
# Another letter: `, C`, `or (C)` at the start; `or C`, `(C)` anywhere; `C.` at the start of a line.
_OTHER = re.compile(
    r"^[\s.,;/&|+、和或]*(?:(?:or|and)\s)?[(\[]?([A-Z0-9])[)\]]?(?=\s*(?:$|[,.;:)/&|+\n、或和]|or\b|and\b))"
    r"|(?:\b(?:or|and|maybe|perhaps|possibly)\s(?:also\s|even\s|maybe\s|perhaps\s|possibly\s)?|或|和)[(\[]?([A-Za-z0-9])[)\]]?(?=\s*(?:$|[,.;:)\n]))"
    r"|\(([A-Z0-9])\)|\n\s?\(?([A-Z0-9])[).:]"
)
_CHOSEN = re.compile(r"\b(?:choose|pick|select|go with)\b[ \t]*:?|故选|应选|我选|选择", re.IGNORECASE)


class Options(stated.AnswerOptions):
    """Options of the `choice` part."""


class Choice(stated.AnswerVerifier):
    """Multiple choice: the letter, or the text of the choice."""

    COLUMNS: ClassVar[tuple[str, ...]] = ("gold", "choices")

    def gold(self, row: Row) -> tuple[str, dict[str, str]]:
        choices = _choices(row)
        gold = row.get("gold")
        label = None if gold is None or isinstance(gold, bool) else _read(rules.gold_text(str(gold)), choices)
        if not label:
            raise stated.BadGoldError(f"the gold answer {str(gold)[:40]!r} is none of the choices {list(choices)}")
        return label, choices

    def judge(self, region: str, gold: tuple[str, dict[str, str]]) -> Verdict:
        expected, choices = gold
        label = _stated(region, choices)
        if label is None:
            return Verdict(0.0, "unverifiable", "no choice is stated")
        return stated.RIGHT if label == expected else stated.WRONG


def _choices(row: Row) -> dict[str, str]:
    """Label -> text; without choices A to J with no text."""
    given = row.get("choices")
    if given is None:
        return dict.fromkeys(LETTERS[:10], "")
    if isinstance(given, dict) and isinstance(given.get("text"), list | tuple):
        texts = given["text"]
        labels = given.get("label") or LETTERS[: len(texts)]
    elif isinstance(given, dict):
        texts = [t for t in given.values() if t is not None]
        labels = [k for k, t in given.items() if t is not None]
    else:
        texts, labels = given, LETTERS
    if not isinstance(texts, list | tuple) or not texts or len(texts) > len(labels):
        raise stated.BadGoldError("`choices` is no list of 1 to 26 texts")
    found = {str(k).strip().upper(): str(t) for k, t in zip(labels, texts, strict=False)}
    if len(found) != len(texts) or any(len(k) != 1 or not k.isalnum() for k in found):
        raise stated.BadGoldError("the labels of `choices` are not single letters or digits")
    return found


def _stated(region: str, choices: dict[str, str]) -> str | None:
    """The label that an answer states; SEVERAL; None where it states none."""
    boxed = extract.boxed_answer(region)
    if boxed == "":
        return None
    if boxed is not None and (label := _read(boxed, choices)) is not None:
        return label
    text = stated.plain(region)
    for tail in [*stated.cue_tails(text), *stated.cue_tails(text, _CHOSEN)]:
        if (label := _read(tail, choices)) is not None:
            return label
    if (label := _read(text, choices)) is not None:
        return label
    return _read(text.rpartition("\n")[2], choices)


def _read(text: str, choices: dict[str, str]) -> str | None:
    """The label of a statement that begins with it, or is the text of a choice."""
    text = stated.plain(text).strip("\"' ")
    if same := _by_text(text, choices):
        return same
    if prefix := _PREFIX.match(text):
        text = text[prefix.end() :]
    match = _LABEL.match(text)
    if match is None or (label := match["label"].upper()) not in choices:
        return None
    rest = text[match.end() :]
    if _DENIED.match(rest):
        return None
    described = rest.strip(" .:,;()\n-")
    other = _by_text(described, choices)
    if described and other is not None:
        return label if other == label else SEVERAL
    ends = _ENDS.match(rest)
    bracketed = match["open"] and match["close"]
    if not bracketed and (ends is None or (ends["said"] and not _SAID.match(rest))):
        return None  # an article, or a word of its own
    first, *later = re.split(r"(?<=[.;。；])\s", _REASON.split(rest, maxsplit=1)[0])
    offered = " ".join([first, *(s for s in later if not _ASIDE.search(s))])  # "Option (A) is wrong." offers nothing
    others = {letter.upper() for found in _OTHER.findall(offered) for letter in found}
    return SEVERAL if others & (set(choices) - {label}) else label


def _by_text(text: str, choices: dict[str, str]) -> str | None:
    """The label of the only choice with this text; a letter alone is read as a letter."""
    if len(text) == 1 and text.upper() in choices:
        return text.upper()
    wanted = _normal(text)
    found = [label for label, given in choices.items() if given and _normal(given) == wanted]
    return found[0] if wanted and len(found) == 1 else None


def _normal(text: str) -> str:
    return " ".join(stated.plain(text).casefold().split()).rstrip(" .。")


def check_gold(row: Row) -> str | None:
    """Why the gold answer of a row cannot be used; None where it can."""
    return stated.gold_reason(Choice(Options(), Context()), row)


def right_answer(row: Row) -> str | None:
    return None if check_gold(row) else Choice(Options(), Context()).gold(row)[0]


def wrong_answer(row: Row) -> str | None:
    """Another letter."""
    if check_gold(row):
        return None
    label, choices = Choice(Options(), Context()).gold(row)
    return next((other for other in choices if other != label), None)


def verify(completion: str, row: Row, *, tags: Tags = Tags(), prefilled: bool = False, **options: Any) -> Verdict:
    """The verdict on one completion; `options` as in Options."""
    return stated.one(Choice, Options(**options), completion, row, Context(tags, prefilled))
