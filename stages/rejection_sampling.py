"""Rejection sampling: the policy writes several answers a prompt, and the ones that pass become training data.

Reads   model: the policy that samples.
Writes  samples: SFT rows in data.jsonl, and a README.md with counts, pass rates, lengths and examples.
Paper   v2 B.3.3: ~600k reasoning samples, correct ones kept, mixed languages, long paragraphs and code blocks
        dropped; ~200k general samples join them (`general`). For cold-start data from R1-Zero (B.3.2): the same.
Try     r1pipe run-stage rejection-sampling --profile tiny
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from r1pipe.errors import UserError
from r1pipe.settings import DataSpec, RewardPart, SamplingConfig, StepConfig
from r1pipe.stage import DATASET, POLICY, Port, StageContext
from r1pipe.training import common, keep, shards
from r1pipe.training.settings import check_rewards, needs_model

NAME = "rejection-sampling"
VERSION = "1"
Row = dict[str, Any]


class Config(StepConfig):
    """Prompts (`data`), ready traces to mix in (`general`), sampling, and what a kept sample must be."""

    evaluate: bool = Field(False, description="There is no new policy to evaluate.")
    data: list[DataSpec] = Field([], description="Prompts to sample.")
    general: list[DataSpec] = Field([], description="Traces mixed in as they are.")
    sampling: SamplingConfig = Field(SamplingConfig(n=4), description="Samples a prompt and how they are drawn.")
    rewards: dict[str, RewardPart] = Field(
        {"accuracy": RewardPart(), "format": RewardPart(), "language": RewardPart()},
        description="What a sample must pass; the verifiers of the rewards.",
    )
    filters: keep.Filters = keep.Filters()
    per_prompt: int = Field(
        1, ge=1, description="Most samples kept a prompt (easy prompts must not crowd out hard ones)."
    )
    shard_size: int = Field(256, ge=1, description="Prompts a shard; a resumed step makes missing shards only.")

    @model_validator(mode="after")
    def _check(self) -> Config:
        if not self.data:
            raise ValueError("data: there are no prompts")
        check_rewards(self.rewards)
        if needed := needs_model(self.rewards):
            raise ValueError(f"rewards.{needed[0]} is a reward model, which has no right answer to check against")
        if self.num_processes != 1:
            raise ValueError("num_processes: sampling runs in one process (engine.options.tensor_parallel_size: N)")
        return self


INPUTS = {"model": Port(POLICY)}
OUTPUTS = {"samples": DATASET}


def preload() -> None:
    """The slow imports, ahead of the step's turn."""
    import transformers

    transformers.AutoModelForCausalLM  # noqa: B018 (its lazy import)


