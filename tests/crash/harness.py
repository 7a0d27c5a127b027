"""Runs of toy steps that are ended at a named point, resumed, and looked at.

`Bench` is a place for runs of one profile, `points()` what a whole run passes, `crash()` one kill with everything that
must hold after it. `Tally` counts kills by phase; `conftest.py` prints it when the tests are done.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from r1pipe import digest as dg
from r1pipe import manifest as mf
from r1pipe.cli import verify
from r1pipe.store import Attempt, Store
from tests.engine.conftest import FIXTURE, PROFILE

FAULTS = Path(__file__).parent / "faults"
ROWS = ("a", "b", "c")
# the file that is touched → what the run is doing, in the order of work
PHASES = {
    "run.json": "run: described",
    "lock": "locks",
    "request.json": "step: asked",
    "attempts.jsonl": "step: attempts log",
    "events.jsonl": "step: events",
    "work": "step: work saved",
    "out": "step: outputs",
    "result.json": "step: result",
    "manifest.json": "seal: manifest",
}


@dataclass(frozen=True)
class Point:
    """Where a process is ended, by the names of `faults/sitecustomize.py`."""

    role: str
    operation: str
    when: str
    path: str
    nth: int

    @classmethod
    def read(cls, line: str) -> Point:
        role, operation, when, path, nth = line.split("|")
        return cls(role, operation, when, path, int(nth))

    def __str__(self) -> str:
        return f"{self.role}|{self.operation}|{self.when}|{self.path}|{self.nth}"

    @property
    def step(self) -> str | None:
        return first if (first := self.path.split("/")[0]) in ROWS else None

    @property
    def phase(self) -> str:
        if self.operation == "mkdir":
            return "step: folder made"
        parts = [part.removesuffix(".partial") for part in self.path.split("/")]
        for name in PHASES:
            if name in parts:
                sealing = name == "out" and self.role == "runner"
                return "seal: outputs on disk" if sealing else PHASES[name]
        return "step: folder on disk"  # the rename of a file in it is made durable


@dataclass
class Tally:
    """Kills made and survived, by phase."""

    kills: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    lost: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def add(self, suite: str, phase: str, whom: str, survived: bool) -> None:
        self.kills[suite, phase, whom] += 1
        self.lost[suite, phase, whom] += not survived

    def lines(self) -> Iterator[str]:
        """A table: suite, phase, who was killed, kills, survived."""
        if not self.kills:
            return
        yield f"{'suite':<12}{'phase':<42}{'killed':<18}{'kills':>6}{'survived':>10}"
        for key, kills in self.kills.items():
            yield f"{key[0]:<12}{key[1]:<42}{key[2]:<18}{kills:>6}{kills - self.lost[key]:>10}"
        total = self.kills.total()
        yield f"{'all':<72}{total:>6}{total - self.lost.total():>10}"


TALLY = Tally()


class Bench:
    """A folder with the toy profile, and runs of it through the command line, as a shell would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = folder / "runs"
        self.profile = folder / "toys.yaml"
        folder.mkdir(parents=True, exist_ok=True)
        self.profile.write_text(PROFILE)
        self._numbers = itertools.count(1)

    def fresh(self) -> Store:
        """A run that nobody has touched."""
        return Store(self.runs, f"run-{next(self._numbers)}")

    def command(self, store: Store, *more: str) -> list[str]:
        return [
            sys.executable, "-P", "-m", "r1pipe", "pipeline", "full", "--json", "--profile", str(self.profile),
            "--runs-dir", str(store.runs_dir), "--run", store.run, *more,
        ]  # fmt: skip

    def run(self, store: Store, *more: str, **faults: object) -> subprocess.CompletedProcess[str]:
        """Runs the pipeline; `point`, `log`, `clock` go to the faults."""
        environment = os.environ | {"PYTHONPATH": f"{FAULTS}{os.pathsep}{FIXTURE}", "COLUMNS": "200"}
        if faults:
            environment["CRASH_ROOT"] = str(store.root.resolve())
            environment |= {f"CRASH_{name.upper()}": str(value) for name, value in faults.items()}
        return subprocess.run(
            self.command(store, *more), cwd=self.folder, env=environment, capture_output=True, text=True, timeout=120
        )

    def points(self) -> list[Point]:
        """Every point that an undisturbed run passes."""
        log = self.folder / "points.txt"
        done = self.run(self.fresh(), log=log)
        assert done.returncode == 0, done.stderr
        return [Point.read(line) for line in log.read_text().splitlines()]

    def digests(self) -> dict[str, Any]:
        """The outputs of an undisturbed run."""
        return outputs(self.run(self.fresh()))


def outputs(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    return {step: (value["fingerprint"], value["outputs"]) for step, value in json.loads(done.stdout)["steps"].items()}


def sealed(store: Store) -> dict[Path, str]:
    """Every manifest of a run, and its sha256."""
    steps = [p for p in store.root.iterdir() if p.is_dir()] if store.root.is_dir() else []
    found = (a for step in steps for a in store.all_attempts(step.name) if a.sealed)
    return {a.manifest: dg.file_digest(a.manifest) for a in found}


def intact(store: Store) -> None:
    """Every manifest that is there is whole and true."""
    report = verify.check(store)
    assert not report.faults, report.faults


def places(store: Store) -> dict[Path, int]:
    """How far each unsealed step has saved its work."""
    found = {}
    for step in ROWS:
        for attempt in store.all_attempts(step):
            place = attempt.work / "place.json"
            if not attempt.sealed and place.is_file():
                found[attempt.path] = len(json.loads(place.read_text()))
    return found


def killed(point: Point, done: subprocess.CompletedProcess[str]) -> None:
    """The process was ended where the point says, and a runner that stayed says so in one sentence."""
    if point.role == "runner":
        assert done.returncode == -signal.SIGKILL, f"{point} was not reached: {done.returncode} {done.stderr}"
    else:
        assert done.returncode == 1, f"{point} was not reached: {done.returncode} {done.stderr}"
        assert "signal 9" in done.stderr
    assert "Traceback" not in done.stderr


def crash(bench: Bench, point: Point, expected: dict[str, Any]) -> None:
    """One kill and one resume. Raises AssertionError where anything was lost."""
    store = bench.fresh()
    killed(point, bench.run(store, point=point))
    before, saved = sealed(store), places(store)
    intact(store)
    done = bench.run(store)
    assert outputs(done) == expected, f"{point}: other results than the undisturbed run"
    again = json.loads(done.stdout)["ran"]
    kept = {manifest.parents[1].name for manifest in before}
    assert not kept & set(again), f"{point}: sealed before the kill, and run again: {kept & set(again)}"
    assert kept | set(again) == set(ROWS)
    after = sealed(store)
    assert before.items() <= after.items(), f"{point}: a sealed manifest was changed or lost"
    assert len(after) == len(ROWS), f"{point}: {len(after)} manifests for {len(ROWS)} steps"
    intact(store)
    for path, place in saved.items():
        resumed = mf.load(Attempt(path)).facts["resumed_at"]
        assert resumed >= place, f"{point}: {place} steps were saved, it went on from {resumed}"


def wait_until(condition: Any, seconds: float, what: str) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.02)
