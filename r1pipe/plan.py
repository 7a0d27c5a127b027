"""What to do, and why: profile + manifests → a decision for each step. Pure, and without torch.

A step is up to date when a sealed manifest has its fingerprint. What a step reads is known only once everything
above it is sealed, so a step below one that runs is decided when its turn comes; where the rebuilt input has the
digest it had, the step is skipped after all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from r1pipe import environment, fingerprint
from r1pipe import manifest as mf
from r1pipe import stage as stages
from r1pipe.config import Profile
from r1pipe.errors import UserError
from r1pipe.settings import EvalConfig
from r1pipe.store import Attempt, Store, read_lines


class Action(StrEnum):
    RUN = "run"
    RESUME = "resume"
    SKIP = "skip"
    LATER = "later"  # decided when the steps above it are done


class Why(StrEnum):
    """The typed reason of a decision."""

    UP_TO_DATE = "up-to-date"
    NEVER_RUN = "never-run"
    SETTINGS = "settings-changed"
    INPUT = "input-changed"
    SOURCE = "source-changed"
    STAGE_VERSION = "stage-version"
    VERIFIER = "verifier-version"
    INTERRUPTED = "interrupted"
    FAILED = "failed-before"
    DAMAGED = "damaged"
    FORCED = "forced"
    STRICT = "environment"
    UPSTREAM = "upstream"


@dataclass(frozen=True)
class Decision:
    """What happens to a step. `attempt` is the sealed folder (skip) or the one to work in (run, resume)."""

    step: str
    stage: str
    action: Action
    why: Why
    text: str
    fingerprint: str | None = None
    parts: dict[str, Any] = field(default_factory=dict)
    attempt: Attempt | None = None
    manifest: mf.Manifest | None = None
    notes: tuple[str, ...] = ()
    state: str = ""  # for status: done, stale, failed, interrupted, never run

    def as_json(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "stage": self.stage,
            "action": str(self.action),
            "why": str(self.why),
            "reason": self.text,
            "state": self.state,
            "fingerprint": self.fingerprint,
            "folder": str(self.attempt.path) if self.attempt else None,
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Options:
    """How the user bends a plan. `force` names the steps that run again in a new folder."""

    force: frozenset[str] = frozenset()
    strict: bool = False


class Planner:
    """Decides steps of a profile against the manifests of one run. Reads, never writes."""

    def __init__(self, profile: Profile, store: Store, options: Options | None = None) -> None:
        self.profile = profile
        self.store = store
        self.options = options or Options()
        self._decided: dict[str, Decision] = {}

    def decide_all(self, steps: list[str]) -> list[Decision]:
        return [self.decide(step) for step in steps]

    def forget(self, step: str) -> None:
        """A step has run: it, and what is below it, are decided anew."""
        self._decided.pop(step, None)
        for other in list(self._decided):
            if step in self.profile.upstream(other):
                self.forget(other)

    def decide(self, step: str) -> Decision:
        if step not in self._decided:
            self._decided[step] = self._decide(step)
        return self._decided[step]

    def check_reach(self, steps: list[str]) -> None:
        """Raises UserError where a step reads from one that is neither sealed nor among `steps`."""
        for step in steps:
            for source, output in self.profile.sources(step).values():
                decision = self.decide(source)
                if source not in steps and decision.action is not Action.SKIP:
                    raise self._not_sealed(step, decision, output)

    def _not_sealed(self, step: str, source: Decision, output: str) -> UserError:
        return UserError(
            f"{step} reads {source.step}.{output}, but {source.step} is not up to date: {source.text}",
            hint=f"r1pipe run-stage {source.step}, or run the whole pipeline",
        )

    def inputs(self, step: str) -> dict[str, tuple[Decision, mf.Artifact]]:
        """The sealed inputs of a step. Raises UserError naming the step to run where one is not sealed."""
        found = {}
        for port, (source, output) in self.profile.sources(step).items():
            decision = self.decide(source)
            if decision.action is not Action.SKIP or decision.manifest is None:
                raise self._not_sealed(step, decision, output)
            found[port] = (decision, decision.manifest.outputs[output])
        return found

    def _decide(self, step: str) -> Decision:
        config = self.profile.steps[step]
        waiting = [up for up in self.profile.upstream(step) if self.decide(up).action is not Action.SKIP]
        if waiting:
            state, text = self._below(step, waiting)
            return Decision(step, config.stage, Action.LATER, Why.UPSTREAM, text, state=state)
        digests = {port: artifact.digest for port, (_, artifact) in self.inputs(step).items()}
        print_, parts = fingerprint.of(config, digests)
        attempts = self.store.attempts(step, print_)
        sealed = [a for a in attempts if a.sealed]
        if sealed:
            return self._sealed(step, print_, parts, attempts, sealed[-1])
        if step in self.options.force and attempts:
            return self._new(step, print_, parts, attempts, Why.FORCED, "--force", "never run")
        if attempts:
            return self._unsealed(step, print_, parts, attempts[-1])
        why, text = self._explain(step, parts)
        attempt = self.store.attempt(step, print_)
        state = "never run" if why is Why.NEVER_RUN else "stale"
        return Decision(step, config.stage, Action.RUN, why, text, print_, parts, attempt, state=state)

    def _below(self, step: str, waiting: list[str]) -> tuple[str, str]:
        text = f"after {', '.join(waiting)}"
        return ("stale" if any(a.sealed for a in self.store.all_attempts(step)) else "never run"), text

    def _sealed(
        self, step: str, print_: str, parts: dict[str, Any], attempts: list[Attempt], attempt: Attempt
    ) -> Decision:
        stage = self.profile.steps[step].stage
        manifest = mf.load(attempt)
        broken = [
            fault for name, artifact in manifest.outputs.items()
            for fault in mf.faults(artifact, attempt.output(name), deep=False)
        ]  # fmt: skip
        if broken:
            return self._new(step, print_, parts, attempts, Why.DAMAGED, broken[0], "stale")
        if step in self.options.force:
            return self._new(step, print_, parts, attempts, Why.FORCED, "--force", "done")
        config = self.profile.steps[step]
        differs = environment.differences(manifest.environment, threads_set=config.threads is not None)
        notes = [f"environment differs: {', '.join(differs)} (--strict runs it again)"] if differs else []
        if differs and self.options.strict:
            text = f"--strict, environment differs: {', '.join(differs)}"
            return self._new(step, print_, parts, attempts, Why.STRICT, text, "stale")
        if config.evaluate and manifest.evaluation and (
            EvalConfig.model_validate(manifest.config.get("evaluation") or {}) != config.evaluation
        ):  # fmt: skip
            notes.append("evaluation settings differ from the sealed ones; its numbers are kept")
        text = f"sealed {manifest.finished[:16].replace('T', ' ')}"
        return Decision(
            step, stage, Action.SKIP, Why.UP_TO_DATE, text, print_, parts, attempt, manifest, tuple(notes), "done"
        )

    def _new(
        self, step: str, print_: str, parts: dict[str, Any], attempts: list[Attempt], why: Why, text: str, state: str
    ) -> Decision:
        """Runs again, in a folder of its own: nothing overwrites what is there."""
        attempt = self.store.attempt(step, print_, attempts[-1].number + 1)
        stage = self.profile.steps[step].stage
        return Decision(step, stage, Action.RUN, why, text, print_, parts, attempt, state=state)

    def _unsealed(self, step: str, print_: str, parts: dict[str, Any], attempt: Attempt) -> Decision:
        stage = self.profile.steps[step].stage
        last: dict[str, Any] = {}
        for entry in read_lines(attempt.attempts_log):
            last = entry
        checkpoints = sorted(
            (p.parent for p in attempt.work.glob("checkpoints/checkpoint-*/complete.json")),
            key=lambda p: int(p.name.rpartition("-")[2]),
        )
        at = f", goes on from {checkpoints[-1].name}" if checkpoints else ""
        if last.get("event") == "failed":
            why, text, state = Why.FAILED, f"failed before: {str(last.get('error', ''))[:120]}", "failed"
        else:
            why, text, state = Why.INTERRUPTED, "was interrupted", "interrupted"
        return Decision(step, stage, Action.RESUME, why, text + at, print_, parts, attempt, state=state)

    def _explain(self, step: str, parts: dict[str, Any]) -> tuple[Why, str]:
        """Why there is no manifest with this fingerprint: what changed since the last sealed one."""
        sealed = [mf.load(a) for a in self.store.all_attempts(step) if a.sealed]
        if not sealed:
            return Why.NEVER_RUN, "never run"
        old = max(sealed, key=lambda m: m.finished).fingerprint_of
        if old.get("stage_version") != parts["stage_version"] or old.get("stage") != parts["stage"]:
            return Why.STAGE_VERSION, (
                f"stage {old.get('stage')} {old.get('stage_version')} → {parts['stage']} {parts['stage_version']}"
            )
        for key, why, name in (
            ("settings", Why.SETTINGS, "settings changed"),
            ("inputs", Why.INPUT, "input changed"),
            ("sources", Why.SOURCE, "data or base model changed"),
            ("verifiers", Why.VERIFIER, "verifier changed"),
        ):
            changed = list(_changes(old.get(key, {}), parts[key]))
            if changed:
                more = f" (+{len(changed) - 3} more)" if len(changed) > 3 else ""
                return why, f"{name}: {'; '.join(changed[:3])}{more}"
        return Why.SETTINGS, "settings changed"


def _changes(old: Any, new: Any, path: str = "") -> Any:
    """`a.b old → new` for every leaf that differs."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from _changes(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _changes(before, after, f"{path}[{i}]")
    elif old != new:
        yield f"{path} {_short(old)} → {_short(new)}"


