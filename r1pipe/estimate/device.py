"""The devices that a plan is made for: a small table (devices.yaml), with what the user says on top."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

from r1pipe import yamlio
from r1pipe.errors import UserError, nearest

GB = 10**9


@dataclass(frozen=True)
class Device:
    """One device. Bytes, FLOP/s, bytes/s, $ an hour; shares are assumptions (see devices.yaml)."""

    key: str
    name: str
    memory: float
    flops: float
    bandwidth: float
    price: float
    reserved: float
    mfu: float
    mfu_prefill: float
    mbu: float
    mbu_hf: float

    @property
    def usable(self) -> float:
        """Memory that tensors may take."""
        return self.memory * (1 - self.reserved)

    @property
    def gpu(self) -> bool:
        return self.key != "cpu"


@functools.cache
def table() -> dict[str, Device]:
    """Every device by its key."""
    path = resources.files("r1pipe.estimate") / "devices.yaml"
    raw = yamlio.parse(path.read_text(encoding="utf-8"), "devices.yaml")
    found = {}
    for key, own in raw["devices"].items():
        values: dict[str, Any] = {**raw["defaults"], **own}
        if key == "cpu":
            values |= _this_machine(values)
        found[key] = Device(
            key, values["name"], values["memory"] * GB, values["bf16"] * 1e12, values["bandwidth"] * GB,
            values["price"], values["reserved"], values["mfu"], values["mfu_prefill"], values["mbu"],
            values["mbu_hf"],
        )  # fmt: skip
    return found


def _this_machine(values: dict[str, Any]) -> dict[str, Any]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GB
    name = f"this machine's CPU ({cores} cores)"
    return {"name": name, "memory": memory, "bf16": values["bf16"] * cores}


def find(key: str | None, price: float | None = None) -> Device:
    """The named device; without a name, the GPU of this machine where the table has it, else its CPU."""
    known = table()
    if key is None:
        device = known[_present() or "cpu"]
    elif key not in known:
        raise UserError(f'unknown device "{key}"{nearest(key, known)}', hint=f"--device: {', '.join(known)}")
    else:
        device = known[key]
    if price is not None:
        if price < 0:
            raise UserError(f"--price {price} is below 0", hint="--price 2.5 is $2.50 an hour for one device")
        device = replace(device, price=price)
    return device


def _present() -> str | None:
    """The table's key of the GPU that nvidia-smi names; None where there is none, or none that is known."""
    if shutil.which("nvidia-smi") is None:
        return None
    try:
        said = subprocess.run(
            ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"],
            capture_output=True, text=True, timeout=10, check=True,
        ).stdout  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    name, _, memory = said.strip().split("\n")[0].partition(",")
    plain = name.lower().replace(" ", "").replace("-", "")
    fits = [key for key in table() if key.partition("-")[0] in plain]
    if "a100-80" in fits:
        return "a100-80" if memory.strip().isdigit() and int(memory) > 50_000 else "a100-40"
    return fits[0] if fits else None
