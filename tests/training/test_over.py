"""A step that is killed after its last checkpoint, while it is saved or evaluated, trains no step more."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import transformers

from r1pipe.stage import StageContext
from r1pipe.training import callbacks


class Line(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": ((self.layer(x) - labels) ** 2).mean()}


def trainer(folder: Path, ended: list[int]) -> Any:
    class End(transformers.TrainerCallback):
        def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            ended.append(state.global_step)

    torch.manual_seed(0)
    args = transformers.TrainingArguments(
        str(folder), max_steps=2, save_steps=2, per_device_train_batch_size=1, use_cpu=True, report_to=[],
        learning_rate=0.1, lr_scheduler_type="constant", disable_tqdm=True,
    )  # fmt: skip
    rows = [{"x": torch.tensor([float(i)]), "labels": torch.tensor([1.0])} for i in range(4)]  # an epoch of 4 steps
    ctx = StageContext("sft", 0, {}, {}, folder)
    health: Any = SimpleNamespace(check_weights=lambda model, step: None)
    last = [End(), callbacks.Checkpoints(ctx, health)]
    return transformers.Trainer(Line(), args, train_dataset=rows, callbacks=last)  # type: ignore[arg-type]


def test_a_resume_from_the_last_checkpoint_trains_nothing(tmp_path: Path) -> None:
    ended: list[int] = []
    first = trainer(tmp_path, ended)
    callbacks.train(first, None)
    again = trainer(tmp_path, ended)
    callbacks.train(again, tmp_path / "checkpoint-2")
    assert again.state.global_step == 2
    assert ended == [2, 2]
    for name, value in first.model.state_dict().items():
        assert torch.equal(value, again.model.state_dict()[name])
