r"""Language-consistency reward (paper, equation 7): words of the CoT in the target language / all words of the CoT.

Words are told apart by Unicode script. Not counted: LaTeX, code (an open fence too), digits, tags, names with digits
or underscores, single Latin letters (variables); for targets of another script also units behind a number, function
names and short all-capital names. Text hides in neither LaTeX nor code: letters of another script than Latin count
there too, and so does a `\text{}` of four words or more.

Scripts written without spaces: a stated ratio of characters to a word (CHARS_PER_WORD). Han next to kana is Japanese,
other Han is Chinese; for Japanese as target, Han alone is Japanese where a fifth of the text's CJK letters are kana.

Policies: an unfinished CoT is scored as far as it goes; a completion with nothing to count scores 0.0, unverifiable
(None would let a policy hide there). Not yet: languages of one script are not told apart (`detector` is the hook:
Latin words count for every Latin-script target).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable

from pydantic import Field

from r1pipe.chat import Tags
from r1pipe.rewards.verdict import Context, Row, Verdict
from r1pipe.settings import Strict

VERSION = "1"

CHARS_PER_WORD = {"han": 1.5, "kana": 2.5, "thai": 4.0}  # letters; marks are not counted

# script -> the ranges of a character class
_CLASSES = {
    "latin": "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff\u0300-\u036f",
    "han": "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
    "kana": "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d",
    "hangul": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af",
    "cyrillic": "\u0400-\u052f",
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "arabic": "\u0610-\u061a\u0620-\u065f\u066e-\u06d3\u06d5-\u06ff\u0750-\u077f\ufb50-\ufdff\ufe70-\ufefc",
    "hebrew": "\u0591-\u05ea",
    "devanagari": "\u0900-\u0963\u0970-\u097f",
    "bengali": "\u0980-\u09e3",
    "tamil": "\u0b80-\u0be5",
    "thai": "\u0e01-\u0e3a\u0e40-\u0e4e",
}
_WORD = re.compile(
    "|".join(
        rf"(?P<{script}>[{ranges}]+(?:['’][{ranges}]+)*)" if script == "latin" else rf"(?P<{script}>[{ranges}]+)"
        for script, ranges in _CLASSES.items()
    )
)
_SCRIPT_OF = {
    "zh": "han", "ja": "kana", "ko": "hangul", "ru": "cyrillic", "uk": "cyrillic", "bg": "cyrillic", "ar": "arabic",
    "fa": "arabic", "ur": "arabic", "hi": "devanagari", "mr": "devanagari", "th": "thai", "el": "greek",
    "he": "hebrew", "bn": "bengali", "ta": "tamil",
}  # fmt: skip
_SCRIPT_OF |= dict.fromkeys(
    ("en", "es", "fr", "de", "pt", "it", "vi", "nl", "pl", "tr", "id", "sv", "cs", "ro"), "latin"
)

_FENCE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]+`", re.DOTALL)
_MATH = re.compile(
    r"\$\$.+?\$\$|\\\[.+?\\\]|\\\(.+?\\\)|\\begin\{(?P<env>[a-z]+\*?)\}.+?\\end\{(?P=env)\}"
    r"|\$(?=\S)[^$\n]*?(?<=\S)\$(?!\d)",
    re.DOTALL,
)
_TEXT = re.compile(r"\\(?:text|textbf|mbox|mathrm)\s*\{([^{}]*)\}")
_COMMAND = re.compile(r"\\[A-Za-z]+\*?(?:\{[a-z]+\*?\}(?=[\s\\]|$))?")
_TAG = re.compile(r"</?[A-Za-z][A-Za-z0-9]*\s*/?>")
_IDENTIFIER = re.compile(r"\b[A-Za-z]\w*(?:_\w+|\d\w*)\b")
_UNIT = re.compile(r"(?<=\d)\s?(?:[kcdm]?m|[km]?g|km/h|m/s|[hs]|min|m?[lL]|[kM]?[JWN])(?![A-Za-z])")
_FUNCTION = re.compile(r"\b(?:sin|cos|tan|log|ln|exp|max|min|lim|mod|gcd|lcm|det)\b")
_CAPITALS = re.compile(r"\b[A-Z]{2,3}\b")
_NOT_LATIN = re.compile("[" + "".join(r for s, r in _CLASSES.items() if s not in ("latin", "greek")) + "]+")

Detector = Callable[[str, str], float]  # (text of Latin words, target) -> share in the target language


class Options(Strict):
    """Options of the `language` part."""

    target: str | None = Field(None, description="Target of every row (null: the row's `language`).")


def script_of(target: str) -> str | None:
    """The script of a language code (`zh-CN` -> `han`); None where it is not known."""
    return _SCRIPT_OF.get(target.lower().replace("_", "-").split("-")[0])


def _seen(match: re.Match[str]) -> str:
    """What of LaTeX still counts: long `\\text{}` and letters of other scripts."""
    kept = [t for t in _TEXT.findall(match[0]) if len(t.split()) >= 4]
    rest = _TEXT.sub(lambda m: "" if len(m[1].split()) >= 4 else m[0], match[0])
    return " " + " ".join(kept + _NOT_LATIN.findall(rest)) + " "


def prose(text: str, target_script: str) -> str:
    """The text in which words are counted."""
    text = _FENCE.sub(lambda m: " " + " ".join(_NOT_LATIN.findall(m[0])) + " ", text)
    text = _MATH.sub(_seen, text)
    text = _TAG.sub(" ", text)
    text = _IDENTIFIER.sub(" ", _COMMAND.sub(" ", text))
    if target_script != "latin":
        for pattern in (_UNIT, _FUNCTION, _CAPITALS):
            text = pattern.sub(" ", text)
    return text


def words(text: str, target_script: str) -> dict[str, float]:
    """Words by script; Japanese (Han next to kana) under `kana`. Fractions come from CHARS_PER_WORD."""
    counts: dict[str, float] = defaultdict(float)
    han_alone = 0.0
    run: list[tuple[str, int]] = []  # neighbouring Han and kana
    end = -1
    for match in _WORD.finditer(prose(text, target_script)):
        script, word = str(match.lastgroup), match[0]
        if run and (script not in ("han", "kana") or match.start() != end):
            han_alone += _close(run, counts)
            run = []
        end = match.end()
        if script in ("han", "kana"):
            run.append((script, len(word)))
        elif script == "thai":
            counts["thai"] += sum(c.isalpha() for c in word) / CHARS_PER_WORD["thai"]
        elif len(word) > 1 or script not in ("latin", "greek"):
            counts[script] += 1
    han_alone += _close(run, counts)
    kana_letters, han_letters = counts["kana"] * CHARS_PER_WORD["kana"], han_alone * CHARS_PER_WORD["han"]
    japanese = target_script == "kana" and kana_letters > 0.2 * (kana_letters + han_letters)
    counts["kana" if japanese else "han"] += han_alone
    return counts


def _close(run: list[tuple[str, int]], counts: dict[str, float]) -> float:
    """Counts a run with kana as Japanese; returns the words of one without, which the whole text decides."""
    total = sum(length / CHARS_PER_WORD[script] for script, length in run)
    if any(script == "kana" for script, _ in run):
        counts["kana"] += total
        return 0.0
    return total


def share(text: str, target: str, detector: Detector | None = None) -> float | None:
    """Share of the words of `text` in the target language, 0 to 1; None where there is no word or no such target."""
    script = script_of(target)
    if script is None:
        return None
    counts = words(text, script)
    total = sum(counts.values())
    if not total:
        return None
    right = float(counts[script])
    if detector is not None and script == "latin":
        right *= detector(prose(text, script), target)
    return right / total


class Language:
    """Batch form of `verify`; the completions are whole."""

    def __init__(self, options: Options, context: Context) -> None:
        self.options, self.context = options, context

    def __call__(self, completions: list[str], rows: list[Row]) -> list[Verdict]:
        return [self._one(c, self.options.target or r.get("language")) for c, r in zip(completions, rows, strict=True)]

    def _one(self, completion: str, target: str | None) -> Verdict:
        if not target or script_of(target) is None:
            return Verdict(None, "error", f"no script is known for the language {target!r}")
        value = share(_thinking(completion, self.context.tags), target)
        if value is None:
            return Verdict(0.0, "unverifiable", "no words to count")
        return Verdict(value, "scored")


def _thinking(completion: str, tags: Tags) -> str:
    parts = tags.split(completion)
    return parts.thinking if parts.thinking is not None else completion.split(tags.think_open, 1)[-1]


def verify(
    completion: str, row: Row, *, tags: Tags = Tags(), prefilled: bool = False, target: str | None = None
) -> Verdict:
    """The verdict on the CoT of one completion, for the row's `language` (or `target`)."""
    context = Context(tags, prefilled)
    return Language(Options(target=target), context)([context.whole(completion)], [row])[0]
