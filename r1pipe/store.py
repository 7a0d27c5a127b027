"""The run folder: one function a path, and the few ways in which files are written.

runs/<run>/
  run.json                      profile, base pins, when it began
  lock                          held by the runner
  <step>/<fingerprint 8>[-k]/   one attempt space; -k where --force or --strict made a new one
    request.json                what the worker was asked
    log.txt                     everything the libraries said
    events.jsonl                progress, for the live view
    lock                        held by the worker
    work/                       trainer checkpoints, shards: what a resume needs
    out/<output>/               artifacts
    result.json                 the worker's last word
    attempts.jsonl              every start and end
    manifest.json               sealed last
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from r1pipe.errors import UserError

_RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")


class Store:
    """The folder of one run."""

    def __init__(self, runs_dir: Path, run: str) -> None:
        if not _RUN_NAME.fullmatch(run):
            raise UserError(
                f"run name {run!r} cannot be a folder name",
                hint="use letters, digits, dot, dash, underscore; 100 characters at most",
            )
        self.runs_dir = runs_dir
        self.run = run
        self.root = runs_dir / run

    @property
    def run_file(self) -> Path:
        return self.root / "run.json"

    @property
    def lock(self) -> Path:
        return self.root / "lock"

    def step_dir(self, step: str) -> Path:
        return self.root / step

    def steps(self) -> list[str]:
        """Steps that have a folder."""
        if not self.root.is_dir():
            return []
        return sorted(p.name for p in self.root.iterdir() if p.is_dir() and not p.name.startswith("."))

    def attempts(self, step: str, fingerprint: str) -> list[Attempt]:
        """The folders of a fingerprint, first to last."""
        short = fingerprint[:8]
        found = [a for a in self.all_attempts(step) if a.path.name.partition("-")[0] == short]
        return sorted(found, key=lambda a: a.number)

    def all_attempts(self, step: str) -> list[Attempt]:
        folder = self.step_dir(step)
        if not folder.is_dir():
            return []
        names = (p for p in folder.iterdir() if p.is_dir() and re.fullmatch(r"[0-9a-f]{8}(-\d+)?", p.name))
        return sorted((Attempt(p) for p in names), key=lambda a: a.path.name)

    def attempt(self, step: str, fingerprint: str, number: int = 1) -> Attempt:
        name = fingerprint[:8] if number == 1 else f"{fingerprint[:8]}-{number}"
        return Attempt(self.step_dir(step) / name)


class Attempt:
    """The folder of one step at one fingerprint."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def number(self) -> int:
        return int(self.path.name.partition("-")[2] or 1)

    @property
    def request(self) -> Path:
        return self.path / "request.json"

    @property
    def log(self) -> Path:
        return self.path / "log.txt"

    @property
    def events(self) -> Path:
        return self.path / "events.jsonl"

    @property
    def lock(self) -> Path:
        return self.path / "lock"

    @property
    def work(self) -> Path:
        return self.path / "work"

    @property
    def out(self) -> Path:
        return self.path / "out"

    def output(self, name: str) -> Path:
        return self.out / name

    @property
    def result(self) -> Path:
        return self.path / "result.json"

    @property
    def attempts_log(self) -> Path:
        return self.path / "attempts.jsonl"

    @property
    def manifest(self) -> Path:
        return self.path / "manifest.json"

    @property
    def sealed(self) -> bool:
        return self.manifest.is_file()


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """What cannot be written is told in a sentence. Raises UserError for an OSError inside."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        what = "free space (r1pipe prune)" if full else "check the disk and its permissions"
        raise UserError(
            f"cannot write {path}: {error.strerror or error}", hint=f"{what}, then run the same command: it goes on"
        ) from error


def fsync_dir(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_text(path: Path, text: str) -> None:
    """Atomic and durable: a reader sees the old file or the whole new one. Half a surrogate pair, which a model may
    say and UTF-8 cannot, becomes "?"."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    with writing(path):
        try:
            with partial.open("w", encoding="utf-8", errors="replace") as handle:
                handle.write(text)
                handle.flush()
                os.fsync(handle.fileno())
            partial.replace(path)
            fsync_dir(path.parent)
        except BaseException:
            with contextlib.suppress(OSError):  # a disk that takes nothing may not let go of anything either
                partial.unlink(missing_ok=True)
            raise


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, sort_keys=False) + "\n")


def read_json(path: Path, hint: str = "restore it, or remove its folder and run again") -> Any:
    """A JSON file of ours. Raises UserError naming the file where it is torn."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise UserError(f"{path} cannot be read: {error}", hint=hint) from error


def append_json(path: Path, value: Any, *, durable: bool = False) -> None:
    """One line at the end of a log; a torn last line is ended first, so that two never join. `durable`: on the disk
    when this returns."""
    line = json.dumps(value, ensure_ascii=False, default=str) + "\n"
    with writing(path), path.open("ab") as handle:
        if handle.tell():
            with path.open("rb") as reader:
                reader.seek(-1, os.SEEK_END)
                if reader.read(1) != b"\n":
                    line = "\n" + line
        handle.write(line.encode(errors="replace"))
        if durable:
            handle.flush()
            os.fsync(handle.fileno())


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Rows of a JSONL log of ours; torn lines are passed over."""
    if not path.is_file():
        return
    with path.open("rb") as handle:
        for raw in handle:
            try:
                row = json.loads(raw)
            except (ValueError, RecursionError):
                continue
            if isinstance(row, dict):
                yield row
