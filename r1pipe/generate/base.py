"""What every sampler promises. Light: no torch."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable
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
    this row: empty text, 0 tokens); `index` is the number of the sample among those of its prompt.
    """

    text: str
    tokens: int
    finish: Finish
    index: int


class Sampler(Protocol):
    """Generates `sampling.n` samples a conversation.

    The result has one list a conversation, in the order given, each with n samples in order of `index`. A prompt
    that does not fit costs only itself. The same seed gives the same samples on the same machine and engine.
    """

    name: str
    facts: dict[str, Any]

    def generate(
        self,
        conversations: list[Conversation],
        sampling: SamplingConfig,
        *,
        seed: int,
        on_progress: Progress | None = None,
    ) -> list[list[Sample]]: ...

    def close(self) -> None: ...


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


def skipped(n: int) -> list[Sample]:
    """The samples of a prompt that could not be generated."""
    return [Sample("", 0, "skipped", index) for index in range(n)]
