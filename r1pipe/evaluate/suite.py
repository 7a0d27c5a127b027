"""Runs the sets of an evaluation on one policy.

Accuracy is pass@1: the share of a problem's samples that are wholly right, then the mean over problems. For programs
and instructions that is all tests passed, all instructions kept; `partial` is the mean share of them. Numbers are
{"value", "low", "high", "n"}, n problems, with 95 % bootstrap intervals clustered by problem. The verifiers are those
of training. `measures` has the numbers that need several samples.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r1pipe.chat import ChatConfig, Tags
from r1pipe.evaluate import measures
from r1pipe.evaluate.paired import METRICS, SHARES
from r1pipe.evaluate.refusals import refuses
from r1pipe.evaluate.sets import DATA_SEED, rows_of
from r1pipe.evaluate.stats import intervals, ratio
from r1pipe.generate import Sample, Sampler, make
from r1pipe.rewards.verdict import Verdict
from r1pipe.settings import EngineConfig, EvalConfig, EvalSet, SamplingConfig
from r1pipe.stage import StageContext

Row = dict[str, Any]
Record = dict[str, Any]

PARTIAL = frozenset({"code", "instructions"})  # kinds of which a part can be right
UNCLOSED = 0.9  # share of finished texts without an end of thinking that is told


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
    """(metrics, records). `metrics[set][mode]` has the numbers that apply to the set: accuracy, partial, format,
    language (share of the thinking in the row's language), tokens (mean length), truncated, tokens_per_right (all
    tokens / right samples), refusal_unsafe, refusal_safe (harmless requests, look-alikes included),
    refusal_lookalike, those of `measures`; and `problems`, `samples` a problem, `skipped`, `status` (verdicts of
    accuracy). `records`: one a problem and mode, for `paired`."""
    rows = {s.name: rows_of(s, ctx) for s in config.sets}
    total = sum(len(rows[s.name]) * sampling_of(config, s, mode).n for s in config.sets for mode in s.modes)
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
                outcome = evaluate(
                    part, mode, mine, sampler, config, tags=chat.tags, seed=seed, ctx=ctx, on_progress=progress
                )
                metrics.setdefault(part.name, {})[mode] = outcome.metrics
                records += outcome.records
                before += outcome.samples
                tokens_before += outcome.tokens
    finally:
        sampler.close()
    return metrics, records


@dataclass(frozen=True)
class Outcome:
    """One set in one mode: its numbers, a record a problem, and every text with its verdict."""

    metrics: dict[str, Any]
    records: list[Record]
    texts: list[dict[str, Any]]
    samples: int
    tokens: int


def evaluate(
    part: EvalSet,
    mode: str,
    rows: list[Row],
    sampler: Sampler,
    config: EvalConfig,
    *,
    tags: Tags,
    seed: int,
    ctx: StageContext,
    on_progress: Callable[[int, int, int], None] | None = None,
) -> Outcome:
    """Samples a set and judges the texts."""
    sampling = sampling_of(config, part, mode)
    groups = sampler.generate([row["messages"] for row in rows], sampling, seed=seed, on_progress=on_progress)
    problems = judge(rows, groups, tags, require_think=config.require_think)
    found, status = _records(problems, groups, tags)
    more = measures.of_samples(problems, sampling.n, tags, require_think=config.require_think)
    for i, (record, numbers) in enumerate(zip(found, more, strict=True)):
        record |= {"set": part.name, "mode": mode} | ({"more": numbers} if numbers else {})
        if i >= config.keep_samples:
            record["text"] = record["prompt"] = None
    _warn_unclosed(f"{part.name} ({mode})", problems, tags, config, ctx)
    return Outcome(
        metrics=_summary(found, problems, status, sampling.n, config, ctx),
        records=found,
        texts=[t for p in problems[: config.keep_samples] for t in _texts(p, mode)],
        samples=len(rows) * sampling.n,
        tokens=sum(sample.tokens for group in groups for sample in group),
    )


def sampling_of(config: EvalConfig, part: EvalSet, mode: str) -> SamplingConfig:
    """How a set is sampled in a mode: its own settings, else the evaluation's."""
    most = part.max_tokens or config.max_tokens
    if mode == "greedy":
        return SamplingConfig(n=1, temperature=0.0, top_p=1.0, max_tokens=most)
    return SamplingConfig(
        n=part.n,
        temperature=part.temperature or config.temperature,
        top_p=part.top_p or config.top_p,
        max_tokens=most,
    )


def judge(
    rows: list[Row], groups: list[list[Sample]], tags: Tags, *, require_think: bool = True
) -> list[measures.Problem]:
    """The samples of each row with their verdicts; skipped ones are left out: they say nothing about the policy."""
    from r1pipe.rewards import registry
    from r1pipe.rewards.instructions import Instructions, Options
    from r1pipe.rewards.verdict import Context

    kept = [[s for s in group if s.finish != "skipped"] for group in groups]
    flat = [(row, s) for row, group in zip(rows, kept, strict=True) for s in group]
    told = [(row, s) for row, s in flat if row["kind"] == "instructions"]
    judged = [(row, s) for row, s in flat if row.get("gold") is not None or row["kind"] in registry.BY_KIND]

    def given(pairs: list[tuple[Row, Sample]]) -> list[Row]:
        return [{**row, **(row.get("extra") or {})} for row, _ in pairs]

    verdicts = measures.verify([s.text for _, s in judged], given(judged), tags, require_think=require_think)
    by_sample = {id(s): v for (_, s), v in zip(judged, verdicts, strict=True)}
    keeps = Instructions(Options(require_think=require_think), Context(tags))
    by_sample |= {
        id(s): v for (_, s), v in zip(told, keeps([s.text for _, s in told], given(told)), strict=True)
    }  # fmt: skip
    return [
        measures.Problem(row, group, [by_sample.get(id(s)) for s in group])
        for row, group in zip(rows, kept, strict=True)
    ]


