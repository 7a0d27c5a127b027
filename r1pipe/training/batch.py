"""GRPO's batch arithmetic, before anything is loaded (known-failures e1, e2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from r1pipe.training import fields

_KEYS = ("per_device_train_batch_size", "gradient_accumulation_steps", "num_generations", "num_iterations")


@dataclass(frozen=True)
class Batch:
    """What one generation and one optimizer step hold.

    `completions` are sampled at once (a generation), `groups` prompts with `num_generations` completions each.
    A generation feeds `micro_steps` forward passes a process; an optimizer step takes `accumulation` of them.
    """

    num_processes: int
    per_device: int
    accumulation: int
    steps_per_generation: int
    num_iterations: int
    num_generations: int

    @property
    def completions(self) -> int:
        return self.num_processes * self.per_device * self.steps_per_generation

    @property
    def groups(self) -> int:
        return self.completions // self.num_generations

    @property
    def micro_steps(self) -> int:
        return self.steps_per_generation * self.num_iterations

    @property
    def effective(self) -> int:
        """Completions an optimizer step."""
        return self.num_processes * self.per_device * self.accumulation

    def generations(self, steps: int) -> int:
        """How many generations `steps` optimizer steps need."""
        return ceil(steps * self.accumulation / self.micro_steps)

    def aligned(self, steps: int) -> bool:
        """Does a generation end exactly after `steps` optimizer steps?"""
        return steps * self.accumulation % self.micro_steps == 0

    def align(self, steps: int) -> int:
        """The smallest aligned number of steps that is at least `steps`."""
        while not self.aligned(steps):
            steps += 1
        return steps

    def facts(self) -> dict[str, int]:
        return {
            "completions_a_generation": self.completions,
            "prompts_a_generation": self.groups,
            "completions_an_optimizer_step": self.effective,
            "num_generations": self.num_generations,
        }


def of(trainer: Mapping[str, Any], num_processes: int) -> Batch:
    """The batch of a GRPO step; raises ValueError with the numbers and the nearest that work."""
    merged = {key: fields.default("GRPOConfig", key) for key in _KEYS}
    merged |= {key: trainer[key] for key in _KEYS if trainer.get(key) is not None}
    per_device, accumulation = merged["per_device_train_batch_size"], merged["gradient_accumulation_steps"]
    group = merged["num_generations"]
    for key in _KEYS:
        if not isinstance(merged[key], int) or merged[key] < 1:
            raise ValueError(f"trainer.{key}: found {merged[key]!r}, expected an integer of at least 1")
    if group < 2:
        raise ValueError(
            f"trainer.num_generations is {group}; GRPO compares the completions of a group, so it needs at least 2"
        )
    once = num_processes * per_device
    whole, steps = trainer.get("generation_batch_size"), trainer.get("steps_per_generation")
    if whole is not None and steps is not None:
        raise ValueError("trainer.generation_batch_size and trainer.steps_per_generation exclude each other")
    if whole is not None:
        if whole % once:
            raise ValueError(
                f"trainer.generation_batch_size {whole} must be a multiple of num_processes {num_processes} x "
                f"per_device_train_batch_size {per_device} = {once}; nearest: {_near(whole, once)}"
            )
        steps = whole // once
    steps = steps or accumulation
    total = once * steps
    if total % group:
        raise ValueError(
            f"num_processes {num_processes} x per_device_train_batch_size {per_device} x "
            f"{'steps_per_generation' if trainer.get('steps_per_generation') else 'gradient_accumulation_steps'} "
            f"{steps} = {total} completions a generation, which num_generations {group} does not divide; "
            f"num_generations that work: {_divisors(total, group)}; or a per_device_train_batch_size of "
            f"{_per_device(per_device, num_processes * steps, group)}"
        )
    return Batch(num_processes, per_device, accumulation, steps, merged["num_iterations"], group)


def _near(value: int, unit: int) -> str:
    low = value // unit * unit
    return " or ".join(str(v) for v in (low, low + unit) if v)


def _divisors(total: int, wanted: int) -> str:
    """The three divisors (>= 2) nearest to `wanted`."""
    fit = sorted((d for d in range(2, total + 1) if total % d == 0), key=lambda d: (abs(d - wanted), d))
    return ", ".join(str(d) for d in sorted(fit[:3])) or "none (the batch must be larger)"


def _per_device(current: int, factor: int, group: int) -> str:
    """The nearest per-device sizes that `group` divides."""
    fit = [n for n in range(1, 4 * max(current, group) + 1) if n * factor % group == 0]
    return " or ".join(str(n) for n in sorted(sorted(fit, key=lambda n: (abs(n - current), n))[:2]))


def save_steps(trainer: Mapping[str, Any], batch: Batch) -> int:
    """Steps between checkpoints. A checkpoint inside a generation would be resumed with other completions
    (known-failures e12), so an unaligned number is refused; without one, about every 100 steps."""
    wanted = trainer.get("save_steps")
    if wanted is None:
        return batch.align(100)
    if not isinstance(wanted, int) or wanted < 1:
        raise ValueError(f"trainer.save_steps: found {wanted!r}, expected a whole number of steps")
    if trainer.get("save_strategy", "steps") == "steps" and not batch.aligned(wanted):
        unit = batch.align(1)
        raise ValueError(
            f"trainer.save_steps {wanted} would save inside a generation (one lasts {unit} steps), and a resumed run "
            f"would differ; nearest: {_near(wanted, unit)}"
        )
    return wanted
