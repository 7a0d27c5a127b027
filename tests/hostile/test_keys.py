"""Keys and tokens: refused in settings, and never in a file of a run when they are in the environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from r1pipe import config, keys
from r1pipe.errors import UserError
from tests.engine.conftest import FIXTURE, PROFILE, toy_stage  # noqa: F401  fixture

CANARY = "cAnArY0123456789abcdefCANARY"  # part of every secret below
SECRETS = {
    name: f"{start}{CANARY}"
    for name, start in {
        "HF_TOKEN": "hf_", "HUGGING_FACE_HUB_TOKEN": "hf_", "WANDB_API_KEY": "", "OPENAI_API_KEY": "sk-",
        "JUDGE_KEY": "sk-", "AWS_SECRET_ACCESS_KEY": "", "DATABASE_URL": "postgres://u:", "MY_PASSWORD": "",
    }.items()
}  # fmt: skip


def leaks(*folders: Path) -> list[str]:
    """Files whose name or content holds the canary."""
    found = []
    for folder in folders:
        for path in folder.rglob("*"):
            if CANARY in str(path) or (path.is_file() and CANARY.encode() in path.read_bytes()):
                found.append(str(path))
    return found


def _r1pipe(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "r1pipe", *arguments], cwd=folder, capture_output=True, text=True, timeout=280,
        env=os.environ | SECRETS | {"PYTHONPATH": str(FIXTURE), "HF_HUB_OFFLINE": "1"} | more,
    )  # fmt: skip


def test_the_search_finds_one(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "log.txt").write_text(f"x {SECRETS['HF_TOKEN']}")
    assert leaks(tmp_path) == [str(tmp_path / "a" / "log.txt")]


def test_a_run_tells_none_of_the_environment(tmp_path: Path) -> None:
    """Finished steps and one that crashed: log, events, manifests, report, tables; what is said on the terminal."""
    (tmp_path / "toys.yaml").write_text(PROFILE)
    (tmp_path / "rows.jsonl").write_text('{"prompt": "1 + 1 = ?", "answer": "2"}\n')
    said = []
    for code, *line in (
        (0, "pipeline", "-p", "toys.yaml"),
        (1, "pipeline", "-p", "toys.yaml", "--run", "crashed", "--set", "b.fail=crash"),
        (0, "status", "-p", "toys.yaml", "--why", "--json"),
        (0, "report", "toys-full"),
        (0, "report", "crashed"),
        (0, "data", "prepare", "rows.jsonl", "--out", "runs/prepared"),
    ):
        done = _r1pipe(tmp_path, *line)
        assert done.returncode == code, (line, done.stderr)
        said.append(done.stdout + done.stderr)
    assert (tmp_path / "runs" / "crashed" / "report.html").is_file()
    assert not [text for text in said if CANARY in text]
    assert leaks(tmp_path) == []


TYPED = [
    "a.engine.options.api_key={}", "a.engine.options={{headers: {{Authorization: Bearer {}}}}}", "a.salt=hf_{}",
    "a.salt='text with sk-{} in it'", "a.engine.url=https://user:{}@host/v1", "a.engine.url=https://host/v1?api_key={}",
    "a.trainer.hub_token={}", "a.trainer={{x: [{{password: {}}}]}}", "trainer.auth_token={}",
    "a.data=[{{source: 'https://me:{}@host/x.jsonl'}}]", "a.trainer.token={}",
]  # fmt: skip


@pytest.mark.parametrize("typed", TYPED)
def test_a_key_typed_into_settings_is_refused_unseen(typed: str, tmp_path: Path) -> None:
    path = tmp_path / "toys.yaml"
    path.write_text(PROFILE)
    given = typed.format(CANARY)
    for overrides in ([given], [given, given.split("=")[0] + "=null"]):  # also one that a later --set takes back
        with pytest.raises(UserError, match="holds a key") as told:
            config.load(str(path), overrides)
        assert CANARY not in str(told.value)
        assert "environment" in (told.value.hint or "")


def test_a_refused_key_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "toys.yaml").write_text(PROFILE.replace("steps: 3", f"steps: 3, salt: hf_{CANARY}"))
    for line in (["pipeline"], ["pipeline", "--dry-run"], ["plan"], ["config", "show", "toys.yaml", "--resolved"]):
        done = _r1pipe(tmp_path, *line, *(["-p", "toys.yaml"] if line[0] != "config" else []))
        assert done.returncode == 2, (line, done)
        assert CANARY not in done.stdout + done.stderr
    assert leaks(tmp_path) == [str(tmp_path / "toys.yaml")]
    done = _r1pipe(tmp_path, "data", "inspect", f"https://me:{CANARY}@host/rows")
    assert done.returncode == 2 and CANARY not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "settings",
    [
        {"tokens": {"eos_token": "<|im_end|>", "pad_token": "x", "max_tokens": 512, "image_token": "y"}},
        {"key_env": "OPENAI_API_KEY", "options": {"token": True, "hub_token": None}},
        {"url": "http://127.0.0.1:8000/v1", "path": "Qwen/Qwen2.5-0.5B", "revision": "a" * 40},
        {"source": "data/user@example/x.jsonl", "text": "task-oriented, risk-averse; sk-learn; mail me@host.org"},
        {"prompt": "{question}? Think, then answer: <answer>…</answer>", "key": "value", "keys": ["a"]},
    ],
)  # fmt: skip
def test_what_is_no_key_is_left_alone(settings: dict[str, object]) -> None:
    keys.refuse(settings)


class _Echo(BaseHTTPRequestHandler):
    """A server that says back whatever it was sent, the key too, in its answers and its errors."""

    def do_GET(self) -> None:
        self._answer(200, {"data": [{"id": "echo"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        heard = f"{self.headers['Authorization']} asked"
        if "+" in json.dumps(body["messages"]) and len(json.dumps(body)) % 3 == 0:
            self._answer(400, {"error": f"you sent {heard}"})
        else:
            message = {"role": "assistant", "content": f"<think>\n{heard}\n</think>\n<answer>1</answer>"}
            self._answer(200, {"choices": [{"message": message, "finish_reason": "stop"}]})

    def _answer(self, status: int, value: object) -> None:
        text = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *arguments: object) -> None:
        return None


@pytest.fixture
def echo() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def test_a_server_that_says_the_key_back(echo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from r1pipe.chat import ChatConfig
    from r1pipe.generate.server import ServerSampler
    from r1pipe.settings import SamplingConfig

    monkeypatch.setenv("JUDGE_KEY", SECRETS["JUDGE_KEY"])
    sampler = ServerSampler(echo, ChatConfig(), options={"key_env": "JUDGE_KEY"}, workers=4)
    asked = [[{"role": "user", "content": f"{'1' * i} + 1 = ?"}] for i in range(9)]
    made = sampler.generate(asked, SamplingConfig(), seed=1)
    assert {s.finish for samples in made for s in samples} == {"stop", "skipped"}
    assert CANARY not in repr(made) + repr(sampler.facts)


@pytest.mark.slow
def test_a_real_step_whose_model_is_a_server(echo: str, tmp_path: Path) -> None:
    """base, evaluated through the server of above, with the key in the environment: its name is on record, no more."""
    done = _r1pipe(
        tmp_path, "run-stage", "base", "-p", "smoke", "--set",
        f"base.engine={{kind: server, url: '{echo}', options: {{key_env: JUDGE_KEY}}}}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    manifest = next((tmp_path / "runs").rglob("manifest.json"))
    assert "JUDGE_KEY" in manifest.read_text()
    assert _r1pipe(tmp_path, "report", "smoke-full").returncode == 0
    assert leaks(tmp_path) == []
    assert CANARY not in done.stdout + done.stderr
