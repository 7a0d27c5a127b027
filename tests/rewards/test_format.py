"""Format reward: the shared cases, and other inputs of the same kinds."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r1pipe.chat import Tags, prefilled_think
from r1pipe.resources import data_dir
from r1pipe.rewards import format
from r1pipe.rewards.verdict import Context
from tests.rewards import cases

THINK, ANSWER = "<think>\nSix sevens.\n</think>", "<answer>\n42\n</answer>"
RIGHT = f"{THINK}\n{ANSWER}"


def test_cases():
    for case in cases.load("format"):
        text, prefilled = case["input"]["completion"], case["input"]["prefilled_think"]
        assert format.verify(text, prefilled=prefilled).score == case["expect"], case["id"]


@pytest.mark.parametrize(
    "text",
    [
        RIGHT,
        RIGHT.replace("\n", "\r\n"),
        RIGHT.replace("\n", ""),
        RIGHT.replace("\n", "\t"),
        RIGHT.replace("\n", "\r"),
        RIGHT.replace("\n", " \n\t\n "),
        f"\u3000{THINK}\u2028\xa0{ANSWER}\x85",
        f"{THINK}{ANSWER}".replace("42", "\\boxed{42} < 43 & a<b>c"),
        RIGHT.replace("Six", "Six <step> and <code>x</code> &lt;think&gt; < think > </ answer>"),
        RIGHT.replace("Six sevens.", "。"),
        RIGHT.replace("Six sevens.", "```python\nprint(42)\n```"),
        RIGHT.replace("42", "0"),
        RIGHT.replace("Six sevens.", "😀"),
    ],
)
def test_right(text):
    assert format.verify(text).score == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "42",
        THINK,
        ANSWER,
        f"{ANSWER}\n{THINK}",
        f"{THINK}\n{RIGHT}",
        f"{RIGHT}\n{ANSWER}",
        f"{RIGHT}\n{RIGHT}",
        f"ok {RIGHT}",
        f"{THINK} so {ANSWER}",
        f"{RIGHT} done",
        f"```\n{RIGHT}\n```",
        f"<b>{RIGHT}</b>",
        f'"{RIGHT}"',
        f"{THINK}\u200b{ANSWER}",
        f"\ufeff{RIGHT}",
        f"{RIGHT}\u200d",
        f"<think>{THINK}</think>{ANSWER}",
        f"<think>a{ANSWER}</think>",
        f"{THINK}<answer>{THINK}</answer>",
        f"{THINK}<answer><answer>42</answer></answer>",
        f"<think>a<answer>b</think>{ANSWER}",
        f"<think>a</answer>b</think>{ANSWER}",
        f"<think>I close with </think> now.</think>{ANSWER}",
        f"<think>`</think>` closes</think>{ANSWER}",
        f"<think>```\n<answer>1</answer>\n```</think>{ANSWER}",
        RIGHT.replace("think", "THINK"),
        RIGHT.replace("</think>", "</Think>"),
        RIGHT.replace("answer", "Answer"),
        RIGHT.replace("<think>", "<think >"),
        RIGHT.replace("</answer>", "</answer >"),
        RIGHT.replace("</answer>", "< /answer>"),
        RIGHT.replace("<answer>", "<answer type='number'>"),
        RIGHT.replace("<think>", "<think/>"),
        RIGHT.replace("<think>", "<thi\u200bnk>"),
        RIGHT.replace("<think>", "<thіnk>"),  # a Cyrillic і
        RIGHT.replace("<", "&lt;"),
        RIGHT.replace("<", "\uff1c").replace(">", "\uff1e"),
        RIGHT.replace("<think>", "[think]"),
        RIGHT.replace("think", "thinking"),
        RIGHT.replace("answer", "final_answer"),
        RIGHT.replace("</think>\n", ""),
        RIGHT.replace("<answer>", ""),
        RIGHT.replace("</answer>", ""),
        RIGHT[:-1],
        RIGHT[1:],
        RIGHT.replace("<think>", ""),
        *(RIGHT.replace("Six sevens.", x) for x in ("", " \t", "\u200b", "\u3164", "\u2800", "\u00ad\u0301", "\x00")),
        *(RIGHT.replace("42", x) for x in ("", "\n\n", "\u2060", "\ufe0f", "\u115f")),
    ],
)
def test_wrong(text):
    assert format.verify(text).score == 0.0


@pytest.mark.parametrize(
    ("text", "expect"),
    [
        (RIGHT.removeprefix("<think>"), 1.0),
        (RIGHT.removeprefix("<think>\n"), 1.0),
        (RIGHT.removeprefix("<think>").replace("\n", "\r\n"), 1.0),
        (RIGHT, 0.0),  # the tag is echoed
        (f"<think>\n{RIGHT.removeprefix('<think>')}", 0.0),
        (f"</think>{ANSWER}", 0.0),
        (f"\n\n</think>\n{ANSWER}", 0.0),
        (ANSWER, 0.0),
        ("Six sevens are 42.", 0.0),
        ("I write </think> <answer>42</answer>", 1.0),  # that is the form, whatever it says
        ("I will write </think> and <answer>42</answer> then", 0.0),
        ("", 0.0),
        ("Six sevens.\n</think>\n42", 0.0),
        ("<think>a</think>b</think>" + ANSWER, 0.0),
    ],
)
def test_prefilled(text, expect):
    assert format.verify(text, prefilled=True).score == expect


@pytest.mark.parametrize(
    ("ending", "expect"),
    [
        ("", False),
        ("<think>", True),
        ("<think>\n", True),
        ("<think>\n\n", True),
        ("<think> ", True),
        ("<think>\n\n</think>\n\n", False),  # thinking switched off
        ("<think>\nOkay, ", False),
        ("<Think>\n", False),
    ],
)
def test_prefill_of_a_template(ending, expect):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(data_dir() / "tiny-base")
    turns = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    tokenizer.chat_template = turns + "{% if add_generation_prompt %}<|im_start|>assistant\n" + ending + "{% endif %}"
    assert prefilled_think(tokenizer, Tags()) is expect
    tokenizer.chat_template = turns + "<|im_start|>assistant\n" + ending  # whether it is asked for or not
    assert prefilled_think(tokenizer, Tags()) is expect
    assert not prefilled_think(tokenizer, Tags(think_open="<reasoning>", think_close="</reasoning>"))


def test_prefill_of_published_templates():
    import trl
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(data_dir() / "tiny-base")
    found = {}
    for name in ("deepseek_r1_distill", "qwen3", "qwen3_5_think", "qwen3_5_nothink", "qwen2_5"):
        path = Path(str(trl.__file__)).parent / "chat_templates" / f"{name}.jinja"
        if path.is_file():
            tokenizer.chat_template = path.read_text(encoding="utf-8")
            found[name] = prefilled_think(tokenizer, Tags())
    assert found["deepseek_r1_distill"] is True
    assert not any(found.get(name) for name in ("qwen3", "qwen3_5_nothink", "qwen2_5"))


def test_other_tags():
    tags = Tags(think_open="[THINK]", think_close="[/THINK]", answer_open="<<", answer_close=">>")
    assert format.verify("[THINK]a[/THINK] <<b>>", tags=tags).score == 1.0
    assert format.verify("a[/THINK] <<b>>", tags=tags, prefilled=True).score == 1.0
    assert format.verify("[THINK]a[/THINK] <<b>> <<c>>", tags=tags).score == 0.0
    assert format.verify(RIGHT, tags=tags).score == 0.0
    chinese = Tags(think_open="【思考】", think_close="【思考完】", answer_open="【答】", answer_close="【完】")
    assert format.verify(chinese.wrap("先算", "42"), tags=chinese).score == 1.0


def test_soft_is_full_only_where_strict_is():
    assert format.score(RIGHT, soft=True) == 1.0
    assert format.score(f"{THINK}\nso\n{ANSWER}", soft=True) == pytest.approx(2 / 3)
    assert format.score(f"{THINK} 42", soft=True) == pytest.approx(1 / 3)
    assert format.score(f"ok {RIGHT}", soft=True) == pytest.approx(1 / 3)
    assert format.score("<think></think><answer></answer>", soft=True) == 0.0
    assert format.verify("Six.</think> 42", prefilled=True, soft=True).score == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    "text",
    ["<think>" * 300_000, "<answer>" * 300_000, "</think><answer>" * 200_000, " " * 2_000_000, "\u200b" * 1_000_000,
     RIGHT.replace("Six", "Six " * 500_000), f"<think>{' ' * 1_000_000}</think>{ANSWER}", "<" * 1_000_000],
)  # fmt: skip
def test_long_input_ends_soon(text):
    start = time.monotonic()
    format.verify(text)
    format.verify(text, soft=True)
    assert time.monotonic() - start < 5


def test_batch_is_in_order():
    texts = [RIGHT, "", RIGHT + "x", RIGHT]
    reward = format.Format(format.Options(), Context())
    assert [v.score for v in reward(texts, [{}] * 4)] == [1.0, 0.0, 0.0, 1.0]


@given(st.text(min_size=1), st.text(min_size=1))
def test_wrapped_text_is_right(reasoning, answer):
    tags = Tags()
    whole = tags.wrap("so " + reasoning.replace("<", ""), "x" + answer.replace("<", ""))
    assert format.score(whole) == format.score(whole, soft=True) == 1.0
    assert format.score(whole + "x") == format.score("x" + whole) == format.score(whole + whole) == 0.0


@given(st.lists(st.sampled_from([*Tags().model_dump().values(), "a", " ", "\n", "<", "\u200b"]), max_size=9))
def test_soft_agrees_with_strict(pieces):
    text = "".join(pieces)
    assert (format.score(text, soft=True) == 1.0) == (format.score(text) == 1.0)
    parts = [text.count(x) for x in Tags().model_dump().values()]
    assert format.score(text) == 0.0 or parts == [1, 1, 1, 1]
