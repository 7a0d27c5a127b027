"""Profiles: one YAML describes a whole pipeline. Loading checks everything that can be checked without torch, and
reports all faults at once."""

from __future__ import annotations

import graphlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from r1pipe import stage as stages
from r1pipe import yamlio
from r1pipe.errors import UserError, nearest
from r1pipe.keys import refuse as refuse_keys
from r1pipe.resources import configs_dir
from r1pipe.settings import ModelConfig, StepConfig, walk

META_KEYS = {"name", "description", "extends", "steps", "pipelines"}
# Steps are folders of a run, and a profile may come from anybody: no path, no hidden name, no file of the run itself.
STEP_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
_NAMES = "expected letters, digits, dots, dashes and underscores, a letter or digit first, 60 at most"
TAKEN = {"run.json", "lock", "report.html", "evaluations"}


@dataclass(frozen=True)
class Profile:
    """A checked profile. `steps` are typed by their stages; `pipelines` list their steps in order of work."""

    name: str
    description: str
    path: Path
    steps: dict[str, StepConfig]
    pipelines: dict[str, list[str]]
    raw: dict[str, Any] = field(repr=False, default_factory=dict)  # merged, before validation
    overrides: tuple[str, ...] = ()  # of --set

    def step(self, name: str) -> StepConfig:
        return self.steps[self.resolve(name)]

    def resolve(self, name: str) -> str:
        """A step's name, or a stage's where one step uses it. Raises UserError with the nearest name."""
        if name in self.steps:
            return name
        users = [step for step, config in self.steps.items() if config.stage == name]
        if len(users) == 1:
            return users[0]
        if users:
            raise UserError(f'stage "{name}" is used by several steps: {", ".join(users)}', hint="name the step")
        raise UserError(f'profile {self.name} has no step "{name}"{nearest(name, self.steps)}')

    def pipeline(self, name: str) -> list[str]:
        if name not in self.pipelines:
            raise UserError(f'profile {self.name} has no pipeline "{name}"{nearest(name, self.pipelines)}')
        return self.pipelines[name]

    def sources(self, step: str) -> dict[str, tuple[str, str]]:
        """Input -> (step, output) that makes it."""
        config = self.steps[step]
        return {port: _source(self.steps, step, port, ref) for port, ref in config.inputs.items()}

    def upstream(self, step: str) -> list[str]:
        return list(dict.fromkeys(source for source, _ in self.sources(step).values()))


def list_profiles() -> list[Path]:
    """The shipped profiles."""
    return sorted(p for p in configs_dir().glob("*.yaml") if not p.name.startswith("_"))


def find(name: str) -> Path:
    """The file of a profile: a shipped name, or a path."""
    if name.endswith((".yaml", ".yml")) or "/" in name:
        path = Path(name)
        if not os.path.isfile(path):  # False for a name that cannot be one, too
            raise UserError(f"there is no profile file {path!s:.300}", hint="r1pipe config list")
        return path
    path = configs_dir() / f"{name}.yaml"
    if not os.path.isfile(path) or name.startswith("_"):
        known = [p.stem for p in list_profiles()]
        raise UserError(
            f'unknown profile "{name:.300}"{nearest(name, known)}', hint="r1pipe config list, or give a path"
        )
    return path


def merge(below: Any, above: Any) -> Any:
    """Mappings are merged key by key, everything else is replaced by what is above."""
    if isinstance(below, dict) and isinstance(above, dict):
        return {k: merge(below[k], above[k]) if k in below and k in above else above.get(k, below.get(k))
                for k in [*below, *(k for k in above if k not in below)]}  # fmt: skip
    return above


def read(path: Path, seen: tuple[Path, ...] = ()) -> dict[str, Any]:
    """The merged YAML of a profile and of what it extends."""
    resolved = path.resolve()
    if resolved in seen:
        raise UserError(f"{path} extends itself, through {' → '.join(p.name for p in seen)}")
    raw = yamlio.read(path)
    parent = raw.pop("extends", None)
    if parent is None:
        return raw
    if not isinstance(parent, str):
        raise UserError(f"{path}: extends must be the name or path of a profile, found {parent!r}")
    beside = path.parent / parent
    if parent.endswith((".yaml", ".yml")):
        base = beside if os.path.isfile(beside) else Path(parent)
    else:
        base = configs_dir() / f"{parent}.yaml"
    if not os.path.isfile(base):
        raise UserError(f'{path}: extends "{parent:.300}", but there is no file {base!s:.300}')
    return merge(read(base, (*seen, resolved)), raw)


def load(name: str, overrides: Iterable[str] = ()) -> Profile:
    """The profile `name` (shipped name or path) with `a.b=value` overrides.

    Raises UserError that lists every fault as `where: message`.
    """
    path = find(name)
    raw = read(path)
    given = tuple(overrides)
    for override in given:
        raw = _override(raw, override)
        refuse_keys(raw)  # also what a later --set replaces: run.json keeps all of them
    return build(raw, path, given)


