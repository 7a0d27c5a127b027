"""What every sampler promises. Light: no torch."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from r1pipe.settings import SamplingConfig

Message = dict[str, str]
Conversation = list[Message]
Finish = Literal["stop", "length", "skipped"]
Progress = Callable[[int, int, int], None]
"""Called with (samples done, samples in all, tokens made so far)."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One completion.

    `text` is what the model wrote, with a prefilled opening tag put back and special tokens dropped; `tokens`
    counts the new tokens, the end-of-turn token included; `finish` is "stop" (the model ended its turn),
    "length" (cut at `max_tokens` or at the context) or "skipped" (the prompt does not fit, or a server failed on
    this row: empty text, 0 tokens); `index` is the number of the sample among those of its prompt. A skipped one
    says `why`; `again` is true where another try could succeed.
    """

    text: str
    tokens: int
    finish: Finish
    index: int
    why: str = ""
    again: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """The samples that are wanted of one prompt: one for each of `seeds`. Those at the indices `have` are there
    already and are not made again. `key` is the caller's name for the prompt."""

    key: str
    conversation: Conversation
    seeds: tuple[int, ...]
    have: frozenset[int] = frozenset()

    @property
    def missing(self) -> list[int]:
        return [index for index in range(len(self.seeds)) if index not in self.have]


Made = list[tuple[Ask, Sample]]


class Sampler(Protocol):
    """Samples a policy. A prompt that does not fit, and a request that fails, cost only themselves. A sample depends
    on its prompt, the settings and its seed alone, on the same machine and engine, up to rounding of the logits."""

    name: str
    facts: dict[str, Any]

    def stream(self, groups: Iterable[list[Ask]], sampling: SamplingConfig) -> Iterator[Made]:
        """The missing samples of every prompt (`sampling.n` is not read), each once, in any order, as they are done.

        The next group is taken when the engine has room for it. A group that comes again with some of its samples
        there already gives the others exactly as before, where the engine works in batches (transformers).
        """
        ...

    def generate(
        self,
        conversations: list[Conversation],
        sampling: SamplingConfig,
        *,
        seed: int,
        on_progress: Progress | None = None,
    ) -> list[list[Sample]]:
        """One list a conversation, in the order given, each with `sampling.n` samples in order of `index`."""
        ...

    def close(self) -> None: ...


class Streaming:
    """`generate`, for a sampler that has `stream`."""

    def stream(self, groups: Iterable[list[Ask]], sampling: SamplingConfig) -> Iterator[Made]:
        raise NotImplementedError

    def generate(
        self,
        conversations: list[Conversation],
        sampling: SamplingConfig,
        *,
        seed: int,
        on_progress: Progress | None = None,
    ) -> list[list[Sample]]:
        """See `Sampler`."""
        seeds = sample_seeds(conversations, sampling.n, seed)
        asks = [Ask(str(place), c, tuple(s)) for place, (c, s) in enumerate(zip(conversations, seeds, strict=True))]
        found: list[dict[int, Sample]] = [{} for _ in asks]
        done = tokens = 0
        for made in self.stream([asks], sampling):
            for ask, sample in made:
                found[int(ask.key)][sample.index] = sample
                tokens += sample.tokens
            done += len(made)
            if on_progress:
                on_progress(done, len(asks) * sampling.n, tokens)
        return [[samples[index] for index in range(sampling.n)] for samples in found]


def sample_seeds(conversations: list[Conversation], n: int, seed: int) -> list[list[int]]:
    """A 63-bit seed for each sample, from (run seed, content of the prompt, its occurrence, sample index).

    It does not depend on the other prompts or on their order, so a row samples the same in any batch or shard;
    a prompt that occurs twice gets other seeds the second time (known-failures f2).
    """
    seen: Counter[str] = Counter()
    out = []
    for conversation in conversations:
        key = json.dumps(conversation, sort_keys=True, ensure_ascii=False)
        occurrence = seen[key]
        seen[key] += 1
        prefix = f"{seed}\x1f{occurrence}\x1f{key}\x1f"
        digests = (hashlib.sha256(f"{prefix}{index}".encode()).digest() for index in range(n))
        out.append([int.from_bytes(d[:8], "big") >> 1 for d in digests])
    return out


def too_long(ask: Ask, length: int, context: int) -> Made:
    """The missing samples of a prompt that leaves no room in the context."""
    why = f"the prompt has {length} tokens, the context {context}"
    return [(ask, Sample("", 0, "skipped", index, why)) for index in ask.missing]
