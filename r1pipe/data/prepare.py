"""`r1pipe data prepare`: the rows of a source, cleaned and checked, as a folder that is a source of its own.

data.jsonl      the rows
dropped.jsonl   every record that did not become one: reason, record number, id, text, what shows it (the n-gram, ...)
manifest.json   source and its digest, settings, counts by reason, versions, digest of the rows; written last
README.md       a card for people
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import random
import shutil
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from r1pipe.data import card, files, sources
from r1pipe.data.clean import VERSION as CLEANING
from r1pipe.data.convert import finished
from r1pipe.data.inspection import Progress, Reading, dropped_line, likely_use, summary, with_rows
from r1pipe.data.load import collect, look_at
from r1pipe.data.rows import What, datasets_digest, write_rows
from r1pipe.digest import file_digest
from r1pipe.environment import packages
from r1pipe.errors import UserError
from r1pipe.settings import DataSpec
from r1pipe.store import fsync_dir, write_json, write_text

SCHEMA_VERSION = 1
NAMES = ("data.jsonl", "dropped.jsonl", "README.md")  # and manifest.json, last
# A prepared folder is used as it is where these versions are the same.
VERSIONS = ("r1pipe", "math-verify", "reasoning-gym", "datasets")


def prepare(
    spec: DataSpec,
    use: What | None,
    out: Path,
    *,
    seed: int,
    force: bool = False,
    progress: Progress = lambda text: None,
    reading: Reading = lambda records: records,
) -> dict[str, Any]:
    """Writes the folder and returns its manifest. Raises UserError where `out` holds something else (without `force`),
    and where no row is left."""
    started = time.monotonic()
    check_out(spec, out, force=force)
    spec = with_rows(spec)
    what = use or likely_use(spec)
    digest = sources.digest(spec)
    found = collect(spec, what, seed=seed, check_golds=True, progress=progress, reading=reading)
    left_over = _draw(found.rows, spec, seed)
    if not found.rows:
        why = ", ".join(f"{n} {reason}" for reason, n in found.reasons().items()) or "the source is empty"
        raise UserError(
            f"no rows for {what} are left of {spec.source} (split {spec.split}): {why}", hint=look_at(spec)
        )
    progress("writing")
    rows = finished(found.rows)
    manifest = {
        "format": files.PREPARED,
        "schema_version": SCHEMA_VERSION,
        "use": what,
        "source": {**spec.model_dump(mode="json", exclude={"clean", "weight", "rows"}), "digest": digest},
        "clean": spec.clean.model_dump(mode="json") if spec.clean is not None else None,
        "against": _against(spec),
        "seed": seed,
        "records": found.records,
        "rows": len(rows),
        "digest": datasets_digest(rows),
        "dropped": found.reasons(),
        "not_drawn": left_over,
        **summary(found),
        **found.facts,
        "verifier": _verifier(),
        "cleaning": CLEANING,
        "versions": {"python": platform.python_version(), **_versions()},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    staging = out.parent / f".{out.name}.{os.getpid()}.part"
    try:
        staging.mkdir(parents=True)
        write_rows(staging / "data.jsonl", rows)
        write_rows(staging / "dropped.jsonl", (dropped_line(d) for d in found.dropped))
        manifest["sha256"] = file_digest(staging / "data.jsonl")
        manifest["seconds"] = round(time.monotonic() - started, 2)
        write_text(staging / "README.md", card.card(out.name, manifest, rows))
        write_json(staging / "manifest.json", manifest)
        _put(staging, out)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return manifest


def check_out(spec: DataSpec, out: Path, *, force: bool) -> None:
    """Raises UserError where `out` is not free: what is ours is replaced, what is not only with `force`."""
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file", hint="give another --out")
    if not sources.is_made(spec.source) and sources.is_local(spec.source):
        taken = {(out / name).resolve() for name in NAMES}
        if any(path.resolve() in taken for path in files.find(spec.source, spec.split)):
            raise UserError(f"--out {out} would overwrite the source {spec.source}", hint="give another --out")
    if out.is_dir() and any(out.iterdir()) and files.prepared(out) is None and not force:
        raise UserError(
            f"{out} holds files that are not of data prepare",
            hint=f"give another --out, or --force to put {', '.join(NAMES)} and manifest.json there",
        )


def _put(staging: Path, out: Path) -> None:
    """The finished folder in its place; the manifest goes first from an old one and comes last into a new one."""
    out.parent.mkdir(parents=True, exist_ok=True)
    if not out.exists():
        staging.rename(out)
    else:
        (out / "manifest.json").unlink(missing_ok=True)
        for name in (*NAMES, "manifest.json"):
            (staging / name).replace(out / name)
    fsync_dir(out)
    fsync_dir(out.parent)


def _draw(rows: list[Any], spec: DataSpec, seed: int) -> int:
    """Leaves `spec.rows` of the rows, drawn by the seed, in their order; how many were not drawn."""
    most = spec.rows
    if most is None or len(rows) <= most:
        return 0
    chosen = sorted(random.Random(f"{seed}/{spec.source}/{spec.split}").sample(range(len(rows)), most))
    left = len(rows) - most
    rows[:] = [rows[i] for i in chosen]
    return left


def _against(spec: DataSpec) -> list[dict[str, str]]:
    given: Sequence[DataSpec] = spec.clean.decontaminate if spec.clean is not None else ()
    return [{"source": s.source, "split": s.split, "digest": sources.digest(s)} for s in given]


def _verifier() -> str:
    from r1pipe.rewards import correctness

    return str(correctness.VERSION)


def _versions() -> dict[str, str]:
    found = dict(packages())
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        found["reasoning-gym"] = importlib.metadata.version("reasoning-gym")
    return {name: found[name] for name in VERSIONS if name in found}
