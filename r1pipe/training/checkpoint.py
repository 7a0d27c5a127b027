"""Checkpoints that say whether they are whole.

A trainer killed while it saves leaves a folder that looks like a checkpoint. So the last thing written into one is
`complete.json` with the size and digest of every file; a checkpoint without a valid one is deleted.
No torch here.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

MARKER = "complete.json"
_DIGEST_UP_TO = 256 * 2**20  # bytes; larger files are checked by size only (hashing 80 GB takes minutes a save)


def write_json(path: Path, value: Any) -> None:
    """Atomically: a reader sees the old file or the new one."""
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False, indent=1, sort_keys=True)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def mark(folder: Path) -> None:
    """Declares a checkpoint whole."""
    files = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.name != MARKER):
        size = path.stat().st_size
        files[str(path.relative_to(folder))] = {
            "size": size,
            "sha256": _sha256(path) if size <= _DIGEST_UP_TO else None,
        }
    write_json(folder / MARKER, {"files": files})


def is_complete(folder: Path) -> bool:
    """Does every file that the marker names have the size and digest that it had?"""
    try:
        files = json.loads((folder / MARKER).read_text(encoding="utf-8"))["files"]
        for name, told in files.items():
            path = folder / name
            if path.stat().st_size != told["size"]:
                return False
            if told["sha256"] is not None and _sha256(path) != told["sha256"]:
                return False
    except (OSError, ValueError, KeyError, TypeError):
        return False  # no marker, a cut one, or a missing file: all mean "not whole"
    return True


def steps(folder: Path) -> list[int]:
    """Numbers of the checkpoint folders, whole or not."""
    if not folder.is_dir():
        return []
    found = (re.fullmatch(r"checkpoint-(\d+)", p.name) for p in folder.iterdir() if p.is_dir())
    return sorted(int(m.group(1)) for m in found if m)


def last_complete(folder: Path, *, delete: bool = True) -> Path | None:
    """The newest whole checkpoint under `folder`; torn ones that are newer are deleted (where `delete`)."""
    for step in reversed(steps(folder)):
        path = folder / f"checkpoint-{step}"
        if is_complete(path):
            return path
        if delete:
            shutil.rmtree(path, ignore_errors=True)
    return None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