def check(ctx: StageContext, config: Config) -> dict[str, Any]:
    from r1pipe.generate import engine_arguments

    prompts = sum(spec.rows or 0 for spec in config.data)
    source = ctx.inputs["model"].path if "model" in ctx.inputs else Path("model")
    return {
        **engine_arguments(config.engine, source),
        "prompts": prompts,
        "samples": prompts * config.sampling.n,
        "shards": -(-prompts // config.shard_size),
    } | common.model_facts(ctx)


def run(ctx: StageContext, config: Config) -> dict[str, Any]:
    from r1pipe.data.load import load, write_rows

    ctx.phase("data")
    prompts = [row for spec in config.data for row in load(spec, "prompts", seed=ctx.seed, ctx=ctx)]
    tags = config.chat.tags
    general = [row for spec in config.general for row in load(spec, "traces", seed=ctx.seed, ctx=ctx, tags=tags)]
    started = time.monotonic()
    found, facts = _sample(ctx, config, prompts)
    counts = Counter({"sampled": len(prompts) * config.sampling.n, "kept": 0})
    rows, lengths, table = [], [], []
    for row, result in zip(prompts, found, strict=True):
        counts.update({f"dropped/{reason}": n for reason, n in result["dropped"].items()})
        chosen = keep.best(result["passed"], config.per_prompt)
        counts["dropped/duplicate_or_over_cap"] += len(result["passed"]) - len(chosen)
        counts["kept"] += len(chosen)
        rows += [_trace(row, sample["text"]) for sample in chosen]
        lengths += [sample["tokens"] for sample in chosen]
        table.append({"kind": row["kind"], "level": row.get("level"), "kept": len(chosen),
                      "passed": len(result["passed"]), "sampled": config.sampling.n})  # fmt: skip
    for name, n in counts.items():
        ctx.count(f"samples/{name}", n)
    never = sum(1 for entry in table if not entry["kept"])
    ctx.count("prompts/nothing_kept", never)
    if not rows:
        raise UserError(
            f"0 kept of {counts['sampled']} samples: "
            + ", ".join(
                f"{n} {r.removeprefix('dropped/')}" for r, n in counts.most_common() if r.startswith("dropped/")
            ),
            hint="a better policy, easier prompts, or milder filters",
        )
    if ctx.is_main:
        out = ctx.outputs["samples"]
        out.mkdir(parents=True, exist_ok=True)
        write_rows(out / "data.jsonl", [*rows, *general])
        (out / "README.md").write_text(
            keep.card(f"Samples of step {ctx.step}", counts, table, rows, lengths), encoding="utf-8"
        )
    ctx.describe("samples", rows=len(rows) + len(general))
    for name, value in facts.items():
        ctx.fact(f"engine/{name}", value)
    return {
        "kept_rows": counts["kept"],
        "general": len(general),
        "kept_rate": counts["kept"] / counts["sampled"],
        "pass_rate": sum(e["passed"] for e in table) / counts["sampled"],
        "prompts_without": never,
        "tokens": ctx.facts["sampled_tokens"],
        "mean_tokens": sum(lengths) / len(lengths),
        "sample_seconds": round(time.monotonic() - started, 1),
    }


def _sample(ctx: StageContext, config: Config, prompts: list[Row]) -> tuple[list[Row], dict[str, Any]]:
    """Per prompt: the samples that passed ({text, tokens}) and, by reason, how many did not; and engine facts."""
    from r1pipe.generate import make
    from r1pipe.rewards import Composer

    source = ctx.inputs["model"]
    ctx.phase("loading")
    # The sampler puts a prefilled opening tag back itself, so the verifiers see whole completions.
    composer = Composer(config.rewards, tags=config.chat.tags, prefilled=False, warn=ctx.warn)
    sampler = make(config.engine, source.path, config.chat)
    pieces = shards.split(prompts, config.shard_size)
    settings = config.model_dump(mode="json", include={"sampling", "rewards", "filters", "chat", "engine"})
    tally = {"done": 0, "kept": 0, "tokens": 0}
    started = time.monotonic()

    def work(index: int, piece: list[Row]) -> dict[str, Any]:
        seed = int.from_bytes(hashlib.sha256(f"{ctx.seed}/{index}".encode()).digest()[:4], "big")
        groups = sampler.generate(
            [config.chat.conversation(row["messages"]) for row in piece], config.sampling, seed=seed
        )
        flat = [(row, sample) for row, group in zip(piece, groups, strict=True) for sample in group]
        verdicts = composer.score([sample.text for _, sample in flat], [row for row, _ in flat])
        results: list[Row] = [{"passed": [], "dropped": Counter()} for _ in piece]
        for place, ((_, sample), verdict) in enumerate(zip(flat, verdicts, strict=True)):
            result = results[place // config.sampling.n]
            reason = keep.reason_to_drop(sample.text, sample.finish, verdict, config.filters, config.chat.tags)
            if reason is None:
                result["passed"].append({"text": sample.text, "tokens": sample.tokens})
            else:
                result["dropped"][reason] += 1
        tally["done"] += len(piece)
        tally["kept"] += sum(len(r["passed"]) for r in results)
        tally["tokens"] += sum(sample.tokens for _, sample in flat)
        ctx.progress(
            min((index + 1) * config.shard_size, len(prompts)),
            len(prompts),
            kept=tally["kept"] / (tally["done"] * config.sampling.n),
            tokens_per_s=tally["tokens"] / (time.monotonic() - started),
        )
        return {"results": results, "tokens": sum(sample.tokens for _, sample in flat)}

    ctx.phase("sampling")
    try:
        key = shards.key_of(source.digest, ctx.seed, settings)
        found, reused = shards.run(ctx.work / "shards", pieces, key, work)
    finally:
        sampler.close()
    ctx.fact("shards", len(pieces))
    ctx.fact("shards_reused", reused)
    ctx.fact("sampled_tokens", sum(shard["tokens"] for shard in found))
    return [result for shard in found for result in shard["results"]], sampler.facts


def _trace(row: Row, text: str) -> Row:
    """The prompt's row with the sample as the assistant's turn."""
    from r1pipe.data.load import row_id

    messages = [*row["messages"], {"role": "assistant", "content": text}]
    return {**row, "id": row_id(messages), "messages": messages, "source": f"sampled:{row['source']}"}
