"""What would make a step fit: each candidate is a real change of the profile, loaded and estimated again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from r1pipe import config
from r1pipe.config import Profile
from r1pipe.errors import UserError
from r1pipe.estimate import device as devices
from r1pipe.estimate.device import Device
from r1pipe.estimate.work import Estimator, Phase, Work

MOST = 4  # suggestions shown a step
LORA = "{r: 32, lora_alpha: 64, lora_dropout: 0.0, target_modules: all-linear}"
NF4 = "{load_in_4bit: true, bnb_4bit_quant_type: nf4, bnb_4bit_compute_dtype: bfloat16}"


@dataclass(frozen=True)
class Change:
    """A change, in the words of `--set` (or another device), and what the step needs after it."""

    what: str
    why: str
    needs: float
    fits: bool

    def as_json(self) -> dict[str, Any]:
        return {"change": self.what, "what": self.why, "bytes": round(self.needs), "fits": self.fits}


def peak(work: Work, device: Device) -> Phase | None:
    """The moment that needs most."""
    return max(work.phases, key=lambda phase: phase.total(device), default=None)


def fits(work: Work, device: Device) -> bool:
    """Does every moment fit? (vLLM takes a share of the whole memory, so `reserved` is asked of tensors only.)"""
    return not work.faults and all(phase.total(device) <= _room(phase, device) for phase in work.phases)


def _room(phase: Phase, device: Device) -> float:
    return device.usable if phase.parts else device.memory


def needs(work: Work, device: Device) -> float:
    """Bytes of the largest moment."""
    phase = peak(work, device)
    return phase.total(device) if phase else 0.0


def suggest(profile: Profile, step: str, device: Device, estimator: Estimator, ways: int) -> list[Change]:
    """Changes that make the step fit, the least costly first; where no single one does, they are added up.

    `ways`: how many devices there are. Changes that raise a fault of their own are left out.
    """
    found: list[Change] = []
    kept: list[str] = []
    best = _badness(estimator.work(step), device)
    added: Change | None = None
    for overrides, why in _candidates(profile, step, device, ways):
        alone = _estimate(profile, step, device, estimator, overrides)
        if alone is not None and fits(alone, device):
            found.append(Change(_said(overrides), why, needs(alone, device), True))
        if added is not None or len(found) >= MOST:
            continue
        together = _merged(kept, overrides)
        after = _estimate(profile, step, device, estimator, together) if kept else alone
        if after is None:
            continue
        if fits(after, device) and kept:
            added = Change(_said(together), "all of these together", needs(after, device), True)
        elif _better(_badness(after, device), best):
            kept, best = together, _badness(after, device)
    found = found[: MOST - 1]
    if added is not None and len(found) < MOST - 1:
        found.append(added)
    found += _larger(profile, step, device, estimator)
    if not found and kept:
        found.append(Change(_said(kept), "all of these together still do not fit", best[1], False))
    return found


def _badness(work: Work, device: Device) -> tuple[int, float]:
    return len(work.faults), needs(work, device)


def _better(new: tuple[int, float], old: tuple[int, float]) -> bool:
    return new[0] < old[0] or (new[0] == old[0] and new[1] < 0.97 * old[1])


def _merged(kept: list[str], overrides: list[str]) -> list[str]:
    """The later value of a key stands."""
    return list({o.partition("=")[0]: o for o in [*kept, *overrides]}.values())


def _said(overrides: list[str]) -> str:
    return " ".join(f"--set {o}" if " " not in o else f"--set '{o}'" for o in overrides)


def _estimate(profile: Profile, step: str, device: Device, estimator: Estimator, overrides: list[str]) -> Work | None:
    try:
        changed = config.load(str(profile.path), [*profile.overrides, *overrides])
        return estimator.like(changed, device).work(step)
    except UserError:
        return None  # it does not go with the other settings


def _candidates(profile: Profile, step: str, device: Device, ways: int) -> Iterator[tuple[list[str], str]]:
    """(overrides, what they do), those that change no result first."""
    c: Any = profile.steps[step]
    trainer = getattr(c, "trainer", None)
    if trainer is not None and c.stage in ("sft", "reasoning-grpo", "alignment-grpo", "reward-models"):
        if trainer.get("gradient_checkpointing") is False:
            yield [f"{step}.trainer.gradient_checkpointing=true"], "activations made again: a third more time"
        per = int(trainer.get("per_device_train_batch_size") or 8)
        accumulation = int(trainer.get("gradient_accumulation_steps") or 1)
        for halves in (2, 4, 8):
            if per % halves == 0 and per > 1:
                overrides = [
                    f"{step}.trainer.per_device_train_batch_size={per // halves}",
                    f"{step}.trainer.gradient_accumulation_steps={accumulation * halves}",
                ]
                if trainer.get("steps_per_generation"):
                    overrides.append(f"{step}.trainer.steps_per_generation={trainer['steps_per_generation'] * halves}")
                yield overrides, "the same batch in smaller passes"
        yield from _vllm_share(step, trainer)
        if c.num_processes > 1 and c.accelerate in (None, "builtin:multi_gpu", "builtin:zero2"):
            yield [f"{step}.accelerate=builtin:fsdp2"], "weights, gradients and optimizer sharded"
        elif c.num_processes == 1 and ways > 1 and device.gpu and per * accumulation % ways == 0:
            share = [f"{step}.num_processes={ways}", f"{step}.accelerate=builtin:fsdp2"]
            if accumulation % ways == 0:
                share.append(f"{step}.trainer.gradient_accumulation_steps={accumulation // ways}")
                if trainer.get("steps_per_generation"):
                    share.append(f"{step}.trainer.steps_per_generation={trainer['steps_per_generation'] // ways}")
            yield share, f"sharded over the {ways} devices"
        if not str(trainer.get("optim", "")).endswith("8bit") and device.gpu:
            yield [f"{step}.trainer.optim=adamw_8bit"], "Adam's state in 8 bits (bitsandbytes)"
        limit = "max_completion_length" if "grpo" in c.stage else "max_length"
        if trainer.get(limit):
            yield [f"{step}.trainer.{limit}={int(trainer[limit]) // 2}"], "half the length: longer answers are lost"
        if c.lora is None:
            yield [f"{step}.lora={LORA}"], "an adapter is trained, not all weights"
            yield [f"{step}.lora={LORA}", f"{step}.model_options.dtype=bfloat16"], "LoRA on bf16 weights"
        elif getattr(c, "quantization", None) is None and hasattr(c, "quantization") and device.gpu:
            yield [f"{step}.quantization={NF4}", f"{step}.model_options.dtype=bfloat16"], "weights in 4 bits (QLoRA)"
        if c.lora is None and hasattr(c, "quantization") and device.gpu:
            yield (
                [f"{step}.lora={LORA}", f"{step}.quantization={NF4}", f"{step}.model_options.dtype=bfloat16"],
                "QLoRA: an adapter on 4-bit weights",
            )
    if hasattr(c, "engine") and c.engine.kind in ("auto", "vllm") and device.gpu:
        if float(c.engine.options.get("gpu_memory_utilization", 0.9)) < 0.85:
            yield [f"{step}.engine.options.gpu_memory_utilization=0.9"], "vLLM takes more of the device"
        for tp in (2, 4, 8):
            if tp <= ways and tp > int(c.engine.options.get("tensor_parallel_size", 1)):
                yield [f"{step}.engine.options.tensor_parallel_size={tp}"], f"vLLM over {tp} devices"


def _vllm_share(step: str, trainer: dict[str, Any]) -> Iterator[tuple[list[str], str]]:
    if not trainer.get("use_vllm") or trainer.get("vllm_mode") == "server":
        return
    if not trainer.get("vllm_enable_sleep_mode"):
        yield [f"{step}.trainer.vllm_enable_sleep_mode=true"], "vLLM gives its memory back while the step trains"
    share = float(trainer.get("vllm_gpu_memory_utilization") or 0.3)
    for other in (share / 2, min(0.9, share * 1.5), min(0.9, share * 2)):
        yield [f"{step}.trainer.vllm_gpu_memory_utilization={other:.2f}"], "another share for vLLM"


def _larger(profile: Profile, step: str, device: Device, estimator: Estimator) -> list[Change]:
    """The smallest device of the table that holds the step as it is."""
    if not device.gpu:
        return []
    for other in sorted(devices.table().values(), key=lambda d: (d.memory, d.price)):
        if other.gpu and other.memory > device.memory:
            work = estimator.like(profile, other).work(step)
            if fits(work, other):
                return [Change(f"--device {other.key}", f"{other.name}, as it is", needs(work, other), True)]
    return []
