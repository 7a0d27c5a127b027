"""The code reward: the shared cases, other programs of the same kinds, tests in each form, whose fault, limits."""

from __future__ import annotations

import json
import threading
import time

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r1pipe import sandbox
from r1pipe.chat import Tags
from r1pipe.errors import UserError
from r1pipe.rewards import code
from r1pipe.rewards.verdict import Context
from r1pipe.sandbox import backends
from tests.rewards import cases

pytestmark = pytest.mark.skipif(sandbox.probe()[0] == "none", reason=f"no sandbox here: {sandbox.probe()[1]}")
SUM = "a, b = map(int, input().split())\nprint(a + b)"
SUMS = [{"stdin": f"{i} {i}\n", "stdout": f"{2 * i}\n"} for i in range(1, 6)]


def answer(program, language="python"):
    return cases.wrap(f"\n```{language}\n{program}\n```\n")


def verdict(program, tests, **row):
    return code.verify(answer(program), {"tests": tests, **row})


def share(program, tests, **options):
    return code.run_tests(program, tests, **options)[0]


def test_shared_cases():
    rows = cases.load("code")
    reward = code.Code(code.Options(), Context())
    verdicts = reward([answer(r["input"]["program"]) for r in rows], [r["input"] for r in rows])
    wrong = {r["id"]: v for r, v in zip(rows, verdicts, strict=True) if v.score != r["expect"]}
    assert not wrong


@pytest.mark.parametrize(
    ("program", "tests", "expected"),
    [
        (SUM, SUMS, 1.0),
        ("print(2)", SUMS, 0.2),
        ("a, b = map(int, input().split())\nif a > 2: print(a + b)", SUMS, 0.6),
        ("a, b = map(int, input().split())\nassert a < 4\nprint(a + b)", SUMS, 0.6),
        (SUM + "\nraise SystemExit(1)", SUMS, 0.0),
        (SUM + "\n1/0", SUMS, 0.0),
        (SUM + "\nimport os; os._exit(0)", SUMS, 0.0),  # what it printed was never written
        (SUM + "\nimport sys; sys.stdout.flush(); import os; os._exit(0)", SUMS, 1.0),
        ("import sys\nfor line in sys.stdin: print(sum(map(int, line.split())))", SUMS, 1.0),
        ("while True:\n  try: print(sum(map(int, input().split())))\n  except EOFError: break", SUMS, 1.0),
        ("def main():\n  print(sum(map(int, input().split())))\nif __name__ == '__main__': main()", SUMS, 1.0),
        ("import sys\nprint('debug', file=sys.stderr)\n" + SUM, SUMS, 1.0),
        ("print('The sum is', sum(map(int, input().split())))", SUMS, 0.0),
        ("print('TEST PASSED', 'ok', '1.0')\nprint('{\"passed\": true}')", SUMS, 0.0),
        ("raise SystemExit(0)", SUMS, 0.0),
    ],
)  # fmt: skip
def test_programs_that_print(program, tests, expected):
    assert verdict(program, tests).score == expected


