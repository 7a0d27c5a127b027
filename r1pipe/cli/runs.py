"""Finding the run that a command was given, and what lies in it. Reads only."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r1pipe import process
from r1pipe.errors import UserError, nearest
from r1pipe.store import Attempt, Store, read_json

if TYPE_CHECKING:
    from r1pipe.manifest import Manifest


def open_run(run: str, runs_dir: Path) -> Store:
    """The run of this name below `runs_dir`, or at this path. Raises UserError with the nearest name."""
    path = Path(run).expanduser()
    inside = runs_dir / run if "/" not in run and run not in ("", ".", "..") else None
    if inside is not None and inside.is_dir():
        return Store(runs_dir, run)
    if (path / "run.json").is_file():
        return Store(path.resolve().parent, path.resolve().name)
    known = [p.name for p in runs_dir.iterdir() if (p / "run.json").is_file()] if runs_dir.is_dir() else []
    raise UserError(
        f'there is no run "{run}" in {runs_dir.absolute()}{nearest(run, known)}',
        hint="give its name and --runs-dir, or its path; r1pipe pipeline full makes one",
    )


def about(store: Store) -> dict[str, Any]:
    """run.json: profile, its path, pipeline; empty where there is none."""
    if not store.run_file.is_file():
        return {}
    value = read_json(store.run_file)
    return value if isinstance(value, dict) else {}


def attempts(store: Store) -> list[tuple[str, Attempt]]:
    """Every attempt of every step."""
    return [(step, attempt) for step in store.steps() for attempt in store.all_attempts(step)]


def sealed_steps(store: Store) -> dict[str, tuple[Attempt, Manifest]]:
    """The sealed result of each step (the one sealed last, by its manifest), in order of work."""
    from r1pipe import manifest as mf

    found: dict[str, tuple[Attempt, Manifest]] = {}
    for step, attempt in attempts(store):
        if attempt.sealed:
            manifest = mf.load(attempt)
            if step not in found or found[step][1].finished < manifest.finished:
                found[step] = (attempt, manifest)
    ordered: dict[str, tuple[Attempt, Manifest]] = {}
    waiting = sorted(found, key=lambda s: found[s][1].started)
    while waiting:
        ready = (s for s in waiting if not (upstream(found[s][1]) & set(waiting) - {s}))
        step = next(ready, waiting[0])  # a circle cannot be, but a hand-made run must not hang us
        ordered[step] = found[step]
        waiting.remove(step)
    return ordered


def upstream(manifest: Manifest) -> set[str]:
    """Steps that a result was made from."""
    return {record.producer.partition("/")[0] for record in manifest.inputs.values()}


def writer(lock: Path) -> int | None:
    """The live process that holds a lock, else None.

    The pid is looked at first: trying the lock of a folder that a worker is about to take could make it fail.
    """
    pid = process.holder(lock)
    return pid if pid is not None and alive(pid) and process.is_held(lock) else None


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
