"""Killed anywhere, it goes on: runner and worker, SIGINT, SIGTERM and SIGKILL; no orphan keeps writing."""

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
from r1pipe import process
from r1pipe.store import Attempt, Store, append_json, read_lines
from tests.engine.conftest import Cli

SLOW = ["--set", "b.steps=8", "--set", "b.sleep=0.25"]


def begin(tmp_path: Path, profile: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-P", "-m", "r1pipe", "pipeline", "full", "--profile", str(profile)]
    return subprocess.Popen(
        [*command, "--runs-dir", str(tmp_path / "runs"), *SLOW],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # a shell that starts the tests in the background has SIGINT ignored, and children inherit that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_for(tmp_path: Path, places: int) -> Attempt:
    """Until step b has done `places` of its 8 steps."""
    store = Store(tmp_path / "runs", "toys-full")
    until = time.monotonic() + 40
    while time.monotonic() < until:
        for attempt in store.all_attempts("b"):
            place = attempt.work / "place.json"
            if place.is_file() and len(json.loads(place.read_text())) >= places:
                return attempt
        time.sleep(0.05)
    raise AssertionError("step b did not start")


def still(path: Path) -> bool:
    """Does the file stop changing?"""
    before = path.read_text()
    time.sleep(1.0)
    return path.read_text() == before


@pytest.mark.parametrize(
    ("whom", "how"),
    [
        ("runner", signal.SIGINT),
        ("runner", signal.SIGTERM),
        ("runner", signal.SIGKILL),
        ("worker", signal.SIGTERM),
        ("worker", signal.SIGKILL),
    ],
)
def test_a_killed_run_resumes_to_the_same_digests(
    cli: Cli, tmp_path: Path, profile: Path, whom: str, how: signal.Signals
) -> None:
    child = begin(tmp_path, profile)
    attempt = wait_for(tmp_path, 3)
    worker = process.holder(attempt.lock)
    assert worker is not None
    os.kill(child.pid if whom == "runner" else worker, how)
    _, said = child.communicate(timeout=30)
    assert child.returncode == {"runner": {2: 130, 15: 130, 9: -9}[how]}.get(whom, 1), said
    assert "Traceback" not in said
    until = time.monotonic() + 10
    while process.is_held(attempt.lock) and time.monotonic() < until:
        time.sleep(0.05)
    assert not process.is_held(attempt.lock), "the worker outlived its runner"
    assert still(attempt.work / "place.json")
    assert not attempt.sealed
    status = json.loads(cli("status", "full", "--json", *SLOW).stdout)
    row = next(r for r in status["steps"] if r["step"] == "b")
    assert row["action"] == "resume"
    assert row["state"] == ("failed" if whom == "worker" else "interrupted")
    done = cli("pipeline", "full", "--json", *SLOW)
    assert done.returncode == 0, done.stderr
    assert mf.load(attempt).facts["resumed_at"] >= 3
    assert mf.load(attempt).attempts == 2
    untouched = cli("pipeline", "full", "--json", "--run", "other", *SLOW)
    assert {s: v["outputs"] for s, v in json.loads(done.stdout)["steps"].items()} == {
        s: v["outputs"] for s, v in json.loads(untouched.stdout)["steps"].items()
    }


def test_two_pipelines_on_one_run(cli: Cli, tmp_path: Path, profile: Path) -> None:
    child = begin(tmp_path, profile)
    try:
        wait_for(tmp_path, 1)
        second = cli("pipeline", "full", *SLOW)
        assert second.returncode == 2
        assert f"process {child.pid}" in second.stderr
    finally:
        child.kill()
        child.communicate()


def test_a_torn_log_line_is_cut_and_never_joined(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    append_json(path, {"n": 1})
    with path.open("a") as handle:
        handle.write('{"n": 2, "tor')
    append_json(path, {"n": 3})
    assert [row["n"] for row in read_lines(path)] == [1, 3]


def test_a_sealed_result_is_never_overwritten(cli: Cli, tmp_path: Path) -> None:
    cli("pipeline", "full")
    attempt = Store(tmp_path / "runs", "toys-full").all_attempts("a")[0]
    from r1pipe.errors import UserError

    with pytest.raises(UserError, match="sealed already"):
        mf.seal(attempt, mf.load(attempt))
