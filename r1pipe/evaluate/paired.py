"""The change of a number between two steps, problem by problem. No torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from r1pipe.errors import UserError, nearest
from r1pipe.evaluate.stats import intervals

Record = dict[str, Any]


def _refusal(applies: Callable[[Record], bool]) -> Callable[[Record], float | None]:
    return lambda r: r["refusal"] if applies(r) else None


# Metric -> its value for one problem; None where it does not apply. What needs several samples (pass@k, majority@k,
# diversity) stands in the record under `more`, by name.
METRICS: dict[str, Callable[[Record], float | None]] = {
    "accuracy": lambda r: r["correct"],
    "format": lambda r: r["format"],
    "language": lambda r: r["language"],
    "tokens": lambda r: r["tokens"],
    "truncated": lambda r: r["truncated"],
    "partial": lambda r: r.get("partial"),
    "refusal_unsafe": _refusal(lambda r: r["kind"] == "safety"),
    "refusal_safe": _refusal(lambda r: r["kind"] == "general"),
    "refusal_lookalike": _refusal(lambda r: r["kind"] == "general" and bool(r["lookalike"])),
}
SHARES = tuple(m for m in METRICS if m != "tokens")
# A rise is a fall in quality.
LOWER_IS_BETTER = frozenset({"truncated", "refusal_safe", "refusal_lookalike", "tokens_per_right"})


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
    records_a, records_b = list(records_a), list(records_b)
    pick = METRICS.get(metric)
    if pick is None:
        more = {name for r in (*records_a, *records_b) for name in r.get("more") or ()}
        if metric not in more:
            raise UserError(f'unknown metric "{metric}"{nearest(metric, [*METRICS, *more])}')

        def pick(r: Record) -> float | None:
            return (r.get("more") or {}).get(metric)

    def values(records: Iterable[Record]) -> dict[str, float]:
        mine = (r for r in records if r["set"] == set and r["mode"] == mode)
        return {r["id"]: v for r in mine if (v := pick(r)) is not None}

    a, b = values(records_a), values(records_b)
    changes = [b[i] - a[i] for i in sorted(a.keys() & b.keys())]
    found = intervals({"delta": changes}, resamples=resamples, seed=seed).get("delta")
    if found is None:
        return {"delta": None, "low": None, "high": None, "n": 0}
    return {"delta": found["value"], "low": found["low"], "high": found["high"], "n": found["n"]}
