"""Ratios of interleaved runs with their interval, and the machine that made them."""

from __future__ import annotations

import math
import os
import platform
import statistics
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

# two-sided 95 % t quantiles by degrees of freedom, from 1; the last one stands for more
T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)


def interval(ratios: list[float]) -> list[float]:
    """Geometric mean, low, high of at least two ratios."""
    logs = [math.log(r) for r in ratios]
    mean = statistics.fmean(logs)
    half = T95[min(len(logs) - 2, len(T95) - 1)] * statistics.stdev(logs) / math.sqrt(len(logs))
    return [math.exp(mean), math.exp(mean - half), math.exp(mean + half)]


def shown(found: list[float]) -> str:
    return f"{found[0]:.2f} [{found[1]:.2f}, {found[2]:.2f}]"


def machine(*packages: str) -> dict[str, Any]:
    import torch

    found = {}
    for name in ("torch", "transformers", *packages):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "cpus": os.cpu_count(), "processor": _processor(), "python": platform.python_version(),
        "threads": torch.get_num_threads(), "load": round(os.getloadavg()[0], 1), "packages": found,
    }  # fmt: skip


def machine_line(m: dict[str, Any]) -> str:
    return (
        f"{m['processor']}, {m['cpus']} CPUs, {m['threads']} threads, load {m['load']}; Python {m['python']}, "
        + ", ".join(f"{k} {v}" for k, v in m["packages"].items())
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").is_file() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
