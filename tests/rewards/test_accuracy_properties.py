"""What holds for every input: equal values are equal in any notation and others are not, order and batch do not
matter, nothing raises or outlasts its limit, a fault costs its own sample alone."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r1pipe.rewards import accuracy
from r1pipe.rewards.mathpool import MathPool, shared
from tests.rewards import cases

INTEGRAL = r"\int_0^1 2x\,dx"  # a gold that only computer algebra reads
DEADLINE_S = 3.0  # of this process; generous: for slow machines


@pytest.fixture(scope="module", autouse=True)
def _no_workers_left():
    yield
    shared().close()


def score(gold: str, answer: str) -> float | None:
    return accuracy.verify(cases.wrap(answer), {"gold": gold, "kind": "math"}).score


def rationals(value: Fraction) -> list[str]:
    """Notations of one number."""
    n, d = value.numerator, value.denominator
    found = [
        f"{n}/{d}",
        rf"\frac{{{n}}}{{{d}}}",
        rf"\dfrac{{{3 * n}}}{{{3 * d}}}",
        rf"\boxed{{\frac{{{-n}}}{{{-d}}}}}",
    ]
    found += [
        rf"{n} \cdot {d}^{{-1}}",
        rf"x = {n}/{d}",
        rf"\left({n}\right)\div {d}",
        rf"\frac{{{2 * n}}}{{{d}}} - \frac{{{n}}}{{{d}}}",
    ]
    if d == 1:
        found += [f"{n:,}", f"{n:,}".replace(",", r"\,"), f"{n}.0", f"{n}".replace("-", "−"), rf"\sqrt[3]{{{n**3}}}"]
    elif abs(n) > d and n > 0:
        found += [f"{n // d} {n % d}/{d}", rf"{n // d}\frac{{{n % d}}}{{{d}}}"]
    return found


@settings(max_examples=60, deadline=None)
@given(st.fractions(-(10**6), 10**6, max_denominator=10**4), st.randoms(use_true_random=False))
def test_numbers_are_equal_in_any_notation(value: Fraction, rng: random.Random) -> None:
    gold, answer = rng.choice(rationals(value)), rng.choice(rationals(value))
    assert score(gold, answer) == 1.0, (gold, answer)


@settings(max_examples=60, deadline=None)
@given(st.integers(10, 10**30), st.data())
def test_a_changed_digit_is_another_number(value: int, data: st.DataObject) -> None:
    digits = str(value)
    at = data.draw(st.integers(0, len(digits) - 1))
    other = data.draw(st.sampled_from([d for d in "123456789" if d != digits[at]]))
    changed = Fraction(int(digits[:at] + other + digits[at + 1 :]), 7)
    answer = data.draw(st.sampled_from(rationals(changed)))
    assert score(rf"\frac{{{value}}}{{7}}", answer) == 0.0, answer


def _polynomial(coefficients: list[int]) -> str:
    terms = [f"{c:+d}x^{{{k}}}" for k, c in enumerate(coefficients)]
    return "".join(terms).lstrip("+")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_polynomials_expanded_and_factored(roots: list[int], rng: random.Random) -> None:
    coefficients = [1]
    for root in roots:
        coefficients = [a - root * b for a, b in zip([0, *coefficients], [*coefficients, 0], strict=True)]
    factored = "".join(f"(x{-r:+d})" for r in rng.sample(roots, len(roots)))
    assert score(_polynomial(coefficients), factored) == 1.0
    coefficients[rng.randrange(len(coefficients))] += rng.choice([-1, 1])
    assert score(_polynomial(coefficients), factored) == 0.0


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-99, 99), min_size=1, max_size=6, unique=True), st.randoms(use_true_random=False))
def test_sets_in_any_order(items: list[int], rng: random.Random) -> None:
    shuffled = rng.sample(items, len(items))
    gold = rf"\{{{', '.join(map(str, items))}\}}"
    assert score(gold, ", ".join(map(str, shuffled))) == 1.0
    shuffled[0] += 1
    if set(shuffled) != set(items):
        assert score(gold, ", ".join(map(str, shuffled))) == 0.0


@settings(max_examples=40, deadline=None)
@given(st.integers(-50, 50), st.integers(1, 60), st.booleans(), st.booleans())
def test_intervals_and_inequalities(low: int, width: int, left: bool, right: bool) -> None:
    high = low + width
    gold = f"{'[' if left else '('}{low}, {high}{']' if right else ')'}"
    signs = ["\\le" if left else "<", "\\le" if right else "<"]
    others = ["<" if left else "\\le", signs[1]]
    chain = f"{low} {signs[0]} x {signs[1]} {high}"
    assert score(gold, chain) == score(chain, rf"\boxed{{{gold}}}") == 1.0
    assert score(gold, f"{low} {others[0]} x {others[1]} {high}") == 0.0
    assert score(gold, f"{low} {signs[0]} x {signs[1]} {high + 1}") == 0.0


_PIECES = st.sampled_from(
    [
        "\\frac{", "{", "}", "\\boxed{", "1", "2", "-", "+", "^", "_", "/", "(", ")", "[", "]", ",", "\\sqrt", "x",
        "=", "<", "\\le", "\\{", "\\}", "|", "!", "°", "%", "\\pi", "e", "i", "\\text{", "or", " and ", "\\cup",
        "\\in", "\\pm", " ", "\n", "$", "**", "\\", "&", "\\\\", "\\begin{pmatrix}", "\\end{pmatrix}", "\\sin",
        "\\log_", "\\sum_{k=1}^{9}", "答案是", "not ", "is ", ".", "...", ":", ";", "'", '"', "0.", "10^",
        "\\overline{3}", "\\infty", "\\mathbb{R}", "\\setminus", "A", "(B)", "km", "\\bmod", "½", "²", "−", "\u200b",
        "９", "<answer>", "</answer>", "</think>", "twelve", "\ud800",
    ]
)  # fmt: skip
_GOLDS = [
    "12", r"\frac{1}{2}", r"\{1,2\}", "(1,2)", "x<3", "x^2+1", "B", "Wednesday", "9:45", "1:2", "101_2",
    r"x \equiv 1 \pmod 3", "y=2x", r"\begin{pmatrix}1\\2\end{pmatrix}", "March 5, 2020", "Yes", r"\emptyset", "5 km",
    r"1,2,\ldots,n", "A, C",
]  # fmt: skip


@settings(max_examples=250, deadline=None)
@given(st.lists(_PIECES, max_size=30).map("".join) | st.text(max_size=60), st.sampled_from(_GOLDS))
def test_no_input_raises_or_takes_long(text: str, gold: str) -> None:
    started = time.process_time()
    for completion in (text, cases.wrap(text), cases.wrap(rf"\boxed{{{text}}}")):
        verdict = accuracy.verify(completion, {"gold": gold, "kind": "math"})
        assert verdict.score in (0.0, 1.0) and verdict.status != "error"
    assert time.process_time() - started < DEADLINE_S


@settings(max_examples=150, deadline=None)
@given(st.lists(_PIECES, min_size=1, max_size=25).map("".join))
def test_no_gold_raises(text: str) -> None:
    if accuracy.check_gold(text, "number") is None:
        assert accuracy.verify(cases.wrap("12"), {"gold": text, "kind": "number"}).score in (0.0, 1.0)


@pytest.mark.parametrize(
    "piece", [p for p in _PIECES.elements if p.strip()] + ["((", "1+", "\\frac1", "x_", "9^", "1,", "|x"]
)
def test_repetitions_end(piece: str) -> None:
    text = (piece * 12_000)[:12_000]
    for gold in ("12", "x^2+1"):
        for answer in (text, rf"\boxed{{{text}}}"):
            started = time.process_time()
            assert score(gold, answer) == 0.0
            assert time.process_time() - started < DEADLINE_S, gold


_PAIRS = [
    ("12", "12"), ("12", "13"), (r"\sqrt{8}", r"2\sqrt{2}"), ("B", "(B)"), (INTEGRAL, "1"), (INTEGRAL, "2"),
    ("x<3", "x>3"), (INTEGRAL, r"\frac{2}{2}"), ("5 km", "5000 m"), ("12", r"10^{10^{10}}"),
]  # fmt: skip


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(_PAIRS), max_size=12))
def test_verdicts_do_not_depend_on_order_or_batch(pairs: list[tuple[str, str]]) -> None:
    def batch(chosen: list[tuple[str, str]]) -> list[accuracy.Verdict]:
        rows = [{"gold": g, "kind": "math"} for g, _ in chosen]
        return accuracy.verify_batch([cases.wrap(a) for _, a in chosen], rows)

    together = batch(pairs)
    assert together == batch(pairs[::-1])[::-1]
    assert together == [batch([pair])[0] for pair in pairs]


def test_equal_pairs_are_asked_once() -> None:
    pool = MathPool(workers=1)
    try:
        pairs = [(INTEGRAL, "1"), (INTEGRAL, "3"), (INTEGRAL, "1")] * 8
        outcomes = pool.check(pairs, limit_s=20)
        assert [o.result for o in outcomes] == ["equal", "different", "equal"] * 8
        assert pool.asked == 2
        pool.check(pairs, limit_s=20)
        assert pool.asked == 2
    finally:
        pool.close()


def test_a_hit_worker_costs_its_pair_alone() -> None:
    """A tower that neither fits into memory nor ends, and a worker that is killed from outside."""
    pool = MathPool(workers=2)
    try:
        tower = r"7^{7^{7^{7}}}"
        pairs = [(INTEGRAL, "1"), (INTEGRAL, tower), (INTEGRAL, "2"), (INTEGRAL, "9^{9^{9^9}}"), (INTEGRAL, "3")]
        started = time.monotonic()
        results = [o.result for o in pool.check(pairs, limit_s=4.0)]
        assert time.monotonic() - started < 60
        assert results[::2] == ["equal", "different", "different"]
        assert set(results[1::2]) <= {"timeout", "limit", "different", "crash", "error"}
        for worker in pool.pool._live:
            os.kill(worker.process.pid, signal.SIGKILL)
        assert pool.check([(INTEGRAL, "4"), (INTEGRAL, r"\frac{5}{5}")], limit_s=20)[1].result == "equal"
    finally:
        pool.close()


def _in_child(queue: Any) -> None:
    queue.put([score(INTEGRAL, "1"), score(INTEGRAL, "2"), score(r"\sqrt{2}", r"2^{1/2}")])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_in_processes_of_multiprocessing(method: str) -> None:
    assert score(INTEGRAL, "1.0") == 1.0  # this process has workers of its own
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=100) == [1.0, 0.0, 1.0]
    child.join(20)
    assert child.exitcode == 0
