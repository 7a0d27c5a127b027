"""Bad input as a user's shell gives it: real processes; and nothing heavy is imported before the fault is found."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.badinput import nasties
from tests.badinput.conftest import tree
from tests.engine.conftest import FIXTURE

ROOT = Path(__file__).parents[2]


def test_torch_waits_for_a_good_profile(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.badinput.light", str(tmp_path)], cwd=ROOT, capture_output=True, text=True,
        timeout=250, env=os.environ | {"PYTHONPATH": f"{FIXTURE}{os.pathsep}{ROOT}"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *faults, refused = done.stdout.splitlines()
    assert not faults
    assert int(refused) > 5 * len(nasties.PROFILES)


LINES = [
    ["pipeline", "-p", "bad.yaml"], ["plan", "-p", "bad.yaml"], ["config", "validate", "bad.yaml"],
    ["score", "bad.jsonl"], ["data", "inspect", "bad.jsonl"], ["verify", "../../etc"], ["nonsense"],
    ["report", "a\nb"],
]  # fmt: skip


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_real_processes(line: list[str], tmp_path: Path) -> None:
    here, home = tmp_path / "here", tmp_path / "home"
    here.mkdir()
    home.mkdir()
    (here / "bad.yaml").write_bytes(nasties.PROFILES["step name a path"])
    (here / "bad.jsonl").write_bytes(nasties.DATASETS["binary.jsonl"])
    before = tree(tmp_path)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "r1pipe", *line], cwd=here, capture_output=True, text=True, timeout=60,
        env=os.environ | {"PYTHONPATH": str(FIXTURE), "HOME": str(home), "TMPDIR": str(home)},
    )  # fmt: skip
    assert done.returncode == 2, done
    assert "Traceback" not in done.stderr and len(done.stdout + done.stderr) < 2000
    assert tree(tmp_path) == before
