"""Which samples of a policy are good enough to learn from (paper v2, B.3.2 and B.3.3), and why the others are not.

The verifiers are the ones that reward a rollout and score an evaluation. No torch here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from r1pipe.chat import Tags
from r1pipe.settings import RewardPart, Strict

# A CoT in one language may name a variable or a word of another. Everything else must be as good as it can be.
MINIMUM = {"language": 0.95}
_UNITS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_PARAGRAPHS = re.compile(r"\n\s*\n")
# What decoding leaves of bytes that are no text, and characters that nobody reads.
_GARBLED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd\ud800-\udfff\ue000-\uf8ff]")


class Filters(Strict):
    """What a kept sample must be besides right."""

    minimum: dict[str, float] = Field(
        {},
        description="Least score by reward. Not named: language 0.95, the others 1; auxiliary rewards and those of "
        "weight 0 are then only recorded.",
    )
    truncated: bool = Field(False, description="Keep samples that were cut at max_tokens.")
    repetition: float = Field(
        0.6, gt=0, le=1, description="Most share of 4-grams (words, CJK characters) that occurred before."
    )
    code_blocks: bool = Field(False, description="Keep reasoning with code blocks.")
    garbled: bool = Field(False, description="Keep samples with broken or control characters.")
    longest_paragraph: int | None = Field(
        4000, ge=1, description="Most characters of a paragraph of the reasoning (null: no limit)."
    )


def needed(parts: Mapping[str, RewardPart], filters: Filters) -> dict[str, float]:
    """The rewards that a sample must pass, with the least score of each."""
    from r1pipe.rewards import registry

    found = {}
    for name, part in parts.items():
        least = filters.minimum.get(name)
        if least is None and part.weight != 0 and registry.role(name, part) == "primary":
            least = MINIMUM.get(name, 1.0)
        if least is not None:
            found[name] = least
    return found


def reason_to_drop(
    text: str, finish: str, verdicts: Mapping[str, Any], least: Mapping[str, float], filters: Filters, tags: Tags
) -> str | None:
    """Why a sample is not kept; None for one that is. `verdicts`: those of the rewards that apply to the row."""
    if finish == "length" and not filters.truncated:
        return "truncated"
    judged = False
    for name, minimum in least.items():
        verdict = verdicts.get(name)
        if verdict is None:
            continue
        if verdict.score is None:
            return f"{name}_{verdict.status}"
        if verdict.score < minimum:
            return name
        judged = True
    return (None if judged else "unverified") or readability(text, filters, tags)


def readability(text: str, filters: Filters, tags: Tags) -> str | None:
    """The filter that a right sample fails, if any."""
    reasoning = tags.split(text).thinking or ""
    if not filters.garbled and _GARBLED.search(text):
        return "garbled"
    if not filters.code_blocks and "```" in reasoning:
        return "code_block"
    longest = max(map(len, _PARAGRAPHS.split(reasoning)))
    if filters.longest_paragraph is not None and longest > filters.longest_paragraph:
        return "long_paragraph"
    if repetition(text) > filters.repetition:
        return "repetition"
    return None


def repetition(text: str, n: int = 4) -> float:
    """Share of n-grams that occurred before in the text; 0.0 for a text shorter than n units."""
    units = _UNITS.findall(text.lower())
    grams = [tuple(units[i : i + n]) for i in range(len(units) - n + 1)]
    return 1 - len(set(grams)) / len(grams) if grams else 0.0
