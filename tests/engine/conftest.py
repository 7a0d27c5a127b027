"""A run of torch-free toy steps: a → b → c, through real worker processes."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

FIXTURE = Path(__file__).parents[1] / "fixtures" / "toy_stage"

PROFILE = """
name: toys
steps:
  a: {stage: toy, steps: 3}
  b: {stage: toy, steps: 2, inputs: {rows: a}}
  c: {stage: toy, steps: 2, inputs: {rows: b.rows}}
pipelines:
  full: [c, b, a]
"""


@pytest.fixture(autouse=True)
def toy_stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The toy stage is installed, here and in children."""
    from r1pipe import stage

    monkeypatch.syspath_prepend(str(FIXTURE))
    monkeypatch.setenv("PYTHONPATH", str(FIXTURE))
    importlib.invalidate_caches()
    stage.entry_points.cache_clear()
    stage.load.cache_clear()
    yield
    stage.entry_points.cache_clear()
    stage.load.cache_clear()


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "toys.yaml"
    path.write_text(PROFILE)
    return path


Cli = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def cli(tmp_path: Path, profile: Path) -> Cli:
    """`r1pipe COMMAND --profile toys.yaml` in an empty directory, as a user's shell runs it."""

    def run(*arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "r1pipe", *arguments, "--runs-dir", str(tmp_path / "runs")]
        if arguments[0] != "verify":
            command += ["--profile", str(profile)]
        environment = os.environ | {"COLUMNS": "200"}
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=timeout, env=environment)

    return run
