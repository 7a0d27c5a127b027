"""Runs a suite on models, set by set: what has a sealed result is not run again, what has not is, and is sealed before
the next set begins. A run that is killed goes on at the set that it was in.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r1pipe import environment, process
from r1pipe import manifest as mf
from r1pipe.errors import UserError
from r1pipe.evaluate import results, suites
from r1pipe.evaluate.models import Subject
from r1pipe.evaluate.results import Cache, Result
from r1pipe.settings import EvalSet
from r1pipe.stage import StageContext

if TYPE_CHECKING:
    from r1pipe.generate import Sampler


@dataclass
class Evaluated:
    """A model with its results: set -> (folder, result), and which of them were there already."""

    subject: Subject
    results: dict[str, tuple[Path, Result]] = field(default_factory=dict)
    cached: set[str] = field(default_factory=set)


@dataclass
class Watcher:
    """What a view is told."""

    begin: Callable[[str, str, int], None] = lambda model, part, samples: None
    progress: Callable[[int, float], None] = lambda done, tokens_per_s: None
    end: Callable[[str, str, Result, bool], None] = lambda model, part, result, cached: None
    loading: Callable[[str, str], None] = lambda model, engine: None
    warn: Callable[[str], None] = lambda text: None


def run(subjects: list[Subject], suite: suites.Suite, cache: Cache, watch: Watcher) -> list[Evaluated]:
    """Every set of the suite on every model, in order. Raises UserError; what was finished before stays."""
    pins = StageContext(step=suite.name, seed=suite.seed, inputs={}, outputs={}, work=Path(), emit=_warner(watch))
    sets = [suites.pinned(part, pins) for part in suite.sets]
    sources = {part.name: _source(part) for part in sets}
    done = []
    try:
        cache.root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write in {cache.root}: {error.strerror}", hint="another --runs-dir") from error
    with process.run_lock(cache.root / "lock", f"the folder {cache.root}"):
        for subject in subjects:
            found = Evaluated(subject)
            done.append(found)
            todo = []
            for part in sets:
                parts = results.key_of(
                    subject.digest, suite.of(part), subject.chat.model_dump(mode="json"),
                    subject.engine.model_dump(mode="json"), sources[part.name],
                )  # fmt: skip
                folder, result = cache.find(subject.digest, part.name, results.key(parts))
                if result is None:
                    todo.append((part, folder, parts))
                else:
                    found.results[part.name] = (folder, result)
                    found.cached.add(part.name)
                    watch.end(subject.name, part.name, result, True)
            if todo:
                _model(found, todo, suite, cache, watch, pins.facts)
            _note(cache, suite, sets, found)
    return done


def _source(part: EvalSet) -> str:
    from r1pipe.data.load import source_digest

    return source_digest(part.data)


def _warner(watch: Watcher) -> Callable[[dict[str, Any]], None]:
    def emit(event: dict[str, Any]) -> None:
        if event.get("event") == "warning":
            watch.warn(str(event["text"]))
        elif event.get("event") == "progress":
            watch.progress(int(event["step"]), float(event["metrics"].get("tokens_per_s", 0.0)))

    return emit


def _model(
    found: Evaluated,
    todo: list[tuple[EvalSet, Path, dict[str, Any]]],
    suite: suites.Suite,
    cache: Cache,
    watch: Watcher,
    pins: dict[str, Any],
) -> None:
    """The missing sets of one model. Problems are read before the model loads: a bad source costs no minutes."""
    from r1pipe.evaluate import sets as rows
    from r1pipe.generate import make

    subject = found.subject
    contexts = {
        part.name: StageContext(
            step=subject.name, seed=suite.seed, inputs={}, outputs={}, work=Path(), emit=_warner(watch)
        )
        for part, _, _ in todo
    }
    problems = {part.name: rows.rows_of(part, contexts[part.name]) for part, _, _ in todo}
    watch.loading(subject.name, subject.engine.kind)
    if subject.threads:
        import torch

        torch.set_num_threads(subject.threads)
    sampler = make(subject.engine, subject.folder, subject.chat)
    try:
        for part, folder, parts in todo:
            ctx = contexts[part.name]
            ctx.facts |= {k: v for k, v in pins.items() if k.startswith(f"{part.name}/")}
            result = _set(subject, part, problems[part.name], sampler, folder, parts, suite, cache, watch, ctx)
            found.results[part.name] = (folder, result)
            watch.end(subject.name, part.name, result, False)
    finally:
        sampler.close()


def _set(
    subject: Subject, part: EvalSet, problems: list[dict[str, Any]], sampler: Sampler, folder: Path,
    parts: dict[str, Any], suite: suites.Suite, cache: Cache, watch: Watcher, ctx: StageContext,
) -> Result:  # fmt: skip
    from r1pipe.evaluate.suite import evaluate, sampling_of

    began, started = time.monotonic(), mf.now()
    watch.begin(subject.name, part.name, sum(len(problems) * sampling_of(suite, part, mode).n for mode in part.modes))
    metrics: dict[str, Any] = {}
    records: list[dict[str, Any]] = []
    texts: list[dict[str, Any]] = []
    before = tokens = 0

    def progress(done: int, _: int, made: int) -> None:
        watch.progress(before + done, (tokens + made) / max(time.monotonic() - began, 1e-6))

    for mode in part.modes:
        outcome = evaluate(
            part, mode, problems, sampler, suite, tags=subject.chat.tags, seed=suite.seed, ctx=ctx,
            on_progress=progress,
        )  # fmt: skip
        metrics[mode] = outcome.metrics
        records += outcome.records
        texts += outcome.texts
        before += outcome.samples
        tokens += outcome.tokens
    ctx.fact("engine", sampler.facts)
    return cache.write(
        folder, texts, records,
        key=results.key(parts), key_of=parts, suite=suite.name, set=part.name,
        model={"name": subject.name, "digest": subject.digest, "source": subject.source},
        metrics=metrics, counts=ctx.counts, facts=ctx.facts, warnings=ctx.warnings,
        environment=environment.describe(), tokens=tokens, seconds=round(time.monotonic() - began, 3),
        started=started, finished=mf.now(),
    )  # fmt: skip


def _note(cache: Cache, suite: suites.Suite, sets: list[EvalSet], found: Evaluated) -> None:
    from r1pipe.digest import value_digest

    about = {
        "digest": found.subject.digest,
        "source": found.subject.source,
        "parent": found.subject.parent,
        "sets": {
            part.name: {
                "folder": found.results[part.name][0].relative_to(cache.root).as_posix(),
                "settings": value_digest(suite.of(part))[:16],
            }
            for part in sets
        },
    }
    cache.note(suite.name, {found.subject.entry: about})
