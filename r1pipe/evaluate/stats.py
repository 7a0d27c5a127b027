"""Bootstrap intervals over problems. numpy alone, imported when needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Number = dict[str, Any]  # {"value", "low", "high", "n"}
CELLS = 8_000_000  # most cells of a block of resampling weights: bounds the memory


def _resamples(problems: int, resamples: int, seed: int) -> Iterator[Any]:
    """How often each problem is drawn in each resample, [resamples, problems], in blocks."""
    import numpy as np

    rng = np.random.Generator(np.random.Philox(key=seed & 0xFFFFFFFFFFFFFFFF))
    left = resamples
    while left:
        size = min(left, max(1, CELLS // problems))
        drawn = rng.integers(0, problems, (size, problems)) + np.arange(size)[:, None] * problems
        yield np.bincount(drawn.ravel(), minlength=size * problems).reshape(size, problems).astype(np.float64)
        left -= size


def intervals(
    columns: Mapping[str, Sequence[float | None]],
    *,
    resamples: int,
    seed: int,
    bounded: Sequence[str] = (),
) -> dict[str, Number]:
    """Mean and 95 % interval of each column; entry i of every column belongs to problem i (None: does not apply).

    Problems are resampled, not samples: k samples of one problem count as one. For a column named in `bounded`
    (shares in [0, 1]) whose every value is the same end of the range, resampling knows no doubt: the exact bound
    of a proportion is given instead. A column without a value is left out.
    """
    import numpy as np

    table = {name: column for name, column in columns.items() if any(v is not None for v in column)}
    if not table:
        return {}
    values = np.array([[np.nan if v is None else float(v) for v in c] for c in table.values()]).T
    present = ~np.isnan(values)
    filled = np.where(present, values, 0.0)
    problems = len(values)
    means = []
    for weights in _resamples(problems, resamples, seed):
        with np.errstate(invalid="ignore"):  # 0/0: a resample without any problem that applies
            means.append((weights @ filled) / (weights @ present))
    low, high = np.nanpercentile(np.concatenate(means), [2.5, 97.5], axis=0)
    out = {}
    for j, name in enumerate(table):
        n = int(present[:, j].sum())
        value = float(filled[:, j].sum() / n)
        ends = (float(low[j]), float(high[j]))
        if name in bounded and value in (0.0, 1.0):
            doubt = 1 - 0.025 ** (1 / n)
            ends = (0.0, doubt) if value == 0.0 else (1 - doubt, 1.0)
        out[name] = {"value": round(value, 6), "low": round(ends[0], 6), "high": round(ends[1], 6), "n": n}
    return out


def ratio(above: Sequence[float], below: Sequence[float], *, resamples: int, seed: int) -> Number | None:
    """Sum over sum, with a 95 % interval; entry i belongs to problem i. None where `below` sums to nothing; an end
    of the interval is None where more than its share of the resamples have nothing below."""
    import numpy as np

    columns = np.array([above, below], dtype=np.float64).T
    total = columns.sum(0)
    if not len(columns) or not total[1]:
        return None
    found = []
    for weights in _resamples(len(columns), resamples, seed):
        sums = weights @ columns
        with np.errstate(divide="ignore", invalid="ignore"):
            found.append(np.where(sums[:, 1] > 0, sums[:, 0] / sums[:, 1], np.inf))
    ends = np.percentile(np.concatenate(found), [2.5, 97.5], method="nearest")
    low, high = (round(float(e), 6) if np.isfinite(e) else None for e in ends)
    return {"value": round(float(total[0] / total[1]), 6), "low": low, "high": high, "n": len(columns)}
