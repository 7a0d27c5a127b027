"""Two gloo processes through accelerate launch: the real sft and reasoning-grpo steps; and a rank that dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from r1pipe import manifest as mf
from r1pipe.store import Store

SMALL = [
    "--profile", "smoke", "--set", "threads=1",
    "--set", "sft.num_processes=2", "--set", "reasoning-grpo.num_processes=2",
    "--set", "sft.trainer.per_device_train_batch_size=4",
    "--set", "reasoning-grpo.trainer.per_device_train_batch_size=8",
    "--set", "base.evaluate=false", "--set", "sft.evaluate=false",
]  # fmt: skip


def command(tmp_path: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-P", "-m", "r1pipe", *arguments, *SMALL, "--runs-dir", str(tmp_path / "runs")]


def run(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(tmp_path, *arguments), cwd=tmp_path, capture_output=True, text=True, timeout=280)


def test_sft_and_grpo_on_two_processes(tmp_path: Path) -> None:
    for step in ("sft", "reasoning-grpo"):
        done = run(tmp_path, "run-stage", step, "--json")
        assert done.returncode == 0, done.stderr
    store = Store(tmp_path / "runs", "smoke-full")
    for step in ("sft", "reasoning-grpo"):
        attempt = store.all_attempts(step)[0]
        sealed = mf.load(attempt)
        assert sealed.config["num_processes"] == 2
        assert sealed.metrics["steps"] == 4
        assert not list(attempt.out.rglob("*.bin"))
        steps = [
            e["step"]
            for e in map(json.loads, attempt.events.open())
            if e["event"] == "progress" and "loss" in e["metrics"]
        ]
        assert steps == [1, 2, 3, 4], "one rank reports"
    assert mf.load(store.all_attempts("reasoning-grpo")[0]).facts["kl_first_step"] < 1e-3


def test_a_dead_rank_ends_the_group_with_a_clear_error(tmp_path: Path) -> None:
    assert run(tmp_path, "run-stage", "base").returncode == 0
    child = subprocess.Popen(
        command(tmp_path, "run-stage", "sft", "--set", "sft.trainer.max_steps=2000"),
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        ranks = _ranks(tmp_path, child)
        os.kill(ranks[1], signal.SIGKILL)
        _, said = child.communicate(timeout=120)
    finally:
        child.kill()
    assert child.returncode == 1
    assert "rank 1 died (signal 9)" in said
    assert "Traceback" not in said
    time.sleep(1)
    assert not any(Path(f"/proc/{pid}").exists() for pid in ranks.values()), "a rank outlived its group"


def _ranks(tmp_path: Path, child: subprocess.Popen[str]) -> dict[int, int]:
    """rank → pid of the workers below `child`, once the first step is trained."""
    until = time.monotonic() + 200
    while time.monotonic() < until and child.poll() is None:
        found = {}
        for proc in Path("/proc").glob("[0-9]*"):
            try:
                arguments = (proc / "cmdline").read_text().split("\0")
                environment = (proc / "environ").read_text().split("\0")
            except OSError:
                continue
            if "r1pipe.worker" in " ".join(arguments) and f"R1PIPE_RUNNER_PID={child.pid}" in environment:
                rank = [e for e in environment if e.startswith("RANK=")]
                if rank:
                    found[int(rank[0][5:])] = int(proc.name)
        events = list((tmp_path / "runs").glob("*/sft/*/events.jsonl"))
        if len(found) == 2 and events and '"progress"' in events[0].read_text():
            return found
        time.sleep(0.2)
    pytest.fail(f"two ranks did not start: {child.stderr.read() if child.stderr and child.poll() is not None else ''}")
