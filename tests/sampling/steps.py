"""A sampling step on scripted replies, with a context built by hand: no torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from r1pipe.chat import Tags
from r1pipe.stage import POLICY, Input, StageContext
from stages import rejection_sampling

OUTPUTS = ("samples", "verdicts")
THOUGHT = "Adding the two numbers one after the other makes it."


def context(folder: Path, *, digest: str = "d" * 16, resume: bool = False, emit: Any = None) -> StageContext:
    out = {name: folder / "out" / name for name in OUTPUTS}
    for path in (folder / "work", *out.values()):
        path.mkdir(parents=True, exist_ok=True)
    for path in (p for o in out.values() for p in o.iterdir()):  # as the runner does before an attempt
        path.unlink()
    inputs = {"model": Input(POLICY, folder, digest, "reasoning-grpo")}
    ctx = StageContext(step="sampling", seed=7, inputs=inputs, outputs=out, work=folder / "work", resume=resume)
    if emit is not None:
        ctx.emit = emit
    return ctx


def problems(folder: Path, n: int = 12, **more: Any) -> dict[str, Any]:
    """A source of `n` sums; row i asks for i + 1."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "problems.jsonl"
    rows = [{"prompt": f"{i} + 1 = ?", "gold": str(i + 1), "kind": "number", **more} for i in range(n)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return {"source": str(path)}


def right(number: int, thought: str = THOUGHT) -> str:
    return Tags().wrap(thought, str(number))


def config(**more: Any) -> rejection_sampling.Config:
    replies = more.pop("replies", [right(3), right(4)])
    engine = {"kind": "scripted", "options": {"replies": replies, "pick": "seed", **more.pop("options", {})}}
    base = {"stage": "rejection-sampling", "engine": engine, "shard_size": 5, "sampling": {"n": 2, "max_tokens": 64}}
    return rejection_sampling.Config(**{**base, **more})


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def rows(ctx: StageContext) -> list[dict[str, Any]]:
    return lines(ctx.outputs["samples"] / "data.jsonl")


def samples(ctx: StageContext) -> list[dict[str, Any]]:
    return lines(ctx.outputs["verdicts"] / "samples.jsonl")


def digest(ctx: StageContext) -> tuple[bytes, ...]:
    """Everything that a step wrote."""
    return tuple(p.read_bytes() for name in OUTPUTS for p in sorted(ctx.outputs[name].iterdir()))
