"""Single values of people's records: as text, as a number, as a flag. Wrong types are None, never a crash."""

from __future__ import annotations

import json
import math
import re
from typing import Any

Record = dict[str, Any]


class Drop(Exception):
    """A record that cannot become a row; its text is the reason, counted as data/dropped/<reason>."""


class Float(float):
    """A decimal of a JSON file that remembers its digits: 0.50 is a number, and its text is "0.50"."""

    __slots__ = ("digits",)
    digits: str

    def __new__(cls, digits: str) -> Float:
        self = super().__new__(cls, digits)
        self.digits = digits
        return self

    def __str__(self) -> str:
        return self.digits

    def __reduce__(self) -> tuple[Any, ...]:
        return Float, (self.digits,)


def text(value: Any) -> str | None:
    """A value as text, digits kept; None for null, blank, NaN and what has no text. True is "True", never "1"; a list
    gets commas, a list in it brackets."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, bool | int):
        return str(value)
    if isinstance(value, Float):
        return value.digits
    if isinstance(value, float):
        return str(value) if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        parts = [f"({t})" if isinstance(v, list | tuple) else t for v in value if (t := text(v))]
        return ", ".join(parts) or None
    if isinstance(value, dict | bytes | bytearray):
        return None
    return str(value).strip() or None  # Decimal, dates


def first(record: Record, *names: str) -> str | None:
    """The first of the columns that is not empty."""
    return next((t for n in names if (t := text(record.get(n)))), None)


def required(value: Any, reason: str) -> str:
    """A text, stripped. Raises Drop(reason) for anything else."""
    found = value.strip() if isinstance(value, str) else None
    if not found:
        raise Drop(reason)
    return found


def number(value: Any) -> float | None:
    """A finite number, also from its text; None otherwise, and for a truth value."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        value = value.strip()
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def flag(value: Any) -> bool | None:
    """True or False, also from 1/0, "yes"/"no", "true"/"false"; None where it says neither."""
    if isinstance(value, bool):
        return value
    found = text(value)
    return _FLAGS.get(re.sub(r"\.0$", "", found.lower())) if found else None


def items(value: Any) -> list[Any] | None:
    """A list, also from its JSON text (as CSV files hold it); None for anything else."""
    value = parsed(value)
    return list(value) if isinstance(value, list | tuple) else None


def parsed(value: Any) -> Any:
    """The list or object that a text is the JSON of; any other value as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value
