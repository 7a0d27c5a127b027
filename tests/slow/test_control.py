"""The control: RL on rewards that were shuffled within each group must not learn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from r1pipe import manifest as mf
from r1pipe.store import Store


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_shuffled_rewards_gain_under_five_points(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-P",
        "-m",
        "r1pipe",
        "pipeline",
        "full",
        "--profile",
        "tiny",
        "--runs-dir",
        str(tmp_path),
    ]
    for step in ("base", "sft", "reasoning-grpo"):
        command += ["--only", step]
    done = subprocess.run(
        [*command, "--set", "reasoning-grpo.shuffle_rewards=true"],
        capture_output=True, text=True, env=os.environ | {"COLUMNS": "160"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    store = Store(tmp_path, "tiny-full")
    numbers = {}
    for step in ("sft", "reasoning-grpo"):
        evaluation = mf.load(store.all_attempts(step)[0]).evaluation["heldout"]["sample"]
        numbers[step] = evaluation["accuracy"]["value"]
    print(json.dumps(numbers))
    assert numbers["reasoning-grpo"] - numbers["sft"] < 0.05
