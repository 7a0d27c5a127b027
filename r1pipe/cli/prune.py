"""`r1pipe prune RUN`: frees disk. Lists first; a sealed result, a log or what a resume needs is never listed."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r1pipe import process
from r1pipe.cli import options as o
from r1pipe.cli import runs, terminal
from r1pipe.errors import UserError

if TYPE_CHECKING:
    from r1pipe.store import Store

KEPT = ("log.txt", "log*.jsonl", "attempts.jsonl", "lock", "completions_*.parquet")  # what is never removed
_PARTIAL = re.compile(r"\..+\.(\d+)\.partial")


@dataclass(frozen=True)
class Item:
    """Something that can go. `bytes` is what the disk gets back: hard links count only where they are the last."""

    path: Path
    why: str
    bytes: int


def prune(
    run: Annotated[str, typer.Argument(help="Name or path of a run.")],
    runs_dir: o.RunsDir = Path("runs"),
    profile: Annotated[
        str | None,
        typer.Option("--profile", "-p", help="Profile whose unfinished steps are kept; else the one of the run."),
    ] = None,
    set_: o.Set = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove without asking.")] = False,
    json: o.Json = False,
    debug: o.Debug = False,
) -> int:
    """Free disk; lists first, never touches a sealed result."""
    store = runs.open_run(run, runs_dir)
    with process.run_lock(store.lock, f"run {store.root}"):  # no step starts while we look and remove
        items, notes = plan(store, profile, set_)
        total = sum(item.bytes for item in items)
        if not json:
            _show(store, items, notes, total)
        remove = bool(items) and (yes or (not json and _ask(total)))
        if remove:
            for item in items:
                _remove(item.path)
    if json:
        import json as js

        value = {
            "run": store.run, "removed": remove, "bytes": total, "notes": notes,
            "items": [{"path": str(i.path), "why": i.why, "bytes": i.bytes} for i in items],
        }  # fmt: skip
        sys.stdout.write(js.dumps(value, ensure_ascii=False, indent=2) + "\n")
    elif remove:
        terminal.console().print(f"freed {terminal.size(total)}")
    return 0


def plan(store: Store, profile: str | None, overrides: list[str] | None) -> tuple[list[Item], list[str]]:
    """What can go, and sentences about what is kept because it is not known to be spare."""
    items: list[Item] = []
    notes: list[str] = []
    current, unknown = _current(store, profile, overrides, notes)
    for step, attempt in runs.attempts(store):
        name = f"{step}/{attempt.path.name}"
        if runs.writer(attempt.lock) is not None:
            notes.append(f"{name} is being written: kept")
        elif attempt.sealed:
            files = _spare(attempt.work)
            if files:
                items.append(Item(attempt.work, f"work of {step}, which is sealed", _freed(files)))
        elif step in unknown:
            notes.append(f"{name} is unfinished, and the plan does not know yet whether it is needed: kept")
        elif attempt.path == current.get(step):
            notes.append(f"{name} is unfinished and will be resumed: kept")
        else:
            files = _spare(attempt.path)
            if files:
                items.append(Item(attempt.path, f"unfinished {step}, and the plan no longer needs it", _freed(files)))
    inside = {item.path for item in items}
    for path in _partials(store.root):
        if not any(p in inside for p in path.parents):
            items.append(Item(path, "left half-written by a process that is gone", _freed([path])))
    return items, notes


def _current(
    store: Store, profile: str | None, overrides: list[str] | None, notes: list[str]
) -> tuple[dict[str, Path], set[str]]:
    """(step → the folder that the plan works in or trusts, steps of which that is not known)."""
    from r1pipe import config
    from r1pipe.plan import Action, Planner

    steps = set(store.steps())
    about = runs.about(store)
    name = profile or about.get("path")
    try:
        if not name:
            raise UserError(f"{store.root} has no run.json")
        loaded = config.load(str(name), overrides if overrides is not None else about.get("overrides") or ())
    except UserError as error:
        if profile or overrides:
            raise
        notes.append(f"the run's profile cannot be read, so every unfinished step is kept: {error.message}")
        return {}, steps
    planner = Planner(loaded, store)
    current: dict[str, Path] = {}
    unknown = steps - set(loaded.steps)
    for step in steps & set(loaded.steps):
        try:
            decision = planner.decide(step)
        except UserError as error:  # a damaged manifest, a data source that is gone
            notes.append(f"{step}: {error.message}")
            unknown.add(step)
            continue
        if decision.action is Action.LATER or decision.attempt is None:
            unknown.add(step)
        else:
            current[step] = decision.attempt.path
    return current, unknown


def _spare(folder: Path) -> list[Path]:
    """Files below `folder` that are no logs: training histories (`log*.jsonl`) and what the step said stay."""
    found = (p for p in folder.rglob("*") if p.is_symlink() or p.is_file())
    return sorted(p for p in found if not any(p.match(pattern) for pattern in KEPT))


def _partials(root: Path) -> list[Path]:
    """Temporary files of writers that no longer live."""
    found = []
    for path in sorted(root.rglob(".*.partial")):
        match = _PARTIAL.fullmatch(path.name)
        if match and path.is_file() and not runs.alive(int(match[1])) and not _sealed_output(root, path):
            found.append(path)
    return found


def _sealed_output(root: Path, path: Path) -> bool:
    """Is this inside out/ of a sealed attempt (root/step/attempt/out/...)?"""
    parts = path.relative_to(root).parts
    return len(parts) > 3 and parts[2] == "out" and (root / parts[0] / parts[1] / "manifest.json").is_file()


def _freed(files: list[Path]) -> int:
    """Bytes; a file with other hard links outside the list gives nothing back."""
    links: dict[tuple[int, int], list[int]] = {}
    for path in files:
        stat = path.lstat()
        entry = links.setdefault((stat.st_dev, stat.st_ino), [0, stat.st_nlink, stat.st_size])
        entry[0] += 1
    return sum(size for seen, total, size in links.values() if seen >= total)


def _remove(path: Path) -> None:
    """Removes a file, or what `_spare` lists of a folder and the folders that are empty then."""
    try:
        if not path.is_dir() or path.is_symlink():
            path.unlink(missing_ok=True)
            return
        for file in _spare(path):
            file.unlink(missing_ok=True)
        for folder in sorted((p for p in path.rglob("*") if p.is_dir()), reverse=True):  # children first
            if not any(folder.iterdir()):
                folder.rmdir()
    except OSError as error:
        raise UserError(f"cannot remove {path}: {error.strerror}", hint="check permissions, then again") from error


def _ask(total: int) -> bool:
    if not sys.stdin.isatty():
        terminal.err_console().print("nothing removed: not on a terminal, give --yes")
        return False
    return typer.confirm(f"Remove this and free {terminal.size(total)}?")


def _show(store: Store, items: list[Item], notes: list[str], total: int) -> None:
    from rich.table import Table

    out = terminal.console()
    for note in notes:
        out.print(f"[dim]{terminal.safe(note)}[/]", soft_wrap=True)
    if not items:
        out.print(f"{terminal.safe(str(store.root))}: nothing to remove")
        return
    table = Table(box=None, padding=(0, 1), pad_edge=False, show_header=False)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(style="dim", overflow="fold")
    for item in items:
        table.add_row(
            terminal.size(item.bytes), terminal.safe(str(item.path.relative_to(store.root))), terminal.safe(item.why)
        )
    out.print(table)
    where = f"{len(items)} places below {terminal.safe(str(store.root))}"
    out.print(f"[bold]{terminal.size(total)}[/] in {where}", soft_wrap=True)