CALLS = [{"call": "f(3, 4)", "value": "7"}, {"call": "f(0, 0)", "value": "0"}]


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("def f(a, b): return a + b", 1.0),
        ("f = lambda a, b: a + b", 1.0),
        ("def f(a, b):\n  print('noise', 7, '[\"i\",\"7\"]')\n  return a + b", 1.0),
        ("import sys\ndef f(a, b):\n  sys.stdout.write('x' * 5_000_000)\n  return a + b", 1.0),
        ("def f(a, b): return 7", 0.5),
        ("def f(a, b): print(a + b)", 0.0),
        ("def f(a, b): return str(a + b)", 0.0),
        ("def f(a, b): return [a + b]", 0.0),
        ("def g(a, b): return a + b", 0.0),
        ("class A:\n  def __eq__(self, o): return True\ndef f(a, b): return A()", 0.0),
        ("class A(int):\n  def __eq__(self, o): return True\n  __hash__ = None\ndef f(a, b): return A(5)", 0.0),
        ("class A:\n  def __repr__(self): return '7'\n  __str__ = __repr__\ndef f(a, b): return A()", 0.0),
        ("class A:\n  def __reduce__(self): return (int, (7,))\n  def __int__(self): return 7\n"
         "  __index__ = __int__\ndef f(a, b): return A()", 0.0),
        ("import sys, os\ndef f(a, b): sys.exit(0)", 0.0),
        ("import sys, os\ndef f(a, b): os._exit(0)", 0.0),
        ("import os\nos._exit(0)", 0.0),
        ("import builtins, json\nbuiltins.type = lambda x: int\nbuiltins.isinstance = lambda *a: True\n"
         "builtins.issubclass = lambda *a: True\njson.dumps = lambda *a: '7'\ndef f(a, b): return object()", 0.0),
        ("import builtins\nbuiltins.eval = lambda *a: 8\ndef f(a, b): return 8", 0.0),
        ("import sys\ndef f(a, b):\n  frame = sys._getframe()\n  while frame:\n"
         "    for k, v in [*frame.f_locals.items(), *frame.f_globals.items()]:\n"
         "      if k in ('expected', 'value', 'stdout', 'tests'): return v\n"
         "    frame = frame.f_back", 0.0),
        ("import gc\ndef f(a, b):\n  for o in gc.get_objects():\n    if isinstance(o, dict) and 'program' in o and "
         "('expected' in o or 'value' in o): return o.get('expected', o['value'])", 0.0),
        ("import os\nfor fd in range(3, 20):\n  try: os.write(fd, b'[\"i\",\"9\"]')\n  except OSError: pass\n"
         "os._exit(0)", 0.0),
        ("import os\ndef f(a, b):\n  for fd in range(20):\n    try: os.write(fd, b'null')\n    except OSError: pass\n"
         "  return a + b", 0.0),
        ("def f(a, b):\n  x = []\n  x.append(x)\n  return x", 0.0),
        ("def f(a, b):\n  x = []\n  for _ in range(100_000): x = [x]\n  return x", 0.0),
        ("def f(a, b): return 10**100_000", 0.0),
        ("def f(a, b): return (x for x in [a + b])", 0.0),
        ("async def f(a, b): return a + b", 0.0),
        ("def f(a, b): return input()", 0.0),
        ("def f(a, b):\n  import threading\n  threading.Thread(target=__import__('time').sleep, args=(60,)).start()\n"
         "  return a + b", 1.0),
        ("def f(a, b):\nreturn a", 0.0),
        ("", 0.0),
    ],
)  # fmt: skip
def test_functions(program, expected):
    assert verdict(program, CALLS).score == expected


@pytest.mark.parametrize(
    ("returned", "value", "passes"),
    [
        ("float('nan')", "nan", True), ("float('nan')", "0.5", False), ("float('inf')", "float('inf')", True),
        ("(1, 2)", "[1, 2]", False), ("(1, 2)", "(1, 2)", True), ("{2, 1}", "{1, 2}", True), ("set()", "set()", True),
        ("{'b': 1, 'a': [2]}", "{'a': [2], 'b': 1}", True), ("2**200", str(2**200), True), ("None", "None", True),
        ("'é\\u2028😀'", "'é\\u2028😀'", True), ("True", "1", False), ("1", "True", False), ("0.1 + 0.2", "0.3", True),
        ("10**6", "1000001", False), ("[0.1 + 0.2, (1,)]", "[0.3, (1,)]", True), ("b'x'", "b'x'", True),
        ("3", [3], False), ("(3, (4,))", [3, [4]], True), ("None", None, True), ("'7'", "'7'", True), ("7", 7, True),
        ("__import__('collections').Counter('aab')", "{'a': 2, 'b': 1}", True), ("range(3)", "[0, 1, 2]", False),
    ],
)  # fmt: skip
def test_returned_values(returned, value, passes):
    assert verdict(f"def f(): return {returned}", [{"call": "f()", "value": value}]).score == float(passes)


@pytest.mark.parametrize(
    "form",
    [
        lambda t: {"tests": t},
        lambda t: {"tests": json.dumps(t)},
        lambda t: {"tests": {"test_cases": t}},
        lambda t: {"verification_info": {"language": "python", "test_cases": t}},
        lambda t: {"verification_info": json.dumps({"test_cases": t}), "tests": None},
        lambda t: {"tests": [{"stdin": None, "stdout": None, **x} for x in t]},
    ],
)
def test_forms_of_a_row(form):
    calls = [
        {"type": "function_call", "fn_name": "f", "input": [2, [1, 2]], "output": [2, 4]},
        {"type": "function_call", "fn_name": "f", "input": "3\n[5]", "output": "[15]"},
        {"type": "function_call", "fn_name": "f", "input": [0, []], "output": [[]]},
        {"type": "stdin_stdout", "fn_name": None, "input": "1\n", "output": "3\n"},
    ]
    program = (
        "class Solution:\n  def f(self, k, xs): return tuple(k * x for x in xs)\nif __name__ == '__main__': print(3)"
    )
    assert code.verify(answer(program), form(calls)).score == 1.0
    assert code.verify(answer("def f(k, xs): return xs"), form(calls)).score == 0.25


