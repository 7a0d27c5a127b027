"""Trackers: TensorBoard, Weights & Biases, MLflow and Trackio, through the trainers' own `report_to`.

What is ours: the run's name, the step and the manifest are set in each of them; names and packages are checked before
anything loads; samples stay on this machine unless the step says `upload_samples: true`. A variable that the user set
(WANDB_PROJECT, MLFLOW_TRACKING_URI, …) is left as it is. Light until `link`: no torch at import.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from r1pipe.errors import UserError, nearest
from r1pipe.stage import StageContext

# tracker -> the packages of which one must be there
PACKAGES = {
    "tensorboard": ("tensorboard", "tensorboardX"),
    "wandb": ("wandb",),
    "mlflow": ("mlflow",),
    "trackio": ("trackio",),
}
PROJECT = "r1pipe"
_PLACE = re.compile(r"(?P<run>[^/]+)/(?P<step>[^/]+)/(?P<attempt>[0-9a-f]{8}(?:-\d+)?)/work(?:/(?P<part>[^/]+))?")


def names(report_to: Any) -> list[str]:
    """The trackers of a `report_to`; ValueError with the nearest for one that is not known."""
    given = [report_to] if isinstance(report_to, str) else list(report_to or ())
    if given in (["none"], []):
        return []
    for name in given:
        if name == "all":
            raise ValueError(
                f"trainer.report_to: all sends to whatever is installed; name the trackers: {', '.join(PACKAGES)}"
            )
        if name not in PACKAGES:
            raise ValueError(f'trainer.report_to: there is no tracker "{name}"{nearest(str(name), PACKAGES)}')
    return given


def check_installed(trainer: Mapping[str, Any]) -> None:
    """Raises UserError naming the package that a tracker of `trainer` lacks."""
    for name in names(trainer.get("report_to")):
        packages = PACKAGES[name]
        if not any(importlib.util.find_spec(package) for package in packages):
            raise UserError(
                f"trainer.report_to names {name}, and the package {packages[0]} is not installed",
                hint=f"pip install {packages[0]}, or remove it from report_to",
            )


def place(ctx: StageContext) -> dict[str, str]:
    """Run, step, attempt and manifest of a step, from where its work folder is."""
    found = _PLACE.search(ctx.work.absolute().as_posix())
    if found is None:  # outside a run: a test, a script
        return {"run": PROJECT, "step": ctx.step, "manifest": ""}
    root = ctx.work.absolute()
    while root.name != "work":
        root = root.parent
    part = f"/{found['part']}" if found["part"] else ""
    return {
        "run": found["run"],
        "step": found["step"] + part,
        "attempt": found["attempt"],
        "manifest": str(root.parent / "manifest.json"),
    }


def prepare(ctx: StageContext, trainer: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of the trainer that name the run, and the trackers' own variables; {} without a tracker."""
    wanted = names(trainer.get("report_to"))
    if not wanted:
        return {}
    check_installed(trainer)
    where = place(ctx)
    name = f"{where['run']}/{where['step']}"
    ctx.fact("trackers", wanted)
    os.environ["TENSORBOARD_LOGGING_DIR"] = str(ctx.work / "tensorboard")  # else in the checkpoints, by host name
    slug = re.sub(r"[^\w-]", "-", f"{name}-{where.get('attempt', '')}").strip("-")[:64]
    values = {
        "WANDB_PROJECT": PROJECT,
        "WANDB_RUN_GROUP": where["run"],
        "WANDB_TAGS": ",".join([where["run"], where["step"], f"seed-{ctx.seed}"]),
        "WANDB_DIR": str(ctx.work),
        "WANDB_RUN_ID": slug,  # a resumed step goes on in the same run
        "WANDB_RESUME": "allow",
        "WANDB_SILENT": "true",
        "MLFLOW_EXPERIMENT_NAME": where["run"],
        "MLFLOW_TRACKING_URI": f"sqlite:///{_run_folder(ctx) / 'mlflow.db'}",
        "MLFLOW_TAGS": json.dumps(tags(ctx)),
    }
    own = ("WANDB_RUN_ID", "WANDB_TAGS", "MLFLOW_TAGS")  # of this step, whatever the shell says
    for key, value in values.items():
        if key in own:
            os.environ[key] = value
        else:
            os.environ.setdefault(key, value)
    return {"run_name": trainer.get("run_name") or name, "project": trainer.get("project") or PROJECT}


def tags(ctx: StageContext) -> dict[str, str]:
    """What a tracker is told about a step, its manifest above all."""
    return {f"r1pipe.{key}": value for key, value in {**place(ctx), "seed": str(ctx.seed)}.items() if value}


def _run_folder(ctx: StageContext) -> Path:
    manifest = place(ctx)["manifest"]
    return Path(manifest).parent.parent.parent if manifest else ctx.work.absolute()


def link(ctx: StageContext, args: Any) -> None:
    """Called when training begins, after the trackers' callbacks: writes run, step and manifest into each tracker.

    TRL reads `args.report_to` once more when it sends tables of samples: it is emptied here unless the step allows it
    (the trackers' callbacks exist by now and go on logging numbers).
    """
    wanted = ctx.facts.get("trackers") or []
    if wanted and ctx.is_main:
        told = tags(ctx)
        if "tensorboard" in wanted:
            from torch.utils.tensorboard import SummaryWriter

            writer = SummaryWriter(log_dir=os.environ["TENSORBOARD_LOGGING_DIR"])  # type: ignore[no-untyped-call]
            for key, value in told.items():
                writer.add_text(key, value)  # type: ignore[no-untyped-call]
            writer.close()  # type: ignore[no-untyped-call]
        for name in ("wandb", "trackio"):
            if name in wanted:
                module = importlib.import_module(name)
                module.config.update(told, allow_val_change=True)
    if not ctx.facts.get("upload_samples"):
        args.report_to = []
