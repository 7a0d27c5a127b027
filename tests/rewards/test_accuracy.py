"""The accuracy reward: the shared cases, other inputs of the same kinds, whose fault, limits, threads."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r1pipe.chat import Tags
from r1pipe.rewards import accuracy, extract, numbers
from r1pipe.rewards.mathpool import MathPool, shared
from tests.rewards import cases


def scores(pairs: list[tuple[str, str]], kind: str) -> list[float | None]:
    verdicts = accuracy.verify_batch([cases.wrap(a) for _, a in pairs], [{"gold": g, "kind": kind} for g, _ in pairs])
    return [v.score for v in verdicts]


@pytest.fixture(scope="module")
def shared_verdicts() -> dict[str, tuple[float, accuracy.Verdict]]:
    rows = cases.load("accuracy")
    verdicts = accuracy.verify_batch(
        [r["input"]["completion"] for r in rows], [{"gold": r["input"]["gold"], "kind": "math"} for r in rows]
    )
    return {r["id"]: (r["expect"], v) for r, v in zip(rows, verdicts, strict=True)}


def test_shared_cases(shared_verdicts):
    wrong = {i: v for i, (expect, v) in shared_verdicts.items() if v.score != expect}
    assert not wrong


def test_no_sympy_in_this_process():
    code = (
        "import sys; from r1pipe.rewards import accuracy as a;"
        "print(a.verify('<think>x</think>\\\\sqrt{8}', {'gold': '2\\\\sqrt{2}', 'kind': 'math'}).score, "
        "{'sympy', 'math_verify', 'torch'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert run.stdout.split(maxsplit=1) == ["1.0", "set()\n"]


@pytest.mark.parametrize("kind", ["number", "math"])
def test_numbers_in_any_notation(kind):
    right = [
        ("12", "12"), ("12", " 12. "), ("12", "12.0"), ("12", "１２"), ("12", "The answer is 12 apples."),
        ("12", "**12**"), ("12", "x = 12"), ("12", r"\boxed{12}"), ("12", "13 - 1 = 12"), ("12", "13-1=12"),
        ("12", "$12$"), ("12", "一共12个。"), ("12", "答案是 12。"), ("12", "答案是12。"),
        ("12", "No: \\boxed{11}. Yes: \\boxed{12}"),
        ("-7", "−7"), ("-7", "the result: -7"), ("1234567", "1,234,567"), ("1234567", r"1{,}234{,}567"),
        ("3/4", "0.75"), ("3/4", "75%"), ("0.75", "\\frac{3}{4}"), ("0.75", "¾"), ("7/2", "3 1/2"),
        ("-7/2", r"-3\frac12"),
        ("1/3", r"0.\overline{3}"), ("0.0015", "1.5e-3"), ("5 km", "5000 m"), ("5", "5 km"), ("29", "$29.00"),
    ]  # fmt: skip
    wrong = [
        ("12", "12 or 13"), ("12", "12 13"), ("12", "12\n13"), ("12", "12 but maybe 13"), ("12", ""),
        ("12", r"\boxed{12} or \boxed{13}"), ("12", r"\boxed{12"), ("12", "It is not 12."), ("7", "-7"), ("-7", "7"),
        ("12", "12x"), ("12", "12^2"), ("12", "120"), ("12", "112"), ("12", "1.2"), ("12", "1 2"), ("12", r"\boxed{}"),
        ("1234", "1.234"), ("0.333", "1/3"), ("5", r"\sqrt{5}"), ("2", "2 2/3"), ("10", "4 10/3"), ("5 km", "5 m"),
        ("1" * 5000, "1" * 4999 + "2"), ("5", "7 is wrong"),
    ]  # fmt: skip
    got = scores(right + wrong, kind)
    expected = [1.0] * len(right) + [0.0] * len(wrong)
    assert [(p, g) for p, g, e in zip(right + wrong, got, expected, strict=True) if g != e] == []


def test_mathematics_of_the_same_kinds():
    right = [
        ("x^2-1", "(x-1)(x+1)"), (r"\sqrt{2}", r"The answer is $\sqrt{2}$."), ("3,4", r"\boxed{4} and \boxed{3}"),
        ("5", r"\sqrt{25}"), (r"x \ge 2", r"[2,\infty)"), ("10!", "3628800"), (r"\{1,2\}", "1 and 2"), ("C", "(c)"),
        ("C", "The answer is C."), ("2:3", "4:6"), ("No solution", r"\text{no solution}"), ("e^{2}", r"\mathrm{e}^2"),
    ]  # fmt: skip
    wrong = [
        ("x^2-1", "x^2+1"), (r"\sqrt{2}", "1.41421356"), ("3,4", r"\boxed{4}"), (r"\frac{1}{900!}", r"\frac{1}{901!}"),
        ("C", "B or C"), ("2:3", "3:2"), ("no solution", "one solution"), (r"2\pi", "6.28"), ("i", "-i"),
        ("x=1 or x=2", "x=1"), ("x^2-1", "I do not know."),
    ]  # fmt: skip
    got = scores(right + wrong, "math")
    expected = [1.0] * len(right) + [0.0] * len(wrong)
    assert [(p, g) for p, g, e in zip(right + wrong, got, expected, strict=True) if g != e] == []


def test_whose_fault():
    row = {"gold": "12", "kind": "number"}
    unfinished = accuracy.verify("<think>\nso 12", row)
    assert (unfinished.score, unfinished.status) == (0.0, "unverifiable")
    assert accuracy.verify("so 12", row).score == 1.0  # a model that does not think in tags
    assert accuracy.verify("so 12", row, require_think=True).score == 0.0
    assert accuracy.verify("so 12", row, prefilled=True).score == 0.0
    assert accuracy.verify("<think>so 12", row).score == 0.0
    assert accuracy.verify("hm</think><answer>12</answer>", row, prefilled=True).score == 1.0
    assert accuracy.verify("<think>12</think><answer>12", row).score == 1.0  # the form is another reward's
    assert accuracy.verify(cases.wrap("apples"), row).status == "unverifiable"
    for gold, kind in ((None, "number"), ("", "math"), ("many", "number"), (r"\frac{1", "math")):
        verdict = accuracy.verify(cases.wrap("12"), {"gold": gold, "kind": kind})
        assert (verdict.score, verdict.status) == (None, "error"), gold


def test_tags_are_configurable():
    tags = Tags(think_open="[R]", think_close="[/R]", answer_open="[A]", answer_close="[/A]")
    assert accuracy.verify("[R]x[/R][A]12[/A]", {"gold": "12", "kind": "number"}, tags=tags).score == 1.0


def test_check_gold():
    assert (
        accuracy.check_golds(["26", "x+1", "Wednesday", r"2\sqrt{2}", "B", "9:45"], ["number"] + ["math"] * 5)
        == [None] * 6
    )
    bad = accuracy.check_golds([None, "", "proof", "many", r"\frac{1"], ["math", "math", "math", "number", "math"])
    assert all(bad), bad


def test_hostile_rows_end_and_harm_no_other():
    towers = [cases.wrap(rf"\boxed{{{n}^{{{n}^{{{n}^{{{n}}}}}}}}}") for n in (7, 8)]
    completions = [cases.wrap(r"\sqrt{16}"), *towers * 8, cases.wrap(r"\boxed{\sqrt{25}}")]
    rows = [{"gold": g, "kind": "math"} for g in ("4", *["3"] * 16, "5")]
    verifier = accuracy.Accuracy(accuracy.Options(limit_s=1.0), accuracy.Context())
    verifier(completions[:1], rows[:1])  # workers are up
    started = time.monotonic()
    verdicts = verifier(completions, rows)
    assert time.monotonic() - started < 30  # 16 copies are checked twice
    assert [v.score for v in verdicts] == [1.0, *[0.0] * 16, 1.0]
    assert {v.status for v in verdicts[1:-1]} <= {"timeout", "unverifiable", "scored"}


def test_works_from_threads():
    results: dict[int, float | None] = {}

    def work(n: int) -> None:
        row = {"gold": rf"{n}\sqrt{{2}}", "kind": "math"}
        results[n] = accuracy.verify(cases.wrap(rf"\boxed{{\sqrt{{{2 * n * n}}}}}"), row).score

    threads = [threading.Thread(target=work, args=(n,)) for n in range(2, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == dict.fromkeys(range(2, 8), 1.0)


def test_a_dead_worker_costs_nothing():
    pool = MathPool(workers=1)
    try:
        assert pool.check([(r"\sqrt{4}", r"\sqrt{9}")], limit_s=10)[0].result == "different"
        pool.pool._live[0].process.kill()
        assert pool.check([(r"\sqrt{4}", r"\sqrt{16}/2")], limit_s=10)[0].result == "equal"
    finally:
        pool.close()
    assert not pool.pool._live


def test_workers_end_with_their_process():
    code = (
        "from r1pipe.rewards import mathpool as m; p = m.shared();"
        "p.check([('x', 'y')], limit_s=10);"
        "print(p.pool._live[0].process.pid, flush=True); import os; os.kill(os.getpid(), 9)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    pid = int(run.stdout)
    for _ in range(100):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return
        except FileNotFoundError:
            return
        time.sleep(0.1)
    pytest.fail(f"worker {pid} outlived its parent")


@settings(deadline=None)
@given(st.integers(-(10**9), 10**9), st.integers(1, 10**6))
def test_equal_values_in_any_notation(n, d):
    value = Fraction(n, d)
    spellings = [f"{n}/{d}", rf"\frac{{{n}}}{{{d}}}", rf"\dfrac{{{n * 3}}}{{{d * 3}}}", f"${n}/{d}$"]
    if value.denominator == 1:
        spellings += [f"{value.numerator:,}", f"{value.numerator}.0", f"{value.numerator}".replace("-", "−")]
    assert {numbers.parse(s).value for s in spellings} == {value}  # type: ignore[union-attr]
    assert not numbers.same(numbers.Quantity(value), numbers.Quantity(value + Fraction(1, 10**30)))


@settings(deadline=None)
@given(st.text(max_size=200))
def test_no_input_raises(text):
    row = {"gold": "12", "kind": "number"}
    assert accuracy.verify(text, row).score in (0.0, 1.0)
    assert accuracy.verify(cases.wrap(text), row).score in (0.0, 1.0)
    extract.boxed_answer(text)


@settings(deadline=None)
@given(st.lists(st.sampled_from(["1", "12", r"\boxed{12}", "x", "", "13"]), max_size=8))
def test_verdicts_do_not_depend_on_the_batch(answers):
    row = {"gold": "12", "kind": "number"}
    texts = [cases.wrap(a) for a in answers]
    assert accuracy.verify_batch(texts, [row] * len(texts)) == [accuracy.verify(t, row) for t in texts]


def test_long_hostile_text_is_fast():
    row = {"gold": "12", "kind": "number"}
    for piece in ("\\frac{" + " " * 10, "$", "**", "\\boxed{", "1,", "( ", "\\text{", "1 ", "`", "~"):
        started = time.process_time()
        accuracy.verify(cases.wrap(piece * (20_000 // len(piece))), row)
        assert time.process_time() - started < 3, piece


def test_extract_cases():
    for case in cases.load("extract"):
        assert extract.extract(case["input"]["text"], case["input"]["how"]) == case["expect"], case["id"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("```python\na = 1\n```\nthen\n```python\nb = 2\n```", "b = 2\n"),
        ("```\nb = 2\n```", "b = 2\n"),
        ("```Python3\nb = 2\n```\nOutput:\n```\n2\n```", "b = 2\n"),
        ("```cpp\nint x;\n```", None),
        ("```python\na = 1\n```\n```python\nb = 2", None),
        ("````python\ns = '\n```\n'\n````", "s = '\n```\n'\n"),
        ("~~~py\nb = 2\n~~~", "b = 2\n"),
        ("```python\r\nb = 2\r\n```\r\n", "b = 2\r\n"),
        ("no code, `x = 1` only", None),
        ("```python\n```", ""),
    ],
)
def test_code_block(text: str, code: str | None):
    assert extract.code_block(text) == code


def test_outcomes_are_json_able_and_pool_is_shared():
    assert shared() is shared()
    json.dumps(accuracy.verify(cases.wrap("1"), {"gold": "1", "kind": "number"}).detail)


def test_a_row_of_kind_number_asks_for_a_number():
    """Else a policy that repeats the question is paid."""
    worked_out = ["24", "24.0", "3*8 = 24", r"\boxed{24}", "So 3*8 is 24", "x = 24", "twenty-four", "一共24个"]
    repeated = ["3*8", "12+12", r"\frac{48}{2}", "48/2", r"\boxed{3 \times 8}", "24 = 3*8"]
    assert scores([("24", a) for a in worked_out], "number") == [1.0] * len(worked_out)
    assert scores([("24", a) for a in repeated], "number") == [0.0] * len(repeated)
    assert scores([("24", "3*8"), ("1/2", "0.5")], "math") == [1.0, 1.0]
