"""Time and money of a `Work`: from measured rates where there are some, else from the device's data sheet.

Without a measurement it is arithmetic on assumed shares of the peak (devices.yaml), and labelled unmeasured.
Verifiers, judges behind an API, downloads and what a cluster waits for are in neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from r1pipe.estimate.device import Device
from r1pipe.estimate.work import Load, Work

STEP_SECONDS = {"vllm": 0.006, "transformers": 0.030, "quick": 0.030}  # a decoding step at least: launches and Python
STARTUP = {"gpu": 30.0, "cpu": 4.0}  # a worker's start that the step above does not hide, with loading
ENGINE_START = 60.0  # vLLM: profiling and graphs
DISK_RATE = 1.0e9  # bytes a second


@dataclass(frozen=True)
class Rates:
    """Measured on a machine, on the profile's own model: seconds a token, by kind of work."""

    train: float
    forward: float
    decode: float
    prefill: float
    parameters: int  # of the model that was measured
    flops: dict[str, float]  # a token, by kind, of the measured passes
    startup: float
    completion: float | None  # mean tokens of the base's completions

    @classmethod
    def of(cls, found: dict[str, Any]) -> Rates:
        return cls(**{name: found[name] for name in cls.__dataclass_fields__})

    def seconds(self, load: Load) -> float:
        """Scaled by the arithmetic of a token where shape or length differ from what was measured."""
        a_token = getattr(self, load.kind)
        flops = load.hardware_flops / load.tokens if load.tokens else 0.0
        scale = flops / self.flops[load.kind]
        return float(load.tokens * a_token * scale / load.processes)


def seconds_of(load: Load, device: Device) -> float:
    """From the data sheet. Raises nothing: every device of the table has its rates."""
    if not load.tokens:
        return 0.0
    if load.kind in ("train", "forward", "prefill"):
        share = device.mfu if load.kind == "train" else device.mfu_prefill
        return load.hardware_flops / (device.flops * share * load.processes)
    # a decoding step reads every weight once, and the cache of all sequences; a process has its part of them
    together = max(1.0, min(load.at_once, load.sequences / load.processes, 256 if load.engine == "vllm" else 1e9))
    cache = together * load.context * load.shape.layers * load.shape.cache_width * load.width
    read = (load.shape.active * load.width + cache) / (
        device.bandwidth * (device.mbu if load.engine == "vllm" else device.mbu_hf)
    )
    compute = together * load.flops / load.tokens / (device.flops * device.mfu_prefill)
    least = STEP_SECONDS.get(load.engine, 0.03) if device.gpu else 0.002
    steps = load.tokens / load.processes / together
    return steps * (max(read, compute) + least)


def of(work: Work, device: Device, rates: Rates | None) -> dict[str, float]:
    """Seconds by part of the step."""
    out: dict[str, float] = {}
    for load in work.loads:
        group = "evaluation" if load.what.startswith("evaluation") else load.what.partition(":")[0]
        spent = rates.seconds(load) if rates else seconds_of(load, device)
        out[group] = out.get(group, 0.0) + spent
    start = rates.startup if rates else STARTUP["gpu" if device.gpu else "cpu"]
    if any(load.engine == "vllm" for load in work.loads) and not rates:
        engines = len({load.what.startswith("evaluation") for load in work.loads if load.engine == "vllm"})
        start += ENGINE_START * engines
    out["start and save"] = start + sum(work.disk.values()) / DISK_RATE
    return out
