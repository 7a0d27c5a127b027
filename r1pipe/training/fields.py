"""The field names of the trainers' config classes, read from the installed sources without importing them.

`import trl` costs seconds and torch; a profile with a typo must be refused in a fraction of one. So the class
bodies are parsed (`ast`), following their bases through the files named in `_HOMES`.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from r1pipe.errors import UserError, nearest

# class -> (top-level package, file inside it). Bases that are not listed carry no settings of a user's.
_HOMES: dict[str, tuple[str, str]] = {
    "SFTConfig": ("trl", "trainer/sft_config.py"),
    "GRPOConfig": ("trl", "trainer/grpo_config.py"),
    "RewardConfig": ("trl", "trainer/reward_config.py"),
    "_BaseConfig": ("trl", "trainer/base_config.py"),
    "TrainingArguments": ("transformers", "training_args.py"),
    "BitsAndBytesConfig": ("transformers", "utils/quantization_config.py"),
    "LoraConfig": ("peft", "tuners/lora/config.py"),
    "PeftConfig": ("peft", "config.py"),
    "PeftConfigMixin": ("peft", "config.py"),
}
_SIMPLE: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "str": (str,),
    "None": (type(None),),
    "dict": (dict,),
    "list": (list, tuple),
}


@functools.cache
def _classes(package: str, file: str) -> dict[str, ast.ClassDef]:
    """Top-level classes of a file. `find_spec` of a top-level package runs none of its code."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise UserError(f"the package {package} is not installed", hint=f"pip install {package}")
    path = Path(next(iter(spec.submodule_search_locations))) / file
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


@functools.cache
def known(cls_name: str) -> dict[str, str]:
    """Field -> its annotation as text (`int | None`), own fields before inherited ones."""
    package, file = _HOMES[cls_name]
    node = _classes(package, file).get(cls_name)
    if node is None:
        raise UserError(f"{cls_name} is not in {package}/{file} of the installed version")
    found: dict[str, str] = {}
    init = next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
    if init is not None:  # a dataclass with an __init__ of its own takes what that takes
        for arg in [*init.args.args[1:], *init.args.kwonlyargs]:
            found[arg.arg] = ast.unparse(arg.annotation) if arg.annotation else "Any"
        return found
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            if item.target.id.startswith("_") or _no_init(item):
                continue
            found[item.target.id] = ast.unparse(item.annotation)
    for base in node.bases:
        name = base.id if isinstance(base, ast.Name) else getattr(base, "attr", "")
        if name in _HOMES:
            found = {**known(name), **found}
    return found


@functools.cache
def default(cls_name: str, field: str) -> Any:
    """The default of a field where it is a literal; raises KeyError otherwise."""
    package, file = _HOMES[cls_name]
    node = _classes(package, file)[cls_name]
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and item.target.id == field:
            value = item.value
            if isinstance(value, ast.Call):
                value = next((k.value for k in value.keywords if k.arg == "default"), None)
            if value is not None:
                return ast.literal_eval(value)
    for base in node.bases:
        name = base.id if isinstance(base, ast.Name) else ""
        if name in _HOMES and field in known(name):
            return default(name, field)
    raise KeyError(f"{cls_name}.{field}")


def _no_init(item: ast.AnnAssign) -> bool:
    """`field(init=False)` and ClassVar are no settings."""
    if "ClassVar" in ast.unparse(item.annotation):
        return True
    call = item.value
    return isinstance(call, ast.Call) and any(
        k.arg == "init" and isinstance(k.value, ast.Constant) and k.value.value is False for k in call.keywords
    )


def _accepts(annotation: str, value: Any) -> bool:
    """Is `value` of the annotated type? Only plain unions are judged; anything else is accepted."""
    if annotation.startswith("Optional[") and annotation.endswith("]"):
        annotation = f"{annotation[9:-1]} | None"
    if annotation.startswith("Union[") and annotation.endswith("]"):
        annotation = annotation[6:-1].replace(",", " |")
    names = [part.strip().split("[")[0] for part in annotation.split("|")]
    if "[" in annotation and annotation.count("[") != sum(1 for p in annotation.split("|") if "[" in p):
        return True  # nested generics
    if any(name not in _SIMPLE for name in names):
        return True
    if isinstance(value, bool):
        return "bool" in names  # Python's bool is an int; a setting's is not
    return any(isinstance(value, _SIMPLE[name]) for name in names)


def check_keys(where: str, mapping: Mapping[str, Any], cls_name: str) -> None:
    """Raises UserError at the first key of `mapping` that `cls_name` does not have or whose type it refuses.

    `where` names the place in the profile (`trainer`), for the message.
    """
    fields = known(cls_name)
    for key, value in mapping.items():
        if key not in fields:
            close = nearest(key, fields)
            raise UserError(
                f'{where}.{key}: {cls_name} has no "{key}"{close if "did you mean" in close else ""}',
                hint=f"{where}: takes the arguments of the installed {cls_name}",
            )
        if not _accepts(fields[key], value):
            raise UserError(
                f"{where}.{key}: found {value!r} ({type(value).__name__}), expected {fields[key]}",
                hint=f"write {where}.{key} as {fields[key]}"
                + (", with a point: 1.0e-6" if isinstance(value, str) and _is_number(value) else ""),
            )


def _is_number(text: str) -> bool:
    """YAML reads 1e-6 as text; people write it."""
    try:
        float(text)
    except ValueError:
        return False
    return True
