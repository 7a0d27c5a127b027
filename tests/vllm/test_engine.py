"""The vLLM engine on the embedded model: what every sampler promises, and the same greedy text as transformers."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest

from r1pipe.chat import ChatConfig
from r1pipe.data.load import load
from r1pipe.errors import UserError
from r1pipe.generate import Ask, engine_arguments, make
from r1pipe.resources import data_dir
from r1pipe.settings import DataSpec, EngineConfig, SamplingConfig
from tests.vllm.conftest import KEY, Served

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vllm is not installed"),
    pytest.mark.timeout(600),
]
MODEL = data_dir() / "tiny-base"
ENGINE = EngineConfig(kind="vllm", options={"max_model_len": 256, "max_num_seqs": 64})
ASKED = [
    row["messages"] for row in load(DataSpec(source="generated:arithmetic", rows=24), "prompts", seed=3)
]  # in both languages
LONG = [{"role": "user", "content": "1 + " * 200 + "1 = ?"}]


@pytest.fixture(scope="module")
def sampler() -> Iterator[Any]:
    made = make(ENGINE, MODEL, ChatConfig())
    yield made
    made.close()


def texts(groups: list[list[Any]]) -> list[list[str]]:
    return [[sample.text for sample in group] for group in groups]


def test_greedy_text_is_that_of_transformers(sampler: Any) -> None:
    greedy = SamplingConfig(temperature=0, max_tokens=48)
    ours = make(EngineConfig(kind="transformers"), MODEL, ChatConfig())
    assert sampler.generate(ASKED, greedy, seed=1) == ours.generate(ASKED, greedy, seed=1)


def test_samples_are_many_and_come_again(sampler: Any) -> None:
    """A prompt that comes twice, n=4, one seed: eight texts (known-failures f2), and the same ones the next time."""
    sampling = SamplingConfig(n=4, max_tokens=48)
    found = sampler.generate([ASKED[0], ASKED[1], ASKED[0]], sampling, seed=7)
    assert len({s.text for s in (*found[0], *found[2])}) == 8
    assert [s.index for s in found[0]] == [0, 1, 2, 3]
    assert sampler.generate([ASKED[0], ASKED[1], ASKED[0]], sampling, seed=7) == found
    assert texts(sampler.generate([ASKED[1]], sampling, seed=7)) == texts([found[1]])  # whatever is beside it
    assert texts(sampler.generate([ASKED[1]], sampling, seed=8)) != texts([found[1]])


def test_a_long_prompt_costs_only_itself(sampler: Any) -> None:
    found = sampler.generate([ASKED[0], LONG, ASKED[1]], SamplingConfig(n=2, max_tokens=8), seed=1)
    assert [s.finish for s in found[1]] == ["skipped"] * 2
    assert found[1][0].why.startswith("the prompt has ") and found[1][0].why.endswith("the context 256")
    assert all(s.finish != "skipped" and s.tokens for s in (*found[0], *found[2]))


def test_a_conversation_that_the_template_refuses_costs_only_itself(
    sampler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = sampler.renderer.tokenizer
    strict = "{% if messages | length > 1 %}{{ raise_exception('one turn only') }}{% endif %}"
    monkeypatch.setattr(tokenizer, "chat_template", strict + tokenizer.chat_template)
    found = sampler.generate([ASKED[0], [*ASKED[1], *ASKED[1]], ASKED[1]], SamplingConfig(n=2, max_tokens=8), seed=1)
    assert [s.finish for s in found[1]] == ["skipped"] * 2 and "one turn only" in found[1][0].why
    assert all(s.finish != "skipped" and s.tokens for s in (*found[0], *found[2]))


def test_seeds_survive_a_prefill_that_is_full(sampler: Any) -> None:
    """More prompt tokens than one step prefills: vLLM's CPU generators die there with chunked prefill."""
    wide = [[{"role": "user", "content": f"{n} + " * 60 + "1 = ?"}] for n in range(2, 50)]
    found = sampler.generate(wide, SamplingConfig(n=2, max_tokens=4), seed=5)
    assert {s.finish for group in found for s in group} <= {"stop", "length"}


def test_the_limits_are_kept(sampler: Any) -> None:
    cut = sampler.generate(ASKED, SamplingConfig(max_tokens=3), seed=1)
    assert {(s[0].tokens, s[0].finish) for s in cut} == {(3, "length")}
    whole = sampler.generate(ASKED, SamplingConfig(temperature=0, max_tokens=128), seed=1)
    assert {s[0].finish for s in whole} == {"stop"}
    assert all("<|im_end|>" not in s[0].text for s in whole)


