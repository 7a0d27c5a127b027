"""Real steps (profile `smoke`: training, GRPO, sampling, reward models) ended at random moments, and gone on with.

A run takes many kills one after another, of its runner, a worker or both, by SIGKILL and SIGTERM. It has to come to
the digests of a run that nobody disturbed.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from r1pipe.cli import runs
from r1pipe.store import Store, read_lines
from tests.crash import harness

KILLS = 50  # about ten minutes on two idle cores
WHOM = ("runner", "worker", "both")
HOW = (signal.SIGKILL, signal.SIGTERM)


def start(store: Store, said: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "r1pipe", "pipeline", "full", "--profile", "smoke", "--json"]
    command += ["--runs-dir", str(store.runs_dir), "--run", store.run]
    with said.open("wb") as out, said.with_suffix(".err").open("wb") as err:
        return subprocess.Popen(command, cwd=store.runs_dir, stdout=out, stderr=err, start_new_session=True)


def workers(runner: int) -> list[int]:
    """Its children: the worker, and the one that imports ahead."""
    with contextlib.suppress(OSError):
        return [int(pid) for pid in Path(f"/proc/{runner}/task/{runner}/children").read_text().split()]
    return []


def events(store: Store) -> int:
    """How much the steps have said: progress, phases."""
    return sum(path.read_bytes().count(b"\n") for path in store.root.glob("*/*/events.jsonl"))


def doing(store: Store) -> str:
    """What the run is at: the step that a live worker holds, and its last word."""
    for step, attempt in runs.attempts(store) if store.root.is_dir() else ():
        if not attempt.sealed and runs.writer(attempt.lock) is not None:
            last: dict[str, Any] = {}
            for event in read_lines(attempt.events):
                last = event
            kind = last.get("event", "")
            return f"{step}: {last.get('name', kind) if kind == 'phase' else kind or 'begins'}"
    return "imports, or between steps"


def wait_for_a_moment(store: Store, child: subprocess.Popen[bytes], choice: random.Random) -> None:
    """A time after the start, or after some more events, and then a bit."""
    if choice.random() < 0.25:
        until, wanted = time.monotonic() + choice.uniform(0.2, 8), None
    else:
        until, wanted = time.monotonic() + 120, events(store) + choice.randint(1, 16)
    while child.poll() is None and time.monotonic() < until and (wanted is None or events(store) < wanted):
        time.sleep(0.02)
    time.sleep(choice.uniform(0, 0.4))


def kill(child: subprocess.Popen[bytes], whom: str, how: signal.Signals, choice: random.Random) -> bool:
    """Was there anyone to kill?"""
    below = workers(child.pid)
    targets = {"runner": [child.pid], "worker": [choice.choice(below)] if below else [], "both": [*below, child.pid]}
    for pid in targets[whom]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, how)
    return bool(targets[whom])


def ended(child: subprocess.Popen[bytes], seconds: float) -> int | None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        return child.wait(timeout=seconds)
    return None


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_random_moments_of_real_steps(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    undisturbed = Store(tmp_path / "runs", "undisturbed")
    said = tmp_path / "said.json"
    assert start(undisturbed, said).wait() == 0, said.with_suffix(".err").read_text()
    expected = digests(said)
    choice = random.Random(int(os.environ.get("R1PIPE_CRASH_SEED", "6")))
    left, number = int(os.environ.get("R1PIPE_CRASH_KILLS", KILLS)), 0
    while left > 0:
        number += 1
        left -= one_run(Store(tmp_path / "runs", f"disturbed-{number}"), said, expected, choice, left)


def one_run(store: Store, said: Path, expected: dict[str, Any], choice: random.Random, most: int) -> int:
    """Kills and resumes a run to its end, `most` times at the most; how many kills that were."""
    kills, seen = 0, {}
    child = start(store, said)
    while True:
        if kills == most:
            child.wait()
        else:
            wait_for_a_moment(store, child, choice)
        if child.poll() is not None:
            break
        whom, how, phase = choice.choice(WHOM), choice.choice(HOW), doing(store)
        if not kill(child, whom, how, choice):
            continue
        kills += 1
        code = ended(child, 15 if whom == "worker" else 60)  # a worker that only imported is not missed
        text = said.with_suffix(".err").read_text()
        survived = "Traceback" not in text and "has a fault" not in text
        harness.TALLY.add("moments", phase, f"{whom} {how.name}", survived)
        assert survived, text
        if whom != "worker":
            assert code is not None, "the runner did not end"
        if code is None:
            continue
        assert code in (0, 1, 130, -how), f"{whom} {how.name} while {phase}: {code} {text}"
        if code == 0:
            break  # the last step had been sealed
        harness.intact(store)
        found = harness.sealed(store)
        assert seen.items() <= found.items(), "a sealed manifest was changed or lost"
        seen = found
        child = start(store, said)
    assert child.returncode == 0, said.with_suffix(".err").read_text()
    assert digests(said) == expected, f"{store.root}: other results than the undisturbed run"
    found = harness.sealed(store)
    assert seen.items() <= found.items()
    assert len(found) == len(expected), "a step was sealed twice"
    harness.intact(store)
    return kills


def digests(said: Path) -> dict[str, Any]:
    value = json.loads(said.read_text())
    return {step: (about["fingerprint"], about["outputs"]) for step, about in value["steps"].items()}
