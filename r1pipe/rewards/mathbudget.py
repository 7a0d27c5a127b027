"""How much may be computed for one comparison: about a second, counted in steps so that verdicts are the same on any
machine. Each thread has its own count; `restart` begins a comparison."""

from __future__ import annotations

import threading

from r1pipe.rewards.mathlex import TooHard

LIMIT = 1_000_000  # about a microsecond each

_local = threading.local()


def restart() -> None:
    _local.left = LIMIT


def spend(cost: int) -> None:
    """Raises TooHard when the comparison has used up its budget."""
    left = getattr(_local, "left", LIMIT) - cost
    _local.left = left
    if left < 0:
        raise TooHard("too much to compute")
