"""What `r1pipe evaluate` was given: steps of a run, a model folder, or a hub model. No torch until it is sampled."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from r1pipe import fingerprint
from r1pipe import manifest as mf
from r1pipe.chat import ChatConfig
from r1pipe.errors import UserError, nearest
from r1pipe.settings import EngineConfig, ModelConfig
from r1pipe.stage import POLICY, StageContext
from r1pipe.store import Attempt


@dataclass(frozen=True)
class Subject:
    """A policy to evaluate. `source`: `step/attempt` of a run, else the path or hub id; `parent`: the step to compare
    with."""

    name: str
    folder: Path
    digest: str
    source: str
    chat: ChatConfig = field(default_factory=ChatConfig)
    engine: EngineConfig = field(default_factory=EngineConfig)
    threads: int | None = None
    parent: str | None = None
    alone: bool = False  # of no run

    @property
    def entry(self) -> str:
        """Its name in the file of a suite: two folders may have one name."""
        return f"{self.name}-{self.digest[:8]}" if self.alone else self.name


def of_run(sealed: dict[str, tuple[Attempt, mf.Manifest]], steps: str | None) -> list[Subject]:
    """The policies of a run's sealed steps: the last one, `all`, or the named ones. Raises UserError where there is
    none, or where its files are not what was sealed."""
    policies = {
        step: (attempt, manifest, output)
        for step, (attempt, manifest) in sealed.items()
        for output, artifact in manifest.outputs.items()
        if artifact.kind == POLICY
    }
    if not policies:
        raise UserError("the run holds no finished model", hint="r1pipe status")
    wanted = list(policies) if steps == "all" else [list(policies)[-1]]
    if steps not in (None, "all"):
        wanted = [s.strip() for s in str(steps).split(",") if s.strip()]
    found = []
    for step in wanted:
        if step not in policies:
            raise UserError(f'the run has no finished model of a step "{step}"{nearest(step, policies)}')
        attempt, manifest, output = policies[step]
        artifact = manifest.outputs[output]
        if faults := mf.faults(artifact, attempt.output(output), deep=False):
            raise UserError(f"the model of {step} is not what was sealed: {faults[0]}", hint="r1pipe verify")
        config = manifest.config
        found.append(
            Subject(
                step,
                attempt.output(output),
                artifact.digest,
                f"{step}/{attempt.path.name}",
                ChatConfig.model_validate(config.get("chat") or {}),
                EngineConfig.model_validate(config.get("engine") or {}),
                config.get("threads"),
                next((r.producer.partition("/")[0] for r in manifest.inputs.values() if r.kind == POLICY), None),
            )
        )
    return found


def of_model(name: str, ctx: StageContext) -> Subject:
    """A model folder, `builtin:NAME`, or a hub id (`owner/name`, `owner/name@commit`), which is downloaded."""
    from r1pipe.training import hub

    path, _, revision = name.partition("@") if not Path(name).expanduser().exists() else (name, "", "")
    model = ModelConfig(path=path, revision=revision or None)
    folder, commit = hub.fetch(model, ctx)
    digest = fingerprint.model_digest(ModelConfig(path=str(folder)))
    label = path.rstrip("/").rpartition("/")[2].removeprefix("builtin:")
    return Subject(label, folder, digest, f"{path}@{commit}" if commit else str(folder), alone=True)


def is_model(name: str) -> bool:
    """Does a name that is no run look like a model?"""
    path = Path(name.partition("@")[0]).expanduser()
    return (
        name.startswith("builtin:") or path.is_dir() or (name.count("/") == 1 and not name.startswith((".", "/", "~")))
    )
