"""Collapses of a policy that can do something, and of a reward model: wrecked by a learning rate that grows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from r1pipe.chat import ChatConfig
from r1pipe.errors import StepFailed
from r1pipe.resources import data_dir
from r1pipe.training import reward_model
from r1pipe.training.health import RolloutHealth, TrainHealth
from tests.training import tiny
from tests.training.test_health import found, rl

pytestmark = pytest.mark.slow

WRECK = {"learning_rate": 0.1, "lr_scheduler_type": "constant_with_warmup", "warmup_steps": 100}  # 0.001 more a step


def test_a_policy_that_collapses_trips_every_check(tmp_path: Path) -> None:
    """With the default limits: it learns the form in four steps, then runs away, loses the form and the end of its
    turn, and at last writes one token for ever."""
    trainer = {**WRECK, "per_device_train_batch_size": 16, "max_completion_length": 128, "beta": 0.001}
    ctx, _ = rl(
        data_dir() / "tiny-base", tmp_path, 30, trainer,
        rewards={"format": {}, "language": {}}, health={"patience": 3},
    )  # fmt: skip
    since = {
        name: found(ctx, name)["since"] for name in RolloutHealth.model_fields if name in ctx.facts["health"]["found"]
    }
    assert set(since) == set(ctx.facts["health"]["watched"]) - {"non_finite"}
    assert min(since.values()) > 5
    assert since["kl"] < since["entropy"] and since["format"] < since["entropy"]
    assert "had been" in found(ctx, "format")["said"]
    assert "did not rise" in found(ctx, "length")["said"]
    assert "no longer ends its turn" in found(ctx, "truncated")["said"]


def test_a_reward_model_that_diverges(tmp_path: Path) -> None:
    rows = [
        {**row, "response": f"answer {number}", "label": number % 2} for number, row in enumerate(tiny.prompts(16))
    ]
    policy = tiny.make_policy(tmp_path / "policy")
    keys = {**WRECK, "learning_rate": 50.0, "max_steps": 20, "per_device_train_batch_size": 8, "max_grad_norm": 0.0}

    def train(folder: Path, health: TrainHealth) -> object:
        ctx = tiny.context(folder, outputs=("harmless",), model=policy)
        out = ctx.outputs["harmless"]
        reward_model.train_labels(ctx, keys, None, {}, ChatConfig(), rows, rows, out, health)
        return ctx

    ctx = train(tmp_path / "warned", TrainHealth(patience=3))
    one = found(ctx, "loss", "harmless/health")
    assert "lower steps.step.harmless.trainer.learning_rate (now 50)" in one["key"]
    with pytest.raises(StepFailed, match="the loss is"):
        train(tmp_path / "stopped", TrainHealth(patience=3, loss="stop"))


def test_two_processes_stop_as_one(tmp_path: Path) -> None:
    """The main process decides; the user reads the sentence, not that a rank has died."""
    settings = ["threads=1", "base.evaluate=false", "sft.evaluate=false", "sft.num_processes=2"]
    wreck = {"learning_rate": "1e18", "max_grad_norm": "0", "save_steps": "1", "per_device_train_batch_size": "4"}
    settings += [f"sft.trainer.{name}={value}" for name, value in wreck.items()]
    command = [sys.executable, "-P", "-m", "r1pipe", "run-stage", "sft", "--profile", "smoke"]
    command += [part for setting in settings for part in ("--set", setting)]
    done = subprocess.run(
        [*command, "--runs-dir", str(tmp_path)], capture_output=True, text=True, env=os.environ | {"COLUMNS": "200"}
    )
    assert done.returncode == 1
    assert "step sft failed: health: loss is nan at training step 3: training has diverged" in done.stderr
    assert "the last good checkpoint is checkpoint-1" in done.stderr
    assert "rank" not in done.stderr and "Traceback" not in done.stderr
