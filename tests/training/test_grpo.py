"""GRPO on a random tiny model: the reference, the resume, the files that come out."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from r1pipe.training import checkpoint, grpo, rows
from r1pipe.training.callbacks import read_history
from r1pipe.training.settings import GRPOStep
from tests.training import tiny


class Killed(BaseException):
    """Stands for SIGKILL inside one process."""


def config(**more: Any) -> GRPOStep:
    trainer = {**tiny.GRPO, "save_steps": 2, **more.pop("trainer", {})}
    return GRPOStep(stage="x", rewards={"language": {}}, trainer=trainer, **more)


def train(policy: Path, tmp: Path, steps: int, cfg: GRPOStep, *, stop: int | None = None, resume: bool = False) -> Any:
    ctx = tiny.context(tmp, model=policy, resume=resume)
    if stop is not None:
        real = ctx.progress

        def progress(step: int, total: int, **metrics: Any) -> None:
            real(step, total, **metrics)
            if step == stop:
                raise Killed

        ctx.progress = progress  # type: ignore[method-assign]
    batch = cfg.batch()
    layout = rows.endless(tiny.prompts(20), batch.generations(steps) * batch.groups, 7)
    return ctx, grpo.train(ctx, cfg, layout, steps)


def weights(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


def kls(tmp: Path) -> dict[int, float]:
    return {row["step"]: row["kl"] for row in read_history(tmp / "work" / "log.jsonl")}


LORA = {"r": 4, "lora_alpha": 32, "target_modules": "all-linear", "init_lora_weights": True}


@pytest.mark.parametrize("lora", [None, LORA], ids=["full", "lora"])
def test_reference_is_refreshed_and_resumed(policy: Path, tmp_path: Path, lora: dict | None) -> None:
    """KL above 0 just before a refresh, about 0 just after, and the same after a kill and resume (issue, point 2)."""
    import torch

    rate = 3.0e-3 if lora is None else 1.0e-2
    cfg = config(lora=lora, reference_refresh=3, trainer={"learning_rate": rate})
    whole, _ = train(policy, tmp_path / "whole", 8, cfg)
    kl = kls(tmp_path / "whole")
    assert kl[1] == pytest.approx(0, abs=1e-3)  # the reference is the input model
    for refreshed in (3, 6):
        assert kl[refreshed] > 2e-3
        assert abs(kl[refreshed + 1]) < 1e-3

    with pytest.raises(Killed):
        train(policy, tmp_path / "killed", 8, cfg, stop=5)
    again, _ = train(policy, tmp_path / "killed", 8, cfg, resume=True)
    assert again.facts["resumed_from_step"] == 4
    resumed = kls(tmp_path / "killed")
    assert list(resumed) == list(range(1, 9))  # no step twice, none missing
    assert resumed[5] == pytest.approx(kl[5], rel=1e-3, abs=1e-6) and resumed[5] > 0
    a, b = weights(whole.outputs["model"]), weights(again.outputs["model"])
    assert a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


def test_torn_checkpoint_is_not_used(policy: Path, tmp_path: Path) -> None:
    """A checkpoint without its marker is deleted, and the step goes on from the one before."""
    cfg = config()
    with pytest.raises(Killed):
        train(policy, tmp_path, 6, cfg, stop=5)
    folder = tmp_path / "work" / "checkpoints"
    (folder / "checkpoint-4" / checkpoint.MARKER).unlink()
    ctx, _ = train(policy, tmp_path, 6, cfg, resume=True)
    assert ctx.facts["resumed_from_step"] == 2


def test_output_holds_only_a_policy(policy: Path, tmp_path: Path) -> None:
    ctx, metrics = train(policy, tmp_path, 2, config(lora=LORA))
    names = {p.name for p in ctx.outputs["model"].iterdir()}
    assert names == {
        "model.safetensors", "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
        "chat_template.jinja",
    }  # fmt: skip
    for name in names - {"model.safetensors", "config.json"}:
        assert (ctx.outputs["model"] / name).read_bytes() == (policy / name).read_bytes()
    before, after = weights(policy), weights(ctx.outputs["model"])
    assert before.keys() == after.keys()  # merged: the names of the base
    assert any(not before[k].equal(after[k]) for k in before)
    assert metrics["steps"] == 2 and "train/reward" in metrics


def test_stops_at_the_first_loss_that_is_not_finite(policy: Path, tmp_path: Path) -> None:
    from r1pipe.errors import StepFailed

    with pytest.raises(StepFailed, match="training step"):
        train(policy, tmp_path, 8, config(trainer={"learning_rate": 1.0e9, "max_grad_norm": 0.0}))


def test_quick_rollouts_sample_what_trl_samples(policy: Path, tmp_path: Path) -> None:
    """Both ways of sampling have the same distribution: greedily (a low temperature) they write the same tokens."""
    import datasets
    from trl import GRPOConfig

    from r1pipe.training import model as models
    from r1pipe.training.rollout import QuickGRPOTrainer, reason_against

    cfg = {**tiny.GRPO, "temperature": 1.0e-3}
    args = GRPOConfig(output_dir=str(tmp_path), use_cpu=True, bf16=False, report_to=[], **cfg)
    model = models.load_policy(policy, {})
    assert reason_against(args, model) is None
    trainer = QuickGRPOTrainer(
        model=model,
        reward_funcs=[lambda completions, **columns: [0.0] * len(completions)],
        args=args,
        train_dataset=datasets.Dataset.from_list([{"prompt": "1 + 1?"}] * 4),
        processing_class=models.load_tokenizer(policy),
    )
    trainer.model.train()
    prompts = [[5, 6, 7, 8], [5, 6, 7, 8], [9, 10], [11, 12, 13, 14, 15, 16]]
    quick, _ = trainer._generate_single_turn(prompts, None, {}, 2)
    slow, _ = super(QuickGRPOTrainer, trainer)._generate_single_turn(prompts, None, {}, 2)
    assert quick == slow and quick[0] == quick[1]
    assert trainer.model.training
    trainer.temperature = 1.0
    free, _ = trainer._generate_single_turn(prompts, None, {}, 2)
    assert free[0] != free[1]


def test_trl_rollouts_on_request(policy: Path, tmp_path: Path) -> None:
    ctx, _ = train(policy, tmp_path, 1, config(rollouts="trl"))
    assert ctx.facts["rollouts"] == "trl"
    from r1pipe.errors import UserError

    with pytest.raises(UserError, match="does not go with top_k"):
        train(policy, tmp_path / "b", 1, config(rollouts="quick", trainer={"top_k": 5}))


def test_a_fresh_start_ignores_old_checkpoints(policy: Path, tmp_path: Path) -> None:
    train(policy, tmp_path, 2, config())
    shutil.rmtree(tmp_path / "out")
    ctx, _ = train(policy, tmp_path, 2, config())
    assert "resumed_from_step" not in ctx.facts
