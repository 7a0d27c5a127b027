"""The training curves of an attempt: the lines that the trainer logged (`work/**/log*.jsonl`), thinned for a page."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from r1pipe.store import Attempt, read_lines

Row = dict[str, Any]
Points = list[tuple[float, float]]
MOST = 400  # points of a curve; more are averaged in buckets

# What a chart shows: title, keys of the log, band (low, high) or (spread,), is it a share?
Chart = tuple[str, tuple[str, ...], tuple[str, ...], bool]
REWARD: Chart = ("reward", ("reward",), ("reward_std",), False)
RL: tuple[Chart, ...] = (
    REWARD,
    ("length, tokens", ("completions/mean_length",), ("completions/min_length", "completions/max_length"), False),
    ("KL to the reference", ("kl",), (), False),
    ("entropy", ("entropy",), (), False),
    ("gradient norm", ("grad_norm",), (), False),
    ("groups without signal", ("frac_reward_zero_std",), (), True),
    ("cut off", ("completions/clipped_ratio",), (), True),
)
SUPERVISED: tuple[Chart, ...] = (
    ("loss", ("loss",), (), False),
    ("token accuracy", ("mean_token_accuracy",), (), True),
    ("pair accuracy", ("accuracy",), (), True),
    ("entropy", ("entropy",), (), False),
    ("gradient norm", ("grad_norm",), (), False),
)
WANTED = ("reward", "length, tokens", "KL to the reference", "entropy", "gradient norm", "groups without signal")


@dataclass
class History:
    """The log of one trainer; a step that trains two models has two."""

    name: str
    rows: list[Row]
    broken: list[str] = field(default_factory=list)  # numbers that were not finite, as sentences

    @property
    def rl(self) -> bool:
        return any("reward" in row for row in self.rows)

    @property
    def charts(self) -> tuple[Chart, ...]:
        """The charts that have something to show."""
        if not self.rl:
            return tuple(c for c in SUPERVISED if self.points(c[1][0]))
        parts = ("parts of the reward", tuple(self.parts()), (), False)
        found = [c for c in RL if self.points(c[1][0])]
        return (*found[:1], *([parts] if parts[1] else []), *found[1:])

    @property
    def missing(self) -> list[str]:
        """Curves of an RL step that this log has nothing for."""
        shown = {title for title, *_ in self.charts}
        return [title for title in WANTED if title not in shown] if self.rl else []

    def parts(self) -> list[str]:
        """`reward/accuracy`, …: the parts of the composed reward, in the order of the log."""
        keys = dict.fromkeys(key for row in self.rows for key in row)
        return [k for k in keys if k.startswith("reward/") and k.count("/") == 1 and k != "reward/total"]

    def points(self, key: str) -> Points:
        """(training step, value) of one number; what is not finite is left out and stands in `broken`."""
        return [
            (float(row["step"]), float(row[key]))
            for row in self.rows
            if isinstance(row.get(key), int | float) and math.isfinite(row[key])
        ]


def read(attempt: Attempt) -> list[History]:
    """Every log of an attempt, the step's own first."""
    paths = [*sorted(attempt.work.glob("log*.jsonl")), *sorted(attempt.work.glob("*/log*.jsonl"))]
    found = []
    for path in paths:
        rows = [row for row in read_lines(path) if isinstance(row.get("step"), int | float)]
        if rows:
            history = History(path.stem.removeprefix("log").removeprefix("-"), rows)
            history.broken = _broken(rows)
            found.append(history)
    return found


def _broken(rows: list[Row]) -> list[str]:
    """Numbers that were not finite, each named once with the first step where it was so."""
    first: dict[str, tuple[int, float]] = {}
    for row in rows:
        for key, value in row.items():
            if isinstance(value, float) and not math.isfinite(value):
                first.setdefault(key, (int(row["step"]), value))
    return [f"{key} was {value} at training step {step}" for key, (step, value) in first.items()]


def thin(points: Points, most: int = MOST) -> tuple[Points, int]:
    """At most `most` points, each the mean of a bucket, and the size of a bucket."""
    size = math.ceil(len(points) / most) if points else 1
    if size <= 1:
        return points, 1
    buckets = [points[i : i + size] for i in range(0, len(points), size)]
    return [(sum(x for x, _ in b) / len(b), sum(y for _, y in b) / len(b)) for b in buckets], size


def smooth(points: Points) -> Points:
    """A centred running mean over a fifteenth of the curve; nothing where there is little to smooth."""
    half = len(points) // 30
    if half < 1:
        return []
    out = []
    for i, (x, _) in enumerate(points):
        near = points[max(0, i - half) : i + half + 1]
        out.append((x, sum(y for _, y in near) / len(near)))
    return out
