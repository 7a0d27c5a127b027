"""Chooses and builds a sampler. Light until `make` is called: no torch at import."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from r1pipe.chat import ChatConfig
from r1pipe.errors import UserError
from r1pipe.generate.base import Sampler
from r1pipe.settings import EngineConfig


def resolve(engine: EngineConfig) -> tuple[str, str]:
    """The kind that will generate, and why. "auto" takes vLLM where it is installed and there is a GPU."""
    if engine.kind != "auto":
        return engine.kind, "configured"
    if importlib.util.find_spec("vllm") is None:
        return "transformers", "auto: vllm is not installed"
    import torch

    if not torch.cuda.is_available():
        return "transformers", "auto: vllm is installed, but there is no GPU (engine.kind: vllm uses it anyway)"
    return "vllm", "auto: vllm is installed and there is a GPU"


def make(
    engine: EngineConfig,
    model_dir: str | Path | None,
    chat: ChatConfig,
    *,
    dtype: str = "auto",
    model: Any = None,
    tokenizer: Any = None,
) -> Sampler:
    """A sampler of the checkpoint in `model_dir`, or of a `model` in memory (transformers only).

    Its `facts` say the engine and the reason for it, versions, dtype and device. Raises UserError where the engine
    is not installed, or not fit for what is asked.
    """
    kind, reason = resolve(engine)
    if model is not None and kind == "vllm" and engine.kind == "auto":
        kind, reason = "transformers", "auto: the model is in memory, vllm reads a folder"
    sampler = _build(kind, engine, model_dir, chat, dtype, model, tokenizer)
    sampler.facts["chosen"] = reason
    return sampler


def _build(
    kind: str,
    engine: EngineConfig,
    model_dir: str | Path | None,
    chat: ChatConfig,
    dtype: str,
    model: Any,
    tokenizer: Any,
) -> Sampler:
    if kind == "scripted":
        from r1pipe.generate.scripted import ScriptedSampler

        try:
            return ScriptedSampler(**{"replies": ["<think>\nI do not know.\n</think>"], **engine.options})
        except TypeError as error:
            raise UserError(f"engine.options of a scripted engine: {error}", hint="replies, pick, seconds") from None
    if kind == "server":
        from r1pipe.generate.server import ServerSampler

        if not engine.url:
            raise UserError("engine.kind is server, but engine.url is not set", hint='set engine.url: "http://..."')
        return ServerSampler(engine.url, chat, options=engine.options, workers=engine.batch_size)
    if model is not None and kind == "vllm":
        raise UserError(
            "vllm samples from a checkpoint folder, not from a model in memory",
            hint="set engine.kind: transformers (or auto)",
        )
    if kind == "vllm":
        from r1pipe.generate.vllm_engine import VllmSampler, require

        require()
        if model_dir is None:
            raise UserError("no model to sample from", hint="give a checkpoint folder")
        if engine.options.get("data_parallel_size", 1) > 1:
            from r1pipe.generate.replicas import ReplicaSampler

            return ReplicaSampler(model_dir, chat, dtype=dtype, options=engine.options)
        return VllmSampler(model_dir, chat, dtype=dtype, options=engine.options)
    from r1pipe.generate.transformers_engine import TransformersSampler

    return TransformersSampler(
        model_dir, chat, dtype=dtype, batch_size=engine.batch_size, model=model, tokenizer=tokenizer
    )


def engine_arguments(engine: EngineConfig, model_dir: str | Path, dtype: str = "auto") -> dict[str, Any]:
    """What the engine would be built with, for --dry-run; loads no model.

    For vLLM the real `EngineArgs` is built where vllm is installed (`checked` says so); an option that it does not
    know is a UserError.
    """
    kind, reason = resolve(engine)
    facts: dict[str, Any] = {"engine": kind, "chosen": reason}
    if kind == "vllm":
        from r1pipe.generate.vllm_engine import arguments, check_arguments

        values = arguments(model_dir, dtype, engine.options)
        return {**facts, "arguments": values, "checked": check_arguments(values)}
    if kind == "server":
        return {**facts, "url": engine.url}
    return {**facts, "batch_size": engine.batch_size}
