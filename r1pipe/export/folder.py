"""The folder of an export: written beside its place and renamed, so it is there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from r1pipe import digest as dg
from r1pipe.errors import UserError
from r1pipe.export.source import Source, read_json
from r1pipe.store import fsync_dir


@contextlib.contextmanager
def fresh(out: Path, *, force: bool) -> Iterator[Path]:
    """A temporary folder that becomes `out` when the block ends without an error.

    Raises UserError where `out` is there already and `force` does not say to replace it.
    """
    if out.exists() and not force:
        raise UserError(f"{out} is there already", hint="--out another place, or --force replaces it")
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is no folder", hint="--out another place")
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = out.with_name(f".{out.name}.{os.getpid()}.partial")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        yield temporary
        _flush(temporary)
        old = out.with_name(f".{out.name}.{os.getpid()}.old")
        if out.exists():
            out.rename(old)
        temporary.rename(out)
        fsync_dir(out.parent)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _flush(folder: Path) -> None:
    for path in folder.iterdir():
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    fsync_dir(folder)


def copy(source: Source, target: Path) -> list[str]:
    """The checkpoint's files, and nothing else; what was copied is held against the sealed digests."""
    names = [p.name for p in dg.checkpoint_files(source.folder)]
    if not any(name.endswith(".safetensors") for name in names):
        raise UserError(f"{source.folder} holds no *.safetensors", hint="convert pickles to safetensors first")
    for name in names:
        shutil.copyfile(source.folder / name, target / name)
    if source.manifest is not None:
        for entry in source.manifest.outputs[source.output].files:
            if dg.file_digest(target / entry.name) != entry.sha256:
                raise UserError(
                    f"{source.folder / entry.name} is not what was sealed", hint="r1pipe verify names what changed"
                )
    return names


def merge(source: Source, target: Path) -> list[str]:
    """An adapter merged into its base, in the base's dtype; the tokenizer and template beside it."""
    import peft
    import transformers

    adapter = read_json(source.folder / "adapter_config.json")
    base = Path(str(adapter.get("base_model_name_or_path"))).expanduser()
    if not (base / "config.json").is_file():
        raise UserError(
            f"the adapter {source.folder} names the base {base}, which is no folder with a config.json here",
            hint="put the base back there, or correct base_model_name_or_path in adapter_config.json",
        )
    if not (source.folder / "adapter_model.safetensors").is_file():
        raise UserError(
            f"{source.folder} holds no adapter_model.safetensors", hint="adapters are never read as pickles"
        )
    transformers.utils.logging.disable_progress_bar()
    model: Any = transformers.AutoModelForCausalLM.from_pretrained(base, dtype="auto", use_safetensors=True)
    merged: Any = peft.PeftModel.from_pretrained(model, source.folder).merge_and_unload()
    merged.config.use_cache = True
    merged.save_pretrained(target)
    for path in dg.checkpoint_files(base):
        if path.suffix != ".safetensors" and not path.name.endswith("index.json") and path.name != "config.json":
            own = source.folder / path.name  # a checkpoint has its own tokenizer
            shutil.copyfile(own if own.is_file() else path, target / path.name)
    return [p.name for p in dg.checkpoint_files(target)]