def build(raw: dict[str, Any], path: Path, overrides: tuple[str, ...] = ()) -> Profile:
    """Checks a merged profile. Raises UserError that lists every fault."""
    where = raw.get("name") or path.stem
    steps_raw = raw.get("steps")
    if not isinstance(steps_raw, dict) or not steps_raw:
        raise UserError(f"{path} has no steps", hint="extends: recipe gives the paper's; r1pipe config show tiny")
    refuse_keys(raw)
    faults: list[str] = []
    steps: dict[str, StepConfig] = {}
    shared = {k: v for k, v in raw.items() if k not in META_KEYS}
    used: set[str] = set()
    if "name" in raw and not (isinstance(where, str) and STEP_NAME.fullmatch(where)):
        faults.append(f"name: {_NAMES}, found {where!r:.80}")
        where = path.stem
    for step, own in steps_raw.items():
        if not isinstance(step, str) or not STEP_NAME.fullmatch(step) or step in TAKEN:
            faults.append(f"steps: {step!r:.80} cannot be the folder of a step: {_NAMES}")
            used |= set(shared)
            continue
        try:
            config, keys = _step(step, own, shared)
            steps[step] = config
            used |= keys
        except ValidationError as error:
            faults += [f"steps.{step}.{_place(e)}: {_say(e)}" for e in error.errors()]
            used |= set(shared)  # the step's fields are not known for sure; do not blame its keys twice
        except UserError as error:
            faults.append(f"steps.{step}: {error.message}" + (f" ({error.hint})" if error.hint else ""))
            used |= set(shared)
    for key in shared:
        if key not in used:
            known = META_KEYS | {f for c in steps.values() for f in type(c).model_fields}
            faults.append(f'unknown key "{key}"{nearest(key, known)}')
    pipelines = _pipelines(raw.get("pipelines") or {}, steps, faults) if not faults else {}
    if faults:
        raise UserError(f"profile {where} ({path}):\n" + "\n".join(f"  • {f}" for f in faults))
    return Profile(str(where), str(raw.get("description", "")).strip(), path, steps, pipelines, raw, overrides)


def _step(step: str, own: Any, shared: dict[str, Any]) -> tuple[StepConfig, set[str]]:
    if not isinstance(own, dict):
        raise UserError(f"expected a mapping of keys, found {own!r}")
    if not isinstance(own.get("stage"), str):
        raise UserError("has no stage", hint=f"stages: {', '.join(sorted(stages.entry_points()))}")
    module = stages.load(own["stage"])
    fields = module.Config.model_fields
    for key in own:
        if key not in fields:
            raise UserError(f'unknown key "{key}"{nearest(str(key), fields)}')
    below = {k: v for k, v in shared.items() if k in fields}
    config = module.Config.model_validate(merge(below, own))
    _check_code(config)
    return config, set(below)


def _check_code(config: StepConfig) -> None:
    """A profile that somebody sent must not be able to run code by itself."""
    asks = any(isinstance(part, ModelConfig) and (part.trust_remote_code or part.options.get("trust_remote_code"))
               for part in walk(config)) or getattr(config, "model_options", {}).get("trust_remote_code")  # fmt: skip
    if any(
        isinstance(part, ModelConfig) and part.options.get("use_safetensors") is False for part in walk(config)
    ) or (getattr(config, "model_options", {}).get("use_safetensors") is False):
        raise UserError("use_safetensors: false would read weights from a pickle, which can run code",
                        hint="convert them: model.save_pretrained(folder)")  # fmt: skip
    if asks and not stages.code_allowed():
        raise UserError(
            "trust_remote_code would run code that ships with the model",
            hint="--allow-code lets it, if you trust the profile and the model",
        )


def _place(error: Any) -> str:
    return ".".join(str(p) for p in error["loc"]) or "settings"


def _say(error: Any) -> str:
    """Pydantic's sentence, with what was found; unknown keys with the nearest name where that is known."""
    if error["type"] == "extra_forbidden":
        return "unknown key"
    found = error.get("input")
    shown = "" if isinstance(found, dict) or error["type"] == "missing" else f", found {found!r:.80}"
    return error["msg"].removeprefix("Value error, ") + shown


