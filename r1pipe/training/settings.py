"""Settings that both GRPO stages share. Light: no torch."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from r1pipe.errors import UserError
from r1pipe.settings import RewardPart, Strict, TrainStepConfig
from r1pipe.training import batch as batches
from r1pipe.training.common import as_value_error, check_trainer
from r1pipe.training.health import RolloutHealth, TrainHealth


class TrainerStep(TrainStepConfig):
    """A training step whose `lora:` and `quantization:` are checked against the installed libraries."""

    health: TrainHealth = Field(TrainHealth(), description="What is watched while it trains: off, warn or stop.")

    @field_validator("lora", mode="after")
    @classmethod
    def _check_lora(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        as_value_error("lora", value, "LoraConfig")
        return value

    @field_validator("quantization", mode="after")
    @classmethod
    def _check_quantization(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        as_value_error("quantization", value, "BitsAndBytesConfig")
        return value

    @model_validator(mode="after")
    def _check_adapter(self) -> TrainerStep:
        if self.quantization is not None and self.lora is None:
            raise ValueError("quantization needs lora: quantized weights cannot be trained")
        return self


def check_rewards(parts: dict[str, RewardPart]) -> None:
    """Names and options of rewards; for pydantic validators."""
    from r1pipe.rewards import registry

    try:
        registry.validate(parts)
    except UserError as error:
        raise ValueError(str(error)) from None


def needs_model(parts: dict[str, RewardPart]) -> list[str]:
    """The rewards that are reward models."""
    from r1pipe.rewards import registry

    return [name for name, part in parts.items() if registry.of(name, part).model]


class Preflight(Strict):
    """What is tried before the first RL step: gold and broken answers through the rewards, samples of the policy."""

    enabled: bool = Field(True, description="Look before training.")
    golds: int = Field(512, ge=1, description="Rows whose gold answer, and a broken one, go through the rewards.")
    most_bad_golds: float = Field(0.05, ge=0, le=1, description="Share of gold answers that may not score 1.")


class GRPOStep(TrainerStep):
    """Rewards, steps and the reference of a GRPO step; everything else is GRPOConfig's, under `trainer:`."""

    rewards: dict[str, RewardPart] = Field(
        {"accuracy": RewardPart(), "format": RewardPart(), "language": RewardPart()},
        description="Rewards by name; their weighted sum is what GRPO sees.",
        min_length=1,
    )
    steps: int | None = Field(
        None, ge=1, description="Optimizer steps (null: trainer.max_steps, else all prompts num_train_epochs times)."
    )
    reference_refresh: int | None = Field(
        None, ge=1, description="Optimizer steps after which the policy becomes the reference (paper: 400)."
    )
    rollouts: Literal["auto", "quick", "trl"] = Field(
        "auto", description="Rollouts without vLLM: our decode loop (quick; auto: on a CPU) or model.generate (trl)."
    )
    preflight: Preflight = Field(Preflight(), description="Checks before the first RL step.")
    health: RolloutHealth = Field(  # type: ignore[assignment]  # the one of a step that trains on examples
        RolloutHealth(), description="What is watched while it trains: off, warn or stop."
    )
    upload_samples: bool = Field(
        False, description="Let trackers (trainer.report_to, log_completions) have prompts and completions."
    )
    shuffle_rewards: bool = Field(False, description="Control: rewards shuffled within each group. Learns nothing.")

    @field_validator("trainer", mode="after")
    @classmethod
    def _check_trainer(cls, value: dict[str, Any]) -> dict[str, Any]:
        check_trainer("GRPOConfig")(value)
        return value

    @model_validator(mode="after")
    def _check_samples(self) -> GRPOStep:
        if self.trainer.get("log_completions_hub_repo") and not self.upload_samples:
            raise ValueError("trainer.log_completions_hub_repo uploads samples: set upload_samples: true to allow it")
        return self

    @field_validator("rewards", mode="after")
    @classmethod
    def _check_rewards(cls, value: dict[str, RewardPart]) -> dict[str, RewardPart]:
        check_rewards(value)
        return value

    @model_validator(mode="after")
    def _check_batch(self) -> GRPOStep:
        batch = self.batch()
        batches.save_steps(self.trainer, batch)
        most = self.trainer.get("max_steps")
        if self.steps and most and most > 0 and most != self.steps:
            raise ValueError(f"steps is {self.steps} and trainer.max_steps is {most}: set one of them")
        if self.reference_refresh:
            if not self.trainer.get("beta"):
                raise ValueError("reference_refresh without trainer.beta: there is no KL term, so no reference")
            if not batch.aligned(self.reference_refresh):
                raise ValueError(
                    f"reference_refresh {self.reference_refresh} would fall inside a generation (one lasts "
                    f"{batch.align(1)} steps); nearest: {batch.align(self.reference_refresh)}"
                )
        return self

    def batch(self) -> batches.Batch:
        """The arithmetic of the step; ValueError where it does not work out."""
        return batches.of(self.trainer, self.num_processes)

    def total_steps(self, prompts: int) -> int:
        """Optimizer steps, where `prompts` rows are there."""
        if self.steps:
            return self.steps
        most = self.trainer.get("max_steps")
        if most and most > 0:
            return most
        batch = self.batch()
        rounds = int(self.trainer.get("num_train_epochs", 1) * prompts // batch.groups)
        return rounds * batch.micro_steps // batch.accumulation
