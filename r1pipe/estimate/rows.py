"""How many rows a data spec has and how long they are, without reading all of it: a sample of generated and local
rows, a small table for public sets. Everything that was assumed is said."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Any

from r1pipe import yamlio
from r1pipe.chat import ChatConfig
from r1pipe.data.rows import What
from r1pipe.settings import DataSpec

SAMPLE = 96
TURN = 8  # tokens of a chat template around a turn, about
CHARACTERS = 4  # a token, where there is no tokenizer
FIELDS = {"prompts": (), "traces": (), "pairs": ("chosen", "rejected"), "labels": ("response",)}


@dataclass
class Rows:
    """Rows of one use. `lengths`: tokens of sampled rows (prompt, answer)."""

    count: float = 0
    lengths: list[tuple[int, int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def prompt(self) -> float:
        return sum(p for p, _ in self.lengths) / len(self.lengths) if self.lengths else 0.0

    @property
    def answer(self) -> float:
        return sum(a for _, a in self.lengths) / len(self.lengths) if self.lengths else 0.0

    @property
    def longest_prompt(self) -> int:
        return max((p for p, _ in self.lengths), default=0)

    def padded(self, batch: int, limit: int | None = None) -> float:
        """Mean length of a batch: that of its longest row."""
        totals = [p + a for p, a in self.lengths]
        return padded(totals, batch, limit)


def padded(totals: list[int], batch: int, limit: int | None = None) -> float:
    """Mean over random batches of the longest of `batch` lengths."""
    if not totals:
        return 0.0
    kept = [t for t in totals if limit is None or t <= limit] or [min(totals)]
    draw = random.Random(0)
    tries = 32
    return sum(max(draw.choices(kept, k=batch)) for _ in range(tries)) / tries


Count = Callable[[str], int]


def counter(folder: Path | None) -> Count:
    """Tokens of a text: with the model's own tokenizer where it is here, else characters / 4."""
    path = folder / "tokenizer.json" if folder else None
    if path is not None and path.is_file():
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(path))
        return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)
    return lambda text: -(-len(text) // CHARACTERS)


def of(specs: Iterable[DataSpec], what: What, chat: ChatConfig, count: Count, *, seed: int = 0) -> Rows:
    """All rows of `specs`, with the system prompt and the turns of the template."""
    found = Rows()
    system = sum(count(m["content"]) + TURN for m in chat.conversation([]))
    for spec in specs:
        one = _of(spec, what, count, seed)
        found.count += one.count
        # as many of the sample as the share of the rows is settled by drawing from all alike: specs are few
        found.lengths += [(p + system, a) for p, a in one.lengths]
        found.notes += one.notes
    return found


def _of(spec: DataSpec, what: What, count: Count, seed: int) -> Rows:
    from r1pipe.data.load import GENERATED, is_local, load

    if spec.source.startswith(GENERATED):
        wanted = spec.rows or SAMPLE
        sample = load(spec.model_copy(update={"rows": min(wanted, SAMPLE)}), what, seed=seed)
        return Rows(wanted, [_lengths(row, what, count) for row in sample])
    if is_local(spec.source):
        return _local(spec, count)
    return _public(spec)


def _lengths(row: dict[str, Any], what: What, count: Count) -> tuple[int, int]:
    messages = row["messages"]
    names = FIELDS[what]
    if names:
        prompt = sum(count(m["content"]) + TURN for m in messages)
        return prompt, max(count(row[name]) for name in names if name in row) + TURN
    if what == "traces":
        *before, last = messages
        return sum(count(m["content"]) + TURN for m in before), count(last["content"]) + TURN
    return sum(count(m["content"]) + TURN for m in messages), 0


def _local(spec: DataSpec, count: Count) -> Rows:
    """Rows of a file: lines of .jsonl, records of the others; lengths from the text of the first ones."""
    from r1pipe.data import files

    paths = files.find(spec.source, spec.split)
    sample: list[tuple[int, int]] = []
    total = 0
    for path in paths:
        if path.suffix == ".jsonl":
            with path.open("rb") as handle:
                total += sum(chunk.count(b"\n") for chunk in iter(lambda: handle.read(1 << 20), b""))
        else:
            total += sum(1 for _ in files.read(path, lambda _: None))
        if len(sample) < SAMPLE:
            records = islice(files.read(path, lambda _: None), SAMPLE - len(sample))
            sample += [_split(count(_text(record))) for record in records]
    return Rows(min(total, spec.rows or total), sample)


def _split(tokens: int) -> tuple[int, int]:
    """A raw record's text as prompt and answer: a quarter is the question, about."""
    return tokens // 4, tokens - tokens // 4


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return " ".join(_text(v) for v in value.values())
    if isinstance(value, list | tuple):
        return " ".join(_text(v) for v in value)
    return ""


@functools.cache
def _known() -> dict[str, Any]:
    text = (resources.files("r1pipe.estimate") / "datasets.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = yamlio.parse(text, "datasets.yaml")
    return found


def _public(spec: DataSpec) -> Rows:
    known = _known()
    entry = known["sets"].get(spec.source)
    notes = []
    if entry is None or spec.split not in entry:
        unknown = known["unknown"]
        total = spec.rows or unknown["rows"]
        if not spec.rows:
            notes.append(f"{spec.source}: how many rows is not known here, counted as {total:,} (data.rows says)")
        entry = entry or unknown
    else:
        total = min(spec.rows or entry[spec.split], entry[spec.split])
    # lengths vary from row to row: half to twice the mean, so that padding is counted
    spread = (0.5, 0.7, 0.9, 1.1, 1.3, 1.5)
    return Rows(total, [(round(entry["prompt"] * s), round(entry["answer"] * s)) for s in spread], notes)
