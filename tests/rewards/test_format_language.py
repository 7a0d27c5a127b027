"""Format and language rewards: the shared cases, and other inputs of the same kinds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r1pipe.chat import Tags
from r1pipe.rewards import format, language
from tests.rewards import cases

LATER = {"lang-es-as-en"}  # languages of one script need a detector


def test_format_cases():
    for case in cases.load("format"):
        text, prefilled = case["input"]["completion"], case["input"]["prefilled_think"]
        assert format.verify(text, prefilled=prefilled).score == case["expect"], case["id"]


def test_soft_format_is_full_only_where_strict_is():
    assert format.score("<think>a</think>\n<answer>b</answer>", soft=True) == 1.0
    assert format.score("<think>a</think>\nso\n<answer>b</answer>", soft=True) == pytest.approx(2 / 3)
    assert format.score("<think>a</think> 42", soft=True) == pytest.approx(1 / 3)
    assert format.score("<think></think><answer></answer>", soft=True) == 0.0
    assert format.score("<think>\u200b</think><answer>1</answer>") == 0.0


@given(st.text(min_size=1), st.text(min_size=1))
def test_wrapped_text_is_right(reasoning, answer):
    tags = Tags()
    assert format.score(tags.wrap("so " + reasoning.replace("<", ""), "x" + answer.replace("<", ""))) == 1.0
    assert format.score(tags.wrap("so", "x") + "x" + answer) == 0.0


def test_language_cases():
    wrong = []
    for case in cases.load("language"):
        low, high = case["expect"]
        verdict = language.verify(case["input"]["text"], {"language": case["input"]["target"]})
        if verdict.score is None or not low <= verdict.score <= high:
            wrong.append(case["id"])
    assert set(wrong) == LATER


@pytest.mark.parametrize(
    ("text", "target", "low", "high"),
    [
        ("First, 23 plus 15 makes 38.", "en", 1, 1),
        ("先算23加15，得到38。", "zh", 1, 1),
        ("先算23加15，得到38。", "en", 0, 0),
        ("First, 23 plus 15 makes 38. 然后减去12，得到26。", "en", 0.3, 0.6),
        ("So $x = \\text{the long hidden text of words}$ is it", "zh", 0, 0),
        ("计算 $x = \\text{the long hidden text of words}$", "zh", 0.1, 0.4),
        ("We add $x = 五加六等于十一$ now", "en", 0.3, 0.7),
        ("```\n全部都是中文的思考过程在这里\n``` ok then", "en", 0, 0.4),
        ("三角形 ABC 的 sin 值", "zh", 1, 1),
        ("これは問題です。答えは三です。", "zh", 0, 0.05),
        ("Сначала найдём", "uk", 1, 1),
    ],
)
def test_language_shares(text, target, low, high):
    assert low <= language.share(text, target) <= high


def test_language_is_of_the_thinking_only():
    text = Tags().wrap("先算一下", "The answer is twelve")
    assert language.verify(text, {"language": "zh"}).score == 1.0
    assert (
        language.verify("先算一下</think><answer>twelve words</answer>", {"language": "zh"}, prefilled=True).score
        == 1.0
    )


def test_language_without_words_or_target():
    for text in ("", "<think></think>", "<think>12 + 30 = 42</think>"):
        verdict = language.verify(text, {"language": "en"})
        assert (verdict.score, verdict.status) == (0.0, "unverifiable")
    assert language.verify("words here", {"language": "tlh"}).status == "error"
    assert language.verify("words here", {"language": None}).score is None


@given(st.text())
def test_language_is_finite(text):
    for target in ("en", "zh", "ja", "th"):
        value = language.share(text, target)
        assert value is None or 0 <= value <= 1
