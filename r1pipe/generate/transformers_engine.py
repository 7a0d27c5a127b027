"""Sampling with transformers, in a decode loop of our own.

Why not `model.generate`: it copies the cache each token, keeps finished rows to the end of the batch, draws from
one generator (a sample then depends on its neighbours), and prefills a prompt once a sample. Here sequences are
sorted by prompt length, a prompt is prefilled once, finished rows leave the batch, and each sample has its own
stream of uniform numbers, so it is the same in any batch (up to rounding of the logits).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from r1pipe.chat import ChatConfig
from r1pipe.errors import UserError
from r1pipe.generate.base import Conversation, Progress, Sample, sample_seeds, skipped
from r1pipe.generate.render import Renderer, load_tokenizer, stop_ids
from r1pipe.settings import SamplingConfig

if TYPE_CHECKING:
    from r1pipe.generate.decode import Sequence

PREFILL_TOKENS = 32768  # most prompt tokens in one forward pass: bounds the memory of activations


class TransformersSampler:
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
        self.facts: dict[str, Any] = {
            "engine": self.name,
            "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
            "dtype": str(next(model.parameters()).dtype).removeprefix("torch."),
            "device": str(next(model.parameters()).device),
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
        import torch

        from r1pipe.generate.decode import Sequence, decode

        prompts = self.renderer.prompts(conversations)
        seeds = sample_seeds(conversations, sampling.n, seed)
        sequences = [
            Sequence(p, i, seeds[p][i], min(sampling.max_tokens, self.context - len(ids)))
            for p, ids in enumerate(prompts)
            for i in range(sampling.n)
            if len(ids) < self.context
        ]
        # Prompts of one length together pad little; the samples of a prompt stay adjacent.
        sequences.sort(key=lambda s: (len(prompts[s.prompt]), s.prompt, s.index))
        done = tokens = 0
        training = self.model.training
        self.model.eval()
        try:
            with torch.inference_mode():
                for batch in self._batches(sequences, prompts):
                    decode(self.model, batch, prompts, sampling, self.stop, self.pad)
                    done += len(batch)
                    tokens += sum(len(s.tokens) for s in batch)
                    if on_progress:
                        on_progress(done, len(sequences), tokens)
        finally:
            self.model.train(training)
        return self._collect(len(prompts), sampling.n, sequences)

    def _batches(self, sequences: list[Sequence], prompts: list[list[int]]) -> list[list[Sequence]]:
        out: list[list[Sequence]] = []
        seen: set[int] = set()
        for s in sequences:
            width = len(prompts[s.prompt])  # sorted: the last is the longest
            fits = out and len(out[-1]) < self.batch_size and width * len(seen | {s.prompt}) <= PREFILL_TOKENS
            if not fits:
                out.append([])
                seen = set()
            out[-1].append(s)
            seen.add(s.prompt)
        return out

    def _collect(self, prompts: int, n: int, sequences: list[Sequence]) -> list[list[Sample]]:
        result = [skipped(n) for _ in range(prompts)]
        for s, text in zip(sequences, self.renderer.texts([s.tokens for s in sequences]), strict=True):
            result[s.prompt][s.index] = Sample(text, len(s.tokens), s.finish, s.index)
        return result

    def close(self) -> None:
        self.model = None
