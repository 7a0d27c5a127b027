"""What a user is told when something is wrong; one place maps these to exit codes (`cli/app.py`)."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """A fault the user can mend: what was found, what was expected, what to do. Exit code 2.

    `hint` is the next step (a command, or a key to change).
    """

    exit_code = 2

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  → {self.hint}" if self.hint else self.message


class StepFailed(UserError):
    """A step ran and failed; its log says why. Exit code 1; 2 where its input was to blame."""

    exit_code = 1


def nearest(name: str, known: Iterable[str]) -> str:
    """` (did you mean "x"?)`, or the known names where nothing is near; for the end of a message."""
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if close:
        return f' (did you mean "{close[0]}"?)'
    return f" (known: {', '.join(known)})" if known else ""
