"""The training loop of our sft and reasoning-grpo steps beside bare TRL scripts: same model, data and settings.

python -m bench.training.run                    # both steps, eight interleaved rounds: the table
python -m bench.training.run --steps sft --rounds 2
python -m bench.training.run --write            # and bench/training/RESULTS.md

The model is the embedded one (for GRPO: after a short cold start, so that lengths are those of training), the data and
settings are those of the profile tiny with fewer updates. The bare script (`bare.py`) gets the arguments object of our
trainer, so that no setting can differ; for GRPO it gets our rows too, in our order, and three plain functions as
rewards. A round runs every side once, in turn first to last and last to first, in one process.

Measured: seconds from train begin to train end, as the trainer's callbacks are told. What a run needs around that
(loading, tokenizing, checking, saving, digests) is listed apart. `ours, TRL's rollouts` is our step with
`rollouts: trl`: the machinery around the same loop. The table has the geometric mean of the ratios over the rounds
with its 95 % t-interval.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.ratios import interval, machine, machine_line, shown
from bench.training import bare

RESULTS = Path(__file__).with_name("RESULTS.md")
UPDATES = {"sft": 30, "reasoning-grpo": 8}
GOAL = 1.05  # upper end of the interval


class Clock:
    """Seconds of the last training loop, and the trainer that ran it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.trainer: Any = None

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        from transformers import Trainer, TrainerCallback

        clock, real = self, Trainer.train

        class Marks(TrainerCallback):
            def on_train_begin(self, *given: Any, **more: Any) -> None:
                clock.began = time.monotonic()

            def on_train_end(self, *given: Any, **more: Any) -> None:
                clock.seconds = time.monotonic() - clock.began

        def train(trainer: Any, *given: Any, **more: Any) -> Any:
            clock.trainer = trainer
            trainer.add_callback(Marks)
            return real(trainer, *given, **more)

        Trainer.train = train
        try:
            yield
        finally:
            Trainer.train = real

    began = 0.0


def main() -> None:
    options = _options()
    clock, found = Clock(), []
    with tempfile.TemporaryDirectory() as scratch, clock.watching():
        root = Path(scratch)
        models = _models(root, options.steps)
        for step in options.steps:
            found += _compare(step, models[step], options.rounds, clock, root)
    report = {"machine": machine("trl"), "rounds": options.rounds, "results": found}
    print(json.dumps(report, indent=1) if options.json else _markdown(report))
    if options.write:
        RESULTS.write_text(_markdown(report), encoding="utf-8")
        print(f"written: {RESULTS}", file=sys.stderr)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench.training.run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", nargs="+", choices=tuple(UPDATES), default=list(UPDATES))
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    if options.rounds < 2:
        parser.error("--rounds: an interval needs two rounds")
    return options


def _models(root: Path, steps: list[str]) -> dict[str, Path]:
    """The model that each step starts from."""
    base = _stage("base", root / "base", None)
    return {"sft": base} | (
        {"reasoning-grpo": _stage("sft", root / "cold", base)} if "reasoning-grpo" in steps else {}
    )


def _stage(step: str, folder: Path, model: Path | None, **settings: Any) -> Path:
    """Runs a step of the profile tiny in `folder`, in this process; the folder of its model."""
    from r1pipe import config, stage
    from r1pipe.stage import POLICY, Input, StageContext

    ours = config.load("tiny").steps[step]
    ours = type(ours).model_validate(ours.model_dump(exclude_unset=True) | settings)
    module = stage.load(ours.stage)
    out, work = folder / "model", folder / "work"
    for path in (out, work):
        path.mkdir(parents=True)
    inputs = {} if model is None else {"model": Input(POLICY, model, "d" * 16, "before")}
    module.run(StageContext(step=step, seed=42, inputs=inputs, outputs={"model": out}, work=work), ours)
    return out


def _compare(step: str, model: Path, rounds: int, clock: Clock, root: Path) -> list[dict[str, Any]]:
    """Each of our ways against the bare script."""
    from r1pipe import config

    profile = config.load("tiny").steps[step]
    updates = UPDATES[step]
    grpo = step == "reasoning-grpo"
    trainer = dict(profile.trainer) | ({} if grpo else {"max_steps": updates})
    settings: dict[str, Any] = {"trainer": trainer | {"log_completions": False} if grpo else trainer}
    if grpo:
        settings |= {"steps": updates, "reference_refresh": None}
    number = iter(range(10_000))

    def ours(**more: Any) -> None:
        folder = root / f"{step}-{next(number)}"
        _stage(step, folder, model, **settings, **more)
        shutil.rmtree(folder)

    ours()  # warms up, and gives the arguments and the rows of the bare script
    args, rows = clock.trainer.args, clock.trainer.train_dataset
    if not grpo:
        from r1pipe.data.load import load_all

        rows = load_all(profile.data, "traces", seed=42, tags=profile.chat.tags)

    def theirs() -> None:
        mine = copy.deepcopy(args)
        mine.output_dir = str(root / f"bare-{next(number)}")
        if grpo:
            bare.grpo(model, rows, mine)
        else:
            mine.dataset_kwargs = None
            mine.completion_only_loss = True
            bare.sft(model, rows, mine)
        shutil.rmtree(mine.output_dir)

    sides: dict[str, Callable[[], None]] = {"bare TRL": theirs, "ours": ours}
    if grpo:
        sides["ours, TRL's rollouts"] = lambda: ours(rollouts="trl")
    theirs()
    loop: dict[str, list[float]] = {name: [] for name in sides}
    around: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(rounds):
        for name in list(sides) if turn % 2 else reversed(sides):
            began = time.monotonic()
            sides[name]()
            loop[name].append(clock.seconds)
            around[name].append(time.monotonic() - began - clock.seconds)
            print(f"{step} {name}: {clock.seconds:.2f} s, around it {around[name][-1]:.2f} s", file=sys.stderr)
    return [
        {
            "step": step, "side": name, "updates": updates,
            "loop": statistics.median(loop[name]), "around": statistics.median(around[name]),
            "ratio": interval([a / b for a, b in zip(loop[name], loop["bare TRL"], strict=True)]),
        }
        for name in sides
    ]  # fmt: skip


def _markdown(report: dict[str, Any]) -> str:
    lines = [
        "# Our training steps beside bare TRL scripts", "",
        f"{machine_line(report['machine'])}. {report['rounds']} interleaved rounds; made by "
        "`python -m bench.training.run --write`.", "",
        "loop: seconds from train begin to train end (median). around it: loading, tokenizing, checking, saving "
        "(median); a process's start and the imports are left out on both sides. ratio: loop seconds to bare TRL's, "
        f"geometric mean with its 95 % interval; the goal is an upper end of at most {GOAL}.", "",
        "| step | side | updates | loop, s | around it, s | ratio |",
        "|---|---|---:|---:|---:|---|",
    ]  # fmt: skip
    for r in report["results"]:
        ratio = "1" if r["side"] == "bare TRL" else shown(r["ratio"])
        lines.append(f"| {r['step']} | {r['side']} | {r['updates']} | {r['loop']:.2f} | {r['around']:.2f} | {ratio} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
