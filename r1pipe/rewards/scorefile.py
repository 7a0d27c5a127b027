"""Scores the rows of a file with one reward: what `r1pipe score` does, without the printing.

A row is flat, or has its fields under `input` (as in shared/cases): {completion | text | response | program,
gold | answer, kind?, target?, language?, prefilled_think?, ...}; every other field reaches the verifier too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from r1pipe.chat import Tags
from r1pipe.data.values import number
from r1pipe.errors import UserError
from r1pipe.rewards.compose import Composer, text_of
from r1pipe.rewards.verdict import Row, Verdict
from r1pipe.settings import RewardPart

TEXTS = ("completion", "text", "response", "program")
GOLDS = ("gold", "answer", "solution")
BATCH = 1024
NO_TEXT = Verdict(None, "error", f"the row has none of {', '.join(TEXTS)}, as text or messages")
Line = dict[str, Any]


@dataclass
class Tally:
    """What came out, for people."""

    rows: int = 0
    total: float = 0.0
    scored: int = 0
    status: Counter[str] = field(default_factory=Counter)
    details: Counter[tuple[str, str]] = field(default_factory=Counter)  # (status, detail) of what was not scored
    expected: int = 0
    differ: list[Line] = field(default_factory=list)

    def take(self, line: Line, expect: Any) -> None:
        self.rows += 1
        self.status[line["status"]] += 1
        if line["score"] is not None:
            self.scored += 1
            self.total += line["score"]
        if line["detail"] and line["status"] != "scored":
            self.details[line["status"], line["detail"]] += 1
        if expect is not None:
            self.expected += 1
            if not _as_expected(line, expect):
                self.differ.append({**line, "expect": expect})


def _as_expected(line: Line, expect: Any) -> bool:
    """A number that must be met, or [low, high]. A null is never right. Raises UserError for anything else."""
    bounds = list(expect) if isinstance(expect, list | tuple) else [expect]
    numbers = [n for n in map(number, bounds) if n is not None]
    if not 1 <= len(bounds) <= 2 or len(numbers) != len(bounds):
        raise UserError(f"row {line['id']!r:.80}: expect is a score or [low, high], found {expect!r:.80}")
    score = line["score"]
    if score is None:
        return False
    return numbers[0] - 1e-9 < score < numbers[-1] + 1e-9


class Scorer:
    """One reward over the rows of a file."""

    def __init__(
        self,
        reward: str,
        options: dict[str, Any],
        *,
        tags: Tags = Tags(),
        prefilled: bool = False,
        model: Path | None = None,
        warn: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.name = reward
        self.prefilled = prefilled
        parts = {reward: RewardPart(options=options)}
        models = {reward: model} if model else {}
        self._composer = {
            p: Composer(parts, tags=tags, prefilled=p, models=models, warn=warn) for p in (False, True)
        }  # reward models are loaded at their first use: two cost nothing

    def score(self, records: Iterable[Line]) -> Iterator[tuple[Line, Any]]:
        """Per record, in order: {"id", "score", "status", "detail"}, and what the record expects (None: nothing)."""
        source = iter(records)
        done = 0
        while batch := list(islice(source, BATCH)):
            for record, verdict in zip(batch, self._batch(batch), strict=True):
                number = record.get("id", done)
                done += 1
                line = {"id": number, "score": verdict.score, "status": verdict.status, "detail": verdict.detail}
                yield line, record.get("expect")

    def _batch(self, records: list[Line]) -> list[Verdict]:
        verdicts: list[Verdict] = [NO_TEXT] * len(records)
        ready = [(i, *self._row(record)) for i, record in enumerate(records)]
        asked = [(i, text, row) for i, text, row in ready if text is not None]
        if len(records) > 1 and not asked:
            fields = ", ".join(sorted(_fields(records[0]))) or "none"
            raise UserError(
                f"no row has any of {', '.join(TEXTS)} (the first has: {fields})",
                hint="one JSON object a line, such as "
                '{"completion": "<think>…</think><answer>4</answer>", "gold": "4"}',
            )
        for prefilled in (False, True):
            chosen = [item for item in asked if bool(item[2]["prefilled_think"]) == prefilled]
            if not chosen:
                continue
            composer = self._composer[prefilled]
            texts = [composer.context.whole(text) for _, text, _ in chosen]
            found = composer.verdicts(self.name, texts, [row for _, _, row in chosen])
            for (index, _, _), verdict in zip(chosen, found, strict=True):
                verdicts[index] = verdict
        return verdicts

    def _row(self, record: Line) -> tuple[str | None, Row]:
        """Completion and row of a record."""
        fields = _fields(record)
        name = next((n for n in TEXTS if _is_text(fields.get(n))), None)
        row: Row = {key: value for key, value in fields.items() if key != name and value is not None}
        if name is None:
            return None, row
        row.setdefault("prefilled_think", self.prefilled)
        gold = next((fields[g] for g in GOLDS if fields.get(g) not in (None, "")), None)
        if gold is not None:
            row["gold"] = gold if isinstance(gold, str) else str(gold)
        if self.name == "language" and "language" not in row and "target" in row:
            row["language"] = row["target"]
        if "time_limit_s" in row and (limit := number(row["time_limit_s"])) is None:
            raise UserError(
                f"row {record.get('id')!r:.80}: time_limit_s is seconds, found {row['time_limit_s']!r:.80}"
            )
        elif "time_limit_s" in row:
            row["time_limit_s"] = limit
        prompt = row.get("prompt")
        if "messages" not in row:
            row["messages"] = prompt if _is_messages(prompt) else [{"role": "user", "content": str(prompt or "")}]
        if name == "program":  # a bare program, as an answer would hold it
            program = str(fields[name])
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", program)), default=0))
            tags = self._composer[False].context.tags
            return tags.wrap("(a program)", f"{fence}python\n{program}\n{fence}"), row
        return text_of(fields[name]), row

    def facts(self) -> dict[str, Any]:
        """What the verifier says of itself (its sandbox, the calls of a judge)."""
        found: dict[str, Any] = {}
        for composer in self._composer.values():
            found |= composer.facts().get(self.name, {})
        return found

    def close(self) -> None:
        for composer in self._composer.values():
            composer.close()


def _is_messages(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(m, dict) and isinstance(m.get("content"), str | list | None)
        and all(isinstance(block, dict) for block in m["content"] or () if not isinstance(m["content"], str))
        for m in value
    )  # fmt: skip


def _is_text(value: Any) -> bool:
    """What `text_of` can read."""
    return isinstance(value, str) or (bool(value) and _is_messages(value) and all("content" in m for m in value))


def _fields(record: Line) -> Line:
    """The fields of a flat or nested record. The `kind` beside `input` names the case file, not the row."""
    nested = record.get("input")
    if isinstance(nested, dict):
        return nested
    return {key: value for key, value in record.items() if key not in ("id", "expect", "note", "source", "policy")}
