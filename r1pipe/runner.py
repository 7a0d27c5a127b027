"""Runs a plan: a fresh child for each step, watched, its outputs sealed by the one process that seals.

While a step works, the next one's worker already imports torch and trl and waits on a pipe: imports cost 7-12 s a
step and nothing needs to wait for them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from r1pipe import environment, fingerprint, process
from r1pipe import manifest as mf
from r1pipe import stage as stages
from r1pipe.config import Profile
from r1pipe.errors import StepFailed, UserError
from r1pipe.evaluate import gates
from r1pipe.launch import Child, Tail, dead_rank, last_line
from r1pipe.plan import Action, Decision, Options, Planner
from r1pipe.resources import configs_dir
from r1pipe.settings import StepConfig, walk
from r1pipe.stage import DATASET, POLICY
from r1pipe.store import Attempt, Store, append_json, read_json, read_lines, write_json, writing


class Observer(Protocol):
    """Who watches a run; the terminal views implement it. The runner itself prints nothing."""

    def planned(self, decisions: list[Decision]) -> None: ...
    def begin(self, decision: Decision) -> None: ...
    def event(self, step: str, event: dict[str, Any]) -> None: ...
    def end(self, decision: Decision, manifest: mf.Manifest) -> None: ...
    def skipped(self, decision: Decision) -> None: ...
    def failed(self, decision: Decision, error: UserError) -> None: ...


@dataclass
class Outcome:
    """What a run came to: the sealed manifest of each step, and the seconds of machinery."""

    manifests: dict[str, mf.Manifest] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    stopped: str | None = None  # what a gate with `action: stop` said
    seconds: float = 0.0
    work_seconds: float = 0.0  # inside stages and evaluations

    @property
    def machinery(self) -> float:
        """Seconds of imports, start-up, digests, manifests that nothing overlapped."""
        return max(0.0, self.seconds - self.work_seconds)


class Runner:
    """Executes steps of a profile in a run folder, in order."""

    def __init__(self, profile: Profile, store: Store, options: Options, observer: Observer, pipeline: str) -> None:
        self.profile = profile
        self.store = store
        self.options = options
        self.observer = observer
        self.pipeline = pipeline
        self._spare: Child | None = None

    def run(self, steps: list[str]) -> Outcome:
        """Raises UserError before anything starts, StepFailed where a step fails, KeyboardInterrupt."""
        began = time.monotonic()
        outcome = Outcome()
        self._prepare_folder()
        with process.run_lock(self.store.lock, f"run {self.store.root}"):
            planner = Planner(self.profile, self.store, self.options)
            planner.check_reach(steps)
            gates.check(self.profile, steps)
            self._check_sources(steps)
            self._describe_run()
            decisions = planner.decide_all(steps)
            self.observer.planned(decisions)
            self._check_trackers(decisions)
            self._check_space(decisions)
            try:
                for i, step in enumerate(steps):
                    decision = planner.decide(step)
                    if decision.action is Action.SKIP:
                        assert decision.manifest is not None
                        outcome.manifests[step] = decision.manifest
                        self.observer.skipped(decision)
                        verdicts = self._judge(planner, step, _evidence(decision))
                    else:
                        manifest, verdicts = self._step(planner, decision, steps[i + 1 :])
                        outcome.manifests[step] = manifest
                        outcome.ran.append(step)
                        outcome.work_seconds += sum(manifest.timing.get(k, 0.0) for k in ("run", "evaluate"))
                        planner.options = Options(planner.options.force - {step}, planner.options.strict)
                        planner.forget(step)
                    outcome.stopped = self._obey(decision, verdicts)
                    if outcome.stopped:
                        break
            finally:
                if self._spare is not None:
                    self._spare.dismiss()
        outcome.seconds = time.monotonic() - began
        return outcome

    def dry_run(self, steps: list[str], folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
        """Builds every real config object of each step in one child, loading no weights; step → facts or error.

        The base model's config.json stands for every policy: its own folder, or for a hub model the fixture under
        configs/models/, so that the model can be built on the meta device.
        """
        attempts = {step: Attempt(folder / step) for step in steps}
        for step, attempt in attempts.items():
            attempt.path.mkdir(parents=True, exist_ok=True)
            request = self._request(step, attempt, {}, mode="check")
            fixture = _fixture(self.profile, step)
            if fixture is not None:
                request["inputs"] = {
                    port: {"kind": POLICY, "path": str(fixture), "digest": "", "producer": "", "meta": {}}
                    for port, spec in stages.load(self.profile.steps[step].stage).INPUTS.items()
                    if spec.kind == POLICY
                }
            write_json(attempt.request, request)
        gates.check(self.profile, steps)
        first = attempts[steps[0]]
        child = Child.start(
            self.profile.steps[steps[0]], first.log, requests=[a.request for a in attempts.values()], solo=True
        )
        try:
            for step, attempt in attempts.items():
                while not child.poll() and not attempt.result.is_file():
                    time.sleep(0.05)
                yield (
                    step,
                    read_json(attempt.result) if attempt.result.is_file() else {"error": last_line(attempt.log)},
                )
        finally:
            child.end()

    def _prepare_folder(self) -> None:
        try:
            self.store.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(
                f"cannot write in {self.store.root}: {error.strerror}", hint="choose another --runs-dir"
            ) from error

    def _describe_run(self) -> None:
        """run.json: what was asked last, so that `table` and `prune` know the steps."""
        before: dict[str, Any] = {"started": mf.now()}
        if self.store.run_file.is_file():
            before = read_json(
                self.store.run_file,
                "remove it: the next run writes it anew, and only knows no more when it first began",
            )
        about = {
            "run": self.store.run,
            "profile": self.profile.name,
            "path": str(self.profile.path.resolve()),
            "pipeline": self.pipeline,
            "overrides": list(self.profile.overrides),
            "started": before.get("started"),
        }
        if before != about:
            write_json(self.store.run_file, about)

    def _check_sources(self, steps: list[str]) -> None:
        """A file that the last step reads must be there before the first one trains for hours."""
        for step in steps:
            try:
                fingerprint.sources(self.profile.steps[step])
            except UserError as error:
                raise UserError(f"step {step}: {error.message}", hint=error.hint) from error

    def _check_trackers(self, decisions: list[Decision]) -> None:
        """The packages that `report_to` names, before anything trains."""
        from r1pipe.training import trackers

        for decision in decisions:
            if decision.action is not Action.SKIP:
                for part in walk(self.profile.steps[decision.step]):
                    trackers.check_installed(getattr(part, "trainer", None) or {})

    def _check_space(self, decisions: list[Decision]) -> None:
        """Room for what the steps will write, before any model loads. The estimate: each training step keeps its
        model and two checkpoints (weights and two Adam moments)."""
        todo = [d for d in decisions if d.action is not Action.SKIP]
        weights = 0
        for decision in decisions:
            for artifact in decision.manifest.outputs.values() if decision.manifest else ():
                if artifact.kind == POLICY:
                    weights = max(weights, sum(f.size for f in artifact.files))
        weights = weights or _base_size(self.profile)
        training = [d for d in todo if hasattr(self.profile.steps[d.step], "trainer")]
        needed = 64 * 2**20 * bool(todo) + sum(
            weights * (1 if self._lora(d.step) else 7) for d in training
        )  # fmt: skip
        free = shutil.disk_usage(self.store.root).free
        if todo and free < needed:
            raise UserError(
                f"{self.store.root} has {free / 2**30:.2f} GiB free; these steps need about {needed / 2**30:.2f} GiB "
                f"({', '.join(d.step for d in todo)})",
                hint="free space (r1pipe prune), or choose another --runs-dir",
            )

    def _lora(self, step: str) -> bool:
        return getattr(self.profile.steps[step], "lora", None) is not None

    def _judge(self, planner: Planner, step: str, mine: gates.Evidence | None) -> list[gates.Verdict]:
        """What the step's gates say, as they are set now."""
        if mine is None or not self.profile.steps[step].gates:
            return []
        return gates.judge(self.profile, step, mine, lambda other: _evidence(planner.decide(other)))

    def _obey(self, decision: Decision, verdicts: list[gates.Verdict]) -> str | None:
        """Raises StepFailed where a gate fails the step, whose result is sealed; why the run ends here, if it does."""
        if failed := gates.failed(verdicts, "fail"):
            error = StepFailed(
                f"step {decision.step}: {failed[0]['text']}"
                + (f" (and {len(failed) - 1} more gates)" if len(failed) > 1 else ""),
                hint=f"its result is kept (r1pipe table {self.store.run}); with other steps.{decision.step}.gates the "
                "same command goes on from there",
            )
            self.observer.failed(decision, error)
            raise error
        stopped = gates.failed(verdicts, "stop")
        return f"after {decision.step}: {stopped[0]['text']}" if stopped else None

    def _step(self, planner: Planner, decision: Decision, later: list[str]) -> tuple[mf.Manifest, list[gates.Verdict]]:
        attempt = decision.attempt
        assert attempt is not None
        step = decision.step
        config = self.profile.steps[step]
        inputs = planner.inputs(step)
        self._check_inputs(step, inputs)
        self.observer.begin(decision)
        began, started = time.monotonic(), mf.now()
        self._open(attempt, config)
        resume = decision.action is Action.RESUME
        write_json(attempt.request, self._request(step, attempt, inputs, resume=resume))
        append_json(attempt.attempts_log, {"event": "started", "time": started, "resume": resume, "pid": os.getpid()})
        child = self._child(config, attempt)
        self._spare = self._start_spare(later)
        result = self._finish(decision, attempt, child)
        if result.pop("evaluate_apart", False):
            attempt.result.unlink()
            write_json(attempt.request, self._request(step, attempt, inputs, mode="evaluate"))
            alone = self._finish(
                decision, attempt, Child.start(config, attempt.log, requests=[attempt.request], solo=True)
            )
            result |= {
                "evaluation": alone["evaluation"],
                "counts": {  # one name may be counted in both; a zero stays
                    name: result["counts"].get(name, 0) + alone["counts"].get(name, 0)
                    for name in [*result["counts"], *(n for n in alone["counts"] if n not in result["counts"])]
                },
                "facts": result["facts"] | alone["facts"],
                "warnings": result["warnings"] + alone["warnings"],
                "timing": result["timing"] | {"evaluate": alone["timing"]["evaluate"]},
            }
        verdicts = self._gate(planner, decision, attempt, result)
        if text := self._clock_back(step):
            self.observer.event(step, {"event": "warning", "text": text})
            result.setdefault("warnings", []).append(text)
        sealing = time.monotonic()
        manifest = self._seal(decision, attempt, inputs, result, started, began, sealing)
        append_json(attempt.attempts_log, {"event": "sealed", "time": mf.now()})
        self.observer.end(decision, manifest)
        return manifest, verdicts

    def _clock_back(self, step: str) -> str | None:
        """Tables show the result of a step that was finished last, by the clock: says where that would mislead."""
        now = mf.now()
        for attempt in (a for a in self.store.all_attempts(step) if a.sealed):
            with contextlib.suppress(UserError):  # a damaged one is told by whoever needs it
                if (at := mf.load(attempt).finished) > now:
                    return (
                        f"the clock went back: {step}/{attempt.path.name} was sealed at {at}, and it is {now} now; "
                        "a table shows the one with the later time"
                    )
        return None

    def _gate(
        self, planner: Planner, decision: Decision, attempt: Attempt, result: dict[str, Any]
    ) -> list[gates.Verdict]:
        """Judges a step that has just worked; the verdicts go into its manifest, and are told."""
        mine = gates.Evidence(result.get("evaluation", {}), result.get("metrics", {}), attempt.output("evaluation"))
        verdicts = self._judge(planner, decision.step, mine)
        if verdicts:
            result["facts"] = result.get("facts", {}) | {"gates": verdicts}
        for verdict in verdicts:
            passed = verdict["verdict"] == "passed"
            self.observer.event(decision.step, {"event": "gate" if passed else "warning", "text": verdict["text"]})
            if not passed:
                result.setdefault("warnings", []).append(verdict["text"])
        return verdicts

    def _open(self, attempt: Attempt, config: StepConfig) -> None:
        """Makes the folder ready for an attempt: half-written outputs of an earlier one are removed, its work kept."""
        with writing(attempt.path):
            attempt.path.mkdir(parents=True, exist_ok=True)
            self._wait_for_worker(attempt)
            attempt.result.unlink(missing_ok=True)
            shutil.rmtree(attempt.out, ignore_errors=True)
            attempt.work.mkdir(exist_ok=True)
            for name in stages.load(config.stage).OUTPUTS:
                attempt.output(name).mkdir(parents=True)

    def _wait_for_worker(self, attempt: Attempt) -> None:
        """An orphan of a killed runner ends within moments; one that does not is named."""
        until = time.monotonic() + 10
        while process.is_held(attempt.lock):
            if time.monotonic() > until:
                pid = process.holder(attempt.lock)
                raise UserError(f"{attempt.path} is being written by process {pid}", hint=f"stop it: kill {pid}")
            time.sleep(0.1)

    def _check_inputs(self, step: str, inputs: dict[str, tuple[Decision, mf.Artifact]]) -> None:
        """Refuses inputs that are not what their manifests sealed, or that do not fit each other."""
        templates: dict[str, str] = {}
        tokenizers: dict[str, str] = {}
        for port, (source, artifact) in inputs.items():
            assert source.attempt is not None
            name = artifact.producer.split("/")[0]
            output = Path(artifact.uri).name
            faults = mf.faults(artifact, source.attempt.output(output), deep=False)
            faults += [text] if (text := mf.changed(source.attempt)) else []
            if faults:
                raise UserError(
                    f"{step} refuses its input {port} ({name}): {faults[0]}",
                    hint=f"r1pipe run-stage {name} --force makes it again",
                )
            for kind, key in ((templates, "chat_template_digest"), (tokenizers, "tokenizer_digest")):
                if artifact.kind in (POLICY, DATASET) and artifact.meta.get(key):
                    kind[port] = artifact.meta[key]
        for what, seen in (("chat template", templates), ("tokenizer", tokenizers)):
            if len(set(seen.values())) > 1:
                listed = ", ".join(f"{port} {value[:8]}" for port, value in seen.items())
                raise UserError(
                    f"{step} refuses inputs that were made with different {what}s: {listed}",
                    hint="make them from the same base model and chat settings",
                )

    def _request(
        self, step: str, attempt: Attempt, inputs: dict[str, tuple[Decision, mf.Artifact]], **more: Any
    ) -> dict[str, Any]:
        config = self.profile.steps[step]
        return {
            "run": self.store.run,
            "step": step,
            "stage": config.stage,
            "folder": str(attempt.path.resolve()),
            "config": config.model_dump(mode="json"),
            "inputs": {
                port: {
                    "kind": artifact.kind,
                    "path": str(source.attempt.output(Path(artifact.uri).name).resolve()),
                    "digest": artifact.digest,
                    "producer": source.step,
                    "meta": artifact.meta,
                }
                for port, (source, artifact) in inputs.items()
                if source.attempt is not None
            },
            "resume": False,
            "mode": "run",
        } | more

    def _child(self, config: StepConfig, attempt: Attempt) -> Child:
        spare, self._spare = self._spare, None
        if spare is not None and spare.fits(config) and spare.assign(attempt.request):
            return spare
        if spare is not None:
            spare.dismiss()
        return Child.start(config, attempt.log, requests=[attempt.request])

    def _start_spare(self, later: list[str]) -> Child | None:
        """Lets the worker of the next step import ahead. Only where one process runs it."""
        for step in later:
            config = self.profile.steps[step]
            if config.num_processes == 1 and config.accelerate is None:
                return Child.start(config, None, waiting=True)
            return None
        return None

    def _finish(self, decision: Decision, attempt: Attempt, child: Child) -> dict[str, Any]:
        """Watches a worker to its end; its result, or StepFailed."""
        try:
            self._watch(decision.step, attempt, child)
        except BaseException as error:
            child.end()
            if isinstance(error, KeyboardInterrupt):
                self._note(attempt, {"event": "interrupted", "time": mf.now()})
            raise
        result = read_json(attempt.result, "run the same command") if attempt.result.is_file() else None
        if child.code != 0 or result is None or "error" in result:
            raise self._failure(decision, attempt, child, result)
        return result

    def _note(self, attempt: Attempt, event: dict[str, Any]) -> None:
        """A line on how an attempt ended badly. Where it cannot be written, the reason matters more than the line."""
        with contextlib.suppress(UserError):
            append_json(attempt.attempts_log, event)

    def _watch(self, step: str, attempt: Attempt, child: Child) -> None:
        tail = Tail(attempt.events)
        while True:
            done = child.poll()
            for event in tail.new():
                self.observer.event(step, event)
            if done:
                return
            time.sleep(0.1)

    def _seal(
        self, decision: Decision, attempt: Attempt, inputs: dict[str, tuple[Decision, mf.Artifact]],
        result: dict[str, Any], started: str, began: float, sealing: float,
    ) -> mf.Manifest:  # fmt: skip
        step = decision.step
        config = self.profile.steps[step]
        outputs = dict(stages.load(config.stage).OUTPUTS)
        if attempt.output("evaluation").is_dir():
            outputs["evaluation"] = DATASET
        producer = f"{step}/{attempt.path.name}"
        template, tokenizer = _reading(inputs)
        artifacts = {}
        for name, kind in outputs.items():
            meta = result.get("meta", {}).get(name, {})
            if kind == DATASET and name != "evaluation":  # made through this template: its reader must use the same
                meta = {"chat_template_digest": template, "tokenizer_digest": tokenizer} | meta
            uri = f"{step}/{attempt.path.name}/out/{name}"
            artifacts[name] = mf.describe(kind, attempt.output(name), uri, producer, meta)
        for artifact in artifacts.values():
            if artifact.kind == POLICY:
                template = artifact.meta["chat_template_digest"]
                tokenizer = artifact.meta["tokenizer_digest"]
        timing = result.get("timing", {}) | {"seal": round(time.monotonic() - sealing, 3)}
        attempts = sum(1 for e in read_lines(attempt.attempts_log) if e.get("event") == "started")
        assert decision.fingerprint is not None
        manifest = mf.Manifest(
            run=self.store.run,
            step=step,
            stage=config.stage,
            stage_version=str(stages.load(config.stage).VERSION),
            fingerprint=decision.fingerprint,
            fingerprint_of=decision.parts,
            config=config.model_dump(mode="json"),
            inputs={
                port: mf.InputRecord(
                    kind=artifact.kind, uri=artifact.uri, digest=artifact.digest, producer=artifact.producer,
                    manifest_digest=_manifest_digest(source),
                )
                for port, (source, artifact) in inputs.items()
            },
            outputs=artifacts,
            metrics=result.get("metrics", {}),
            evaluation=result.get("evaluation", {}),
            counts=result.get("counts", {}),
            facts=result.get("facts", {}),
            warnings=result.get("warnings", []),
            environment=environment.describe()
            | {"device": "cpu"}
            | {name: value for name, value in result.get("facts", {}).items() if name in ("device", "threads")},
            chat_template_digest=template,
            tokenizer_digest=tokenizer,
            seed=config.seed,
            tokens=result.get("tokens", 0),
            seconds=round(time.monotonic() - began, 3),
            timing=timing,
            attempts=attempts,
            started=started,
            finished=mf.now(),
        )  # fmt: skip
        mf.seal(attempt, manifest)
        return manifest

    def _failure(
        self, decision: Decision, attempt: Attempt, child: Child, result: dict[str, Any] | None
    ) -> StepFailed:
        text: str
        hint: str | None
        dead = dead_rank(attempt.log) if self.profile.steps[decision.step].num_processes > 1 else None
        if dead and (result is None or result.get("kind") == "crash"):  # rank 0 only saw its peer go
            text, hint = dead, "the group was ended with it; run again to resume"
        elif result and "error" in result:
            text, hint = str(result["error"]), result.get("hint")
        elif child.code is not None and child.code < 0:
            text = f"its worker was ended by signal {-child.code}"
            hint = "run again to resume" + (
                " (signal 9 is often the out-of-memory killer)" if child.code == -9 else ""
            )
        else:
            text, hint = f"its worker ended with code {child.code}: {last_line(attempt.log)}", "run again to resume"
            if shutil.disk_usage(attempt.path).free < 2**20:  # it could not even say so
                text = f"its worker ended with code {child.code}, and no space is left on the disk of {attempt.path}"
                hint = "free space (r1pipe prune), then run the same command: it goes on"
        self._note(attempt, {"event": "failed", "time": mf.now(), "error": text})
        error = StepFailed(
            f"step {decision.step} failed: {text}",
            hint=f"{hint}; log: {attempt.log}" if hint else f"log: {attempt.log}",
        )
        if result and result.get("kind") == "user":
            error.exit_code = 2  # bad input, found before anything was trained
        self.observer.failed(decision, error)
        return error


