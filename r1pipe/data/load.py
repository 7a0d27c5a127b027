"""Loads the rows that a `DataSpec` names: generated, from local files, or from the hub.

Nothing is dropped silently: every record that becomes no row is counted as data/dropped/<reason>.
"""

from __future__ import annotations

import inspect
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

from r1pipe.chat import Tags
from r1pipe.data import adapters, files, hub
from r1pipe.data.rows import (
    Row,
    What,
    datasets_digest,
    guess_language,
    read_rows,
    row_id,
    write_rows,
)
from r1pipe.errors import UserError, nearest
from r1pipe.settings import DataSpec

__all__ = ["Row", "datasets_digest", "load", "read_rows", "row_id", "source_digest", "write_rows"]

GENERATED = "generated:"
FIELDS = (
    "messages", "prompt", "completion", "question", "problem", "gold", "answer", "solution",
    "chosen", "rejected", "response", "label", "kind", "language", "level", "reference", "id", *adapters.EXTRAS,
)  # fmt: skip


class Counts(Protocol):
    """What the loader needs of a StageContext."""

    def count(self, name: str, n: float = 1) -> None: ...


def load(spec: DataSpec, what: What, *, seed: int, ctx: Counts | None = None, tags: Tags = Tags()) -> list[Row]:
    """Rows for one use: "prompts", "traces" (SFT), "pairs" or "labels". The same spec and seed give the same rows.

    Rows of files and of the hub are shuffled by `seed` and then limited to `spec.rows`; fewer than asked for are
    counted as data/missing_rows. Raises UserError for an unknown source or argument, a missing column, no rows.
    """
    if spec.source.startswith(GENERATED):
        return _generated(spec, what, seed)
    dropped: Counter[str] = Counter()
    records = _records(spec, dropped)
    rows = _convert(spec, what, records, dropped, tags)
    if what == "prompts":
        rows = _usable(rows, dropped)
    if ctx is not None:
        for reason, n in sorted(dropped.items()):
            ctx.count(f"data/dropped/{reason}", n)
    if not rows:
        why = ", ".join(f"{n} {reason}" for reason, n in sorted(dropped.items())) or "the source is empty"
        raise UserError(f"no rows for {what} in {spec.source} (split {spec.split}): {why}", hint="look at the data")
    random.Random(f"{seed}/{spec.source}/{spec.split}").shuffle(rows)
    if spec.rows is not None and ctx is not None and len(rows) < spec.rows:
        ctx.count("data/missing_rows", spec.rows - len(rows))
    return rows[: spec.rows]


def _generated(spec: DataSpec, what: What, seed: int) -> list[Row]:
    from r1pipe.data.generated import GENERATORS, make

    name = spec.source.removeprefix(GENERATED)
    if spec.rows is None:
        raise UserError(f"{spec.source} is endless: how many rows?", hint="set data.rows")
    given: dict[str, Any] = {"rows": spec.rows, "seed": seed}
    function = GENERATORS.get(name, {}).get(what)
    known = list(inspect.signature(function).parameters) if function else []
    if "split" in known:
        given["split"] = spec.split
    free = [k for k in known if k not in given]
    for key in spec.args if function else ():
        if key not in free:
            raise UserError(
                f'data.args of {spec.source} ({what}) has "{key}"{nearest(key, free)}',
                hint=f"its arguments: {', '.join(free)}",
            )
    rows = make(name, what, **spec.args, **given)  # names an unknown generator or use itself
    return [{**row, "kind": spec.kind} for row in rows] if spec.kind else rows


def _usable(rows: list[Row], dropped: Counter[str]) -> list[Row]:
    """The rows whose gold answer can be compared. One that cannot would never be paid, or pay anything
    (known-failures a1, g2)."""
    from r1pipe.rewards import correctness

    reasons = correctness.check_golds([row if row["gold"] is not None else {"kind": "general"} for row in rows])
    kept = [row for row, reason in zip(rows, reasons, strict=True) if reason is None]
    if len(kept) < len(rows):
        dropped["gold_unusable"] += len(rows) - len(kept)
    return kept


def is_local(source: str) -> bool:
    """A path, or something that is no hub id."""
    path = Path(source).expanduser()
    looks = source.startswith((".", "/", "~")) or path.suffix in files.SUFFIXES
    return looks or path.exists() or not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", source)


