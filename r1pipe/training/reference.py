"""The reference of GRPO's KL term, replaced by the policy every N steps (paper v2, 2.1: every 400).

TRL can copy the policy into the reference of a full training (not of LoRA), but forgets the copy on resume. Here:

- full: the weights go into `trainer.ref_model`; LoRA: into the frozen adapter "ref", which TRL uses as reference
  where it exists (`grpo_trainer.py`, `use_adapter`).
- the reference of a step is saved once, in `reference-<step>/` beside the checkpoints. A resume at step S with
  period N takes `reference-<S // N * N>`: no state to keep in step with, whatever was saved when.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from r1pipe.errors import UserError
from r1pipe.stage import StageContext
from r1pipe.training import checkpoint

ADAPTER_FILE = "adapter.safetensors"


def folder_of(folder: Path, step: int) -> Path:
    return folder / f"reference-{step}"


def due(step: int, every: int) -> int:
    """The step whose policy is the reference at `step` (0: the step's input model)."""
    return step // every * every


def resumed_from(folder: Path, step: int, every: int | None) -> Path | None:
    """The saved reference that a resume at `step` needs; None where it is the input model.

    Raises UserError where it is gone (then the checkpoint cannot be continued exactly).
    """
    if not every or not due(step, every):
        return None
    path = folder_of(folder, due(step, every))
    if not checkpoint.is_complete(path):
        raise UserError(
            f"{path} is missing or damaged: step {step} cannot be resumed with the reference that it had",
            hint="run the step anew with --force",
        )
    return path


def refuse_partitions(trainer: Any) -> None:
    """Under ZeRO-3 a process holds parts of an adapter, and copying it would silently copy nothing."""
    plugin = trainer.accelerator.state.deepspeed_plugin if trainer.is_deepspeed_enabled else None
    if plugin is not None and plugin.zero_stage == 3:
        raise UserError("reference_refresh with lora does not go with ZeRO-3", hint="zero2, fsdp2 or no refresh")


def freeze_adapter(model: Any) -> None:
    """TRL copies the adapter "default" to "ref" when the trainer is built; it must not be trained."""
    for name, parameter in model.named_parameters():
        if ".ref." in name:
            parameter.requires_grad_(False)


def load_adapter(model: Any, path: Path) -> None:
    """Puts a saved reference into the adapter "ref" (before the model is wrapped for several processes)."""
    from safetensors.torch import load_file

    saved = load_file(path / ADAPTER_FILE)
    targets = {name: p for name, p in model.named_parameters() if ".ref." in name}
    if set(saved) != set(targets):
        raise UserError(f"{path} does not fit this model: {len(saved)} tensors found, {len(targets)} expected")
    for name, parameter in targets.items():
        parameter.data.copy_(saved[name])


class Refresh(TrainerCallback):
    """Makes the policy the reference after every `every` optimizer steps. `trainer` is set once it is built."""

    def __init__(self, ctx: StageContext, every: int) -> None:
        self.ctx = ctx
        self.every = every
        self.trainer: Any = None
        self.times = 0

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step % self.every:
            return
        trainer = self.trainer
        folder = folder_of(Path(args.output_dir), state.global_step)
        model = trainer.accelerator.unwrap_model(trainer.model)
        if trainer.ref_model is not None:
            from trl.trainer.callbacks import SyncRefModelCallback

            reference = trainer.accelerator.unwrap_model(trainer.ref_model)
            SyncRefModelCallback.sync_target_model(model, reference, 1.0)  # gathers the shards of ZeRO-3
            self._save_full(folder)
        else:
            self._copy_adapter(model)
            self._save_adapter(folder)
        self.times += 1

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Drops references that no kept checkpoint needs; and the adapter "ref" from the checkpoint:
        with an adapter in a subfolder, Trainer's resume loads that one and leaves "default" untrained."""
        if not self.ctx.is_main:
            return
        folder = Path(args.output_dir)
        shutil.rmtree(folder / f"checkpoint-{state.global_step}" / "ref", ignore_errors=True)
        needed = {due(step, self.every) for step in checkpoint.steps(folder)} | {due(state.global_step, self.every)}
        for path in folder.glob("reference-*"):
            if path.suffix != ".tmp" and int(path.name.split("-")[1]) not in needed:
                shutil.rmtree(path, ignore_errors=True)

    def _copy_adapter(self, model: Any) -> None:
        for name, parameter in model.named_parameters():
            if ".default." in name:
                model.get_parameter(name.replace(".default.", ".ref.")).data.copy_(parameter.data)

    def _save_full(self, folder: Path) -> None:
        trainer = self.trainer
        state = trainer.accelerator.get_state_dict(trainer.model)  # gathers shards: every process takes part
        if self.ctx.is_main:
            temporary = _fresh(folder)
            trainer.accelerator.unwrap_model(trainer.model).save_pretrained(temporary, state_dict=state)
            _publish(temporary, folder)
        trainer.accelerator.wait_for_everyone()

    def _save_adapter(self, folder: Path) -> None:
        from safetensors.torch import save_file

        trainer = self.trainer
        state = trainer.accelerator.get_state_dict(trainer.model)
        if self.ctx.is_main:
            temporary = _fresh(folder)
            tensors = {k: v.detach().cpu().contiguous().clone() for k, v in state.items() if ".ref." in k}
            save_file(tensors, temporary / ADAPTER_FILE)
            _publish(temporary, folder)
        trainer.accelerator.wait_for_everyone()


def _fresh(folder: Path) -> Path:
    temporary = folder.with_name(folder.name + ".tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    return temporary


def _publish(temporary: Path, folder: Path) -> None:
    """Whole or not at all."""
    checkpoint.mark(temporary)
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(temporary, folder)
