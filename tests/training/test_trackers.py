"""Trackers in the real trainers, on this machine alone: names, the manifest's place, and samples that stay here."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from r1pipe.errors import UserError
from r1pipe.stage import StageContext
from r1pipe.training import sft, trackers
from r1pipe.training.settings import GRPOStep, TrainerStep
from tests.training import tiny


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = dict(os.environ)
    for name in list(os.environ):
        if name.startswith(("WANDB_", "MLFLOW_", "TENSORBOARD_", "TRACKIO_")):
            monkeypatch.delenv(name)
    yield
    for name in set(os.environ) - set(before):
        del os.environ[name]


def context(tmp: Path, **inputs: Any) -> StageContext:
    """A context in the place that a run gives it."""
    made = tiny.context(tmp, **inputs)
    made.work = tmp / "runs" / "mine-full" / "sft" / "0a1b2c3d-2" / "work"
    made.work.mkdir(parents=True, exist_ok=True)
    return made


def step(report_to: Any, **trainer: Any) -> dict[str, Any]:
    return {"max_length": 128, "max_steps": 2, "per_device_train_batch_size": 4, "gradient_checkpointing": False,
            "report_to": report_to, **trainer}  # fmt: skip


@pytest.mark.parametrize(
    ("given", "said"),
    [("wandbb", 'did you mean "wandb"'), (["tensorbord"], "tensorboard"), ("all", "name the trackers")],
)
def test_a_tracker_that_is_not_known_is_refused_with_the_profile(given: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        GRPOStep(stage="reasoning-grpo", trainer={**tiny.GRPO, "report_to": given})


@pytest.mark.parametrize("given", [None, "none", [], "wandb", ["tensorboard", "mlflow", "trackio"]])
def test_the_known_ones_are_taken(given: Any) -> None:
    GRPOStep(stage="reasoning-grpo", trainer={**tiny.GRPO, "report_to": given})


def test_a_missing_package_is_named_before_anything_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="names mlflow, and the package mlflow is not installed") as caught:
        trackers.prepare(context(tmp_path), step("mlflow"))
    assert "pip install mlflow" in str(caught.value)


def test_run_step_and_manifest_come_from_the_place(tmp_path: Path) -> None:
    ctx = context(tmp_path)
    where = trackers.place(ctx)
    assert (where["run"], where["step"], where["attempt"]) == ("mine-full", "sft", "0a1b2c3d-2")
    assert where["manifest"] == str(tmp_path / "runs" / "mine-full" / "sft" / "0a1b2c3d-2" / "manifest.json")
    ctx.work = ctx.work / "helpful"  # a reward model's
    assert trackers.place(ctx)["step"] == "sft/helpful"
    assert trackers.place(ctx)["manifest"] == where["manifest"]


def test_names_are_set_for_each_tracker_and_what_the_user_set_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setenv("WANDB_PROJECT", "theirs")
    ctx = context(tmp_path)
    made = trackers.prepare(ctx, step(["wandb", "mlflow"]))
    assert made == {"run_name": "mine-full/sft", "project": "r1pipe"}
    assert os.environ["WANDB_PROJECT"] == "theirs"
    assert os.environ["WANDB_RUN_ID"] == "mine-full-sft-0a1b2c3d-2"
    assert os.environ["WANDB_TAGS"].split(",")[:2] == ["mine-full", "sft"]
    assert json.loads(os.environ["MLFLOW_TAGS"])["r1pipe.manifest"].endswith("manifest.json")
    assert os.environ["MLFLOW_TRACKING_URI"] == f"sqlite:///{tmp_path}/runs/mine-full/mlflow.db"
    assert trackers.prepare(ctx, step("wandb", run_name="own"))["run_name"] == "own"


def test_nothing_is_set_without_a_tracker(tmp_path: Path) -> None:
    before = dict(os.environ)
    assert trackers.prepare(context(tmp_path), step([])) == {}
    assert dict(os.environ) == before


def test_samples_leave_only_where_the_step_says_so(tmp_path: Path) -> None:
    class Args:
        report_to = ("wandb",)

    ctx, args = context(tmp_path), Args()
    ctx.is_main = False
    trackers.link(ctx, args)
    assert args.report_to == []
    ctx.fact("upload_samples", True)
    args.report_to = ("wandb",)
    trackers.link(ctx, args)
    assert args.report_to == ("wandb",)
    with pytest.raises(ValueError, match="uploads samples"):
        GRPOStep(stage="reasoning-grpo", trainer={**tiny.GRPO, "log_completions_hub_repo": "me/samples"})


def train(policy: Path, tmp: Path, name: str) -> StageContext:
    ctx = context(tmp, model=policy)
    config = TrainerStep(stage="sft", trainer=step(name, save_steps=2))
    sft.train(ctx, config, tiny.traces(8), overlong="drop")
    assert ctx.facts["trackers"] == [name]
    return ctx


def test_tensorboard_has_the_curves_and_the_manifest(policy: Path, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    ctx = train(policy, tmp_path, "tensorboard")
    found = EventAccumulator(str(ctx.work / "tensorboard")).Reload()
    assert "train/loss" in found.Tags()["scalars"]
    assert [s.step for s in found.Scalars("train/loss")] == [1, 2]
    (event,) = found.Tensors("r1pipe.manifest/text_summary")
    assert event.tensor_proto.string_val[0].decode().endswith("0a1b2c3d-2/manifest.json")


def test_wandb_offline_has_name_and_manifest(policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    ctx = train(policy, tmp_path, "wandb")
    run = wandb.run
    assert run.name == "mine-full/sft"
    assert run.id == "mine-full-sft-0a1b2c3d-2"
    assert run.config["r1pipe.manifest"].endswith("0a1b2c3d-2/manifest.json")
    assert (ctx.work / "wandb").is_dir()
    wandb.finish()


def test_trackio_writes_locally(policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    pytest.importorskip("trackio")
    train(policy, tmp_path, "trackio")
    assert any((tmp_path / "trackio").rglob("r1pipe*"))
