"""Samples on disk: shards of append-only files that a kill at any moment leaves usable.

<root>/<digest of the settings>-<digest of the prompts>/
  settings.json                    what the samples were made with
  shard-00000.prompts.jsonl        the rows of its prompts
  shard-00000.texts.jsonl          a line a sample, as it was made
  shard-00000.verdicts.jsonl       a line a sample, as it was judged
  shard-00000.done.json            the marker: the shard is whole, and these are the sizes of its files

A sample is known by the content of its prompt, the settings and its index: prompts that are left out, added or put in
another order leave the others as they are (known-failures f6), and a shard takes over what an earlier folder with the
same settings holds. What a kill left of a last line is cut off before the next one is written (f4).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from r1pipe.data.rows import write_rows
from r1pipe.digest import value_digest
from r1pipe.store import fsync_dir, write_json

Row = dict[str, Any]
Name = tuple[str, int]  # key of the prompt, index of the sample
SETTINGS = "settings.json"
SAMPLES = "samples.jsonl"  # of a finished step
SYNC_S = 1.0  # what is written is on the disk after so long; a kill of the process loses none of it


class Log:
    """Lines that are only ever added to a file. One writer."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.torn = 0  # lines that a kill had cut
        self._handle: Any = None
        self._synced = 0.0

    def read(self) -> Iterator[Row]:
        """The rows; lines that are no JSON objects are passed over and counted."""
        if not self.path.is_file():
            return
        with self.path.open("rb") as handle:
            for line in handle:
                try:
                    row = json.loads(line) if line.endswith(b"\n") else None
                except ValueError:
                    row = None
                if isinstance(row, dict):
                    yield row
                else:
                    self.torn += 1

    def append(self, rows: Iterable[Row]) -> None:
        """Adds lines in one write; ASCII, so that no text can hold a line end."""
        data = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows).encode()
        if not data:
            return
        if self._handle is None:
            self._handle = self._open()
        self._handle.write(data)
        if time.monotonic() - self._synced > SYNC_S:
            self.sync()

    def _open(self) -> Any:
        fresh = not self.path.exists()
        handle = self.path.open("r+b" if not fresh else "x+b", buffering=0)
        handle.truncate(_whole(handle))
        handle.seek(0, os.SEEK_END)
        if fresh:
            fsync_dir(self.path.parent)
        return handle

    def sync(self) -> None:
        if self._handle is not None:
            os.fsync(self._handle.fileno())
            self._synced = time.monotonic()

    def close(self) -> None:
        if self._handle is not None:
            self.sync()
            self._handle.close()
            self._handle = None

    def size(self) -> int:
        return self.path.stat().st_size if self.path.is_file() else 0


