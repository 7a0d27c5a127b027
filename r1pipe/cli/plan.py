"""`r1pipe plan`: what a pipeline will do, and what it will cost, before it runs. Loads no torch, writes nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from r1pipe.cli import options as o
from r1pipe.cli import terminal

if TYPE_CHECKING:
    from rich.console import Console

ACTION = {"run": "cyan", "resume": "yellow", "skip": "green", "later": ""}
GB = 1e9


def plan(
    pipeline: Annotated[str, typer.Argument(help="full, zero, or another pipeline of the profile.")] = "full",
    profile: o.Profile = "tiny",
    run: o.Run = None,
    runs_dir: o.RunsDir = Path("runs"),
    set_: o.Set = None,
    device: Annotated[
        str | None,
        typer.Option("--device", help="h100, a100-80, rtx4090, cpu, … (without it: this machine's).",
                     show_default=False),
    ] = None,
    devices: Annotated[
        int | None,
        typer.Option("--devices", min=1, max=65_536, help="How many there are (else as many as the steps ask for).",
                     show_default=False),
    ] = None,
    price: Annotated[
        float | None, typer.Option("--price", help="$ an hour for one device.", show_default=False)
    ] = None,
    params: Annotated[
        str | None,
        typer.Option("--params", metavar="7B", help="Size of a model whose config.json is not here.",
                     show_default=False),
    ] = None,
    probe: Annotated[bool, typer.Option("--probe", help="Measure this machine first (some seconds).")] = False,
    why: Annotated[bool, typer.Option("--why", help="Memory part by part, and what was assumed.")] = False,
    json: o.Json = False,
    debug: o.Debug = False,
    allow_code: o.AllowCode = False,
) -> int:  # fmt: skip
    """Per step: run, resume or skip and why; tokens, memory, disk, time and money; what does not fit."""
    from r1pipe import config
    from r1pipe.cli.run import _load
    from r1pipe.errors import UserError
    from r1pipe.estimate import device as table
    from r1pipe.estimate import measure, report
    from r1pipe.estimate.work import Estimator
    from r1pipe.plan import Planner
    from r1pipe.store import Store

    loaded: config.Profile = _load(profile, set_, allow_code)
    members = loaded.pipeline(pipeline)
    store = Store(runs_dir, run or f"{loaded.name}-{pipeline}")
    on_cpu = all(getattr(c, "trainer", {}).get("use_cpu", True) for c in (loaded.steps[m] for m in members))
    chosen = table.find(device or ("cpu" if on_cpu else None), price)
    if probe and device is not None and device != table.find(None).key:
        raise UserError(
            f"--probe measures this machine ({table.find(None).name}), and --device {device} is another",
            hint="leave one of them out",
        )
    decisions = Planner(loaded, store).decide_all(members)
    sealed = [(d.step, d.manifest) for d in decisions if d.manifest is not None]
    rates = None
    if probe:
        measured = measure.step_to_measure(loaded, members)
        rates = measure.rates(loaded, measured, Estimator(loaded, chosen, params=params))
    estimator = Estimator(loaded, chosen, params=params, facts=report.facts_of(sealed, rates))
    made = {
        "run": store.run,
        "folder": str(store.root),
        "profile": loaded.name,
        "pipeline": pipeline,
        "for_cpu": on_cpu,
        **report.make(loaded, decisions, estimator, chosen, devices, rates, store.root),
    }
    if json:
        import json as js

        sys.stdout.write(js.dumps(made, ensure_ascii=False, indent=2) + "\n")
    else:
        _show(terminal.console(), made, why)
    return 0


def _show(out: Console, made: dict[str, Any], why: bool) -> None:
    from r1pipe.cli.grid import tables

    device = made["device"]
    count = f"{device['count']} x " if device["count"] > 1 else ""
    out.print(
        f"[bold]{terminal.safe(made['profile'])}[/], pipeline {terminal.safe(made['pipeline'])}, on {count}"
        f"{terminal.safe(device['name'])} ({device['memory_bytes'] / GB:.0f} GB, ${device['price']:.2f} an hour each)",
        soft_wrap=True,
    )
    if device["key"] == "cpu" and not made["for_cpu"]:
        out.print("[yellow]this profile is for GPUs, and none that the table knows is here: --device h100, …[/]")
    for table in tables(_columns(made), out.width):
        out.print(table)
    _problems(out, made)
    for row in made["steps"]:
        lines = [f"{row['reason']} ({row['why']})", *(_details(row) if why else ())]
        lines += row["notes"] if why else ()
        if why:
            out.print(f"[bold]{terminal.safe(row['step'])}[/]")
            for line in lines:
                out.print(f"  [dim]{terminal.safe(line)}[/]", soft_wrap=True)
    _total(out, made, why)


def _columns(made: dict[str, Any]) -> list[Any]:
    rows = made["steps"]
    skip = [row["action"] == "skip" for row in rows]

    def column(header: str, justify: str, make: Any) -> Any:
        return (header, justify, [("" if s and header != "memory" else make(r), "dim" if s else "")
                                  for r, s in zip(rows, skip, strict=True)])  # fmt: skip

    def memory(row: dict[str, Any]) -> str:
        return f"{row['memory_bytes'] / GB:.1f} GB" if row["memory_bytes"] else ""

    fit = [("done", "dim") if s else ("fits", "green") if r["fits"] else ("NO", "bold red")
           for r, s in zip(rows, skip, strict=True)]  # fmt: skip
    return [
        ("step", "left", [(r["step"], "bold") for r in rows]),
        ("", "left", [(r["action"], ACTION.get(r["action"], "")) for r in rows]),
        ("why", "left", [(_short(r["reason"]), "dim") for r in rows]),
        column("model", "right", lambda r: number(r["parameters"]) if r["parameters"] else ""),
        column("trained", "right", lambda r: number(r["trained"]) if r["trained"] else ""),
        column("updates", "right", lambda r: f"{r['updates']:,}" if r["updates"] else ""),
        column("tokens\ntrained", "right", lambda r: number(r["tokens"]["trained"]) if r["updates"] else ""),
        column("tokens\nmade", "right", lambda r: number(r["tokens"]["generated"])),
        column("FLOPs", "right", lambda r: f"{r['flops']:.1e}" if r["flops"] else ""),
        column("memory\na device", "right", memory),
        ("", "left", fit),
        column("disk", "right", lambda r: f"{r['disk_bytes'] / GB:.1f} GB"),
        ("time", "right", [(terminal.duration(r["seconds"]), "dim" if s else "")
                           for r, s in zip(rows, skip, strict=True)]),
        *([column("$", "right", lambda r: f"{r['price']:.2f}")] if made["device"]["price"] else []),
    ]  # fmt: skip


def _short(text: str) -> str:
    return text if len(text) <= 32 else text[:31] + "…"


def number(value: float) -> str:
    """7.62B, 494M, 38k."""
    for unit, size in (("T", 1e12), ("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.0f}"


def _details(row: dict[str, Any]) -> list[str]:
    lines = []
    for phase in row["phases"]:
        parts = ", ".join(f"{name} {size / GB:.2f}" for name, size in phase["parts"].items())
        share = f"vLLM {phase['vllm_share']:.2f} of it" if phase.get("vllm_share") else ""
        told = "; ".join(t for t in (parts, share, phase.get("note", "")) if t)
        lines.append(f"{phase['name']}: {phase['bytes'] / GB:.2f} GB ({told})")
    if row["sharding"]:
        lines.append(f"sharding: {row['sharding']}, {row['processes']} processes")
    if row["seconds_of"]:
        lines.append("time: " + ", ".join(f"{k} {terminal.duration(v)}" for k, v in row["seconds_of"].items()))
    return lines


def _problems(out: Console, made: dict[str, Any]) -> None:
    device = made["device"]
    for row in made["steps"]:
        if row["fits"]:
            continue
        at = f" (while: {row['memory_at']})" if row["memory_at"] else ""
        room = device["memory_bytes"] * (1 - made["assumed"]["reserved"]) / GB
        said = "; ".join(row["faults"]) or (f"needs {row['memory_bytes'] / GB:.1f} GB of {room:.1f} GB usable{at}")
        out.print(f"[bold red]{terminal.safe(row['step'])} does not fit:[/] {terminal.safe(said)}", soft_wrap=True)
        for change in row["suggestions"]:
            mark = "→" if terminal.fancy(out) else "->"
            state = "fits" if change["fits"] else "still too much"
            out.print(
                f"  [bold]{mark}[/] {terminal.safe(change['change'])}  [dim]{terminal.safe(change['what'])}: "
                f"{change['bytes'] / GB:.1f} GB, {state}[/]",
                soft_wrap=True,
            )
        if not row["suggestions"]:
            out.print("  [dim]no change that the plan knows makes it fit[/]", soft_wrap=True)


def _total(out: Console, made: dict[str, Any], why: bool) -> None:
    total = made["total"]
    price = f", ${total['price']:,.2f}" if made["device"]["price"] else ""
    out.print(
        f"{total['steps']} steps to do: {terminal.duration(total['seconds'])}{price}, "
        f"{total['disk_bytes'] / GB:.1f} GB of disk ({total['disk_free'] / GB:.0f} GB free), "
        f"{total['flops']:.1e} FLOPs",
        soft_wrap=True,
    )
    if total["disk_bytes"] > total["disk_free"]:
        out.print("[bold red]the disk is too small[/]: r1pipe prune frees finished checkpoints between steps")
    assumed = sum(bool(row["notes"]) for row in made["steps"])
    more = f"; {assumed} steps rest on assumptions (--why)" if assumed and not why else ""
    out.print(f"[dim]time {terminal.safe(made['time_is'])}{more}[/]", soft_wrap=True)
