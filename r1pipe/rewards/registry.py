"""The rewards that a profile can name: built in, installed by another package, or a function of the user's."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from r1pipe.errors import UserError, nearest
from r1pipe.rewards.verdict import Context, Verifier
from r1pipe.settings import RewardPart, Strict

GROUP = "r1pipe.rewards"  # entry points: functions with TRL's signature
# Kinds of row that have no answer to be right or wrong: accuracy does not apply to them unless its part names them.
WITHOUT_ANSWER = frozenset({"general", "safety", "instructions"})
Role = Literal["primary", "auxiliary"]


@dataclass(frozen=True)
class Entry:
    """One reward: where its class and options are, and what the composition must know of it without loading it."""

    module: str
    cls: str
    options: str = "Options"
    columns: tuple[str, ...] = ()  # row fields that it cannot do without
    kinds: frozenset[str] | None = None  # rows it applies to by default (None: all)
    role: Role = "primary"
    model: bool = False  # needs a reward model that an input of the step gives
    correctness: bool = False  # says whether the answer is right: what `correct` of a row comes from
    reads_correct: bool = False  # needs that: it does not apply to rows without an answer to be right
    target: str | None = None  # the user's function

    def load(self) -> Any:
        return importlib.import_module(f"r1pipe.rewards.{self.module}")

    @property
    def version(self) -> str:
        if self.target is not None:
            return self.load().version(self.target)
        return str(self.load().VERSION)


def _answer(name: str, module: str, cls: str) -> Entry:
    """A reward for one kind of answer, which `accuracy` asks too."""
    return Entry(f"answers.{module}", cls, columns=("gold",), kinds=frozenset({name}), correctness=True)


REGISTRY: dict[str, Entry] = {
    "accuracy": Entry("correctness", "Correctness", columns=("gold",), correctness=True),
    "format": Entry("format", "Format"),
    "language": Entry("language", "Language", columns=("language",)),
    "countdown": Entry("countdown", "Countdown", kinds=frozenset({"countdown"}), correctness=True),
    "choice": _answer("choice", "choice", "Choice"),
    "exact": _answer("exact", "exact", "Exact"),
    "number_list": _answer("number_list", "number_list", "NumberList"),
    "json": _answer("json", "json_value", "Json"),
    "code": Entry("code", "Code", kinds=frozenset({"code"}), correctness=True),
    "instructions": Entry(
        "instructions", "Instructions", columns=("instruction_id_list",), kinds=frozenset({"instructions"})
    ),
    "repetition": Entry("shape", "Repetition", "RepetitionOptions", role="auxiliary"),
    "overlong": Entry("shape", "Overlong", "OverlongOptions", role="auxiliary"),
    "cosine": Entry("shape", "Cosine", "CosineOptions", role="auxiliary", reads_correct=True),
    "concise": Entry("shape", "Concise", "ConciseOptions", role="auxiliary", reads_correct=True),
    "helpful": Entry("preference", "HelpfulReward", model=True),
    "harmless": Entry("preference", "HarmlessReward", model=True),
    "reward_model": Entry("preference", "ModelReward", "ModelOptions"),
    "judge": Entry("judge", "Judge"),
}
# The kinds that `accuracy` hands to another reward, where no part of its own takes them.
BY_KIND = {kind: name for name, e in REGISTRY.items() if e.correctness and e.kinds for kind in e.kinds}


@cache
def installed() -> dict[str, importlib.metadata.EntryPoint]:
    """Rewards of other packages, by name."""
    return {e.name: e for e in importlib.metadata.entry_points(group=GROUP)}


def entry(name: str) -> Entry:
    """The reward of a name, an entry point or `module:function`. Raises UserError with the nearest known one."""
    if name in REGISTRY:
        return REGISTRY[name]
    if name in installed():
        return Entry("custom", "Custom", target=installed()[name].value)
    if ":" in name:
        from r1pipe.stage import code_allowed

        if not code_allowed():
            raise UserError(
                f'the reward "{name}" would import code',
                hint="--allow-code lets it, if you trust the profile; installed entry points need no flag",
            )
        return Entry("custom", "Custom", target=name)
    raise UserError(
        f'unknown reward "{name}"{nearest(name, [*REGISTRY, *installed()])}',
        hint=f"rewards: {', '.join([*REGISTRY, *sorted(installed())])}; or module:function with --allow-code",
    )


def of(name: str, part: RewardPart) -> Entry:
    """The reward that a part uses."""
    return entry(part.use or name)


def options(name: str, part: RewardPart) -> Strict:
    """The checked options of a part."""
    found = of(name, part)
    model: type[Strict] = getattr(found.load(), found.options)
    for key in part.options:
        if key not in model.model_fields:
            raise UserError(f'reward "{name}" has no option "{key}"{nearest(key, model.model_fields)}')
    try:
        return model(**part.options)
    except ValidationError as error:
        bullets = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise UserError(f"rewards.{name}.options: {bullets}") from None


def about(name: str) -> str:
    """What a reward is, in a line: the first of its class, or of its module."""
    found = entry(name)
    if found.target is not None:
        return found.target
    module = found.load()
    text = getattr(module, found.cls).__doc__ if found.options != "Options" or found.model else module.__doc__
    return (text or "").strip().splitlines()[0]


def validate(parts: Mapping[str, RewardPart]) -> None:
    """Checks names and options; loads no model. Raises UserError."""
    if not parts:
        raise UserError("no rewards are given", hint="name at least one under `rewards:`, such as `accuracy: {}`")
    for name, part in parts.items():
        options(name, part)


def build(name: str, part: RewardPart, context: Context, model: Path | None) -> Verifier:
    """The verifier of a part."""
    found, checked = of(name, part), options(name, part)
    make = getattr(found.load(), found.cls)
    if found.target is not None:
        return make(found.target, checked, context)
    if not found.model:
        return make(checked, context)
    if model is None:
        raise UserError(f'reward "{name}" needs a reward model', hint=f"give the step an input `{name}`")
    return make(model, checked, context)


def versions(parts: Mapping[str, RewardPart]) -> dict[str, str]:
    """Version of each verifier that a composition uses, for the fingerprint of a step. Light: no torch, and no code
    of the user's is run."""
    return {name: _version(name, parts[name]) for name in sorted(parts)}


def _version(name: str, part: RewardPart) -> str:
    """With the digest of what the part reads besides rows (a folder with a reward model)."""
    found = of(name, part)
    if found.target is not None:
        return found.version
    reads = getattr(getattr(found.load(), found.cls), "reads", None)
    digest = reads(options(name, part)) if reads else None
    return f"{found.version}+{digest}" if digest else found.version


def role(name: str, part: RewardPart) -> Role:
    return part.role or of(name, part).role
