"""The tests of a row, in the forms that datasets have them.

    {"stdin": "3 4\\n", "stdout": "7\\n"}                 the program reads and prints
    {"call": "add(3, 4)", "value": "7"}                  an expression, and its value as a Python literal (or in JSON)
    {"type": "stdin_stdout", "input": ..., "output": ...}                      as in verifiable-coding-problems,
    {"type": "function_call", "fn_name": ..., "input": ..., "output": ...}     under `verification_info.test_cases`

A call that compares (`add(3, 4) == 7`, with the value True) is taken apart, so that it is compared outside; one that
compares in another way (`abs(f(2) - 4) < 1e-6`) hands what is expected to the program: do not write tests so.
`input` of a function call is a list of arguments, or text with one argument in JSON a line; `output` is the value,
the value in JSON, or the value in a list of one: these datasets mix the three, so each passes, and so does a tuple
for a list. The function may be a method of a class `Solution`.
"""

from __future__ import annotations

import ast
import contextlib
import json
from dataclasses import dataclass
from typing import Any

from r1pipe.sandbox import compare
from r1pipe.sandbox.execute import Job, Outcome


@dataclass(frozen=True)
class Case:
    """One test. `expected`: the text, or the values of which one must come out; `lists`: a tuple passes for a list."""

    stdin: bytes = b""
    call: str | None = None
    function: str | None = None
    args: tuple[Any, ...] = ()
    expected: Any = ""
    lists: bool = False

    @property
    def prints(self) -> bool:
        return self.call is None and self.function is None

    def job(self, program: str) -> Job:
        return Job(program, self.stdin, self.call, self.function, self.args)

    def passes(self, outcome: Outcome, tolerance: float) -> bool:
        """The program must end by itself, with exit code 0."""
        if outcome.end != "exit" or outcome.code != 0:
            return False
        if self.prints:
            return compare.text(outcome.stdout, self.expected, tolerance)
        return any(compare.value(outcome.stdout, v, tolerance, lists=self.lists) for v in self.expected)


def read(tests: Any) -> list[Case]:
    """The tests of a row: a list, or {"test_cases": list}, or either as JSON text. Raises ValueError that says what
    is wrong with them."""
    if isinstance(tests, str):
        try:
            tests = json.loads(tests)
        except (ValueError, RecursionError):
            raise ValueError("the tests are neither a list nor JSON") from None
    if isinstance(tests, dict):
        tests = tests.get("test_cases")
    if not isinstance(tests, list | tuple) or not tests:
        raise ValueError("the row has no tests")
    cases = []
    for number, test in enumerate(tests, 1):
        try:
            cases.append(_case(test))
        except ValueError as error:
            raise ValueError(f"test {number}: {error}") from None
    if all(case.prints and not case.expected.strip() for case in cases):
        raise ValueError("no test expects any output")
    return cases


def _case(test: Any) -> Case:
    if not isinstance(test, dict):
        raise ValueError("not an object")
    kind = test.get("type")
    if kind == "stdin_stdout":
        return _prints(test.get("input"), test.get("output"))
    if kind == "function_call":
        return _function(test)
    if kind is not None:
        raise ValueError(f"unknown type {kind!r}")
    if test.get("call") is not None:  # columns of a table: the other form's fields are there, and null
        return _call(test["call"], test.get("value"), "value" in test)
    if "stdout" in test:
        return _prints(test.get("stdin"), test["stdout"])
    raise ValueError(f"expected stdin and stdout, or call and value (found: {', '.join(map(str, test)) or 'nothing'})")


def _prints(stdin: Any, stdout: Any) -> Case:
    stdin = "" if stdin is None else stdin
    if not isinstance(stdin, str) or not isinstance(stdout, str):
        raise ValueError("what is read and printed must be text")
    return Case(stdin=stdin.encode(errors="surrogateescape"), expected=stdout)


def _call(call: Any, value: Any, given: bool) -> Case:
    if not isinstance(call, str) or not call.strip() or not given:
        raise ValueError("a call is text, with a value")
    if value is True or value == "True":
        call, value = _split(call) or (call, value)
    if not isinstance(value, str):
        return Case(call=call.strip(), expected=(value,), lists=True)
    try:
        return Case(call=call.strip(), expected=(compare.literal(value),))
    except ValueError as error:
        raise ValueError(f"the value {value[:40]!r} is {error}; a string has its own quotes") from None


def _split(call: str) -> tuple[str, str] | None:
    """`f(2) == 4`, expected to be True: the call, and the value that it must have. Compared inside the sandbox, an
    object that says it equals everything would pass, and the program would see what is expected."""
    try:
        tree = ast.parse(call.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not (isinstance(tree, ast.Compare) and len(tree.ops) == 1 and isinstance(tree.ops[0], ast.Eq | ast.Is)):
        return None
    right = ast.unparse(tree.comparators[0])
    try:
        compare.literal(right)
    except ValueError:
        return None
    return ast.unparse(tree.left), right


def _function(test: dict[str, Any]) -> Case:
    name, given, output = test.get("fn_name"), test.get("input"), test.get("output")
    if not isinstance(name, str) or not name.isidentifier() or "output" not in test:
        raise ValueError("a function call has fn_name, input and output")
    if isinstance(given, str):
        try:
            given = [json.loads(line) for line in given.splitlines() if line.strip()]
        except (ValueError, RecursionError):
            raise ValueError("the input has one JSON value a line, or is a list") from None
    if not isinstance(given, list | tuple):
        raise ValueError("the input is a list of arguments")
    expected = [output]
    if isinstance(output, str):
        with contextlib.suppress(ValueError, RecursionError):
            expected.append(json.loads(output))
    elif isinstance(output, list) and len(output) == 1:
        expected.append(output[0])
    return Case(function=name, args=tuple(given), expected=tuple(expected), lists=True)
