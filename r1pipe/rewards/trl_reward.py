"""A composition as one reward function with TRL's signature.

TRL treats a None among several rewards as 0, and drops a row from its group only when every reward is None: so it
gets one callable that logs its parts, and returns None when a part that matters is None.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from r1pipe.rewards.compose import Composer, Scores, summary, text_of
from r1pipe.rewards.verdict import Row

GOLDS = ("gold", "answer", "solution")  # what people's datasets call it; the first that is there
First = Callable[[list[str], list[Row], list[Scores], float | None], None]


class TRLReward:
    """The reward function of a `Composer`, for `GRPOTrainer(reward_funcs=[...])`.

    After each batch `sink` gets the means over this process' rows: `accuracy` (each part), `total`, and
    `accuracy/unverifiable`, `/timeout`, `/error` (shares of the rows that the part applies to), `/gated`, `/weight`.
    `total_steps`: what `start` and `schedule` are shares of (default: TRL's max_steps).
    `first` is called once, before the first optimizer step: (completions, rows, scored, progress).
    `shuffle`: a control that shuffles the totals within each group: neighbouring completions of one prompt, at most
    `num_generations`; seeded by `seed` and their text.
    """

    def __init__(
        self,
        composer: Composer,
        sink: Callable[[dict[str, float]], None] = lambda means: None,
        *,
        total_steps: int | None = None,
        shuffle: bool = False,
        num_generations: int | None = None,
        seed: int = 0,
        first: First | None = None,
    ) -> None:
        self.composer, self.sink, self.total_steps = composer, sink, total_steps
        self.shuffle, self.num_generations, self.seed = shuffle, num_generations, seed
        self._first = first
        self._checked = False  # the columns and rows of the first batch
        self.__name__ = "r1pipe_" + "_".join(composer.parts)  # TRL names its metrics after it

    def __call__(
        self,
        prompts: list[Any],
        completions: list[Any],
        completion_ids: list[list[int]] | None = None,
        log_extra: Callable[[str, list], None] | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        trainer_state: Any = None,
        **columns: list[Any],
    ) -> list[float | None]:
        composer = self.composer
        if named := next((name for name in GOLDS if name in columns), None):
            columns = {"gold": columns[named], **columns}
        rows = [
            {"messages": _messages(prompt), "group": group, **_fields(columns, i)}
            for i, (prompt, group) in enumerate(zip(prompts, self._groups(prompts), strict=True))
        ]
        if not self._checked:
            composer.check_columns(columns)
            composer.check_rows(rows)
            self._checked = True
        if completion_ids is not None:
            rows = [{**row, "completion_ids": ids} for row, ids in zip(rows, completion_ids, strict=True)]
        progress = self.progress(trainer_state)
        scored = composer.score(completions, rows, progress)
        totals = [composer.total(parts, progress) for parts in scored]
        self._check_none(scored, totals)
        self._check_structure(completions)
        if self._first is not None:
            self._first([text_of(c) for c in completions], rows, scored, progress)
            self._first = None
        means = summary(scored, totals) | self._logged(scored, progress)
        for key, value in means.items():
            if log_metric is not None:
                log_metric(f"reward/{key}", value)
        if log_extra is not None:
            for name in composer.parts:
                log_extra(f"reward_{name}", [v.score if (v := parts[name]) else None for parts in scored])
        self.sink(means)
        return self._shuffled(totals, prompts, completions) if self.shuffle else totals

    def progress(self, trainer_state: Any) -> float | None:
        """Share of the steps done, 0 to 1; None without a trainer."""
        if trainer_state is None:
            return None
        steps = self.total_steps or trainer_state.max_steps
        return trainer_state.global_step / steps if steps else 0.0

    def _check_structure(self, completions: Sequence[Any]) -> None:
        closing = self.composer.context.tags.think_close
        if completions and not any(closing in text_of(c) for c in completions):
            self.composer.warn_once(
                "structure",
                f"none of the {len(completions)} completions of a batch holds {closing}: rewards that look for "
                "thinking are 0 for all of them (check tags, system prompt and the prefilled tag, or "
                "train on examples of the form first)",
            )

    def _check_none(self, scored: list[Scores], totals: list[float | None]) -> None:
        lost = [parts for parts, total in zip(scored, totals, strict=True) if total is None]
        if lost:
            why = next(
                (f"{n}: {v.detail}" for parts in lost for n, v in parts.items() if v is not None and v.score is None),
                "no reward applies to their kind",
            )
            text = f"{len(lost)} of {len(totals)} completions of a batch have no reward ({why})"
            self.composer.warn_once("none", text)

    def _logged(self, scored: list[Scores], progress: float | None) -> dict[str, float]:
        """Gates and scheduled weights, where there are any; and what the user's functions logged."""
        means: dict[str, float] = {}
        for name, part in self.composer.parts.items():
            if part.gate and scored:
                means[f"{name}/gated"] = sum(name in self.composer.closed(parts) for parts in scored) / len(scored)
            if part.schedule:
                means[f"{name}/weight"] = self.composer.weight(name, progress)
            for key, value in getattr(self.composer.verifiers[name], "metrics", dict[str, float]()).items():
                means[f"{name}/{key}"] = value
        return means

    def _groups(self, prompts: Sequence[Any]) -> list[int]:
        """The group of each completion: neighbouring completions of one prompt, at most `num_generations`."""
        groups: list[int] = []
        size = 0
        for index, prompt in enumerate(prompts):
            size += 1
            full = self.num_generations is not None and size > self.num_generations
            if index and prompt == prompts[index - 1] and not full:
                groups.append(groups[-1])
            else:
                groups.append(groups[-1] + 1 if groups else 0)
                size = 1
        return groups

    def _shuffled(self, totals: list[float | None], prompts: list[Any], completions: list[Any]) -> list[float | None]:
        """Totals permuted within each group. Seeded by their text: the same after a resume, and in any process."""
        result: list[float | None] = []
        for _, members in itertools.groupby(range(len(totals)), key=self._groups(prompts).__getitem__):
            places = list(members)
            text = "\0".join(text_of(completions[i]) for i in places)
            values = [totals[i] for i in places]
            random.Random(f"{self.seed}:{hashlib.sha256(text.encode()).hexdigest()}").shuffle(values)
            result += values
        return result


def _messages(prompt: Any) -> list[dict[str, str]]:
    return [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)


def _fields(columns: Mapping[str, list[Any]], index: int) -> Row:
    """The row fields of one completion; `extra` unpacked."""
    row = {name: values[index] for name, values in columns.items()}
    extra = row.pop("extra", None)
    return {**row, **json.loads(extra)} if extra else row
