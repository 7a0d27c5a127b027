"""On runs of the torch-free toy stage, made by the real runner."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from r1pipe import process
from r1pipe.store import Attempt, Store


@pytest.fixture
def toys(call: Any, profile: Path, tmp_path: Path) -> Any:
    """`r1pipe COMMAND --profile toys.yaml`, and the run's store."""
    store = Store(tmp_path / "runs", "toys-full")

    def run(command: str, *arguments: str) -> tuple[int, str, str]:
        return call(command, *arguments, "--profile", str(profile))

    run.store = store  # type: ignore[attr-defined]
    return run


def only(store: Store, step: str) -> Attempt:
    (attempt,) = store.all_attempts(step)
    return attempt


def test_status_tells_every_state(toys: Any) -> None:
    code, out, _ = toys("status")
    assert code == 0
    assert "no run yet" in out
    assert "3 never run" in out
    assert toys("run-stage", "a")[0] == 0
    assert toys("run-stage", "b", "--set", "b.fail=user")[0] == 2
    code, out, _ = toys("status", "--set", "b.fail=user", "--why")
    assert "1 done, 1 failed, 1 never run" in out
    assert "the toy is broken" in out
    assert "fingerprint " in out
    assert "log.txt" in out
    _, out, _ = toys("status", "--set", "a.salt=x", "--json")
    rows = {r["step"]: r for r in json.loads(out)["steps"]}
    assert (rows["a"]["state"], rows["b"]["state"]) == ("stale", "never run")
    with process.acquire(only(toys.store, "b").lock):
        _, out, _ = toys("status", "--set", "b.fail=user")
        assert f"process {os.getpid()} works on it" in out
        assert "running" in out


def test_status_refuses_what_it_does_not_know(toys: Any) -> None:
    code, _, err = toys("status", "ful")
    assert code == 2
    assert 'did you mean "full"?' in err


def test_prune_frees_work_and_keeps_results_logs_and_what_can_be_resumed(toys: Any, call: Any) -> None:
    store = toys.store
    assert toys("run-stage", "a")[0] == 0
    toys("run-stage", "b", "--set", "b.fail=crash")
    assert toys("run-stage", "a")[0] == 0  # the run is asked for without fail now: what b did is superseded
    gone = only(store, "b")
    (gone.path / "work").mkdir(exist_ok=True)
    (gone.path / "work" / "big.bin").write_bytes(b"x" * 5000)
    work = only(store, "a").work
    (work / "checkpoints").mkdir()
    (work / "checkpoints" / "optimizer.pt").write_bytes(b"x" * 3000)
    (work / "log.jsonl").write_text("{}\n")
    (store.root / "a" / ".x.json.999999999.partial").write_text("torn")
    (store.root / "a" / f".y.json.{os.getpid()}.partial").write_text("being written")
    code, out, err = call("prune", "toys-full", "--json")
    listed = {i["path"].removeprefix(str(store.root) + "/"): i["bytes"] for i in json.loads(out)["items"]}
    assert set(listed) == {
        f"a/{work.parent.name}/work", f"b/{gone.path.name}", "a/.x.json.999999999.partial"
    }  # fmt: skip
    assert listed[f"b/{gone.path.name}"] > 5000
    assert json.loads(out)["removed"] is False
    assert (work / "checkpoints" / "optimizer.pt").is_file()  # --json without --yes only lists

    code, out, err = call("prune", "toys-full")  # not on a terminal: asks nobody, removes nothing
    assert "give --yes" in err
    assert (work / "checkpoints" / "optimizer.pt").is_file()

    code, out, _ = call("prune", "toys-full", "--yes")
    assert code == 0
    assert "freed" in out
    assert [p.name for p in work.iterdir()] == ["log.jsonl"]
    assert {p.name for p in gone.path.iterdir()} == {"log.txt", "attempts.jsonl", "lock"}
    assert not (store.root / "a" / ".x.json.999999999.partial").exists()
    assert (store.root / "a" / f".y.json.{os.getpid()}.partial").exists()
    assert call("verify", "toys-full")[0] == 0
    assert "nothing to remove" in call("prune", "toys-full")[1]
    assert toys("pipeline", "full", "--json")[0] == 0  # a is kept, b and c run


def test_prune_keeps_a_step_that_the_plan_resumes_or_cannot_judge(toys: Any, call: Any) -> None:
    assert toys("run-stage", "a")[0] == 0
    toys("run-stage", "b", "--set", "b.fail=crash")
    _, out, _ = call("prune", "toys-full", "--set", "b.fail=crash", "--json")
    assert not [i for i in json.loads(out)["items"] if "/b/" in i["path"]]
    assert any("will be resumed" in n for n in json.loads(out)["notes"])
    _, out, _ = call("prune", "toys-full", "--set", "a.salt=x", "--json")  # a is stale: what b needs is not known
    assert not [i for i in json.loads(out)["items"] if "/b/" in i["path"]]
    profile = Path(json.loads(toys.store.run_file.read_text())["path"])
    profile.unlink()
    _, out, _ = call("prune", "toys-full", "--json")
    assert [i["why"] for i in json.loads(out)["items"]] == ["work of a, which is sealed"]
    assert any("cannot be read" in n for n in json.loads(out)["notes"])


def test_prune_leaves_what_is_being_written(toys: Any, call: Any) -> None:
    assert toys("run-stage", "a")[0] == 0
    toys("run-stage", "b", "--set", "b.fail=crash")
    with process.acquire(only(toys.store, "b").lock):
        _, out, _ = call("prune", "toys-full", "--json")
        assert not [i for i in json.loads(out)["items"] if "/b/" in i["path"]]
    with process.run_lock(toys.store.lock, "run"):
        code, _, err = call("prune", "toys-full", "--yes")
        assert code == 2
        assert f"process {os.getpid()}" in err
