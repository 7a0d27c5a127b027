"""Killed before, in the middle of, and after each write, fsync, rename: nothing sealed is lost, nothing wrong sealed.

The runner and its workers are ended by SIGKILL at every point where they touch the run folder, one kill a run; the
same command then has to come to the digests of an undisturbed run. The fast suite takes a point of each phase.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.crash import harness
from tests.crash.harness import Bench, Point

# a kill of each kind: log lines torn, a step's place saved or not, a result without its manifest, the seal itself
SAMPLE = [
    "runner|write|middle|b/#/attempts.jsonl|1",
    "worker|write|middle|b/#/events.jsonl|2",
    "worker|rename|after|b/#/work/place.json|1",
    "worker|rename|after|b/#/result.json|1",
    "runner|fsync|before|b/#/out/rows/data.jsonl|1",
    "runner|write|middle|b/#/manifest.json.partial|1",
    "runner|rename|before|b/#/manifest.json|1",
    "runner|rename|after|b/#/manifest.json|1",
    "runner|write|middle|b/#/attempts.jsonl|2",
]


def test_a_kill_of_each_kind(bench: Bench, expected: dict[str, object]) -> None:
    for line in SAMPLE:
        _one(bench, Point.read(line), expected)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_kill_at_every_point(bench: Bench, expected: dict[str, object]) -> None:
    points = bench.points()
    assert len(points) == len(set(points)) >= 150
    phases = {point.phase for point in points}
    assert phases >= set(harness.PHASES.values()) - {"run: described", "locks"}
    lost = []
    for point in points:
        try:
            _one(bench, point, expected)
        except AssertionError as error:
            lost.append(str(error))
    assert not lost, "\n".join(lost)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_one_run_killed_over_and_over(bench: Bench) -> None:
    """Every start of the same run is killed a little further on; it comes to its end all the same."""
    long = ("--set", "b.steps=60")  # there is always more to save
    expected = harness.outputs(bench.run(bench.fresh(), *long))
    points = [p for p in bench.points() if p.step == "b" and p.nth == 1 and p.operation not in ("mkdir", "unlink")]
    last = next(i for i, p in enumerate(points) if str(p) == "runner|rename|after|b/#/manifest.json|1")
    store = bench.fresh()
    seen: dict[Path, str] = {}
    for point in points[:last]:
        done = bench.run(store, *long, point=point)
        harness.killed(point, done)
        harness.intact(store)
        found = harness.sealed(store)
        assert seen.items() <= found.items()
        seen = found
        harness.TALLY.add("one run", point.phase, f"{point.role} {point.when}", True)
    assert last >= 40
    done = bench.run(store, *long)
    assert harness.outputs(done) == expected
    assert json.loads(done.stdout)["ran"] == ["b", "c"]
    assert len(harness.sealed(store)) == len(harness.ROWS)
    harness.intact(store)


def _one(bench: Bench, point: Point, expected: dict[str, object]) -> None:
    survived = False
    try:
        harness.crash(bench, point, expected)
        survived = True
    finally:
        harness.TALLY.add("points", point.phase, f"{point.role} {point.when}", survived)
