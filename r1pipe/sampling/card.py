"""The README of a sampled dataset: what it is made of, what was left out and why, lengths, pass rates, examples."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
SHOWN = 20  # prompts without a right sample that are listed
BINS = 10


@dataclass
class Facts:
    """What the card tells, gathered prompt by prompt."""

    sampled: int = 0
    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    rates: list[tuple[Row, float | None, int]] = field(default_factory=list)  # prompt, pass rate, rows kept
    tokens: dict[str, list[int]] = field(default_factory=dict)  # of kept samples, by kind
    examples: list[Row] = field(default_factory=list)


def write(title: str, facts: Facts, rows: Mapping[str, int], settings: Mapping[str, Any]) -> str:
    """The card. `rows`: rows by where they come from (sampled, regenerated, general)."""
    share = facts.kept / max(1, facts.sampled)
    lines = [
        f"# {title}", "",
        f"{sum(rows.values())} rows: " + ", ".join(f"{n} {name}" for name, n in rows.items() if n) + ".",
        f"Of {facts.sampled} samples {facts.kept} were kept ({share:.1%}).", "",
        "| setting | value |", "|---|---|",
        *(f"| {name} | {_cell(value)} |" for name, value in settings.items()), "",
        "## Left out", "",
        "| reason | samples | share |", "|---|---|---|",
        *(f"| {name} | {n} | {n / max(1, facts.sampled):.1%} |" for name, n in facts.dropped.most_common()), "",
        *_lengths(facts), *_rates(facts), *_never(facts),
        "## Examples", "",
    ]  # fmt: skip
    for row in facts.examples:
        for message in row["messages"]:
            lines += [f"**{message['role']}**", "", *_fenced(message["content"]), ""]
    return "\n".join(lines)


def _lengths(facts: Facts) -> list[str]:
    out = [
        "## Tokens of a kept sample",
        "",
        "| kind | rows | mean | median | 95 % | longest |",
        "|---|---|---|---|---|---|",
    ]
    for kind, found in sorted(facts.tokens.items()):
        ordered = sorted(found)
        out.append(
            f"| {_cell(kind)} | {len(found)} | {statistics.fmean(found):.1f} | {statistics.median(ordered):g} "
            f"| {ordered[int(0.95 * (len(ordered) - 1))]} | {ordered[-1]} |"
        )
    return [*out, ""]


def _rates(facts: Facts) -> list[str]:
    """By kind, language and level, and how many prompts have which rate."""
    known = [(row, rate, kept) for row, rate, kept in facts.rates if rate is not None]
    if not known:
        return []
    out = ["## Pass rates", "", "Share of the samples with a right answer (where nothing says so: that passed).", "",
           "| prompts | how many | pass rate | with nothing kept |", "|---|---|---|---|"]  # fmt: skip
    for name in ("kind", "language", "level"):
        groups: dict[str, list[tuple[float, int]]] = {}
        for row, rate, kept in known:
            if row.get(name) is not None:
                groups.setdefault(f"{name} {row[name]}", []).append((rate, kept))
        out += [_group(group, found) for group, found in sorted(groups.items())]
    out.append(_group("all", [(rate, kept) for _, rate, kept in known]))
    bins = Counter(min(BINS - 1, int(rate * BINS)) if rate < 1 else BINS for _, rate, _ in known)
    zero = sum(rate == 0 for _, rate, _ in known)
    shown = [("0", zero), *((f"{b / BINS:g} to {(b + 1) / BINS:g}", bins[b] - (zero if b == 0 else 0))
                            for b in range(BINS)), ("1", bins[BINS])]  # fmt: skip
    out += ["", "| pass rate | prompts |", "|---|---|", *(f"| {name} | {n} |" for name, n in shown if n), ""]
    return out


def _group(name: str, found: Sequence[tuple[float, int]]) -> str:
    rates = [rate for rate, _ in found]
    return f"| {_cell(name)} | {len(found)} | {statistics.fmean(rates):.1%} | {sum(kept == 0 for _, kept in found)} |"


def _never(facts: Facts) -> list[str]:
    """Prompts that no sample ever answered rightly: too hard, or their gold is wrong (known-failures g11)."""
    rows = [row for row, rate, _ in facts.rates if rate == 0]
    if not rows:
        return []
    out = ["## Prompts without a right sample", "",
           f"{len(rows)} prompts: too hard for this policy, or their gold answer is wrong.", ""]  # fmt: skip
    out += [f"- {_cell(_asked(row))} (gold {_cell(row.get('gold'))})" for row in rows[:SHOWN]]
    return [*out, *([f"- and {len(rows) - SHOWN} more, in prompts.jsonl"] if len(rows) > SHOWN else []), ""]


def _asked(row: Row) -> str:
    return next((m["content"] for m in reversed(row["messages"]) if m["role"] == "user"), "")[:200]


def _cell(value: Any) -> str:
    """Text that stays inside a cell, and shows no markup of its own."""
    text = " ".join(str(value).split())
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", text)


def _fenced(text: str) -> Iterable[str]:
    """A block that the text cannot close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, text, fence]
