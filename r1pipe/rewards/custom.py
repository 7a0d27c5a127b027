"""A reward function of the user's: TRL's signature, from an installed entry point or `module:function`.

    def no_apologies(prompts, completions, **columns):
        return [0.0 if "sorry" in c[0]["content"].lower() else 1.0 for c in completions]

It gets what TRL would give it (conversational prompts and completions, the row's fields as lists, completion_ids,
log_metric) and returns a number, or None where it does not apply; it may be `async`. It runs in killable workers,
not in the trainer: it sees no GPU, and cannot hang or crash a run. A batch is one call, as in TRL; where that call
raises, dies or takes too long, each completion is tried alone, so that only the one at fault is lost.

Policies: an exception or a crash is the function's fault (None, error); the time or memory limit, reached with one
completion alone, is the completion's (0.0). A number that is not finite is an error. The fingerprint of a step has
the digest of the function's file: imports of its own are not followed (set VERSION in its module to say so).
"""

from __future__ import annotations

import importlib.util
import math
import time
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field

from r1pipe.digest import file_digest
from r1pipe.errors import UserError
from r1pipe.rewards.verdict import Context, Row, Verdict
from r1pipe.rewards.workers import Outcome, Pool
from r1pipe.settings import Strict

OURS = ("messages", "group", "completion_ids")  # row fields that are not columns of the user's data


class Options(Strict):
    """Options of a part that uses the user's function."""

    args: dict[str, Any] = Field({}, description="Keyword arguments for the function.")
    limit_s: float = Field(10.0, gt=0, description="Seconds for one completion alone; a batch as one call gets twice.")
    batch_limit_s: float = Field(120.0, gt=0, description="Seconds for a batch.")
    memory_mb: int = Field(4096, ge=64, description="Address space of a worker, MiB.")
    workers: int = Field(2, ge=1, description="Worker processes, for completions tried alone.")


@cache
def version(target: str) -> str:
    """The digest of the file that a `module:function` is in; nothing of it is run."""
    module = target.partition(":")[0]
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.origin or not Path(spec.origin).is_file():
        raise UserError(f'there is no module "{module}" for the reward {target}', hint="is it on PYTHONPATH?")
    return file_digest(Path(spec.origin))[:16]


class Custom:
    """Batch form; the completions are whole. `metrics` holds what the function logged for the last batch."""

    def __init__(self, target: str, options: Options, context: Context) -> None:
        version(target)
        self.target, self.options = target, options
        self.metrics: dict[str, float] = {}
        self.pool = Pool(
            "r1pipe.rewards.customworker:prepare",
            argument={"target": target, "args": options.args},
            workers=options.workers,
            memory_mb=options.memory_mb,
            hint=f"the reward {target} cannot be imported or called: try it in a Python prompt",
        )

    def __call__(self, completions: list[str], rows: list[Row]) -> list[Verdict]:
        started = time.monotonic()
        (whole,) = self.pool.run(
            [_task(completions, rows)], limit_s=min(2 * self.options.limit_s, self.options.batch_limit_s)
        )
        if whole.status == "ok" and len(whole.value["scores"]) == len(rows):
            self.metrics = whole.value["metrics"]
            return [_verdict(score) for score in whole.value["scores"]]
        if whole.status == "ok":
            raise UserError(
                f"the reward {self.target} returned {len(whole.value['scores'])} scores for {len(rows)} completions",
                hint="return one number or None for each completion, in order",
            )
        if len(rows) == 1 and whole.status in ("error", "crash"):
            return [_lost(whole)]
        self.metrics = {}
        left = max(1.0, self.options.batch_limit_s - (time.monotonic() - started))
        tasks = [_task([text], [row]) for text, row in zip(completions, rows, strict=True)]
        alone = self.pool.run(tasks, limit_s=self.options.limit_s, batch_limit_s=left)
        return [_verdict(o.value["scores"][0]) if o.status == "ok" and o.value["scores"] else _lost(o) for o in alone]

    def close(self) -> None:
        self.pool.close()


def _task(completions: list[str], rows: list[Row]) -> dict[str, Any]:
    names = dict.fromkeys(name for row in rows for name in row if name not in OURS)
    task: dict[str, Any] = {
        "prompts": [row.get("messages", []) for row in rows],
        "completions": [[{"role": "assistant", "content": text}] for text in completions],
        "columns": {name: [row.get(name) for row in rows] for name in names},
    }
    if all("completion_ids" in row for row in rows):
        task["completion_ids"] = [list(row["completion_ids"]) for row in rows]
    return task


def _verdict(score: float | None) -> Verdict:
    if score is None:
        return Verdict(None, "unverifiable", "the function returned None: it does not apply")
    if not math.isfinite(score):
        return Verdict(None, "error", f"the function returned {score}")
    return Verdict(score, "scored")


def _lost(outcome: Outcome) -> Verdict:
    if outcome.status == "timeout":
        return Verdict(0.0, "timeout", outcome.detail)
    if outcome.status == "limit":
        return Verdict(0.0, "unverifiable", f"out of memory or too deep ({outcome.detail})")
    return Verdict(None, "error", outcome.detail or f"the function gave no score ({outcome.status})")
