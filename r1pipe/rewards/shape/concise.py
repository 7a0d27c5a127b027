"""Length reward of Kimi k1.5 (arXiv 2501.12599, section 2.3.3): shorter than the others of the group. -0.5 to 0.5.

lambda = 0.5 - (length - shortest) / (longest - shortest), over all completions of the prompt in the batch. A right
answer has lambda, a wrong one min(0, lambda): a short wrong answer gains nothing. All of one length: 0. An answer that
is partly right lies between the two by its share.

Needs `correct` and `group` in the row. Where a group is spread over processes, each sees its own part of it. The paper
starts it after a phase without (`start`, `schedule` of the part), or training slows down.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import Any

from pydantic import Field

from r1pipe.chat import Tags
from r1pipe.rewards.shape import length
from r1pipe.rewards.verdict import Context, Row, Verdict
from r1pipe.settings import Strict

VERSION = "1"


class Options(Strict):
    """Options of the `concise` part."""

    unit: length.Unit = Field("auto", description=length.UNIT)


def reward(count: int, group: Sequence[int], correct: float) -> float:
    """The reward of a completion of this length among the lengths of its group."""
    shortest, longest = min(group), max(group)
    if shortest == longest:
        return 0.0
    value = 0.5 - (count - shortest) / (longest - shortest)
    return correct * value + (1 - correct) * min(0.0, value)


class Concise:
    """Length reward of Kimi k1.5: shorter than the others of the group, and right."""

    def __init__(self, options: Options, context: Context) -> None:
        self.options, self.context = options, context

    def __call__(self, completions: list[str], rows: list[Row]) -> list[Verdict]:
        lengths: list[length.Length | str] = []
        groups: dict[Hashable, list[int]] = defaultdict(list)
        for completion, row in zip(completions, rows, strict=True):
            try:
                found = length.length(completion, row, self.options.unit)
                groups[row.get("group")].append(found.size)
                lengths.append(found)
            except length.UnknownLengthError as error:
                lengths.append(str(error))
        return [self._one(found, row, groups) for found, row in zip(lengths, rows, strict=True)]

    def _one(self, found: length.Length | str, row: Row, groups: dict[Hashable, list[int]]) -> Verdict:
        if isinstance(found, str):
            return Verdict(None, "error", found)
        if row.get("group") is None:
            return Verdict(None, "error", "the row has no `group`: which completions are of one prompt is not known")
        correct = length.correctness(row)
        if isinstance(correct, Verdict):
            return correct
        return Verdict(reward(found.size, groups[row["group"]], correct), "scored", found.remark)


def verify_group(
    completions: Sequence[str],
    rows: Sequence[Row],
    *,
    tags: Tags = Tags(),
    prefilled: bool = False,
    **options: Any,
) -> list[Verdict]:
    """The verdicts on the completions of one prompt; `options` as in Options."""
    context = Context(tags, prefilled)
    return Concise(Options(**options), context)(
        [context.whole(c) for c in completions], [{**row, "group": 0} for row in rows]
    )


def verify(completion: str, row: Row, *, tags: Tags = Tags(), prefilled: bool = False, **options: Any) -> Verdict:
    """The verdict on a completion that is alone in its group; `verify_group` is what it is for."""
    return verify_group([completion], [row], tags=tags, prefilled=prefilled, **options)[0]