def _short(value: Any) -> str:
    if value is None:
        return "default"
    text = str(value)
    if len(text) == 64 and all(c in "0123456789abcdef" for c in text):
        return text[:8]
    return text if len(text) <= 40 else text[:37] + "…"


def selection(
    profile: Profile, pipeline: list[str], only: list[str] | None = None, start: str | None = None
) -> list[str]:
    """The steps of a pipeline that --only and --from leave, in order."""
    chosen = pipeline
    if start is not None:
        first = profile.resolve(start)
        if first not in pipeline:
            raise UserError(f"--from {start}: not a step of this pipeline ({', '.join(pipeline)})")
        below = {first}
        for step in pipeline:
            if any(up in below for up in profile.upstream(step)):
                below.add(step)
        chosen = [s for s in pipeline if s in below]
    if only:
        wanted = {profile.resolve(name) for name in only}
        missing = wanted - set(pipeline)
        if missing:
            raise UserError(f"--only {', '.join(sorted(missing))}: not in this pipeline ({', '.join(pipeline)})")
        chosen = [s for s in chosen if s in wanted]
        if not chosen:
            raise UserError("--only and --from together leave no step")
    return chosen


def prepares(profile: Profile, step: str) -> bool:
    """Is this a step that others simply need, cheap and without choices (the base model)? `run-stage` runs it
    where it is missing."""
    return bool(getattr(stages.load(profile.steps[step].stage), "PREPARES", False))
