"""Each family through the real path: the base-model stage, SFT labels, GRPO prompts, sampling, scoring."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from r1pipe.chat import ChatConfig, Tags, prefilled_think
from r1pipe.errors import UserError
from r1pipe.generate.render import Renderer, stop_ids
from r1pipe.rewards.verdict import Context
from r1pipe.settings import RewardPart
from r1pipe.training import model as models
from r1pipe.training import rows, sft
from r1pipe.training.settings import TrainerStep
from stages import base_model
from tests.templates import families
from tests.templates.families import BY_NAME, FAMILIES, Family
from tests.training import tiny

REASONING = "adding gives 5, I think"
ROW: dict[str, Any] = {
    "id": "0" * 16, "gold": "5", "kind": "number", "language": "en", "level": 1, "reference": None, "source": "test",
    "messages": [
        {"role": "user", "content": "What is 2 plus 3?"},
        {"role": "assistant", "content": Tags().wrap(REASONING, "5")},
    ],
}  # fmt: skip
SYSTEM = "A conversation between User and Assistant."
CASES = [(f, "model") for f in FAMILIES if not f.refused] + [(f, "builtin:r1") for f in FAMILIES]


def chat(template: str, system: str | None = "builtin:r1") -> ChatConfig:
    return ChatConfig(template=template, system_prompt=system)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """(family, template) -> the folder that the base-model stage wrote, and its context. Each is made once."""

    @cache
    def source(family: Family) -> Path:
        return families.folder(tmp_path_factory.mktemp("models") / family.name, family)

    @cache
    def make(family: Family, template: str) -> Any:
        config = base_model.Config(
            stage="base-model", base_model={"path": str(source(family))}, chat=chat(template).model_dump()
        )
        ctx = tiny.context(tmp_path_factory.mktemp("base"))
        base_model.run(ctx, config)
        return ctx.outputs["model"], ctx

    return make


def step(template: str) -> TrainerStep:
    return TrainerStep(stage="sft", trainer={"max_length": 512}, chat=chat(template).model_dump())


@pytest.mark.parametrize(("family", "template"), CASES, ids=[f"{f.name}-{t}" for f, t in CASES])
def test_training_and_sampling_agree(prepared: Any, family: Family, template: str, tmp_path: Path) -> None:
    folder, base = prepared(family, template)
    tokenizer = models.load_tokenizer(folder)
    ctx = tiny.context(tmp_path)
    _, (example,) = sft.tokenize([ROW], tokenizer, step(template), ctx)
    labels = [t for t in example["labels"] if t != -100]
    sft.check_first(example, ROW, tokenizer, step(template), ctx)
    assert not ctx.counts and not ctx.warnings

    # the reasoning is learned, then the end of the turn, and nothing after it
    end = tokenizer.convert_tokens_to_ids(base.facts["turn_end"])
    assert REASONING in tokenizer.decode(labels) and "<answer>5</answer>" in tokenizer.decode(labels)
    assert labels[-1] == end != tokenizer.pad_token_id and "2 plus 3?" not in tokenizer.decode(labels)
    if template == "model":
        assert base.facts["turn_end"] == family.end and tokenizer.pad_token == family.pad_after

    # one BOS where the family has one, and the prompt of every path is how the training text begins
    renderer = Renderer(tokenizer, chat(template))
    asked = ROW["messages"][:1]
    (prompt,) = renderer.prompts([asked])
    assert example["input_ids"][: len(prompt)] == prompt
    assert example["input_ids"].index(labels[0]) <= len(prompt) or example["labels"][len(prompt)] == labels[0]
    if family.adds_bos:
        assert prompt[0] == tokenizer.bos_token_id and example["input_ids"].count(tokenizer.bos_token_id) == 1
    (column,) = rows.columns([{**ROW, "messages": asked}], chat(template))  # as GRPOTrainer tokenizes it
    trl = tokenizer.apply_chat_template(
        conversation=[column["prompt"]], add_generation_prompt=True, tokenize=True, return_dict=True
    )
    assert trl["input_ids"] == [prompt]
    assert SYSTEM in tokenizer.decode(prompt)

    # what a perfect policy samples is scored whole, as training and as sampling score it
    completion = example["input_ids"][len(prompt) :]
    completion = completion[: completion.index(end) + 1]
    (whole,) = renderer.texts([completion])
    assert renderer.prefix == (family.prefix if template == "model" else "")
    assert whole.strip().startswith("<think>\n") and format_score(whole) == 1
    prefilled = prefilled_think(tokenizer, Tags())
    assert prefilled == bool(renderer.prefix)
    (text,) = tokenizer.batch_decode([completion], skip_special_tokens=True)
    assert format_score(Context(Tags(), prefilled).whole(text)) == 1

    # the end of the turn stops every sampler
    assert end in stop_ids(folder, None, tokenizer)
    stops = json.loads((folder / "generation_config.json").read_text())
    assert stops["pad_token_id"] == tokenizer.pad_token_id
    for name in family.stops:
        assert tokenizer.convert_tokens_to_ids(name) in stop_ids(folder, None, tokenizer)


def format_score(text: str) -> float | None:
    from r1pipe.rewards import Composer

    composer = Composer({"format": RewardPart(), "accuracy": RewardPart()})
    (scores,) = composer.score_whole([text], [ROW])
    assert scores["accuracy"] is not None and scores["accuracy"].score == 1
    assert scores["format"] is not None
    return scores["format"].score


def test_the_files_of_older_models(tmp_path: Path) -> None:
    """Template and special tokens in tokenizer_config.json and special_tokens_map.json: transformers 5 still reads the
    latter, so that the end of a document came back as the end of a turn."""
    source = families.folder(tmp_path / "old", BY_NAME["llama3"])
    path = source / "tokenizer_config.json"
    config = json.loads(path.read_text()) | {"chat_template": BY_NAME["llama3"].text}
    path.write_text(json.dumps(config | {"tokenizer_class": "PreTrainedTokenizerFast"}))
    (source / "chat_template.jinja").unlink()
    (source / "special_tokens_map.json").write_text('{"eos_token": "<|end_of_text|>", "pad_token": "<|eot_id|>"}')
    ctx = tiny.context(tmp_path)
    base_model.run(ctx, base_model.Config(stage="base-model", base_model={"path": str(source)}))
    made = models.load_tokenizer(ctx.outputs["model"])
    assert (made.eos_token, made.pad_token) == ("<|eot_id|>", "<|reserved_special_token_0|>")
    assert (ctx.outputs["model"] / "chat_template.jinja").read_text() == BY_NAME["llama3"].text == made.chat_template


def test_tokens_without_an_embedding(tmp_path: Path) -> None:
    """Of the tokens that somebody added to the tokenizer alone, none pads; one that ends turns is refused."""
    source = families.folder(tmp_path / "m", BY_NAME["qwen2.5"])
    grown = models.load_tokenizer(source)
    grown.add_special_tokens({"pad_token": "<|new pad|>"})
    grown.save_pretrained(source)
    config = base_model.Config(stage="base-model", base_model={"path": str(source)})
    ctx = tiny.context(tmp_path)
    base_model.run(ctx, config)
    assert models.load_tokenizer(ctx.outputs["model"]).pad_token == "<|endoftext|>" == ctx.facts["pad_token"]
    path = source / "config.json"
    smaller = json.loads(path.read_text()) | {"vocab_size": grown.convert_tokens_to_ids("<|im_end|>")}
    path.write_text(json.dumps(smaller))
    with pytest.raises(UserError, match=r"<\|im_end\|> that ends a turn has the id \d+, .* embeddings for \d+ tokens"):
        base_model.run(tiny.context(tmp_path), config)


@pytest.mark.parametrize("name", ["smollm2", "phi4", "deepseek-r1-distill-kept", "mistral-v0.1"])
def test_padding_does_not_hide_the_end_of_a_turn(prepared: Any, name: str, tmp_path: Path) -> None:
    """TRL's own collator on two rows of different length (known-failures e7): these come with pad = eos."""
    from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

    folder, base = prepared(BY_NAME[name], "model")
    tokenizer = models.load_tokenizer(folder)
    longer = {**ROW, "messages": [{"role": "user", "content": "What is 2 plus 3? " * 5}, ROW["messages"][1]]}
    _, examples = sft.tokenize([ROW, longer], tokenizer, step("model"), tiny.context(tmp_path))
    batch = DataCollatorForLanguageModeling(pad_token_id=tokenizer.pad_token_id)(examples)
    end = tokenizer.convert_tokens_to_ids(base.facts["turn_end"])
    for ids, labels in zip(batch["input_ids"].tolist(), batch["labels"].tolist(), strict=True):
        assert end in ids and labels.count(end) == 1
    assert batch["labels"][0].tolist()[-1] == -100


