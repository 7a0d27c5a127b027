"""The settings of a sampling step, and what of them a sample depends on."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from r1pipe.sampling.choose import check_mix
from r1pipe.sampling.filters import Filters, needed
from r1pipe.sampling.prompts import Regenerate
from r1pipe.sampling.rewrite import Rewriter
from r1pipe.settings import DataSpec, EngineConfig, RewardPart, SamplingConfig, StepConfig

# Options of an engine that cannot change what is sampled: how fast it is, and where it runs.
NEUTRAL = {
    "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "gpu_memory_utilization", "max_num_seqs",
    "max_num_batched_tokens", "kv_cache_memory_bytes", "enforce_eager", "enable_prefix_caching",
    "enable_chunked_prefill", "disable_log_stats", "distributed_executor_backend", "seconds", "key_env",
}  # fmt: skip


class SamplingStep(StepConfig):
    """Prompts (`data`, `regenerate`), ready traces to mix in (`general`), sampling, and what a kept sample must be."""

    evaluate: bool = Field(False, description="There is no new policy to evaluate.")
    data: list[DataSpec] = Field([], description="Prompts to sample.")
    general: list[DataSpec] = Field([], description="Traces mixed in as they are.")
    regenerate: Regenerate | None = Field(None, description="General prompts that the policy answers.")
    sampling: SamplingConfig = Field(SamplingConfig(n=4), description="Samples a prompt and how they are drawn.")
    rewards: dict[str, RewardPart] = Field(
        {"accuracy": RewardPart(), "format": RewardPart(), "language": RewardPart()},
        description="What a sample must pass; the verifiers of the rewards, the judge among them.",
    )
    filters: Filters = Filters()
    rewriter: Rewriter | None = Field(None, description="Rewrites right samples in another language.")
    per_prompt: int = Field(
        1, ge=1, description="Most samples kept a prompt (easy prompts must not crowd out hard ones)."
    )
    mix: dict[str, float | int] | None = Field(
        None, description="Rows by kind: shares that add up to 1, or counts (null: all rows)."
    )
    shard_size: int = Field(256, ge=1, description="Prompts a shard.")
    on_changed: Literal["restart", "refuse"] = Field(
        "restart",
        description="Where an unfinished attempt holds samples of other settings: start afresh and leave them alone, "
        "or refuse.",
    )
    reviews: DataSpec | None = Field(
        None, description="Decisions of a person (`source`: the reviews.jsonl of `r1pipe samples RUN --review`)."
    )

    @field_validator("mix", mode="after")
    @classmethod
    def _check_mix(cls, value: dict[str, float | int] | None) -> dict[str, float | int] | None:
        if value is not None:
            check_mix(value)
        return value

    @model_validator(mode="after")
    def _check(self) -> SamplingStep:
        from r1pipe.training.settings import check_rewards, needs_model

        if not self.data and self.regenerate is None:
            raise ValueError("data: there are no prompts")
        check_rewards(self.rewards)
        if models := needs_model({n: p for n, p in self.rewards.items() if p.use is None}):
            raise ValueError(
                f"rewards.{models[0]} is a reward model that an input would give; this step has none (reward_model "
                "takes a folder)"
            )
        for name, part in self.rewards.items():
            if (part.use or name) in ("judge", "reward_model") and name not in self.filters.minimum and part.weight:
                raise ValueError(f"filters.minimum.{name}: which score passes? (a graded reward is seldom 1)")
        for name in self.filters.minimum:
            if name not in self.rewards:
                raise ValueError(f"filters.minimum.{name}: there is no such reward ({', '.join(self.rewards)})")
        if not needed(self.rewards, self.filters):
            raise ValueError(
                "rewards: none of them says whether a sample passes (filters.minimum.NAME lets one say it)"
            )
        if self.num_processes != 1:
            raise ValueError("num_processes: sampling runs in one process (engine.options.tensor_parallel_size: N)")
        return self


def identity(digest: str, step: SamplingStep) -> dict[str, Any]:
    """What a sample depends on besides its prompt and its index: samples with equal ones can be used again. The
    number of samples is not among them, nor what judges them."""
    sampling = step.sampling.model_dump(mode="json", exclude={"n"})
    return {
        "model": digest,
        "seed": step.seed,
        "engine": engine(step.engine),
        "sampling": sampling,
        "chat": step.chat.model_dump(mode="json"),
    }


def rewriting(step: SamplingStep) -> dict[str, Any]:
    """The same of a rewrite; its prompt is known by its content."""
    assert step.rewriter is not None
    return {
        "model": step.rewriter.model.model_dump(mode="json") if step.rewriter.model else None,
        "seed": step.seed,
        "engine": engine(step.rewriter.engine),
        "sampling": step.rewriter.sampling.model_dump(mode="json", exclude={"n"}),
        "tags": step.chat.tags.model_dump(mode="json"),
    }


def engine(config: EngineConfig) -> dict[str, Any]:
    return {"kind": config.kind, "options": {k: v for k, v in config.options.items() if k not in NEUTRAL}}
