"""Datasets of the hub, at a pinned commit, through `datasets`."""

from __future__ import annotations

from collections.abc import Iterator

from r1pipe.data.values import Record
from r1pipe.errors import UserError, nearest
from r1pipe.settings import DataSpec

# Arguments of load_dataset that `args` may set. trust_remote_code is not among them.
ARGS = ("name", "data_files", "data_dir")


def pinned(spec: DataSpec) -> str:
    """`id@revision`. Raises UserError where no revision is pinned."""
    if not spec.revision:
        raise UserError(
            f"the dataset {spec.source} has no pinned revision: its rows could change between two runs",
            hint="set data.revision (--revision) to a commit (the dataset's page lists them), or give a local file",
        )
    return f"{spec.source}@{spec.revision}"


def read(spec: DataSpec) -> Iterator[Record]:
    """The rows of a hub dataset. Raises UserError offline, for an unknown id, revision, split or configuration."""
    where = pinned(spec)
    for key in spec.args:
        if key not in ARGS:
            raise UserError(f'data.args of {where} has "{key}"{nearest(key, ARGS)}', hint=f"known: {', '.join(ARGS)}")
    import datasets
    from huggingface_hub.utils import logging

    logging.set_verbosity_error()  # a retry is no news; what comes of it is
    try:
        found = datasets.load_dataset(spec.source, split=spec.split, revision=spec.revision, **spec.args)
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:  # OSError: no network, no such id
        first = str(error).strip().split("\n")[0][:300]
        raise UserError(
            f"cannot load {where} (split {spec.split}): {first}",
            hint="check the id, data.revision, data.split, data.args.name and the network (HF_HUB_OFFLINE is read); "
            "or download it and give the file",
        ) from error
    yield from found
