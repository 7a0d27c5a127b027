"""The arithmetic of a GRPO batch, against TRL's own."""

from __future__ import annotations

import pytest

from r1pipe.training import batch


def test_names_the_numbers_and_what_works() -> None:
    """known-failures e1: 4 completions, groups of 8."""
    trainer = {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 4, "num_generations": 8}
    with pytest.raises(ValueError) as error:
        batch.of(trainer, 1)
    text = str(error.value)
    assert "num_processes 1 x per_device_train_batch_size 1 x gradient_accumulation_steps 4 = 4" in text
    assert "num_generations 8" in text and "work: 2, 4" in text and "per_device_train_batch_size of 2 or 4" in text


@pytest.mark.parametrize(
    ("trainer", "said"),
    [
        ({"num_generations": 1}, "at least 2"),
        ({"generation_batch_size": 16, "steps_per_generation": 2}, "exclude"),
        ({"generation_batch_size": 12}, "multiple of num_processes 1 x per_device_train_batch_size 8 = 8"),
        ({"per_device_train_batch_size": 0}, "at least 1"),
    ],
)
def test_refused(trainer: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        batch.of(trainer, 1)


@pytest.mark.parametrize(
    "trainer",
    [
        {},
        {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 4, "num_generations": 8},
        {"per_device_train_batch_size": 4, "steps_per_generation": 6, "num_generations": 12},
        {"generation_batch_size": 32, "num_generations": 4, "num_iterations": 2},
    ],
)
def test_agrees_with_trl(trainer: dict, tmp_path) -> None:
    import trl

    ours = batch.of(trainer, 1)
    args = trl.GRPOConfig(output_dir=str(tmp_path), use_cpu=True, bf16=False, report_to=[], **trainer)
    assert (ours.completions, ours.steps_per_generation) == (args.generation_batch_size, args.steps_per_generation)
    assert ours.num_generations == args.num_generations


def test_generations_and_save_steps() -> None:
    # the paper: 512 completions in 16 minibatches, an optimizer step each
    b = batch.of({"per_device_train_batch_size": 32, "steps_per_generation": 16, "num_generations": 16}, 1)
    assert (b.groups, b.generations(32), b.aligned(400), b.align(17)) == (32, 2, True, 32)
    assert batch.save_steps({}, b) == 112
    with pytest.raises(ValueError, match="nearest: 96 or 112"):
        batch.save_steps({"save_steps": 100}, b)
