"""The plan's memory against tensors that a real trainer really allocated, within 25 % (issue 5, point 6)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bench.plan import measure
from r1pipe.estimate import memory, shape

# SmolLM2-135M's proportions, small enough for every test run
SMALL: dict[str, Any] = {
    **measure.SMOLLM2_135M, "num_hidden_layers": 8, "hidden_size": 288, "intermediate_size": 768, "head_dim": 32,
    "vocab_size": 8192, "max_position_embeddings": 512,
}  # fmt: skip
WITHIN = 0.25


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("lora", [False, True])
@pytest.mark.parametrize(("rows", "length"), [(2, 64), (8, 128)])
def test_a_step_of_sft_takes_what_was_planned(rows: int, length: int, lora: bool, checkpointing: bool) -> None:
    given: dict[str, Any] = {"rows": rows, "length": length, "lora": lora, "checkpointing": checkpointing}
    found = measure.sft(SMALL, **given)
    assert measure.planned(SMALL, **given) == pytest.approx(found["peak"], rel=WITHIN)


def test_gradients_stay_while_batches_are_accumulated() -> None:
    given: dict[str, Any] = {"rows": 4, "length": 128, "lora": False, "checkpointing": False, "accumulate": 2}
    found = measure.sft(SMALL, **given)
    assert measure.planned(SMALL, **given) == pytest.approx(found["peak"], rel=WITHIN)


def test_a_step_of_grpo_holds_its_reference_too() -> None:
    found = measure.grpo(SMALL, 8, 24, 40, beta=0.04)
    assert measure.planned_grpo(SMALL, 8, 24, 40, beta=0.04) == pytest.approx(found["peak"], rel=WITHIN)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", [name for name, _ in measure.CASES])
def test_smollm2_takes_what_was_planned(name: str) -> None:
    given = dict(measure.CASES)[name]
    found = measure.sft(measure.SMOLLM2_135M, **given)
    assert measure.planned(measure.SMOLLM2_135M, **given) == pytest.approx(found["peak"], rel=WITHIN)


SHAPE = shape.of(measure.SMOLLM2_135M)
BASE = memory.Training(SHAPE, 8, 1024, triton=True, autocast=True)


def total(t: memory.Training) -> float:
    return memory.training(t).peak


def test_sixteen_bytes_a_parameter_without_sharding_and_a_share_with_it() -> None:
    parts = memory.training(BASE)
    n = SHAPE.parameters
    assert parts.fixed["weights"] == 4 * n
    assert parts.fixed["optimizer"] == 8 * n
    assert parts.gradients == 4 * n
    sizes = []
    for kind in (
        memory.Sharding("ddp", 8),
        memory.Sharding("zero1", 8, optimizer=True, deepspeed=True),
        memory.Sharding("zero2", 8, optimizer=True, gradients=True, deepspeed=True),
        memory.Sharding("zero3", 8, optimizer=True, gradients=True, weights=True, deepspeed=True),
    ):
        sizes.append(memory.training(replace(BASE, sharding=kind)))
    states = [p.fixed["weights"] + p.fixed["optimizer"] + p.gradients for p in sizes]
    assert states == pytest.approx([n * b for b in (16, 2 + 12 / 8 + 2, 2 + 12 / 8 + 2 / 8, (2 + 12 + 2) / 8)])


def test_each_saving_saves() -> None:
    full = total(replace(BASE, checkpointing=False))
    lora = memory.lora_of({"r": 16, "target_modules": "all-linear"}, SHAPE)
    assert total(BASE) < full
    assert total(replace(BASE, lora=lora)) < total(BASE)
    assert total(replace(BASE, lora=lora, quantized_bits=4, weight_bytes=2, autocast=False)) < total(
        replace(BASE, lora=lora)
    )
    assert total(replace(BASE, optimizer="adamw_8bit")) < total(BASE)
    assert total(replace(BASE, rows=4)) < total(BASE)
    assert total(replace(BASE, length=512)) < total(BASE)


def test_the_parts_add_up_to_the_peak() -> None:
    for t in (BASE, replace(BASE, checkpointing=False), replace(BASE, rows=1, length=8)):
        parts = memory.training(t)
        assert sum(parts.table().values()) == pytest.approx(parts.peak)


def test_an_optimizer_that_is_not_known_counts_as_adam() -> None:
    assert memory.optimizer_bytes("shampoo", 4) == (8, False)
    assert memory.optimizer_bytes("sgd", 4) == (0, True)
