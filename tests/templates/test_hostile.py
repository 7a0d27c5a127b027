"""Templates that are broken or mean harm: one sentence, soon, and nothing of this process is reached."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from r1pipe.chat import ChatConfig, Tags
from r1pipe.errors import UserError
from r1pipe.generate.render import Renderer
from r1pipe.training import rows, sft, template, tryrender
from r1pipe.training.settings import TrainerStep
from tests.templates import families
from tests.templates.families import BY_NAME
from tests.templates.test_families import ROW, step
from tests.training import tiny

CHATML = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"


def tokenizer(text: Any = None, family: str = "qwen2.5") -> Any:
    out = families.tokenizer(BY_NAME[family])
    if text is not None:
        out.chat_template = text
    return out


def prepare(text: Any) -> template.Prepared:
    return template.prepare(tokenizer(text), ChatConfig())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{% for m in messages %}{{ m.content }", "cannot be used: line 1: "),
        ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "not end within 1 seconds"),
        ("{{ 'a' * 10 ** 11 }}", "GiB of memory"),
        ("{{ 'a' * 10 ** 7 }}", "10,000,000 characters"),
        ("{{ raise_exception('not today') }}", "cannot be used: not today"),
        ("", "no chat template"),
        ({"tool_use": CHATML}, "several chat templates .tool_use. and none is the default"),
    ],
)
def test_one_sentence(text: Any, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tryrender, "SECONDS", 1)
    with pytest.raises(UserError, match=said) as error:
        prepare(text)
    assert "chat.template" in str(error.value) and "builtin:r1" in str(error.value)
    assert len(error.value.message) < 400


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{% for m in messages %}{{ m.content }}", "Unexpected end of template"),
        ("{{ no_such(messages) }}", "'no_such' is undefined"),
        ("{{ messages.__class__.__mro__[1].__subclasses__() }}", "unsafe|undefined"),
        ("{{ ''.__class__.__base__.__subclasses__() }}", "unsafe|undefined"),
        ("{{ cycler.__init__.__globals__.os.system('id') }}", "unsafe|undefined|no attribute"),
        ("{% if messages.append(messages[0]) %}{% endif %}" + CHATML, "unsafe"),
        ("{% include '/etc/passwd' %}", "loader"),
        ("{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}", "recursion"),
    ],
)
def test_what_the_sandbox_refuses(text: str, said: str) -> None:
    """Nothing of Python is reached (transformers' sandbox); what is said of it is a sentence."""
    user = [{"role": "user", "content": "2+2?"}]
    request = {"template": text, "special": {}, "asked": [(user, True)]}
    with pytest.raises(tryrender.Unusable, match=said):
        tryrender._texts(tryrender.answer(request))


def test_a_model_without_a_template() -> None:
    bare = tokenizer()
    bare.chat_template = None
    with pytest.raises(UserError, match="no chat template"):
        template.prepare(bare, ChatConfig())
    assert template.prepare(bare, ChatConfig(template="builtin:r1")).end == bare.convert_tokens_to_ids("<|im_end|>")


def test_of_several_templates_the_default_is_taken() -> None:
    some = tokenizer({"default": BY_NAME["qwen2.5"].text, "tool_use": "{{ 1 }}"})
    assert template.prepare(some, ChatConfig()).template == BY_NAME["qwen2.5"].text == some.chat_template


@pytest.mark.parametrize(
    ("path", "content", "said"),
    [("x.jinja", b"\xff\xfe{{", "no text in UTF-8"), ("none.jinja", None, "there is no file"), ("", None, "no file")],
)
def test_a_template_file_that_is_none(path: str, content: bytes | None, said: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / path).write_bytes(content)
    with pytest.raises(UserError, match=said):
        template.prepare(tokenizer(), ChatConfig(template=str(tmp_path / path)))


def test_a_trial_leaves_the_process_alone() -> None:
    """The limits are the child's; what the template refuses is None beside what it takes."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS), resource.getrlimit(resource.RLIMIT_CPU)
    user = [{"role": "user", "content": "é 中"}]
    text = "{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}{{ messages[0].content }}"
    got = tryrender.render(text, {}, [(user, True), ([{"role": "system", "content": "s"}], True)])
    assert got == ["é 中", None]
    assert before == (resource.getrlimit(resource.RLIMIT_AS), resource.getrlimit(resource.RLIMIT_CPU))


def test_tags_that_the_tokenizer_drops() -> None:
    from tokenizers import AddedToken

    special = tokenizer()
    special.add_tokens([AddedToken("<think>", special=True), AddedToken("</think>", special=True)])
    with pytest.raises(UserError, match="drops <think> </think> when it decodes") as error:
        template.check(special, Tags())
    assert "chat.tags" in str(error.value)
    other = Tags(think_open="[thinking]", think_close="[/thinking]")
    assert template.check(special, other)


def test_tags_that_the_template_does_not_open() -> None:
    other = Tags(think_open="[thinking]", think_close="[/thinking]")
    text = BY_NAME["deepseek-r1-distill-kept"].text
    with pytest.raises(UserError, match="opens the thinking with <think>") as error:
        kept = tokenizer(text, "deepseek-r1-distill")
        kept.pad_token = "<|fim_pad|>"
        template.check(kept, other)
    assert "chat.tags" in str(error.value)


def test_a_template_that_asks_in_another_form_than_it_trains() -> None:
    text = CHATML + "{% if add_generation_prompt %}<|im_start|>bot\n{% endif %}"
    with pytest.raises(UserError, match="does not begin with the prompt that sampling writes"):
        template.check(tokenizer(text), Tags())


def test_marks_that_leave_the_end_of_a_turn_out() -> None:
    """SmolLM3's {% generation %} covers the content only: the end of the turn is learned all the same."""
    text = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}{% generation %}"
        "{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    some = tokenizer(text)
    template.check(some, Tags())
    from r1pipe.training.labels import encode

    (one,) = encode(some, [ROW["messages"]])
    assert some.decode([t for t in one.labels if t != -100]) == ROW["messages"][1]["content"] + "<|im_end|>"


