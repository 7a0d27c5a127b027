"""YAML as people expect it: `1e-4` is a number; `on`, `1:30` and `2026-01-01` are text; a repeated key is an error.

A file that somebody sent must not hurt: values are JSON's types alone, and what an anchor is used for counts as often
as it stands there, so that a kilobyte of anchors of anchors is not a gigabyte of values.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from r1pipe.errors import UserError

MOST_VALUES = 100_000
MOST_DEPTH = 64


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML 1.2's scalars on PyYAML's safe loader."""


def _tag(name: str) -> str:
    return f"tag:yaml.org,2002:{name}"


_OURS = {_tag(name) for name in ("float", "bool", "int", "timestamp")}
Loader.yaml_implicit_resolvers = {
    key: [(tag, regexp) for tag, regexp in resolvers if tag not in _OURS]
    for key, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver(
    _tag("float"),
    re.compile(
        r"^[-+]?(?:(?:\d[\d_]*)?\.\d[\d_]*(?:[eE][-+]?\d+)?|\d[\d_]*\.?(?:[eE][-+]?\d+)|\d[\d_]*\.|\.(?:inf|nan))$"
    ),
    list("-+0123456789."),
)
Loader.add_implicit_resolver(
    _tag("int"), re.compile(r"^(?:[-+]?\d[\d_]*|0o[0-7]+|0x[0-9a-fA-F]+)$"), list("-+0123456789")
)
Loader.add_implicit_resolver(_tag("bool"), re.compile(r"^(?:true|True|false|False)$"), list("tTfF"))
# What a profile may hold: no bytes, dates, sets or ordered maps, which no JSON of ours could write down.
Loader.yaml_constructors = {
    tag: make
    for tag, make in yaml.SafeLoader.yaml_constructors.items()
    if tag is None or tag in {_tag(name) for name in ("null", "bool", "int", "float", "str", "seq", "map")}
}


def _integer(loader: Any, node: yaml.ScalarNode) -> int:
    text = loader.construct_scalar(node).replace("_", "")
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    try:
        return int(text, base)
    except ValueError:
        problem = f"{text:.20} is no number" if len(text) < 4000 else f"a number of {len(text)} digits"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None


def _values(node: yaml.Node, counted: dict[int, int], depth: int = 0) -> int:
    """How many values a node is, anchors followed; raises where that is too many or too deep."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) in counted:
        return counted[id(node)]
    if depth > MOST_DEPTH:  # also what holds itself
        problem = f"over {MOST_DEPTH} levels, or an anchor that holds itself"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
    inside = [n for pair in node.value for n in pair] if isinstance(node, yaml.MappingNode) else node.value
    found = 1 + sum(_values(n, counted, depth + 1) for n in inside)
    if found > MOST_VALUES:
        problem = f"over {MOST_VALUES:,} values, anchors followed"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
    counted[id(node)] = found
    return found


def _mapping(loader: Any, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        if key_node.tag == _tag("merge"):  # `<<: *anchor`; own keys win over merged ones
            continue
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str | int | float | bool | type(None)):
            raise yaml.constructor.ConstructorError(None, None, "a key must be text", key_node.start_mark)
        if key in seen:
            raise yaml.constructor.ConstructorError(None, None, f'key "{key}" stands twice', key_node.start_mark)
        seen.add(key)
    loader.flatten_mapping(node)
    return {loader.construct_object(k, deep=True): loader.construct_object(v, deep=True) for k, v in node.value}


Loader.add_constructor(_tag("map"), _mapping)
Loader.add_constructor(_tag("int"), _integer)


def _load(source: str) -> Any:
    loader = Loader(source)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _values(node, {})
        return loader.construct_document(node)
    finally:
        loader.dispose()


def parse(source: str, where: str) -> Any:
    """The value of a YAML text. Raises UserError with line and column."""
    try:
        return _load(source)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        at = f" line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise UserError(f"{where}{at} is not valid YAML: {problem}") from error


def text(path: Path) -> str:
    """A text file in UTF-8, with or without a byte-order mark. Raises UserError naming the file."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise UserError(f"there is no file {path}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text: byte {error.start + 1}", hint="save it as UTF-8") from error
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def read(path: Path) -> dict[str, Any]:
    """A YAML file whose top is a mapping. Raises UserError naming the file."""
    value = parse(text(path), str(path))
    if not isinstance(value, dict):
        raise UserError(f"{path} holds {type(value).__name__}, expected a mapping of keys")
    return value
