"""The two reward models of the alignment stage.

Reads   model: the policy whose body they start from (the base).
Writes  helpful: trained on pairs of final answers; harmless: on whole responses labelled safe or unsafe.
Paper   v2 3.1: 66k pairs (each judged four times, lengths balanced) and 106k labelled prompts; batch 256, lr 6e-6,
        one epoch, length 8,192. The helpful model reads the final answer only, the harmless one the reasoning too.
        Here the held-out accuracy of both is measured and recorded, and alignment refuses models below its minimum.
Try     r1pipe run-stage reward-models --profile tiny
"""

from __future__ import annotations

import dataclasses
from typing import Any

from pydantic import Field, model_validator

from r1pipe.errors import UserError
from r1pipe.settings import DataSpec, StepConfig, Strict
from r1pipe.stage import POLICY, REWARD_MODEL, Port, StageContext
from r1pipe.training import common, fields
from r1pipe.training.common import as_value_error, check_trainer
from r1pipe.training.health import TrainHealth

NAME = "reward-models"
VERSION = "1"


class Section(Strict):
    """One reward model."""

    data: list[DataSpec] = Field(description="Rows to train on.", min_length=1)
    heldout: list[DataSpec] = Field(description="Rows to measure on; not among the others.", min_length=1)
    trainer: dict[str, Any] = Field({}, description="Keys on top of the step's `trainer`.")


class Config(StepConfig):
    """Two sections; `trainer`, `lora` and `model_options` of the step hold for both."""

    evaluate: bool = Field(False, description="There is no policy to evaluate.")
    helpful: Section
    harmless: Section
    trainer: dict[str, Any] = Field({}, description="trl.RewardConfig (helpful), TrainingArguments (harmless).")
    lora: dict[str, Any] | None = Field(None, description="peft.LoraConfig; the new head is always trained whole.")
    model_options: dict[str, Any] = Field({}, description="Passed to from_pretrained as is.")
    health: TrainHealth = Field(TrainHealth(), description="What is watched while they train: off, warn or stop.")
    minimum_accuracy: float = Field(0.9, ge=0, le=1, description="Below this on held-out rows there is a warning.")

    @model_validator(mode="after")
    def _check(self) -> Config:
        for name, cls_name in (("helpful", "RewardConfig"), ("harmless", "TrainingArguments")):
            check_trainer(cls_name)({k: v for k, v in self.keys(name).items() if k != "max_length"})
        as_value_error("lora", self.lora, "LoraConfig")
        return self

    def keys(self, name: str) -> dict[str, Any]:
        """The trainer keys of a section. Shared ones that only RewardConfig has do not reach the other."""
        section: Section = getattr(self, name)
        shared = self.trainer
        if name == "harmless":
            ours = set(fields.known("RewardConfig")) - set(fields.known("TrainingArguments")) - {"max_length"}
            shared = {k: v for k, v in shared.items() if k not in ours}
        return {**shared, **section.trainer}


INPUTS = {"model": Port(POLICY)}
OUTPUTS = {"helpful": REWARD_MODEL, "harmless": REWARD_MODEL}


def preload() -> None:
    """The slow imports, ahead of the step's turn."""
    import datasets  # noqa: F401
    from trl import RewardTrainer  # noqa: F401


def check(ctx: StageContext, config: Config) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for name, cls_name in (("helpful", "RewardConfig"), ("harmless", "TrainingArguments")):
        keys = {k: v for k, v in config.keys(name).items() if k != "max_length" or cls_name == "RewardConfig"}
        args, built = common.build(cls_name, ctx, keys, num_processes=config.num_processes)
        facts |= {f"{name}/{k}": v for k, v in built.items()}
        facts[f"{name}/rows_a_step"] = (
            args.per_device_train_batch_size * args.gradient_accumulation_steps * config.num_processes
        )
    return facts | common.model_facts(ctx, common.lora_config(config.lora, "SEQ_CLS"))


def run(ctx: StageContext, config: Config) -> dict[str, Any]:
    from r1pipe.data.load import load_all
    from r1pipe.data.rows import What
    from r1pipe.training import reward_model

    metrics: dict[str, Any] = {}
    jobs: tuple[tuple[str, What, Any], ...] = (
        ("helpful", "pairs", reward_model.train_pairs),
        ("harmless", "labels", reward_model.train_labels),
    )
    for name, what, train in jobs:
        section: Section = getattr(config, name)
        ctx.phase(f"{name}: data")
        rows = load_all(section.data, what, seed=ctx.seed, ctx=ctx)
        heldout = load_all(section.heldout, what, seed=ctx.seed, ctx=ctx)
        _check_disjoint(name, rows, heldout)
        inner = dataclasses.replace(ctx, work=ctx.work / name)  # checkpoints of its own; the same counts and facts
        found = train(
            inner, config.keys(name), config.lora, config.model_options, config.chat, rows, heldout,
            ctx.outputs[name], config.health,
        )  # fmt: skip
        metrics |= {f"{name}/{k}": v for k, v in found.items()}
        if found["heldout_accuracy"] < config.minimum_accuracy:
            ctx.warn(
                f"the {name} reward model is right on {found['heldout_accuracy']:.1%} of {found['heldout_rows']} "
                f"held-out rows, below {config.minimum_accuracy:.0%}: alignment will refuse it"
            )
    return metrics


def _check_disjoint(name: str, rows: list[dict[str, Any]], heldout: list[dict[str, Any]]) -> None:
    shared = {row["id"] for row in rows} & {row["id"] for row in heldout}
    if shared:
        raise UserError(
            f"{len(shared)} of {len(heldout)} held-out rows of {name} are also trained on",
            hint=f"other rows or another split for {name}.heldout",
        )
