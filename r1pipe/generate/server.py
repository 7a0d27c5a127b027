"""Sampling from an OpenAI-compatible server (`vllm serve` and others) with the standard library alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from r1pipe.chat import ChatConfig
from r1pipe.errors import UserError
from r1pipe.generate import transport
from r1pipe.generate.base import Conversation, Progress, Sample, sample_seeds
from r1pipe.settings import SamplingConfig

ATTEMPTS = 4
BACKOFF_S = 0.5  # doubled after each attempt
TIMEOUT_S = 600.0
MOST_WORKERS = 64


class _RowFailed(Exception):
    """One request failed for good."""


class ServerSampler:
    """See `Sampler`. One request a sample. A row that still fails after the retries is "skipped" and counted in
    `facts["failed"]` with the last reason; where every row fails, a UserError says so.

    `options` are added to each request body (`model`: taken from the server's list where it is not given).
    """

    name = "server"

    def __init__(
        self, url: str, chat: ChatConfig, *, options: dict[str, Any] | None = None, workers: int = MOST_WORKERS
    ) -> None:
        base = url.rstrip("/")
        self.base = base if base.endswith("/v1") else base + "/v1"
        self.chat = chat
        self.workers = min(workers, MOST_WORKERS)
        self.options = dict(options or {})
        if "model" not in self.options:
            self.options["model"] = self._first_model()
        self.facts: dict[str, Any] = {
            "engine": self.name,
            "versions": {},
            "dtype": None,
            "device": self.base,
            "model": self.options["model"],
            "failed": 0,
        }

    def _first_model(self) -> str:
        try:
            data = self._request("/models", None)["data"]
            return str(data[0]["id"])
        except (_RowFailed, KeyError, IndexError, TypeError) as error:
            raise UserError(
                f"the server at {self.base} names no model: {error}",
                hint="check engine.url, or set engine.options.model",
            ) from error

    def _request(self, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        """The JSON answer; retried on connection faults, 429 and 5xx. Raises _RowFailed."""
        try:
            return transport.request(
                self.base + path, body, timeout_s=TIMEOUT_S, attempts=ATTEMPTS, backoff_s=BACKOFF_S
            )
        except transport.RequestFailed as error:
            raise _RowFailed(str(error)) from error

    def _one(self, conversation: Conversation, sampling: SamplingConfig, seed: int, index: int) -> Sample:
        body = {
            "messages": self.chat.conversation(conversation),
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_tokens": sampling.max_tokens,
            "seed": seed & 0x7FFFFFFF,
            "n": 1,
            **self.options,
        }
        answer = self._request("/chat/completions", body)
        try:
            choice = answer["choices"][0]
            text = self._text(choice["message"])
            tokens = int((answer.get("usage") or {}).get("completion_tokens") or 0)
            return Sample(text, tokens, "length" if choice.get("finish_reason") == "length" else "stop", index)
        except (KeyError, IndexError, TypeError) as error:
            raise _RowFailed(f"an answer without choices: {str(answer)[:200]}") from error

    def _text(self, message: dict[str, Any]) -> str:
        """A server with a reasoning parser sends the thinking apart: put it back between its tags. Where the
        template prefills the opening tag, it is missing and put back too."""
        content = message.get("content") or ""
        reasoning = message.get("reasoning_content") or message.get("reasoning")
        tags = self.chat.tags
        if reasoning:
            return f"{tags.think_open}\n{reasoning.strip()}\n{tags.think_close}\n{content.lstrip()}"
        if tags.think_close in content and tags.think_open not in content.split(tags.think_close)[0]:
            self.facts["prefilled_think"] = True
            return f"{tags.think_open}\n{content.lstrip()}"
        return content

    def generate(
        self,
        conversations: list[Conversation],
        sampling: SamplingConfig,
        *,
        seed: int,
        on_progress: Progress | None = None,
    ) -> list[list[Sample]]:
        seeds = sample_seeds(conversations, sampling.n, seed)
        jobs = [(p, i) for p in range(len(conversations)) for i in range(sampling.n)]
        result: list[list[Sample]] = [[] for _ in conversations]
        failed = tokens = 0

        def work(job: tuple[int, int]) -> Sample | _RowFailed:
            try:
                return self._one(conversations[job[0]], sampling, seeds[job[0]][job[1]], job[1])
            except _RowFailed as error:
                return error

        with ThreadPoolExecutor(max_workers=self.workers) as pool:
            for done, ((p, i), answer) in enumerate(zip(jobs, pool.map(work, jobs), strict=True), start=1):
                if isinstance(answer, _RowFailed):
                    failed += 1
                    self.facts["last_failure"] = str(answer)
                    answer = Sample("", 0, "skipped", i)
                result[p].append(answer)
                tokens += answer.tokens
                if on_progress:
                    on_progress(done, len(jobs), tokens)
        self.facts["failed"] += failed
        if jobs and failed == len(jobs):
            raise UserError(
                f"the server at {self.base} failed on all {failed} requests; the last: {self.facts['last_failure']}",
                hint="check engine.url and engine.options.model",
            )
        return result

    def close(self) -> None:
        return None
