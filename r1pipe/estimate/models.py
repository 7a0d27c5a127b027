"""The config.json of the model that a step starts from, wherever it is on this machine. Downloads nothing."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r1pipe.config import Profile
from r1pipe.errors import UserError
from r1pipe.estimate import shape as shapes
from r1pipe.resources import configs_dir
from r1pipe.settings import ModelConfig
from r1pipe.stage import POLICY
from r1pipe.training import hub

_UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}


@dataclass(frozen=True)
class Base:
    """A pretrained model of a profile."""

    name: str
    shape: shapes.Shape
    dtype_bytes: int  # of its published weights
    folder: Path | None  # where its files are, if they are here
    source: str  # where the shape was read


def parse_size(text: str) -> float:
    """`7B`, `1.5B`, `135M` as a number of parameters."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMBT]?)", text.strip().upper())
    if not found:
        raise UserError(f"--params {text!r} is no number of parameters", hint="--params 7B, 1.5B, 135M")
    return float(found[1]) * _UNITS[found[2]]


def base_of(profile: Profile, step: str) -> ModelConfig | None:
    """The pretrained model at the root of a step: along its policies, up to the step that has a `base_model`."""
    from r1pipe import stage as stages

    seen: set[str] = set()
    while step not in seen:
        seen.add(step)
        config = profile.steps[step]
        found = getattr(config, "base_model", None)
        if isinstance(found, ModelConfig):
            return found
        ports = stages.load(config.stage).INPUTS
        above = [source for port, (source, _) in profile.sources(step).items() if ports[port].kind == POLICY]
        if not above:
            return None
        step = above[0]
    return None


def find(model: ModelConfig, params: str | None = None) -> Base:
    """Shape and folder of a model. Raises UserError where nothing here says how large it is."""
    if params:
        guessed = shapes.typical(parse_size(params))
        return Base(f"{params} parameters", guessed, 2, None, "--params")
    folder = hub.local(model)
    if folder is not None:
        return _read(model.path, folder / "config.json", folder, "its folder")
    cached = _cached(model)
    if cached is not None:
        return _read(model.path, cached, cached.parent, "the local hub cache")
    fixture = configs_dir() / "models" / model.path.replace("/", "--") / "config.json"
    if fixture.is_file():
        return _read(model.path, fixture, None, "the config.json that ships with r1pipe")
    raise UserError(
        f"{model.path} is not on this machine, so its size is not known",
        hint="--params 7B plans with a typical shape of that size; or download its config.json",
    )


def _read(name: str, path: Path, folder: Path | None, source: str) -> Base:
    try:
        config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {error}", hint="--params 7B plans without it") from None
    dtype = str(config.get("dtype") or config.get("torch_dtype") or "float32")
    return Base(name, shapes.of(config), 2 if "16" in dtype else 4, folder, source)


def _cached(model: ModelConfig) -> Path | None:
    """config.json in the hub's cache, at the pinned revision."""
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(model.path, "config.json", revision=model.revision)
    return Path(found) if isinstance(found, str) else None
