"""Rejection sampling: the policy writes several answers a prompt, and the ones that pass become training data.

Reads   model: the policy that samples.
Writes  samples: SFT rows in data.jsonl, and a README.md with counts, pass rates, lengths and examples.
        verdicts: samples.jsonl (each sample with its verdicts and why it was dropped), prompts.jsonl (each prompt with
        its pass rate).
Paper   v2 B.3.3: ~600k reasoning samples, correct ones kept; mixed languages, long paragraphs and code blocks
        dropped; ~200k general samples join them: as they are (`general`) or answered by the policy (`regenerate`),
        trivial queries without CoT. Cold-start data from R1-Zero (B.3.2) is the same, with a `rewriter` for what is
        right but in the wrong language. The paper's people also read the samples: `r1pipe samples RUN --review`.
Raises  UserError where nothing is kept, with what each filter dropped.
Try     r1pipe run-stage rejection-sampling --profile tiny
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from r1pipe.sampling import reviews
from r1pipe.sampling import run as sampling
from r1pipe.sampling.settings import SamplingStep
from r1pipe.sampling.write import Writer
from r1pipe.stage import DATASET, POLICY, Port, StageContext
from r1pipe.training import common

NAME = "rejection-sampling"
VERSION = "2"


class Config(SamplingStep):
    """See `SamplingStep`."""


INPUTS = {"model": Port(POLICY)}
OUTPUTS = {"samples": DATASET, sampling.VERDICTS: "report"}


def preload() -> None:
    """The slow imports, ahead of the step's turn."""
    import transformers

    transformers.AutoModelForCausalLM  # noqa: B018 (its lazy import)


def check(ctx: StageContext, config: Config) -> dict[str, Any]:
    from r1pipe.generate import engine_arguments

    source = ctx.inputs["model"].path if "model" in ctx.inputs else Path("model")
    again = config.regenerate
    prompts, general = (sum(spec.rows or 0 for spec in specs) for specs in (config.data, again.data if again else []))
    facts = engine_arguments(config.engine, source) | {
        "prompts": prompts + general,
        "samples": prompts * config.sampling.n + general * (again.n if again else 0),
        "shards": -(-(prompts + general) // config.shard_size),
    }
    if config.rewriter is not None:
        folder = config.rewriter.model.path if config.rewriter.model else "model"
        facts["rewriter"] = engine_arguments(config.rewriter.engine, folder)
    return facts | common.model_facts(ctx)


def run(ctx: StageContext, config: Config) -> dict[str, Any]:
    from r1pipe.data.load import load_all

    ctx.phase("data")
    prompts = sampling.prompts(ctx, config)
    general = load_all(config.general, "traces", seed=ctx.seed, ctx=ctx, tags=config.chat.tags)
    decisions = reviews.read(Path(config.reviews.source)) if config.reviews else {}
    rules = sampling.rules(ctx, config)
    try:
        store = sampling.sample(ctx, config, prompts, rules)
        rewritten = sampling.rewrites(ctx, config, store, rules)
    finally:
        rules[0].close(ctx)
    ctx.phase("writing")
    writer = Writer(ctx, config, store, rewritten, general, decisions)
    return writer.write(ctx.outputs["samples"], ctx.outputs[sampling.VERDICTS])