def _records(spec: DataSpec, dropped: Counter[str]) -> Iterator[dict[str, Any]]:
    if not is_local(spec.source):
        yield from hub.read(spec)
        return
    if spec.args:
        raise UserError(f"data.args of the file {spec.source} has no use", hint="remove data.args")

    def count(reason: str) -> None:
        dropped[reason] += 1

    for path in files.find(spec.source, spec.split):
        yield from files.read(path, count)


def _convert(
    spec: DataSpec, what: What, records: Iterable[dict[str, Any]], dropped: Counter[str], tags: Tags
) -> list[Row]:
    for field in spec.columns:
        if field not in FIELDS:
            raise UserError(f'data.columns has "{field}"{nearest(field, FIELDS)}', hint=f"fields: {', '.join(FIELDS)}")
    rows = []
    chosen: dict[frozenset[str], adapters.Adapter] = {}
    for raw in records:
        columns = frozenset(raw)
        if columns not in chosen:
            chosen[columns] = _adapter(spec, what, set(columns))
        record = {**raw, **{field: raw.get(column) for field, column in spec.columns.items()}}
        try:
            rows.append(_finish(spec, what, record, chosen[columns].convert(record, what, tags)))
        except adapters.Drop as drop:
            dropped[str(drop)] += 1
    return rows


def _adapter(spec: DataSpec, what: What, columns: set[str]) -> adapters.Adapter:
    found = ", ".join(sorted(columns))
    for field, column in spec.columns.items():
        if column not in columns:
            raise UserError(
                f'{spec.source} has no column "{column}"{nearest(column, columns)} for {field}; found: {found}',
                hint=f"correct data.columns.{field}",
            )
    adapter = adapters.choose(columns | set(spec.columns), what)
    if adapter is None:
        raise UserError(
            f"{spec.source} has columns {found}, which are no known shape for {what}",
            hint=f"map them with data.columns, as in {{gold: your_column}}; known shapes: {adapters.expected(what)}",
        )
    return adapter


def _finish(spec: DataSpec, what: What, record: dict[str, Any], row: Row) -> Row:
    """The fields that every row has, with what the record says of itself."""
    messages = row["messages"]
    gold = row.get("gold")
    # A source with a column for answers is one of problems: a row without an answer is then of no use to a reward.
    problems = any(name in record for name in adapters.GOLDS)
    extra = {name: record[name] for name in adapters.EXTRAS if record.get(name) not in (None, "", [])}
    kind = adapters.text(record.get("kind")) or spec.kind or adapters.kind_of(extra)
    kind = kind or ("math" if problems else "general")
    if what == "prompts" and gold is None and kind not in adapters.WITHOUT_GOLD:
        raise adapters.Drop("no_gold")
    level = adapters.text(record.get("level"))
    own = record.get("id")
    asked = next((m["content"] for m in reversed(messages) if m["role"] == "user"), "")
    return {
        **row,
        # By content: steps are paired and splits compared by it. Rows that were ours keep what they have.
        "id": own if isinstance(own, str) and re.fullmatch(r"[0-9a-f]{16}", own) else row_id(messages),
        "gold": gold,
        "kind": kind,
        "language": adapters.text(record.get("language")) or guess_language(asked),
        "level": int(level) if level and re.fullmatch(r"\d+", level) else None,
        "reference": row.get("reference") or adapters.text(record.get("reference")),
        "source": Path(spec.source).name if is_local(spec.source) else spec.source,
        **({"extra": extra} if extra else {}),
        **({"lookalike": record["lookalike"]} if isinstance(record.get("lookalike"), bool) else {}),
    }


def source_digest(spec: DataSpec) -> str:
    """What the rows come from, for fingerprints; light (no torch, no datasets).

    The generator's name and version, the sha256 of local files, or `id@revision` of a hub dataset.
    """
    if spec.source.startswith(GENERATED):
        from r1pipe.data.generated import VERSIONS

        name = spec.source.removeprefix(GENERATED)
        if name not in VERSIONS:
            raise UserError(f'unknown generated set "{name}"{nearest(name, VERSIONS)}', hint="correct data.source")
        return f"{name}@{VERSIONS[name]}"
    if is_local(spec.source):
        return files.digest(spec.source, spec.split)
    return hub.pinned(spec)
