"""MinHash with banding, in numpy: which texts may share most of their word n-grams.

`datasketch` does the same and was left out: it needs scipy, and hashes row by row in Python. Here the n-grams of all
texts are hashed at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

PERMUTATIONS = 64
BLOCK = 4_000_000  # n-grams at a time, so that memory stays bounded
MOST_COMPARED = 64  # kept texts of one bucket that a text is compared with


class Grams:
    """Hashes of the word n-grams of every text; a shorter text is one n-gram."""

    def __init__(self, texts: Sequence[Sequence[str]], n: int) -> None:
        import numpy as np

        numbers: dict[str, int] = {"": 0}
        flat: list[int] = []
        borders = [0]
        for text in texts:
            flat += [numbers.setdefault(token, len(numbers)) for token in text]
            flat += [0] * (n - len(text))
            borders.append(len(flat))
        generator = np.random.Generator(np.random.PCG64(1))
        ids = np.asarray(flat, dtype=np.uint32)
        of_token = generator.integers(0, 1 << 63, len(numbers), dtype=np.uint64)
        places = np.ones(len(flat), dtype=bool)
        for back in range(1, n):
            places[np.asarray(borders[1:]) - back] = False  # no n-gram goes over the end of its text
        starts = np.flatnonzero(places)
        hashes = np.zeros(len(starts), dtype=np.uint64)
        for ahead in range(n):
            hashes = hashes * np.uint64(0x9E3779B97F4A7C15) + of_token[ids[starts + ahead]]
        hashes ^= hashes >> np.uint64(32)
        self.hashes = hashes
        self.borders = np.asarray(borders) - np.arange(len(borders)) * (n - 1)

    def of(self, text: int) -> set[int]:
        """The n-grams of one text."""
        return set(self.hashes[self.borders[text] : self.borders[text + 1]].tolist())

    def signatures(self, wanted: Sequence[int]) -> np.ndarray:
        """A row of PERMUTATIONS minima for each wanted text."""
        import numpy as np

        generator = np.random.Generator(np.random.PCG64(2))
        factors = generator.integers(0, 1 << 62, PERMUTATIONS, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
        offsets = generator.integers(0, 1 << 62, PERMUTATIONS, dtype=np.uint64)
        found = np.empty((len(wanted), PERMUTATIONS), dtype=np.uint32)
        sizes = np.asarray([self.borders[i + 1] - self.borders[i] for i in wanted])
        start = 0
        while start < len(wanted):
            end = start + max(1, int(np.searchsorted(np.cumsum(sizes[start:]), BLOCK, side="right")))
            flat = np.concatenate([self.hashes[self.borders[i] : self.borders[i + 1]] for i in wanted[start:end]])
            places = np.concatenate([[0], np.cumsum(sizes[start:end])[:-1]])
            for p in range(PERMUTATIONS):
                mixed = ((flat * factors[p] + offsets[p]) >> np.uint64(32)).astype(np.uint32)
                found[start:end, p] = np.minimum.reduceat(mixed, places)
            start = end
        return found


def bands(threshold: float) -> tuple[int, int]:
    """Number of bands and rows in each: texts at the threshold meet in a band with a probability over 0.95."""
    for rows in (8, 4, 2):
        count = PERMUTATIONS // rows
        if 1 - (1 - threshold**rows) ** count > 0.95:
            return count, rows
    return PERMUTATIONS, 1


def candidates(grams: Grams, keys: Sequence[str], threshold: float, compare: Callable[[int, int], bool]) -> None:
    """Calls `compare(earlier, later)` for texts with the same key that meet in a band, until it says True: the later
    one is then gone and compared with nothing more."""
    groups: dict[str, list[int]] = {}
    for index, key in enumerate(keys):
        groups.setdefault(key, []).append(index)
    wanted = sorted(i for group in groups.values() if len(group) > 1 for i in group)
    if not wanted:
        return
    number = {key: i for i, key in enumerate(groups)}
    count, rows = bands(threshold)
    banded = grams.signatures(wanted).reshape(len(wanted), count, rows)
    buckets: dict[tuple[int, int, bytes], list[int]] = {}
    for position, index in enumerate(wanted):
        group_number = number[keys[index]]
        places = [(band, group_number, banded[position, band].tobytes()) for band in range(count)]
        met = {i for place in places for i in buckets.get(place, ())[:MOST_COMPARED]}
        if any(compare(other, index) for other in sorted(met)):
            continue
        for place in places:
            buckets.setdefault(place, []).append(index)
