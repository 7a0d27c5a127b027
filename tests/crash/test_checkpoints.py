"""A trainer's checkpoints whole, rotted or cut: the newest whole one is taken, and the result is the same."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from r1pipe import manifest as mf
from r1pipe.store import Attempt, Store
from tests.crash import harness
from tests.crash.test_moments import ended, start
from tests.crash.test_world import cut, flip

STEPS = ("base", "sft")
DAMAGED: dict[str, tuple[dict[str, Callable[[Path], None]], int | None]] = {
    "none: training was over": ({}, 4),  # transformers would train a fifth step
    "the newest rotted": ({"checkpoint-4/model.safetensors": flip}, 2),
    "the newest has a cut optimizer": ({"checkpoint-4/optimizer.pt": cut}, 2),
    "its marker is cut": ({"checkpoint-4/complete.json": cut}, 2),
    "both rotted": ({"checkpoint-4/trainer_state.json": flip, "checkpoint-2/rng_state.pth": cut}, None),
}


def finish(store: Store) -> dict[str, Any]:
    command = [sys.executable, "-P", "-m", "r1pipe", "pipeline", "full", "--profile", "smoke", "--json"]
    command += ["--runs-dir", str(store.runs_dir), "--run", store.run, *(f"--only={step}" for step in STEPS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return {step: about["outputs"] for step, about in json.loads(done.stdout)["steps"].items()}


def killed_after_the_last_checkpoint(store: Store) -> Attempt:
    """Its runner is killed when step sft has saved checkpoint-4 and not been sealed."""
    child = start(store, store.runs_dir / "said.json")
    marker = "*/work/checkpoints/checkpoint-4/complete.json"
    harness.wait_until(lambda: list((store.root / "sft").glob(marker)), 300, "no checkpoint-4")
    child.kill()
    assert ended(child, 60) == -9
    attempt = store.all_attempts("sft")[0]
    assert not attempt.sealed
    return attempt


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_damaged_checkpoints(tmp_path: Path) -> None:
    expected = finish(Store(tmp_path, "undisturbed"))
    for number, (what, (damage, resumed)) in enumerate(DAMAGED.items()):
        store = Store(tmp_path, f"run-{number}")
        attempt = killed_after_the_last_checkpoint(store)
        for name, how in damage.items():
            how(attempt.work / "checkpoints" / name)
        assert finish(store) == expected, what
        assert mf.load(attempt).facts.get("resumed_from_step") == resumed, what
        assert mf.load(attempt).attempts == 2
        assert mf.load(attempt).metrics["steps"] == 4
        harness.intact(store)
        harness.TALLY.add("checkpoints", what, "runner SIGKILL", True)
