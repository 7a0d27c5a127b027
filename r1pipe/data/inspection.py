"""What is in a source: schema, lengths, languages, kinds, golds, duplicates, and what would be dropped and why."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from r1pipe.chat import Tags
from r1pipe.data import adapters, files, sources
from r1pipe.data.clean.dedup import question
from r1pipe.data.convert import Converter, Dropped, finished
from r1pipe.data.load import Collected, collect
from r1pipe.data.rows import Row, What
from r1pipe.errors import UserError
from r1pipe.settings import DataSpec

MADE_ROWS = 1000  # of an endless source, where no number is given
LOOKED_AT = 1000  # records that decide the use
EXAMPLES = 3
DROPPED_SHOWN = 20  # dropped rows in the report, some of every reason

Progress = Callable[[str], None]
Reading = Callable[[Iterable[Any]], Iterable[Any]]


def likely_use(spec: DataSpec) -> What:
    """What most of the first records are for."""
    if sources.is_made(spec.source):
        return "prompts"
    converter = Converter(spec, "prompts", Tags())
    uses: Counter[What] = Counter()
    columns: set[str] = set()
    for record in islice(sources.records(spec, lambda reason: None), LOOKED_AT):
        record = converter.mapped(record)
        columns.update(record)
        schema = adapters.recognise(record)
        if schema is not None:
            uses[adapters.main_use(schema, record)] += 1
    if not uses:
        found = f"columns {', '.join(sorted(columns))}, which are no known schema" if columns else "no rows"
        raise UserError(
            f"{spec.source} (split {spec.split}) has {found}",
            hint="map them: --columns prompt=your_column --columns gold=another" if columns else "look at the file",
        )
    return uses.most_common(1)[0][0]


def with_rows(spec: DataSpec) -> DataSpec:
    """The spec; an endless source without a number of rows gets one."""
    if sources.is_made(spec.source) and spec.rows is None:
        return spec.model_copy(update={"rows": MADE_ROWS})
    return spec


def inspect(
    spec: DataSpec,
    use: What | None,
    *,
    seed: int,
    tokenizer: str | None = None,
    progress: Progress = lambda text: None,
    reading: Reading = lambda records: records,
) -> dict[str, Any]:
    """The report, JSON-able. `spec.clean` says what counts as dropped."""
    started = time.monotonic()
    spec = with_rows(spec)
    what = use or likely_use(spec)
    found = collect(spec, what, seed=seed, check_golds=True, progress=progress, reading=reading)
    progress("lengths")
    report = {
        "source": spec.source,
        "split": spec.split,
        "revision": spec.revision,
        "files": _files(spec),
        "use": what,
        "records": found.records,
        "rows": len(found.rows),
        **summary(found),
        "golds": _golds(found),
        "duplicates": _duplicates(found),
        "contaminated": sum(d.reason == "contaminated" for d in found.dropped),
        "facts": found.facts,
        "tokens": _tokens(found.rows, tokenizer) if tokenizer else None,
        "dropped": found.reasons(),
        "dropped_examples": dropped_examples(found.dropped),
        "examples": [shown(row) for row in examples(found.rows)],
    }
    return {**report, "seconds": round(time.monotonic() - started, 2)}


def summary(found: Collected) -> dict[str, Any]:
    """Counts and lengths of the rows, as the report and the manifest of a prepared folder show them."""
    rows = found.rows
    levels = Counter(row["level"] for row in rows if row["level"] is not None)
    return {
        "schemas": dict(found.schemas.most_common()),
        "gold_from": dict(found.gold_from.most_common()),
        "kinds": dict(Counter(row["kind"] for row in rows).most_common()),
        "languages": dict(Counter(row["language"] for row in rows).most_common()),
        "levels": {str(k): n for k, n in sorted(levels.items())},
        "chars": {name: spread(list(map(len, texts))) for name, texts in texts_of(rows).items()},
    }


def texts_of(rows: Sequence[Row]) -> dict[str, list[str]]:
    """The texts of rows by what they are; only those that there are."""
    found: dict[str, list[str]] = {"question": [question(row) for row in rows]}
    found["answer"] = [row["messages"][-1]["content"] for row in rows if row["messages"][-1]["role"] == "assistant"]
    for name in ("chosen", "rejected", "response", "reference"):
        found[name] = [row[name] for row in rows if row.get(name)]
    return {name: texts for name, texts in found.items() if texts}


def spread(sizes: Sequence[int]) -> dict[str, float]:
    """Number, least, median, mean, 95th percentile, most."""
    ordered = sorted(sizes)
    if not ordered:
        return {"n": 0}
    return {
        "n": len(ordered),
        "min": ordered[0],
        "median": statistics.median(ordered),
        "mean": round(statistics.fmean(ordered), 1),
        "p95": ordered[min(len(ordered) - 1, round(0.95 * (len(ordered) - 1)))],
        "max": ordered[-1],
    }


def _files(spec: DataSpec) -> int | None:
    made = sources.is_made(spec.source)
    return None if made or not sources.is_local(spec.source) else len(files.find(spec.source, spec.split))


def _golds(found: Collected) -> dict[str, int]:
    """Rows that are left with a gold answer; rows dropped for theirs; problems without one."""
    bad = sum(d.reason == "gold_unusable" for d in found.dropped)
    have = sum(row["gold"] is not None for row in found.rows)
    return {"usable": have, "unusable": bad, "missing": found.reasons().get("no_gold", 0)}


def _duplicates(found: Collected) -> dict[str, int]:
    reasons = found.reasons()
    return {
        "exact": reasons.get("duplicate", 0) + reasons.get("duplicate_other_gold", 0),
        "with_another_gold": reasons.get("duplicate_other_gold", 0),
        "near": reasons.get("near_duplicate", 0),
    }


def dropped_examples(dropped: Sequence[Dropped]) -> list[dict[str, Any]]:
    """Some of every reason, rare reasons first to be seen."""
    by_reason: dict[str, list[Dropped]] = {}
    for d in dropped:
        by_reason.setdefault(d.reason, []).append(d)
    each = max(1, DROPPED_SHOWN // max(1, len(by_reason)))
    return [dropped_line(d) for group in by_reason.values() for d in group[:each]]


def dropped_line(d: Dropped) -> dict[str, Any]:
    return {
        "reason": d.reason,
        "record": d.record,
        "id": d.id,
        "text": d.text,
        **({"detail": d.detail} if d.detail else {}),
    }


def examples(rows: Sequence[Row]) -> list[Row]:
    """The first row, the last, and one in the middle."""
    places = sorted({0, len(rows) // 2, len(rows) - 1}) if rows else []
    return finished(rows[i] for i in places[:EXAMPLES])


def shown(row: Row, most: int = 2000) -> Row:
    """A row for a report: long texts cut."""

    def cut(value: Any) -> Any:
        if isinstance(value, str):
            return value if len(value) <= most else value[:most] + f"… ({len(value)} characters)"
        if isinstance(value, list):
            return [cut(v) for v in value]
        return {k: cut(v) for k, v in value.items()} if isinstance(value, dict) else value

    return cut(row)


def _tokens(rows: Sequence[Row], name: str) -> dict[str, dict[str, float]]:
    """Lengths in tokens of a tokenizer: a folder, builtin:tiny-base, or a hub id."""
    lengths = _tokenizer(name)
    return {part: spread(lengths(texts)) for part, texts in texts_of(rows).items()}


def _tokenizer(name: str) -> Callable[[list[str]], list[int]]:
    from r1pipe.fingerprint import model_folder
    from r1pipe.settings import ModelConfig

    folder = Path(name).expanduser() if Path(name).expanduser().is_dir() else None
    if name.startswith("builtin:"):
        folder = model_folder(ModelConfig(path=name))
    if folder is not None and (folder / "tokenizer.json").is_file():  # without the seconds that transformers takes
        from tokenizers import Tokenizer

        fast = Tokenizer.from_file(str(folder / "tokenizer.json"))
        fast.no_truncation()
        fast.no_padding()
        return lambda texts: [len(e.ids) for e in fast.encode_batch(texts, add_special_tokens=False)]
    from r1pipe.training.model import load_tokenizer

    try:
        slow = load_tokenizer(folder or Path(name))
    except (OSError, ValueError) as error:
        first = str(error).strip().splitlines()[0][:200]
        message = f"cannot load the tokenizer {name}: {first}"
        raise UserError(message, hint="a folder, builtin:tiny-base, a hub id") from None
    return lambda texts: [len(ids) for ids in slow(texts, add_special_tokens=False)["input_ids"]]
