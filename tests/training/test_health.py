"""Every health check, provoked by real training of a random tiny model; a healthy run trips none.

The collapses that need a model which can do something first are in tests/slow/test_health.py.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from r1pipe.errors import StepFailed
from r1pipe.resources import data_dir
from r1pipe.training import callbacks, checkpoint, grpo, health, rows, sft
from r1pipe.training.settings import GRPOStep, TrainerStep
from tests.training import tiny
from tests.training.test_grpo import weights


def rl(
    policy: Path, tmp: Path, steps: int, trainer: dict[str, Any], *, resume: bool = False, **more: Any
) -> tuple[Any, dict[str, Any]]:
    """GRPO of `steps` steps; the context and its metrics."""
    config = GRPOStep(
        stage="x", trainer={**tiny.GRPO, "max_completion_length": 8, "save_steps": 50, **trainer},
        preflight={"enabled": False}, **{"rewards": {"language": {}}, **more},
    )  # fmt: skip
    ctx = tiny.context(tmp, model=policy, resume=resume)
    batch = config.batch()
    layout = rows.endless(tiny.prompts(20), batch.generations(steps) * batch.groups, 7)
    return ctx, grpo.train(ctx, config, layout, steps)


def supervised(policy: Path, tmp: Path, trainer: dict[str, Any], **more: Any) -> Any:
    common = {"max_length": 128, "per_device_train_batch_size": 4, "gradient_checkpointing": False, "save_steps": 50}
    config = TrainerStep(stage="sft", trainer={**common, **trainer}, **more)
    ctx = tiny.context(tmp, model=policy)
    sft.train(ctx, config, tiny.traces(16), overlong="drop")
    return ctx


def found(ctx: Any, name: str, fact: str = "health") -> dict[str, Any]:
    """The finding, which the user was told too."""
    one = ctx.facts[fact]["found"][name]
    assert any(one["said"] in told and one["key"] in told for told in ctx.warnings)
    json.dumps(ctx.facts, allow_nan=False)
    return one


def test_a_healthy_run_trips_nothing(policy: Path, tmp_path: Path) -> None:
    """RL on the embedded model at the rate of the demo: a random one never ends its turn, which is a fault."""
    base = data_dir() / "tiny-base"
    rate = {"learning_rate": 8.0e-4, "beta": 0.001, "max_completion_length": 40}
    ctx, _ = rl(base, tmp_path / "rl", 20, rate, rewards={"language": {}, "format": {}})
    said = ctx.facts["health"]
    assert said["found"] == {}
    assert said["watched"]["non_finite"] == "stop" and said["watched"]["kl"] == "warn"
    assert said["not_measured"] == []
    ctx = supervised(policy, tmp_path / "sft", {"max_steps": 20, "learning_rate": 2.0e-3})
    assert ctx.facts["health"] == {
        "watched": {"non_finite": "stop", "loss": "warn"}, "not_measured": [], "found": {}
    }  # fmt: skip
    assert not [told for told in ctx.warnings if told.startswith("health")]


def test_a_loss_that_is_not_finite_stops_a_step(policy: Path, tmp_path: Path) -> None:
    with pytest.raises(StepFailed) as error:
        supervised(policy, tmp_path, {"max_steps": 8, "learning_rate": 1.0e18, "save_steps": 1, "max_grad_norm": 0.0})
    assert "training has diverged" in error.value.message
    assert "no checkpoint from before the fault" in error.value.message
    assert "lower steps.step.trainer.learning_rate (now 1e+18)" in str(error.value.hint)
    assert "max_grad_norm to 1.0" in str(error.value.hint)
    assert checkpoint.last_complete(tmp_path / "work" / "checkpoints", delete=False) is None


def test_weights_spoiled_by_the_last_update_are_no_result(policy: Path, tmp_path: Path) -> None:
    """The loss of the only step is finite; what it leaves behind is not."""
    with pytest.raises(StepFailed, match="weights are not finite after training step 1"):
        supervised(policy, tmp_path, {"max_steps": 1, "learning_rate": 3.4e38, "weight_decay": 1.0})
    assert not (tmp_path / "out" / "model" / "model.safetensors").exists()


def test_exploding_loss(policy: Path, tmp_path: Path) -> None:
    ctx = supervised(
        policy, tmp_path, health={"patience": 3}, trainer={
            "max_steps": 12, "learning_rate": 4.0, "lr_scheduler_type": "constant_with_warmup", "warmup_steps": 20,
            "max_grad_norm": 0.0,
        }
    )  # fmt: skip
    one = found(ctx, "loss")
    assert one["since"] > 3 and one["found"] == one["since"] + 2 and one["healthy"] == one["since"] - 1
    assert "at its lowest" in one["said"] and "steps.step.trainer.learning_rate (now 4)" in one["key"]


def test_all_truncated_and_a_dead_reward(policy: Path, tmp_path: Path) -> None:
    """Two tokens: nobody ends, nobody is right."""
    ctx, metrics = rl(
        policy, tmp_path, 5, {"max_completion_length": 2, "per_device_train_batch_size": 32},
        rewards={"accuracy": {}}, health={"patience": 3},
    )  # fmt: skip
    cut, dead = found(ctx, "truncated"), found(ctx, "dead_reward")
    assert (cut["since"], cut["found"], cut["rows"], cut["until"]) == (1, 3, 5, None)
    assert "raise steps.step.trainer.max_completion_length (now 2)" in cut["key"]
    assert dead["found"] == 4  # 8 groups a step: 32 are asked for
    assert "too hard" in dead["said"] and "steps.step.data" in dead["key"]
    assert metrics["train/zero_signal"] == 1
    assert not [told for told in ctx.warnings if told.startswith("at the end")]  # said once


def test_entropy_collapse(policy: Path, tmp_path: Path) -> None:
    """So cold that a group is one text: then its reward is dead, and the sentence says why."""
    ctx, _ = rl(
        policy, tmp_path, 4, {"temperature": 1.0e-3, "per_device_train_batch_size": 64}, health={"patience": 2}
    )
    assert "collapsed on one text" in found(ctx, "entropy")["said"]
    assert "temperature (now 0.001)" in found(ctx, "entropy")["key"]
    assert "all the same text" in found(ctx, "dead_reward")["said"]


RUNAWAY = {"learning_rate": 0.05, "save_steps": 1, "max_completion_length": 12}


def test_exploding_kl_stops_and_goes_on_from_the_last_good_checkpoint(policy: Path, tmp_path: Path) -> None:
    """Stopped, then allowed and resumed: the same weights as a run that was allowed from the start."""
    watch = {"patience": 3, "most_kl": 0.5}
    whole, _ = rl(policy, tmp_path / "whole", 10, RUNAWAY, health=watch)
    one = found(whole, "kl")
    assert (
        "lower steps.step.trainer.learning_rate (now 0.05) or raise steps.step.trainer.beta (now 0.04)" in one["key"]
    )
    good = one["healthy"] - 1  # its weights were measured, and healthy, by the last healthy row
    assert good >= 1

    with pytest.raises(StepFailed) as error:
        rl(policy, tmp_path / "stopped", 10, RUNAWAY, health={**watch, "kl": "stop"})
    assert f"the last good checkpoint is checkpoint-{good}" in error.value.message
    hint = str(error.value.hint)
    assert "With other settings the step begins anew" in hint
    assert f"unchanged, the same command goes on from checkpoint-{good}" in hint
    assert "steps.step.health.kl: warn lets it pass" in hint
    folder = tmp_path / "stopped" / "work" / "checkpoints"
    assert max(checkpoint.steps(folder)) == one["healthy"]  # nothing was saved while it was in doubt
    assert checkpoint.last_complete(folder, delete=False) == folder / f"checkpoint-{good}"

    again, _ = rl(policy, tmp_path / "stopped", 10, RUNAWAY, health=watch, resume=True)
    assert again.facts["resumed_from_step"] == good
    assert found(again, "kl") == one  # the rows before the resume are read again
    a, b = weights(whole.outputs["model"]), weights(again.outputs["model"])
    assert all(a[name].equal(b[name]) for name in a)


def test_a_stop_asked_for_after_a_kill_looks_at_the_rows_before_it(policy: Path, tmp_path: Path) -> None:
    """The fault is in the log already: the resumed step stops before it trains, and drops what it would go on from."""
    watch = {"patience": 3, "most_kl": 0.5}
    first, _ = rl(policy, tmp_path, 8, RUNAWAY, health=watch)
    trained = len(callbacks.read_history(first.work / "log.jsonl"))
    with pytest.raises(StepFailed, match="the KL is"):
        rl(policy, tmp_path, 8, RUNAWAY, health={**watch, "kl": "stop"}, resume=True)
    assert len(callbacks.read_history(first.work / "log.jsonl")) == trained
    assert checkpoint.last_complete(first.work / "checkpoints", delete=False) is None  # two are kept, both sick


def monitor(settings: health.TrainHealth | health.RolloutHealth, **about: Any) -> health.Monitor:
    return health.Monitor(settings, health.About(step="rl", keys="steps.rl.trainer", groups=16, **about))


def sentences(watched: health.Monitor, logged: list[dict[str, Any]]) -> list[str]:
    return [one.text() for number, row in enumerate(logged, 1) for one in watched.see({"step": number, **row})]


def test_a_noisy_batch_is_no_finding() -> None:
    """The row counts only where `patience` of them stand together."""
    sick, well = {"kl": 9.0}, {"kl": 0.1}
    watched = monitor(health.RolloutHealth(kl="stop", patience=3))
    assert sentences(watched, [well, sick, sick, well, sick, well]) == []
    assert not watched.in_doubt()
    assert not watched.see({"step": 7, **sick}) and watched.in_doubt()
    assert not monitor(health.RolloutHealth(kl="off", patience=1)).see({"step": 1, "kl": 99.0})


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"reward/accuracy": 1.0}, "too easy: harder rows"),
        ({"reward/accuracy": 0.0}, "too hard"),
        ({"reward/accuracy": 0.5, "reward": 0.25}, "0.25 on average: the rewards do not tell completions apart"),
        ({"reward/accuracy": 1.0, "entropy": 0.0}, "all the same text"),
    ],
)
def test_a_dead_reward_is_told_by_its_cause(row: dict[str, float], said: str) -> None:
    watched = monitor(health.RolloutHealth(entropy="off"))
    (told,) = sentences(watched, [{"frac_reward_zero_std": 1.0, **row}] * 6)
    assert said in told


def test_length_may_grow_where_it_pays() -> None:
    """Growth is what RL is for (R1-Zero); without a better reward it is padding."""
    short = [{"completions/mean_length": 50.0, "reward": 0.5}] * 6
    grown = {"completions/mean_length": 120.0}
    assert sentences(monitor(health.RolloutHealth()), [*short, *[{**grown, "reward": 0.8}] * 8]) == []
    (told,) = sentences(monitor(health.RolloutHealth()), [*short, *[{**grown, "reward": 0.4}] * 8])
    assert "from 50 to 120 tokens around step 7" in told


def test_the_form_is_missed_only_where_it_had_been_learned() -> None:
    never, learned = [{"reward/shape": 0.0}] * 9, [{"reward/shape": 0.9}] * 6
    assert sentences(monitor(health.RolloutHealth(), formats=("shape",)), never) == []
    (told,) = sentences(monitor(health.RolloutHealth(), formats=("shape",)), [*learned, *never])
    assert "had been 0.9" in told and "steps.rl.rewards.shape.weight" in told


def test_nothing_is_finite_from_the_first_step() -> None:
    """Not the learning rate's fault: no step was made."""
    (told,) = sentences(monitor(health.TrainHealth()), [{"loss": math.nan}])
    assert "at training step 1" in told and "base_model.dtype: float32" in told and "learning" not in told


def test_health_has_no_part_in_a_fingerprint() -> None:
    """It changes no result, so a user can turn it and go on from a checkpoint."""
    from r1pipe import fingerprint
    from r1pipe.config import load

    plain = load("smoke")
    turned = load("smoke", ["reasoning-grpo.health.kl=stop", "sft.health.patience=2", "sft.health.loss=off"])
    for step in ("sft", "reasoning-grpo"):
        assert turned.steps[step].health != plain.steps[step].health
        assert (
            fingerprint.of(turned.steps[step], {"model": "x"})[0]
            == fingerprint.of(plain.steps[step], {"model": "x"})[0]
        )