@pytest.mark.parametrize("family", [f for f in FAMILIES if f.refused], ids=lambda f: f.name)
def test_a_template_that_loses_the_reasoning_is_refused(prepared: Any, family: Family) -> None:
    with pytest.raises(UserError, match=family.refused) as error:
        prepared(family, "model")
    assert "chat.template: builtin:r1" in str(error.value) and "\n" not in error.value.message


def test_system_prompts_without_a_system_role(prepared: Any) -> None:
    """Gemma raises, Mistral shows it only while the user speaks last: it goes before the first user turn."""
    for name in ("gemma", "mistral", "mistral-v0.1"):
        folder, ctx = prepared(BY_NAME[name], "model")
        assert ctx.facts["system_role"] == "put before the first user turn"
        assert sum("chat.system_prompt" in w for w in ctx.warnings) == 1
        tokenizer = models.load_tokenizer(folder)
        turns = [{"role": "system", "content": "Be brief."}, *ROW["messages"]]
        merged = [{"role": "user", "content": "Be brief.\n\nWhat is 2 plus 3?"}, ROW["messages"][1]]
        text = tokenizer.apply_chat_template(turns, tokenize=False)
        assert text == tokenizer.apply_chat_template(merged, tokenize=False)
        tokenizer.chat_template = BY_NAME[name].text  # without a system turn it is the model's own, to the letter
        assert text == tokenizer.apply_chat_template(merged, tokenize=False)
    for name in ("qwen2.5", "llama3", "phi3", "smollm2", "deepseek-r1-distill-kept"):
        folder, ctx = prepared(BY_NAME[name], "model")
        assert ctx.facts["system_role"] == "the template's"
        assert (folder / "chat_template.jinja").read_text() == BY_NAME[name].text


