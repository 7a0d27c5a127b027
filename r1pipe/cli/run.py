"""`pipeline`, `run-stage`, `table`: what makes and shows results."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from r1pipe.cli import options as o

if TYPE_CHECKING:
    from rich.console import Console

    from r1pipe.config import Profile
    from r1pipe.runner import Outcome
    from r1pipe.store import Store


def pipeline(
    name: Annotated[str, typer.Argument(help="full, zero, or another pipeline of the profile.")] = "full",
    profile: o.Profile = "tiny",
    run: o.Run = None,
    runs_dir: o.RunsDir = Path("runs"),
    set_: o.Set = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="Only these steps; may be repeated.")] = None,
    from_: Annotated[str | None, typer.Option("--from", help="This step and what is below it.")] = None,
    force: o.Force = False,
    strict: o.Strict = False,
    dry_run: o.DryRun = False,
    json: o.Json = False,
    debug: o.Debug = False,
    allow_code: o.AllowCode = False,
) -> int:
    """Run a whole pipeline: resumes, skips what is done, says why."""
    from r1pipe import plan

    loaded = _load(profile, set_, allow_code)
    members = loaded.pipeline(name)
    chosen = plan.selection(loaded, members, only, from_)
    store = _store(runs_dir, run, loaded, name)
    if dry_run:
        return _dry_run(loaded, store, chosen, name, force, strict, json)
    return _execute(loaded, store, chosen, name, force, strict, json)


def run_stage(
    step: Annotated[str, typer.Argument(help="A step, or a stage that one step uses.")],
    profile: o.Profile = "tiny",
    run: o.Run = None,
    runs_dir: o.RunsDir = Path("runs"),
    set_: o.Set = None,
    pipeline: Annotated[str | None, typer.Option("--pipeline", help="The pipeline whose run it belongs to.")] = None,
    force: o.Force = False,
    strict: o.Strict = False,
    dry_run: o.DryRun = False,
    json: o.Json = False,
    debug: o.Debug = False,
    allow_code: o.AllowCode = False,
) -> int:
    """Run one step; its inputs come from the manifests of the run."""
    from r1pipe import plan
    from r1pipe.errors import UserError

    loaded = _load(profile, set_, allow_code)
    name = loaded.resolve(step)
    if pipeline is None:  # the first pipeline that has the step: full before zero
        homes = [p for p, members in loaded.pipelines.items() if name in members]
        pipeline = homes[0] if homes else "full"
    store = _store(runs_dir, run, loaded, pipeline)
    planner = plan.Planner(loaded, store)
    needed = [up for up in loaded.upstream(name) if planner.decide(up).action is not plan.Action.SKIP]
    missing = [up for up in needed if not plan.prepares(loaded, up)]
    if missing and not dry_run:
        first = planner.decide(missing[0])
        raise UserError(
            f"{name} reads {missing[0]}, which is {first.state or 'not sealed'} in {store.root}: {first.text}",
            hint=f"r1pipe run-stage {missing[0]}, or r1pipe pipeline {pipeline}",
        )
    chosen = [*(up for up in needed if up not in missing), name]
    if dry_run:
        return _dry_run(loaded, store, [name], pipeline, force, strict, json)
    return _execute(loaded, store, chosen, pipeline, force, strict, json, forced=[name])


def table(
    run: Annotated[str, typer.Argument(help="Name or path of a run.")],
    runs_dir: o.RunsDir = Path("runs"),
    markdown: Annotated[bool, typer.Option("--markdown", help="As Markdown.")] = False,
    json: o.Json = False,
    debug: o.Debug = False,
) -> int:
    """The stage table of a run: base, every step, and the change with its interval."""
    from r1pipe import manifest as mf
    from r1pipe.cli import tables, terminal
    from r1pipe.errors import UserError
    from r1pipe.store import Store, read_json

    path = Path(run) if Path(run).is_dir() else runs_dir / run
    store = Store(path.parent, path.name)
    if not store.run_file.is_file():
        raise UserError(f"there is no run in {path.absolute()}", hint="r1pipe pipeline full makes one")
    about = read_json(store.run_file)
    loaded = _load(str(about["path"]), None, False)
    manifests: dict[str, mf.Manifest] = {}
    for step in loaded.pipelines.get(about["pipeline"], list(loaded.steps)):
        sealed = [mf.load(a) for a in store.all_attempts(step) if a.sealed]
        if sealed:
            manifests[step] = max(sealed, key=lambda m: m.finished)
    rows = tables.stage_rows(manifests, store.root)
    if json:
        _print_json({"run": store.run, "stages": rows, "timing": tables.timing_rows(manifests)})
    elif markdown:
        print(tables.markdown(rows))  # noqa: T201
    else:
        tables.show(terminal.console(), rows, manifests)
    return 0


def _load(profile: str, overrides: list[str] | None, allow_code: bool) -> Profile:
    from r1pipe import config, stage

    if allow_code:
        stage.allow_code(Path.cwd())
    return config.load(profile, overrides or ())


def _store(runs_dir: Path, run: str | None, profile: Profile, pipeline: str) -> Store:
    from r1pipe.store import Store

    return Store(runs_dir, run or f"{profile.name}-{pipeline}")


def _execute(
    profile: Profile, store: Store, steps: list[str], pipeline: str, force: bool, strict: bool, json: bool,
    forced: list[str] | None = None,
) -> int:  # fmt: skip
    from r1pipe.cli import live
    from r1pipe.plan import Options
    from r1pipe.runner import Runner

    options = Options(frozenset((forced or steps) if force else ()), strict)
    with live.observer(store.run, profile, steps, json=json) as view, _signals():
        outcome = Runner(profile, store, options, view, pipeline).run(steps)
    _report(profile, store, outcome, json)
    return 0


def _signals() -> Any:
    """SIGTERM ends a run as Ctrl-C does: the worker's group is ended, the folder is left to resume."""
    import contextlib
    import signal

    @contextlib.contextmanager
    def guard() -> Any:
        def stop(signum: int, frame: Any) -> None:
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGTERM, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)

    return guard()


