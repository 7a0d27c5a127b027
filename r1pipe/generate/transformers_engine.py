"""Sampling with transformers, in a decode loop of our own.

Why not `model.generate`: it copies the cache each token, keeps finished rows to the end of the batch, draws from
one generator (a sample then depends on its neighbours), and prefills a prompt once a sample. Here sequences are
sorted by prompt length, a prompt is prefilled once, finished rows leave the batch, and each sample has its own
stream of uniform numbers, so it is the same in any batch (up to rounding of the logits).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r1pipe.chat import ChatConfig
from r1pipe.errors import UserError
from r1pipe.generate.base import Ask, Made, Sample, Streaming, too_long
from r1pipe.generate.render import Renderer, load_tokenizer, stop_ids
from r1pipe.settings import SamplingConfig

if TYPE_CHECKING:
    from r1pipe.generate.decode import Sequence

PREFILL_TOKENS = 32768  # most prompt tokens in one forward pass: bounds the memory of activations
CPU_CACHE_BYTES = 4 * 2**30


class TransformersSampler(Streaming):
    """See `Sampler`. `model` and `tokenizer` may be given (a model in training); else they load from `model_dir`."""

    name = "transformers"

    def __init__(
        self,
        model_dir: str | Path | None,
        chat: ChatConfig,
        *,
        dtype: str = "auto",
        batch_size: int = 256,
        model: Any = None,
        tokenizer: Any = None,
    ) -> None:
        import torch
        import transformers

        if model is None:
            if model_dir is None:
                raise UserError("no model to sample from", hint="give a checkpoint folder")
            device = "cuda" if torch.cuda.is_available() else "cpu"
            model = transformers.AutoModelForCausalLM.from_pretrained(str(model_dir), dtype=dtype)
            model.to(device)
        self.tokenizer = tokenizer if tokenizer is not None else load_tokenizer(model_dir or ".")
        self.model = model
        self.renderer = Renderer(self.tokenizer, chat)
        self.stop = stop_ids(model_dir, model, self.tokenizer)
        pad = self.tokenizer.pad_token_id
        self.pad: int = self.stop[0] if pad is None else pad
        self.batch_size = batch_size
        config = model.config.get_text_config()
        self.context: int = config.max_position_embeddings
        self.cache_tokens = cache_bytes(model) // token_bytes(config, next(model.parameters()).element_size())
        self.facts: dict[str, Any] = {
            "engine": self.name,
            "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
            "dtype": str(next(model.parameters()).dtype).removeprefix("torch."),
            "device": str(next(model.parameters()).device),
            "prefilled_think": bool(self.renderer.prefix),
            "context": self.context,
        }

    def stream(self, groups: Iterable[list[Ask]], sampling: SamplingConfig) -> Iterator[Made]:
        """See `Sampler`: a batch at a time. A group that comes again is laid out as before, and a batch that lacks a
        sample is made whole, so that each sample sees the neighbours that it had."""
        for asks in groups:
            yield from self._group(asks, sampling)

    def _group(self, asks: list[Ask], sampling: SamplingConfig) -> Iterator[Made]:
        asks, refused = self.renderer.taken(asks)
        if refused:
            yield refused
        prompts = self.renderer.prompts([ask.conversation for ask in asks])
        fits = [len(ids) < self.context for ids in prompts]
        if long := [p for p, ok in enumerate(fits) if not ok and asks[p].missing]:
            yield [pair for p in long for pair in too_long(asks[p], len(prompts[p]), self.context)]
        for batch in self._batches(self._sequences(asks, prompts, fits, sampling), prompts):
            if any(s.index not in asks[s.prompt].have for s in batch):
                self._decode(batch, prompts, sampling)
                texts = self.renderer.texts([s.tokens for s in batch])
                yield [
                    (asks[s.prompt], Sample(text, len(s.tokens), s.finish, s.index))
                    for s, text in zip(batch, texts, strict=True)
                    if s.index not in asks[s.prompt].have
                ]

    def _sequences(
        self, asks: list[Ask], prompts: list[list[int]], fits: list[bool], sampling: SamplingConfig
    ) -> list[Sequence]:
        """All of them in order of work: prompts of one length together pad little; the samples of a prompt stay
        adjacent, so that it is prefilled once."""
        from r1pipe.generate.decode import Sequence

        sequences = [
            Sequence(p, i, seed, min(sampling.max_tokens, self.context - len(prompts[p])))
            for p, ask in enumerate(asks)
            if fits[p]
            for i, seed in enumerate(ask.seeds)
        ]
        sequences.sort(key=lambda s: (len(prompts[s.prompt]), s.prompt, s.index))
        return sequences

    def _batches(self, sequences: list[Sequence], prompts: list[list[int]]) -> list[list[Sequence]]:
        """Batches by tokens: as many rows as the cache has room for at their longest, `batch_size` at most."""
        out: list[list[Sequence]] = []
        seen: set[int] = set()
        longest = 0
        for s in sequences:
            width = len(prompts[s.prompt])  # sorted: the last is the longest
            room = max(longest, s.budget)
            fits = (
                out
                and len(out[-1]) < self.batch_size
                and width * len(seen | {s.prompt}) <= PREFILL_TOKENS
                and (width + room) * (len(out[-1]) + 1) <= self.cache_tokens
            )
            if not fits:
                out.append([])
                seen, room = set(), s.budget
            out[-1].append(s)
            seen.add(s.prompt)
            longest = room
        return out

    def _decode(self, batch: list[Sequence], prompts: list[list[int]], sampling: SamplingConfig) -> None:
        import torch

        from r1pipe.generate.decode import decode

        training = self.model.training
        self.model.eval()
        try:
            with torch.inference_mode():
                decode(self.model, batch, prompts, sampling, self.stop, self.pad)
        finally:
            self.model.train(training)

    def close(self) -> None:
        self.model = None


def cache_bytes(model: Any) -> int:
    """Room for the keys and values of a batch: a share of all the memory, so that batches are the same each time."""
    import torch

    device = next(model.parameters()).device
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory * 0.3)
    return min(CPU_CACHE_BYTES, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4)


def token_bytes(config: Any, element_size: int) -> int:
    """Bytes that the cache holds a token."""
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return 2 * config.num_hidden_layers * heads * size * element_size
