"""What is exported: the policy of a run's step, with the chain of manifests behind it, or a folder."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from r1pipe import digest as dg
from r1pipe import manifest as mf
from r1pipe.errors import UserError, nearest
from r1pipe.stage import POLICY
from r1pipe.store import Attempt, Store


@dataclass
class Source:
    """A model folder. `chain`: the manifests that led to it, the base first; empty for a folder that no run made."""

    name: str
    folder: Path
    step: str | None = None
    output: str = "model"
    manifest: mf.Manifest | None = None
    manifest_digest: str | None = None
    chain: list[tuple[str, mf.Manifest]] = field(default_factory=list)  # digest of the file, manifest
    root: Path | None = None

    @property
    def adapter(self) -> bool:
        return (self.folder / "adapter_config.json").is_file()

    @property
    def config(self) -> dict[str, Any]:
        return read_json(self.folder / "config.json")


def find(run: str, step: str | None, runs_dir: Path) -> Source:
    """A run (its last policy, or that of `step`), or a model or adapter folder. Raises UserError."""
    from r1pipe.cli import runs

    path = Path(run).expanduser()
    if any((path / name).is_file() for name in ("config.json", "adapter_config.json")):
        if step is not None:
            raise UserError(f"{path} is a model folder, so --step has no meaning", hint="leave --step out")
        return Source(path.resolve().name, path)
    store = runs.open_run(run, runs_dir)
    policies = {
        name: (attempt, manifest, output)
        for name, (attempt, manifest) in runs.sealed_steps(store).items()
        for output, artifact in manifest.outputs.items()
        if artifact.kind == POLICY
    }
    if not policies:
        raise UserError(f"{store.root} holds no finished model", hint=f"r1pipe status --run {store.run}")
    name = step or list(policies)[-1]
    if name not in policies:
        raise UserError(f'no finished model of a step "{name}" in {store.root}{nearest(name, policies)}')
    attempt, manifest, output = policies[name]
    folder = attempt.output(output)
    faults = mf.faults(manifest.outputs[output], folder, deep=False)
    if faults:
        raise UserError(f"the model of {name} is not what was sealed: {faults[0]}", hint=f"r1pipe verify {store.run}")
    return Source(
        f"{store.run}-{name}", folder, name, output, manifest, dg.file_digest(attempt.manifest),
        ancestors(store, attempt, manifest), store.root,
    )  # fmt: skip


def ancestors(store: Store, attempt: Attempt, manifest: mf.Manifest) -> list[tuple[str, mf.Manifest]]:
    """The manifests that a result was made from, each once, the first ones first, itself last.

    Raises UserError where one is gone or is not the one that was read.
    """
    found: dict[str, tuple[str, mf.Manifest]] = {}

    def visit(attempt: Attempt, manifest: mf.Manifest) -> None:
        key = f"{manifest.step}/{attempt.path.name}"
        if key in found:
            return
        for record in manifest.inputs.values():
            above = Attempt(store.root / record.producer)
            if not above.sealed:
                raise UserError(
                    f"{manifest.step} was made from {record.producer}, whose manifest is gone",
                    hint="the model card needs the whole chain: r1pipe verify shows what is missing",
                )
            if dg.file_digest(above.manifest) != record.manifest_digest:
                raise UserError(
                    f"the manifest of {record.producer} is not the one that {manifest.step} was made from",
                    hint=f"r1pipe verify {store.run}",
                )
            visit(above, mf.load(above))
        found[key] = (dg.file_digest(attempt.manifest), manifest)

    visit(attempt, manifest)
    return list(found.values())


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object. Raises UserError naming the file."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {error}", hint="a model folder has a config.json") from None
    if not isinstance(value, dict):
        raise UserError(f"{path} holds no JSON object")
    return value
