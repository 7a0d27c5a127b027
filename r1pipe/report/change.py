"""Where a curve changes its trend.

The best division into straight pieces, by dynamic programming over every pair of ends; the number of pieces is what
BIC picks. A curve that rises evenly has no change point: pieces are lines, not levels. numpy alone: a library for
change points (ruptures) would bring scipy for thirty lines.
"""

from __future__ import annotations

from collections.abc import Sequence

FEWEST = 24  # values below which nothing is said
MOST = 3  # change points of a curve
_LONGEST = 200  # values that are looked at; longer curves are averaged


def change_points(values: Sequence[float]) -> list[int]:
    """Indices at which a new trend begins; empty where one straight line says it all."""
    import numpy as np

    y = np.asarray(values, dtype=float)
    if len(y) < FEWEST or not np.isfinite(y).all() or float(np.ptp(y)) == 0.0:
        return []
    size = -(-len(y) // _LONGEST)
    y = np.array([y[i : i + size].mean() for i in range(0, len(y), size)])
    n = len(y)
    least = max(6, n // 12)  # a piece of fewer values is noise
    x = np.arange(n, dtype=float)
    y = (y - y.mean()) / (y.std() or 1.0)

    def prefix(v: np.ndarray) -> np.ndarray:
        return np.concatenate([[0.0], np.cumsum(v)])

    sums = [prefix(v) for v in (np.ones(n), x, y, x * x, x * y, y * y)]
    m, sx, sy, sxx, sxy, syy = (s[None, :] - s[:, None] for s in sums)  # [i, j]: over values i to j-1
    with np.errstate(divide="ignore", invalid="ignore"):
        vx, vy, vxy = sxx - sx * sx / m, syy - sy * sy / m, sxy - sx * sy / m
        error = vy - vxy * vxy / vx
    error = np.where(m >= least, np.maximum(error, 0.0), np.inf)

    best, back = error[0].copy(), []
    scores = [_bic(best[n], n, 1)]
    for pieces in range(2, MOST + 2):
        total = best[:, None] + error
        back.append(total.argmin(axis=0))
        best = total.min(axis=0)
        scores.append(_bic(best[n], n, pieces))
    pieces = int(np.argmin(scores)) + 1
    found, end = [], n
    for column in reversed(back[: pieces - 1]):
        end = int(column[end])
        found.append(end * size)
    return sorted(found)


def _bic(error: float, n: int, pieces: int) -> float:
    """Two parameters a piece; the place of a change counts three times, since the best of many places is taken."""
    import math

    if not math.isfinite(error):
        return math.inf
    return n * math.log(max(error, 1e-9 * n) / n) + (2 * pieces + 3 * (pieces - 1)) * math.log(n)
