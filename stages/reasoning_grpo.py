"""Reasoning RL: GRPO with rewards that rules compute. Straight on the base it is R1-Zero.

Reads   model: the policy to start from (the cold-start model; the base for R1-Zero).
Writes  model.
Paper   v2 2.1, 2.2, 3.2.1: accuracy and format of equal weight, plus the share of the chain of thought in the
        question's language; 16 completions of 32 questions a step, KL 0.001, epsilon 10, lr 3e-6, the reference
        replaced every 400 steps. R1-Zero has no language reward. All of GRPOConfig is under `trainer:`.
Try     r1pipe run-stage reasoning-grpo --profile tiny
"""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from r1pipe.errors import UserError
from r1pipe.stage import POLICY, Port, StageContext
from r1pipe.training import grpo, rows
from r1pipe.training.settings import GRPOStep, needs_model

NAME = "reasoning-grpo"
VERSION = "1"


class Config(GRPOStep):
    """Prompts (`data`), rewards, steps, and the keys of trl.GRPOConfig (`trainer`)."""

    @model_validator(mode="after")
    def _check_rows(self) -> Config:
        if not self.data:
            raise ValueError("data: there are no prompts")
        if needed := needs_model(self.rewards):
            raise ValueError(f"rewards.{needed[0]} is a reward model; use stage alignment-grpo for it")
        return self


INPUTS = {"model": Port(POLICY)}
OUTPUTS = {"model": POLICY}


def preload() -> None:
    """The slow imports, ahead of the step's turn."""
    import datasets  # noqa: F401
    from trl import GRPOTrainer  # noqa: F401


def check(ctx: StageContext, config: Config) -> dict[str, Any]:
    return grpo.check(ctx, config)


def run(ctx: StageContext, config: Config) -> dict[str, Any]:
    prompts = grpo.prompts(ctx, config, config.data)
    batch = config.batch()
    steps = config.total_steps(len(prompts))
    if steps < 1:
        raise UserError(
            f"{len(prompts)} prompts are fewer than the {batch.groups} of one generation", hint="more rows, or steps:"
        )
    needed = batch.generations(steps) * batch.groups
    ctx.fact("prompts", len(prompts))
    ctx.fact("prompts_seen", needed)
    return grpo.train(ctx, config, rows.endless(prompts, needed, ctx.seed), steps)
