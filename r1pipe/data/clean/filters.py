"""Filters on one row: language, length, measured pass rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from r1pipe.data import files, languages
from r1pipe.data.clean.dedup import question
from r1pipe.data.convert import Dropped
from r1pipe.data.rows import Row, is_ours, row_id
from r1pipe.data.values import Record, number, text
from r1pipe.errors import UserError
from r1pipe.settings import Cleaning


def filtered(
    rows: Sequence[Row], options: Cleaning, rates: Mapping[str, float] | None
) -> tuple[list[int], list[Dropped]]:
    """Indexes of the rows to keep, and the others. `rates`: pass rates by row id."""
    wanted = {languages.code(name) or name for name in options.languages or ()}
    kept: list[int] = []
    dropped: list[Dropped] = []
    for index, row in enumerate(rows):
        found = _reason(row, options, wanted, rates)
        if found is None:
            kept.append(index)
        else:
            dropped.append(Dropped.row(row, found[0], **found[1]))
    return kept, dropped


def _reason(
    row: Row, options: Cleaning, wanted: set[str], rates: Mapping[str, float] | None
) -> tuple[str, dict[str, Any]] | None:
    if wanted and row["language"] not in wanted:
        return "language", {"language": row["language"]}
    if options.min_chars is not None and (n := len(question(row).strip())) < options.min_chars:
        return "too_short", {"chars": n}
    if options.max_chars is not None and (n := size(row)) > options.max_chars:
        return "too_long", {"chars": n}
    if options.pass_rate is not None:
        rate = rates.get(row["id"]) if rates is not None else row.get("pass_rate")
        if rate is None:
            return "no_pass_rate", {}
        low, high = options.pass_rate
        if not low <= rate <= high:
            return ("too_hard" if rate < low else "too_easy"), {"pass_rate": rate}
    return None


def size(row: Row) -> int:
    """Characters of all texts of a row."""
    return sum(len(m["content"]) for m in row["messages"]) + sum(len(row.get(n) or "") for n in _ANSWERS)


_ANSWERS = ("chosen", "rejected", "response")


def pass_rates(path: str) -> dict[str, float]:
    """Pass rates by row id, of a file with the columns `id` and `pass_rate`, or `id`, `passed` and `sampled`. Of
    traces, as rejection sampling writes them, the id is that of the prompt."""
    found: dict[str, float] = {}
    records = 0
    for file in files.find(path, "train"):
        for record in files.read(file, lambda reason: None):
            records += 1
            name, rate = _prompt_id(record), number(record.get("pass_rate"))
            if rate is None:
                passed, sampled = number(record.get("passed")), number(record.get("sampled"))
                rate = passed / sampled if passed is not None and sampled else None
            if name is not None and rate is not None and 0 <= rate <= 1:
                found[name] = rate
    if not found:
        raise UserError(
            f"{Path(path)} has no measured pass rates in its {records} rows",
            hint="columns id and pass_rate (0 to 1), or id, passed and sampled",
        )
    return found


def _prompt_id(record: Record) -> str | None:
    turns = record.get("messages")
    if is_ours(record) and isinstance(turns, list) and turns and turns[-1].get("role") == "assistant":
        return row_id(turns[:-1])
    return text(record.get("id"))
