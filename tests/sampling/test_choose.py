"""Duplicates, the cap, decisions of a person, the mix, trivial queries, cards."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from r1pipe.chat import ChatConfig, Tags
from r1pipe.errors import UserError
from r1pipe.sampling import card, choose
from r1pipe.sampling.prompts import TRIVIAL, Prompt, Regenerate, distinct, is_trivial
from r1pipe.sampling.reviews import Decision

ROW = {"id": "0" * 16, "messages": [{"role": "user", "content": "1 + 1 = ?"}], "kind": "number", "source": "s"}


def prompt(**more: Any) -> Prompt:
    return Prompt(ROW, "k", ROW["messages"], 4, 2, **more)


def samples(*texts: str, reason: str | None = None) -> list[dict[str, Any]]:
    return [
        {"text": t, "index": i, "tokens": 5, "finish": "stop", "reason": reason, "right": reason is None}
        for i, t in enumerate(texts)
    ]


def reasons(settled: list[dict[str, Any]]) -> list[str | None]:
    return [s["reason"] for s in settled]


def test_distinct_and_capped() -> None:
    found = choose.settle(prompt(), samples("a", "a \n", "b", "c"), {}, Tags())
    assert reasons(found) == [None, "duplicate", None, "over_cap"]
    assert found[0]["row"]["messages"][-1] == {"role": "assistant", "content": "a"}
    assert found[0]["row"]["source"] == "sampled:s" and found[0]["row"]["id"] == found[0]["id"]
    assert "row" not in found[1]


def test_a_person_has_the_last_word() -> None:
    ids = [s["id"] for s in choose.settle(prompt(), samples("a", "b", "c", "d"), {}, Tags())]
    reviews = {
        ids[0]: Decision(ids[0], "reject"),
        ids[1]: Decision(ids[1], "edit", "b, better"),
        ids[3]: Decision(ids[3], "accept"),
    }
    found = choose.settle(prompt(), samples("a", "b", "c", "d"), reviews, Tags())
    assert reasons(found) == ["rejected", None, None, None]
    assert [s["row"]["messages"][-1]["content"] for s in found[1:]] == ["b, better", "c", "d"]
    assert found[1]["text"] == "b" and found[1]["edited"] == "b, better"
    wrong = choose.settle(prompt(), samples("a", reason="accuracy"), {ids[0]: Decision(ids[0], "accept")}, Tags())
    assert reasons(wrong) == [None] and wrong[0]["review"] == "accept"


def test_an_answer_without_its_cot() -> None:
    text = Tags().wrap("They greet me.", "Hello!")
    found = choose.settle(prompt(plain=True), samples(text), {}, Tags())
    assert found[0]["row"]["messages"][-1]["content"] == "<answer>Hello!</answer>"
    assert found[0]["text"] == text


def test_pass_rates() -> None:
    there = samples("a", "b", reason="accuracy")
    assert choose.pass_rate(there) == 0.0
    assert choose.pass_rate([*there, *samples("c", "d")]) == 0.5
    assert choose.pass_rate([*samples("c"), {"finish": "skipped", "reason": "skipped"}]) == 1.0
    assert choose.pass_rate([{"finish": "skipped", "reason": "skipped"}]) is None
    unsaid = [s | {"right": None} for s in [*samples("a"), *samples("b", reason="format")]]
    assert choose.pass_rate(unsaid) == 0.5


def test_identical_samples() -> None:
    assert choose.identical(samples("a", "a"))
    assert not choose.identical(samples("a")) and not choose.identical(samples("a", "b"))


def rows(number: int, general: int) -> list[tuple[str, str]]:
    return [(f"n{i}", "number") for i in range(number)] + [(f"g{i}", "general") for i in range(general)]


@pytest.mark.parametrize(
    ("mix", "left"),
    [
        ({"number": 0.7, "general": 0.3}, {"number": 70, "general": 30}),
        ({"number": 0.5, "general": 0.5}, {"number": 40, "general": 40}),
        ({"number": 1.0}, {"number": 70}),
        ({"number": 20, "general": 5}, {"number": 20, "general": 5}),
        ({"number": 700, "general": 5}, {"number": 70, "general": 5}),
    ],
)
def test_the_mix(mix: dict[str, float], left: dict[str, int]) -> None:
    given = rows(70, 40)
    out, said = choose.over_mix(given, mix, seed=1)
    assert Counter(kind for name, kind in given if name not in out) == left
    assert bool(said) == (sum(left.values()) < 110 and mix != {"number": 20, "general": 5})
    assert choose.over_mix(given[::-1], mix, seed=1)[0] == out, "whatever the order"
    if len(left) > 1 and "general" in mix and left["general"] < 40:
        assert choose.over_mix(given, mix, seed=2)[0] != out


def test_a_mix_without_its_rows() -> None:
    with pytest.raises(UserError, match="no row of kind code"):
        choose.over_mix(rows(3, 3), {"number": 0.5, "code": 0.5}, seed=1)


@pytest.mark.parametrize("mix", [{"a": 0.7, "b": 0.7}, {"a": -1}, {"a": 0}, {"a": 1.5}])
def test_mixes_that_are_none(mix: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="mix"):
        choose.check_mix(mix)


@pytest.mark.parametrize(
    ("asked", "trivial"),
    [
        ("hello", True), ("Hello!", True), ("Hi there :)", True), ("Thank you so much!!", True), ("你好！", True),
        ("谢谢你", True), ("Who are you?", True), ("नमस्ते", True), ("สวัสดี", True), ("Guten Tag", True),
        ("hello world in C", False), ("Hi, what is 2+2?", False), ("Explain gravity", False), ("", False),
        ("Who are you quoting here?", False), ("你好，二加二是多少？", False),
    ],
)  # fmt: skip
def test_trivial_queries(asked: str, trivial: bool) -> None:
    assert is_trivial([{"role": "user", "content": asked}], [re.compile(p) for p in TRIVIAL]) is trivial


def test_a_greeting_late_in_a_conversation_is_not_trivial() -> None:
    turns = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]
    found = distinct([{"messages": [*turns, {"role": "user", "content": "thanks"}]}], ChatConfig(), 1, 1, TRIVIAL)
    assert not found[0].plain


def test_a_pattern_that_is_none() -> None:
    with pytest.raises(ValueError, match="is no pattern"):
        Regenerate(data=[{"source": "x"}], trivial=["("])  # type: ignore[list-item]


def test_a_card_shows_hostile_text_as_text() -> None:
    facts = card.Facts(sampled=2, kept=1)
    asked = {"messages": [{"role": "user", "content": "<img src=x> | `1`\n# 2"}], "kind": "number", "gold": "1|2"}
    facts.rates = [(asked, 0.0, 0), (asked, 1.0, 1)]
    facts.tokens = {"number": [5]}
    facts.examples = [{"messages": [{"role": "assistant", "content": "````\n# not a title\n````"}]}]
    made = card.write("Samples", facts, {"sampled": 1}, {"seed": 1})
    assert "\n`````\n````\n# not a title\n````\n`````\n" in made
    assert "- \\<img src=x\\> \\| \\`1\\` # 2 (gold 1\\|2)" in made
    assert "| all | 2 | 50.0% | 1 |" in made and "| 0 | 1 |" in made and "| 1 | 1 |" in made
