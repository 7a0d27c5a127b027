"""How a step is spread over processes: what its accelerate file shards."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from r1pipe import launch, yamlio
from r1pipe.errors import UserError
from r1pipe.estimate.memory import Sharding
from r1pipe.settings import StepConfig


def sharding(config: StepConfig) -> Sharding:
    """From `accelerate:`, `num_processes` and a DeepSpeed file under `trainer.deepspeed`."""
    processes = config.num_processes
    deepspeed = getattr(config, "trainer", {}).get("deepspeed")
    if deepspeed:
        return _zero(_deepspeed(deepspeed), processes)
    if config.accelerate is None:
        return Sharding("data parallel" if processes > 1 else "one process", processes)
    raw = yamlio.read(launch.accelerate_file(config.accelerate))
    kind = str(raw.get("distributed_type", "NO")).upper()
    if kind == "DEEPSPEED":
        return _zero(raw.get("deepspeed_config") or {}, processes)
    if kind == "FSDP":
        return _fsdp(raw.get("fsdp_config") or {}, processes)
    return Sharding("data parallel" if processes > 1 else "one process", processes)


def _deepspeed(value: Any) -> Mapping[str, Any]:
    """A DeepSpeed config (a mapping, or the path of one) in accelerate's words."""
    if isinstance(value, str):
        try:
            value = json.loads(Path(value).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UserError(f"trainer.deepspeed: {value} cannot be read: {error}") from None
    zero = value.get("zero_optimization") or {}
    return {
        "zero_stage": zero.get("stage", 0),
        "offload_optimizer_device": (zero.get("offload_optimizer") or {}).get("device", "none"),
        "offload_param_device": (zero.get("offload_param") or {}).get("device", "none"),
    }


def _zero(config: Mapping[str, Any], processes: int) -> Sharding:
    stage = int(config.get("zero_stage", 0) or 0)
    return Sharding(
        f"ZeRO-{stage}", processes, weights=stage >= 3, gradients=stage >= 2, optimizer=stage >= 1, deepspeed=True,
        offload_optimizer=config.get("offload_optimizer_device", "none") not in ("none", None),
        offload_weights=config.get("offload_param_device", "none") not in ("none", None),
    )  # fmt: skip


def _fsdp(config: Mapping[str, Any], processes: int) -> Sharding:
    whole = str(config.get("fsdp_sharding_strategy", "FULL_SHARD")).upper() in ("SHARD_GRAD_OP", "2", "NO_SHARD", "3")
    reshard = config.get("fsdp_reshard_after_forward", True) not in (False, "false", "NO_SHARD", "SHARD_GRAD_OP")
    off = bool(config.get("fsdp_offload_params"))
    return Sharding(
        f"FSDP{config.get('fsdp_version', 1)}", processes, weights=reshard and not whole, gradients=True,
        optimizer=True, offload_optimizer=off, offload_weights=off,
    )  # fmt: skip
