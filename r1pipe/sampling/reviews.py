"""What a person decided about samples: a log beside the step, and an input of the next run of it.

A sealed dataset is never changed. `r1pipe samples RUN --review` adds a line a decision to `reviews.jsonl`; a run of
the step whose `reviews` name that file takes its samples over, makes none again, and seals a dataset with the
decisions applied. The file's digest is part of its fingerprint, like that of every other data source.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from r1pipe.data import files
from r1pipe.errors import UserError

FILE = "reviews.jsonl"
Action = Literal["accept", "edit", "reject"]
ACTIONS = ("accept", "edit", "reject")


@dataclass(frozen=True)
class Decision:
    """`id`: that of the row which the sample makes. `text`: the edited completion."""

    id: str
    action: Action
    text: str = ""


def read(path: Path) -> dict[str, Decision]:
    """The last decision about each sample. Raises UserError, naming the line, for a file that is none of ours."""
    found: dict[str, Decision] = {}
    for number, row in enumerate(_rows(path), start=1):
        name, action, text = row.get("id"), row.get("action"), row.get("text", "")
        if action == "undo":
            found.pop(str(name), None)
            continue
        edited = isinstance(text, str) and bool(text.strip())
        if not isinstance(name, str) or action not in ACTIONS or (action == "edit" and not edited):
            raise UserError(
                f"{path} line {number} is no decision: expected id, action ({', '.join(ACTIONS)}) and, for an edit, "
                "text",
                hint="r1pipe samples RUN --review writes such files",
            )
        found[name] = Decision(name, action, text)
    return found


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    if not path.is_file():
        raise UserError(f"there is no file {path.absolute()} of reviews", hint="r1pipe samples RUN --review")
    yield from files.read(path, lambda reason: None)  # a torn last line was never answered
