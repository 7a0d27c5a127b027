"""Mixtures: several sources by their weights."""

from __future__ import annotations

import random
from collections.abc import Sequence

from r1pipe.data.rows import Row
from r1pipe.errors import UserError
from r1pipe.settings import DataSpec


def check(specs: Sequence[DataSpec]) -> None:
    """Raises UserError where only some of the sources have a weight."""
    without = [spec.source for spec in specs if spec.weight is None]
    if without and len(without) < len(specs):
        raise UserError(
            f"some data entries have a weight and some have none: {', '.join(without)}",
            hint="give all entries of the list a weight, or none (then all their rows are taken)",
        )


def mixed(loaded: Sequence[list[Row]], weights: Sequence[float], seed: int) -> tuple[list[Row], list[int]]:
    """Rows in the shares of the weights, and how many of each source were left over.

    As many as the shares allow without taking a row twice: the source that is used up first sets the total. Each
    source gives its first rows, in its order; the order of the mixture is drawn from the seed.
    """
    total = sum(weights)
    size = min(len(rows) * total / weight for rows, weight in zip(loaded, weights, strict=True))
    taken = [min(len(rows), round(size * weight / total)) for rows, weight in zip(loaded, weights, strict=True)]
    places = [source for source, n in enumerate(taken) for _ in range(n)]
    random.Random(f"{seed}/mixture").shuffle(places)
    each = [iter(rows) for rows in loaded]
    return [next(each[source]) for source in places], [len(r) - n for r, n in zip(loaded, taken, strict=True)]
