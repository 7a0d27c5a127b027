"""Evaluation of a policy after each step, with intervals, and the paired comparison of two steps."""

from __future__ import annotations

from r1pipe.evaluate.paired import METRICS, paired
from r1pipe.evaluate.suite import run

__all__ = ["METRICS", "paired", "run"]
