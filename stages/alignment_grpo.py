"""Alignment RL: GRPO with rules on reasoning prompts, and with reward models on general ones towards the end.

Reads   model: the policy to start from (SFT on sampled traces).
        helpful, harmless: the reward models; both must have reached `minimum_accuracy` on held-out data.
Writes  model.
Paper   v2 3.2.2, B.5: as the first RL stage, temperature 0.7, 1,700 steps, general prompts and preference rewards
        only in the last 400 (longer leads to reward hacking): `general_share_of_steps`. The helpful model judges
        the final answer, the harmless one the whole response.
Try     r1pipe run-stage alignment-grpo --profile tiny
"""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from r1pipe.errors import UserError
from r1pipe.settings import DataSpec, RewardPart
from r1pipe.stage import POLICY, REWARD_MODEL, Input, Port, StageContext
from r1pipe.training import grpo, rows
from r1pipe.training.settings import GRPOStep

NAME = "alignment-grpo"
VERSION = "1"
REASONING = ["number", "math"]


class Config(GRPOStep):
    """As reasoning-grpo, with `general` prompts in the last part of the steps."""

    general: list[DataSpec] = Field([], description="General prompts (kinds general and safety).")
    general_share_of_steps: float = Field(
        0.235, ge=0, le=1, description="Last share of the steps that sees general prompts (paper: 400 of 1,700)."
    )
    general_fraction: float = Field(0.5, ge=0, le=1, description="Share of general prompts in those steps.")
    minimum_accuracy: float = Field(0.9, ge=0, le=1, description="Least held-out accuracy of the reward models.")
    rewards: dict[str, RewardPart] = Field(
        {
            "accuracy": RewardPart(kinds=REASONING),
            "format": RewardPart(),
            "language": RewardPart(),
            "helpful": RewardPart(kinds=["general"]),
            "harmless": RewardPart(kinds=["general", "safety"]),
        },
        description="Rewards by name; `kinds` says which rows a reward applies to.",
        min_length=1,
    )

    @model_validator(mode="after")
    def _check_rows(self) -> Config:
        if not self.data:
            raise ValueError("data: there are no reasoning prompts")
        if not self.general and self.general_share_of_steps and self.general_fraction:
            raise ValueError("general: there are no general prompts (or set general_share_of_steps: 0)")
        return self


INPUTS = {"model": Port(POLICY), "helpful": Port(REWARD_MODEL), "harmless": Port(REWARD_MODEL)}
OUTPUTS = {"model": POLICY}


def preload() -> None:
    """The slow imports, ahead of the step's turn."""
    import datasets  # noqa: F401
    from trl import GRPOTrainer  # noqa: F401


def check(ctx: StageContext, config: Config) -> dict[str, Any]:
    facts = grpo.check(ctx, config)
    steps = config.total_steps(sum(spec.rows or 0 for spec in config.data))
    return {**facts, "steps_with_general_prompts": round(config.general_share_of_steps * steps)}


def run(ctx: StageContext, config: Config) -> dict[str, Any]:
    for name in ("helpful", "harmless"):
        _check_reward_model(name, ctx.inputs[name], config.minimum_accuracy, ctx)
    reasoning = grpo.prompts(ctx, config, config.data)
    general = grpo.prompts(ctx, config, config.general) if config.general else []
    steps = config.total_steps(len(reasoning))
    layout = lay_out(config, reasoning, general, steps, ctx)
    models = {name: ctx.inputs[name].path for name in ("helpful", "harmless")}
    return grpo.train(ctx, config, layout, steps, reward_models=models)


def lay_out(
    config: Config, reasoning: list[rows.Row], general: list[rows.Row], steps: int, ctx: StageContext
) -> list[rows.Row]:
    """The prompts of every generation: reasoning alone, and from the last share of the steps on a mix."""
    batch = config.batch()
    generations = batch.generations(steps)
    mixed = round(generations * config.general_share_of_steps) if general else 0
    share = min(batch.groups, round(batch.groups * config.general_fraction))
    ruled = rows.endless(reasoning, generations * batch.groups - mixed * share, ctx.seed)
    extra = rows.endless(general, mixed * share, ctx.seed) if mixed and share else []
    out: list[rows.Row] = []
    for turn in range(generations):
        take = share if turn >= generations - mixed else 0
        out += [ruled.pop(0) for _ in range(batch.groups - take)] + [extra.pop(0) for _ in range(take)]
    ctx.fact("generations_with_general_prompts", mixed)
    ctx.fact("general_prompts_a_generation", share if mixed else 0)
    return out


def _check_reward_model(name: str, given: Input, minimum: float, ctx: StageContext) -> None:
    """A reward model that was not shown to be good is a bug that RL would find (issue, point 2)."""
    accuracy = given.meta.get("heldout_accuracy")
    if accuracy is None:
        raise UserError(f"the {name} reward model of step {given.producer} has no held-out accuracy on record")
    ctx.fact(f"{name}_heldout_accuracy", accuracy)
    if accuracy < minimum:
        raise UserError(
            f"the {name} reward model of step {given.producer} is right on {accuracy:.1%} of held-out data; "
            f"alignment needs {minimum:.0%}",
            hint=f"train step {given.producer} longer or on more data, or lower minimum_accuracy",
        )
