"""SFT on a random tiny model: labels, lengths, resume, LoRA."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from r1pipe.errors import UserError
from r1pipe.training import model as models
from r1pipe.training import sft
from r1pipe.training.settings import TrainerStep
from tests.training import tiny
from tests.training.test_grpo import LORA, Killed, weights
from tests.training.test_template import CUTS


def config(**more: Any) -> TrainerStep:
    trainer = {"max_length": 128, "max_steps": 4, "per_device_train_batch_size": 4, "learning_rate": 1.0e-3,
               "gradient_checkpointing": False, "save_steps": 2}  # fmt: skip
    return TrainerStep(stage="sft", trainer={**trainer, **more.pop("trainer", {})}, **more)


def test_loss_sees_the_assistant_turn_only(policy: Path, tmp_path: Path) -> None:
    tokenizer = models.load_tokenizer(policy)
    row = tiny.traces(3)[2]
    wanted = row["messages"][-1]["content"] + "<|im_end|>"
    _, (example,) = sft.tokenize([row], tokenizer, config(), tiny.context(tmp_path))
    assert tokenizer.decode([t for t in example["labels"] if t != -100]) == wanted
    # the same without generation markers in the template
    tokenizer.chat_template = tokenizer.chat_template.replace("{% generation %}", "").replace(
        "{% endgeneration %}", ""
    )
    _, (plain,) = sft.tokenize([row], tokenizer, config(), tiny.context(tmp_path))
    assert plain["input_ids"] == example["input_ids"]
    assert tokenizer.decode([t for t in plain["labels"] if t != -100]) == wanted


def test_a_template_that_drops_reasoning_stops_the_step(policy: Path, tmp_path: Path) -> None:
    """known-failures e6."""
    tokenizer = models.load_tokenizer(policy)
    tokenizer.chat_template = CUTS
    with pytest.raises(UserError, match="does not see the reasoning"):
        sft.tokenize(tiny.traces(1), tokenizer, config(), tiny.context(tmp_path))


@pytest.mark.parametrize(("overlong", "left"), [("drop", 2), ("cut", 3)])
def test_overlong_rows_are_counted(overlong: str, left: int, tmp_path: Path) -> None:
    ctx = tiny.context(tmp_path)
    rows = [{"input_ids": [1] * n, "labels": [-100] * 5 + [1] * (n - 5)} for n in (6, 30, 10)]
    kept = sft.fit(rows, 12, overlong, ctx)
    assert len(kept) == left and max(len(e["input_ids"]) for e in kept) <= 12
    assert ctx.counts[f"rows/overlong_{'cut' if overlong == 'cut' else 'dropped'}"] == 1
    assert ctx.counts["tokens/overlong_lost"] == (18 if overlong == "cut" else 30)
    assert "30" in ctx.warnings[0]


def test_nothing_fits(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="none of 1 rows"):
        sft.fit([{"input_ids": [1] * 30, "labels": [1] * 30}], 12, "drop", tiny.context(tmp_path))


@pytest.mark.parametrize(
    "more", [{}, {"lora": LORA}, {"trainer": {"packing": True, "max_steps": 4}}], ids=["full", "lora", "packed"]
)
def test_resume_gives_equal_weights(policy: Path, tmp_path: Path, more: dict) -> None:
    cfg = config(**more)
    rows = tiny.traces(40)
    whole = tiny.context(tmp_path / "whole", model=policy)
    metrics = sft.train(whole, cfg, rows, overlong="drop")
    assert metrics["steps"] == 4 and metrics["train/loss"] > 0
    assert metrics["train/loss_reasoning"] > 0 and "train/loss_general" not in metrics  # arithmetic alone
    assert "adding gives" in whole.facts["first_row_trained_on"]

    killed = tiny.context(tmp_path / "killed", model=policy)

    def progress(step: int, total: int, **values: Any) -> None:
        if step == 3:
            raise Killed

    killed.progress = progress  # type: ignore[method-assign]
    with pytest.raises(Killed):
        sft.train(killed, cfg, rows, overlong="drop")
    again = tiny.context(tmp_path / "killed", model=policy, resume=True)
    sft.train(again, cfg, rows, overlong="drop")
    assert again.facts["resumed_from_step"] == 2
    a, b = weights(whole.outputs["model"]), weights(again.outputs["model"])
    assert a.keys() == b.keys() and all(a[k].equal(b[k]) for k in a)
    assert any(not a[k].equal(v) for k, v in weights(policy).items())


def test_packed_rows_do_not_see_each_other(policy: Path, tmp_path: Path) -> None:
    """The first loss is the same packed and not (a leak between rows would change it)."""
    first = {}
    for packing in (False, True):
        cfg = config(trainer={"max_steps": 1, "packing": packing, "per_device_train_batch_size": 6, "max_length": 128})
        ctx = tiny.context(tmp_path / str(packing), model=policy)
        first[packing] = sft.train(ctx, cfg, tiny.traces(6), overlong="drop")["train/loss"]
    assert first[True] == pytest.approx(first[False], rel=1e-4)
