"""Composes rewards: routing by the kind of row, weights, a start within the steps, and one callable for TRL.

TRL treats a None among several rewards as 0, and drops a row from its group only when every reward is None: so it
gets one callable that logs its parts, and returns None when a part that applies is None.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from r1pipe.chat import Tags
from r1pipe.errors import UserError
from r1pipe.rewards import registry
from r1pipe.rewards.verdict import Context, Row, Verdict, Verifier
from r1pipe.settings import RewardPart

COLUMNS = ("id", "gold", "kind", "language", "level")  # row fields that reach TRL's rewards as columns
Scores = dict[str, Verdict | None]  # None: the part does not apply


class Composer:
    """The rewards of a step.

    `prefilled`: the generation prompt opens the thinking (`chat.prefilled_think`), so the tag is put back in front.
    `models`: reward name -> folder of its model. `total_steps`: what `start` is a share of (default: TRL's max_steps).
    `shuffle`: a control that shuffles the totals within each group: neighbouring completions of one prompt, at most
    `num_generations`.
    `warn` takes sentences for the user.
    Raises UserError for unknown names and options; reward models are loaded at their first use.
    """

    def __init__(
        self,
        parts: Mapping[str, RewardPart],
        *,
        tags: Tags = Tags(),
        prefilled: bool = False,
        models: Mapping[str, Path] | None = None,
        total_steps: int | None = None,
        shuffle: bool = False,
        num_generations: int | None = None,
        seed: int = 0,
        warn: Callable[[str], None] = lambda text: None,
    ) -> None:
        registry.validate(parts)
        self.parts, self.total_steps, self.shuffle, self.seed = dict(parts), total_steps, shuffle, seed
        self.context = Context(tags, prefilled)
        self.num_generations = num_generations
        self._warn, self._warned = warn, set[str]()
        self._checked = False  # the columns and rows of the first batch
        self._start = {name: registry.options(name, part)[1] for name, part in parts.items()}
        self.verifiers: dict[str, Verifier] = {
            name: registry.build(name, part, self.context, (models or {}).get(name)) for name, part in parts.items()
        }

    def applies(self, name: str, row: Row, progress: float | None = None) -> bool:
        """Does a part judge this row? `progress` is the share of the steps done; None: outside of training."""
        kinds = self.parts[name].kinds
        if progress is not None and progress < self._start[name]:
            return False
        if kinds is not None:
            return row.get("kind") in kinds
        return name != "accuracy" or row.get("kind") not in registry.WITHOUT_GOLD

    def score(self, completions: Sequence[Any], rows: Sequence[Row], progress: float | None = None) -> list[Scores]:
        """The verdict of each part on each completion (strings or message lists), in order.

        An exception in a verifier costs the rows that raise it: status error, score None. A UserError goes on.
        """
        if len(completions) != len(rows):
            raise ValueError(f"{len(completions)} completions, {len(rows)} rows")
        texts = [self.context.whole(text_of(c)) for c in completions]
        result: list[Scores] = [dict.fromkeys(self.parts) for _ in texts]
        for name in self.parts:
            chosen = [i for i, row in enumerate(rows) if self.applies(name, row, progress)]
            if not chosen:
                continue
            verdicts = self._verdicts(name, [texts[i] for i in chosen], [rows[i] for i in chosen])
            for index, verdict in zip(chosen, verdicts, strict=True):
                result[index][name] = verdict
        return result

    def _verdicts(self, name: str, texts: list[str], rows: list[Row]) -> list[Verdict]:
        try:
            verdicts = self.verifiers[name](texts, rows)
            if len(verdicts) != len(texts):
                raise RuntimeError(f"{len(verdicts)} verdicts on {len(texts)} completions")
        except UserError:
            raise
        except Exception as error:  # noqa: BLE001 (any bug of a verifier is shown as such, never as a score)
            if len(texts) > 1:  # one at a time: only the row that raises is lost
                return [self._verdicts(name, [t], [r])[0] for t, r in zip(texts, rows, strict=True)]
            said = f"{type(error).__name__}: {error}"
            self._warn_once(f"exception/{name}", f'reward "{name}" raised {said}; such rows leave their group')
            return [Verdict(None, "error", said)]
        if remark := next((v.detail for v in verdicts if v.status == "scored" and v.detail), ""):
            self._warn_once(f"remark/{name}", f'reward "{name}": {remark} (said once)')
        return [
            v if v.score is None or math.isfinite(v.score) else Verdict(None, "error", f"not finite: {v.score}")
            for v in verdicts
        ]

    def total(self, parts: Scores) -> float | None:
        """The weighted sum of the parts that apply; None when one of them is None, or none applies. A part of
        weight 0 is only logged."""
        weighed = [(self.parts[n].weight, v) for n, v in parts.items() if v is not None and self.parts[n].weight != 0]
        if not weighed or any(v.score is None for _, v in weighed):
            return None
        return math.fsum(weight * v.score for weight, v in weighed if v.score is not None)

    def check_columns(self, columns: Iterable[str]) -> None:
        """Does a dataset have what the rewards read? Raises UserError that names what is missing. For before
        training; the TRL reward checks again."""
        found = set(columns)
        for name in self.parts:
            for column in self._reads(name):
                if column not in found:
                    raise UserError(
                        f'reward "{name}" reads the column "{column}", which the dataset does not have '
                        f"(found: {', '.join(sorted(found)) or 'none'})",
                        hint=f"map it with `columns: {{{column}: NAME_IN_YOUR_DATA}}` in the step's data",
                    )

    def check_rows(self, rows: Sequence[Row]) -> None:
        """Does any row that a reward applies to have what it reads? Raises UserError that names the field where none
        has. For before training; single rows without it become status error, score None."""
        for name in self.parts:
            chosen = [row for row in rows if self.applies(name, row)]
            for column in self._reads(name):
                if column != "kind" and chosen and all(row.get(column) in (None, "") for row in chosen):
                    raise UserError(
                        f'reward "{name}" reads "{column}", which none of its {len(chosen)} rows has',
                        hint=f"map it with `columns: {{{column}: NAME_IN_YOUR_DATA}}`, or set rewards.{name}.kinds",
                    )

    def _reads(self, name: str) -> list[str]:
        """The row fields that a part reads."""
        part = self.parts[name]
        reads = [c for c in registry.entry(name).columns if not (c == "language" and part.options.get("target"))]
        return [*reads, "kind"] if part.kinds is not None and "kind" not in reads else reads

    def as_trl_reward(self, sink: Callable[[dict[str, float]], None] = lambda means: None) -> Callable[..., list]:
        """One reward function with TRL 1.16's signature.

        After each batch `sink` gets the means over this process' rows: `accuracy` (each part), `total`, and
        `accuracy/unverifiable`, `/timeout`, `/error` (shares of the rows that the part applies to).
        """

        def reward(
            prompts: list[Any],
            completions: list[Any],
            completion_ids: list[list[int]] | None = None,
            log_extra: Callable[[str, list], None] | None = None,
            log_metric: Callable[[str, float], None] | None = None,
            trainer_state: Any = None,
            **columns: list[Any],
        ) -> list[float | None]:
            if not self._checked:
                self.check_columns(columns)
            rows = [
                {"messages": _messages(prompt), **{c: columns[c][i] for c in COLUMNS if c in columns}}
                for i, prompt in enumerate(prompts)
            ]
            if not self._checked:
                self.check_rows(rows)
                self._checked = True
            scored = self.score(completions, rows, self.progress(trainer_state))
            totals = [self.total(parts) for parts in scored]
            self._check_none(scored, totals)
            self._check_structure(completions)
            means = summary(scored, totals)
            for key, value in means.items():
                if log_metric is not None:
                    log_metric(f"reward/{key}", value)
            if log_extra is not None:
                for name in self.parts:
                    log_extra(f"reward_{name}", [v.score if (v := parts[name]) else None for parts in scored])
            sink(means)
            if self.shuffle:
                totals = self._shuffled(totals, prompts, completions)
            assert len(totals) == len(completions)
            return totals

        reward.__name__ = reward.__qualname__ = "r1pipe_" + "_".join(self.parts)
        return reward

    def progress(self, trainer_state: Any) -> float | None:
        """Share of the steps done, 0 to 1; None without a trainer."""
        if trainer_state is None:
            return None
        steps = self.total_steps or trainer_state.max_steps
        return trainer_state.global_step / steps if steps else 0.0

    def _check_structure(self, completions: Sequence[Any]) -> None:
        closing = self.context.tags.think_close
        if completions and not any(closing in text_of(c) for c in completions):
            self._warn_once(
                "structure",
                f"none of the {len(completions)} completions of a batch holds {closing}: rewards that look for "
                "thinking and answer are 0 for all of them (check tags, system prompt and the prefilled tag, or "
                "train on examples of the form first)",
            )

    def _check_none(self, scored: list[Scores], totals: list[float | None]) -> None:
        lost = [parts for parts, total in zip(scored, totals, strict=True) if total is None]
        if lost:
            why = next(
                (f"{n}: {v.detail}" for parts in lost for n, v in parts.items() if v is not None and v.score is None),
                "no reward applies to their kind",
            )
            self._warn_once("none", f"{len(lost)} of {len(totals)} completions of a batch have no reward ({why})")

    def _warn_once(self, key: str, text: str) -> None:
        if key not in self._warned:
            self._warned.add(key)
            self._warn(text)

    def _shuffled(self, totals: list[float | None], prompts: list[Any], completions: list[Any]) -> list[float | None]:
        """Totals permuted among neighbouring completions of one prompt. Seeded by their text: the same after a
        resume, and in any process."""
        result = list(totals)
        start = 0
        for end in range(1, len(totals) + 1):
            full = self.num_generations is not None and end - start >= self.num_generations
            if end < len(totals) and prompts[end] == prompts[start] and not full:
                continue
            text = "\0".join(text_of(c) for c in completions[start:end])
            group = result[start:end]
            random.Random(f"{self.seed}:{hashlib.sha256(text.encode()).hexdigest()}").shuffle(group)
            result[start:end] = group
            start = end
        return result


def summary(scored: Sequence[Scores], totals: Sequence[float | None]) -> dict[str, float]:
    """Means of the parts and of the total over the rows that have them, and the share of each status but scored.
    A part that applies to no row is left out."""
    means: dict[str, float] = {}
    for name in scored[0] if scored else ():
        verdicts = [v for parts in scored if (v := parts[name]) is not None]
        scores = [v.score for v in verdicts if v.score is not None]
        if scores:
            means[name] = math.fsum(scores) / len(scores)
        if verdicts:
            for status in ("unverifiable", "timeout", "error"):
                means[f"{name}/{status}"] = sum(v.status == status for v in verdicts) / len(verdicts)
    known = [t for t in totals if t is not None]
    if known:
        means["total"] = math.fsum(known) / len(known)
    return means


def text_of(completion: Any) -> str:
    """The text of a completion as TRL gives it: a string, or the assistant's messages."""
    if isinstance(completion, str):
        return completion
    texts = []
    for message in completion:
        content = message["content"]
        if not isinstance(content, str):  # content blocks
            content = "".join(block.get("text") or "" for block in content or ())
        texts.append(content)
    return "".join(texts)


def _messages(prompt: Any) -> list[dict[str, str]]:
    return [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