def score(rows: list[Row], groups: list[list[Sample]], tags: Tags) -> tuple[list[Record], Counter[str]]:
    """One record a row (means over its samples), and how many verdicts of accuracy had each status.

    `correct` is None without a gold, and where the fault was ours (a bad gold, a crashed worker).
    """
    return _records(judge(rows, groups, tags), groups, tags)


def _records(
    problems: Sequence[measures.Problem], groups: list[list[Sample]], tags: Tags
) -> tuple[list[Record], Counter[str]]:
    from r1pipe.rewards import format, language

    status: Counter[str] = Counter(v.status for p in problems for v in p.verdicts if v is not None)
    records = []
    for problem, group in zip(problems, groups, strict=True):
        row, kept = problem.row, problem.samples
        finishes = {s.finish for s in group}
        partial = row["kind"] in PARTIAL
        records.append(
            {
                "id": row["id"],
                "kind": row["kind"],
                "target": row.get("language"),
                "level": row.get("level"),
                "lookalike": bool(row.get("lookalike")),
                "correct": _mean(problem.judged),
                **({"partial": _mean([v.score for v in problem.verdicts if v is not None])} if partial else {}),
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


def _texts(problem: measures.Problem, mode: str) -> list[dict[str, Any]]:
    """Every sample of a problem as it is kept."""
    row = problem.row
    return [
        {
            "id": row["id"], "mode": mode, "index": sample.index, "prompt": row["messages"][-1]["content"],
            "gold": row.get("gold"), "text": sample.text, "tokens": sample.tokens, "finish": sample.finish,
            **_said(verdict),
        }
        for sample, verdict in zip(problem.samples, problem.verdicts, strict=True)
    ]  # fmt: skip


def _said(verdict: Verdict | None) -> dict[str, Any]:
    if verdict is None:
        return {"score": None, "status": None, "detail": ""}
    return {"score": verdict.score, "status": verdict.status, "detail": verdict.detail}


def _warn_unclosed(
    where: str, problems: Sequence[measures.Problem], tags: Tags, config: EvalConfig, ctx: StageContext
) -> None:
    """Texts that end without having closed any thinking: a model that does not think, or other tags than these. It
    would look like a model that is always wrong (known-failures a19)."""
    ended = [s for p in problems for s, v in zip(p.samples, p.verdicts, strict=True)
             if v is not None and s.finish == "stop"]  # fmt: skip
    unclosed = sum(tags.think_close not in s.text for s in ended)
    if config.require_think and len(ended) >= 8 and unclosed >= UNCLOSED * len(ended):
        ctx.warn(
            f"evaluation {where}: {unclosed} of {len(ended)} finished texts have no {tags.think_close} and score 0; "
            "require_think: false judges texts without thinking"
        )


def _refusal(row: Row, samples: Sequence[Sample], tags: Tags) -> float | None:
    """Share of refusals among what a reader is shown; None for rows where refusing is no question."""
    if row["kind"] not in ("general", "safety"):
        return None
    return _mean([float(refuses(s.text, row, tags)) for s in samples])


def _mean(values: Sequence[Any]) -> float | None:
    found = [v for v in values if v is not None]
    return sum(found) / len(found) if found else None


def _summary(
    records: list[Record],
    problems: Sequence[measures.Problem],
    status: Counter[str],
    samples: int,
    config: EvalConfig,
    ctx: StageContext,
) -> dict[str, Any]:
    columns = {name: [value(r) for r in records] for name, value in METRICS.items()}
    names = list(dict.fromkeys(name for r in records for name in r.get("more") or ()))
    more = {name: [(r.get("more") or {}).get(name) for r in records] for name in names}
    skipped = sum(r["skipped"] for r in records)
    if skipped:
        where = f"{records[0]['set']} ({records[0]['mode']})"
        ctx.count("evaluation/skipped", skipped)
        ctx.warn(
            f"evaluation {where}: {skipped} of {len(records) * samples} samples skipped (the prompt does not fit)"
        )
    cost = _cost(problems, config)
    return {
        **intervals(columns, resamples=config.bootstrap, seed=DATA_SEED, bounded=SHARES),
        **intervals(more, resamples=config.bootstrap, seed=DATA_SEED, bounded=names),
        **({"tokens_per_right": cost} if cost else {}),
        "problems": len(records),
        "samples": samples,
        "skipped": skipped,
        "status": dict(sorted(status.items())),
    }


def _cost(problems: Sequence[measures.Problem], config: EvalConfig) -> dict[str, Any] | None:
    """Tokens of all judged samples over the right ones; None where none is right."""
    judged = [p for p in problems if p.judged]
    tokens = [float(sum(s.tokens for s, v in zip(p.samples, p.verdicts, strict=True) if v and v.score is not None))
              for p in judged]  # fmt: skip
    return ratio(tokens, [sum(p.judged) for p in judged], resamples=config.bootstrap, seed=DATA_SEED)
