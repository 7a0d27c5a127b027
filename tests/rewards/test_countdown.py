"""Countdown and 24: the known failures, and other inputs of the same kinds."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r1pipe.rewards import countdown
from r1pipe.rewards.countdown import expression, solver
from tests.rewards.cases import wrap


def score(answer: str, nums: list, target: object = 24, **options: object) -> float | None:
    return countdown.verify(wrap(answer), {"nums": nums, "target": target}, **options).score


@pytest.mark.parametrize(
    ("answer", "nums", "target"),
    [
        ("8*3", [8, 3], 24),
        ("\n8*3\n", [8, 3], 24),  # known failure d5
        ("8*3 = 24", [8, 3], "24"),
        ("24 = 8*3", [3, 8], 24),
        ("(1 + 2) * 8 = 3 * 8 = 24", [1, 2, 8], 24),
        ("8\n* 3\n= 24", [8, 3], 24),
        ("8 × 3", [8, 3], 24),
        ("8 x 3 = 24", [8, 3], 24),
        ("48 ÷ 2", [48, 2], 24),
        ("30 − 6", [30, 6], 24),
        ("５*（６－１）", [5, 6, 1], 25),
        (r"\boxed{8 \times 3}", [8, 3], 24),
        (r"$8 \cdot 3 = \boxed{24}$", [8, 3], 24),
        (r"\[ \boxed{\left(1+2\right) \times 8 = 24} \]", [1, 2, 8], 24),
        (r"\boxed{\dfrac{8}{3 - \frac{8}{3}}}", [8, 3, 8, 3], 24),
        ("8/(3-8/3)", [3, 3, 8, 8], 24),
        ("[(1+2)]*8", [1, 2, 8], 24),
        ("```\n(1+2)*8\n```", [1, 2, 8], 24),
        ("`8*3`", [8, 3], 24),
        ("**8*3**", [8, 3], 24),
        ("The answer is 8 * 3.", [8, 3], 24),
        ("Using 3 and 8: 8*3 = 24, which is the target.", [8, 3], 24),
        ("First 6*4 came to mind. The answer is: 8*3", [8, 3], 24),
        ("Final expression: (8 - 5) * 8", [8, 5, 8], 24),
        ("答案是 8*3", [8, 3], 24),
        ("24", [24], 24),
        ("3 - 8", [3, 8], -5),
        ("-3 + 27", [-3, 27], 24),
        ("27 + (-3)", [-3, 27], 24),
    ],
)
def test_right(answer, nums, target):
    assert score(answer, nums, target) == 1.0


@pytest.mark.parametrize(
    ("answer", "nums", "target"),
    [
        ("3**3-3", [3, 3, 3], 24),  # known failure d4
        ("0.5*48", [0, 5, 48], 24),
        ("8//1*3", [8, 1, 3], 24),
        ("9**9**9", [9, 9, 9], 24),
        ("3^3-3", [3, 3, 3], 24),
        (r"3^{3}-3", [3, 3, 3], 24),
        ("3³-3", [3, 3], 24),
        ("4!", [4], 24),
        ("The answer is 4*3!", [4, 3], 12),
        ("-3+27", [3, 27], 24),
        ("--8*3", [8, 3], 24),
        ("+8*3", [8, 3], 24),
        ("8*-3*-1", [8, 3, 1], 24),
        ("1 2*2", [1, 2, 2], 24),
        (r"1\,2*2", [1, 2, 2], 24),
        (r"1{}2*2", [1, 2, 2], 24),
        ("12*2", [1, 2, 2], 24),
        ("012*2", [12, 2], 24),
        ("0x18", [24], 24),
        ("2_4", [24], 24),
        ("24.0", [24], 24),
        ("2,4", [24], 24),
        ("8(3)", [8, 3], 24),
        (r"8\frac{3}{1}", [8, 3, 1], 24),
        ("sqrt(9)*8", [9, 8], 72),
        ("It is sqrt(9)*8.", [9, 8], 72),
        ("It is √9*8.", [9, 8], 72),
        ("So 2.5*48 it is", [5, 48, 2], 240),
        ("5%2*8*3", [5, 2, 8, 3], 24),
        ("8*3 if 1 else 0", [8, 3, 1, 0], 24),
        ("(8,3)[0]*3", [8, 3, 0, 3], 24),
        ("8*3 or 6*4", [8, 3], 24),
        ("8*3\n6*4", [8, 3], 24),
        ("8*3 = 24\n8*3 = 25", [8, 3], 24),
        (r"\boxed{8*3} or \boxed{6*4}", [8, 3], 24),
        (r"\boxed{8*3", [8, 3], 24),
        ("8*3 is not 24", [8, 3], 24),
        ("8*3 ≠ 24", [8, 3], 24),
        ("8*3 = 25", [8, 3], 24),
        ("8*3 = 24 = 25", [8, 3], 24),
        ("8*3 == 24", [8, 3], 24),
        ("24", [8, 3], 24),
        ("24 = 24", [8, 3], 24),
        ("8*3 + 1 - 1", [8, 3], 24),
        ("8*3*1", [8, 3], 24),
        ("8*3", [8, 3, 5], 24),
        ("8*(3", [8, 3], 24),
        ("8*3)", [8, 3], 24),
        ("()", [8, 3], 24),
        ("= 24", [8, 3], 24),
        ("", [8, 3], 24),
        ("I cannot do it.", [8, 3], 24),
        ("8/(3-3)", [8, 3, 3], 24),
        ("٨*٣", [8, 3], 24),  # digits of another script
        ("8\u200b*3", [8, 3], 24),
    ],
)
def test_wrong(answer, nums, target):
    assert score(answer, nums, target) == 0.0


def test_use_some():
    assert score("8*3", [8, 3, 5], use="some") == 1.0
    assert score("8*3*5/5", [8, 3, 5], use="some") == 0.0
    row = {"numbers": [8, 3, 5], "target": 24, "use": "some"}
    assert countdown.verify(wrap("8*3"), row).score == 1.0
    assert countdown.verify(wrap("8*3"), {**row, "use": "all"}, use="some").score == 0.0


def test_whose_fault():
    def verdict(answer: str, row: dict, **options: object) -> tuple[float | None, str]:
        found = countdown.verify(wrap(answer), row, **options)
        assert found.detail or found.status == "scored"
        return found.score, found.status

    row = {"nums": [8, 3, 3], "target": 24}
    assert verdict("8/(3-3)", row) == (0.0, "unverifiable")
    assert verdict("no", row) == (0.0, "unverifiable")
    assert verdict("8+3+3", row) == (0.0, "scored")
    assert verdict("8*3", {"nums": [8, 3]}) == (None, "error")
    assert verdict("8*3", {"nums": [8, 3]}, target=24) == (1.0, "scored")
    for bad in ([], None, "8 3", [8, "x"], [8, True], [8, 2.5], list(range(99))):
        assert verdict("8*3", {"nums": bad, "target": 24}) == (None, "error")
    for bad_target in ("x", 2.5, True, "24.5"):
        assert verdict("8*3", {"nums": [8, 3], "target": bad_target}) == (None, "error")
    assert verdict("8*3", {"nums": [8, 3], "target": 24, "use": "any"}) == (None, "error")
    assert verdict("8*3", {"nums": [8.0, "3"], "target": 24.0}) == (1.0, "scored")


def test_thinking_is_not_graded():
    row = {"nums": [8, 3], "target": 24}
    assert countdown.verify("<think>8*3</think> no idea", row).score == 0.0
    assert countdown.verify("<think>8*3 = 24", row).status == "unverifiable"
    assert countdown.verify("8*3", row).score == 0.0
    assert countdown.verify("8*3", row, require_think=False).score == 1.0
    assert countdown.verify("hm</think><answer>8*3</answer>", row, prefilled=True).score == 1.0


@pytest.mark.parametrize(
    "answer",
    [
        "(" * 50_000,
        "(" * 900 + "8*3" + ")" * 900,
        "9*" * 4_000 + "9",
        "9" * 9_000,
        "." * 9_900 + "x",
        "\n" * 9_900 + "8*3x",
        "answer is " * 900,
        "8 " * 4_900,
        "**" * 4_900,
        "\\frac{" * 1_600,
        "x" * 9_000,
        "1/" * 4_900 + "7",
    ],
)
def test_hostile_ends_quickly(answer):
    start = time.monotonic()
    assert score(answer, [8, 3]) == 0.0
    assert time.monotonic() - start < 2


@st.composite
def expressions(draw) -> tuple[str, Fraction, list[int]]:
    """A random expression, its value by construction, and its numbers."""
    numbers = draw(st.lists(st.integers(1, 99), min_size=2, max_size=6))
    terms = [(str(n), Fraction(n)) for n in numbers]
    while len(terms) > 1:
        (a, x), (b, y) = terms.pop(), terms.pop()
        operator = draw(st.sampled_from("+-*/" if y else "+-*"))
        value = {"+": x + y, "-": x - y, "*": x * y}[operator] if operator != "/" else x / y
        terms.insert(draw(st.integers(0, len(terms))), (f"({a} {operator} {b})", value))
    return terms[0][0], terms[0][1], numbers


@given(expressions(), st.integers(1, 9))
def test_value_is_exact(made, off):
    text, value, numbers = made
    side = expression.read(text)[0]
    assert (side.value, sorted(side.numbers)) == (value, sorted(numbers))
    if value.denominator == 1:
        target = int(value)
        assert score(text, numbers, target) == score(f"{text} = {target}", numbers, target) == 1.0
        assert score(text, numbers, target + off) == 0.0
        assert score(f"{text} + {off}", numbers, target + off) == 0.0


@given(st.text(alphabet="0123456789+-*/()=.,^! x{}\\frac\n", max_size=60))
@settings(max_examples=300)
def test_never_raises(text):
    assert score(text, [8, 3]) in (0.0, 1.0)


@given(st.lists(st.integers(1, 13), min_size=4, max_size=4))
@settings(max_examples=15, deadline=None)
def test_solution_scores(nums):
    row = {"nums": nums, "target": 24}
    if (solution := countdown.right_answer(row)) is not None:
        assert countdown.verify(wrap(solution), row).score == 1.0
    assert countdown.verify(wrap(countdown.wrong_answer(row)), row).score == 0.0


def test_solver_finds_known_puzzles():
    for nums in ([3, 3, 8, 8], [1, 5, 5, 5], [4, 4, 7, 7], [1, 3, 4, 6]):
        assert score(solver.solve(nums, 24, every=True), nums) == 1.0
    assert solver.solve([1, 1, 1, 1], 24, every=True) is None
    assert solver.solve([3, 8, 50], 24, every=False) is not None


def test_batch_is_order_free():
    verifier = countdown.Countdown(countdown.Options(target=24), countdown.Context())
    completions, rows = [wrap("8*3"), wrap("8+3"), wrap("4*6")], [{"nums": [8, 3]}, {"nums": [8, 3]}, {"nums": [6, 4]}]
    assert [v.score for v in verifier(completions, rows)] == [1.0, 0.0, 1.0]
    assert [v.score for v in verifier(completions[::-1], rows[::-1])] == [1.0, 0.0, 1.0]
