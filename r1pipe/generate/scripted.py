"""Replies from a list or a function: for tests of what stands on a sampler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from r1pipe.generate.base import Conversation, Progress, Sample
from r1pipe.settings import SamplingConfig

Reply = Callable[[Conversation, int], str]


class ScriptedSampler:
    """See `Sampler`. A list is walked through again and again (one reply a sample); a function is called with
    (conversation, sample index). Tokens are counted as blank-separated words; more than `max_tokens` is cut."""

    name = "scripted"

    def __init__(self, replies: list[str] | Reply) -> None:
        self._replies = replies
        self._at = 0
        self.facts: dict[str, Any] = {"engine": self.name, "versions": {}, "dtype": None, "device": None}

    def _reply(self, conversation: Conversation, index: int) -> str:
        if callable(self._replies):
            return self._replies(conversation, index)
        self._at += 1
        return self._replies[(self._at - 1) % len(self._replies)]

    def generate(
        self,
        conversations: list[Conversation],
        sampling: SamplingConfig,
        *,
        seed: int,
        on_progress: Progress | None = None,
    ) -> list[list[Sample]]:
        out: list[list[Sample]] = []
        tokens = 0
        for conversation in conversations:
            row = []
            for index in range(sampling.n):
                text = self._reply(conversation, index)
                words = text.split(" ")
                cut = len(words) > sampling.max_tokens
                text = " ".join(words[: sampling.max_tokens])
                row.append(Sample(text, min(len(words), sampling.max_tokens), "length" if cut else "stop", index))
                tokens += row[-1].tokens
            out.append(row)
            if on_progress:
                on_progress(len(out) * sampling.n, len(conversations) * sampling.n, tokens)
        return out

    def close(self) -> None:
        return None
