"""Manifests: the sealed record of a step, and the artifacts that it vouches for.

A manifest is written last (write, fsync, rename, fsync of the folder): where there is one, everything it names
was complete. The next step resolves its inputs from manifests alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from r1pipe import digest as dg
from r1pipe.chat import template_digest
from r1pipe.errors import UserError
from r1pipe.stage import DATASET, POLICY, REWARD_MODEL
from r1pipe.store import Attempt, append_json, fsync_dir, read_json, read_lines, write_text, writing

SCHEMA_VERSION = 1
DATA_FILE = "data.jsonl"


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FileEntry(_Model):
    """A file of an artifact. size, mtime_ns and inode only save re-reading it: the sha256 is what counts."""

    name: str
    sha256: str
    size: int
    mtime_ns: int
    inode: int

    def untouched(self, folder: Path) -> bool:
        """Are size, mtime and inode what was sealed? Then the digest is trusted unread."""
        try:
            stat = (folder / self.name).stat()
        except OSError:
            return False
        return (stat.st_size, stat.st_mtime_ns, stat.st_ino) == (self.size, self.mtime_ns, self.inode)


class Artifact(_Model):
    """A checkpoint or a dataset. `uri` is relative to the run folder, or repo@commit for a hub model."""

    kind: str
    uri: str
    digest: str
    producer: str = Field(description="step/folder that made it")
    files: list[FileEntry] = []
    meta: dict[str, Any] = {}


class InputRecord(_Model):
    """An input as it was read."""

    kind: str
    uri: str
    digest: str
    producer: str
    manifest_digest: str = Field(description="sha256 of the producer's manifest.json")


class Manifest(_Model):
    """What a step did: enough to trust it, to explain it and to do it again."""

    schema_version: Literal[1] = 1
    run: str
    step: str
    stage: str
    stage_version: str
    fingerprint: str
    fingerprint_of: dict[str, Any] = Field(description="what the fingerprint was made of")
    config: dict[str, Any]
    inputs: dict[str, InputRecord]
    outputs: dict[str, Artifact]
    metrics: dict[str, Any]
    evaluation: dict[str, Any] = Field({}, description="set -> mode -> metric -> {value, low, high, n}")
    counts: dict[str, float] = Field({}, description="what was dropped, cut, skipped, timed out")
    facts: dict[str, Any] = {}
    warnings: list[str] = []
    environment: dict[str, Any]
    chat_template_digest: str | None = None
    tokenizer_digest: str | None = None
    seed: int
    tokens: int = Field(0, description="tokens trained on or generated")
    seconds: float
    timing: dict[str, float] = Field({}, description="seconds by phase; startup is imports and process start")
    attempts: int = 1
    started: str
    finished: str


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def describe(kind: str, folder: Path, uri: str, producer: str, meta: dict[str, Any]) -> Artifact:
    """Digests what lies in `folder`, and puts it on the disk. Raises UserError where the output is not what `kind`
    promises."""
    with writing(folder):
        return _describe(kind, folder, uri, producer, meta)


def _describe(kind: str, folder: Path, uri: str, producer: str, meta: dict[str, Any]) -> Artifact:
    if kind == DATASET:
        return _dataset(folder, uri, producer, meta)
    if kind in (POLICY, REWARD_MODEL):
        return _checkpoint(kind, folder, uri, producer, meta)
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    entries = [_entry(p, folder) for p in files]
    return Artifact(
        kind=kind, uri=uri, digest=dg.files_digest((e.name, e.sha256) for e in entries), producer=producer,
        files=entries, meta=meta,
    )  # fmt: skip


def _entry(path: Path, folder: Path, sha256: str | None = None) -> FileEntry:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)  # sealed means on the disk
    finally:
        os.close(fd)
    stat = path.stat()
    return FileEntry(
        name=path.relative_to(folder).as_posix(),
        sha256=sha256 or dg.file_digest(path),
        size=stat.st_size,
        mtime_ns=stat.st_mtime_ns,
        inode=stat.st_ino,
    )


def _dataset(folder: Path, uri: str, producer: str, meta: dict[str, Any]) -> Artifact:
    path = folder / DATA_FILE
    if not path.is_file():
        raise UserError(f"{producer} declared a dataset, but {path} is not there")
    with path.open(encoding="utf-8", newline="\n") as lines:
        digest, rows = dg.rows_digest(lines)
    if rows == 0:
        raise UserError(f"{producer} made an empty dataset ({path})")
    entries = [_entry(p, folder) for p in sorted(folder.iterdir()) if p.is_file()]
    return Artifact(kind=DATASET, uri=uri, digest=digest, producer=producer, files=entries, meta={"rows": rows} | meta)


def _checkpoint(kind: str, folder: Path, uri: str, producer: str, meta: dict[str, Any]) -> Artifact:
    pickles = [p.name for pattern in dg.PICKLES for p in folder.glob(pattern)]
    if pickles:
        raise UserError(f"{folder} holds pickle files ({', '.join(pickles)}); a checkpoint is safetensors only")
    files = dg.checkpoint_files(folder)
    names = {p.name for p in files}
    if "config.json" not in names or not any(n.endswith(".safetensors") for n in names):
        raise UserError(f"{producer} declared a checkpoint, but {folder} has no config.json with safetensors weights")
    entries = [_entry(p, folder) for p in files]
    return Artifact(
        kind=kind,
        uri=uri,
        digest=dg.files_digest((e.name, e.sha256) for e in entries),
        producer=producer,
        files=entries,
        meta={
            "chat_template_digest": template_digest(dg.chat_template(folder)),
            "tokenizer_digest": dg.tokenizer_digest(folder),
        }
        | meta,
    )


def seal(attempt: Attempt, manifest: Manifest) -> None:
    """Writes manifest.json, once: a sealed result is never overwritten. Its sha256 is in the attempts log before, so
    that one which has changed is found."""
    if attempt.sealed:
        raise UserError(f"{attempt.manifest} is sealed already", hint="use --force for a new folder")
    text = manifest.model_dump_json(indent=2) + "\n"
    with writing(attempt.path):
        for folder, _, _ in os.walk(attempt.out):
            fsync_dir(Path(folder))
        for folder_above in (attempt.path.parent, attempt.path.parent.parent):  # they name the folder sealed here
            fsync_dir(folder_above)
    append_json(
        attempt.attempts_log, {"event": "sealing", "time": now(), "sha256": dg.text_digest(text)}, durable=True
    )
    write_text(attempt.manifest, text)


def changed(attempt: Attempt) -> str | None:
    """What is wrong with a manifest whose bytes are not those that were sealed; None where they are (or where an
    older version sealed it and did not say)."""
    said = [entry.get("sha256") for entry in read_lines(attempt.attempts_log) if entry.get("event") == "sealing"]
    if not said or (actual := dg.file_digest(attempt.manifest)) == said[-1]:
        return None
    return f"{attempt.manifest} has sha256 {actual[:12]}…, but {str(said[-1])[:12]}… was sealed: it has changed since"


def load(attempt: Attempt) -> Manifest:
    """The manifest of a sealed attempt. Raises UserError naming the file where it is not one."""
    try:
        return Manifest.model_validate(read_json(attempt.manifest))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(p) for p in first["loc"])
        raise UserError(
            f"{attempt.manifest} is not a manifest of schema {SCHEMA_VERSION}: {where}: {first['msg']}",
            hint="it was edited, or made by another version: move its folder away and run the step again",
        ) from error


def faults(artifact: Artifact, folder: Path, *, deep: bool, tick: Callable[[str], None] | None = None) -> list[str]:
    """What differs between an artifact and its folder; empty where it is intact.

    Without `deep`, files whose size, mtime and inode are as sealed are trusted. Tokenizer and chat template are
    named apart, since a run that mixes them trains on nonsense without any error.
    """
    found = []
    for entry in artifact.files:
        path = folder / entry.name
        if not path.is_file():
            found.append(f"{path} is missing")
            continue
        if not deep and entry.untouched(folder):
            continue
        if tick:
            tick(entry.name)
        actual = dg.file_digest(path)
        if actual != entry.sha256:
            what = {"chat_template.jinja": "chat template ", "tokenizer.json": "tokenizer "}.get(entry.name, "")
            found.append(
                f"{what}digest mismatch: {path} has sha256 {actual[:12]}…, its manifest sealed {entry.sha256[:12]}…"
            )
    if artifact.kind in (POLICY, REWARD_MODEL):
        sealed = {e.name for e in artifact.files}
        extra = [p.name for p in dg.checkpoint_files(folder) if p.name not in sealed]
        if extra:
            found.append(f"{folder} holds files that its manifest does not know: {', '.join(extra)}")
    return found
