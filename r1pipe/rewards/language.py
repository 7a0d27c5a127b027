r"""Language-consistency reward (paper, equation 7): words of the CoT in the target language / all words of the CoT.

`words/prose.py` says where words are counted (not in code, LaTeX, tags, names; but text that hides there is). They are
told apart by Unicode script first (`words/scripts.py`), Chinese and Japanese by their characters (`words/han.py`),
languages of one script by a detector that knows only the configured ones (`words/detect.py`), each word with the help
of its neighbours. Scripts written without spaces have a stated ratio of letters to a word (1.5 Han, 2.5 kana, 4 Thai).

Policies:
- An unfinished CoT is scored as far as it goes.
- A completion with nothing to count scores 0.0, unverifiable (None would let a policy hide there).
- A name, a loan word or a short piece counts as the target unless its neighbours say otherwise. A foreign function
  word (`entonces` in English) is foreign wherever it stands, and so is a word that mixes alphabets.
- In foreign sentences only function words of the target count for it: salting them with its words earns little.
- For targets of another script, capital names of up to four letters (`ABC`) do not count, unless text is written in
  capitals.
- Simplified and traditional Chinese are one language; so are the regional forms of any (`pt-BR`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from pydantic import Field, field_validator

from r1pipe.chat import Tags
from r1pipe.rewards.verdict import Context, Row, Verdict
from r1pipe.rewards.words import detect, han
from r1pipe.rewards.words.prose import prose
from r1pipe.rewards.words.scripts import SHARED, Word, base, script_of, words
from r1pipe.settings import Strict

VERSION = "2"

# What a CoT may be written in by default: fourteen languages, and the nearest neighbours of some in their script.
LANGUAGES = (
    "en", "zh", "ja", "ko", "ru", "ar", "hi", "th", "es", "fr", "de", "pt", "it", "vi",
    "uk", "bg", "fa", "ur", "mr",
)  # fmt: skip
COLUMNS = ("language",)

_CLAUSE = re.compile(r"[.,;:!?()\n。，；：！？、।،؛؟…–—\"“”]")
_SENTENCE = re.compile(r"[.!?:\n。！？：।؟]")
_CAPITALS = 4
LETTERS = 48  # of a word that the detector is shown


class Options(Strict):
    """Options of the `language` part."""

    target: str | None = Field(None, description="Target of every row (null: the row's `language`).")
    languages: list[str] = Field(
        list(LANGUAGES),
        description="Languages that a CoT may be in, as codes (`en`, `pt-BR`); those of the target's script are told "
        "apart. The target is always one.",
    )

    @field_validator("target", "languages")
    @classmethod
    def _known(cls, value: str | list[str] | None) -> str | list[str] | None:
        given = [value] if isinstance(value, str) else value or []
        unknown = [x for x in given if script_of(x) is None]
        if unknown:
            raise ValueError(
                f"no script is known for {', '.join(map(repr, unknown))}; codes are such as en, zh, pt-BR"
            )
        return value


def _rivals(target: str, languages: Sequence[str]) -> tuple[str, ...]:
    """The languages that `target` is told from: those of its script, itself included."""
    script = script_of(target)
    return tuple(sorted({base(x) for x in (*languages, target) if script_of(x) == script}))


def share(text: str, target: str, languages: Sequence[str] = LANGUAGES) -> float | None:
    """Share of the words of `text` in the target language, 0 to 1; None where there is no word or no such target."""
    script = script_of(target)
    if script is None:
        return None
    text = prose(text)
    counts: dict[str, float] = defaultdict(float)
    own: list[Word] = []  # words of the target's script
    runs: list[str] = []  # neighbouring Han and kana
    capitals, shouted = 0.0, 0.0
    end = -1
    rivals = _rivals(target, languages)
    for word in words(text):
        if word.script in ("han", "kana"):
            if runs and word.start == end:
                runs[-1] += word.text
            else:
                runs.append(word.text)
            end = word.start + len(word.text)
        elif script != "latin" and word.script == "latin" and len(word.text) <= _CAPITALS and word.text.isupper():
            capitals += word.worth
        else:
            counts[word.script] += word.worth
            shouted += word.worth * (word.script == "latin" and word.text.isupper())
            if word.script == script:
                own.append(word)
    counts["han"], counts["kana"] = han.split(runs, script == "kana")
    if shouted > capitals / 4:  # not names of points, but text in capitals
        counts["latin"] += capitals
    total = sum(counts.values())
    if not total:
        return None
    right = counts[script]
    if own and (len(rivals) > 1 or script in SHARED):
        right -= detect.foreign(_tokens(text, own), base(target), rivals)
    return right / total


def _tokens(text: str, found: list[Word]) -> list[detect.Token]:
    """Words with what the marks before them say."""
    tokens: list[detect.Token] = []
    end = 0
    for word in found:
        gap = text[end : word.start]
        end = word.start + len(word.text)
        lower = word.text[:LETTERS].lower().replace("’", "'")
        sentence = not tokens or bool(_SENTENCE.search(gap))
        clause = sentence or bool(_CLAUSE.search(gap))
        tokens.append(detect.Token(lower, clause, sentence, word.text[0].isupper(), word.worth))
    return tokens


class Language:
    """Batch form of `verify`; the completions are whole."""

    def __init__(self, options: Options, context: Context) -> None:
        self.options, self.context = options, context

    def __call__(self, completions: list[str], rows: list[Row]) -> list[Verdict]:
        return [self._one(c, self.options.target or r.get("language")) for c, r in zip(completions, rows, strict=True)]

    def _one(self, completion: str, target: str | None) -> Verdict:
        if not target or script_of(target) is None:
            return Verdict(None, "error", f"no script is known for the language {target!r}")
        value = share(_thinking(completion, self.context.tags), target, self.options.languages)
        if value is None:
            return Verdict(0.0, "unverifiable", "no words to count")
        return Verdict(value, "scored")

    def facts(self) -> dict[str, Any]:
        """What scores depend on beside the text."""
        return {"languages": self.options.languages, "detector": f"py3langid {version('py3langid')}"}


def _thinking(completion: str, tags: Tags) -> str:
    """What stands before the last closing tag (all of it where there is none) and after the first opening one."""
    before, closed, _ = completion.rpartition(tags.think_close)
    return (before if closed else completion).split(tags.think_open, 1)[-1]


def verify(
    completion: str,
    row: Row,
    *,
    tags: Tags = Tags(),
    prefilled: bool = False,
    target: str | None = None,
    languages: Sequence[str] = LANGUAGES,
) -> Verdict:
    """The verdict on the CoT of one completion, for the row's `language` (or `target`)."""
    context = Context(tags, prefilled)
    options = Options(target=target, languages=list(languages))
    return Language(options, context)([context.whole(completion)], [row])[0]
