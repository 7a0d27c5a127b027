"""The core of both GRPO stages: one reward, a fixed order of prompts, a reference that can be refreshed, exact
resume.

The prompts are laid out row by row for the whole step (the sampler of TRL shuffles nothing), so that a resumed
run sees what it would have seen, and a stage can change the mix of prompts in its last part.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

from r1pipe.chat import prefilled_think
from r1pipe.errors import UserError
from r1pipe.generate.base import Sample
from r1pipe.settings import DataSpec
from r1pipe.stage import StageContext
from r1pipe.training import common, preflight, rows
from r1pipe.training import model as models
from r1pipe.training.batch import save_steps
from r1pipe.training.fields import default
from r1pipe.training.settings import GRPOStep

Row = dict[str, Any]


def check(ctx: StageContext, config: GRPOStep) -> dict[str, Any]:
    """Builds the real GRPOConfig and LoraConfig without weights; facts for --dry-run."""
    batch = config.batch()
    steps = config.total_steps(prompts=sum(spec.rows or 0 for spec in config.data))
    args, facts = common.build(
        "GRPOConfig", ctx, config.trainer, extra=_extra(config, max(steps, 1)), num_processes=config.num_processes
    )
    lora = common.lora_config(config.lora)
    common.quantization_config(config.quantization)
    facts |= batch.facts() | {
        "steps": steps or "all prompts once",
        "prompts": batch.generations(steps) * batch.groups,
        "max_completion_tokens": args.max_completion_length,
        "most_tokens_a_generation": batch.completions * args.max_completion_length,
        "loss": args.loss_type,
        "beta": args.beta,
        "rollouts": f"vllm ({args.vllm_mode})" if args.use_vllm else "transformers",
    }
    facts |= common.model_facts(ctx, lora, trained=True)
    return facts


def prompts(ctx: StageContext, config: GRPOStep, specs: list[DataSpec]) -> list[Row]:
    """The prompts of `specs` that leave room for a completion."""
    from r1pipe.data.load import load_all

    ctx.phase("data")
    found = load_all(specs, "prompts", seed=ctx.seed, ctx=ctx)
    source = ctx.inputs["model"].path
    new_tokens = config.trainer.get("max_completion_length") or default("GRPOConfig", "max_completion_length")
    return rows.fit_prompts(found, models.load_tokenizer(source), config.chat, source, new_tokens, ctx)


def _extra(config: GRPOStep, steps: int) -> dict[str, Any]:
    return {"max_steps": steps, "shuffle_dataset": False, "save_steps": save_steps(config.trainer, config.batch())}


def train(
    ctx: StageContext,
    config: GRPOStep,
    layout: list[Row],
    steps: int,
    *,
    reward_models: dict[str, Path] | None = None,
) -> dict[str, Any]:
    """Trains the input `model` on the prompts of `layout`, in their order, and writes the output `model`.

    `layout` has `batch.generations(steps) * batch.groups` rows. Returns metrics of the last tenth of the steps.
    """
    import datasets

    from r1pipe.rewards import Composer
    from r1pipe.training import callbacks, reference

    source = ctx.inputs["model"].path
    args, facts = common.build("GRPOConfig", ctx, config.trainer, extra=_extra(config, steps))
    for name, value in {**facts, **config.batch().facts(), "steps": steps}.items():
        ctx.fact(name, value)
    ctx.fact("upload_samples", config.upload_samples)
    last, model, peft_config, earlier = _prepare(ctx, config, source)
    tokenizer = models.load_tokenizer(source)
    prefilled = prefilled_think(tokenizer, config.chat.tags)
    ctx.fact("prefilled_think", prefilled)
    composer = Composer(
        config.rewards,
        tags=config.chat.tags,
        prefilled=prefilled,
        models=reward_models or {},
        warn=ctx.warn,
    )
    dataset = datasets.Dataset.from_list(rows.columns(layout, config.chat))
    composer.check_columns(dataset.column_names)
    faults = Faults(ctx)
    looked = Preflight(ctx, config, composer, args.max_completion_length) if last is None else None
    if looked:
        looked.rewards(layout)
    reward = composer.as_trl_reward(
        faults.take,
        total_steps=steps,
        shuffle=config.shuffle_rewards,
        num_generations=args.num_generations,
        seed=ctx.seed,
        first=looked.samples if looked else None,
    )
    progress = callbacks.Progress(ctx)
    formats = tuple(name for name, part in config.rewards.items() if (part.use or name) == "format")
    health = callbacks.watch(ctx, config.health, args, progress, groups=config.batch().groups, formats=formats)
    refresh = reference.Refresh(ctx, config.reference_refresh) if config.reference_refresh else None
    if args.use_vllm:
        _mend_vllm_on_cpu()
    trainer: Any = _trainer_class(ctx, config, args, model)(
        model=model,
        reward_funcs=[reward],
        args=args,
        train_dataset=dataset,
        processing_class=tokenizer,
        peft_config=peft_config,
        callbacks=[
            progress,
            health,
            *([refresh] if refresh else []),
            callbacks.Checkpoints(ctx, health),
        ],
    )
    common.no_model_card(trainer)
    trainer.model.config._name_or_path = str(source)  # `_prepare` may have named the reference's folder
    if refresh:
        refresh.trainer = trainer
        if config.lora is not None:
            reference.refuse_partitions(trainer)
            reference.freeze_adapter(trainer.model)
            if earlier is not None:
                reference.load_adapter(trainer.model, earlier)
    models.check_trainable(trainer.model, ctx)
    ctx.phase("training")
    started = time.monotonic()
    callbacks.train(trainer, last)
    seconds = time.monotonic() - started
    models.save_policy(trainer, source, ctx.outputs["model"], ctx, config.model_options)
    faults.report()
    for name, said in composer.facts().items():
        ctx.fact(f"reward/{name}", said)
    composer.close()
    return _metrics(ctx, config, progress.history, seconds, told=set(health.monitor.findings))


def _trainer_class(ctx: StageContext, config: GRPOStep, args: Any, model: Any) -> Any:
    """TRL's trainer, or ours with the quicker rollouts; says which in the facts."""
    from trl import GRPOTrainer

    from r1pipe.training.rollout import QuickGRPOTrainer, reason_against

    against = reason_against(args, model)
    if config.rollouts == "quick" and against:
        raise UserError(f"rollouts: quick does not go with {against}", hint="set rollouts: auto")
    quick = against is None and (
        config.rollouts == "quick" or (config.rollouts == "auto" and not common.has_accelerator())
    )
    ctx.fact("rollouts", f"vllm ({args.vllm_mode})" if args.use_vllm else "quick" if quick else "trl")
    return QuickGRPOTrainer if quick else GRPOTrainer


