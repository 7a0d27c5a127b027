"""Which engine is taken, what --dry-run shows, the scripted one."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from r1pipe.chat import ChatConfig
from r1pipe.errors import UserError
from r1pipe.generate import engine_arguments, make, resolve
from r1pipe.generate.base import sample_seeds
from r1pipe.settings import EngineConfig, SamplingConfig
from tests.generate import tiny

HAS_VLLM = importlib.util.find_spec("vllm") is not None
ASKED = [[{"role": "user", "content": "What is 2 plus 3?"}], [{"role": "user", "content": "二加三"}]]


def test_auto_says_why() -> None:
    kind, reason = resolve(EngineConfig())
    assert kind in ("transformers", "vllm") and reason.startswith("auto: ")
    assert resolve(EngineConfig(kind="server", url="http://x")) == ("server", "configured")


def test_faults_of_the_engine_section() -> None:
    with pytest.raises(UserError, match=r"engine\.url"):
        make(EngineConfig(kind="server"), None, ChatConfig())
    if not HAS_VLLM:
        with pytest.raises(UserError, match="vllm is not installed"):
            make(EngineConfig(kind="vllm"), "x", ChatConfig())


def test_dry_run_arguments(tmp_path: Path) -> None:
    folder = tiny.folder(tmp_path / "m")
    assert engine_arguments(EngineConfig(kind="transformers", batch_size=9), folder)["batch_size"] == 9
    found = engine_arguments(EngineConfig(kind="vllm", options={"max_model_len": 64}), folder)
    assert found["arguments"]["max_model_len"] == 64
    assert found["arguments"]["dtype"] == "float32"  # vLLM's auto would make it bfloat16
    assert found["checked"] is HAS_VLLM


def test_scripted() -> None:
    s = make(EngineConfig(kind="scripted", options={"replies": ["a b c d", "e"]}), None, ChatConfig())
    found = s.generate(ASKED, SamplingConfig(n=2, max_tokens=3), seed=0)
    assert [[(x.text, x.finish, x.tokens) for x in g] for g in found] == [
        [("a b c", "length", 3), ("e", "stop", 1)]
    ] * 2


def test_scripted_by_seed() -> None:
    """As with a model, a reply depends on the seed alone."""
    engine = EngineConfig(kind="scripted", options={"replies": [f"r{i}" for i in range(50)], "pick": "seed"})
    both = make(engine, None, ChatConfig()).generate(ASKED, SamplingConfig(n=4), seed=3)
    assert make(engine, None, ChatConfig()).generate(ASKED[1:], SamplingConfig(n=4), seed=3) == both[1:]
    for options, said in (({"pick": "last"}, "turn or seed"), ({"reply": ["a"]}, "scripted engine")):
        with pytest.raises(UserError) as error:
            make(EngineConfig(kind="scripted", options=options), None, ChatConfig())
        assert said in str(error.value)


def test_seeds_depend_on_the_row_alone() -> None:
    both, second = sample_seeds(ASKED, 3, 1), sample_seeds(ASKED[1:], 3, 1)
    assert both[1] == second[0]
    again = sample_seeds([ASKED[0], ASKED[0]], 3, 1)
    assert again[0] == both[0] and len({*again[0], *again[1]}) == 6