def _source(steps: dict[str, StepConfig], step: str, port: str, ref: str) -> tuple[str, str]:
    """`step` or `step.output` → (step, output); checks that the kinds fit."""
    ports = stages.load(steps[step].stage).INPUTS
    if port not in ports:
        raise UserError(f'steps.{step}.inputs: stage {steps[step].stage} has no input "{port}"{nearest(port, ports)}')
    name, _, output = ref.partition(".")
    if name not in steps:
        raise UserError(f'steps.{step}.inputs.{port}: there is no step "{name}"{nearest(name, steps)}')
    outputs = stages.load(steps[name].stage).OUTPUTS
    fitting = [o for o, kind in outputs.items() if kind == ports[port].kind]
    if not output:
        if len(fitting) != 1:
            raise UserError(
                f"steps.{step}.inputs.{port}: {name} makes {len(fitting)} outputs of kind {ports[port].kind}"
                + (f"; name one: {', '.join(f'{name}.{o}' for o in fitting)}" if fitting else "")
            )
        output = fitting[0]
    if output not in outputs:
        raise UserError(f'steps.{step}.inputs.{port}: {name} has no output "{output}"{nearest(output, outputs)}')
    if output not in fitting:
        raise UserError(
            f"steps.{step}.inputs.{port}: takes a {ports[port].kind}, but {name}.{output} is a {outputs[output]}"
        )
    return name, output


def _pipelines(raw: Any, steps: dict[str, StepConfig], faults: list[str]) -> dict[str, list[str]]:
    """Checks the wiring and puts each pipeline's steps in order of work; the listed order breaks ties."""
    if not isinstance(raw, dict):
        faults.append(f"pipelines: expected a mapping of names to lists of steps, found {raw!r:.60}")
        return {}
    graph: dict[str, list[str]] = {}
    for step, config in steps.items():
        graph[step] = []
        for port, spec in stages.load(config.stage).INPUTS.items():
            if port not in config.inputs and not spec.optional:
                faults.append(f'steps.{step}.inputs: needs "{port}" ({spec.kind})')
        for port, ref in config.inputs.items():
            try:
                graph[step].append(_source(steps, step, port, ref)[0])
            except UserError as error:
                faults.append(error.message)
    try:
        tuple(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError as error:
        faults.append(f"steps feed each other in a circle: {' → '.join(error.args[1])}")
        return {}
    ordered = {}
    for name, members in raw.items():
        if not isinstance(members, list) or not members:
            faults.append(f"pipelines.{name}: expected a list of steps, found {members!r:.60}")
            continue
        unknown = [m for m in members if not isinstance(m, str) or m not in steps]
        faults += [f'pipelines.{name}: there is no step "{m}"{nearest(str(m), steps)}' for m in unknown]
        missing = [(m, up) for m in members if m not in unknown for up in graph[m] if up not in members]
        faults += [f"pipelines.{name}: {m} needs {up}, which is not in the list" for m, up in missing]
        if not unknown and not missing:
            ordered[str(name)] = _in_order(members, graph)
    return ordered


def _in_order(members: list[str], graph: dict[str, list[str]]) -> list[str]:
    done: list[str] = []
    waiting = list(dict.fromkeys(members))
    while waiting:
        ready = next(m for m in waiting if all(up in done for up in graph[m]))
        done.append(ready)
        waiting.remove(ready)
    return done


def _override(raw: dict[str, Any], text: str) -> dict[str, Any]:
    """`step.key=value` or `key=value` (a key at the top), the value read as YAML."""
    key, equals, value_text = text.partition("=")
    path = [p for p in key.strip().split(".")]
    if not equals or not all(path):
        raise UserError(
            f"--set {text!r} is not of the form step.key=value", hint="--set sft.trainer.learning_rate=1e-3"
        )
    value = yamlio.parse(value_text, f"--set {key}")
    steps = raw.get("steps") or {}
    if path[0] in steps:
        if len(path) == 1:
            raise UserError(f"--set {text!r} names a step but no key of it")
        path = ["steps", *path]
    elif path[0] not in raw and path[0] != "steps":
        known = [*steps, *(k for k in raw if k not in META_KEYS), "seed", "chat", "evaluation", "trainer"]
        if path[0] not in known:
            raise UserError(f'--set {text!r}: there is no step or key "{path[0]}"{nearest(path[0], known)}')
    for part in reversed(path):
        value = {part: value}
    return merge(raw, value)


def schema() -> dict[str, Any]:
    """JSON Schema of a profile, from the settings of every installed stage."""
    variants: list[dict[str, Any]] = []
    defs: dict[str, Any] = {}
    shared: dict[str, Any] = {}
    for name in sorted(stages.entry_points()):
        model = stages.load(name).Config.model_json_schema(ref_template="#/$defs/{model}")
        defs |= model.pop("$defs", {})
        model["properties"]["stage"] = {"const": name}
        model["title"] = f"step of stage {name}"
        shared |= {k: v for k, v in model["properties"].items() if k not in {"stage", "inputs", *META_KEYS}}
        required = [r for r in model.get("required", []) if r == "stage"]  # others may come from the top
        variants.append(model | {"required": required})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "r1pipe profile",
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "description": {"type": "string"},
            "extends": {"type": "string"},
            "steps": {"type": "object", "additionalProperties": {"anyOf": variants}},
            "pipelines": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
            **{k: {**v, "description": v.get("description", "Default of every step that has it.")}
               for k, v in sorted(shared.items())},
        },
        "additionalProperties": False,
        "$defs": defs,
    }  # fmt: skip