def turns(*texts: str) -> dict[str, Any]:
    roles = ("user", "assistant") * len(texts)
    return {**ROW, "messages": [{"role": r, "content": t} for r, t in zip(roles, texts, strict=False)]}


def test_rows_that_the_template_refuses_are_counted(tmp_path: Path) -> None:
    """Gemma wants user and assistant to alternate."""
    odd = {**ROW, "messages": [ROW["messages"][0], *ROW["messages"]]}
    gemma, ctx = tokenizer(family="gemma"), tiny.context(tmp_path)
    config = TrainerStep(stage="sft", trainer={"max_length": 512})
    kept, examples = sft.tokenize([odd, ROW, odd], gemma, config, ctx)
    assert kept == [ROW] and len(examples) == 1 and ctx.counts == {"rows/refused_by_template": 2}
    assert "2 of 3 rows are left out" in ctx.warnings[0] and "must alternate" in ctx.warnings[0]
    answer_only = {**ROW, "messages": ROW["messages"][1:]}
    ctx = tiny.context(tmp_path)
    kept, _ = sft.tokenize([ROW, answer_only], tokenizer(), config, ctx)
    assert kept == [ROW] and ctx.counts == {"rows/refused_by_template": 1}
    with pytest.raises(UserError, match=r"must alternate.* \(and so all of 1 rows\)"):
        sft.tokenize([odd], gemma, config, ctx)
    asked = [{**ROW, "messages": m} for m in (ROW["messages"][:1], [ROW["messages"][0]] * 2)]
    (tmp_path / "config.json").write_text('{"max_position_embeddings": 300}')
    ctx = tiny.context(tmp_path)
    assert rows.fit_prompts(asked, gemma, ChatConfig(), tmp_path, 20, ctx) == asked[:1]
    assert ctx.counts == {"prompts/refused_by_template": 1}
    with pytest.raises(UserError, match="refuses a conversation of user, user"):
        Renderer(gemma, ChatConfig()).prompts([asked[1]["messages"]])


def test_a_conversation_that_the_template_refuses_costs_its_samples_only(tmp_path: Path) -> None:
    from r1pipe.generate.base import Ask
    from r1pipe.generate.transformers_engine import TransformersSampler
    from r1pipe.settings import SamplingConfig

    folder = families.folder(tmp_path / "m", BY_NAME["gemma"])
    asked, twice = ROW["messages"][:1], [ROW["messages"][0]] * 2
    sampler = TransformersSampler(folder, ChatConfig(), dtype="float32")
    groups = [[Ask("odd", twice, (1, 2)), Ask("good", asked, (1, 2))], [Ask("odd", twice, (1,))]]
    made = [(ask.key, s.finish) for found in sampler.stream(groups, SamplingConfig(max_tokens=4)) for ask, s in found]
    assert sorted(made)[2:] == [("odd", "skipped")] * 3
    assert all(key == "good" and finish != "skipped" for key, finish in sorted(made)[:2])
    with pytest.raises(UserError, match="System role not supported"):  # at once, not row by row
        TransformersSampler(folder, ChatConfig(system_prompt="Be brief."), dtype="float32")


def test_what_a_template_does_to_rows_is_counted(tmp_path: Path) -> None:
    """Qwen3 puts empty thinking into answers without any, drops thinking that holds a second </think>, and marks no
    turns; DeepSeek's prompt opens a thinking that an answer without one does not have."""
    plain, ctx = turns("hello", "hi there"), tiny.context(tmp_path)
    twice = turns("2+3?", "<think>\none </think> two\n</think>\n<answer>5</answer>")
    longer = turns("2+3?", ROW["messages"][1]["content"], "and 1 more?", "<think>\nsix\n</think>\n<answer>6</answer>")
    kept, examples = sft.tokenize([ROW, plain, twice, longer], tokenizer(family="qwen3"), step("model"), ctx)
    assert kept == [ROW, plain, longer] and len(examples) == 3
    assert ctx.counts == {"rows/reasoning_lost": 1, "rows/empty_thinking": 1, "turns/without_loss": 1}
    assert len(ctx.warnings) == 3
    ctx = tiny.context(tmp_path)
    sft.tokenize([ROW, plain], tokenizer(family="deepseek-r1-distill-kept"), step("model"), ctx)
    assert ctx.counts == {"rows/unlike_the_prompt": 1} and "1 of 2 rows" in ctx.warnings[0]


def test_a_token_across_the_border_is_cut_there() -> None:
    """Tokenized whole, "]<" is one token; a sampler's prompt ends with "]". Then training has it so too."""
    from r1pipe.training.labels import encode

    mistral = tokenizer(family="mistral-v0.1")
    text = "[INST] q [/INST]<think>x"
    prompt = mistral("<s>[INST] q [/INST]", add_special_tokens=False)["input_ids"]
    whole = mistral(f"<s>{text}", add_special_tokens=False)["input_ids"]
    assert whole[: len(prompt)] != prompt  # else this tests nothing
    (one,) = encode(mistral, [[{"role": "user", "content": "q"}, {"role": "assistant", "content": "<think>x"}]])
    assert one.agrees and one.input_ids[: len(prompt)] == prompt
    assert mistral.decode([t for t in one.labels if t != -100]) == "<think>x</s>"
