"""Killed at any moment, a sampling step keeps what was done, makes only the rest, and ends with the same result."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from r1pipe.resources import data_dir
from stages import rejection_sampling
from tests.sampling import killed, steps

SEED = 4


def begin(folder: Path, source: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.sampling.killed", str(folder), source]
    env = {**os.environ, "PYTHONPATH": str(data_dir().parent)}
    return subprocess.Popen(command, cwd=data_dir().parent, env=env, stderr=subprocess.PIPE)


def written(folder: Path) -> int:
    """Samples that are on the disk."""
    return sum(p.read_bytes().count(b"\n") for p in folder.glob("work/samples/*/*.texts.jsonl"))


def test_killed_at_twenty_moments(tmp_path: Path) -> None:
    """Twenty SIGKILLs, each some moments after the first new sample, in one folder."""
    source = steps.problems(tmp_path, 120)["source"]
    whole = steps.context(tmp_path / "whole")
    rejection_sampling.run(whole, killed.config(source))
    rng, before, kills = random.Random(SEED), 0, 0
    folder = tmp_path / "killed"
    while kills < 20:
        child = begin(folder, source)
        until = time.monotonic() + 60
        while written(folder) == before and child.poll() is None and time.monotonic() < until:
            time.sleep(0.002)
        time.sleep(rng.random() * 0.06)
        child.send_signal(signal.SIGKILL)
        _, said = child.communicate()
        assert child.returncode == -signal.SIGKILL, said.decode()
        kills += 1
        now = written(folder)
        assert now > before, "a start that was killed later than its first sample keeps it"
        before = now
    assert before < 480, "the step was not done yet"
    again = steps.context(folder, resume=True)
    rejection_sampling.run(again, killed.config(source))
    assert again.facts["samples_reused"] >= before
    assert again.facts["samples_reused"] + again.facts["samples_made"] == 480
    assert steps.digest(again) == steps.digest(whole)


def test_killed_while_the_results_are_written(tmp_path: Path) -> None:
    """The last moments: all samples are there, the dataset is not."""
    source = steps.problems(tmp_path, 120)["source"]
    whole = steps.context(tmp_path / "whole")
    rejection_sampling.run(whole, killed.config(source))
    folder = tmp_path / "killed"
    rejection_sampling.run(steps.context(folder), killed.config(source))
    (folder / "out" / "samples" / "data.jsonl").unlink()
    log = next(iter(sorted(folder.glob("work/samples/*/*.verdicts.jsonl"))))
    log.write_bytes(log.read_bytes()[:-70])
    again = steps.context(folder, resume=True)
    rejection_sampling.run(again, killed.config(source))
    assert again.facts["samples_made"] == 0 and again.counts["samples/torn_lines"] == 1
    assert steps.digest(again) == steps.digest(whole)
