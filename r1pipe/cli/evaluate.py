"""`r1pipe evaluate RUN|MODEL --suite SUITE`: the numbers of a suite for steps of a run, or for any model.

What was measured before is not measured again: results lie in the run folder by the model's digest and the set
(`r1pipe/evaluate/results.py`), and a command whose results are all there answers at once and loads no torch.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from r1pipe.cli import options as o
from r1pipe.cli import runs, terminal
from r1pipe.errors import UserError, nearest

if TYPE_CHECKING:
    from r1pipe.evaluate.job import Watcher
    from r1pipe.evaluate.models import Subject
    from r1pipe.evaluate.results import Cache, Result


def evaluate(
    target: Annotated[str, typer.Argument(metavar="RUN|MODEL", help="A run, a model folder, or a hub id[@commit].")],
    suite: Annotated[
        str | None, typer.Option("--suite", help="A suite (paper, tiny), a YAML, a data file, or a source.")
    ] = None,
    steps: Annotated[
        str | None, typer.Option("--steps", help="Steps of the run: all, or a,b (without it the last model).")
    ] = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="Only this set; may be repeated.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="At most so many problems a set.")] = None,
    n: Annotated[int | None, typer.Option("--n", min=1, help="Samples a problem, instead of the suite's.")] = None,
    engine: Annotated[
        str | None, typer.Option("--engine", help="auto, transformers, vllm or server, instead of the run's.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", "-s", metavar="KEY=VALUE", help="temperature=1, aime-2024.n=8, chat.KEY, engine.KEY."),
    ] = None,
    runs_dir: o.RunsDir = Path("runs"),
    json: o.Json = False,
    debug: o.Debug = False,
) -> int:
    """Measure steps of a run, or any model, on a suite; results are kept and found again."""
    from r1pipe.evaluate import job, suites

    if suite is None:
        known = ", ".join(p.stem for p in suites.shipped())
        raise UserError(
            "which suite?", hint=f"--suite {known}; or a YAML, a data file, a source such as generated:arithmetic"
        )
    ours = [s for s in set_ or () if s.partition("=")[0].partition(".")[0] not in ("chat", "engine")]
    loaded = suites.load(suite, ours, only=only or (), limit=limit, n=n)
    with _view(json) as watch:
        subjects, cache = _subjects(target, steps, runs_dir, watch)
        settings = [s for s in set_ or () if s not in ours] + ([f"engine.kind={engine}"] if engine else [])
        subjects = [_changed(subject, settings) for subject in subjects]
        done = job.run(subjects, loaded, cache, watch)
    from r1pipe.cli import evaluationtable as table

    if json:
        import json as js

        report = table.report(target, loaded.name, done, cache)
        sys.stdout.write(js.dumps(report, ensure_ascii=False, indent=2) + "\n")
    else:
        table.show(terminal.console(), done, cache)
    return 0


def _subjects(target: str, steps: str | None, runs_dir: Path, watch: Watcher) -> tuple[list[Subject], Cache]:
    from r1pipe.evaluate import models
    from r1pipe.evaluate.results import Cache
    from r1pipe.stage import StageContext

    try:
        store = runs.open_run(target, runs_dir)
    except UserError as no_run:
        if not models.is_model(target):
            raise UserError(
                f'"{target}" is neither a run in {runs_dir.absolute()} nor a model',
                hint="a run's name, a folder with config.json, builtin:tiny-base, or a hub id (Qwen/Qwen2.5-0.5B)",
            ) from no_run
        if steps is not None:
            raise UserError(f"--steps is for runs; {target} is a model") from None
        ctx = StageContext(step=target, seed=0, inputs={}, outputs={}, work=Path(),
                           emit=lambda e: watch.warn(e["text"]) if e.get("event") == "warning" else None)  # fmt: skip
        return [models.of_model(target, ctx)], Cache(runs_dir)
    return models.of_run(runs.sealed_steps(store), steps), Cache(store.root)


def _changed(subject: Subject, overrides: list[str]) -> Subject:
    """`chat.key=value` and `engine.key=value` for this call."""
    import dataclasses

    from pydantic import ValidationError

    from r1pipe import yamlio
    from r1pipe.chat import ChatConfig
    from r1pipe.config import merge
    from r1pipe.settings import EngineConfig

    at = "chat"
    raw: dict[str, Any] = {"chat": subject.chat.model_dump(), "engine": subject.engine.model_dump()}
    for text in overrides:
        key, equals, given = text.partition("=")
        path = key.split(".")
        if not equals or len(path) < 2 or not all(path):
            raise UserError(f"--set {text!r} is not of the form chat.key=value or engine.key=value")
        value: Any = yamlio.parse(given, f"--set {key}")
        for part in reversed(path):
            value = {part: value}
        raw = merge(raw, value)
    try:
        chat, at = ChatConfig.model_validate(raw["chat"]), "engine"
        engine = EngineConfig.model_validate(raw["engine"])
    except ValidationError as error:
        first = error.errors()[0]
        known = [*ChatConfig.model_fields, *EngineConfig.model_fields]
        said = (
            f"unknown key{nearest(str(first['loc'][-1]), known)}"
            if first["type"] == "extra_forbidden"
            else first["msg"]
        )
        raise UserError(f"--set {'.'.join([at, *map(str, first['loc'])])}: {said}") from None
    if chat.template != subject.chat.template:
        raise UserError(
            "chat.template belongs to the model: its own template is used",
            hint="the step that prepares the base model writes it (base.chat.template in a profile)",
        )
    return dataclasses.replace(subject, chat=chat, engine=engine)


@contextlib.contextmanager
def _view(json: bool) -> Iterator[Watcher]:
    """What stderr shows while it works: a bar on a terminal, a line a set elsewhere, with --json warnings alone."""
    from r1pipe.evaluate.job import Watcher

    err = terminal.err_console()

    def warn(text: str) -> None:
        err.print(f"[yellow]![/] {terminal.safe(text)}", soft_wrap=True)

    if json:
        yield Watcher(warn=warn, loading=_hush)
        return

    def end(model: str, part: str, result: Result, cached: bool) -> None:
        how = f"cached, {result.finished[:16].replace('T', ' ')}" if cached else terminal.duration(result.seconds)
        err.print(f"[dim]{terminal.safe(model)}: {terminal.safe(part)} {how}[/]", soft_wrap=True)

    if not err.is_terminal:
        yield Watcher(warn=warn, end=end, loading=_hush)
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total} samples"),
        TextColumn("{task.fields[rate]}", style="dim"), TimeRemainingColumn(compact=True),
    )  # fmt: skip
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task("", total=None, rate="")

        def begin(model: str, part: str, samples: int) -> None:
            bar.reset(task, total=samples, description=terminal.safe(f"{model}: {part}"), rate="")

        def loading(model: str, engine: str) -> None:
            bar.reset(task, total=None, description=terminal.safe(f"{model}: loading"), rate="")
            _hush(model, engine)

        def progress(done: int, rate: float) -> None:
            bar.update(task, completed=done, rate=f"{rate:,.0f} tokens/s")

        yield Watcher(begin=begin, progress=progress, end=end, loading=loading, warn=warn)


def _hush(model: str, engine: str) -> None:
    """The libraries' chatter and bars are not for here."""
    if engine in ("server", "scripted"):
        return
    import warnings

    import transformers

    warnings.simplefilter("ignore")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
