"""What `data.source` may name, how its records are read, and what identifies its content."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from r1pipe.data import files, gym, hub
from r1pipe.data.rows import Row, What
from r1pipe.data.values import Record
from r1pipe.errors import UserError, nearest
from r1pipe.settings import DataSpec

GENERATED = "generated:"


def is_made(source: str) -> bool:
    """Made from a seed, not read: a generated set of ours, a task of reasoning-gym."""
    return source.startswith((GENERATED, gym.PREFIX))


def is_local(source: str) -> bool:
    """A path, or something that is no hub id."""
    path = Path(source).expanduser()
    looks = source.startswith((".", "/", "~")) or files.suffix(path) in files.SUFFIXES
    return looks or path.exists() or not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", source)


def make(spec: DataSpec, what: What, seed: int) -> list[Row]:
    """The rows of a source that is made from the seed."""
    if spec.rows is None:
        raise UserError(f"{spec.source} is endless: how many rows?", hint="set data.rows (--rows)")
    rows = gym.rows(spec, what, seed) if spec.source.startswith(gym.PREFIX) else _generated(spec, what, seed)
    return [{**row, "kind": spec.kind} for row in rows] if spec.kind else rows


def _generated(spec: DataSpec, what: What, seed: int) -> list[Row]:
    from r1pipe.data.generated import GENERATORS
    from r1pipe.data.generated import make as generate

    name = spec.source.removeprefix(GENERATED)
    given: dict[str, Any] = {"rows": spec.rows, "seed": seed}
    function = GENERATORS.get(name, {}).get(what)
    known = list(inspect.signature(function).parameters) if function else []
    if "split" in known:
        given["split"] = spec.split
    free = [k for k in known if k not in given]
    for key in spec.args if function else ():
        if key not in free:
            raise UserError(
                f'data.args of {spec.source} ({what}) has "{key}"{nearest(key, free)}',
                hint=f"its arguments: {', '.join(free)}",
            )
    return generate(name, what, **spec.args, **given)  # names an unknown generator or use itself


def records(spec: DataSpec, count: Callable[[str], None]) -> Iterator[Record]:
    """The records of files or of the hub. `count(reason)` for what is no record."""
    if not is_local(spec.source):
        yield from hub.read(spec)
        return
    if spec.args:
        raise UserError(f"data.args of the file {spec.source} has no use", hint="remove data.args")
    for path in files.find(spec.source, spec.split):
        yield from files.read(path, count)


def digest(spec: DataSpec) -> str:
    """What the rows come from, for fingerprints; light (no torch, no datasets).

    The generator's name and version, the sha256 of local files, or `id@revision` of a hub dataset.
    """
    if spec.source.startswith(GENERATED):
        from r1pipe.data.generated import VERSIONS

        name = spec.source.removeprefix(GENERATED)
        if name not in VERSIONS:
            raise UserError(f'unknown generated set "{name}"{nearest(name, VERSIONS)}', hint="correct data.source")
        return f"{name}@{VERSIONS[name]}"
    if spec.source.startswith(gym.PREFIX):
        return gym.digest(spec)
    if is_local(spec.source):
        return files.digest(spec.source, spec.split)
    return hub.pinned(spec)
