"""The shared case files; tests skip, with the path, where they are not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

CASES = Path(__file__).parents[3] / "shared" / "cases"


def load(name: str) -> list[dict[str, Any]]:
    """Rows of `shared/cases/<name>.jsonl`."""
    path = CASES / f"{name}.jsonl"
    if not path.is_file():
        pytest.skip(f"no shared case file at {path}")
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def wrap(answer: str) -> str:
    """A completion whose answer block holds `answer`."""
    return f"<think>\nLet me see.\n</think>\n<answer>{answer}</answer>"
