"""The decode loop against `model.generate`, and what a sampler promises: order, seeds, skips."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from r1pipe.chat import ChatConfig
from r1pipe.errors import UserError
from r1pipe.generate import Ask, make
from r1pipe.generate.draw import pick, uniforms
from r1pipe.generate.transformers_engine import TransformersSampler
from r1pipe.settings import EngineConfig, SamplingConfig
from tests.generate import tiny

ASKED = [
    [{"role": "user", "content": c}] for c in ("What is 2 plus 3?", "二加三", "What is 2", "plus 3? makes 5. " * 4)
]


def sampler(model: Any, tok: Any, **options: Any) -> TransformersSampler:
    return TransformersSampler(None, ChatConfig(), model=model, tokenizer=tok, **options)


def test_greedy_is_what_generate_gives(model: Any, tok: Any) -> None:
    found = sampler(model, tok).generate(ASKED, SamplingConfig(temperature=0, max_tokens=12), seed=0)
    for conversation, (sample,) in zip(ASKED, found, strict=True):
        text = tok.apply_chat_template(conversation, add_generation_prompt=True, tokenize=False)
        ids = tok(text, add_special_tokens=False, return_tensors="pt")
        with torch.inference_mode():
            out = model.generate(**ids, do_sample=False, max_new_tokens=12)[0, ids["input_ids"].shape[1] :]
        assert sample.text == tok.decode(out, skip_special_tokens=True)
        assert sample.tokens == len(out)


@pytest.mark.parametrize("batch_size", [1, 3, 5])
def test_samples_do_not_depend_on_the_batch(model: Any, tok: Any, batch_size: int) -> None:
    sampling = SamplingConfig(n=4, max_tokens=16)
    whole = sampler(model, tok).generate(ASKED, sampling, seed=7)
    assert sampler(model, tok, batch_size=batch_size).generate(ASKED, sampling, seed=7) == whole
    backwards = sampler(model, tok).generate(ASKED[::-1], sampling, seed=7)
    assert backwards[::-1] == whole
    assert sampler(model, tok).generate(ASKED, sampling, seed=8) != whole


def test_batches_are_as_large_as_the_cache_allows(model: Any, tok: Any) -> None:
    """By tokens, prompt and completion at their longest; one row at least, whatever it needs."""
    s = sampler(model, tok)
    sampling = SamplingConfig(n=4, max_tokens=16)
    whole = s.generate(ASKED, sampling, seed=7)
    prompts = s.renderer.prompts(ASKED)
    for room in (1, 150, 400):
        s.cache_tokens = room
        asks = [Ask(str(i), c, (i, i + 1)) for i, c in enumerate(ASKED)]
        batches = s._batches(s._sequences(asks, prompts, [True] * 4, sampling), prompts)
        widths = [max(len(prompts[x.prompt]) + x.budget for x in batch) * len(batch) for batch in batches]
        assert all(w <= room or len(b) == 1 for w, b in zip(widths, batches, strict=True))
        assert sum(map(len, batches)) == 8 and (room == 1) == (len(batches) == 8)
        assert s.generate(ASKED, sampling, seed=7) == whole


def test_equal_prompts_get_other_samples(model: Any, tok: Any) -> None:
    found = sampler(model, tok).generate([ASKED[0], ASKED[0]], SamplingConfig(n=4, max_tokens=16), seed=7)
    texts = [s.text for group in found for s in group]
    assert len(set(texts)) == 8
    assert [s.index for s in found[0]] == [0, 1, 2, 3]


def test_a_long_prompt_costs_only_itself(model: Any, tok: Any) -> None:
    long = [{"role": "user", "content": "plus 3 " * 300}]
    sampling = SamplingConfig(n=2, max_tokens=10)
    found = sampler(model, tok).generate([ASKED[0], long, ASKED[1]], sampling, seed=1)
    assert [(s.text, s.tokens, s.finish) for s in found[1]] == [("", 0, "skipped")] * 2
    assert [found[0], found[2]] == sampler(model, tok).generate([ASKED[0], ASKED[1]], sampling, seed=1)


def test_the_context_is_never_passed(model: Any, tok: Any) -> None:
    """A prompt that leaves 5 tokens of the context gets 5, whatever max_tokens says."""
    s = sampler(model, tok)
    words = next(
        [{"role": "user", "content": "2" * n}]
        for n in range(200)
        if len(s.renderer.prompts([[{"role": "user", "content": "2" * n}]])[0]) == s.context - 5
    )
    s.stop = [10**6]
    (sample,) = s.generate([words], SamplingConfig(max_tokens=64), seed=1)[0]
    assert (sample.tokens, sample.finish) == (5, "length")


def test_stop_tokens_end_a_sample(model: Any, tok: Any) -> None:
    s = sampler(model, tok)
    s.stop = list(range(0, len(tok), 3))  # many: rows end at different steps, so finished rows leave the batch
    found = s.generate(ASKED * 8, SamplingConfig(n=2, max_tokens=40), seed=3)
    flat = [x for group in found for x in group]
    assert {x.finish for x in flat} == {"stop"}
    assert len({x.tokens for x in flat}) > 3
    # The same uniforms with finished rows kept: the texts do not change when rows leave.
    from r1pipe.generate import decode

    before, decode.COMPACT_AT = decode.COMPACT_AT, 1.0
    try:
        assert s.generate(ASKED * 8, SamplingConfig(n=2, max_tokens=40), seed=3) == found
    finally:
        decode.COMPACT_AT = before


def test_a_model_in_training_stays_in_training(model: Any, tok: Any) -> None:
    model.train()
    try:
        sampler(model, tok).generate(ASKED[:1], SamplingConfig(max_tokens=2), seed=0)
        assert model.training
    finally:
        model.eval()


def test_a_prefilled_tag_is_put_back(tok: Any, model: Any) -> None:
    prefilling = tiny.tokenizer(tiny.TEMPLATE.replace("assistant\n{% endif", "assistant\n<think>\n{% endif"))
    s = sampler(model, prefilling)
    assert s.facts["prefilled_think"]
    (sample,) = s.generate(ASKED[:1], SamplingConfig(max_tokens=4), seed=0)[0]
    assert sample.text.startswith("<think>\n")
    assert not sampler(model, tok).facts["prefilled_think"]


def test_from_a_folder(tmp_path: Path) -> None:
    folder = tiny.folder(tmp_path / "m")
    s = make(EngineConfig(kind="transformers", batch_size=2), folder, ChatConfig())
    seen: list[tuple[int, int, int]] = []
    found = s.generate(ASKED, SamplingConfig(max_tokens=4), seed=0, on_progress=lambda *a: seen.append(a))
    assert len(found) == 4
    assert [a[:2] for a in seen] == [(2, 4), (4, 4)]
    assert seen[-1][2] == sum(x.tokens for g in found for x in g)
    assert s.facts["dtype"] == "float32" and s.facts["chosen"] == "configured"
    s.close()


def test_no_chat_template_is_said(model: Any) -> None:
    bare = tiny.tokenizer()
    bare.chat_template = None
    with pytest.raises(UserError, match="no chat template"):
        sampler(model, bare)


def test_nothing_to_do(model: Any, tok: Any) -> None:
    assert sampler(model, tok).generate([], SamplingConfig(), seed=0) == []


def test_drawing_follows_the_distribution() -> None:
    logits = torch.tensor([[2.0, 0.0, 1.0, -1e9]]).expand(20000, 4)
    u = uniforms([5], 20000)[0]
    for temperature, top_p in ((1.0, 1.0), (0.5, 1.0), (1.0, 0.7)):
        p = torch.softmax(logits[0] / temperature, -1)
        if top_p < 1:  # 0.665 < 0.7: the second most likely token still belongs to the nucleus
            p = p * torch.tensor([1.0, 0.0, 1.0, 0.0])
            p = p / p.sum()
        seen = torch.bincount(pick(logits, u, temperature, top_p), minlength=4) / 20000
        assert torch.allclose(seen, p, atol=0.012)
        assert seen[3] == 0
    assert pick(logits[:1], torch.tensor([1 - 2**-24]), 1.0, 1.0).item() == 2  # the end of the scale stays inside
