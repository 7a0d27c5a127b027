"""A key-value cache that grows in place.

transformers' DynamicCache concatenates a new tensor a layer and token, which copies the whole cache each step;
this one writes into a buffer with room for the longest completion, and can drop finished rows.
"""

from __future__ import annotations

import torch
from transformers.cache_utils import Cache, DynamicLayer


class RoomyLayer(DynamicLayer):
    """Keys and values [rows, heads, length, head size] are views of a buffer with room for `capacity` positions."""

    is_croppable = False

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity
        self.length = 0
        self._buffers: tuple[torch.Tensor, torch.Tensor] | None = None

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.dtype, self.device = key_states.dtype, key_states.device
        self._buffers = (self._room(key_states), self._room(value_states))
        self.is_initialized = True

    def _room(self, like: torch.Tensor) -> torch.Tensor:
        rows, heads, _, size = like.shape
        return like.new_empty((rows, heads, self.capacity, size))

    def update(  # type: ignore[override]
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        assert self._buffers is not None
        end = self.length + key_states.shape[-2]
        for buffer, new in zip(self._buffers, (key_states, value_states), strict=True):
            buffer[:, :, self.length : end] = new
        self.length = end
        self.keys, self.values = (b[:, :, :end] for b in self._buffers)
        return self.keys, self.values

    def get_seq_length(self) -> int:
        return self.length

    def select(self, rows: torch.Tensor) -> None:
        """Keeps (or repeats) the rows at these indices; only the filled part is copied."""
        if self._buffers is None:
            return
        new = []
        for buffer in self._buffers:
            kept = buffer.new_empty((len(rows), *buffer.shape[1:]))
            kept[:, :, : self.length] = buffer[:, :, : self.length].index_select(0, rows)
            new.append(kept)
        self._buffers = (new[0], new[1])
        self.keys, self.values = (b[:, :, : self.length] for b in self._buffers)


class RoomyCache(Cache):
    """A cache of `layers` RoomyLayers."""

    def __init__(self, layers: int, capacity: int) -> None:
        self._mine = [RoomyLayer(capacity) for _ in range(layers)]
        super().__init__(layers=list(self._mine))

    def select(self, rows: torch.Tensor) -> None:
        """Keeps (or repeats) the sequences at these indices in every layer."""
        for layer in self._mine:
            layer.select(rows)