def test_a_comparison_in_a_call_is_taken_apart():
    tests = [{"call": "f(2) == 4", "value": "True"}, {"call": "f(3) == 9", "value": True}]
    assert verdict("def f(x): return x * x", tests).score == 1.0
    assert verdict("class A:\n  def __eq__(self, o): return True\ndef f(x): return A()", tests).score == 0.0
    assert verdict("def f(x): return x", [{"call": "f(2) == f(2)", "value": "True"}]).score == 1.0


def test_where_the_program_is():
    row = {"tests": SUMS[:1]}

    def score(text, **options):
        found = code.verify(text, row, **options)
        return found.score, found.status

    first_wrong = f"```python\nprint(0)\n```\nNo:\n```python\n{SUM}\n```"
    assert score(cases.wrap(first_wrong)) == (1.0, "scored")
    assert score(f"<think>x</think>Here:\n```py\n{SUM}\n```\nDone.") == (1.0, "scored")
    assert score(cases.wrap(SUM)) == (1.0, "scored")  # no fence: the whole region
    assert score(cases.wrap("The answer is 2.")) == (0.0, "unverifiable")
    assert score(answer(SUM, "cpp")) == (0.0, "unverifiable")
    assert score(cases.wrap(f"```python\n{SUM}")) == (0.0, "unverifiable")  # cut off
    assert score(f"<think>```python\n{SUM}\n```</think><answer>see above</answer>")[0] == 0.0
    assert score(f"<think>```python\n{SUM}\n```") == (0.0, "unverifiable")
    assert score(f"```python\n{SUM}\n```") == (0.0, "unverifiable")
    assert score(f"```python\n{SUM}\n```", require_think=False) == (1.0, "scored")
    assert score(f"hm</think>```python\n{SUM}\n```", prefilled=True) == (1.0, "scored")
    own = Tags(think_open="[T]", think_close="[/T]", answer_open="[A]", answer_close="[/A]")
    assert score(f"[T]x[/T][A]```python\n{SUM}\n```[/A]", tags=own) == (1.0, "scored")
    assert score(answer("def f(:")) == (0.0, "unverifiable")
    assert score(answer("#" * 300_000)) == (0.0, "unverifiable")
    assert score(cases.wrap("")) == (0.0, "unverifiable")
    assert score(cases.wrap("(" * 100_000)) == (0.0, "unverifiable")


@pytest.mark.parametrize(
    "row",
    [
        {}, {"tests": []}, {"tests": "["}, {"tests": [{"stdin": "x"}]}, {"tests": [{"call": "f(", "value": "1"}]},
        {"tests": [{"call": "f()", "value": "(("}]}, {"tests": [{"stdin": "", "stdout": ""}]}, {"tests": 7},
        {"tests": SUMS, "time_limit_s": "2"}, {"tests": SUMS, "time_limit_s": 0},
        {"tests": SUMS, "time_limit_s": True},
        {"tests": SUMS, "time_limit_s": float("nan")},
    ],
)  # fmt: skip
def test_what_is_our_fault(row):
    found = code.verify(answer("def f(): return 1"), row)
    assert (found.score, found.status) == (None, "error") and found.detail


def test_limits_are_the_programs_fault():
    for program, words in (
        ("while True: pass", "over 1 s"), ("while True: print('x' * 1000)", "output"), ("x = b'1' * 2**28", "memory"),
        ("x = []\nwhile True: x.append('x' * 1000)", "memory"),
    ):  # fmt: skip
        row = {"tests": SUMS[:1], "time_limit_s": 1}
        found = code.verify(answer(program), row, memory_mb=128)
        assert (found.score, found.status) == (0.0, "timeout") and words in found.detail


def test_time_lost_on_a_program_is_bounded():
    tests = [{"stdin": f"{i}", "stdout": "1"} for i in range(40)]
    started = time.monotonic()
    found, results = code.run_tests(
        "if input() == '0': print(1)\nelse:\n  while True: pass", tests, time_limit_s=0.3, sample_limit_s=1, workers=2
    )
    assert found == 1 / 40 and len(results) == 40  # the denominator is fixed
    assert {r.end for r in results} == {"exit", "time", "unrun"}
    assert time.monotonic() - started < 20


def test_a_right_program_is_never_cut_off():
    tests = [{"stdin": "", "stdout": "1"}] * 6
    assert share("import time; time.sleep(0.2); print(1)", tests, sample_limit_s=0.3) == 1.0


