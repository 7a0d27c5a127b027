"""Rows for the benchmark: completions whose verdict is known by how they were made. Same seed, same rows.

Each kind (`kinds/*.py`) makes a gold answer, right answers in other notations, and near misses; no verifier is asked.
A deck holds every kind as often as its weight says (about half are plain numbers and fractions, as in data sets of
mathematics) and is shuffled anew each time it is used up, so a few hundred rows hold every kind. Row i does not depend
on how many rows are asked for. Completions think for 50 to 300 words first; most box their answer, in answer tags or
after the thinking as R1 does.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bench.rewards import cot
from bench.rewards.kinds import (
    algebra,
    collections,
    conditions,
    constants,
    expressions,
    hostile,
    layout,
    numbers,
    quantities,
    words,
)
from bench.rewards.kinds.base import Answer, Kind

ORDINARY: dict[str, tuple[int, Kind]] = {
    name: entry
    for family in (numbers, quantities, constants, expressions, algebra, collections, conditions, words, layout)
    for name, entry in family.KINDS.items()
}
HOSTILE = hostile.KINDS
TRIES = 12  # to find a pair of gold and answer that is not there yet


@dataclass(frozen=True)
class Row:
    """A completion, its gold answer, and what a careful mathematician pays for it."""

    kind: str
    gold: str
    answer: str  # as the kind wrote it, before it was put into a completion
    completion: str
    expected: float


def generate(rows: int, seed: int, kinds: Iterable[str] | None = None) -> list[Row]:
    """Ordinary rows, of the given kinds only where some are given."""
    chosen = list(ORDINARY if kinds is None else kinds)
    if unknown := [name for name in chosen if name not in ORDINARY]:
        raise ValueError(f"unknown kinds {unknown}; there are {sorted(ORDINARY)}")
    return _deal(rows, f"ordinary {seed}", {name: ORDINARY[name] for name in chosen})


def with_hostile(ordinary: list[Row], share: float, seed: int) -> list[Row]:
    """The ordinary rows with hostile ones among them, so that these are `share` of all."""
    count = round(len(ordinary) * share / (1 - share))
    rng = random.Random(f"places {seed}")
    rows = list(ordinary)
    for row in _deal(count, f"hostile {seed}", HOSTILE):
        rows.insert(rng.randrange(len(rows) + 1), row)
    return rows


def _deal(count: int, seed: str, kinds: Mapping[str, tuple[int, Kind]]) -> list[Row]:
    rows: list[Row] = []
    seen: set[tuple[str, str]] = set()
    deck: list[str] = []
    shuffle = random.Random(f"deck {seed}")
    for index in range(count):
        if not deck:
            deck = [name for name, (weight, _) in kinds.items() for _ in range(weight)]
            shuffle.shuffle(deck)
        name = deck.pop()
        rng = random.Random(f"row {seed} {index}")
        for _ in range(TRIES):
            gold, answer, expected = _draw(kinds[name][1], rng)
            if (gold, answer.text) not in seen:
                break
        seen.add((gold, answer.text))
        rows.append(Row(name, gold, answer.text, cot.completion(answer, rng), expected))
    return rows


def _draw(kind: Kind, rng: random.Random) -> tuple[str, Answer, float]:
    case = kind(rng)
    right = bool(case.right) and (not case.wrong or rng.random() < 0.54)  # some kinds have no right answers
    picked = rng.choice(list(case.right if right else case.wrong))
    return case.gold, picked if isinstance(picked, Answer) else Answer(picked), float(right)
