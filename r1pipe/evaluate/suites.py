"""Suites: which sets `r1pipe evaluate` runs, and how. A shipped name, a YAML, a data file, or a source.

A suite is an evaluation's settings (`EvalConfig`) with a name. `configs/suites/README.md` shows one.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from r1pipe import yamlio
from r1pipe.config import merge
from r1pipe.data.files import SUFFIXES
from r1pipe.errors import UserError, nearest
from r1pipe.resources import configs_dir
from r1pipe.settings import DataSpec, EvalConfig, EvalSet
from r1pipe.stage import StageContext

ONE_SET = {"temperature": 0.6, "top_p": 0.95, "max_tokens": 4096}  # of a data file or a source given as a suite
ENDLESS_ROWS = 200  # of a generated source without --limit


class Suite(EvalConfig):
    """Sets and how they are sampled; every sample's text is kept unless `keep_samples` says otherwise."""

    name: str
    description: str = ""
    seed: int = Field(
        42, description="Of the sampling; the same as a profile's, so that equal sets give equal numbers."
    )
    keep_samples: int = Field(1_000_000, ge=0, description="Problems a set and mode whose texts are kept.")

    def of(self, part: EvalSet) -> dict[str, Any]:
        """All that the numbers of one set depend on, but for the model."""
        shared = self.model_dump(mode="json", exclude={"sets", "name", "description"})
        return shared | {"set": part.model_dump(mode="json")}


def shipped() -> list[Path]:
    return sorted((configs_dir() / "suites").glob("*.yaml"))


def load(name: str, overrides: Iterable[str] = (), *, only: Iterable[str] = (), limit: int | None = None,
         n: int | None = None) -> Suite:  # fmt: skip
    """The suite of a name, a YAML, a data file or a source, with `set.key=value` or `key=value` overrides.

    `only` picks sets, `limit` takes the first problems of each, `n` is the samples a problem. Raises UserError.
    """
    raw, where = _raw(name, limit)
    for override in overrides:
        raw = _override(raw, override)
    if not raw.get("sets"):
        raise UserError(f"{where} lists no sets")
    try:
        suite = Suite.model_validate(raw)
    except ValidationError as error:
        faults = "\n".join(f"  • {_place(e['loc'], raw)}: {_say(e)}" for e in error.errors())
        raise UserError(f"suite {where}:\n{faults}") from None
    sets = suite.sets
    if wanted := list(only):
        names = [part.name for part in sets]
        for one in wanted:
            if one not in names:
                raise UserError(f'suite {suite.name} has no set "{one}"{nearest(one, names)}')
        sets = [part for part in sets if part.name in wanted]
    return suite.model_copy(update={"sets": [_changed(part, limit, n) for part in sets]})


def _changed(part: EvalSet, limit: int | None, n: int | None) -> EvalSet:
    if limit is not None:
        rows = min(limit, part.data.rows or limit)
        part = part.model_copy(update={"data": part.data.model_copy(update={"rows": rows})})
    return part if n is None else part.model_copy(update={"n": n})


def _raw(name: str, limit: int | None) -> tuple[dict[str, Any], str]:
    path = Path(name).expanduser()
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise UserError(f"there is no suite file {path.absolute()}", hint=_hint())
        raw = yamlio.read(path)
        return {"name": path.stem, **raw}, str(path)
    if path.suffix in SUFFIXES or path.is_dir():
        data: dict[str, Any] = {"source": name}
        return {"name": path.stem, **ONE_SET, "sets": [{"name": path.stem, "data": data}]}, name
    if ":" in name:
        data = {"source": name, "split": "heldout" if name.startswith("generated:") else "test",
                "rows": limit or ENDLESS_ROWS}  # fmt: skip
        label = name.partition(":")[2]
        return {"name": label, **ONE_SET, "sets": [{"name": label, "data": data}]}, name
    path = configs_dir() / "suites" / f"{name}.yaml"
    if not path.is_file():
        raise UserError(f'unknown suite "{name}"{nearest(name, [p.stem for p in shipped()])}', hint=_hint())
    return {"name": path.stem, **yamlio.read(path)}, name


def _hint() -> str:
    return f"{', '.join(p.stem for p in shipped())}, a YAML, a data file, or a source such as generated:arithmetic"


def _override(raw: dict[str, Any], text: str) -> dict[str, Any]:
    """`set.key=value` of one set, else `key=value` of the suite; the value read as YAML."""
    key, equals, given = text.partition("=")
    head, *rest = (p.strip() for p in key.split("."))
    if not equals or not head or not all(rest):
        raise UserError(f"--set {text!r} is not of the form key=value or set.key=value", hint="--set aime-2024.n=8")
    value: Any = yamlio.parse(given, f"--set {key}")
    for part in reversed(rest):
        value = {part: value}
    sets = raw.get("sets") or []
    if rest and any(isinstance(s, dict) and s.get("name") == head for s in sets):
        return {**raw, "sets": [merge(s, value) if s.get("name") == head else s for s in sets]}
    known = [*Suite.model_fields, *(str(s.get("name")) for s in sets if isinstance(s, dict))]
    if head not in Suite.model_fields:
        raise UserError(f'--set {text!r}: there is no set or key "{head}"{nearest(head, known)}')
    return merge(raw, {head: value})


def _place(loc: tuple[int | str, ...], raw: dict[str, Any]) -> str:
    """`sets.0.n` with the name of the set."""
    parts = [str(p) for p in loc]
    if len(loc) > 1 and loc[0] == "sets" and isinstance(loc[1], int) and isinstance(raw["sets"], list):
        part = raw["sets"][loc[1]]
        parts[:2] = [f"set {part.get('name', loc[1]) if isinstance(part, dict) else loc[1]}"]
    return ".".join(parts) or "suite"


def _say(error: Any) -> str:
    if error["type"] == "extra_forbidden":
        known = [*Suite.model_fields, *EvalSet.model_fields, *DataSpec.model_fields]
        return f"unknown key{nearest(str(error['loc'][-1]), known)}"
    return str(error["msg"]).removeprefix("Value error, ")


def pinned(part: EvalSet, ctx: StageContext) -> EvalSet:
    """The set with the commit of its hub source: a source without a revision is taken as it is today, and says so."""
    from r1pipe.data.load import is_local

    source = part.data.source
    if part.data.revision or ":" in source or is_local(source):
        return part
    commit = _resolve(source)
    ctx.fact(f"{part.name}/revision", commit)
    ctx.warn(f"set {part.name}: {source} has no revision; it was taken at {commit}: pin that for the same problems")
    return part.model_copy(update={"data": part.data.model_copy(update={"revision": commit})})


def _resolve(source: str) -> str:
    """The commit of a dataset's main branch: asked of the hub, else what its local cache was filled from."""
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import HfHubHTTPError

    try:
        found = HfApi().dataset_info(source, timeout=30).sha
    except (HfHubHTTPError, OSError, ValueError) as error:
        cached = Path(constants.HF_HUB_CACHE) / f"datasets--{source.replace('/', '--')}" / "refs" / "main"
        if cached.is_file():
            return cached.read_text(encoding="utf-8").strip()
        first = str(error).strip().split("\n")[0][:200]
        raise UserError(
            f"{source} has no revision, and the hub does not say one: {first}",
            hint="check the id and the network, or set data.revision",
        ) from error
    if not found:
        raise UserError(f"the hub names no commit of {source}", hint="set data.revision")
    return found