def _report(profile: Profile, store: Store, outcome: Outcome, json: bool) -> None:
    from r1pipe.cli import tables, terminal

    console = terminal.console()
    if not json and not outcome.ran:
        console.print(f"{store.root}: everything is up to date ({len(outcome.manifests)} steps).", highlight=False)
        _stopped(console, outcome)
        return
    rows = tables.stage_rows(outcome.manifests, store.root)
    if json:
        _print_json(
            {
                "run": store.run,
                "folder": str(store.root),
                "ran": outcome.ran,
                "stopped": outcome.stopped,
                "steps": {
                    s: {"folder": next(iter(m.outputs.values())).producer, "fingerprint": m.fingerprint,
                        "outputs": {n: a.digest for n, a in m.outputs.items()}}
                    for s, m in outcome.manifests.items()
                },
                "stages": rows,
                "timing": tables.timing_rows(outcome.manifests),
                "seconds": round(outcome.seconds, 2),
                "machinery_seconds": round(outcome.machinery, 2),
            }
        )  # fmt: skip
        return
    tables.show(console, rows, outcome.manifests, ran=outcome.ran)
    console.print(
        f"{len(outcome.ran)} steps in {terminal.duration(outcome.seconds)}, of which the machinery "
        f"{terminal.duration(outcome.machinery)} ({100 * outcome.machinery / max(outcome.seconds, 1e-9):.0f} %) "
        f"→ {store.root}",
        highlight=False,
    )
    _stopped(console, outcome)


def _stopped(console: Console, outcome: Outcome) -> None:
    from r1pipe.cli.terminal import safe

    if outcome.stopped:
        console.print(f"[yellow]stopped[/] {safe(outcome.stopped)}", highlight=False, soft_wrap=True)


def _dry_run(
    profile: Profile, store: Store, steps: list[str], pipeline: str, force: bool, strict: bool, json: bool
) -> int:
    from r1pipe.cli import live
    from r1pipe.cli.terminal import console, safe
    from r1pipe.errors import UserError
    from r1pipe.plan import Options, Planner
    from r1pipe.runner import Runner

    options = Options(frozenset(steps if force else ()), strict)
    decisions = Planner(profile, store, options).decide_all(steps)
    runner = Runner(profile, store, options, live.Quiet(), pipeline)
    results: dict[str, Any] = {}
    out = console()
    if not json:
        out.print(f"[bold]{profile.name}[/]: dry run of {', '.join(steps)}; nothing is trained", highlight=False)
    with tempfile.TemporaryDirectory(prefix="r1pipe-dry-") as folder:
        for step, result in runner.dry_run(steps, Path(folder)):
            results[step] = result
            if json:
                continue
            decision = next(d for d in decisions if d.step == step)
            if "error" in result:
                out.print(f"[red]✗ {step}[/]  {safe(str(result['error']))}", highlight=False)
            else:
                out.print(f"[green]✓ {step}[/]  {decision.action}: {safe(decision.text)}", highlight=False)
                for key, value in result.get("facts", {}).items():
                    out.print(f"    {key}: {safe(str(value))}", highlight=False)
    bad = [s for s, r in results.items() if "error" in r]
    if json:
        _print_json({"plan": [d.as_json() for d in decisions], "steps": results, "ok": not bad})
    if bad and json:
        return 2
    if bad:
        raise UserError(f"the dry run found a fault in {', '.join(bad)}: {results[bad[0]]['error']}",
                        hint=results[bad[0]].get("hint"))  # fmt: skip
    return 0


def _print_json(value: Any) -> None:
    import json

    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, default=str) + "\n")
