"""Policies on disk and in memory: load for training, merge, save what belongs to an artifact and nothing else."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from r1pipe.errors import StepFailed, UserError
from r1pipe.stage import StageContext

# The files of a policy besides its weights. What is not here never becomes part of an artifact
# (training_args.bin is a pickle that holds paths; TRL and peft write model cards).
SIDE_FILES = (
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "vocab.json",
    "merges.txt",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
)
# transformers 5 reads these and writes them no more: left beside a changed tokenizer, they bring the old tokens back.
OLD_TOKENIZER_FILES = ("special_tokens_map.json", "added_tokens.json")


def is_weights(name: str) -> bool:
    """Safetensors or their index."""
    return name.endswith((".safetensors", ".safetensors.index.json"))


def load_tokenizer(path: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(path)


def load_policy(path: Path, options: Mapping[str, Any], quantization: Any | None = None) -> Any:
    """The model of a policy folder, in float32 unless `options` say otherwise (TRL's own rule for training)."""
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(path, **init_kwargs(options, quantization))


def init_kwargs(options: Mapping[str, Any], quantization: Any | None = None) -> dict[str, Any]:
    """Arguments of from_pretrained. `use_safetensors`: a pickle is never loaded."""
    import torch

    values: dict[str, Any] = {"dtype": "float32", **options, "use_safetensors": True}
    if isinstance(values["dtype"], str) and values["dtype"] != "auto":
        dtype = getattr(torch, values["dtype"], None)
        if not isinstance(dtype, torch.dtype):
            raise UserError(f'model_options.dtype "{values["dtype"]}" is no dtype', hint="float32, bfloat16, float16")
        values["dtype"] = dtype
    if quantization is not None:
        values["quantization_config"] = quantization
    return values


def check_trainable(model: Any, ctx: StageContext) -> int:
    """Counts what will be trained; raises UserError where that is nothing (known-failures e9)."""
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    ctx.fact("trainable_parameters", trainable)
    ctx.fact("parameters", sum(p.numel() for p in model.parameters()))
    if not trainable:
        raise UserError("no parameter would be trained", hint="look at lora.target_modules")
    return trainable


def save_policy(trainer: Any, source: Path, out: Path, ctx: StageContext, options: Mapping[str, Any]) -> None:
    """Writes the trained policy to `out`: merged weights in safetensors, and the side files of `source` unchanged.

    Every process must call it (shards are gathered); the main one writes. The tokenizer, the template and the
    generation config are copied from the input, so that they are the same bytes in every step of a run.
    """
    ctx.phase("saving")
    accelerator = trainer.accelerator
    model = accelerator.unwrap_model(trainer.model)
    sharded = trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled
    lora = hasattr(model, "peft_config")
    quantized = getattr(model, "is_quantized", False) or getattr(model, "quantization_method", None) is not None
    state = accelerator.get_state_dict(trainer.model) if sharded else None
    if ctx.is_main:
        out.mkdir(parents=True, exist_ok=True)
        if lora and (sharded or quantized):
            model, state = _merge_apart(model, source, ctx.work / "adapter", state, options), None
        elif lora:
            if "ref" in model.peft_config:
                model.delete_adapter("ref")
            model = model.merge_and_unload()
        model.config.use_cache = True  # gradient checkpointing switches it off in the config
        model.save_pretrained(out, state_dict=state)
        copy_side_files(source, out)
        clean(out)
    accelerator.wait_for_everyone()


def _merge_apart(model: Any, source: Path, folder: Path, state: Any, options: Mapping[str, Any]) -> Any:
    """The adapter merged into an unquantized, unsharded copy of the base (merging into 4 bits loses it, e10)."""
    from peft import PeftModel

    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder, state_dict=state, selected_adapters=["default"])
    base = load_policy(source, {"dtype": "bfloat16", **options})
    return PeftModel.from_pretrained(base, folder).merge_and_unload()


def copy_side_files(source: Path, out: Path) -> None:
    """Tokenizer, template and generation config, byte by byte."""
    for name in SIDE_FILES:
        (out / name).unlink(missing_ok=True)
        if (source / name).is_file():
            shutil.copyfile(source / name, out / name)


def clean(out: Path) -> None:
    """Removes what does not belong to a policy; raises StepFailed where the weights are not there."""
    for path in out.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif not (is_weights(path.name) or path.name in (*SIDE_FILES, "config.json")):
            path.unlink()
    if not any(p.suffix == ".safetensors" for p in out.iterdir()):
        raise StepFailed(f"no safetensors were written to {out}")


def context_length(source: Path) -> int | None:
    """Most tokens a sequence of the model may have, prompt and completion together."""
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    return config.get("max_position_embeddings") or config.get("text_config", {}).get("max_position_embeddings")


def meta_check(source: Path, lora: Any | None = None, *, trained: bool = False) -> dict[str, Any]:
    """Builds the model of `source/config.json` on the meta device: no weights, no memory. Returns counts."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(source)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
        facts: dict[str, Any] = {
            "model": config.model_type,
            "parameters": sum(p.numel() for p in model.parameters()),
            "context": context_length(source),
        }
        if lora is not None:
            from peft import get_peft_model

            try:
                model = get_peft_model(model, lora)
            except ValueError as error:
                raise UserError(f"`lora:` does not fit {config.model_type}: {error}") from error
        if trained:
            facts["trainable_parameters"] = sum(p.numel() for p in model.parameters() if p.requires_grad)
    return facts