def _whole(handle: Any) -> int:
    """Bytes up to the end of the last whole line."""
    at = handle.seek(0, os.SEEK_END)
    while at > 0:
        start = max(0, at - 65_536)
        handle.seek(start)
        found = handle.read(at - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        at = start
    return 0


class Shard:
    """One shard: its prompts, and what is there of their samples."""

    def __init__(self, folder: Path, number: int, prompts: Sequence[Any], rules: str) -> None:
        stem = f"shard-{number:05d}"
        self.number = number
        self.prompts = list(prompts)
        self.rules = rules
        self.wanted: set[Name] = {(p.key, i) for p in prompts for i in range(p.n)}
        self.texts: dict[Name, Row] = {}
        self.verdicts: dict[Name, Row] = {}
        self.failed: dict[Name, Row] = {}  # requests that another run should try again: never written
        self.finished = False
        self.torn = 0
        self._rows = folder / f"{stem}.prompts.jsonl"
        self._texts = Log(folder / f"{stem}.texts.jsonl")
        self._verdicts = Log(folder / f"{stem}.verdicts.jsonl")
        self._marker = folder / f"{stem}.done.json"

    @property
    def key(self) -> str:
        """What the marker vouches for."""
        return value_digest([sorted(self.wanted), self.rules])[:16]

    def marker(self) -> Row | None:
        """What the marker says, where it is of this very shard and the files are as it says."""
        try:
            said = json.loads(self._marker.read_text())
        except (OSError, ValueError):
            return None
        sizes = {"key": self.key, "texts": self._texts.size(), "verdicts": self._verdicts.size()}
        return said if isinstance(said, dict) and said | sizes == said else None

    def load(self) -> None:
        """Reads what is there."""
        for row in self._texts.read():
            name = (row.get("key"), row.get("index"))
            if name in self.wanted:
                self.texts[name] = row  # type: ignore[index]
        for row in self._verdicts.read():
            name = (row.get("key"), row.get("index"))
            if name in self.texts and row.get("rules") == self.rules:
                self.verdicts[name] = row  # type: ignore[index]
        self.torn = self._texts.torn + self._verdicts.torn

    def open(self, earlier: Earlier) -> int:
        """Loads it and takes over what earlier folders hold; how many samples those gave. What a verifier failed on
        is to be judged again."""
        if not self._rows.is_file():
            write_rows(self._rows, [p.row | {"key": p.key} for p in self.prompts])
        self.load()
        self.verdicts = {name: row for name, row in self.verdicts.items() if not _ours(row)}
        taken = [row for name in sorted(self.wanted - set(self.texts)) if (row := earlier.take(name))]
        self.add_texts(taken)
        return len(taken)

    def have(self, prompt: Any) -> frozenset[int]:
        return frozenset(i for i in range(prompt.n) if (prompt.key, i) in self.texts)

    def add_texts(self, rows: Sequence[Row]) -> None:
        self._texts.append(rows)
        self.texts |= {(row["key"], row["index"]): row for row in rows}

    def add_verdicts(self, rows: Sequence[Row]) -> None:
        self._verdicts.append([row | {"rules": self.rules} for row in rows])
        self.verdicts |= {(row["key"], row["index"]): row for row in rows}

    @property
    def whole(self) -> bool:
        """Is every sample there and judged, or known to have failed?"""
        return not self.finished and len(self.verdicts) + len(self.failed) == len(self.wanted)

    def finish(self) -> None:
        """On the disk, and marked where nothing is to be tried again; the texts leave the memory."""
        self.close()
        if not self.failed and not any(map(_ours, self.verdicts.values())):
            kept = sum(row["reason"] is None for row in self.verdicts.values())
            sizes = {"texts": self._texts.size(), "verdicts": self._verdicts.size()}
            write_json(self._marker, {"key": self.key, **sizes, "samples": len(self.wanted), "kept": kept})
        self.finished = True
        self.release()

    def release(self) -> None:
        """Forgets what can be read again."""
        self.texts, self.verdicts = {}, {}

    def close(self) -> None:
        self._texts.close()
        self._verdicts.close()

    def samples(self) -> Iterator[tuple[Any, list[Row]]]:
        """Each prompt with its samples in order of index: text, tokens, finish, why, reason, verdicts."""
        self.load()
        for prompt in self.prompts:
            names = [(prompt.key, i) for i in range(prompt.n)]
            yield prompt, [self.failed[name] if name in self.failed else self._join(name) for name in names]
        self.release()

    def _join(self, name: Name) -> Row:
        verdict = self.verdicts[name]
        return {**self.texts[name], **{field: verdict[field] for field in ("reason", "right", "verdicts")}}


def _ours(verdict: Row) -> bool:
    """Is a verdict the fault of a verifier (a judge that was not reached), and not the sample's?"""
    return any(v.get("status") == "error" for v in verdict["verdicts"].values())


class Earlier:
    """What other folders hold of samples with the same settings: shards, or what a finished step kept of its samples.
    Read when it is first asked for."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = list(folders)
        self._places: dict[Name, tuple[Path, int]] | None = None

    def take(self, name: Name) -> Row | None:
        if not self.folders:
            return None
        if self._places is None:
            self._places = {}
            for folder in self.folders:
                for path in [*sorted(folder.glob("shard-*.texts.jsonl")), folder / SAMPLES]:
                    self._scan(path)
        if name not in self._places:
            return None
        path, at = self._places[name]
        with path.open("rb") as handle:
            handle.seek(at)
            return _text(json.loads(handle.readline()))

    def _scan(self, path: Path) -> None:
        assert self._places is not None
        if not path.is_file():
            return
        at = 0
        with path.open("rb") as handle:
            for line in handle:
                try:
                    row = json.loads(line) if line.endswith(b"\n") else {}
                    if row.get("reason") != "failed":
                        self._places[(row["key"], row["index"])] = (path, at)
                except (ValueError, KeyError, TypeError):
                    pass  # torn or foreign: it is made again
                at += len(line)


def _text(row: Row) -> Row:
    """The sample as it was made: without verdicts, and as it was before it was rewritten."""
    made: Row = {k: row[k] for k in ("key", "index", "seed", "text", "tokens", "finish", "why") if k in row}
    return made | {"text": row.get("rewritten_from", row["text"])}


class Store:
    """The shards of one step, for one kind of settings.

    `root` holds the folders of this attempt, `others` are folders of earlier ones that may hold samples. `rules`:
    digest of what judges the samples.
    """

    def __init__(
        self,
        root: Path,
        prompts: Sequence[Any],
        *,
        settings: Row,
        rules: str,
        shard_size: int,
        others: Sequence[Path] = (),
    ) -> None:
        self.settings = settings
        layout = value_digest([shard_size, [[p.key, p.n] for p in prompts]])[:8]
        self.folder = root / f"{value_digest(settings)[:8]}-{layout}"
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / SETTINGS).is_file():
            write_json(self.folder / SETTINGS, settings)
        near = [f for f in (*sorted(p for p in root.iterdir() if p.is_dir()), *others) if f != self.folder]
        self.earlier = Earlier([f for f in near if settings_of(f) == settings])
        pieces = [prompts[at : at + shard_size] for at in range(0, len(prompts), shard_size)]
        self.shards = [Shard(self.folder, number, piece, rules) for number, piece in enumerate(pieces)]

    def samples(self) -> Iterator[tuple[Any, list[Row]]]:
        """Every prompt with its samples, in the order of the prompts."""
        for shard in self.shards:
            yield from shard.samples()

    def close(self) -> None:
        for shard in self.shards:
            shard.close()


def settings_of(folder: Path) -> Row | None:
    """What the samples in a folder were made with; None where it does not say."""
    try:
        found = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def foreign(root: Path, settings: Row) -> list[tuple[Path, int, list[str]]]:
    """Folders below `root` with samples of other settings: the folder, how many, and what differs."""
    found = []
    for folder in sorted(p for p in root.iterdir() if p.is_dir()) if root.is_dir() else []:
        other = settings_of(folder)
        if other is None or other == settings:
            continue
        lines = sum(1 for log in folder.glob("shard-*.texts.jsonl") for _ in log.open("rb"))
        if lines:
            found.append((folder, lines, sorted(_differences(other, settings))))
    return found


def _differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {*old, *new}:
            yield from _differences(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    elif old != new:
        yield f"{path} {old} → {new}"
