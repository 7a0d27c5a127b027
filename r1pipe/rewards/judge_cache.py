"""Verdicts of a judge that were paid for already: in memory, and in a folder where one is given.

One small JSON file an entry, `ab/abcdef....json`, written to a temporary name and renamed, so that several processes
can share the folder and a killed one leaves no half of an entry. An entry that cannot be read is not there.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path

from r1pipe.errors import UserError

MOST_REPLY = 4_000  # characters of a reply that are kept for people to read


class Cache:
    """Score by key. Safe to use from threads."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._memory: dict[str, float] = {}
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryFile(dir=folder):
                    pass
            except OSError as error:
                raise UserError(
                    f"the judge's cache {folder} cannot be written: {error}",
                    hint="look at rewards.judge.options.cache",
                ) from error

    def get(self, key: str) -> float | None:
        """The score of a key, if it is known."""
        if key not in self._memory and self.folder is not None:
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                score = json.loads(self._path(self.folder, key).read_text(encoding="utf-8"))["score"]
                if isinstance(score, float) and 0 <= score <= 1:
                    self._memory[key] = score
        return self._memory.get(key)

    def put(self, key: str, score: float, reply: str) -> None:
        """Keeps a score, and on disk the end of the reply that gave it."""
        self._memory[key] = score
        if self.folder is None:
            return
        path = self._path(self.folder, key)
        text = json.dumps({"score": float(score), "reply": reply[-MOST_REPLY:]})
        with contextlib.suppress(OSError):  # a full disk costs a call later, not this score
            path.parent.mkdir(exist_ok=True)
            handle, partial = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".partial")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(text)
                os.replace(partial, path)
            except OSError:
                os.unlink(partial)
                raise

    @staticmethod
    def _path(folder: Path, key: str) -> Path:
        return folder / key[:2] / f"{key}.json"
