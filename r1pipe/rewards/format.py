"""Format reward: `<think>reasoning</think><answer>answer</answer>`, and nothing else.

Strict (the default): 1.0 when the whole text is one thinking block with non-blank reasoning, white space, one answer
block with a non-empty answer; each of the four tags exactly once; else 0.0. Line breaks do not matter. Policies:
blank thinking scores 0; a tag mentioned in the text costs the reward (each tag exactly once), and so does a prefilled
`<think>` that the model writes again; zero-width characters and a byte-order mark are not white space, nor do they
make a block non-blank. Tags are compared as they are: other letter case, blanks or attributes inside make another tag.

Soft (`soft: true`): the mean of three parts: the thinking block is right, the answer block is right, strict holds.
"""

from __future__ import annotations

import unicodedata

from pydantic import Field

from r1pipe.chat import Tags
from r1pipe.rewards.verdict import Context, Row, Verdict
from r1pipe.settings import Strict

VERSION = "2"
COLUMNS: tuple[str, ...] = ()

_BLANK = frozenset(("Cc", "Cf", "Cs", "Zs", "Zl", "Zp", "Mn", "Me", "Mc"))
_UNSEEN = frozenset("\u115f\u1160\u2800\u3164\uffa0")  # letters and a symbol that are drawn as nothing


class Options(Strict):
    """Options of the `format` part."""

    soft: bool = Field(False, description="Pay for parts of the form.")


def _blank(text: str) -> bool:
    """Nothing that a reader would see: white space, invisible characters, accents on nothing."""
    return all(c in _UNSEEN or unicodedata.category(c) in _BLANK for c in text)


def _block(text: str, opening: str, closing: str) -> tuple[int, int] | None:
    """Start and end of the block when both tags occur exactly once, in order, with something between."""
    if text.count(opening) != 1 or text.count(closing) != 1:
        return None
    start, end = text.index(opening), text.index(closing)
    if end < start + len(opening) or _blank(text[start + len(opening) : end]):
        return None
    return start, end + len(closing)


def score(completion: str, tags: Tags = Tags(), *, soft: bool = False) -> float:
    """0.0 to 1.0; the completion is whole (a prefilled opening tag has been put back)."""
    think = _block(completion, tags.think_open, tags.think_close)
    answer = _block(completion, tags.answer_open, tags.answer_close)
    starts = think is not None and not completion[: think[0]].strip()
    follows = think is not None and answer is not None and answer[0] >= think[1]
    strict = (
        think is not None
        and answer is not None
        and starts
        and follows
        and not completion[think[1] : answer[0]].strip()
        and not completion[answer[1] :].strip()
    )
    if not soft:
        return float(strict)
    return (float(starts) + float(follows) + float(strict)) / 3


def verify(
    completion: str,
    row: Row | None = None,
    *,
    tags: Tags = Tags(),
    prefilled: bool = False,
    soft: bool = False,
) -> Verdict:
    """The verdict on one completion; `row` is not used."""
    return Verdict(score(Context(tags, prefilled).whole(completion), tags, soft=soft), "scored")


class Format:
    """Batch form of `score`; the completions are whole."""

    def __init__(self, options: Options, context: Context) -> None:
        self.options, self.context = options, context

    def __call__(self, completions: list[str], rows: list[Row]) -> list[Verdict]:
        return [Verdict(score(c, self.context.tags, soft=self.options.soft), "scored") for c in completions]