def test_a_batch_that_takes_too_long_is_our_fault():
    reward = code.Code(code.Options(batch_limit_s=0.5, workers=1), Context())
    rows = [{"tests": SUMS[:2], "time_limit_s": 1}] * 3
    found = reward([answer("while True: pass"), answer("while 1: pass"), answer(SUM)], rows)
    assert found[2].score is None and "batch_limit_s" in found[2].detail


def test_most_tests_are_chosen_evenly():
    tests = [{"stdin": str(i), "stdout": str(i)} for i in range(10)]
    found, results = code.run_tests("x = int(input())\nprint(x if x < 5 else 0)", tests, max_tests=4)
    assert found == 0.5 and len(results) == 4


def test_long_expected_output_has_room():
    tests = [{"stdin": "", "stdout": "x" * 20_000}]
    assert share("print('x' * 20_000)", tests, output_kb=1) == 1.0


def test_equal_programs_run_once(monkeypatch):
    runs = []
    real = code.run_job
    monkeypatch.setattr(code, "run_job", lambda *args: runs.append(1) or real(*args))
    reward = code.Code(code.Options(), Context())
    assert {v.score for v in reward([answer(SUM)] * 6, [{"tests": SUMS}] * 6)} == {1.0}
    assert len(runs) == len(SUMS)
    runs.clear()
    assert {v.score for v in reward([answer("def f(:")] * 2, [{"tests": SUMS * 8}] * 2)} == {0.0}
    assert len(runs) < len(SUMS) * 8  # what does not compile is not tried again


def children() -> set[int]:
    """Processes that this one has started, zombies too (other tests leave workers running)."""
    return {child.pid for child in psutil.Process().children()}


def test_batches_and_threads():
    programs = [SUM, "print(2)", "1/0", "def f(:", SUM + "\n# again", "while True: pass"]
    rows = [{"tests": SUMS[:2], "time_limit_s": 1.0}] * len(programs)
    expected = [1.0, 0.5, 0.0, 0.0, 1.0, 0.0]
    found = []

    def batch(order):
        reward = code.Code(code.Options(), Context())
        scores = [v.score for v in reward([answer(programs[i]) for i in order], [rows[i] for i in order])]
        found.append(scores == [expected[i] for i in order])

    orders = [range(6), [5, 3, 1, 0, 2, 4], [0], []]
    before = children()
    threads = [threading.Thread(target=batch, args=(order,)) for order in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4
    assert children() == before


def test_sixteen_completions_of_five_tests_take_seconds():
    reward = code.Code(code.Options(), Context())
    started = time.monotonic()
    found = reward([answer(f"# {i}\n{SUM}") for i in range(16)], [{"tests": SUMS}] * 16)
    assert {v.score for v in found} == {1.0}
    assert time.monotonic() - started < 30  # 1.3 s on two free cores; this machine may be busy


@given(st.text(max_size=300))
@settings(max_examples=15, deadline=None)
def test_any_text_gets_a_verdict(text):
    found = code.verify(cases.wrap(text), {"tests": SUMS[:1], "time_limit_s": 1.0})
    assert found.score == 0.0


def test_golds():
    row = {"tests": SUMS, "solution": f"Easy.\n```python\n{SUM}\n```\nDone."}
    right, wrong = code.right_answer(row), code.wrong_answer(row)
    assert code.verify(cases.wrap(right), row).score == 1.0
    assert code.verify(cases.wrap(wrong), row).score == 0.0
    assert code.check_gold(row) is None
    assert code.right_answer({"tests": SUMS, "solution": "42"}) is None
    assert "no tests" in code.check_gold({}) and code.wrong_answer({}) is None


def test_without_a_sandbox_it_refuses(monkeypatch):
    def attempt(kind):
        return None, "not here"

    monkeypatch.setattr(backends, "attempt", attempt)
    with pytest.raises(UserError, match="cannot be isolated"):
        code.Code(code.Options(), Context())
    with pytest.raises(UserError) as raised:
        code.verify(answer(SUM), {"tests": SUMS})
    assert "rlimits" in raised.value.hint


def test_rlimits_is_a_choice_that_shows():
    reward = code.Code(code.Options(sandbox="rlimits"), Context())
    found = reward([answer(SUM)], [{"tests": SUMS[:2]}])[0]
    assert found.score == 1.0 and "WITHOUT isolation" in found.detail
    assert reward.facts()["sandbox"] == "rlimits" and reward.facts()["sandbox_isolates"] is False
    isolated = code.Code(code.Options(), Context())
    assert isolated.facts()["sandbox_isolates"] is True
    assert isolated([answer(SUM)], [{"tests": SUMS[:1]}])[0].detail == ""
