"""Trainer arguments: what a profile's `trainer:` says, plus the few values that are ours to set."""

from __future__ import annotations

import logging
import shutil
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from r1pipe.errors import UserError
from r1pipe.stage import StageContext
from r1pipe.training import checkpoint, fields, model, trackers

# Keys that a profile may not set, and where the same thing is set instead.
OURS = {
    "output_dir": "checkpoints lie in the step's work folder",
    "resume_from_checkpoint": "a step resumes by itself",
    "seed": "set `seed` on the step",
    "model_init_kwargs": "set `model_options` on the step",
    "trust_remote_code": "set `base_model.trust_remote_code`",
    "push_to_hub": "push a finished model by hand",
    "load_best_model_at_end": "the evaluation after each step compares models",
    "dataset_kwargs": "rows are prepared by the step",
    "remove_unused_columns": "rows are prepared by the step",
    "chat_template_path": "set `chat.template`",
    "eos_token": "the chat template's turn end is used",
    "pad_token": "the base model's pad token is used",
    "assistant_only_loss": "the loss is always on the assistant's turns",
    "completion_only_loss": "the loss is always on the assistant's turns",
    "sync_ref_model": "set `reference_refresh` on the step",
    "ref_model_mixup_alpha": "set `reference_refresh` on the step",
    "ref_model_sync_steps": "set `reference_refresh` on the step",
    "reward_weights": "set `rewards.<name>.weight` on the step",
    "shuffle_dataset": "the step lays out its rows in the order of its seed",
    "do_train": "a step trains",
    "auto_find_batch_size": "it would change the results between machines",
}


def check_trainer(cls_name: str) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """A pydantic validator of `trainer:`; ValueErrors, so that all faults of a profile are reported together."""

    def validate(value: Mapping[str, Any]) -> Mapping[str, Any]:
        for key in value:
            if key in OURS:
                raise ValueError(f"trainer.{key} is not for a profile: {OURS[key]}")
        as_value_error("trainer", value, cls_name)
        trackers.names(value.get("report_to"))
        if value.get("save_total_limit") is not None and value["save_total_limit"] < 2:
            raise ValueError(
                "trainer.save_total_limit must be at least 2: a kill while saving must leave a checkpoint"
            )
        return value

    return validate


def as_value_error(where: str, value: Mapping[str, Any] | None, cls_name: str) -> None:
    """`fields.check_keys` for use inside a pydantic validator."""
    try:
        fields.check_keys(where, value or {}, cls_name)
    except UserError as error:
        raise ValueError(f"{error.message} ({error.hint})" if error.hint else error.message) from None


def has_accelerator() -> bool:
    import torch

    return torch.accelerator.is_available()


def defaults(ctx: StageContext, cls_name: str, trainer: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that are ours where the profile does not set them."""
    given: dict[str, Any] = {
        "report_to": [],
        "disable_tqdm": True,
        "logging_steps": 1,  # progress, and the check for a loss that is not finite
        "logging_nan_inf_filter": False,  # the filter hides such a loss
        "save_strategy": "steps",
        "save_total_limit": 2,
    }
    if not has_accelerator():
        given |= {"use_cpu": True, "dataloader_pin_memory": False}
        if not trainer.get("fp16"):
            given["bf16"] = False
    known = fields.known(cls_name)
    return {k: v for k, v in given.items() if k in known and k not in trainer}


def build(
    cls_name: str,
    ctx: StageContext,
    trainer: Mapping[str, Any],
    *,
    extra: Mapping[str, Any] | None = None,
    num_processes: int | None = None,
) -> tuple[Any, dict[str, Any]]:
    """The real config object of the trainer, and facts about how it was built.

    `extra` holds values that a stage computes (max_steps, ...). `num_processes` is given for a check that runs in
    one process and must do the arithmetic of several. Raises UserError with the library's own message.
    """
    import transformers
    import trl

    quiet()
    cls = getattr(trl, cls_name, None) or getattr(transformers, cls_name)
    facts: dict[str, Any] = {}
    values = {
        **defaults(ctx, cls_name, trainer),
        **trainer,
        **trackers.prepare(ctx, trainer),
        **(extra or {}),
        "output_dir": str(checkpoints(ctx)),
        "seed": ctx.seed,
    }
    if num_processes is not None:
        # A check: the class with the world size of the launch that it stands for.
        cls = type(cls.__name__, (cls,), {"world_size": property(lambda self: num_processes)})
        if values.get("bf16") is True and not has_accelerator():
            facts["built"] = "for the CPU: use_cpu added (this machine has no accelerator, the profile asks for bf16)"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return cls(**values), facts
    except (ValueError, TypeError, ImportError, NotImplementedError) as error:
        raise UserError(
            f"{cls_name} of trl {trl.__version__} refuses the trainer settings of step {ctx.step}: {error}",
            hint="change the key that the message names under `trainer:`",
        ) from error


def checkpoints(ctx: StageContext) -> Path:
    """Where the trainer saves."""
    return ctx.work / "checkpoints"


def resume_point(ctx: StageContext) -> Path | None:
    """The whole checkpoint to go on from. What a kill left half-written is deleted, by the main process."""
    folder = checkpoints(ctx)
    if ctx.is_main:
        if not ctx.resume:
            shutil.rmtree(folder, ignore_errors=True)
        checkpoint.last_complete(folder)
        folder.mkdir(parents=True, exist_ok=True)
    if ctx.world_size > 1:
        from accelerate import PartialState

        PartialState(cpu=not has_accelerator()).wait_for_everyone()
    last = checkpoint.last_complete(folder, delete=False)
    if last is not None:
        ctx.fact("resumed_from_step", int(last.name.split("-")[1]))
    return last


def no_model_card(trainer: Any) -> None:
    """TRL writes a README at every checkpoint; a checkpoint is no artifact."""
    trainer.create_model_card = lambda *args, **kwargs: None


def model_facts(ctx: StageContext, lora: Any | None = None, *, trained: bool = False) -> dict[str, Any]:
    """Facts of the input model from its config alone, where it is there already (or a fixture stands for it)."""
    source = ctx.inputs.get("model")
    if source is None or not (source.path / "config.json").is_file():
        return {}
    return model.meta_check(source.path, lora, trained=trained)


def lora_config(lora: Mapping[str, Any] | None, task: str = "CAUSAL_LM") -> Any | None:
    """`peft.LoraConfig`, or None without `lora:`."""
    if lora is None:
        return None
    import peft

    values: dict[str, Any] = {"task_type": task, **lora}
    if task == "SEQ_CLS" and not values.get("modules_to_save"):
        values["modules_to_save"] = ["score"]  # the new head must be trained and saved
    try:
        return peft.LoraConfig(**values)
    except (ValueError, TypeError) as error:
        raise UserError(f"LoraConfig refuses `lora:`: {error}") from error


def quantization_config(quantization: Mapping[str, Any] | None) -> Any | None:
    """`transformers.BitsAndBytesConfig`, or None without `quantization:`."""
    if quantization is None:
        return None
    import transformers

    return transformers.BitsAndBytesConfig(**quantization)


def quiet() -> None:
    """Libraries say little, and nothing with a progress bar (the step's output is its log file)."""
    import datasets
    import transformers

    datasets.disable_progress_bars()
    transformers.utils.logging.disable_progress_bar()
    transformers.logging.set_verbosity_warning()
    for name in ("httpx", "filelock", "fsspec"):
        logging.getLogger(name).setLevel(logging.WARNING)
