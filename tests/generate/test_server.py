"""The server sampler against a real HTTP server on this machine."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from r1pipe.chat import ChatConfig
from r1pipe.errors import UserError
from r1pipe.generate import Ask, make, server
from r1pipe.settings import EngineConfig, SamplingConfig


class Handler(BaseHTTPRequestHandler):
    """Echoes the question and the seed; what the question says decides how it misbehaves."""

    seen: ClassVar[Counter[str]] = Counter()
    bodies: ClassVar[list[dict[str, Any]]] = []
    keys: ClassVar[list[str | None]] = []

    def log_message(self, *args: object) -> None:
        return None

    def answer(self, value: Any, code: int = 200) -> None:
        data = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        self.answer({"data": [{"id": "tiny"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = body["messages"][-1]["content"]
        self.seen[asked] += 1
        self.bodies.append(body)
        self.keys.append(self.headers.get("Authorization"))
        if asked == "private":
            return self.answer({"error": f"no such key: {self.headers.get('Authorization')}"}, 401)
        if asked == "flaky" and self.seen[asked] < 3:
            return self.answer({"error": "busy"}, 503)
        if asked == "too long":
            return self.answer({"error": "maximum context length"}, 400)
        if asked == "broken":
            return self.answer({"choices": []})
        message = {"content": f"{asked} {body['seed']}"}
        if asked == "reasons":
            message = {"reasoning_content": "two and two", "content": "<answer>4</answer>"}
        finish = "length" if asked == "cut" else "stop"
        self.answer({"choices": [{"message": message, "finish_reason": finish}], "usage": {"completion_tokens": 3}})


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(server, "BACKOFF_S", 0.01)
    Handler.seen.clear()
    Handler.bodies.clear()
    Handler.keys.clear()
    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield f"http://127.0.0.1:{http.server_port}"
    http.shutdown()
    http.server_close()


def ask(url: str, *asked: str, n: int = 1) -> tuple[Any, Any]:
    s = make(EngineConfig(kind="server", url=url), None, ChatConfig(system_prompt="Be brief."))
    return s, s.generate([[{"role": "user", "content": a}] for a in asked], SamplingConfig(n=n), seed=1)


def test_rows_in_order_and_faults_cost_only_themselves(url: str) -> None:
    s, found = ask(url, "a", "too long", "flaky", "broken", "cut")
    assert [g[0].finish for g in found] == ["stop", "skipped", "stop", "skipped", "length"]
    assert found[0][0].text.startswith("a ") and found[2][0].text.startswith("flaky ")
    assert found[0][0].tokens == 3
    assert s.facts["failed"] == 2 and s.facts["model"] == "tiny"
    assert Handler.seen["too long"] == 1  # asking again changes nothing
    assert Handler.bodies[0]["messages"][0] == {"role": "system", "content": "Be brief."}


def test_samples_have_seeds_of_their_own(url: str) -> None:
    _, found = ask(url, "a", "a", n=3)
    assert len({x.text for g in found for x in g}) == 6
    assert [x.index for x in found[0]] == [0, 1, 2]


def test_reasoning_sent_apart_is_put_back(url: str) -> None:
    _, found = ask(url, "reasons")
    assert found[0][0].text == "<think>\ntwo and two\n</think>\n<answer>4</answer>"


def test_all_failed_is_said(url: str) -> None:
    with pytest.raises(UserError, match="all 2 requests"):
        ask(url, "too long", "broken")


def test_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "BACKOFF_S", 0.01)
    with pytest.raises(UserError, match="names no model"):
        ask("http://127.0.0.1:9", "a")


def test_a_skipped_row_says_why(url: str) -> None:
    _, found = ask(url, "a", "too long", "broken")
    assert "maximum context length" in found[1][0].why and not found[1][0].again
    assert found[2][0].why.startswith("an answer without choices") and found[2][0].again  # worth another try


def test_the_key_comes_from_the_environment_and_is_never_shown(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"key_env": "SOME_KEY", "model": "tiny"}
    with pytest.raises(UserError, match="SOME_KEY, which is not set"):
        make(EngineConfig(kind="server", url=url, options=options), None, ChatConfig()).generate(
            [[{"role": "user", "content": "a"}]], SamplingConfig(), seed=1
        )
    monkeypatch.setenv("SOME_KEY", "sk-secret-0123")
    s = make(EngineConfig(kind="server", url=url, options=options), None, ChatConfig())
    assert s.generate([[{"role": "user", "content": "a"}]], SamplingConfig(), seed=1)[0][0].finish == "stop"
    assert Handler.keys == ["Bearer sk-secret-0123"] and "key_env" not in Handler.bodies[0]
    with pytest.raises(UserError, match="refuses") as error:
        make(EngineConfig(kind="server", url=url, options=options), None, ChatConfig()).generate(
            [[{"role": "user", "content": "private"}]], SamplingConfig(), seed=1
        )
    assert "sk-secret" not in str(error.value)
    with pytest.raises(UserError, match="expected the name") as error:
        make(EngineConfig(kind="server", url=url, options={"key_env": "sk-secret-0123"}), None, ChatConfig())
    assert "sk-secret" not in str(error.value)


def test_a_server_that_is_gone_ends_the_sampling(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows are not burnt one by one until the morning."""
    monkeypatch.setattr(server, "ATTEMPTS", 1)
    monkeypatch.setattr(server, "MOST_SILENT", 5)
    s = make(EngineConfig(kind="server", url=url, batch_size=2), None, ChatConfig())
    asks = [Ask(str(i), [{"role": "user", "content": "a"}], (i,)) for i in range(400)]
    stream = s.stream([asks], SamplingConfig())
    done = len(next(stream))
    s.base = "http://127.0.0.1:9/v1"
    with pytest.raises(UserError, match="is gone: 5 requests in a row"):
        done += sum(len(made) for made in stream)
    assert done < 40
