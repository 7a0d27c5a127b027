"""What a run folder says, gathered once: steps with their states, links, histories. Reads only; nothing is loaded
that needs torch, and a run that failed, was stopped or is being written is as good as a finished one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from r1pipe import digest as dg
from r1pipe import manifest as mf
from r1pipe.cli import runs, tables
from r1pipe.errors import UserError
from r1pipe.manifest import DATA_FILE, Manifest
from r1pipe.report import history, rollouts
from r1pipe.report.history import History
from r1pipe.report.rollouts import Rollouts
from r1pipe.store import Attempt, Store, read_json, read_lines

Row = dict[str, Any]


@dataclass
class Link:
    """An input of a step: what it read, and whether that is still what its producer sealed."""

    port: str
    kind: str
    producer: str  # step/folder
    digest: str
    fault: str = ""

    @property
    def step(self) -> str:
        return self.producer.partition("/")[0]


@dataclass
class Step:
    """One step as the report shows it. `manifest` is the last sealed one."""

    name: str
    stage: str = ""
    state: str = "never run"  # done, running, failed, interrupted, damaged, never run
    text: str = ""  # why it is not done
    attempt: Attempt | None = None
    manifest: Manifest | None = None
    upstream: list[str] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    others: int = 0  # attempts that are not shown
    warnings: list[str] = field(default_factory=list)
    histories: list[History] = field(default_factory=list)
    rollouts: Rollouts | None = None

    @property
    def gates(self) -> list[Row]:
        """What the step's gates said: {metric, action, verdict, text}."""
        return list(self.manifest.facts.get("gates") or []) if self.manifest else []

    @property
    def sealed(self) -> str:
        """When, for a reader."""
        return self.manifest.finished[:16].replace("T", " ") if self.manifest else ""


@dataclass
class Run:
    """A run, ready to be shown."""

    store: Store
    about: dict[str, Any]
    steps: dict[str, Step]
    notes: list[str]

    @property
    def manifests(self) -> dict[str, Manifest]:
        return {s.name: s.manifest for s in self.steps.values() if s.manifest is not None}

    @cached_property
    def rows(self) -> list[Row]:
        """The stage table."""
        return tables.stage_rows(self.manifests, self.store.root)

    @cached_property
    def records(self) -> dict[str, list[Row]]:
        """Evaluation records of each step that has some."""
        found = {}
        for name, manifest in self.manifests.items():
            artifact = manifest.outputs.get("evaluation")
            if artifact is not None:
                rows = list(read_lines(self.store.root / artifact.uri / DATA_FILE))
                if rows:
                    found[name] = rows
        return found


def load(store: Store) -> Run:
    """Everything about a run. Raises UserError where no step of it has begun."""
    about = runs.about(store)
    graph, notes = _profile(about)
    folders = [step for step in store.steps() if store.all_attempts(step)]
    if not folders:
        raise UserError(f"{store.root}: no step of this run has begun", hint="r1pipe pipeline makes one")
    steps = {step: _step(store, step) for step in folders}
    for step, (stage, upstream) in graph.items():
        known = steps.setdefault(step, Step(step))
        known.stage = known.stage or stage
        known.upstream = known.upstream or upstream
    ordered = _in_order(steps, list(graph))
    return Run(store, about, ordered, notes)


def _profile(about: Mapping[str, Any]) -> tuple[dict[str, tuple[str, list[str]]], list[str]]:
    """Step -> (stage, upstream) of the run's pipeline, in order; empty, with a sentence, where the profile is gone."""
    from r1pipe import config

    try:
        profile = config.load(str(about["path"]), about.get("overrides") or ())
        members = profile.pipeline(str(about["pipeline"]))
    except KeyError:
        return {}, ["run.json does not name its profile: steps that never ran are not shown"]
    except UserError as error:
        return {}, [f"the run's profile cannot be read, so steps that never ran are not shown: {error.message}"]
    return {s: (profile.steps[s].stage, profile.upstream(s)) for s in members}, []


