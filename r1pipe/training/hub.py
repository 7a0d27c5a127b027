"""Where a pretrained model's files are: shipped, in a folder, or on the hub at a pinned commit."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from r1pipe.errors import UserError
from r1pipe.resources import data_dir
from r1pipe.settings import ModelConfig
from r1pipe.stage import StageContext
from r1pipe.training.model import SIDE_FILES, is_weights

# Asked of the hub; never *.bin, *.pt, *.pkl (pickles) nor *.py (code).
ALLOWED = ["*.safetensors", "*.safetensors.index.json", "config.json", *SIDE_FILES]


def local(model: ModelConfig) -> Path | None:
    """The folder of a model that is on this machine already; None for one that must be fetched."""
    if model.path.startswith("builtin:"):
        path = data_dir() / model.path.removeprefix("builtin:")
        if not (path / "config.json").is_file():
            raise UserError(f'there is no shipped model "{model.path}" ({path})', hint="builtin:tiny-base")
        return path
    path = Path(model.path).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise UserError(f"{path} holds no config.json, so it is no model folder")
        return path
    if model.path.startswith((".", "/", "~")) or model.path.count("/") != 1:
        raise UserError(
            f"base_model.path: there is no folder {path.absolute()}, and it is no hub id (owner/name)",
            hint="builtin:tiny-base, a folder, or an id such as Qwen/Qwen2.5-0.5B",
        )
    return None


def fetch(model: ModelConfig, ctx: StageContext) -> tuple[Path, str | None]:
    """The model's folder, and the commit it is at (hub only). Raises UserError where it cannot be had."""
    found = local(model)
    if found is not None:
        return found, None
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    ctx.phase("downloading")
    try:
        path = Path(snapshot_download(model.path, revision=model.revision, allow_patterns=ALLOWED))
    except LocalEntryNotFoundError as error:
        raise UserError(
            f"{model.path} is not in the local cache and the hub cannot be reached",
            hint="go online, download it beforehand, or set base_model.path to a folder",
        ) from error
    except (HfHubHTTPError, OSError) as error:
        raise UserError(
            f"{model.path} at revision {model.revision or 'main'} cannot be had: {error}",
            hint="look at base_model.path and base_model.revision",
        ) from error
    commit = path.name  # snapshots/<commit>
    if model.revision is None:
        ctx.warn(f"{model.path} has no base_model.revision; it was taken at {commit}: pin that for the same result")
    return path, commit


def weights(source: Path) -> list[Path]:
    """The weight files of a folder; raises UserError where they are pickles or not there."""
    found = sorted(p for p in source.iterdir() if is_weights(p.name))
    if any(p.suffix == ".safetensors" for p in found):
        return found
    pickles = [p.name for p in source.iterdir() if p.suffix in (".bin", ".pt", ".pth", ".pkl", ".ckpt")]
    if pickles:
        raise UserError(
            f"{source} holds its weights as pickles ({', '.join(sorted(pickles)[:3])}), which can run code",
            hint="convert them to safetensors first",
        )
    raise UserError(f"{source} holds no *.safetensors")


def link(source: Path, target: Path, *, ours: bool) -> None:
    """A copy; for a file of the hub's cache (not `ours`: nobody writes to it again) a hard link where that can be.

    A folder of the user's may be written over later, and a sealed artifact must not change with it.
    """
    target.unlink(missing_ok=True)
    if not ours:
        try:
            os.link(source.resolve(), target)
        except OSError:
            pass  # another file system
        else:
            return
    shutil.copyfile(source, target)