class Preflight:
    """The checks before the first step: the rewards on gold and broken answers, and the first samples of the policy
    (the first batch of rollouts: they cost nothing extra, and no optimizer step has been made)."""

    def __init__(self, ctx: StageContext, config: GRPOStep, composer: Any, max_tokens: int) -> None:
        self.ctx, self.config, self.composer, self.max_tokens = ctx, config.preflight, composer, max_tokens
        self.report: dict[str, Any] = {}

    def rewards(self, layout: list[Row]) -> None:
        """Raises UserError where gold answers do not score, or broken ones do."""
        if not self.config.enabled:
            self.ctx.fact("preflight", "switched off (preflight.enabled)")
            return
        self.ctx.phase("preflight")
        distinct = list({row["id"]: row for row in layout}.values())
        self.report = preflight.check_rewards(self.composer, distinct, most=self.config.golds, seed=self.ctx.seed)
        self.ctx.fact("preflight", self.report)
        preflight.refuse(self.report, self.config.most_bad_golds)

    def samples(self, texts: list[str], rows: list[Row], scored: Any, progress: float | None) -> None:
        """Looks at the first rollouts, and says what to change."""
        if not self.config.enabled:
            return
        lengths = [len(row.get("completion_ids") or ()) for row in rows]
        samples = [
            Sample(self.composer.context.whole(text), n, "length" if n >= self.max_tokens else "stop", index)
            for index, (text, n) in enumerate(zip(texts, lengths, strict=True))
        ]
        groups = [row["group"] for row in rows]
        self.report["samples"] = preflight.look(self.composer, groups, samples, scored, progress)
        self.ctx.fact("preflight", self.report)
        for said in preflight.advice(self.report, max_tokens=self.max_tokens):
            self.ctx.warn(f"preflight: {said}")


