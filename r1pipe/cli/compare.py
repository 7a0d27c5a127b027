"""`r1pipe compare A B`: is B better than A? Paired on shared problems, with intervals. No torch, no model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from r1pipe.cli import options as o
from r1pipe.cli import runs, terminal

if TYPE_CHECKING:
    from rich.console import Console

    from r1pipe.report.collect import Run
    from r1pipe.report.compare import Comparison, Effect, Step

STYLES = {"better": "green", "worse": "red", "more": "bold", "fewer": "bold", "not comparable": "yellow"}
MOST_SETTINGS = 12


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="A run, or several with commas (seeds of one recipe).")],
    b: Annotated[str, typer.Argument(metavar="B", help="What A is compared with; a positive change is more in B.")],
    runs_dir: o.RunsDir = Path("runs"),
    step: Annotated[
        list[str] | None,
        typer.Option("--step", help="Only this step (A_STEP=B_STEP where names differ); may be repeated."),
    ] = None,
    metric: Annotated[list[str] | None, typer.Option("--metric", help="Only this number; may be repeated.")] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Also as a page, with the curves on one another.", show_default=False)
    ] = None,
    json: o.Json = False,
    debug: o.Debug = False,
) -> int:
    """Is B better than A? Paired by problem, with intervals; several runs a side stand for seeds."""
    from r1pipe.report import compare as cp

    left, right = _group(a, runs_dir), _group(b, runs_dir)
    found = cp.compare(left, right, step or (), metric or ())
    if html is not None:
        from datetime import UTC, datetime

        from r1pipe.cli.report import write
        from r1pipe.report import comparepage

        write(html, comparepage.html(found, datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")))
    if json:
        import json as js

        sys.stdout.write(js.dumps(_as_json(found, html), ensure_ascii=False, indent=2) + "\n")
    else:
        _show(terminal.console(), found)
        if html is not None:
            terminal.console().print(terminal.safe(str(html)), soft_wrap=True)
    return 0


def _group(names: str, runs_dir: Path) -> list[Run]:
    from r1pipe.errors import UserError
    from r1pipe.report import collect

    given = [n.strip() for n in names.split(",") if n.strip()]
    if not given:
        raise UserError("a side of the comparison names no run", hint="r1pipe compare A B, or A1,A2 B1,B2")
    stores = [runs.open_run(name, runs_dir) for name in given]
    twice = {s.root.resolve() for s in stores}
    if len(twice) < len(stores):
        raise UserError(f"{names} names a run twice: it would count as two seeds", hint="name each run once")
    return [collect.load(store) for store in stores]


def _as_json(found: Comparison, html: Path | None) -> dict[str, Any]:
    from dataclasses import asdict

    from r1pipe.report import comparepage

    def differing(rows: list[tuple[str, str, str]]) -> dict[str, dict[str, str]]:
        return {key: {"a": x, "b": y} for key, x, y in rows}

    return {
        "a": [r.store.run for r in found.a],
        "b": [r.store.run for r in found.b],
        "headline": comparepage.headline(found)[1],
        "notes": found.notes,
        "steps": [
            {"step": s.name, "same_model": s.same, "notes": s.notes, "effects": [asdict(e) for e in s.effects],
             "settings": differing(s.config)}
            for s in found.steps
        ],
        "environment": differing(found.environment),
        "html": str(html.absolute()) if html else None,
    }  # fmt: skip


def _show(out: Console, found: Comparison) -> None:
    from r1pipe.cli import grid
    from r1pipe.report import comparepage

    tone, said = comparepage.headline(found)
    out.print(f"A: {terminal.safe(comparepage.names(found.a, found.b))}", soft_wrap=True)
    out.print(f"B: {terminal.safe(comparepage.names(found.b, found.a))}", soft_wrap=True)
    style = {"good": "bold green", "bad": "bold red"}.get(tone, "bold")
    out.print(f"[{style}]{terminal.safe(said)}[/]", soft_wrap=True)
    for note in found.notes:
        out.print(f"[yellow]note:[/] {terminal.safe(note)}", soft_wrap=True)
    same = ", ".join(s.name for s in found.steps if s.same)
    if same:
        out.print(f"[dim]the same model on both sides: {terminal.safe(same)}[/]", soft_wrap=True)
    for step in found.steps:
        if step.same:
            continue
        out.print()
        out.print(f"[bold]{terminal.safe(step.name)}[/]")
        for note in step.notes:
            out.print(f"  [yellow]{terminal.safe(note)}[/]", soft_wrap=True)
        paired = [e for e in step.effects if not e.refused]
        if paired:
            for table in grid.tables(_columns(paired), out.width):
                out.print(table)
        for line in dict.fromkeys(f"{e.set}, {e.mode}: {e.refused}" for e in step.effects if e.refused):
            out.print(f"  [yellow]{terminal.safe(line)}[/]", soft_wrap=True)
        _settings(out, step)
    if found.environment:
        said = ", ".join(f"{k} {x} → {y}" for k, x, y in found.environment[:MOST_SETTINGS])
        out.print(f"\nenvironment differs: {terminal.safe(said)}", soft_wrap=True)


def _columns(effects: list[Effect]) -> list[tuple[str, str, list[tuple[str, str]]]]:
    from r1pipe.report.comparepage import cell

    def value(e: Effect, v: float | None) -> str:
        return "" if v is None else f"{v:.1f}" if e.metric == "tokens" else f"{100 * v:.1f} %"

    return [
        ("number", "left", [(e.name, "") for e in effects]),
        ("A", "right", [(value(e, e.a), "") for e in effects]),
        ("B", "right", [(value(e, e.b), "") for e in effects]),
        ("B minus A\n95 % interval", "right", [(cell(e), "") for e in effects]),
        ("problems", "right", [(str(e.n), "dim") for e in effects]),
        ("p\nHolm", "right", [(f"{e.holm:.3f}", "dim") for e in effects]),
        ("verdict", "left", [(e.verdict, STYLES.get(e.verdict, "dim")) for e in effects]),
    ]


def _settings(out: Console, step: Step) -> None:
    """What differs in the sealed settings; long lists are cut, and say so."""
    if not step.config:
        out.print("  [dim]no setting differs[/]")
        return
    for key, x, y in step.config[:MOST_SETTINGS]:
        out.print(f"  [dim]{terminal.safe(key)}[/] {terminal.safe(x)} → {terminal.safe(y)}", soft_wrap=True)
    if len(step.config) > MOST_SETTINGS:
        out.print(f"  [dim]and {len(step.config) - MOST_SETTINGS} more settings: --json or --html[/]")
