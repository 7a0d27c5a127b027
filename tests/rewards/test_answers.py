"""Answers that are no mathematics: choices, texts, lists of numbers, JSON."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r1pipe.rewards import answers
from r1pipe.rewards.answers import choice, exact, json_value, number_list, strict_json
from r1pipe.rewards.verdict import Context
from tests.rewards import cases
from tests.rewards.cases import wrap

CAPITALS = ["London", "Paris", "Rome", "Both A and C"]
MODULES = (choice, exact, json_value, number_list)


def chosen(answer: str, gold: str = "B", choices: object = None) -> float | None:
    return choice.verify(wrap(answer), {"gold": gold, "choices": choices}).score


def test_shared_choice_cases():
    for case in cases.load("accuracy"):
        if case["id"].startswith("acc-mc-"):
            row = {"gold": case["input"]["gold"]}
            assert choice.verify(case["input"]["completion"], row).score == case["expect"], case["id"]


def test_shared_text_cases():
    for case in cases.load("accuracy"):
        if case["id"].startswith("acc-text-"):
            row = {"gold": case["input"]["gold"]}
            assert exact.verify(case["input"]["completion"], row).score == case["expect"], case["id"]


@pytest.mark.parametrize(
    "answer",
    [
        "B",
        "b",
        "(B)",
        "[B]",
        "B.",
        "B)",
        "（Ｂ）",
        "**B**",
        "**B.** Paris",
        "`B`",
        "$B$",
        r"\boxed{B}",
        r"\boxed{\textbf{(B)}\ 17}",
        r"\text{B}",
        "Option B",
        "option (b)",
        "Answer: B",
        "answer: **B**",
        "The answer is B.",
        "The correct answer is (B) Paris.",
        "The answer is option B",
        "The answer is B, since A is in England.",
        "The answer is B because A and C are wrong.",
        "The answer is B. Note that A is a common distractor.",
        "The answer is B. Option (A) is wrong.",
        "B is correct",
        "B is the right answer.",
        "B: a city",
        "B — a city",
        "B, a polynomial in x",
        "(B) a city",
        "I choose B.",
        "答案是B",
        "答案：B。",
        "故选B",
        "选项B正确",
        "Paris is in France.\n\nB",
        "A quick look shows it.\nThe answer is B.",
        r"We get \boxed{\langle H \rangle}. So the answer is B",
        "First I thought the answer is A. On reflection the answer is B.",
    ],
)
def test_choice_right(answer):
    assert chosen(answer) == 1.0


@pytest.mark.parametrize(
    "answer",
    [
        "A",
        "A or B or C",
        "A or B",
        "B or C",
        "A, B",
        "B, C",
        "B/C",
        "B & C",
        "B C",
        "BC",
        "B\nC",
        "A\nB",
        "(A)(B)(C)",
        "(B) or (C)",
        "B and C",
        "B: 17, or C",
        "B, maybe C",
        "B or possibly C",
        "B (or maybe C)",
        "Either B or C",
        "(B) 17 (C) 18",
        "The answer is A or B",
        "The answer is B or C.",
        r"\boxed{A} or \boxed{B}",
        r"\boxed{B, C}",
        r"\boxed{B",
        "A. London\nB. Paris\nC. Rome",
        "The answer is not B.",
        "B is wrong",
        "B is not the answer",
        "Because every option fails, none.",
        "Be careful",
        "None of the above",
        "B12 vitamin",
        "",
        "I don't know",
        "答案是A或B",
    ],
)
def test_choice_wrong(answer):
    assert chosen(answer) == 0.0


def test_choice_article_is_no_letter():
    for text in ("A good way is to add.", "I computed the integral.", "The answer is a polynomial."):
        assert choice.verify(wrap(text), {"gold": "A"}).status == "unverifiable"
        assert chosen(text, "I") == 0.0
    assert chosen("A", "A") == chosen("a.", "A") == 1.0


def test_choice_texts():
    for right in (
        "Paris",
        "paris.",
        "B Paris",
        "B: Paris",
        "(B) Paris",
        "B (Paris)",
        "The answer is Paris.",
        r"\boxed{\text{Paris}}",
    ):
        assert chosen(right, "B", CAPITALS) == chosen(right, "Paris", CAPITALS) == 1.0, right
    for wrong in (
        "Rome",
        "B: Rome",
        "B Rome",
        "(B) Rome",
        "A: Paris",
        "Par",
        "Paris or Rome",
        "Paris and London",
        "E",
    ):
        assert chosen(wrong, "B", CAPITALS) == 0.0, wrong
    assert chosen("D: Both A and C", "D", CAPITALS) == chosen("Both A and C", "D", CAPITALS) == 1.0


def test_choice_shapes_of_choices():
    arc = {"label": ["1", "2"], "text": ["ice", "steam"]}
    assert chosen("2", "2", arc) == chosen("steam", "2", arc) == chosen("(2) steam", "steam", arc) == 1.0
    assert chosen("1", "2", arc) == chosen("B", "2", arc) == 0.0
    assert chosen("B", "B", {"A": "ice", "B": "steam", "C": None}) == 1.0
    for bad in ([], "AB", {"label": ["A"], "text": ["x", "y"]}, ["x"] * 27, {"AA": "x"}, 3):
        assert choice.verify(wrap("A"), {"gold": "A", "choices": bad}).status == "error"
    assert chosen("Q", "Q", ["x"] * 26) == 1.0


def test_choice_gold_is_read_strictly():
    for gold in (None, "", "K", "2", 1, True, "A or B", "Berlin"):
        verdict = choice.verify(wrap("A"), {"gold": gold, "choices": CAPITALS})
        assert (verdict.score, verdict.status) == (None, "error"), gold
    for gold in ("B", "(B)", "b.", r"\boxed{B}", "B. Paris", "Paris"):
        assert chosen("B", gold, CAPITALS) == 1.0, gold


@pytest.mark.parametrize(
    ("gold", "answer", "options", "expect"),
    [
        ("Paris", "paris", {}, 1),
        ("Paris", "Paris.", {}, 1),
        ("Paris", r"\boxed{\text{Paris}}", {}, 1),
        ("Paris", "**Paris**", {}, 1),
        ("Paris", "The answer is Paris.", {}, 1),
        ("New York", "new\n  york", {}, 1),
        ("caf\u00e9", "cafe\u0301", {}, 1),
        ("it's", "it’s", {}, 1),
        ("(a, b)", "a b", {}, 1),
        ("Paris", "paris", {"case": True}, 0),
        ("Paris", "Paris.", {"punctuation": True}, 0),
        ("a, b", "a b", {"punctuation": True}, 0),
        ("3.5", "35", {}, 0),
        ("5", "-5", {}, 0),
        ("5", ".5", {}, 0),
        ("5", "5!", {}, 0),
        ("5", "5%", {}, 0),
        ("C", "C++", {}, 0),
        ("2**3", "23", {}, 0),
        ("x²", "x2", {}, 0),
        ("apple", "a", {}, 0),
        ("a", "apple", {}, 0),
        ("dog", "", {}, 0),
        ("dog", "...", {}, 0),
        ("Paris", "Paris or London", {}, 0),
        ("Paris", "The answer is not Paris.", {}, 0),
        ("Paris", r"\boxed{Paris} or \boxed{London}", {}, 0),
        ("Paris", r"\boxed{Paris", {}, 0),
        ("?", "?", {}, 1),
        ("?", "!", {}, 0),
    ],
)
def test_exact(gold, answer, options, expect):
    assert exact.verify(wrap(answer), {"gold": gold}, **options).score == expect


@pytest.mark.parametrize(
    ("gold", "answer", "ordered", "expect"),
    [
        ("1, 2, 3", "1, 2, 3", True, 1),
        ("1, 2, 3", "[1,2,3]", True, 1),
        ([1, 2, 3], "1 2 3", True, 1),
        ([1, 2, 3], "1; 2; 3", True, 1),
        ([1, 2, 3], "1\n2\n3", True, 1),
        ([1, 2, 3], "- 1\n- 2\n- 3", True, 1),
        ([7, 8], "1. 7\n2. 8", True, 1),
        ([-1, 2], "-1\n2", True, 1),
        ("19, 46, \\text{ and } 82", "19, 46, and 82", True, 1),
        ([1, 2], r"\boxed{1, 2}", True, 1),
        ([1, 2], r"\boxed{1} and \boxed{2}", True, 1),
        ([1, 2], r"$\{1, 2\}$", True, 1),
        ([1, 2], r"\left(1,\ 2\right)", True, 1),
        ([1, 2], "$1$, $2$", True, 1),
        ("x = 2 or x = -3", "x = 2, x = -3", True, 1),
        ([2, -3], "The roots are 2 and −3.", True, 1),
        ([2, -3], "The answer is 2 and -3.", True, 1),
        (["1/2", "0.25"], r"\frac12, 1/4", True, 1),
        (["2 2/3"], "8/3", True, 1),
        ([1000, 2000], "1,000, 2,000", True, 1),
        ([1000, 2], "1{,}000, 2", True, 1),
        ([100, 200], "100,200", True, 1),
        ([100200], "100,200", True, 1),
        (["$5", "$10"], r"\$5, \$10", True, 1),
        ([5, 10], "5 km; 10 km", True, 1),
        ([1, 2, 3], "3, 2, 1", True, 0),
        ([1, 2, 3], "3, 2, 1", False, 1),
        ([1, 1, 2], "1, 2, 2", False, 0),
        ([1, 1, 2], "1, 2", False, 0),
        ([1, 2], "1, 2, 3", False, 0),
        ([1, 2], "1", False, 0),
        ([1, 2], "12", False, 0),
        ([1, 2], "1.0000001, 2", False, 0),
        ([1, 2], r"\boxed{1}", True, 0),
        ([3], r"\boxed{1, 2, 3, 4}", True, 0),
        ([1, 2], "The roots are not 1 and 2", True, 0),
        ([1, 2], "one, maybe", True, 0),
        ([1, 2], "1, 2, ...", True, 0),
        ([1, 2], "", True, 0),
        ([1, 2], "1, 2 or 3", True, 0),
    ],
)
def test_number_list(gold, answer, ordered, expect):
    assert number_list.verify(wrap(answer), {"gold": gold}, ordered=ordered).score == expect


@pytest.mark.parametrize(
    ("gold", "answer", "expect"),
    [
        ('{"a": 1, "b": [true, null]}', '{"b": [true, null], "a": 1.0}', 1),
        ({"a": 1}, '```json\n{"a": 1}\n```', 1),
        ({"a": 1}, 'Here it is:\n```\n{"a": 1}\n```\nDone.', 1),
        ({"a": 1}, '```json {"a": 1} ```', 1),
        ({"a": 1}, '```json\n{"a": 1}', 1),
        ({"a": 1}, '```\n{"a": 2}\n```\nNo:\n```\n{"a": 1}\n```', 1),
        ({"a": 1}, '```\n{"a": 1}\n```\nNo:\n```\n{"a": 2}\n```', 0),
        ("[1, 2]", "[1, 2]", 1),
        ("[1, 2]", "[2, 1]", 0),
        ("0.1", "0.1", 1),
        ("0.1", "0.10", 1),
        ("0.1", "0.1000000000000000055511151231257827", 0),
        ("12345678901234567890", "12345678901234567891", 0),
        ("100", "1e2", 1),
        ("1", "true", 0),
        ("true", "1", 0),
        ('"1"', "1", 0),
        ("null", "null", 1),
        ("{}", "[]", 0),
        ('{"a": 1}', '{"a": 1, "b": 2}', 0),
        ('{"a": 1}', '{"a": 2, "a": 1}', 0),
        ('{"a": 1}', "{'a': 1}", 0),
        ('{"a": 1}', '{"a": 1,}', 0),
        ('{"a": 1}', 'The answer is {"a": 1}', 0),
        ("1", "NaN", 0),
        ("1", "1e99999999999999999999999", 0),
        ("1", "", 0),
        ('"é"', '"\\u00e9"', 1),
    ],
)
def test_json(gold, answer, expect):
    assert json_value.verify(wrap(answer), {"gold": gold}).score == expect


def test_json_gold():
    for gold in (None, "hello", "NaN", '{"a": 1, "a": 2}', {1, 2}, float("nan"), "[" * 99 + "]" * 99):
        verdict = json_value.verify(wrap("1"), {"gold": gold})
        assert (verdict.score, verdict.status) == (None, "error"), gold


texts = st.text().filter(lambda text: "answer>" not in text and "think>" not in text)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts, lambda c: st.lists(c) | st.dictionaries(texts, c), max_leaves=20
)


@given(values)
def test_json_round_trip(value):
    text = json.dumps(value)
    assert strict_json.same(strict_json.parse(text), strict_json.parse(json.dumps(value, indent=1, sort_keys=True)))
    assert not strict_json.same(strict_json.parse(text), strict_json.parse(f"[{text}]"))
    row = {"gold": text}
    assert json_value.verify(wrap(json_value.right_answer(row)), row).score == 1.0
    assert json_value.verify(wrap(json_value.wrong_answer(row)), row).score == 0.0


@given(st.text(alphabet='AB[](){}"\\,.:;/!\n`~$*-1 orandisthew', max_size=80))
@settings(max_examples=200)
def test_never_raises(text):
    for module, gold in zip(MODULES, ("B", "Paris", "1", "1"), strict=True):
        assert module.verify(wrap(text), {"gold": gold}).score in (0.0, 1.0)


@given(st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=20), st.randoms())
def test_number_list_properties(items, random):
    row = {"gold": items}
    shuffled = random.sample(items, len(items))
    text = ", ".join(map(str, shuffled))
    assert number_list.verify(wrap(text), row, ordered=False).score == 1.0
    assert number_list.verify(wrap(text), row).score == (shuffled == items)
    assert number_list.verify(wrap(number_list.right_answer(row)), row).score == 1.0
    assert number_list.verify(wrap(number_list.wrong_answer(row)), row, ordered=False).score == 0.0


@pytest.mark.parametrize(
    ("module", "rows"),
    [
        (choice, [{"gold": "B"}, {"gold": "Paris", "choices": CAPITALS}]),
        (exact, [{"gold": "Paris"}, {"gold": "."}, {"gold": 5}]),
        (number_list, [{"gold": "1, 2"}, {"gold": [0.5, "1/3"]}]),
        (json_value, [{"gold": "[1]"}, {"gold": {"a": [1.5]}}]),
    ],
)
def test_right_and_wrong_answers(module, rows):
    for row in rows:
        assert module.check_gold(row) is None
        assert module.verify(wrap(module.right_answer(row)), row).score == 1.0
        assert module.verify(wrap(module.wrong_answer(row)), row).score == 0.0
    for row in ({}, {"gold": None}, {"gold": ""}):
        assert module.check_gold(row)
        assert module.verify(wrap("1"), row).score is None
        assert module.right_answer(row) is None and module.wrong_answer(row) is None


def test_thinking_is_not_graded():
    for module, gold in zip(MODULES, ("B", "B", '"B"', "1"), strict=True):
        right, row = module.right_answer({"gold": gold}), {"gold": gold}
        assert module.verify(f"<think>{right}</think> no", row).score == 0.0
        assert module.verify(f"<think>{right}", row).status == "unverifiable"
        assert module.verify(right, row, require_think=False).score == 1.0
        assert module.verify(f"hm</think><answer>{right}</answer>", row, prefilled=True).score == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "the answer is B or " * 1_200,
        " " * 24_000 + "B",
        "\n \n" * 8_000 + "x",
        "1, " * 8_000,
        ", " * 12_000 + "1",
        "." * 24_000 + "x",
        "\\text{" * 4_000,
        "**a" * 8_000,
        "$" * 24_000,
        "$a" * 12_000,
        '"\\' * 12_000,
        "```a\n" * 5_000,
        "[" * 24_000,
        "{" * 24_000 + '"',
        "(A)" * 8_000,
        "1" * 24_000,
        "1/" * 12_000,
        "B. " * 8_000,
    ],
)
def test_hostile_ends_quickly(text):
    start = time.monotonic()
    for module, gold in zip(MODULES, ("B", "Paris", "1", "1"), strict=True):
        assert module.verify(wrap(text), {"gold": gold}).score in (0.0, 1.0)
    assert time.monotonic() - start < 3


def test_registry_names():
    for name in ("Choice", "Exact", "NumberList", "Json"):
        verifier = getattr(answers, name)(getattr(answers, f"{name}Options")(require_think=False), Context())
        found = verifier(["nothing", "nothing"], [{"gold": "B"}, {}])
        assert len(found) == 2 and found[1].status == "error"
