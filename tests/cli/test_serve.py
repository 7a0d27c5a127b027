"""`r1pipe serve`: the line, and what it says where vLLM is not there."""

from __future__ import annotations

import importlib.util
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from r1pipe.resources import data_dir
from tests.cli.conftest import Made

without_vllm = pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vllm is installed here")


@pytest.fixture
def served(tmp_path: Path) -> Made:
    run = Made(tmp_path / "runs")
    run.step("base", model=data_dir() / "tiny-base")
    return run


def options(line: str) -> dict[str, str]:
    words = shlex.split(line)
    assert words[:2] == ["vllm", "serve"]
    return dict(zip(words[3::2], words[4::2], strict=True)) | {"model": words[2]}


def test_the_line_has_model_name_template_parser_and_a_local_host(served: Made, call: Any) -> None:
    code, out, _ = call("serve", "tiny-full")
    assert code == 0
    found = options(out)
    folder = served.sealed["base"][0].output("model")
    assert found["model"] == str(folder)
    assert found["--served-model-name"] == "tiny-full-base"
    assert found["--host"] == "127.0.0.1"
    assert found["--port"] == "8000"
    assert found["--chat-template"] == str(folder / "chat_template.jinja")
    assert found["--reasoning-parser"] == "deepseek_r1"
    assert found["--max-model-len"] == "512"


def test_host_and_port_are_the_user_s_where_they_say_so(served: Made, call: Any) -> None:
    _, out, _ = call("serve", "tiny-full", "--host", "0.0.0.0", "--port", "9", "--json")
    made = json.loads(out)
    found = options(shlex.join(made["command"]))
    assert (found["--host"], found["--port"]) == ("0.0.0.0", "9")
    assert made["step"] == "base"


def test_other_tags_have_no_r1_parser(tmp_path: Path, call: Any) -> None:
    run = Made(tmp_path / "runs")
    config = {"chat": {"tags": {"think_open": "[T]", "think_close": "[/T]"}}}
    run.step("base", model=data_dir() / "tiny-base", config=config)
    _, out, _ = call("serve", "tiny-full")
    assert "--reasoning-parser" not in out


@without_vllm
def test_run_without_vllm_says_what_to_install_and_the_line(served: Made, call: Any) -> None:
    code, _, err = call("serve", "tiny-full", "--run")
    assert code == 2
    assert "vllm is not installed here" in err
    assert "r1pipe[vllm]" in err
    assert "vllm serve " in err


def test_an_adapter_is_no_model_to_serve(tmp_path: Path, call: Any) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "adapter_config.json").write_text("{}")
    code, _, err = call("serve", str(tmp_path / "a"))
    assert code == 2
    assert "export --to merged" in err


def test_a_run_that_is_not_there(call: Any) -> None:
    code, _, err = call("serve", "nothing")
    assert code == 2
    assert "there is no run" in err
