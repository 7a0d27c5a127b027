"""The change of a number between two steps, problem by problem. No torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from r1pipe.errors import UserError, nearest
from r1pipe.evaluate.stats import intervals

Record = dict[str, Any]


def _refusal(applies: Callable[[Record], bool]) -> Callable[[Record], float | None]:
    return lambda r: r["refusal"] if applies(r) else None


# Metric -> its value for one problem; None where it does not apply.
METRICS: dict[str, Callable[[Record], float | None]] = {
    "accuracy": lambda r: r["correct"],
    "format": lambda r: r["format"],
    "language": lambda r: r["language"],
    "tokens": lambda r: r["tokens"],
    "truncated": lambda r: r["truncated"],
    "refusal_unsafe": _refusal(lambda r: r["kind"] == "safety"),
    "refusal_safe": _refusal(lambda r: r["kind"] == "general"),
    "refusal_lookalike": _refusal(lambda r: r["kind"] == "general" and bool(r["lookalike"])),
}
SHARES = tuple(m for m in METRICS if m != "tokens")


def paired(
    records_a: Iterable[Record],
    records_b: Iterable[Record],
    metric: str,
    set: str,
    mode: str,
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> dict[str, Any]:
    """{"delta", "low", "high", "n"}: b minus a over the problems that both have, with a paired 95 % bootstrap.

    Values are None and n is 0 where the two share no problem.
    """
    if metric not in METRICS:
        raise UserError(f'unknown metric "{metric}"{nearest(metric, METRICS)}')
    pick = METRICS[metric]

    def values(records: Iterable[Record]) -> dict[str, float]:
        mine = (r for r in records if r["set"] == set and r["mode"] == mode)
        return {r["id"]: v for r in mine if (v := pick(r)) is not None}

    a, b = values(records_a), values(records_b)
    changes = [b[i] - a[i] for i in sorted(a.keys() & b.keys())]
    found = intervals({"delta": changes}, resamples=resamples, seed=seed).get("delta")
    if found is None:
        return {"delta": None, "low": None, "high": None, "n": 0}
    return {"delta": found["value"], "low": found["low"], "high": found["high"], "n": found["n"]}
