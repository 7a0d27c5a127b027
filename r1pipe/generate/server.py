"""Sampling from an OpenAI-compatible server (`vllm serve` and others) with the standard library alone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any

from r1pipe.chat import ChatConfig
from r1pipe.errors import UserError
from r1pipe.generate import transport
from r1pipe.generate.base import Ask, Conversation, Made, Sample, Streaming
from r1pipe.settings import SamplingConfig

ATTEMPTS = 4
BACKOFF_S = 0.5  # doubled after each attempt
TIMEOUT_S = 600.0
MOST_WORKERS = 64
MOST_SILENT = 32  # requests in a row without any answer: the server is gone
REFUSALS = (401, 403, 404)  # how it is asked is wrong, whatever is asked


class _RowFailed(Exception):
    """One request failed for good. `status`: the HTTP status of a refusal; None where no answer could be used."""

    def __init__(self, said: str, status: int | None = None) -> None:
        super().__init__(said)
        self.status = status


class ServerSampler(Streaming):
    """See `Sampler`. One request a sample. A row that still fails after the retries is "skipped" and counted in
    `facts["failed"]` with the last reason; where every row fails, or the server is gone, a UserError says so.

    `options` are added to each request body (`model`: taken from the server's list where it is not given), but for
    `key_env`: the NAME of the environment variable with the key, which is read for each request and never stored.
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
        self._key_env = self.options.pop("key_env", None)
        if self._key_env is not None and not re.fullmatch(r"[A-Z_][A-Z0-9_]{0,63}", str(self._key_env)):
            raise UserError(  # without the value: it may be the key
                "engine.options.key_env: expected the name of an environment variable (capitals, digits, _)",
                hint="never the key itself: export it under that name",
            )
        self._answered = False  # has any request succeeded?
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

    def _key(self) -> str | None:
        if self._key_env is None:
            return None
        key = os.environ.get(self._key_env, "").strip()
        if not key or not (key.isascii() and key.isprintable()):  # http.client would quote a bad one in its error
            raise UserError(
                f"engine.options.key_env names {self._key_env}, which is not set to a key in the environment",
                hint=f"export {self._key_env}=...",
            )
        return key

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
        key = self._key()
        try:
            return transport.request(
                self.base + path,
                body,
                timeout_s=TIMEOUT_S,
                attempts=ATTEMPTS,
                backoff_s=BACKOFF_S,
                headers={"Authorization": f"Bearer {key}"} if key else None,
            )
        except transport.RequestFailed as error:
            said = str(error).replace(key, "***") if key else str(error)
            raise _RowFailed(said, error.status) from error

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
            text = self._harmless(self._text(choice["message"]))
            tokens = int((answer.get("usage") or {}).get("completion_tokens") or 0)
            return Sample(text, tokens, "length" if choice.get("finish_reason") == "length" else "stop", index)
        except (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError) as error:
            raise _RowFailed(f"an answer without choices: {self._harmless(str(answer))[:200]}") from error

    def _harmless(self, text: str) -> str:
        """What a server says, without the key (a proxy may say back what it was sent) and without halves of surrogate
        pairs, which no tokenizer takes."""
        key = self._key()
        text = text.replace(key, "***") if key else text
        return text if text.isascii() else text.encode("utf-8", "replace").decode()

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

    def stream(self, groups: Iterable[list[Ask]], sampling: SamplingConfig) -> Iterator[Made]:
        """See `Sampler`."""
        jobs = ((ask, index) for asks in groups for ask in asks for index in ask.missing)
        pending: dict[Future[Sample], tuple[Ask, int]] = {}
        silent = failed = made_in_all = 0
        pool = ThreadPoolExecutor(max_workers=self.workers)

        def submit(most: int) -> None:
            for ask, index in islice(jobs, most):
                future = pool.submit(self._one, ask.conversation, sampling, ask.seeds[index], index)
                pending[future] = (ask, index)

        try:
            submit(2 * self.workers)
            while pending:
                done, _ = wait(pending, return_when=FIRST_COMPLETED)
                made: Made = []
                for future in done:
                    ask, index = pending.pop(future)
                    try:
                        sample = future.result()
                        self._answered, silent = True, 0
                    except _RowFailed as error:
                        failed += 1
                        silent = silent + 1 if error.status is None else 0
                        sample = self._failed(error, index, silent)
                    made.append((ask, sample))
                made_in_all += len(made)
                yield made
                submit(len(done))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        if made_in_all and failed == made_in_all and not self._answered:
            raise UserError(
                f"the server at {self.base} failed on all {failed} requests; the last: {self.facts['last_failure']}",
                hint="check engine.url and engine.options.model",
            )

    def _failed(self, error: _RowFailed, index: int, silent: int) -> Sample:
        """A request that failed costs its row; one that says that all will fail ends the sampling."""
        self.facts["failed"] += 1
        self.facts["last_failure"] = str(error)
        if error.status in REFUSALS and not self._answered:
            raise UserError(
                f"the server at {self.base} refuses: {error}",
                hint="check engine.url and engine.options: model, key_env (the variable with the key)",
            )
        if silent >= MOST_SILENT:
            raise UserError(
                f"the server at {self.base} is gone: {silent} requests in a row got no answer ({error})",
                hint="start it again and run the same command: what is done is kept",
            )
        return Sample("", 0, "skipped", index, str(error)[:300], again=error.status is None)

    def close(self) -> None:
        return None