def _step(store: Store, name: str) -> Step:
    """A step from its folders: the last sealed result, else the attempt that was worked on last."""
    step = Step(name)
    sealed: list[tuple[Attempt, Manifest]] = []
    open_: list[Attempt] = []
    for attempt in store.all_attempts(name):
        if not attempt.sealed:
            open_.append(attempt)
            continue
        try:
            sealed.append((attempt, mf.load(attempt)))
        except UserError as error:
            step.state, step.text, step.attempt = "damaged", error.message, attempt
    last = max(open_, key=_last_time, default=None)
    if sealed:
        step.attempt, step.manifest = max(sealed, key=lambda pair: pair[1].finished)
        step.state, step.text = "done", ""
        m = step.manifest
        step.stage, step.settings, step.warnings = m.stage, m.fingerprint_of.get("settings", {}), list(m.warnings)
        step.links = [_link(store, port, record) for port, record in m.inputs.items()]
        if last is not None and _last_time(last) > m.finished:
            state, text = _unsealed(last)
            step.warnings.append(f"a newer attempt ({last.path.name}) is {state}{f': {text}' if text else ''}")
    elif last is not None:
        step.attempt = last
        step.state, step.text = _unsealed(last)
        _from_request(step, last)
    step.others = len(sealed) + len(open_) - 1
    step.upstream = list(dict.fromkeys(link.step for link in step.links))
    if step.attempt is not None:
        step.histories = history.read(step.attempt)
        step.rollouts = rollouts.read(step.attempt)
    return step


def _from_request(step: Step, attempt: Attempt) -> None:
    """What an unsealed step was asked, and what it has warned of so far."""
    step.warnings = list(
        dict.fromkeys(str(e.get("text", "")) for e in read_lines(attempt.events) if e.get("event") == "warning")
    )
    try:
        request = read_json(attempt.request)
    except UserError:
        return  # killed before the worker was asked
    step.stage = str(request.get("stage", ""))
    step.settings = dict(request.get("config") or {})
    for port, given in (request.get("inputs") or {}).items():
        folder = Path(str(given["path"])).parts[-3:-2]
        producer = "/".join([str(given["producer"]), *folder])
        step.links.append(Link(port, str(given["kind"]), producer, str(given["digest"])))


def _last_time(attempt: Attempt) -> str:
    return max((str(e.get("time", "")) for e in read_lines(attempt.attempts_log)), default="")


def _unsealed(attempt: Attempt) -> tuple[str, str]:
    if runs.writer(attempt.lock) is not None:
        phase = [e for e in read_lines(attempt.events) if e.get("event") in ("phase", "progress")]
        return "running", _doing(phase)
    last: Row = {}
    for entry in read_lines(attempt.attempts_log):
        last = entry
    if last.get("event") == "failed":
        return "failed", str(last.get("error", ""))
    return "interrupted", "stopped before it was sealed; the same command goes on from its last checkpoint"


def _doing(events: list[Row]) -> str:
    phase = next((str(e.get("name", "")) for e in reversed(events) if e["event"] == "phase"), "starting")
    if events and events[-1]["event"] == "progress":
        return f"{phase}, {events[-1].get('step')} of {events[-1].get('total')}"
    return phase


def _link(store: Store, port: str, record: mf.InputRecord) -> Link:
    """Is the producer's manifest the one that vouched for this input, and is it still the producer's last word?"""
    link = Link(port, record.kind, record.producer, record.digest)
    producer = Attempt(store.root / record.producer)
    if not producer.sealed:
        link.fault = f"made from {record.producer}, which has no manifest any more"
    elif dg.file_digest(producer.manifest) != record.manifest_digest:
        link.fault = f"the manifest of {record.producer} is not the one it was made from"
    return link


def _in_order(steps: dict[str, Step], preferred: list[str]) -> dict[str, Step]:
    """Producers before their readers; within that, the order of the pipeline, then that of the work."""

    def rank(name: str) -> tuple[int, str, str]:
        place = preferred.index(name) if name in preferred else len(preferred)
        manifest = steps[name].manifest
        return place, manifest.started if manifest else "~", name

    ordered: dict[str, Step] = {}
    waiting = sorted(steps, key=rank)
    while waiting:
        ready = (s for s in waiting if not set(steps[s].upstream) & (set(waiting) - {s}))
        step = next(ready, waiting[0])  # a hand-made circle must not hang us
        ordered[step] = steps[step]
        waiting.remove(step)
    return ordered
