"""Loads the rows that a `DataSpec` names: made from a seed, from local files, or from the hub.

Nothing is dropped silently: every record that becomes no row is counted as data/dropped/<reason>; which schema was
recognised, and which column gave the gold answers, are facts of the manifest.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from r1pipe.chat import Tags
from r1pipe.data import files, mix, sources
from r1pipe.data.convert import Converted, Converter, Dropped, finished
from r1pipe.data.rows import Row, What, datasets_digest, read_rows, row_id, write_rows
from r1pipe.data.sources import GENERATED, is_local
from r1pipe.data.sources import digest as source_digest
from r1pipe.digest import file_digest
from r1pipe.errors import UserError
from r1pipe.settings import DataSpec

__all__ = [
    "GENERATED",
    "Row",
    "datasets_digest",
    "is_local",
    "load",
    "load_all",
    "read_rows",
    "row_id",
    "source_digest",
    "write_rows",
]

EVALUATION_SEED = 0  # evaluation sets that are made are made from this seed (evaluate/sets.py)
HITS = 100  # contaminated rows that the manifest of a step shows


class Counts(Protocol):
    """What the loader needs of a StageContext. Where it has `fact` too, facts are told."""

    def count(self, name: str, n: float = 1) -> None: ...


def load(spec: DataSpec, what: What, *, seed: int, ctx: Counts | None = None, tags: Tags = Tags()) -> list[Row]:
    """Rows for one use: "prompts", "traces" (SFT), "pairs" or "labels". The same spec and seed give the same rows.

    Rows of files and of the hub are cleaned (`spec.clean`), shuffled by `seed`, and limited to `spec.rows`; of
    prompts, gold answers that cannot be compared are left out on the way (only as many are looked at as rows are
    needed). Fewer rows than asked for are counted as data/missing_rows. Raises UserError for an unknown source or
    argument, a missing column, no rows.
    """
    found = collect(spec, what, seed=seed, tags=tags)
    rows = found.rows
    if not sources.is_made(spec.source):
        random.Random(f"{seed}/{spec.source}/{spec.split}").shuffle(rows)
        rows, bad = usable(spec, rows, most=spec.rows) if what == "prompts" else (rows[: spec.rows], [])
        found.dropped += bad
    if ctx is not None:
        _tell(ctx, spec, found, rows)
    if not rows:
        why = ", ".join(f"{n} {reason}" for reason, n in found.reasons().items()) or "the source is empty"
        raise UserError(f"no rows for {what} in {spec.source} (split {spec.split}): {why}", hint=look_at(spec))
    return finished(rows)


def load_all(
    specs: Sequence[DataSpec], what: What, *, seed: int, ctx: Counts | None = None, tags: Tags = Tags()
) -> list[Row]:
    """The rows of all `specs`: one after the other, or, where they have weights, mixed by them (`mix.mixed`)."""
    mix.check(specs)
    loaded = [load(spec, what, seed=seed, ctx=ctx, tags=tags) for spec in specs]
    if not specs or specs[0].weight is None:
        return [row for rows in loaded for row in rows]
    rows, unused = mix.mixed(loaded, [spec.weight or 0.0 for spec in specs], seed)
    if ctx is not None:
        for spec, n in zip(specs, unused, strict=True):
            if n:
                ctx.count(f"data/mixture_unused/{spec.source}", n)
    return rows


def look_at(spec: DataSpec) -> str:
    """The command that shows what is in a source."""
    return f"r1pipe data inspect {spec.source} shows what was found"


@dataclass
class Collected:
    """The rows of a source in its order, with `record`, and all that was seen on the way."""

    rows: list[Row]
    dropped: list[Dropped] = field(default_factory=list)
    schemas: Counter[str] = field(default_factory=Counter)
    gold_from: Counter[str] = field(default_factory=Counter)
    records: int = 0
    facts: dict[str, Any] = field(default_factory=dict)

    def reasons(self) -> dict[str, int]:
        return dict(sorted(Counter(d.reason for d in self.dropped).items()))


def collect(
    spec: DataSpec,
    what: What,
    *,
    seed: int,
    tags: Tags = Tags(),
    check_golds: bool = False,
    progress: Callable[[str], None] = lambda text: None,
    reading: Callable[[Iterable[Any]], Iterable[Any]] = lambda records: records,
) -> Collected:
    """All rows of a source, cleaned. `check_golds`: look at every gold answer before cleaning. `reading` may watch the
    records as they are read."""
    if sources.is_made(spec.source):
        made = sources.make(spec, what, seed)
        found = Collected([{**row, "record": n} for n, row in enumerate(made, start=1)], records=len(made))
    else:
        progress("reading")
        converted = _converted(spec, what, tags, reading)
        found = Collected(converted.rows, converted.dropped, converted.schemas, converted.gold_from, converted.records)
        found.rows, wrong = verified(found.rows, tags)
        found.dropped += wrong
    if check_golds and what == "prompts":
        progress("gold answers")
        found.rows, bad = usable(spec, found.rows)
        found.dropped += bad
    if spec.clean is None:
        return found
    from r1pipe.data.clean import clean

    cleaned = clean(found.rows, spec.clean, questions=questions, progress=progress)
    found.rows = cleaned.rows
    found.dropped += cleaned.dropped
    found.facts = cleaned.facts
    return found


def _converted(
    spec: DataSpec,
    what: What,
    tags: Tags,
    reading: Callable[[Iterable[Any]], Iterable[Any]] = lambda records: records,
    *,
    need_gold: bool = True,
) -> Converted:
    converter = Converter(spec, what, tags, need_gold=need_gold)
    torn: list[Dropped] = []
    records = reading(sources.records(spec, lambda reason: torn.append(Dropped(reason))))
    converted = converter.convert(records)
    converted.dropped += torn
    return converted


def questions(spec: DataSpec) -> list[Any]:
    """The prompts of an evaluation set, with or without usable gold answers."""
    from r1pipe.data.clean.decontaminate import Prompt
    from r1pipe.data.clean.dedup import question

    if sources.is_made(spec.source):
        rows = sources.make(spec, "prompts", EVALUATION_SEED)
    else:
        rows = _converted(spec, "prompts", Tags(), need_gold=False).rows
    if not rows:
        raise UserError(f"the evaluation set {spec.source} (split {spec.split}) has no prompts", hint=look_at(spec))
    return [Prompt(spec.source, row["id"], question(row)) for row in rows]


def usable(spec: DataSpec, rows: list[Row], most: int | None = None) -> tuple[list[Row], list[Dropped]]:
    """The first `most` rows whose gold answer can be compared, and those before them that cannot. One that cannot
    would never be paid, or pay anything (known-failures a1, g2)."""
    from r1pipe.rewards import correctness, registry

    if golds_checked(spec):
        return rows[:most], []
    kept: list[Row] = []
    bad: list[Dropped] = []
    place = 0
    while place < len(rows) and (most is None or len(kept) < most):
        part = rows[place:] if most is None else rows[place : place + most - len(kept)]
        place += len(part)
        # Without a gold answer only the kinds that a verifier of their own judges have something to check.
        judged = [r if r["gold"] is not None or r["kind"] in registry.BY_KIND else {"kind": "general"} for r in part]
        for row, reason in zip(part, correctness.check_golds(judged), strict=True):
            if reason is None:
                kept.append(row)
            else:
                bad.append(Dropped.row(row, "gold_unusable", gold=str(row["gold"])[:200], why=reason))
    return kept, bad


def golds_checked(spec: DataSpec) -> bool:
    """Are these the untouched rows of `r1pipe data prepare`, their gold answers checked by the verifiers of today?"""
    manifest = files.prepared(spec.source) if sources.is_local(spec.source) else None
    if manifest is None:
        return False
    from r1pipe.rewards import correctness

    (data,) = files.find(spec.source, spec.split)
    return manifest.get("verifier") == correctness.VERSION and manifest.get("sha256") == file_digest(data)


def verified(rows: list[Row], tags: Tags) -> tuple[list[Row], list[Dropped]]:
    """Rows whose trace is known to be right: of those with traces that nobody judged (`unverified`), the first trace
    that our own verifier finds right is taken."""
    asked_for = [(place, trace) for place, row in enumerate(rows) for trace in row.get("unverified", ())]
    if not asked_for:
        return rows, []
    from r1pipe.rewards import correctness

    judged = [{"gold": rows[place]["gold"], "kind": rows[place]["kind"]} for place, _ in asked_for]
    verdicts = correctness.verify_batch([t for _, t in asked_for], judged, tags=tags, require_think=False)
    right: dict[int, str] = {}
    for (place, trace), verdict in zip(asked_for, verdicts, strict=True):
        if verdict.score == 1.0:
            right.setdefault(place, trace)
    kept: list[Row] = []
    wrong: list[Dropped] = []
    for place, row in enumerate(rows):
        if "unverified" not in row:
            kept.append(row)
        elif place in right:
            messages = [*row["messages"][:-1], {"role": "assistant", "content": right[place]}]
            kept.append({**row, "id": row_id(messages), "messages": messages})
        else:
            wrong.append(Dropped.row(row, "trace_wrong"))
    return kept, wrong


def _tell(ctx: Counts, spec: DataSpec, found: Collected, rows: list[Row]) -> None:
    for reason, n in found.reasons().items():
        ctx.count(f"data/dropped/{reason}", n)
    if spec.rows is not None and len(rows) < spec.rows:
        ctx.count("data/missing_rows", spec.rows - len(rows))
    fact = getattr(ctx, "fact", None)
    if fact is None or (sources.is_made(spec.source) and spec.clean is None):
        return
    about: dict[str, Any] = {"records": found.records, "rows": len(rows), **found.facts}
    if found.schemas:
        about["schemas"] = dict(found.schemas.most_common())
    if found.gold_from:
        about["gold_from"] = dict(found.gold_from.most_common())
    hits = [d for d in found.dropped if d.reason == "contaminated"]
    if hits:
        about["contaminated"] = [{"id": d.id, "text": d.text, **d.detail} for d in hits[:HITS]]
    fact(f"data/{spec.source}" + (f" ({spec.split})" if spec.split != "train" else ""), about)