def test_only_what_is_missing_is_made(sampler: Any) -> None:
    sampling = SamplingConfig(max_tokens=32)
    seeds = tuple(range(100, 104))
    whole = {s.index: s for made in sampler.stream([[Ask("a", ASKED[0], seeds)]], sampling) for _, s in made}
    again = Ask("a", ASKED[0], seeds, have=frozenset({0, 2}))
    rest = {s.index: s for made in sampler.stream([[again]], sampling) for _, s in made}
    assert rest == {index: whole[index] for index in (1, 3)}


def test_the_groups_are_taken_as_there_is_room(sampler: Any) -> None:
    """A dataset of any size is never in the engine as a whole, and no end of a group leaves it idle."""
    taken: list[int] = []

    def groups() -> Iterator[list[Ask]]:
        for number in range(40):
            taken.append(number)
            yield [Ask(f"{number}/{i}", c, (number,)) for i, c in enumerate(ASKED[:8])]

    done, most = 0, 0
    for made in sampler.stream(groups(), SamplingConfig(max_tokens=24)):
        done += len(made)
        most = max(most, len(taken) * 8 - done)
    assert done == 320
    assert most < 2 * 64 + 8 + 32 + 64


def test_stopped_early_it_can_be_used_again(sampler: Any) -> None:
    stream = sampler.stream([[Ask(str(i), c, (i,)) for i, c in enumerate(ASKED)]], SamplingConfig(max_tokens=64))
    next(stream)
    stream.close()
    assert not sampler.llm.llm_engine.has_unfinished_requests()
    assert len(sampler.generate(ASKED[:2], SamplingConfig(max_tokens=4), seed=1)) == 2


def test_facts_say_what_ran(sampler: Any) -> None:
    assert sampler.facts["engine"] == "vllm" and sampler.facts["chosen"] == "configured"
    assert sampler.facts["dtype"] == "float32" and sampler.facts["context"] == 256
    assert any("vllm" in name for name in sampler.facts["versions"])


def test_replicas_share_the_prompts(sampler: Any) -> None:
    """data_parallel_size, which vllm.LLM refuses: two engines in processes of their own, and the same samples."""
    options = {"max_model_len": 256, "max_num_seqs": 8, "data_parallel_size": 2}
    replicas = make(EngineConfig(kind="vllm", options=options), MODEL, ChatConfig())
    try:
        sampling = SamplingConfig(n=4, max_tokens=24)
        found = replicas.generate(ASKED * 4, sampling, seed=7)
        assert len(found) == 96 and all(s.tokens for group in found for s in group)
        same = [a == b for a, b in zip(found, sampler.generate(ASKED * 4, sampling, seed=7), strict=True)]
        assert sum(same) > 90  # but for a rounding of the logits that tips a draw
        assert replicas.facts["data_parallel_size"] == 2
        replicas.processes[1].kill()
        with pytest.raises(RuntimeError, match=r"vllm replica \d .* ended"):
            replicas.generate(ASKED * 4, sampling, seed=7)
        assert not any(process.is_alive() for process in replicas.processes)
    finally:
        replicas.close()


def test_more_replicas_than_devices() -> None:
    with pytest.raises(UserError, match="replicas of"):
        make(EngineConfig(kind="vllm", options={"data_parallel_size": 4096}), MODEL, ChatConfig())


def test_the_real_engine_arguments_are_checked() -> None:
    found = engine_arguments(ENGINE, MODEL)
    assert found["checked"] and found["arguments"]["dtype"] == "float32"  # vLLM's auto would make it bfloat16
    with pytest.raises(UserError, match="vllm refuses the engine options"):
        engine_arguments(EngineConfig(kind="vllm", options={"max_modle_len": 4}), MODEL)


def test_a_server_of_vllm_is_sampled(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """`vllm serve` as it is started by its users; each sample with a seed of its own."""
    monkeypatch.setenv("SAMPLER_KEY", KEY)
    engine = EngineConfig(kind="server", url=served.url, batch_size=8, options={"key_env": "SAMPLER_KEY"})
    server = make(engine, None, ChatConfig())
    assert server.facts["model"] == "judge"
    sampling = SamplingConfig(n=2, max_tokens=24)
    found = server.generate(ASKED[:6], sampling, seed=3)
    assert texts(server.generate(ASKED[:6], sampling, seed=3)) == texts(found)
    assert sum(a.text != b.text for a, b in found) >= 4 and all(s.tokens for group in found for s in group)
    greedy = SamplingConfig(temperature=0, max_tokens=24)
    ours = make(EngineConfig(kind="transformers"), MODEL, ChatConfig())
    assert texts(server.generate(ASKED[:6], greedy, seed=3)) == texts(ours.generate(ASKED[:6], greedy, seed=3))
    monkeypatch.setenv("SAMPLER_KEY", "another-key-0123456789")
    with pytest.raises(UserError, match="401"):
        make(engine, None, ChatConfig()).generate(ASKED[:1], greedy, seed=3)
