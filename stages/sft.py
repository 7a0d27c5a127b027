"""Supervised fine-tuning: the cold start, the second SFT on sampled traces, and distillation.

Reads   model: the policy to start from (the BASE model in the paper, both times).
        samples (optional): rows of a rejection-sampling step, mixed with `data`.
Writes  model.
Paper   v2 B.4.2: 2-3 epochs, cosine from 5e-5 to 5e-6, context 32,768, batch 128; B.4.3 for distillation. Here all
        of it is under `trainer:` (trl.SFTConfig). The loss is on the assistant's turns, reasoning included.
Try     r1pipe run-stage sft --profile tiny
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from r1pipe.errors import UserError
from r1pipe.stage import DATASET, POLICY, Port, StageContext
from r1pipe.training import sft
from r1pipe.training.common import check_trainer
from r1pipe.training.settings import TrainerStep

NAME = "sft"
VERSION = "1"


class Config(TrainerStep):
    """Rows (`data`, and the input `samples`) and the keys of trl.SFTConfig (`trainer`)."""

    overlong: Literal["drop", "cut"] = Field(
        "drop", description="Rows longer than trainer.max_length: dropped whole, or cut. Counted either way."
    )

    @field_validator("trainer", mode="after")
    @classmethod
    def _check_trainer(cls, value: dict[str, Any]) -> dict[str, Any]:
        check_trainer("SFTConfig")(value)
        return value

    @model_validator(mode="after")
    def _check_rows(self) -> Config:
        if not self.trainer.get("max_length"):
            raise ValueError("trainer.max_length must be set: without it TRL cuts reasoning at 1024 tokens silently")
        if not self.data and "samples" not in self.inputs:
            raise ValueError("nothing to train on: neither data nor the input samples is set")
        return self


INPUTS = {"model": Port(POLICY), "samples": Port(DATASET, optional=True)}
OUTPUTS = {"model": POLICY}


def preload() -> None:
    """The slow imports, ahead of the step's turn."""
    import datasets  # noqa: F401
    from trl import SFTTrainer  # noqa: F401


def check(ctx: StageContext, config: Config) -> dict[str, Any]:
    return sft.check(ctx, config)


def run(ctx: StageContext, config: Config) -> dict[str, Any]:
    from r1pipe.data.load import load_all, read_rows

    ctx.phase("data")
    rows = load_all(config.data, "traces", seed=ctx.seed, ctx=ctx, tags=config.chat.tags)
    if "samples" in ctx.inputs:
        sampled = read_rows(ctx.inputs["samples"].path / "data.jsonl")
        ctx.fact("rows_from_samples", len(sampled))
        rows += sampled
    if not rows:
        raise UserError("there are no rows to train on", hint="look at data: and the input samples")
    return sft.train(ctx, config, rows, overlong=config.overlong)
