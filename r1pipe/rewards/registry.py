"""The rewards that a profile can name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from r1pipe.errors import UserError, nearest
from r1pipe.rewards import accuracy, format, language, preference
from r1pipe.rewards.verdict import Context, Verifier
from r1pipe.settings import RewardPart, Strict

# Kinds of row that have no gold answer: accuracy does not apply to them unless its part names them.
WITHOUT_GOLD = frozenset({"general", "safety"})
SCHEDULE = frozenset({"start"})  # options that the composition takes itself


@dataclass(frozen=True)
class Entry:
    """One reward: its class, its options, the row fields it reads, and whether it needs a reward model."""

    make: Any
    options: type[Strict]
    version: str
    columns: tuple[str, ...] = ()
    model: bool = False


REGISTRY: dict[str, Entry] = {
    "accuracy": Entry(accuracy.Accuracy, accuracy.Options, accuracy.VERSION, ("gold", "kind")),
    "format": Entry(format.Format, format.Options, format.VERSION),
    "language": Entry(language.Language, language.Options, language.VERSION, ("language",)),
    "helpful": Entry(preference.HelpfulReward, preference.Options, preference.VERSION, model=True),
    "harmless": Entry(preference.HarmlessReward, preference.Options, preference.VERSION, model=True),
}


def entry(name: str) -> Entry:
    """The reward of a name. Raises UserError with the nearest known one."""
    if name not in REGISTRY:
        raise UserError(f'unknown reward "{name}"{nearest(name, REGISTRY)}')
    return REGISTRY[name]


def options(name: str, part: RewardPart) -> tuple[Strict, float]:
    """The checked options of a part, and the share of the steps after which it applies (0.0: from the start)."""
    given = dict(part.options)
    start = given.pop("start", 0.0)
    if isinstance(start, bool) or not isinstance(start, int | float) or not 0 <= start < 1:
        raise UserError(f"rewards.{name}.options.start is {start!r}: expected a share of the steps, 0 to below 1")
    model = entry(name).options
    known = [*model.model_fields, *SCHEDULE]
    for key in given:
        if key not in known:
            raise UserError(f'reward "{name}" has no option "{key}"{nearest(key, known)}')
    try:
        return model(**given), float(start)
    except ValidationError as error:
        bullets = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise UserError(f"rewards.{name}.options: {bullets}") from None


def validate(parts: Mapping[str, RewardPart]) -> None:
    """Checks names and options; loads nothing. Raises UserError."""
    if not parts:
        raise UserError("no rewards are given", hint="name at least one under `rewards:`, such as `accuracy: {}`")
    for name, part in parts.items():
        entry(name)
        options(name, part)


def build(name: str, part: RewardPart, context: Context, model: Path | None) -> Verifier:
    """The verifier of a part."""
    found, checked = entry(name), options(name, part)[0]
    if not found.model:
        return found.make(checked, context)
    if model is None:
        raise UserError(f'reward "{name}" needs a reward model', hint=f"give the step an input `{name}`")
    return found.make(model, checked, context)


def versions(parts: Mapping[str, RewardPart]) -> dict[str, str]:
    """Version of each verifier that a composition uses, for the fingerprint of a step. Light: no torch."""
    return {name: entry(name).version for name in sorted(parts)}
