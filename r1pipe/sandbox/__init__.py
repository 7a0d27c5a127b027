"""Runs programs that nobody has read. See README.md for what is closed and what is not."""

from r1pipe.sandbox.backends import Backend, Kind, find, probe
from r1pipe.sandbox.execute import Job, Limits, Outcome, run

__all__ = ["Backend", "Job", "Kind", "Limits", "Outcome", "find", "probe", "run"]