class Faults:
    """Collects how often a verifier failed (its fault) or could not say (the completion's), over all batches."""

    def __init__(self, ctx: StageContext) -> None:
        self.ctx = ctx
        self.sums: dict[str, float] = {}
        self.batches = 0

    def take(self, means: dict[str, float]) -> None:
        self.batches += 1
        for name, share in means.items():
            if name.endswith(("/error", "/timeout", "/unverifiable")) and share:
                self.sums[name] = self.sums.get(name, 0.0) + share

    def report(self) -> None:
        """Mean shares to the manifest."""
        shares = {name: total / self.batches for name, total in self.sums.items()}
        self.ctx.fact("verifier_status", shares)
        for name, share in shares.items():
            if name.endswith("/error"):
                self.ctx.warn(f"verifier {name.removesuffix('/error')} failed on {share:.1%} of the completions")


def _prepare(ctx: StageContext, config: GRPOStep, source: Path) -> tuple[Path | None, Any, Any, Path | None]:
    """The checkpoint to go on from, the model, the LoraConfig for TRL, and the saved reference to go on with."""
    from transformers import set_seed

    from r1pipe.training import reference

    ctx.phase("loading")
    last = common.resume_point(ctx)
    step = int(last.name.split("-")[1]) if last else 0
    earlier = reference.resumed_from(common.checkpoints(ctx), step, config.reference_refresh)
    set_seed(ctx.seed)  # LoRA's first weights are random
    model = models.load_policy(source, config.model_options, common.quantization_config(config.quantization))
    peft_config = common.lora_config(config.lora)
    if peft_config is not None and config.reference_refresh:
        import peft

        # Wrapped here, TRL adds the adapter "ref"; wrapped by TRL, the reference would always be the bare base.
        model, peft_config = peft.get_peft_model(model, peft_config), None
    elif earlier is not None:
        # TRL loads the reference from the folder that the config names, in the dtype of the policy.
        model.config._name_or_path = str(earlier)
    return last, model, peft_config, earlier


def _mend_vllm_on_cpu() -> None:
    """vLLM's oneDNN packing empties the weights that TRL wants to update (libraries.md)."""
    if not common.has_accelerator():
        import vllm._custom_ops

        vllm._custom_ops._supports_onednn = False


def _metrics(
    ctx: StageContext, config: GRPOStep, history: list[Row], seconds: float, *, told: set[str]
) -> dict[str, Any]:
    """Means over the last tenth of the logged steps, with warnings about a step that did not learn; not those whose
    health check (`told`) has spoken."""
    from r1pipe.training.callbacks import SHOWN

    logged = [row for row in history if "reward" in row]
    tail = logged[-max(1, len(logged) // 10) :]
    metrics: dict[str, Any] = {"train_seconds": round(seconds, 1), "steps": history[-1]["step"] if history else 0}
    for key, name in SHOWN.items():
        values = [row[key] for row in tail if row.get(key) is not None]
        if values:
            metrics[f"train/{name}"] = statistics.fmean(values)
    if logged:
        metrics["tokens"] = logged[-1].get("num_tokens", 0)
    if config.trainer.get("beta") and logged and logged[0]["step"] == 1:
        ctx.fact("kl_first_step", logged[0]["kl"])
        if logged[0]["kl"] > 0.01:
            ctx.warn(f"the KL is {logged[0]['kl']:.3g} at the first step: the reference is not the model trained")
    if metrics.get("train/zero_signal", 0) > 0.8 and "dead_reward" not in told:
        ctx.warn(
            f"at the end {metrics['train/zero_signal']:.0%} of the groups had equal rewards, so they taught nothing: "
            "harder prompts, or fewer steps"
        )
    if metrics.get("train/cut", 0) > 0.3 and "truncated" not in told:
        ctx.warn(
            f"at the end {metrics['train/cut']:.0%} of the completions were cut at max_completion_length "
            f"{config.trainer.get('max_completion_length')}"
        )
    return metrics
