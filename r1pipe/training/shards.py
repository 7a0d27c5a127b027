"""Work in shards that survive a kill: each is written whole or not at all, and is used again only for the same work.

No torch here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from r1pipe.training.checkpoint import write_json


def key_of(*parts: Any) -> str:
    """Digest of what a shard depends on (JSON-able)."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:16]


def split(items: Sequence[Any], size: int) -> list[list[Any]]:
    """Pieces of at most `size`, in order."""
    return [list(items[start : start + size]) for start in range(0, len(items), size)]


def read(folder: Path, index: int, key: str) -> dict[str, Any] | None:
    """A finished shard; None where there is none, or one of other work (other prompts, settings or model)."""
    path = _path(folder, index)
    if not path.is_file():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return None  # cannot happen by a kill (the rename is atomic); a damaged file is done again
    return found["result"] if found.get("key") == key else None


def run(
    folder: Path, pieces: list[list[Any]], key: str, work: Callable[[int, list[Any]], dict[str, Any]]
) -> tuple[list[dict[str, Any]], int]:
    """The results of `work(index, piece)` for every piece, in order, and how many were there already.

    A result is JSON-able. Only missing shards are worked on, so `work` must depend on its arguments alone.
    """
    folder.mkdir(parents=True, exist_ok=True)
    results, reused = [], 0
    for index, piece in enumerate(pieces):
        own = key_of(key, piece)
        result = read(folder, index, own)
        if result is None:
            result = work(index, piece)
            write_json(_path(folder, index), {"key": own, "result": result})
        else:
            reused += 1
        results.append(result)
    return results, reused


def _path(folder: Path, index: int) -> Path:
    return folder / f"shard-{index:05d}.json"
