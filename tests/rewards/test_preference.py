"""Reward models from a folder: what they judge, batching, and refusals to serve."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pydantic import ValidationError

from r1pipe.errors import UserError
from r1pipe.rewards import Composer, HarmlessReward, HelpfulReward
from r1pipe.rewards.preference import ModelOptions, ModelReward, Options, verify
from r1pipe.rewards.verdict import Context
from r1pipe.settings import RewardPart

TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
FORGETFUL = TEMPLATE.replace("m.content", "m.content.split('</think>')[-1]")
PROMPT = {"messages": [{"role": "user", "content": "How are you?"}], "kind": "general"}


def save(folder: Path, *, template: str | None = TEMPLATE, labels: int = 1, causal: bool = False) -> Path:
    """A random reward model of a few thousand parameters, with a byte tokenizer."""
    import torch
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<|endoftext|>", eos_token="<|im_end|>", model_max_length=256
    )
    fast.chat_template = template
    fast.save_pretrained(folder)
    torch.manual_seed(1)
    config = transformers.Qwen3Config(
        vocab_size=len(fast), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
        head_dim=8, intermediate_size=16, max_position_embeddings=256, num_labels=labels,
        pad_token_id=fast.pad_token_id, initializer_range=0.5,
    )  # fmt: skip
    kind = transformers.Qwen3ForCausalLM if causal else transformers.Qwen3ForSequenceClassification
    kind(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return save(tmp_path_factory.mktemp("rm"))


def test_helpful_sees_the_answer_only_and_harmless_all(model):
    texts = [f"<think>{t}</think>\n<answer>fine, thanks</answer>" for t in ("hm", "something else entirely")]
    helpful, harmless = HelpfulReward(model), HarmlessReward(model)
    a, b = helpful(texts, [PROMPT] * 2)
    assert a.score == pytest.approx(b.score, abs=1e-6) and 0 < a.score < 1
    c, d = harmless(texts, [PROMPT] * 2)
    assert c.score != pytest.approx(d.score, abs=1e-6)


def test_batches_and_order_do_not_matter(model):
    texts = [f"<think>{'so ' * n}</think><answer>{'well ' * n}</answer>" for n in (9, 1, 5, 3)]
    together = HarmlessReward(model, Options(batch_size=3))(texts, [PROMPT] * 4)
    alone = [HarmlessReward(model)([t], [PROMPT])[0] for t in texts]
    assert [v.score for v in together] == pytest.approx([v.score for v in alone], abs=1e-5)


def test_no_answer_is_the_completions_fault(model):
    verdicts = HelpfulReward(model)(["<think>unfinished", "<think>a</think><answer></answer>"], [PROMPT] * 2)
    assert [(v.score, v.status) for v in verdicts] == [(0.0, "unverifiable")] * 2


def test_long_responses_are_cut_and_said(model):
    warnings: list[str] = []
    composer = Composer({"harmless": RewardPart()}, models={"harmless": model}, warn=warnings.append)
    composer.score(["<think>" + "long " * 100 + "</think> x"], [PROMPT])
    assert len(warnings) == 1 and "judged the last 256" in warnings[0]


def test_loading_leaves_the_random_state(model):
    import torch

    torch.manual_seed(5)
    HelpfulReward(model)(["<think>a</think>b"], [PROMPT])
    drawn = torch.rand(3)
    torch.manual_seed(5)
    assert torch.equal(drawn, torch.rand(3))


def test_center_moves_the_scale(model):
    text = ["<think>a</think>b"]
    plain, moved = (HelpfulReward(model, Options(center=c))(text, [PROMPT])[0].score for c in (0.0, 2.0))
    assert plain is not None and moved is not None and moved < plain


def test_what_is_no_reward_model_is_refused(tmp_path):
    with pytest.raises(UserError, match="there is no reward model"):
        HelpfulReward(tmp_path / "nowhere").model.load()
    with pytest.raises(UserError, match="found 3 labels"):
        HelpfulReward(save(tmp_path / "three", labels=3)).model.load()
    with pytest.raises(UserError, match="no trained score head"):
        HelpfulReward(save(tmp_path / "causal", causal=True)).model.load()
    with pytest.raises(UserError, match="no chat template"):
        HelpfulReward(save(tmp_path / "bare", template=None)).model.load()
    forgetful = save(tmp_path / "forgetful", template=FORGETFUL)
    HelpfulReward(forgetful).model.load()
    with pytest.raises(UserError, match="drops the reasoning"):
        HarmlessReward(forgetful).model.load()


COMMIT = "0123456789abcdef0123456789abcdef01234567"
TEXTS = ["<think>so</think>\n<answer>fine, thanks</answer>", "<think>so</think><answer> </answer>", "<think>so"]


def named(path: Path | str, **options) -> ModelReward:
    return ModelReward(ModelOptions(path=str(path), **options), Context())


def test_any_model_judges_the_answer_or_all(model):
    rows = [PROMPT] * len(TEXTS)
    assert named(model)(TEXTS, rows) == HelpfulReward(model)(TEXTS, rows)
    assert named(model, judges="response")(TEXTS, rows) == HarmlessReward(model)(TEXTS, rows)


def test_models_that_do_not_think(model):
    said = "<answer>fine, thanks</answer>"
    assert named(model)([said], [PROMPT])[0].status == "unverifiable"
    plain = named(model, require_think=False)([said, TEXTS[0]], [PROMPT] * 2)
    assert plain[0].status == "scored" and plain[0].score == pytest.approx(plain[1].score, abs=1e-6)


def test_raw_scale_is_the_logit(model):
    import math

    raw = named(model, scale="raw", center=1.0)(TEXTS[:1], [PROMPT])[0].score
    squashed = named(model, center=1.0)(TEXTS[:1], [PROMPT])[0].score
    assert squashed == pytest.approx(1 / (1 + math.exp(-raw)))


def test_facts_name_the_weights(model, tmp_path):
    reward = named(model)
    assert reward.facts()["digest"] is None
    reward(TEXTS[:1], [PROMPT])
    facts = reward.facts()
    assert facts["path"] == str(model) and len(facts["digest"]) == 16
    other = shutil.copytree(model, tmp_path / "other")
    weights = other / "model.safetensors"
    changed = bytearray(weights.read_bytes())
    changed[-1] ^= 1
    weights.write_bytes(changed)
    again = named(other)
    again(TEXTS[:1], [PROMPT])
    assert again.facts()["digest"] != facts["digest"]


def test_verify_scores_one(model):
    found = verify("so</think><answer>fine, thanks</answer>", PROMPT, prefilled=True, path=str(model))
    assert found.score == pytest.approx(named(model)(TEXTS[:1], [PROMPT])[0].score, abs=1e-6)


def test_hub_models_are_pinned(model, tmp_path, monkeypatch):
    with pytest.raises(ValidationError, match="pinned `revision`"):
        ModelOptions(path="owner/model")
    with pytest.raises(ValidationError, match="is a folder"):
        ModelOptions(path=str(model), revision=COMMIT)
    import huggingface_hub.constants as hub

    monkeypatch.setattr(hub, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(hub, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(UserError, match="not in the local cache"):
        named("owner/model", revision=COMMIT).model.load()
    snapshot = tmp_path / "models--owner--model" / "snapshots" / COMMIT
    shutil.copytree(model, snapshot)
    hubs = named("owner/model", revision=COMMIT)
    assert hubs(TEXTS[:1], [PROMPT]) == named(model)(TEXTS[:1], [PROMPT])
    assert hubs.facts()["revision"] == COMMIT


def test_pickles_code_and_broken_files_are_refused(model, tmp_path):
    import torch

    pickled = shutil.copytree(model, tmp_path / "pickled")
    (pickled / "model.safetensors").unlink()
    torch.save({"score.weight": torch.zeros(1, 16)}, pickled / "pytorch_model.bin")
    with pytest.raises(UserError, match="cannot be loaded as a reward model"):
        named(pickled).model.load()

    coded = shutil.copytree(model, tmp_path / "coded")
    config = json.loads((coded / "config.json").read_text())
    config |= {
        "model_type": "own",
        "auto_map": {n: f"own.{n}" for n in ("AutoConfig", "AutoModelForSequenceClassification")},
    }
    (coded / "config.json").write_text(json.dumps(config))
    (coded / "own.py").write_text("raise SystemExit('code of a model ran')")
    with pytest.raises(UserError, match="cannot be loaded as a reward model"):
        named(coded).model.load()

    broken = shutil.copytree(model, tmp_path / "broken")
    (broken / "model.safetensors").write_bytes(b"not safe, no tensors")
    with pytest.raises(UserError, match="cannot be loaded as a reward model"):
        named(broken).model.load()