def test_the_date_in_the_prompt_is_frozen(prepared: Any) -> None:
    folder, ctx = prepared(BY_NAME["llama3.2"], "model")
    assert "26 Jul 2024" in Renderer(models.load_tokenizer(folder), chat("model")).tokenizer.decode(
        rows.render(models.load_tokenizer(folder), [ROW["messages"]])[0]
    )
    assert any("frozen at 26 Jul 2024" in w for w in ctx.warnings) and ctx.facts["frozen_day"] == "2024-07-26"


def test_ours_writes_what_the_tokenizer_knows(prepared: Any) -> None:
    """ChatML where its tokens are there; else the paper's User and Assistant, ended by the model's own end of text."""
    for name, end in (("qwen3", "<|im_end|>"), ("phi4", "<|im_end|>"), ("llama3", "<|end_of_text|>"),
                      ("gemma", "<eos>"), ("deepseek-r1-distill", "<｜end▁of▁sentence｜>")):  # fmt: skip
        folder, ctx = prepared(BY_NAME[name], "builtin:r1")
        assert ctx.facts["turn_end"] == end and ctx.facts["earlier_reasoning"] == "kept"
        text = models.load_tokenizer(folder).apply_chat_template(ROW["messages"], tokenize=False)
        assert ("<|im_start|>" in text) == (end == "<|im_end|>")


REAL: dict[str, str] = {
    "qwen2.5": "qwen2_5", "qwen3": "qwen3", "llama3": "llama3", "llama3.2": "llama3_2", "gemma": "gemma",
    "phi3": "phi3", "deepseek-r1-distill": "deepseek_r1_distill",
}  # fmt: skip


@pytest.mark.parametrize("name", REAL)
def test_a_fixture_has_the_shape_of_the_real_one(name: str) -> None:
    """TRL ships the families' own templates: on the conversations that matter here, ours write the same."""
    import trl

    real = Path(trl.__file__).parent / "chat_templates" / f"{REAL[name]}.jinja"
    tokenizer = families.tokenizer(BY_NAME[name])
    system = {"role": "system", "content": "Be brief."}
    for turns, add in (
        (ROW["messages"][:1], True),
        (ROW["messages"], False),
        ([*ROW["messages"], *ROW["messages"]], False),
        ([system, *ROW["messages"]], False),
        ([system, ROW["messages"][0]], True),
        ([{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}], False),
    ):
        said = []
        for template in (BY_NAME[name].text, real.read_text(encoding="utf-8")):
            try:
                said.append(
                    tokenizer.apply_chat_template(
                        turns, chat_template=template, add_generation_prompt=add, tokenize=False
                    )
                )
            except Exception as error:  # noqa: BLE001 - both must raise the same
                said.append(f"{type(error).__name__}: {error}")
        assert said[0] == said[1]
