"""Evaluation of a policy after each step, with intervals, and the paired comparison of two steps."""

from __future__ import annotations

from typing import Any

from r1pipe.evaluate.paired import METRICS, paired

__all__ = ["METRICS", "paired", "run"]


def __getattr__(name: str) -> Any:
    if name == "run":  # it brings the verifiers, which who only compares does not wait for
        from r1pipe.evaluate.suite import run

        return run
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
