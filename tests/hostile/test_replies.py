"""Servers that answer with bombs: a sampler loses the row, a judge gives no verdict, nothing else happens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from r1pipe.chat import ChatConfig, Tags
from r1pipe.generate import server as sampling
from r1pipe.rewards.judge import Judge, Options
from r1pipe.rewards.verdict import Context
from r1pipe.settings import SamplingConfig

GOOD = {"choices": [{"message": {"role": "assistant", "content": "fine\n\nRating: 10"}, "finish_reason": "stop"}]}


def _choice(**more: object) -> bytes:
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": "x", **more}}]}).encode()


BOMBS = {
    "nested lists": b"[" * 200_000,
    "nested objects": b'{"a":' * 200_000,
    "closed nest": b"[" * 50_000 + b"]" * 50_000,
    "million digits": b'{"choices": ' + b"9" * 1_000_000 + b"}",
    "huge usage": b'{"choices": [{"message": {"content": "x"}}], "usage": {"completion_tokens": 1e400}}',
    "nan usage": b'{"choices": [{"message": {"content": "x"}}], "usage": {"completion_tokens": NaN}}',
    "usage of digits": b'{"choices": [{"message": {"content": "x"}}], "usage": {"completion_tokens": "'
    + b"9" * 5000 + b'"}}',
    "usage a list": b'{"choices": [{"message": {"content": "x"}}], "usage": [1]}',
    "content a number": _choice(content=3),
    "content a list": _choice(content=[{"type": "text", "text": "x"}]),
    "content an object": _choice(content={"a": 1}),
    "reasoning a list": _choice(reasoning_content=["x"]),
    "message a text": b'{"choices": [{"message": "x"}]}',
    "choices a text": b'{"choices": "x"}',
    "choices null": b'{"choices": null}',
    "no utf-8": b'{"choices": "\xff\xfe"}',
    "empty": b"",
    "html": b"<html><script>alert(1)</script>",
    "nan": b"NaN",
}  # fmt: skip


class _Server(ThreadingHTTPServer):
    body = b""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps(GOOD).encode() if b"please be good" in asked else self.server.body
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        return None


@pytest.fixture
def hostile(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Server]:
    monkeypatch.setattr(sampling, "ATTEMPTS", 2)
    monkeypatch.setattr(sampling, "BACKOFF_S", 0.01)
    server = _Server(("127.0.0.1", 0), _Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("name", BOMBS)
def test_a_sampler_loses_the_row_alone(name: str, hostile: _Server) -> None:
    hostile.body = BOMBS[name]
    url = f"http://127.0.0.1:{hostile.server_port}"
    sampler = sampling.ServerSampler(url, ChatConfig(), options={"model": "m"}, workers=2)
    asked = [[{"role": "user", "content": text}] for text in ("please be good", "1 + 1 = ?")]
    good, bad = (samples[0] for samples in sampler.generate(asked, SamplingConfig(), seed=1))
    assert good.text == "fine\n\nRating: 10"
    assert isinstance(bad.text, str) and isinstance(bad.tokens, int)
    assert bad.finish == "skipped" or bad.text == "x"
    assert len(bad.why) <= 300


@pytest.mark.parametrize("name", BOMBS)
def test_a_judge_gives_no_verdict(name: str, hostile: _Server) -> None:
    hostile.body = BOMBS[name]
    options = Options(url=f"http://127.0.0.1:{hostile.server_port}/v1", model="m", retries=0, timeout_s=5)
    judge = Judge(options, Context(Tags()))
    rows = [{"messages": [{"role": "user", "content": text}]} for text in ("please be good", "1 + 1 = ?")]
    texts = ["<think>\nx\n</think>\n<answer>2</answer>"] * 2
    good, bad = judge(texts, rows)
    assert good.score == 1.0
    assert bad.score is None and bad.status in ("error", "unverifiable")
    assert len(bad.detail) < 1000


def test_half_a_surrogate_pair_never_reaches_a_tokenizer(hostile: _Server) -> None:
    hostile.body = b'{"choices": [{"message": {"content": "a \\ud83d b \\udfff \\ud83d\\ude00"}}]}'
    url = f"http://127.0.0.1:{hostile.server_port}"
    sampler = sampling.ServerSampler(url, ChatConfig(), options={"model": "m"})
    text = sampler.generate([[{"role": "user", "content": "1"}]], SamplingConfig(), seed=1)[0][0].text
    assert text == "a ? b ? \U0001f600"
