"""Draws the next token of each row from one uniform number a row."""

from __future__ import annotations

import numpy as np
import torch


def uniforms(seeds: list[int], steps: int) -> torch.Tensor:
    """[rows, steps] of float32 in [0, 1): row i depends on seeds[i] alone."""
    rows = [np.random.Generator(np.random.Philox(key=s)).random(steps, dtype=np.float32) for s in seeds]
    return torch.from_numpy(np.stack(rows))


def pick(logits: torch.Tensor, u: torch.Tensor | None, temperature: float, top_p: float) -> torch.Tensor:
    """Token ids [rows] from logits [rows, vocabulary]; greedy where `u` is None.

    By inverting the cumulative distribution: one uniform number a row, where Gumbel noise would need one a
    token of the vocabulary. A token outside the top-p nucleus or with probability 0 is never drawn.
    """
    if u is None:
        return logits.argmax(-1)
    probabilities = torch.softmax(logits.float() / temperature, -1)
    if top_p >= 1:
        return _invert(probabilities, u)
    ordered, ids = probabilities.sort(-1, descending=True)
    before = ordered.cumsum(-1) - ordered
    ordered = ordered.masked_fill(before >= top_p, 0.0)
    return ids.gather(-1, _invert(ordered, u)[:, None]).squeeze(-1)


def _invert(weights: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """The first index whose cumulative weight exceeds u x the total."""
    cumulative = weights.cumsum(-1)
    total = cumulative[:, -1:]
    # Rounding could make u x total equal the total, and the search run off the end.
    target = torch.minimum(u[:, None] * total, torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(cumulative, target, right=True).squeeze(-1)
