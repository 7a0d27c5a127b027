"""Trainer callbacks: progress and history, training health, whole checkpoints.

Imported inside a step only (it loads transformers).
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from r1pipe.errors import StepFailed
from r1pipe.stage import StageContext
from r1pipe.training import checkpoint, health, trackers

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


class Health(TrainerCallback):
    """Drives `health.Monitor` with the rows of the log; stands after `Progress` and before `Checkpoints`.

    A stop raises StepFailed. Checkpoints that may hold the fault lose their marker before, so that no resume takes
    them; while a check is on its way to a stop nothing is saved, so that the last good one is still there.
    """

    def __init__(
        self, ctx: StageContext, progress: Progress, monitor: health.Monitor, folder: Path, fact: str = "health"
    ) -> None:
        self.ctx, self.progress, self.monitor, self.folder, self.fact = ctx, progress, monitor, folder, fact
        self._read = 0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._look(control)  # the rows of an earlier attempt, after a resume

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        self._look(control)

    def on_train_end(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
        self.check_weights(model, state.global_step)
        self.ctx.fact(self.fact, self.monitor.facts())

    def check_weights(self, model: Any, step: int) -> None:
        """The last update can spoil weights whose loss nobody sees any more."""
        if self.monitor.health.non_finite != "off" and not _all_finite(model):
            self._found(self.monitor.spoiled(step))

    def _look(self, control: Any) -> None:
        rows, self._read = self.progress.history[self._read :], len(self.progress.history)
        found = [one for row in rows for one in self.monitor.see(row)]
        found, in_doubt = _as_main((found, self.monitor.in_doubt()))
        for one in found:
            self._found(one)
        if in_doubt:
            control.should_save = False
        if rows:
            self.ctx.fact(self.fact, self.monitor.facts())

    def _found(self, one: health.Finding | None) -> None:
        if one is None:
            return
        if one.action != "stop":
            self.ctx.warn(one.text())
            return
        good = self._drop_doubtful(one.healthy)
        kept = f"the last good checkpoint is {good.name}" if good else "there is no checkpoint from before the fault"
        way = f"unchanged, the same command goes on from {good.name}" if good else "unchanged, it begins anew"
        raise StepFailed(
            f"health: {one.said}; {kept}",
            hint=f"{one.key}. With other settings the step begins anew; {way} and most likely meets this again"
            + ("" if one.check == health.NonFinite.name else f"; {self._setting(one)}: warn lets it pass"),
        )

    def _setting(self, one: health.Finding) -> str:
        return f"steps.{self.monitor.about.step}.health.{one.check}"

    def _drop_doubtful(self, healthy: int) -> Path | None:
        """Takes their markers from the checkpoints that may hold the fault; returns the last good one.

        The row of step N is measured with the weights after step N - 1, so a checkpoint is known to be good only
        where a later row is healthy.
        """
        if self.ctx.is_main:
            for step in checkpoint.steps(self.folder):
                if step >= healthy:
                    (self.folder / f"checkpoint-{step}" / checkpoint.MARKER).unlink(missing_ok=True)
        good = [step for step in checkpoint.steps(self.folder) if step < healthy]
        whole = (self.folder / f"checkpoint-{step}" for step in reversed(good))
        return next((path for path in whole if checkpoint.is_complete(path)), None)


def watch(
    ctx: StageContext,
    settings: health.TrainHealth | health.RolloutHealth,
    args: Any,
    progress: Progress,
    *,
    section: str | None = None,
    groups: int = 1,
    formats: tuple[str, ...] = (),
) -> Health:
    """The health of a trainer with the arguments `args`; `section` names one of several in a step."""
    about = health.About(
        step=ctx.step,
        keys=".".join(["steps", ctx.step, *([section] if section else []), "trainer"]),
        learning_rate=args.learning_rate,
        max_grad_norm=args.max_grad_norm or 0.0,
        fp16=bool(args.fp16),
        beta=getattr(args, "beta", 0.0),
        temperature=getattr(args, "temperature", 1.0),
        max_completion_length=getattr(args, "max_completion_length", None),
        groups=groups,
        formats=formats,
    )
    folder = Path(args.output_dir)
    fact = f"{section}/health" if section else "health"
    return Health(ctx, progress, health.Monitor(settings, about), folder, fact)


def _all_finite(model: Any) -> bool:
    """Is every trained weight of this process, and of the others, a finite number?"""
    import torch
    from accelerate import PartialState

    trained = [p for p in model.parameters() if p.requires_grad]
    fine = all(bool(torch.isfinite(getattr(p, "_local_tensor", p)).all()) for p in trained)  # FSDP2 holds a part
    if PartialState().num_processes == 1:
        return fine
    from accelerate.utils import gather_object

    return all(gather_object([fine]))


def _as_main(value: Any) -> Any:
    """What the main process has for `value`: all processes must decide the same."""
    from accelerate import PartialState

    if PartialState().num_processes == 1:
        return value
    from accelerate.utils import broadcast_object_list

    return broadcast_object_list([value])[0]


class _AlreadyTrained(Exception):
    """The checkpoint that was loaded is of the last step."""


def train(trainer: Any, last: Path | None) -> None:
    """Trains, from the checkpoint `last` where there is one.

    From one of the last step, which a kill while the step is saved or evaluated leaves, transformers (5.19) trains a
    step more: it looks at max_steps after a step only. `Checkpoints` stops it before.
    """
    try:
        trainer.train(resume_from_checkpoint=str(last) if last else None)
    except _AlreadyTrained:
        trainer.callback_handler.on_train_end(trainer.args, trainer.state, trainer.control)


class Checkpoints(TrainerCallback):
    """Declares each checkpoint whole once every process has written its part, and its weights are finite. Must be
    the last callback."""

    def __init__(self, ctx: StageContext, health: Health) -> None:
        self.ctx = ctx
        self.health = health

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step >= state.max_steps:
            raise _AlreadyTrained

    def on_save(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
        from accelerate import PartialState

        self.health.check_weights(model, state.global_step)
        PartialState().wait_for_everyone()
        if self.ctx.is_main:
            folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            (folder / "training_args.bin").unlink(missing_ok=True)  # a pickle with paths in it; nothing reads it
            (folder / "README.md").unlink(missing_ok=True)
            checkpoint.mark(folder)
        PartialState().wait_for_everyone()
