"""Steps, tokens and arithmetic of profiles; sharding read from accelerate files; advice that holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from r1pipe import config
from r1pipe.errors import UserError
from r1pipe.estimate import advice, clock, device, launch, rows, work
from r1pipe.estimate.models import Base
from r1pipe.estimate.shape import Shape
from tests.at_hand import AT_HAND


def estimator(profile: str, key: str, *sets: str, **more: Any) -> work.Estimator:
    return work.Estimator(config.load(profile, sets), device.find(key), **more)


def test_tiny_s_numbers_are_those_of_its_profile() -> None:
    made = estimator("tiny", "cpu", facts=work.Facts(any_completion=37))
    sft, rl, sampling = (made.work(s) for s in ("sft", "reasoning-grpo", "rejection-sampling"))
    assert (sft.updates, rl.updates) == (120, 120)
    assert sft.trained == sft.parameters == 918_912
    rollouts = next(load for load in rl.loads if load.what == "rollouts")
    assert rollouts.sequences == 120 * 128
    assert rollouts.tokens == 120 * 128 * 37
    samples = next(load for load in sampling.loads if load.what == "samples")
    assert samples.sequences == 900 * 4
    assert {load.what for load in rl.loads} >= {"reference", "train", "rollouts"}
    assert not any("log-prob" in load.what for load in rl.loads)  # on-policy, no vLLM: TRL leaves them out


def test_training_is_six_nd_and_an_adapter_four() -> None:
    found: Shape = estimator("tiny", "cpu").base("sft").shape  # type: ignore[union-attr]
    load = work.Load("train", "", found, 1000, 0)
    assert load.flops == 6 * found.active * 1000
    assert work.Load("train", "", found, 1000, 0, lora=True).flops == 4 * found.active * 1000
    assert work.Load("decode", "", found, 1000, 0).flops == 2 * found.active * 1000
    assert work.Load("train", "", found, 1000, 0, recompute=True).hardware_flops == 8 * found.active * 1000
    attention = work.Load("forward", "", found, 1, 100).flops - work.Load("forward", "", found, 1, 0).flops
    assert attention == 2 * found.layers * (found.queries + found.values) * 100


@pytest.mark.parametrize(
    ("name", "weights", "gradients", "optimizer"),
    [("fsdp2", True, True, True), ("zero2", False, True, True), ("zero3", True, True, True),
     ("multi_gpu", False, False, False)],
)  # fmt: skip
def test_sharding_is_read_from_the_accelerate_file(name: str, weights: bool, gradients: bool, optimizer: bool) -> None:
    step = config.load("qwen2.5-7b", [f"sft.accelerate=builtin:{name}"]).steps["sft"]
    found = launch.sharding(step)
    assert (found.weights, found.gradients, found.optimizer) == (weights, gradients, optimizer)
    assert found.processes == 8


def test_zero_one_and_offload_from_a_deepspeed_file(tmp_path: Path) -> None:
    path = tmp_path / "ds.json"
    zero = {"zero_optimization": {"stage": 1, "offload_optimizer": {"device": "cpu"}}}
    path.write_text(json.dumps(zero))
    step = config.load("qwen2.5-7b", [f"sft.trainer.deepspeed={path}"]).steps["sft"]
    found = launch.sharding(step)
    assert (found.name, found.optimizer, found.gradients, found.offload_optimizer) == ("ZeRO-1", True, False, True)
    path.write_text("{")
    with pytest.raises(UserError, match=r"trainer\.deepspeed"):
        launch.sharding(step)


@pytest.mark.parametrize("profile", [p.stem for p in config.list_profiles()])
def test_every_shipped_profile_is_estimated(profile: str) -> None:
    loaded = config.load(profile, AT_HAND.get(profile, []))
    made = work.Estimator(loaded, device.find("cpu" if profile in ("tiny", "smoke") else "h100"))
    for step in loaded.steps:
        found = made.work(step)
        assert found.parameters
        assert found.loads or found.stage == "base-model"
        assert all(load.tokens > 0 and load.flops > 0 for load in found.loads), step
        assert all(size > 0 for p in found.phases for size in p.parts.values()), step
        assert sum(clock.of(found, made.device, None).values()) > 0


@pytest.mark.parametrize(
    ("profile", "key"),
    [("qwen2.5-0.5b", "l40s"), ("qwen2.5-0.5b-lora", "rtx4090"), ("qwen2.5-1.5b", "a100-80"),
     ("qwen2.5-1.5b-lora", "rtx4090"), ("qwen2.5-7b-qlora", "l40s"), ("qwen2.5-7b", "a100-80")],
)  # fmt: skip
def test_a_shipped_profile_fits_the_device_that_its_head_names(profile: str, key: str) -> None:
    loaded = config.load(profile)
    made = work.Estimator(loaded, device.find(key))
    for step in loaded.pipeline("full"):
        assert advice.fits(made.work(step), made.device), step


def test_what_does_not_fit_is_told_with_changes_that_make_it_fit() -> None:
    loaded = config.load("qwen2.5-1.5b")
    small = device.find("rtx4090")
    made = work.Estimator(loaded, small)
    assert not advice.fits(made.work("reasoning-grpo"), small)
    changes = advice.suggest(loaded, "reasoning-grpo", small, made, 1)
    assert changes
    for change in changes:
        if change.what.startswith("--device"):
            other = device.find(change.what.split()[1])
            assert advice.fits(work.Estimator(loaded, other).work("reasoning-grpo"), other)
            continue
        import shlex

        words = shlex.split(change.what)
        again = config.load("qwen2.5-1.5b", [w for w in words if w != "--set"])
        after = work.Estimator(again, small).work("reasoning-grpo")
        assert advice.fits(after, small) == change.fits
        assert advice.needs(after, small) == change.needs


def test_more_devices_share_a_model_that_one_cannot_hold() -> None:
    loaded = config.load("qwen2.5-1.5b")
    small = device.find("rtx4090")
    changes = advice.suggest(loaded, "sft", small, work.Estimator(loaded, small), 8)
    assert any("num_processes=8" in c.what for c in changes) or advice.fits(
        work.Estimator(loaded, small).work("sft"), small
    )


def test_rows_of_files_and_of_unknown_sets(tmp_path: Path) -> None:
    from r1pipe.chat import ChatConfig
    from r1pipe.settings import DataSpec

    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"question": "x" * 400, "answer": "1"}) + "\n" for _ in range(50)))
    found = rows.of([DataSpec(source=str(path))], "prompts", ChatConfig(), rows.counter(None))
    assert found.count == 50
    assert found.prompt + found.answer == pytest.approx(101, abs=2)
    known = rows.of([DataSpec(source="openai/gsm8k")], "prompts", ChatConfig(), rows.counter(None))
    assert (known.count, known.notes) == (7473, [])
    unknown = rows.of([DataSpec(source="nobody/nothing")], "prompts", ChatConfig(), rows.counter(None))
    assert "not known here" in unknown.notes[0]


def test_padding_counts_the_longest_of_a_batch() -> None:
    assert rows.padded([10, 10, 10], 4) == 10
    assert rows.padded([10, 100], 64) == pytest.approx(100)
    assert 10 < rows.padded([10, 100], 1) < 100
    assert rows.padded([10, 100], 64, limit=50) == 10


def test_a_measured_rate_is_scaled_by_the_arithmetic_of_a_token() -> None:
    base = estimator("tiny", "cpu").base("sft")
    assert isinstance(base, Base)
    load = work.Load("train", "", base.shape, 1000, 50)
    rates = clock.Rates(1e-3, 1e-3, 1e-3, 1e-3, base.shape.parameters, {"train": load.flops / 1000}, 1.0, 30)
    assert rates.seconds(load) == pytest.approx(1.0)
    wide = work.Load("train", "", base.shape, 1000, 500)
    assert rates.seconds(wide) == pytest.approx(wide.flops / load.flops)
    assert rates.seconds(work.Load("train", "", base.shape, 1000, 50, processes=2)) == pytest.approx(0.5)


def test_every_device_has_its_numbers_and_a_price() -> None:
    for key, found in device.table().items():
        assert found.memory > 0 and found.flops > 0 and found.bandwidth > 0
        assert found.price > 0 or key == "cpu"
    assert device.find("h100", 9.0).price == 9.0
    with pytest.raises(UserError, match='did you mean "h100"'):
        device.find("h10")
    with pytest.raises(UserError, match="below 0"):
        device.find("h100", -1)
