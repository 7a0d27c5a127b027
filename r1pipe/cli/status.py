"""`r1pipe status`: where every step of a pipeline stands, and why. Loads no torch, writes nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from r1pipe.cli import options as o
from r1pipe.cli import runs, terminal

if TYPE_CHECKING:
    from rich.console import Console

    from r1pipe.plan import Decision

# state → (symbol, plain symbol, style)
LOOK = {
    "done": ("✓", "+", "green"),
    "running": ("▶", ">", "cyan"),
    "stale": ("↻", "~", "yellow"),
    "interrupted": ("‖", "=", "yellow"),
    "failed": ("✗", "x", "red"),
    "never run": ("·", ".", "dim"),
}


def status(
    pipeline: Annotated[str, typer.Argument(help="full, zero, or another pipeline of the profile.")] = "full",
    profile: o.Profile = "tiny",
    run: o.Run = None,
    runs_dir: o.RunsDir = Path("runs"),
    set_: o.Set = None,
    why: Annotated[bool, typer.Option("--why", help="Reason, fingerprint, folder and notes of each step.")] = False,
    json: o.Json = False,
    debug: o.Debug = False,
) -> int:
    """Each step: done, stale (and why), failed, interrupted, running, never run."""
    from r1pipe import config
    from r1pipe.plan import Planner
    from r1pipe.store import Store

    loaded = config.load(profile, set_ or ())
    members = loaded.pipeline(pipeline)
    store = Store(runs_dir, run or f"{loaded.name}-{pipeline}")
    steps = [_row(d) for d in Planner(loaded, store).decide_all(members)]
    report = {
        "run": store.run,
        "folder": str(store.root),
        "exists": store.run_file.is_file(),
        "profile": loaded.name,
        "pipeline": pipeline,
        "runner_pid": runs.writer(store.lock),
        "steps": steps,
    }
    if json:
        import json as js

        sys.stdout.write(js.dumps(report, ensure_ascii=False, indent=2) + "\n")
    else:
        _show(terminal.console(), report, why)
    return 0


def _row(decision: Decision) -> dict[str, Any]:
    """A decision as JSON, with `running` where a worker holds the folder, and the log of what did not end well."""
    row = decision.as_json()
    attempt = decision.attempt
    pid = runs.writer(attempt.lock) if attempt is not None and not attempt.sealed else None
    if pid is not None:
        row |= {"state": "running", "reason": f"process {pid} works on it", "pid": pid}
    if attempt is not None and row["state"] in ("failed", "interrupted", "running") and attempt.log.is_file():
        row["log"] = str(attempt.log)
    if decision.manifest is not None:
        row |= {"finished": decision.manifest.finished, "seconds": decision.manifest.seconds}
        if gates := decision.manifest.facts.get("gates"):  # as they were when the step was sealed
            row |= {"gates": gates, "notes": [*row["notes"], *(g["text"] for g in gates)]}
            tripped = [g for g in gates if g["verdict"] == "tripped"]
            if tripped:
                row["reason"] += f"; {tripped[0]['action']}: {tripped[0]['text']}"
    return row


def _show(out: Console, report: dict[str, Any], why: bool) -> None:
    from rich.table import Table

    title = f"[bold]{terminal.safe(report['folder'])}[/]  profile {report['profile']}, pipeline {report['pipeline']}"
    out.print(title + ("" if report["exists"] else "  [dim](no run yet)[/]"), soft_wrap=True)
    grid = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    grid.add_column(width=1)
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for row in report["steps"]:
        symbol, plain, style = LOOK.get(row["state"], ("?", "?", ""))
        mark = symbol if terminal.fancy(out) else plain
        reason = terminal.safe(row["reason"]) if why or row["state"] != "never run" else ""
        if row["reason"] == row["state"]:
            reason = ""
        name = terminal.safe(row["step"])
        grid.add_row(f"[{style}]{mark}[/]", name, f"[{style}]{row['state']}[/]", reason)
        if why:
            for line in _details(row):
                grid.add_row("", "", "", f"[dim]{terminal.safe(line)}[/]")
    out.print(grid)
    if report["runner_pid"]:
        out.print(f"process {report['runner_pid']} is working on this run")
    states = [row["state"] for row in report["steps"]]
    counts = ", ".join(f"{states.count(s)} {s}" for s in LOOK if s in states)
    noted = sum(bool(row["notes"]) for row in report["steps"])
    more = f"; {noted} with notes (--why)" if noted and not why else ""
    out.print(f"[dim]{counts}{more}[/]")


def _details(row: dict[str, Any]) -> list[str]:
    lines = []
    if row["fingerprint"]:
        lines.append(f"fingerprint {row['fingerprint'][:16]}  {row['action']} ({row['why']})")
    if row["folder"]:
        lines.append(f"folder {row['folder']}")
    if row.get("log"):
        lines.append(f"log {row['log']}")
    return lines + list(row["notes"])
