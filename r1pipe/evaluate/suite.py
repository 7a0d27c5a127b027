"""Runs the sets of an evaluation on one policy.

Accuracy is pass@1: the mean over a problem's samples, then over problems. Numbers are {"value", "low", "high",
"n"}, n problems, with 95 % bootstrap intervals clustered by problem. The verifiers are those of training.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

from r1pipe.chat import ChatConfig, Tags
from r1pipe.evaluate.paired import METRICS, SHARES
from r1pipe.evaluate.stats import intervals
from r1pipe.generate import Sample, make
from r1pipe.settings import EngineConfig, EvalConfig, EvalSet, SamplingConfig
from r1pipe.stage import StageContext

Row = dict[str, Any]
Record = dict[str, Any]

# The rows of a set never depend on a step's seed: steps are compared problem by problem.
DATA_SEED = 0


def run(
    model_dir: str | Path | None,
    config: EvalConfig,
    *,
    chat: ChatConfig,
    engine: EngineConfig,
    seed: int,
    ctx: StageContext,
    model: Any = None,
    tokenizer: Any = None,
    dtype: str = "auto",
) -> tuple[dict[str, Any], list[Record]]:
    """(metrics, records). `metrics[set][mode]` has the numbers that apply to the set: accuracy, format, language
    (share of the thinking in the row's language), tokens (mean length), truncated, refusal_unsafe, refusal_safe
    (harmless requests, look-alikes included), refusal_lookalike; and `problems`, `samples` a problem, `skipped`,
    `status` (verdicts of accuracy). `records`: one a problem and mode, for `paired`."""
    rows = {s.name: _rows(s, ctx) for s in config.sets}
    total = sum(len(rows[s.name]) * _sampling(config, s, mode).n for s in config.sets for mode in s.modes)
    sampler = make(engine, model_dir, chat, dtype=dtype, model=model, tokenizer=tokenizer)
    ctx.fact("evaluation/engine", sampler.facts)
    metrics: dict[str, Any] = {}
    records: list[Record] = []
    before = tokens_before = 0
    began = time.monotonic()

    def progress(done: int, _: int, tokens: int) -> None:
        seconds = max(time.monotonic() - began, 1e-6)
        ctx.progress(before + done, total, tokens_per_s=(tokens_before + tokens) / seconds)

    try:
        for part in config.sets:
            for mode in part.modes:
                ctx.phase(f"evaluating {part.name} ({mode})")
                mine = rows[part.name]
                sampling = _sampling(config, part, mode)
                groups = sampler.generate([row["messages"] for row in mine], sampling, seed=seed, on_progress=progress)
                found, status = score(mine, groups, chat.tags)
                for i, record in enumerate(found):
                    record |= {"set": part.name, "mode": mode}
                    if i >= config.keep_samples:
                        record["text"] = record["prompt"] = None
                metrics.setdefault(part.name, {})[mode] = _summary(found, status, sampling.n, config, ctx)
                records += found
                before += len(mine) * sampling.n
                tokens_before += sum(sample.tokens for group in groups for sample in group)
    finally:
        sampler.close()
    return metrics, records


def _sampling(config: EvalConfig, part: EvalSet, mode: str) -> SamplingConfig:
    if mode == "greedy":
        return SamplingConfig(n=1, temperature=0.0, top_p=1.0, max_tokens=config.max_tokens)
    return SamplingConfig(n=part.n, temperature=config.temperature, top_p=config.top_p, max_tokens=config.max_tokens)


def _rows(part: EvalSet, ctx: StageContext) -> list[Row]:
    """The rows of a set, each problem once."""
    from r1pipe.data.load import load

    loaded = load(part.data, "prompts", seed=DATA_SEED, ctx=ctx)
    rows = list({row["id"]: row for row in loaded}.values())
    if len(rows) < len(loaded):
        ctx.count("evaluation/duplicates", len(loaded) - len(rows))
    return rows


def score(rows: list[Row], groups: list[list[Sample]], tags: Tags) -> tuple[list[Record], Counter[str]]:
    """One record a row (means over its samples), and how many verdicts of accuracy had each status.

    A skipped sample enters no mean: it says nothing about the policy. `correct` is None without a gold, and where
    the fault was ours (a bad gold, a crashed worker).
    """
    from r1pipe.rewards import correctness, format, language, registry

    flat = [(row, s) for row, group in zip(rows, groups, strict=True) for s in group if s.finish != "skipped"]
    judged = [(row, s) for row, s in flat if row.get("gold") is not None or row["kind"] in registry.BY_KIND]
    given = [{**row, **(row.get("extra") or {})} for row, _ in judged]
    verdicts = correctness.verify_batch([s.text for _, s in judged], given, tags=tags)
    status: Counter[str] = Counter(v.status for v in verdicts)
    correct = {id(s): v.score for (_, s), v in zip(judged, verdicts, strict=True)}
    records = []
    for row, group in zip(rows, groups, strict=True):
        kept = [s for s in group if s.finish != "skipped"]
        finishes = {s.finish for s in group}
        records.append(
            {
                "id": row["id"],
                "kind": row["kind"],
                "target": row.get("language"),
                "level": row.get("level"),
                "lookalike": bool(row.get("lookalike")),
                "correct": _mean([correct.get(id(s)) for s in kept]),
                "format": _mean([format.verify(s.text, row, tags=tags).score for s in kept]),
                "language": _mean([language.verify(s.text, row, tags=tags).score for s in kept]),
                "tokens": _mean([s.tokens for s in kept]),
                "truncated": _mean([float(s.finish == "length") for s in kept]),
                "refusal": _refusal(row, kept, tags),
                "finish": finishes.pop() if len(finishes) == 1 else "mixed",
                "skipped": len(group) - len(kept),
                "prompt": row["messages"][-1]["content"],
                "text": kept[0].text if kept else None,
            }
        )
    return records, status


def _refusal(row: Row, samples: list[Sample], tags: Tags) -> float | None:
    """Share of refusals among what a reader is shown; None for rows where refusing is no question."""
    if row["kind"] not in ("general", "safety"):
        return None
    from r1pipe.data.generated.general import is_refusal

    return _mean([float(is_refusal(tags.split(s.text).final)) for s in samples])


def _mean(values: list[Any]) -> float | None:
    found = [v for v in values if v is not None]
    return sum(found) / len(found) if found else None


def _summary(
    records: list[Record], status: Counter[str], samples: int, config: EvalConfig, ctx: StageContext
) -> dict[str, Any]:
    columns = {name: [value(r) for r in records] for name, value in METRICS.items()}
    skipped = sum(r["skipped"] for r in records)
    if skipped:
        where = f"{records[0]['set']} ({records[0]['mode']})"
        ctx.count("evaluation/skipped", skipped)
        ctx.warn(
            f"evaluation {where}: {skipped} of {len(records) * samples} samples skipped (the prompt does not fit)"
        )
    return {
        **intervals(columns, resamples=config.bootstrap, seed=DATA_SEED, bounded=SHARES),
        "problems": len(records),
        "samples": samples,
        "skipped": skipped,
        "status": dict(sorted(status.items())),
    }
