"""Cleaning: what is left out of rows before they are used. Every row that goes has a reason and, where there is one,
what shows it (the row it repeats, the n-gram that it shares)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from r1pipe.data.clean import decontaminate, dedup, filters
from r1pipe.data.convert import Dropped
from r1pipe.data.rows import Row
from r1pipe.settings import Cleaning, DataSpec

VERSION = "1"
Progress = Callable[[str], None]
Questions = Callable[[DataSpec], list[decontaminate.Prompt]]


@dataclass
class Cleaned:
    """The rows that stay, the others, and facts: prompts of each evaluation set, rows with stock phrases only."""

    rows: list[Row]
    dropped: list[Dropped] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


def clean(rows: Sequence[Row], options: Cleaning, *, questions: Questions, progress: Progress) -> Cleaned:
    """Filters, exact duplicates, near duplicates, decontamination, in this order."""
    done = Cleaned(list(rows))

    def keep(kept: list[int], dropped: list[Dropped]) -> None:
        done.rows = [done.rows[i] for i in kept]
        done.dropped += dropped

    rates = filters.pass_rates(options.pass_rates) if options.pass_rates else None
    keep(*filters.filtered(done.rows, options, rates))
    if options.dedup:
        progress("duplicates")
        keep(*dedup.exact(done.rows))
    if options.near_dup is not None:
        progress("near duplicates")
        keep(*dedup.near(done.rows, options.near_dup))
    if options.decontaminate:
        progress("decontamination")
        prompts = [p for spec in options.decontaminate for p in questions(spec)]
        index = decontaminate.Index.of(prompts, options.ngram)
        keep(*decontaminate.decontaminate(done.rows, index))
        done.facts["evaluation_prompts"] = len(index.prompts)
        done.facts["stock_phrases_only"] = index.phrases
    return done
