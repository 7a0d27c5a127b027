"""A folder to attack in, a sealed toy run to attack, and an eye on everything that is written."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from r1pipe.cli import app
from tests.engine.conftest import PROFILE, toy_stage  # noqa: F401  fixture

Call = Callable[[list[str]], "Said"]
LIBRARIES = "{}/tmp/torchinductor_"  # what importing torch leaves in TMPDIR
PYTHON = re.compile(r"\b(Type|Key|Value|Attribute|Index|Recursion|Unicode\w*|OS|JSONDecode|Validation)Error\b")
LONGEST = 3000  # characters of a refusal: one sentence and a hint, or a list of faults, not a dump


class Said:
    def __init__(self, code: int, out: str, err: str, wrote: list[str]) -> None:
        self.code, self.out, self.err, self.wrote = code, out, err, wrote

    def __repr__(self) -> str:
        return f"exit {self.code}, wrote {self.wrote}\nstdout: {self.out[-1500:]}\nstderr: {self.err[-1500:]}"


def tree(*roots: Path) -> dict[str, tuple[int, int, int]]:
    """Every path below: type, size, time of change."""
    found: dict[str, tuple[int, int, int]] = {}
    for root in roots:
        for folder, folders, files in os.walk(root):
            for name in (*folders, *files):
                path = os.path.join(folder, name)
                s = os.lstat(path)
                is_dir = stat.S_ISDIR(s.st_mode)
                found[path] = (s.st_mode, 0, 0) if is_dir else (s.st_mode, s.st_size, s.st_mtime_ns)
    return found


@pytest.fixture
def arena(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """cwd, HOME and TMPDIR are folders of this test."""
    here = tmp_path / "here"
    for folder in (here, tmp_path / "home", tmp_path / "tmp"):
        folder.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home" / ".cache"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("R1PIPE_RUNS_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")  # a name that is no file may be one of the hub: no waiting for it here
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    (here / "toys.yaml").write_text(PROFILE)
    (here / "rows.jsonl").write_text(
        "".join(json.dumps({"prompt": f"{i} + 1 = ?", "answer": str(i + 1),
                            "completion": f"<think>\\n1\\n</think>\\n<answer>{i}</answer>"}) + "\n" for i in range(3))
    )  # fmt: skip
    return here


@pytest.fixture
def call(arena: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Call:
    """The command line in process, through the entry that `r1pipe` itself uses."""

    def run(line: list[str]) -> Said:
        before = tree(tmp_path)
        capfd.readouterr()
        try:
            code = app.dispatch(line)
        finally:
            said = capfd.readouterr()
        after = tree(tmp_path)
        runs = str(arena / "runs")
        changed = {p for p in {*before, *after} if before.get(p) != after.get(p)}
        wrote = sorted(p for p in changed if not p.startswith((runs, LIBRARIES.format(tmp_path))))
        return Said(code, said.out, said.err, wrote)

    return run


def sound(said: Said, line: list[str]) -> None:
    """What holds for every answer, whatever was typed."""
    shown = f"r1pipe {line!r:.600}\n{said!r}"
    assert said.code in (0, 2) or (said.code == 1 and line[0] == "doctor"), shown  # doctor: something does not work
    assert "Traceback" not in said.out + said.err, shown
    assert "r1pipe has a fault" not in said.err, shown
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", said.err), shown


def refused(said: Said, line: list[str]) -> None:
    """Exit code 2, a sentence that says more than the name of an exception, nothing written."""
    sound(said, line)
    shown = f"r1pipe {line!r:.600}\n{said!r}"
    assert said.code == 2, shown
    text = said.err if said.err.strip() else said.out  # config validate tells on stdout
    assert 15 < len(text) < LONGEST, shown
    assert not PYTHON.search(text), shown
    assert said.wrote == [], shown


@pytest.fixture(scope="session")
def _sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of the toy steps, made once by real workers."""
    import subprocess
    import sys

    from tests.engine.conftest import FIXTURE

    folder = tmp_path_factory.mktemp("sealed")
    (folder / "toys.yaml").write_text(PROFILE)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "r1pipe", "pipeline", "--profile", "toys.yaml"],
        cwd=folder, capture_output=True, text=True, timeout=120, env=os.environ | {"PYTHONPATH": str(FIXTURE)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "runs"


@pytest.fixture
def sealed(_sealed: Path, arena: Path) -> Path:
    """The sealed run toys-full in runs/ of the arena."""
    shutil.copytree(_sealed, arena / "runs", symlinks=True)
    return arena / "runs" / "toys-full"


@pytest.fixture(scope="session", autouse=True)
def devices_stay() -> Iterator[None]:
    """As root, a file written beside and renamed would take the place of a device that an argument names."""
    yield
    assert [path for path in (Path("/dev/null"), Path("/dev/zero")) if not path.is_char_device()] == []
