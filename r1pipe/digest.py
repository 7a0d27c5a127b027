"""Digests of files, checkpoints and datasets. sha256 everywhere."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

# What belongs to a checkpoint artifact; optimizer state, training_args.bin and model cards do not.
CHECKPOINT_FILES = (
    "*.safetensors",
    "model.safetensors.index.json",
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
)
TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "merges.txt", "added_tokens.json")
PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt")


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values have equal text."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def text_digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def value_digest(value: Any) -> str:
    """Digest of a JSON-able value."""
    return text_digest(canonical(value))


def file_digest(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


_BIG = 64 * 2**20


def remembered_file_digest(path: Path) -> str:
    """`file_digest` of a file that is not ours, such as a base model's weights: one over 64 MiB is read once, and
    trusted while its size, mtime and inode stay (the user's cache folder remembers)."""
    stat = path.stat()
    if stat.st_size < _BIG:
        return file_digest(path)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "r1pipe" / "digests"
    name = text_digest(f"{path.resolve()} {stat.st_size} {stat.st_mtime_ns} {stat.st_ino}")
    entry = cache / name
    with contextlib.suppress(OSError):
        return entry.read_text()
    digest = file_digest(path)
    with contextlib.suppress(OSError):  # a home that cannot be written only costs the time to read again
        cache.mkdir(parents=True, exist_ok=True)
        partial = entry.with_suffix(f".{os.getpid()}")
        partial.write_text(digest)
        partial.replace(entry)
    return digest


def files_digest(entries: Iterable[tuple[str, str]]) -> str:
    """Digest of a set of files, from (relative name, digest) pairs."""
    return text_digest("".join(f"{digest} {name}\n" for name, digest in sorted(entries)))


def checkpoint_files(folder: Path) -> list[Path]:
    """The files of `folder` that make up a checkpoint artifact, sorted."""
    return sorted({p for pattern in CHECKPOINT_FILES for p in folder.glob(pattern) if p.is_file()})


def tokenizer_digest(folder: Path) -> str | None:
    """Digest of what turns text into token ids; None where there is no tokenizer."""
    found = [(n, file_digest(folder / n)) for n in TOKENIZER_FILES if (folder / n).is_file()]
    return files_digest(found)[:16] if found else None


def chat_template(folder: Path) -> str | None:
    """The chat template of a checkpoint folder: its own file first, then the tokenizer's config."""
    if (folder / "chat_template.jinja").is_file():
        return (folder / "chat_template.jinja").read_text(encoding="utf-8")
    config = folder / "tokenizer_config.json"
    if config.is_file():
        template = json.loads(config.read_text(encoding="utf-8")).get("chat_template")
        return template if isinstance(template, str) else None
    return None


def rows_digest(lines: Iterable[str]) -> tuple[str, int]:
    """Digest over the canonical form of JSON lines, and their number: the bytes on disk do not count."""
    total = hashlib.sha256()
    n = 0
    for line in lines:
        if line.strip():
            total.update(canonical(json.loads(line)).encode("utf-8", "surrogatepass") + b"\n")
            n += 1
    return total.hexdigest(), n
