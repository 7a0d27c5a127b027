"""JSON as its standard has it, bounded: for the `json` reward and the instruction "answer in JSON".

Refused: NaN and Infinity, a key twice in one object, MAX_DEPTH, MAX_LENGTH. Numbers are exact (Decimal).
"""

from __future__ import annotations

import json
from decimal import Decimal, DecimalException
from typing import Any

MAX_DEPTH = 64
MAX_LENGTH = 100_000  # characters


class NotJsonError(ValueError):
    """The text is not JSON; the message says why."""


def parse(text: str) -> Any:
    """The value of a JSON text. Raises NotJsonError."""
    if len(text) > MAX_LENGTH:
        raise NotJsonError(f"longer than {MAX_LENGTH} characters")
    if _depth(text) > MAX_DEPTH:
        raise NotJsonError(f"more than {MAX_DEPTH} nested brackets")
    try:
        return json.loads(
            text, parse_int=_number, parse_float=_number, parse_constant=_refused, object_pairs_hook=_object
        )
    except json.JSONDecodeError as error:
        raise NotJsonError(f"{error.msg}: line {error.lineno}") from None


def _depth(text: str) -> int:
    """The deepest nesting of brackets outside of strings."""
    depth = deepest = 0
    inside = escaped = False
    for char in text:
        if escaped:
            escaped = False
        elif inside:
            inside, escaped = char != '"', char == "\\"
        elif char == '"':
            inside = True
        elif char in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "]}":
            depth -= 1
    return deepest


def fenced(text: str) -> str:
    """The content of the last code fence, left open or not; the text itself where there is none."""
    found, mark = None, ""
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        if mark:
            if bare == mark:
                mark = ""
            else:
                found = (found or "") + line
        elif bare[:3] in ("```", "~~~"):
            mark, found = bare[:3], ""
            if len(bare) > 6 and bare.endswith(mark):  # all on one line
                found, mark = bare[3:-3].strip().removeprefix("json"), ""
    return text if found is None else found


def same(a: Any, b: Any) -> bool:
    """Equal in type and value, to the depth of the parser; the order of keys is irrelevant; 1 equals 1.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(value, b[key]) for key, value in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def _number(text: str) -> Decimal:
    try:
        number = Decimal(text)
    except DecimalException:
        raise NotJsonError("a number beyond all bounds") from None
    if not number.is_finite():
        raise NotJsonError("a number beyond all bounds")
    return number


def _refused(name: str) -> Any:
    raise NotJsonError(f"{name} is not JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotJsonError("a key twice in one object")
    return found
