"""What the world does to a run: a disk that is full, read-only or broken, files that rot, two at once, a clock that
goes back. One sentence each, the exit code that is documented, nothing lost."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from r1pipe import manifest as mf
from r1pipe.launch import Child
from r1pipe.store import Store
from tests.crash import harness
from tests.crash.harness import Bench, Point

Whole = dict[str, Any]
slow = pytest.mark.slow


def sentence(done: subprocess.CompletedProcess[str], *codes: int) -> str:
    """What a failed command said: an error of one line and its next step."""
    assert done.returncode in codes, done.stderr
    assert "Traceback" not in done.stderr and "has a fault" not in done.stderr, done.stderr
    lines = done.stderr.strip().splitlines()
    assert lines[-2].startswith("error: ") and lines[-1].startswith("  → "), done.stderr
    assert sum(line.startswith("error: ") for line in lines) == 1
    return lines[-2]


def goes_on(bench: Bench, store: Store, expected: dict[str, Any]) -> None:
    """The same command comes to the same results, and what was sealed stays."""
    before = harness.sealed(store)
    harness.intact(store)
    assert harness.outputs(bench.run(store)) == expected
    assert before.items() <= harness.sealed(store).items()
    harness.intact(store)


def of_b(bench: Bench) -> list[Point]:
    return [p for p in bench.points() if p.when != "after" and (p.step == "b" or p.path.startswith(("run", "lock")))]


def broken_disk(bench: Bench, point: Point, code: int, expected: dict[str, Any]) -> None:
    store = bench.fresh()
    said = sentence(bench.run(store, point=point, error=code), 1, 2)
    assert os.strerror(code) in said, f"{point}: {said}"
    goes_on(bench, store, expected)
    harness.TALLY.add("disk", os.strerror(code), point.role, True)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("runner|write|middle|b/#/attempts.jsonl|1", errno.ENOSPC),
        pytest.param("runner|fsync|before|b/#/manifest.json.partial|1", errno.EIO, marks=slow),
        pytest.param("worker|write|before|b/#/lock|1", errno.EROFS, marks=slow),
        ("worker|write|middle|b/#/result.json.partial|1", errno.ENOSPC),
    ],
)
def test_a_disk_that_takes_no_more(bench: Bench, expected: Whole, line: str, code: int) -> None:
    broken_disk(bench, Point.read(line), code, expected)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_takes_no_more_from_any_point_on(bench: Bench, expected: Whole, code: int) -> None:
    for point in of_b(bench):
        broken_disk(bench, point, code, expected)


@pytest.fixture
def small_disk(bench: Bench) -> Iterator[Path]:
    """The runs folder is a file system of 80 MiB."""
    bench.runs.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=80m", "none", bench.runs], capture_output=True)
    if made.returncode:
        pytest.skip(f"a tmpfs cannot be mounted here (root is needed): {made.stderr.decode().strip()}")
    yield bench.runs
    subprocess.run(["umount", "--lazy", bench.runs], check=True)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("runner|write|before|b/#/request.json.partial|1", marks=slow),
        pytest.param("worker|write|before|b/#/work/place.json.partial|1", marks=slow),
        "worker|write|before|b/#/result.json.partial|1",
        "runner|write|before|b/#/manifest.json.partial|1",
    ],
)
def test_a_full_disk(bench: Bench, expected: Whole, small_disk: Path, line: str) -> None:
    store = bench.fresh()
    filler = small_disk / "filler"
    said = sentence(bench.run(store, point=line, fill=filler), 1, 2)
    assert re.search("no space (is )?left", said, re.IGNORECASE), said
    assert str(store.root) in said
    filler.unlink()
    goes_on(bench, store, expected)
    harness.TALLY.add("disk", "full tmpfs", "everything", True)


def test_a_read_only_disk(bench: Bench, small_disk: Path) -> None:
    store = bench.fresh()
    whole = harness.outputs(bench.run(store))
    half = bench.fresh()
    harness.killed(point := Point.read("worker|write|middle|b/#/events.jsonl|2"), bench.run(half, point=point))
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    for run in (store, half):
        said = sentence(bench.run(run), 2)
        assert "Read-only file system" in said and str(run.root) in said
        harness.intact(run)  # reading needs no writing
    subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
    goes_on(bench, store, whole)
    goes_on(bench, half, whole)


def flip(path: Path) -> None:
    """One bit, on the disk: size, times and inode stay."""
    stat = path.stat()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


DAMAGE = {
    "cut": cut,
    "flipped": flip,
    "empty": lambda path: path.write_bytes(b""),
    "foreign": lambda path: path.write_bytes(b"\xff\x00\xfe[[[{" * 9),
}


def some(how: str) -> Any:
    """Two kinds of damage in the fast suite, all in the slow one."""
    return how if how in ("flipped", "foreign") else pytest.param(how, marks=slow)


@pytest.mark.parametrize("how", [*map(some, sorted(DAMAGE))])
def test_damaged_logs_of_a_killed_step_cost_nothing(bench: Bench, expected: Whole, how: str) -> None:
    """request, result, events, attempts log and locks of a step that was killed before it was sealed."""
    store = bench.fresh()
    point = Point.read("runner|write|before|b/#/manifest.json.partial|1")
    harness.killed(point, bench.run(store, point=point))
    attempt = store.all_attempts("b")[0]
    for path in (attempt.request, attempt.result, attempt.events, attempt.attempts_log, attempt.lock, store.lock):
        DAMAGE[how](path)
    goes_on(bench, store, expected)


@pytest.mark.parametrize("how", ["cut", *(pytest.param(how, marks=slow) for how in ("empty", "foreign"))])
def test_a_damaged_description_of_the_run_is_named(bench: Bench, how: str) -> None:
    store = bench.fresh()
    whole = harness.outputs(bench.run(store))
    DAMAGE[how](store.run_file)
    done = bench.run(store)
    assert str(store.run_file) in sentence(done, 2)
    assert "remove it" in done.stderr
    store.run_file.unlink()
    goes_on(bench, store, whole)


def test_a_manifest_with_a_flipped_bit_is_found_and_nothing_is_built_on_it(bench: Bench, expected: Whole) -> None:
    store = bench.fresh()
    point = Point.read("runner|rename|after|a/#/manifest.json|1")
    harness.killed(point, bench.run(store, point=point))
    attempt = store.all_attempts("a")[0]
    text = attempt.manifest.read_text()
    digest = mf.load(attempt).outputs["rows"].digest
    attempt.manifest.write_text(text.replace(digest, digest[:-1] + ("0" if digest[-1] != "0" else "1")))
    assert mf.load(attempt)  # as JSON, and as a manifest, it is whole
    said = sentence(bench.run(store), 2)
    assert str(attempt.manifest) in said and "it has changed since" in said
    with pytest.raises(AssertionError, match="it has changed since"):
        harness.intact(store)
    attempt.manifest.write_text(text)
    goes_on(bench, store, expected)


@pytest.mark.parametrize("how", [*map(some, sorted(DAMAGE))])
def test_a_damaged_dataset_is_found(bench: Bench, how: str) -> None:
    """One with other size or times is made again, in a new folder; a bit that rotted in place is found by verify."""
    store = bench.fresh()
    whole = harness.outputs(bench.run(store))
    data = store.all_attempts("a")[0].output("rows") / mf.DATA_FILE
    DAMAGE[how](data)
    with pytest.raises(AssertionError, match="digest mismatch"):
        harness.intact(store)
    if how != "flipped":
        done = bench.run(store)
        assert {step: digests for step, (_, digests) in harness.outputs(done).items()} == {
            step: digests for step, (_, digests) in whole.items()
        }
        assert len(store.all_attempts("a")) == 2


def test_many_pipelines_on_one_run_at_once(bench: Bench) -> None:
    """One works; the others say who does, and change nothing."""
    store = bench.fresh()
    command = bench.command(store, "--set", "b.sleep=0.5")
    environment = os.environ | {"PYTHONPATH": str(harness.FIXTURE), "COLUMNS": "200"}
    pipe = subprocess.PIPE
    children = [
        subprocess.Popen(command, cwd=bench.folder, env=environment, stdout=pipe, stderr=pipe, text=True)
        for _ in range(4)
    ]
    said = [child.communicate(timeout=120) for child in children]
    codes = [child.returncode for child in children]
    assert set(codes) <= {0, 2} and codes.count(0) >= 1, said
    for code, (_, err) in zip(codes, said, strict=True):
        if code:
            assert re.search(rf"run {re.escape(str(store.root))} is being worked on by process (\d+|unknown)", err), (
                err
            )
            assert "Traceback" not in err
    assert len(harness.sealed(store)) == len(harness.ROWS)
    assert all(len(store.all_attempts(step)) == 1 for step in harness.ROWS)
    harness.intact(store)


@pytest.mark.parametrize("how", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=slow)])
@pytest.mark.parametrize("line", ["runner|write|before|b/#/request.json.partial|1",
                                  "runner|fsync|after|b/#/manifest.json.partial|1"])  # fmt: skip
def test_a_signal_in_the_middle_of_a_write(bench: Bench, expected: Whole, line: str, how: signal.Signals) -> None:
    store = bench.fresh()
    done = bench.run(store, point=line, signal=int(how))
    assert done.returncode == 130
    assert done.stderr.strip() == "error: interrupted; run the same command again to go on"
    assert not list(store.root.rglob("*.partial"))
    goes_on(bench, store, expected)
    harness.TALLY.add("signals", "seal" if "manifest" in line else "step: asked", f"runner {how.name}", True)


def test_a_clock_that_goes_back(bench: Bench, expected: Whole) -> None:
    """A run is begun in the future, killed, and resumed a year in the past."""
    year = 365 * 86400
    store = bench.fresh()
    point = Point.read("worker|rename|after|b/#/work/place.json|1")
    harness.killed(point, bench.run(store, point=point, clock=year))
    begun = mf.load(store.all_attempts("a")[0])
    assert begun.finished > mf.now()
    done = bench.run(store, clock=-year)
    assert harness.outputs(done) == expected
    manifest = mf.load(store.all_attempts("b")[0])
    assert manifest.finished < begun.finished
    assert manifest.facts["resumed_at"] == 1
    assert all(value >= 0 for value in [manifest.seconds, *manifest.timing.values()])
    goes_on(bench, store, expected)
    assert bench.run(store, "--set", "a.steps=4").returncode == 0
    again = max((mf.load(a) for a in store.all_attempts("a")), key=lambda m: len(m.warnings))
    assert again.outputs["rows"].meta["rows"] == 4
    assert again.warnings[0].startswith(f"the clock went back: {begun.outputs['rows'].producer} was sealed at")


def test_a_worker_that_died_while_it_waited_is_replaced(tmp_path: Path) -> None:
    """The kernel may take the one that imports ahead: the step then gets another, and the run does not end well."""
    from r1pipe.settings import StepConfig

    child = Child.start(StepConfig(stage="base-model"), None, waiting=True)
    child.popen.kill()
    os.waitid(os.P_PID, child.popen.pid, os.WEXITED | os.WNOWAIT)  # dead, and the runner has not seen it
    assert child.assign(tmp_path / "request.json") is False
    child.popen.wait()
