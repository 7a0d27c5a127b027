"""The stage protocol, and how stages are found (entry-point group `r1pipe.stages`).

A stage is a module with

    NAME     str                      its name on the command line and in profiles
    VERSION  str                      bumped when its results change meaning; part of the fingerprint
    Config   class(StepConfig)        its settings; light, imports no torch
    INPUTS   dict[str, Port]          what it reads
    OUTPUTS  dict[str, str]           what it writes: name -> kind
    check(ctx, config) -> dict        builds every real config object, loads no weights; facts to show
    run(ctx, config) -> dict          does the work; returns metrics (numbers, strings)

and, where it helps, `preload()` (its slow imports, called ahead of its turn) and `PREPARES = True` (a cheap step
without choices, which `run-stage` runs where it is missing).

It gets everything from `ctx`: it joins no run-folder paths, reads no environment, knows no other stage.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import os
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from r1pipe.errors import UserError, nearest

GROUP = "r1pipe.stages"

POLICY = "policy"  # a causal language model: safetensors, config, tokenizer, template, generation config
REWARD_MODEL = "reward-model"  # a sequence classifier with one logit
DATASET = "dataset"  # rows in data.jsonl


@dataclass(frozen=True)
class Port:
    """An input of a stage: the kind of artifact that it takes."""

    kind: str
    optional: bool = False


@dataclass(frozen=True)
class Input:
    """A resolved input: its folder, and what the manifest that made it says."""

    kind: str
    path: Path
    digest: str
    producer: str  # step that made it
    meta: dict[str, Any] = field(default_factory=dict)  # chat_template_digest, tokenizer_digest, rows, ...


@dataclass
class StageContext:
    """All that a stage may touch.

    `outputs[name]` and `work` exist when `run` is called. What lies in `outputs` is sealed after `run` returns;
    what lies in `work` (trainer checkpoints, shards) survives a kill and is there again on resume. Only the
    process with `is_main` writes.
    """

    step: str
    seed: int
    inputs: dict[str, Input]
    outputs: dict[str, Path]
    work: Path
    is_main: bool = True
    world_size: int = 1
    resume: bool = False
    emit: Callable[[dict[str, Any]], None] = lambda event: None
    counts: dict[str, int | float] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    meta: dict[str, dict[str, Any]] = field(default_factory=dict)

    def progress(self, step: int, total: int, **metrics: Any) -> None:
        """One line of progress for the live view: `metrics` are floats a person wants to see (reward, accuracy,
        length in tokens, tokens/s)."""
        self.emit({"event": "progress", "step": step, "total": total, "metrics": metrics})

    def phase(self, name: str) -> None:
        """What the step is doing now (loading, training, evaluating, saving)."""
        self.emit({"event": "phase", "name": name})

    def count(self, name: str, n: float = 1) -> None:
        """Adds to a counter of the manifest: whatever is dropped, cut, skipped, timed out."""
        self.counts[name] = self.counts.get(name, 0) + n

    def fact(self, name: str, value: Any) -> None:
        """A JSON-able fact for the manifest (trainable parameters, prefilled think tag, engine, reward table)."""
        self.facts[name] = value

    def describe(self, output: str, **meta: Any) -> None:
        """JSON-able facts about one output (`heldout_accuracy`, `rows`); the reader finds them in `Input.meta`."""
        self.meta.setdefault(output, {}).update(meta)

    def warn(self, text: str) -> None:
        """A sentence that the user must see: shown at once and written to the manifest."""
        if text not in self.warnings:
            self.warnings.append(text)
            self.emit({"event": "warning", "text": text})


@functools.cache
def entry_points() -> dict[str, importlib.metadata.EntryPoint]:
    """Every installed stage by name."""
    return {e.name: e for e in importlib.metadata.entry_points(group=GROUP)}


@functools.cache
def load(name: str) -> types.ModuleType:
    """The module of a stage. Raises UserError where it is unknown, or shadowed by a foreign package."""
    points = entry_points()
    if name.startswith("module:"):
        return _by_name(name.removeprefix("module:"))
    if name not in points:
        raise UserError(
            f'unknown stage "{name}"{nearest(name, points)}',
            hint=f"a stage is installed through the entry-point group {GROUP}",
        )
    try:
        module = points[name].load()
    except ImportError as error:
        raise UserError(
            f'stage "{name}" ({points[name].value}) cannot be imported: {error}',
            hint="install what it needs, or the package that declares it again",
        ) from error
    _check_origin(name, points[name], module)
    return _complete(name, module)


def allow_code(folder: Path) -> None:
    """The user said --allow-code: profiles may name code, and `folder` (where the command was given) is searched for
    it, after what is installed. Children are told through the environment."""
    os.environ["R1PIPE_ALLOW_CODE"] = "1"
    os.environ["R1PIPE_CODE_PATH"] = str(folder)
    search_code()


def search_code() -> None:
    """Lets the code that a profile names be found, where the user allowed it."""
    folder = os.environ.get("R1PIPE_CODE_PATH")
    if code_allowed() and folder and folder not in sys.path:
        sys.path.append(folder)


def code_allowed() -> bool:
    """Did the user say --allow-code? (Children are told through the environment.)"""
    return os.environ.get("R1PIPE_ALLOW_CODE") == "1"


def _by_name(path: str) -> types.ModuleType:
    """A stage that a profile names as code. A profile that somebody sent must not be able to do that by itself."""
    if not code_allowed():
        raise UserError(
            f'the profile asks to import "{path}" as a stage',
            hint="--allow-code lets it, if you trust the profile; installed stages need no flag",
        )
    try:
        module = importlib.import_module(path)
    except ImportError as error:
        raise UserError(f'stage module "{path}" cannot be imported: {error}', hint="is it on PYTHONPATH?") from error
    return _complete(path, module)


def _complete(name: str, module: types.ModuleType) -> types.ModuleType:
    for attribute in ("NAME", "VERSION", "Config", "INPUTS", "OUTPUTS", "check", "run"):
        if not hasattr(module, attribute):
            raise UserError(f'stage "{name}" ({module.__file__}) has no {attribute}')
    return module


def _check_origin(name: str, point: importlib.metadata.EntryPoint, module: types.ModuleType) -> None:
    """A `stages/` folder in the working directory must not stand in for the installed one."""
    dist = point.dist
    if dist is None or not module.__file__:
        return
    found = Path(module.__file__).resolve()
    files = [f for f in dist.files or [] if str(f).endswith((".py", ".pth"))]
    expected = {Path(str(dist.locate_file(f))).resolve() for f in files if str(f).endswith(".py")}
    if found in expected:
        return
    for pth in (f for f in files if str(f).endswith(".pth")):  # an editable install: a .pth names the checkout
        text = Path(str(dist.locate_file(pth))).read_text()
        if any(found.is_relative_to(Path(line).resolve()) for line in text.splitlines() if line.startswith("/")):
            return
    if not expected and not files:
        return
    raise UserError(
        f'stage "{name}" was loaded from {found}, which does not belong to the installed {dist.name} '
        f"({dist.locate_file('')})",
        hint="run from another directory, or rename the folder that shadows it",
    )
