"""Trainer callbacks: progress and history, whole checkpoints, and a stop at the first number that is not finite.

Imported inside a step only (it loads transformers).
"""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from r1pipe.errors import StepFailed
from r1pipe.stage import StageContext
from r1pipe.training import checkpoint, trackers

# Trainer's name -> the one a person sees. Parts of a reward are logged as `reward/<name>` by the composer.
SHOWN = {
    "loss": "loss",
    "reward": "reward",
    "reward/accuracy": "accuracy",
    "reward/format": "format",
    "reward/language": "language",
    "reward/helpful": "helpful",
    "reward/harmless": "harmless",
    "kl": "kl",
    "completions/mean_length": "length",
    "completions/clipped_ratio": "cut",
    "frac_reward_zero_std": "zero_signal",
    "mean_token_accuracy": "token_accuracy",
    "accuracy": "pair_accuracy",
    "learning_rate": "lr",
}


class Progress(TrainerCallback):
    """Logs go to `ctx.progress` and, a line each, to `log.jsonl` in the work folder.

    After a resume the lines of steps that will be done again are dropped, so no step stands there twice.
    """

    def __init__(self, ctx: StageContext, name: str = "log.jsonl") -> None:
        self.ctx = ctx
        self.path = ctx.work / name
        self.history: list[dict[str, Any]] = []
        self._tokens: float | None = None
        self._time = time.monotonic()

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        trackers.link(self.ctx, args)
        self.history = [row for row in read_history(self.path) if row["step"] <= state.global_step]
        self._time = time.monotonic()
        if self.ctx.is_main:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("w", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in self.history)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if control.should_save:  # the loss is looked at before anything is saved
            control.should_log = True

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        row = {k: v for k, v in (logs or {}).items() if isinstance(v, (int, float)) and not isinstance(v, bool)}
        if not row or "train_runtime" in row:
            return
        row = {"step": state.global_step, **row}
        tokens, now = row.get("num_tokens"), time.monotonic()
        if tokens is not None and self._tokens is not None and now > self._time:
            row["tokens_per_s"] = (tokens - self._tokens) / (now - self._time)
        self._tokens, self._time = tokens, now
        self.history.append(row)
        if not self.ctx.is_main:
            return
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        shown = {SHOWN[k]: v for k, v in row.items() if k in SHOWN}
        if "tokens_per_s" in row:
            shown["tokens_per_s"] = row["tokens_per_s"]
        self.ctx.progress(state.global_step, state.max_steps, **shown)


def read_history(path: Path) -> list[dict[str, Any]]:
    """The lines of a `log.jsonl`; a last line cut by a kill is left out."""
    if not path.is_file():
        return []
    rows = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue  # only the last line can be cut, and its step is done again
    return rows


class StopOnNonFinite(TrainerCallback):
    """Ends the step at the first loss or KL that is not finite, before such weights are saved (known-failures e14)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        watched = ["loss", "kl"] if args.fp16 else ["loss", "kl", "grad_norm"]  # a loss scaler skips inf gradients
        for name in watched:
            value = (logs or {}).get(name)
            if isinstance(value, (int, float)) and not math.isfinite(value):
                kept = checkpoint.last_complete(self.folder, delete=False)
                raise StepFailed(
                    f"{name} is {value} at training step {state.global_step}: training has diverged. "
                    f"The last good checkpoint is {kept.name if kept else 'none (it diverged before the first)'}",
                    hint="lower trainer.learning_rate or trainer.max_grad_norm, or raise trainer.warmup_steps",
                )


class Checkpoints(TrainerCallback):
    """Declares each checkpoint whole once every process has written its part. Must be the last callback."""

    def __init__(self, ctx: StageContext) -> None:
        self.ctx = ctx

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        from accelerate import PartialState

        PartialState().wait_for_everyone()
        if self.ctx.is_main:
            folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            (folder / "training_args.bin").unlink(missing_ok=True)  # a pickle with paths in it; nothing reads it
            (folder / "README.md").unlink(missing_ok=True)
            checkpoint.mark(folder)
        PartialState().wait_for_everyone()
