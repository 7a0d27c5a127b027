"""The fingerprint of a step: what its result depends on, and nothing else.

fingerprint = digest(stage, stage VERSION, settings that can change results, versions of the verifiers it uses,
digests of its data sources and inputs). Library versions are not part of it: they show as "environment differs"
and re-run a step only with --strict.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from r1pipe import digest as dg
from r1pipe import stage as stages
from r1pipe.errors import UserError
from r1pipe.resources import data_dir
from r1pipe.settings import DataSpec, ModelConfig, RewardPart, StepConfig, walk

# Settings that cannot change what a step makes; the one list. `inputs` count by digest, not by name, and the
# evaluation comes after the result (a difference there is told, and re-runs nothing).
WITHOUT_EFFECT = {
    "inputs",
    "evaluate",
    "evaluation",
    "gates",
    "preflight",
    "health",
    "upload_samples",
    "trainer.logging_dir",
    "trainer.logging_steps",
    "trainer.logging_strategy",
    "trainer.logging_first_step",
    "trainer.log_level",
    "trainer.log_completions",
    "trainer.num_completions_to_print",
    "trainer.report_to",
    "trainer.run_name",
    "trainer.project",
    "trainer.trackio_space_id",
    "trainer.trackio_bucket_id",
    "trainer.trackio_static_space_id",
    "trainer.log_completions_hub_repo",
    "trainer.disable_tqdm",
    "trainer.save_total_limit",
    "trainer.dataloader_num_workers",
    "trainer.dataloader_pin_memory",
}


def of(step: StepConfig, inputs: dict[str, str]) -> tuple[str, dict[str, Any]]:
    """Fingerprint (hex) of a step with these input digests, and what it was made of.

    Raises UserError where a data source or a base model is not there.
    """
    module = stages.load(step.stage)
    settings = step.model_dump(mode="json", exclude_defaults=True)
    if not hasattr(step, "sampling"):
        settings.pop("engine", None)  # it only evaluates here: a trainer rolls out by itself
    for key in WITHOUT_EFFECT:
        _drop(settings, key.split("."))
    parts: dict[str, Any] = {
        "stage": step.stage,
        "stage_version": str(module.VERSION),
        "settings": settings,
        "sources": sources(step),
        "verifiers": _verifiers(step),
        "inputs": dict(sorted(inputs.items())),
    }
    return dg.value_digest(parts), parts


def _drop(settings: dict[str, Any], path: list[str]) -> None:
    """Removes a key, and the mapping that it leaves empty: `trainer: {}` is the same as no trainer."""
    head, *rest = path
    if not rest:
        settings.pop(head, None)
    elif isinstance(settings.get(head), dict):
        _drop(settings[head], rest)
        if not settings[head]:
            del settings[head]


def sources(step: StepConfig) -> dict[str, str]:
    """Data source (source#split, where it is not the training split) or base model → digest. Raises UserError where
    one is not there."""
    found: dict[str, str] = {}
    for part in walk(step):
        if isinstance(part, DataSpec):
            from r1pipe.data.load import source_digest

            digest = source_digest(part)
            key = part.source if part.split == "train" else f"{part.source}#{part.split}"
            if found.get(key, digest) != digest:  # another revision, or other arguments
                key = f"{key}#{dg.value_digest(part.model_dump(mode='json'))[:8]}"
            found[key] = digest
        elif isinstance(part, ModelConfig):
            found[part.path] = model_digest(part)
    return dict(sorted(found.items()))


def _verifiers(step: StepConfig) -> dict[str, str]:
    rewards = getattr(step, "rewards", None)
    if not isinstance(rewards, dict) or not all(isinstance(p, RewardPart) for p in rewards.values()):
        return {}
    from r1pipe.rewards import versions

    return versions(rewards)


def model_folder(model: ModelConfig) -> Path | None:
    """The folder of a local model; None for a hub id. Raises UserError where it should be local and is not."""
    if model.path.startswith("builtin:"):
        folder = data_dir() / model.path.removeprefix("builtin:")
        if not (folder / "config.json").is_file():
            known = sorted(f"builtin:{p.parent.name}" for p in data_dir().glob("*/config.json"))
            raise UserError(f'there is no embedded model "{model.path}" (known: {", ".join(known)})')
        return folder
    folder = Path(model.path).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise UserError(f"base_model.path: {folder.absolute()} is a folder without config.json")
        return folder
    if model.path.startswith((".", "/", "~")) or model.path.count("/") != 1:
        raise UserError(
            f"base_model.path: there is no folder {folder.absolute()}",
            hint='give a folder, a hub id such as "Qwen/Qwen2.5-0.5B", or "builtin:tiny-base"',
        )
    return None


def model_digest(model: ModelConfig) -> str:
    """Digest of a base model: its files, or hub id and commit."""
    folder = model_folder(model)
    if folder is None:
        return f"hub:{model.path}@{model.revision or 'main'}"
    pickles = [p.name for pattern in dg.PICKLES for p in folder.glob(pattern)]
    files = dg.checkpoint_files(folder)
    if not any(p.name.endswith(".safetensors") for p in files):
        found = f"only pickle files ({', '.join(pickles)})" if pickles else "no weights"
        raise UserError(
            f"base_model.path: {folder} holds {found}; only safetensors are loaded",
            hint="convert them: model.save_pretrained(folder, safe_serialization=True)",
        )
    return dg.files_digest((p.name, dg.remembered_file_digest(p)) for p in files)
