"""The pretraining text of the embedded model: arithmetic with a share of general chatter."""

from __future__ import annotations

import random
from collections.abc import Iterator

from r1pipe.data.generated import arithmetic, general


def documents(seed: int, chatter: float = 0.15, **arithmetic_args: object) -> Iterator[str]:
    """An endless stream of documents, a share `chatter` of them general requests and answers.

    arithmetic_args (levels, high, wrong, mixed) go to `arithmetic.documents`.
    """
    rng = random.Random(f"corpus:{seed}")
    sums = arithmetic.documents(seed, **arithmetic_args)  # type: ignore[arg-type]
    talk = general.documents(seed)
    while True:
        yield next(talk) if rng.random() < chatter else next(sums)
