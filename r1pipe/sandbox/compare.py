"""What came out against what was expected: here, outside the sandbox, on bytes and plain values.

Text, line by line. Line ends, white space at the end of a line and blank lines at either end of the text do not
count. Single spaces and no indentation in what is expected: the words of a line are compared; else its layout counts
too. A word that is expected as a decimal (`0.5`, `1e-3`) may differ by the tolerance, relative or absolute; integers
and all else are compared as text (`3.0` is not `3`). nan and inf are words like others.

Values: types count (True is not 1, a tuple no list), except that an integer and a float that are equal are, and that
a float may differ by the tolerance. nan is nan, sets and dicts have no order.
"""

from __future__ import annotations

import ast
import json
import math
import re
from typing import Any

from r1pipe.sandbox.runner import encode

MAX_WORD = 400  # characters of a number
MAX_LITERAL = 2_000_000  # characters of an expected value

_DECIMAL = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_LAYOUT = re.compile(r"^[ \t]|[ \t]{2}|\t")
_PARTS = re.compile(r"\s+|\S+")


def text(got: bytes, expected: str, tolerance: float) -> bool:
    """Is the output the one that is expected?"""
    left, right = _lines(got.decode(errors="surrogateescape")), _lines(expected)
    if left == right:
        return True
    if len(left) != len(right):
        return False
    layout = any(_LAYOUT.search(line) for line in right)
    return all(a == b or _same_line(a, b, layout, tolerance) for a, b in zip(left, right, strict=True))


def _lines(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    start = next((i for i, line in enumerate(lines) if line), 0)
    return lines[start:]


def _same_line(got: str, expected: str, layout: bool, tolerance: float) -> bool:
    left, right = (_PARTS.findall(x) if layout else x.split() for x in (got, expected))
    return len(left) == len(right) and all(
        a == b or _same_word(a, b, tolerance) for a, b in zip(left, right, strict=True)
    )


def _same_word(got: str, expected: str, tolerance: float) -> bool:
    if len(got) > MAX_WORD or len(expected) > MAX_WORD:
        return False
    return bool(_DECIMAL.fullmatch(expected) and _NUMBER.fullmatch(got)) and _near(
        float(got), float(expected), tolerance
    )


def _near(got: float, expected: float, tolerance: float) -> bool:
    if not (math.isfinite(got) and math.isfinite(expected)):
        return got == expected or (math.isnan(got) and math.isnan(expected))
    return abs(got - expected) <= tolerance * max(1.0, abs(expected))


def value(got: bytes, expected: Any, tolerance: float, *, lists: bool = False) -> bool:
    """Is the value that a call sent (`runner.encode`) the one that is expected? `lists`: a tuple passes for a list,
    where what is expected was written in JSON."""
    try:
        return _same(json.loads(got), expected, tolerance, lists)
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError):
        return False  # not what `encode` writes: the program's own invention, or nothing


def _same(got: Any, expected: Any, tolerance: float, lists: bool) -> bool:
    if expected is None or isinstance(expected, bool):
        return got is expected
    if not isinstance(got, list):
        return False
    tag, *rest = got
    match expected:
        case int() | float() if tag in ("i", "f"):
            number = int(rest[0], 16) if tag == "i" else float.fromhex(rest[0])
            if isinstance(expected, int):
                return number == expected
            return _near(float(number), expected, tolerance)
        case complex() if tag == "c":
            real, imaginary = (float.fromhex(x) for x in rest)
            return _near(real, expected.real, tolerance) and _near(imaginary, expected.imag, tolerance)
        case str():
            return got == ["s", expected]
        case bytes():
            return got == ["b", expected.hex()]
        case list() | tuple() if tag == ("l" if isinstance(expected, list) else "t") or (lists and tag in ("l", "t")):
            return _same_items(rest[0], list(expected), tolerance, lists)
        case set() | frozenset() if tag == "S":
            wanted = json.loads(encode(expected))
            return got == wanted or _same_numbers(rest[0], list(expected), tolerance)
        case dict() if tag == "d":
            items = rest[0]
            found = {json.dumps(k): v for k, v in zip(items[::2], items[1::2], strict=True)}
            keys = {json.dumps(json.loads(encode(k))): v for k, v in expected.items()}
            return (
                len(items) == 2 * len(keys)
                and found.keys() == keys.keys()
                and all(_same(found[k], v, tolerance, lists) for k, v in keys.items())
            )
    return False


def _same_items(got: Any, expected: list[Any], tolerance: float, lists: bool) -> bool:
    return len(got) == len(expected) and all(_same(a, b, tolerance, lists) for a, b in zip(got, expected, strict=True))


def _same_numbers(got: Any, expected: list[Any], tolerance: float) -> bool:
    """Sets of floats: in order of size, each near its fellow."""
    if len(got) != len(expected) or not all(isinstance(x, float) for x in expected):
        return False
    numbers = sorted(float.fromhex(item[1]) for item in got if item[0] == "f")
    return len(numbers) == len(expected) and all(
        _near(a, b, tolerance) for a, b in zip(numbers, sorted(expected), strict=True)
    )


def literal(source: str) -> Any:
    """The value of a Python literal; `nan`, `inf`, `float("nan")`, `set()` and `frozenset({...})` too. Raises
    ValueError."""
    if len(source) > MAX_LITERAL:
        raise ValueError(f"longer than {MAX_LITERAL} characters")
    try:
        return _build(ast.parse(source.strip(), mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError, TypeError) as error:
        raise ValueError(f"not a Python literal ({type(error).__name__})") from None


def _build(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=value) if value is not ...:
            return value
        case ast.Name(id=("nan" | "inf") as name):
            return float(name)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
            number = _build(operand)
            if isinstance(number, int | float | complex) and not isinstance(number, bool):
                return -number if isinstance(sign, ast.USub) else number
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as sign, right=ast.Constant(value=complex() as right)):
            number = _build(left)
            if isinstance(number, int | float):
                return number + right if isinstance(sign, ast.Add) else number - right
        case ast.List(elts=items):
            return [_build(item) for item in items]
        case ast.Tuple(elts=items):
            return tuple(_build(item) for item in items)
        case ast.Set(elts=items):
            return {_build(item) for item in items}
        case ast.Dict(keys=keys, values=values) if None not in keys:
            return {_build(k): _build(v) for k, v in zip(keys, values, strict=True) if k is not None}
        case ast.Call(func=ast.Name(id="set"), args=[], keywords=[]):
            return set()
        case ast.Call(func=ast.Name(id="frozenset"), args=[] | [_] as items, keywords=[]):
            return frozenset(_build(items[0])) if items else frozenset()
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str() as name)], keywords=[]):
            return float(name)
    raise ValueError("not a Python literal")
