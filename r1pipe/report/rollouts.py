"""Completions that TRL kept while training (`trainer: {log_completions: true}`): reflection words over the steps."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from r1pipe.report import reflection
from r1pipe.report.history import Points
from r1pipe.store import Attempt


@dataclass
class Rollouts:
    """Of one RL step: words a completion at each logged training step, totals, and a few completions."""

    words: Points = field(default_factory=list)  # (training step, reflection words a completion)
    totals: Counter[str] = field(default_factory=Counter)
    completions: int = 0
    examples: list[tuple[int, str, str]] = field(default_factory=list)  # (training step, prompt, completion)
    unreadable: list[str] = field(default_factory=list)


def read(attempt: Attempt) -> Rollouts | None:
    """None where the step kept none."""
    files = sorted((attempt.work / "checkpoints" / "completions").glob("completions_*.parquet"))
    if not files:
        return None
    found = Rollouts()
    shown = {0, len(files) // 2, len(files) - 1}
    for index, path in enumerate(files):
        rows = _rows(path)
        if not rows:
            found.unreadable.append(path.name)
            continue
        counts = [reflection.count(_text(row["completion"])) for row in rows]
        for c in counts:
            found.totals.update(c)
        found.completions += len(rows)
        step = int(rows[0]["step"])
        found.words.append((float(step), sum(c.total() for c in counts) / len(rows)))
        if index in shown:
            most = max(range(len(rows)), key=lambda i: counts[i].total())
            found.examples.append((step, _text(rows[most]["prompt"]), _text(rows[most]["completion"])))
    return found


def _rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a file; none where it was cut by a kill."""
    import pyarrow
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:  # read_table would import pandas
            batches = file.iter_batches(columns=["step", "prompt", "completion"])
            return [row for batch in batches for row in batch.to_pylist()]
    except (pyarrow.ArrowException, OSError, ValueError):
        return []


def _text(value: Any) -> str:
    """The last message of a conversation, or plain text."""
    if isinstance(value, list):
        value = value[-1].get("content") if value else ""
    return str(value or "")
