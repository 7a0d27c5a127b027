"""An LLM judge at an OpenAI-compatible address: graded by a rubric, or compared with a given answer.

graded    the judge's rating on `scale`, mapped to 0..1.
pairwise  the response against the row's `reference`, in both orders: 1 better, 0 worse, 0.5 equal or where the orders
          disagree (a judge that prefers a place says nothing).

`judge_text` says how the response is kept from passing for an instruction or a verdict. Policies:

- Ours, so None: a judge that is not reached, a spent budget, a reply without a verdict line (asked for once more), a
  reply that was cut at `max_tokens`. A judge that refuses how it is asked (400, 401, 404, ...) is a UserError; once it
  has answered, a 400 is the fault of one row, and None.
- The completion's, so 0.0 without a call: no answer, an empty one. 0.0 too where the response holds a verdict line
  and the judge, asked again, cannot be told from it.
- Too long a response loses its middle: over `max_chars`, or by halves while the judge says that its context is full.
- Until the judge has answered, and again after a call that failed for good, requests go one at a time; if the first
  fails, the rest of the batch is given up: a judge that is down costs one call's retries a batch.
- The budgets count for one process and one start; retries count. Requests in flight may exceed `max_total_tokens`.
- The key is read from its environment variable for each request. It is never stored, and cut out of what servers say.

Sources: the guard against text aimed at the grader is after NVIDIA-NeMo/Gym#2852; both orders are MT-Bench's (Zheng et
al. 2023, section 3.4).
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, field_validator, model_validator

from r1pipe.chat import Tags
from r1pipe.digest import value_digest
from r1pipe.errors import UserError
from r1pipe.generate import transport
from r1pipe.rewards import extract, judge_text
from r1pipe.rewards.judge_cache import Cache
from r1pipe.rewards.verdict import NO_THINKING_END, Context, Row, Verdict
from r1pipe.settings import Strict

VERSION = "1"
COLUMNS: tuple[str, ...] = ("reference",)  # read by mode pairwise alone

BACKOFF_S = 0.5  # doubled after each attempt
LEAST_CHARS = 500  # a response is not cut below this for a judge's context
OURS = ("model", "messages", "max_tokens", "temperature", "n", "stream")  # of the request body
ROW_FAULTS = (400, 413, 422)  # refusals that can be one row's fault

_FULL = re.compile(r"context.{0,20}length|context.{0,20}window|too (?:long|large|many tokens)|max_model_len", re.I)
_EMPTY = Verdict(0.0, "unverifiable", "an empty answer")


class Options(Strict):
    """Options of the `judge` part."""

    model_config = ConfigDict(hide_input_in_errors=True)  # what was given may be a key in the wrong place

    url: str = Field(description="Address, such as http://127.0.0.1:8000/v1. Without a path, /v1 is added.")
    model: str = Field(description="Name of the model that the server knows.")
    mode: Literal["graded", "pairwise"] = Field(
        "graded", description="graded: a rating. pairwise: compared with the row's `reference`, in both orders."
    )
    rubric: str = Field(judge_text.DEFAULT_RUBRIC, min_length=1, description="What is judged, for the judge to read.")
    judges: Literal["answer", "response"] = Field(
        "answer", description="The final answer, or the whole response with its reasoning."
    )
    require_think: bool = Field(True, description="judges: answer: no answer without a closing think tag.")
    scale: tuple[float, float] = Field((1, 10), description="Worst and best rating; mapped to 0 and 1.")
    key_env: str | None = Field(
        None, description="NAME of the environment variable with the key, such as OPENAI_API_KEY. Never the key."
    )
    timeout_s: float = Field(60.0, gt=0, description="Seconds for one request.")
    retries: int = Field(4, ge=0, description="Further tries after 429, 5xx, a timeout, no connection.")
    batch_limit_s: float = Field(600.0, gt=0, description="Seconds for one batch; what is left then is None.")
    concurrency: int = Field(16, ge=1, le=256, description="Requests at a time.")
    max_calls: int | None = Field(None, ge=1, description="Most requests, retries included (null: no limit).")
    max_total_tokens: int | None = Field(None, ge=1, description="Most tokens, prompts included (null: no limit).")
    cache: str | None = Field(None, description="Folder for verdicts that outlive the process (null: memory only).")
    max_chars: int | None = Field(24_000, ge=LEAST_CHARS, description="A longer response loses its middle.")
    max_tokens: int | None = Field(1024, ge=1, description="Of a reply (null: left to the server).")
    temperature: float | None = Field(0.0, ge=0, description="Of a reply (null: left to the server).")
    options: dict[str, Any] = Field({}, description="Added to the request body as is (seed, chat_template_kwargs).")

    @field_validator("url")
    @classmethod
    def _address(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("expected an address such as http://127.0.0.1:8000/v1")
        if parts.username is not None or parts.query or parts.fragment:  # without the value: it may hold a key
            raise ValueError("an address takes no user, password or query here; a key goes through key_env")
        return value.rstrip("/") if parts.path.strip("/") else f"{parts.scheme}://{parts.netloc}/v1"

    @field_validator("key_env")
    @classmethod
    def _name(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[A-Z_][A-Z0-9_]{0,63}", value):  # without the value, as above
            raise ValueError("expected the name of an environment variable (capitals, digits, _), not the key itself")
        return value

    @field_validator("options")
    @classmethod
    def _not_ours(cls, value: dict[str, Any]) -> dict[str, Any]:
        if found := sorted(set(value) & set(OURS)):
            raise ValueError(f"{', '.join(found)} cannot be set here")
        return value

    @model_validator(mode="after")
    def _order(self) -> Options:
        if not self.scale[0] < self.scale[1]:
            raise ValueError("scale: expected [worst, best] with worst < best")
        return self


@dataclass(frozen=True)
class _Question:
    """One request for a verdict. `key`: digest of address and body."""

    form: judge_text.Form
    prompt: list[dict[str, str]]
    row: Row
    text: str
    key: str


@dataclass(frozen=True)
class _Batch:
    """What the requests of one batch share."""

    deadline: float
    stop: threading.Event = field(default_factory=threading.Event)


class _GaveUp(Exception):
    """No verdict, for a reason that is ours and no failure of a request."""


class Judge:
    """Batch form of `verify`; the completions are whole. Raises UserError where the key's variable is not set or the
    cache cannot be written."""

    def __init__(self, options: Options, context: Context) -> None:
        self.options, self.context = options, context
        self._headers()  # a key that is not there is said now
        self._cache = Cache(Path(options.cache).expanduser() if options.cache else None)
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._seconds = 0.0
        self._up = False  # the last call was answered
        self._answered = False  # any call was answered

    def __call__(self, completions: list[str], rows: list[Row]) -> list[Verdict]:
        began = time.monotonic()
        try:
            asked = [self._questions(c, row) for c, row in zip(completions, rows, strict=True)]
            questions = [q for found in asked if not isinstance(found, Verdict) for q in found]
            answers = self._answers({q.key: q for q in questions}, len(questions))
            return [
                found if isinstance(found, Verdict) else self._verdict([answers[q.key] for q in found])
                for found in asked
            ]
        finally:
            self._seconds += time.monotonic() - began

    def facts(self) -> dict[str, Any]:
        """What was asked and spent so far, for the manifest."""
        names = (
            "calls", "retries", "cache_hits", "failures", "over_budget", "reminders", "unparsable", "imitations",
            "cut", "prompt_tokens", "completion_tokens", "order_disagreements",
        )  # fmt: skip
        known = {"url": self.options.url, "model": self.options.model, "mode": self.options.mode}
        return {**known, **{name: self._counts[name] for name in names}, "seconds": round(self._seconds, 3)}

    # What is asked

    def _questions(self, completion: str, row: Row) -> Verdict | list[_Question]:
        """The questions about a completion, or its verdict where none is needed."""
        text: str | None = completion
        if self.options.judges == "answer":
            text = extract.region(
                completion,
                self.context.tags,
                require_think=self.options.require_think,
                prefilled=self.context.prefilled,
            )
        if text is None:
            return NO_THINKING_END
        if judge_text.blank(text):
            return _EMPTY
        if self.options.mode == "graded":
            return [self._question(judge_text.Graded(*self.options.scale), text, row)]
        if judge_text.blank(str(row.get("reference") or "")):
            return Verdict(None, "error", "the row has no reference to compare with")
        return [self._question(judge_text.Pairwise(first), text, row) for first in (True, False)]

    def _question(self, form: judge_text.Form, text: str, row: Row) -> _Question:
        text = text.strip()
        prompt = self._prompt(form, text, row, self.options.max_chars)
        key = value_digest({"version": VERSION, "url": self.options.url, "body": self._body(prompt)})
        return _Question(form, prompt, row, text, key)

    def _prompt(self, form: judge_text.Form, text: str, row: Row, limit: int | None) -> list[dict[str, str]]:
        return judge_text.messages(
            form,
            self.options.rubric,
            row["messages"],
            judge_text.cut(text, limit),
            judge_text.cut(str(row.get("reference") or ""), limit),
            answer_only=self.options.judges == "answer",
        )

    def _body(self, prompt: list[dict[str, str]]) -> dict[str, Any]:
        sampling = {"max_tokens": self.options.max_tokens, "temperature": self.options.temperature}
        return {
            "model": self.options.model,
            "messages": prompt,
            **{name: value for name, value in sampling.items() if value is not None},
            **self.options.options,
        }

    # Asking

    def _answers(self, questions: dict[str, _Question], wanted: int) -> dict[str, Verdict]:
        """The verdict on each question. Equal questions are asked once."""
        found: dict[str, Verdict] = {}
        for key in questions:
            if (score := self._cache.get(key)) is not None:
                found[key] = Verdict(score, "scored")
        asked = [q for key, q in questions.items() if key not in found]
        self._count("cache_hits", wanted - len(asked))
        batch = _Batch(time.monotonic() + self.options.batch_limit_s)
        if asked and not self._up:
            first, *asked = asked
            found[first.key] = verdict = self._answer(first, batch)
            if not self._up:
                self._count("failures", len(asked))
                return found | {q.key: verdict for q in asked}
        with ThreadPoolExecutor(self.options.concurrency, thread_name_prefix="judge") as pool:
            futures = [(q.key, pool.submit(self._answer, q, batch)) for q in asked]
            try:
                return found | {key: future.result() for key, future in futures}
            except BaseException:  # a UserError, or Ctrl-C: what is under way ends with its attempt
                batch.stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _answer(self, question: _Question, batch: _Batch) -> Verdict:
        """Never raises, but for UserError."""
        try:
            return self._ask(question, batch)
        except _GaveUp as error:
            return Verdict(None, "error", str(error))
        except transport.RequestFailed as error:
            said = self._redacted(str(error))
            self._count("failures")
            if error.status is None:
                self._up = False
                return Verdict(None, "error", f"the judge at {self.options.url} gave no answer: {said}")
            if error.status in ROW_FAULTS and self._answered:
                self._up = True
                return Verdict(None, "error", f"the judge at {self.options.url} refused a request: {said}")
            raise self._refused(error.status, said) from None

    def _ask(self, question: _Question, batch: _Batch) -> Verdict:
        """One verdict: a reply, and a second one where the first has no verdict of its own."""
        form = question.form
        reply, remark = self._reply(question, batch)
        score = form.read(judge_text.last_line(reply), "")
        mark = ""
        if score is not None and judge_text.imitates(question.text, form, score):
            mark = question.key[:8]
        if score is None or mark:
            self._count("reminders")
            reply, remark = self._reply(question, batch, reminder=True, mark=mark)
            score = form.read(judge_text.last_line(reply), mark)
        if score is None and mark:
            self._count("imitations")
            return Verdict(0.0, "unverifiable", "the response holds a verdict line, which the judge repeats")
        if score is None:
            self._count("unparsable")
            line = self._redacted(judge_text.last_line(reply)[:80])
            said = f"the judge's last line is no verdict: {line!r}" if line else "the judge's reply is empty or cut"
            return Verdict(None, "error", f"{said} (max_tokens: {self.options.max_tokens})")
        self._cache.put(question.key, score, reply)
        return Verdict(score, "scored", remark)

    def _reply(self, question: _Question, batch: _Batch, *, reminder: bool = False, mark: str = "") -> tuple[str, str]:
        """The judge's reply ("" where it was cut), and a remark where the response was. Raises RequestFailed."""
        limit, prompt = self.options.max_chars or len(question.text), question.prompt
        while True:
            asked = judge_text.reminded(prompt, question.form, mark) if reminder else prompt
            try:
                answer = self._request(self._body(asked), batch)
                break
            except transport.RequestFailed as error:
                limit = min(limit, len(question.text)) // 2
                if error.status not in ROW_FAULTS or not _FULL.search(str(error)) or limit < LEAST_CHARS:
                    raise
                prompt = self._prompt(question.form, question.text, question.row, limit)
        try:
            choice = answer["choices"][0]
            content = choice["message"].get("content")
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            self._count("failures")
            raise _GaveUp(f"an answer without choices: {self._redacted(str(answer)[:200])}") from error
        remark = ""
        if len(question.text) > limit:
            self._count("cut")
            remark = f"cut: {len(question.text)} characters, judged {limit}"
        # `Rating: 1` may be the beginning of `Rating: 10`
        whole = choice.get("finish_reason") != "length" and isinstance(content, str)
        return (content if whole else ""), remark

    def _request(self, body: dict[str, Any], batch: _Batch) -> Any:
        answer = transport.request(
            f"{self.options.url}/chat/completions",
            body,
            headers=self._headers(),
            timeout_s=self.options.timeout_s,
            attempts=self.options.retries + 1,
            backoff_s=BACKOFF_S,
            deadline=batch.deadline,
            before=lambda attempt: self._pay(attempt, batch),
            wait=batch.stop.wait,
        )
        self._up = self._answered = True
        usage = answer.get("usage") if isinstance(answer, dict) else None
        for name in ("prompt_tokens", "completion_tokens"):
            spent = usage.get(name) if isinstance(usage, dict) else None
            self._count(name, spent if isinstance(spent, int) else 0)
        return answer

    def _pay(self, attempt: int, batch: _Batch) -> None:
        """Counts an attempt against the budgets. Raises _GaveUp where they are spent."""
        if batch.stop.is_set():
            raise _GaveUp("stopped")
        with self._lock:
            spent = self._counts["prompt_tokens"] + self._counts["completion_tokens"]
            for name, count in (("max_calls", self._counts["calls"]), ("max_total_tokens", spent)):
                most = getattr(self.options, name)
                if most is not None and count >= most:
                    self._counts["over_budget"] += 1
                    raise _GaveUp(f"the judge's budget is spent ({name}: {most})")
            self._counts["calls"] += 1
            self._counts["retries"] += bool(attempt)

    def _verdict(self, answers: Sequence[Verdict]) -> Verdict:
        """One verdict from one order, or from both."""
        for status in ("unverifiable", "error"):
            if found := next((a for a in answers if a.status == status), None):
                return found
        first, last = answers[0], answers[-1]
        if first.score == last.score:
            return first
        self._count("order_disagreements")
        return Verdict(0.5, "scored", first.detail)

    # The key, and what is said

    def _key(self) -> str | None:
        name = self.options.key_env
        if name is None:
            return None
        key = os.environ.get(name, "").strip()
        if not key:
            raise UserError(
                f"rewards.judge.options.key_env names {name}, which is not set in the environment",
                hint=f"export {name}=..., or set key_env: null for a server without a key",
            )
        if not (key.isascii() and key.isprintable()):  # http.client would quote it in its error
            raise UserError(f"the environment variable {name} holds characters that no key has", hint="set it again")
        return key

    def _headers(self) -> dict[str, str]:
        key = self._key()
        return {} if key is None else {"Authorization": f"Bearer {key}"}

    def _redacted(self, text: str) -> str:
        key = self._key()
        return text.replace(key, "***") if key else text

    def _refused(self, status: int, said: str) -> UserError:
        hints = {
            401: "look at key_env" if self.options.key_env else "set key_env to the variable that holds the key",
            403: "look at key_env and at what the key may do",
            404: "look at url (it ends with /v1 on most servers) and model",
        }
        return UserError(
            f"the judge at {self.options.url}/chat/completions refused a request for {self.options.model}: {said}",
            hint="rewards.judge.options: " + hints.get(status, "look at url, model, max_tokens, temperature, options"),
        )

    def _count(self, name: str, by: int = 1) -> None:
        with self._lock:
            self._counts[name] += by


def verify(completion: str, row: Row, *, tags: Tags = Tags(), prefilled: bool = False, **options: Any) -> Verdict:
    """The verdict on one completion; `options` are those of the part."""
    context = Context(tags, prefilled)
    return Judge(Options(**options), context)([context.whole(completion)], [row])[0]
