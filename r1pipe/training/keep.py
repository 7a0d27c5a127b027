"""Which samples of a policy are good enough to learn from (paper v2, B.3.3), and why the others are not.

The verifiers are the ones that reward a rollout and score an evaluation. No torch here.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from pydantic import Field

from r1pipe.chat import Tags
from r1pipe.settings import Strict

Row = dict[str, Any]
_UNITS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")


class Filters(Strict):
    """What a kept sample must be besides right."""

    minimum: dict[str, float] = Field(
        {"language": 0.95}, description="Least score by reward (1.0 for those not named)."
    )
    truncated: bool = Field(False, description="Keep samples that were cut at max_tokens.")
    repetition: float = Field(
        0.6, gt=0, le=1, description="Most share of 4-grams (words, CJK characters) that occurred before."
    )
    code_blocks: bool = Field(False, description="Keep reasoning with code blocks.")
    longest_paragraph: int | None = Field(None, ge=1, description="Most characters of a paragraph of the reasoning.")


def repetition(text: str, n: int = 4) -> float:
    """Share of n-grams that occurred before in the text; 0.0 for a text shorter than n units."""
    units = _UNITS.findall(text.lower())
    grams = [tuple(units[i : i + n]) for i in range(len(units) - n + 1)]
    return 1 - len(set(grams)) / len(grams) if grams else 0.0


def reason_to_drop(text: str, finish: str, verdicts: dict[str, Any], filters: Filters, tags: Tags) -> str | None:
    """Why a sample is not kept; None for one that is. A verdict of None does not apply to the row."""
    if finish == "skipped":
        return "skipped"
    if finish == "length" and not filters.truncated:
        return "truncated"
    for name, verdict in verdicts.items():
        if verdict is None:
            continue
        if verdict.score is None:
            return f"{name}_{verdict.status}"
        if verdict.score < filters.minimum.get(name, 1.0):
            return name
    reasoning = tags.split(text).thinking or ""
    if not filters.code_blocks and "```" in reasoning:
        return "code_block"
    longest = max(map(len, re.split(r"\n\s*\n", reasoning)))
    if filters.longest_paragraph is not None and longest > filters.longest_paragraph:
        return "long_paragraph"
    if repetition(text) > filters.repetition:
        return "repetition"
    return None


def best(kept: list[Row], most: int) -> list[Row]:
    """At most `most` distinct samples of a prompt, in the order sampled."""
    seen: set[str] = set()
    out: list[Row] = []
    for sample in kept:
        if sample["text"] not in seen and len(out) < most:
            seen.add(sample["text"])
            out.append(sample)
    return out


def card(title: str, counts: Counter[str], prompts: list[Row], rows: list[Row], lengths: list[int]) -> str:
    """The README of a sampled dataset: counts, pass rates, lengths, three examples."""
    sampled = counts["sampled"]
    lines = [f"# {title}", "", "| what | n |", "|---|---|"]
    lines += [f"| {name} | {n} |" for name, n in counts.items()]
    never = sum(1 for p in prompts if not p["kept"])
    lines += [
        f"| prompts | {len(prompts)} |",
        f"| prompts with nothing kept | {never} |",
        f"| rows | {len(rows)} |",
        "",
        f"Kept {counts['kept']} of {sampled} samples ({counts['kept'] / max(1, sampled):.1%}).",
        "",
        "Pass rate by level: " + ", ".join(f"{level}: {rate:.1%}" for level, rate in _rates(prompts).items()),
    ]
    if lengths:
        ordered = sorted(lengths)
        lines.append(
            f"\nTokens of a kept sample: mean {sum(ordered) / len(ordered):.1f}, median {ordered[len(ordered) // 2]}, "
            f"longest {ordered[-1]}."
        )
    lines += ["", "## Examples", ""]
    for row in rows[:3]:
        for message in row["messages"]:
            lines += [f"**{message['role']}**", "", "```", message["content"], "```", ""]
    return "\n".join(lines)


def _rates(prompts: list[Row]) -> dict[str, float]:
    """Level (or kind) -> share of samples that were kept before the cap."""
    passed: Counter[str] = Counter()
    sampled: Counter[str] = Counter()
    for prompt in prompts:
        key = str(prompt["level"] if prompt["level"] is not None else prompt["kind"])
        passed[key] += prompt["passed"]
        sampled[key] += prompt["sampled"]
    return {key: passed[key] / n for key, n in sorted(sampled.items()) if n}
