"""The decode loop over one batch of sequences: prefill each prompt once, then a token a step for the live rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from r1pipe.generate.base import Finish
from r1pipe.generate.cache import RoomyCache
from r1pipe.generate.draw import pick, uniforms
from r1pipe.settings import SamplingConfig

# Rows are dropped when this share of the batch is done: a drop copies the cache once.
COMPACT_AT = 0.25


@dataclass
class Sequence:
    """One sample in the making: `prompt` is the number of its prompt, `budget` the most new tokens it may have."""

    prompt: int
    index: int
    seed: int
    budget: int
    tokens: list[int] = field(default_factory=list)
    finish: Finish = "length"


@dataclass
class _Live:
    """The rows that are still generated. `rows` are their places in the batch; `mask` covers the longest possible
    sequence; `place` is the position of the next token."""

    rows: torch.Tensor
    mask: torch.Tensor
    place: torch.Tensor
    logits: torch.Tensor
    cache: RoomyCache
    width: int

    def keep(self, kept: torch.Tensor) -> None:
        self.cache.select(kept)
        self.rows, self.mask, self.place = self.rows[kept], self.mask[kept], self.place[kept]


def decode(
    model: Any,
    batch: list[Sequence],
    prompts: list[list[int]],
    sampling: SamplingConfig,
    stop: list[int],
    pad: int,
) -> None:
    """Fills `tokens` (the stop token included) and `finish` of the sequences. Call under inference mode."""
    room = max(s.budget for s in batch)
    live = _prefill(model, batch, prompts, room, pad)
    device = live.logits.device
    noise = uniforms([s.seed for s in batch], room).to(device) if sampling.temperature > 0 else None
    stops = torch.tensor(stop, device=device)
    budget = torch.tensor([s.budget for s in batch], device=device)
    made = torch.full((len(batch), room), pad, device=device)
    lengths = torch.zeros(len(batch), dtype=torch.long, device=device)
    alive = torch.ones(len(batch), dtype=torch.bool, device=device)  # of the live rows: not ended yet
    for step in range(room):
        rows = live.rows
        token = pick(live.logits, None if noise is None else noise[rows, step], sampling.temperature, sampling.top_p)
        made[rows, step] = token
        lengths[rows] += alive.long()
        ended = torch.isin(token, stops)
        for row in rows[ended & alive].tolist():
            batch[row].finish = "stop"
        alive = alive & ~ended & (step + 1 < budget[rows])
        left = int(alive.sum())
        if left == 0:
            break
        if left <= (1 - COMPACT_AT) * len(rows):
            kept = alive.nonzero().squeeze(1)
            live.keep(kept)
            token, alive = token[kept], alive[kept]
        live.logits = model(
            input_ids=token[:, None],
            attention_mask=live.mask[:, : live.width + step + 1],
            position_ids=live.place,
            past_key_values=live.cache,
            use_cache=True,
            logits_to_keep=1,
        ).logits[:, -1]
        live.place = live.place + 1
    for sequence, row, length in zip(batch, made.tolist(), lengths.tolist(), strict=True):
        sequence.tokens = row[:length]


def _prefill(model: Any, batch: list[Sequence], prompts: list[list[int]], room: int, pad: int) -> _Live:
    """Runs each distinct prompt of the batch once (padded on the left), then repeats it for its samples."""
    device = next(model.parameters()).device
    distinct = list(dict.fromkeys(s.prompt for s in batch))
    width = max(len(prompts[p]) for p in distinct)
    ids = torch.full((len(distinct), width), pad)
    mask = torch.zeros((len(distinct), width + room), dtype=torch.long)
    for row, p in enumerate(distinct):
        ids[row, width - len(prompts[p]) :] = torch.tensor(prompts[p])
        mask[row, width - len(prompts[p]) :] = 1
    ids, mask = ids.to(device), mask.to(device)
    cache = RoomyCache(model.config.get_text_config().num_hidden_layers, width + room)
    positions = (mask[:, :width].cumsum(1) - 1).clamp(min=0)
    logits = model(
        input_ids=ids,
        attention_mask=mask[:, :width],
        position_ids=positions,
        past_key_values=cache,
        use_cache=True,
        logits_to_keep=1,
    ).logits[:, -1]
    live = _Live(torch.arange(len(distinct), device=device), mask, positions[:, -1:] + 1, logits, cache, width)
    if len(batch) != len(distinct):
        at = {p: row for row, p in enumerate(distinct)}
        samples = torch.tensor([at[s.prompt] for s in batch], device=device)
        live.keep(samples)
        live.logits = logits[samples]
        live.rows = torch.arange(len(batch), device=device)
    return live
