"""Results of `r1pipe evaluate`: sealed, found again, never overwritten. Loads no torch.

    runs/<run>/evaluations/                     of a run's steps; runs/evaluations/ of other models
      <suite>.json                              what the suite came to: {"suite", "models": {name: {"digest", "source",
                                                "parent", "sets": {set: {"folder", "settings"}}}}}; `folder` is below
                                                this one, equal `settings` digests mean equally sampled sets
      model-<digest 12>/<set>-<key 12>[-k]/     one set on one model
        samples.jsonl                           a line a sample: id, mode, index, prompt, gold, text, tokens, finish,
                                                score, status, detail
        records.jsonl                           a line a problem and mode, as `paired` reads them
        result.json                             `Result`, written last

The key is the digest of the model's files and of all that the numbers depend on: the set and its sampling, the chat
settings, the engine, the versions of the verifiers, the digest of the source. A set whose key has a result is not run
again. One whose files were changed since is (-k): nothing is written over.
`Result.metrics` is mode -> metric -> {"value", "low", "high", "n"}, with `problems`, `samples`, `skipped`, `status`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from r1pipe import digest as dg
from r1pipe import manifest as mf
from r1pipe.data.rows import write_rows
from r1pipe.errors import UserError
from r1pipe.store import fsync_dir, read_json, read_lines, write_json

FOLDER = "evaluations"
RESULT, SAMPLES, RECORDS = "result.json", "samples.jsonl", "records.jsonl"


class Result(BaseModel):
    """One set on one model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[1] = 1
    key: str
    key_of: dict[str, Any] = Field(description="what the key was made of")
    model: dict[str, str] = Field(description="name, digest, source")
    suite: str = Field(description="the suite that asked for it first")
    set: str
    files: mf.Artifact
    metrics: dict[str, Any]
    counts: dict[str, float] = {}
    facts: dict[str, Any] = {}
    warnings: list[str] = []
    environment: dict[str, Any]
    tokens: int
    seconds: float
    started: str
    finished: str


class Cache:
    """The results below one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root / FOLDER

    def folder(self, model: str, part: str, key: str, number: int = 1) -> Path:
        name = f"{part}-{key[:12]}" if number == 1 else f"{part}-{key[:12]}-{number}"
        return self.root / f"model-{model[:12]}" / name

    def find(self, model: str, part: str, key: str) -> tuple[Path, Result | None]:
        """The folder of a set on a model, and its result where there is a whole one; else the folder to write in."""
        number = 1
        while True:
            folder = self.folder(model, part, key, number)
            if not (folder / RESULT).is_file():
                return folder, None
            result = load(folder)
            if result.key == key and not mf.faults(result.files, folder, deep=False):
                return folder, result
            number += 1

    def write(self, folder: Path, texts: list[dict[str, Any]], records: list[dict[str, Any]], **about: Any) -> Result:
        """Seals a result: the files, then what vouches for them."""
        shutil.rmtree(folder, ignore_errors=True)  # half-written by a run that was killed: it has no result.json
        try:
            folder.mkdir(parents=True)
            write_rows(folder / SAMPLES, texts)
            write_rows(folder / RECORDS, records)
        except OSError as error:
            raise UserError(
                f"cannot write in {folder}: {error.strerror}", hint="check space and permissions"
            ) from error
        where = folder.relative_to(self.root).as_posix()
        result = Result(files=mf.describe("evaluation", folder, where, where, {}), **about)
        fsync_dir(folder)
        write_json(folder / RESULT, result.model_dump(mode="json"))
        return result

    def note(self, suite: str, models: dict[str, dict[str, Any]]) -> None:
        """Writes what a suite came to; models and sets of earlier calls stay while the model is the same."""
        path = self.root / f"{suite}.json"
        before = read_json(path) if path.is_file() else {}
        merged = dict(before.get("models", {}))
        for name, about in models.items():
            old = merged.get(name, {})
            same = old.get("digest") == about["digest"]
            merged[name] = about | {"sets": (old["sets"] if same else {}) | about["sets"]}
        value = {"schema_version": 1, "suite": suite, "models": merged}
        if value != before:
            write_json(path, value)

    def suites(self) -> Iterator[dict[str, Any]]:
        """What every suite that was run here came to, for a report."""
        for path in sorted(self.root.glob("*.json")):
            yield read_json(path)

    def result(self, folder: str) -> Result:
        """The result at a path that a suite's file names."""
        return load(self.root / folder)

    def records(self, folder: Path) -> list[dict[str, Any]]:
        return list(read_lines(folder / RECORDS))


def load(folder: Path) -> Result:
    """Raises UserError naming the file where it is no result."""
    try:
        return Result.model_validate(read_json(folder / RESULT))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(p) for p in first["loc"])
        raise UserError(
            f"{folder / RESULT} is no evaluation result: {where}: {first['msg']}", hint=f"move {folder} away"
        ) from error


def key_of(
    model: str, settings: dict[str, Any], chat: dict[str, Any], engine: dict[str, Any], source: str
) -> dict[str, Any]:
    """What the numbers of a set on a model depend on."""
    return {
        "model": model,
        "settings": settings,
        "chat": chat,
        "engine": {k: v for k, v in engine.items() if k != "batch_size"},
        "source": source,
        "verifiers": verifiers(),
    }


def verifiers() -> dict[str, str]:
    """Versions of all that judges a text."""
    from r1pipe.rewards import correctness, format, instructions, language

    modules = {"accuracy": correctness, "format": format, "language": language, "instructions": instructions}
    return {name: str(module.VERSION) for name, module in modules.items()}


def key(parts: dict[str, Any]) -> str:
    return dg.value_digest(parts)
