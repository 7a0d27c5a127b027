"""Replies from a list or a function: for tests of what stands on a sampler."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from r1pipe.errors import UserError
from r1pipe.generate.base import Ask, Conversation, Made, Sample, Streaming
from r1pipe.settings import SamplingConfig

Reply = Callable[[Conversation, int], str]


class ScriptedSampler(Streaming):
    """See `Sampler`. A list is walked through again and again (`pick: turn`), or a sample takes the reply that its
    seed says (`pick: seed`, as a model does); a function is called with (conversation, sample index). Tokens are
    counted as blank-separated words; more than `max_tokens` is cut. `seconds`: what a sample takes."""

    name = "scripted"

    def __init__(
        self, replies: list[str] | Reply, *, pick: Literal["turn", "seed"] = "turn", seconds: float = 0.0
    ) -> None:
        if pick not in ("turn", "seed"):
            raise UserError(f"engine.options.pick is {pick!r}", hint="turn or seed")
        self._replies = replies
        self._pick = pick
        self._seconds = seconds
        self._at = 0
        self.facts: dict[str, Any] = {"engine": self.name, "versions": {}, "dtype": None, "device": None}

    def _reply(self, ask: Ask, index: int) -> str:
        if callable(self._replies):
            return self._replies(ask.conversation, index)
        if self._pick == "seed":
            return self._replies[ask.seeds[index] % len(self._replies)]
        self._at += 1
        return self._replies[(self._at - 1) % len(self._replies)]

    def stream(self, groups: Iterable[list[Ask]], sampling: SamplingConfig) -> Iterator[Made]:
        for asks in groups:
            for ask in asks:
                made: Made = []
                for index in ask.missing:
                    words = self._reply(ask, index).split(" ")
                    cut = len(words) > sampling.max_tokens
                    words = words[: sampling.max_tokens]
                    made.append((ask, Sample(" ".join(words), len(words), "length" if cut else "stop", index)))
                    if self._seconds:
                        time.sleep(self._seconds)
                if made:
                    yield made

    def close(self) -> None:
        return None