def _evidence(decision: Decision) -> gates.Evidence | None:
    """What a sealed step gives to the gates; None where it is not up to date."""
    if decision.manifest is None or decision.attempt is None:
        return None
    manifest = decision.manifest
    return gates.Evidence(manifest.evaluation, manifest.metrics, decision.attempt.output("evaluation"))


def _reading(inputs: dict[str, tuple[Decision, mf.Artifact]]) -> tuple[str | None, str | None]:
    for _, artifact in inputs.values():
        if artifact.kind == POLICY:
            return artifact.meta.get("chat_template_digest"), artifact.meta.get("tokenizer_digest")
    return None, None


def _manifest_digest(source: Decision) -> str:
    from r1pipe.digest import file_digest

    assert source.attempt is not None
    return file_digest(source.attempt.manifest)


def _base_size(profile: Profile) -> int:
    """Bytes of the base model's weights where it is a local folder; 0 where that is not known."""
    from r1pipe.fingerprint import model_folder

    for config in profile.steps.values():
        model = getattr(config, "base_model", None)
        if model is not None and (folder := model_folder(model)):
            return sum(p.stat().st_size for p in folder.glob("*.safetensors"))
    return 0


def _fixture(profile: Profile, step: str) -> Path | None:
    """A folder with the config.json of the base model that `step` goes back to, weights or not; None where it is
    not known."""
    from r1pipe.fingerprint import model_folder

    model = getattr(profile.steps[step], "base_model", None)
    if model is not None:
        folder = model_folder(model) or configs_dir() / "models" / model.path.replace("/", "--")
        return folder if (folder / "config.json").is_file() else None
    ports = stages.load(profile.steps[step].stage).INPUTS
    for port, (source, _) in profile.sources(step).items():
        if ports[port].kind == POLICY:
            return _fixture(profile, source)
    return None
