"""Composes rewards: routing by the kind of row, weights and their schedules, gates.

total = sum of weight x score over the parts that apply, then the gates:
gate: {below: 0.5, floor: -1}   where this part scores below 0.5, the total is -1: unsafe gets the floor
gate: {below: 1, cap: 0.2}      where this part scores below 1, all the others add at most 0.2: wrong caps the rest
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from r1pipe.chat import Tags
from r1pipe.errors import UserError
from r1pipe.rewards import registry
from r1pipe.rewards.verdict import Context, Row, Verdict, Verifier
from r1pipe.settings import RewardPart

# Row fields that reach TRL's rewards as columns; `extra` is a JSON text of those that only some rewards read.
COLUMNS = ("id", "gold", "kind", "language", "level", "reference")
MOST_AUXILIARY = 0.4  # share of the weight; above it the helpers lead
_ACCURACY = registry.REGISTRY["accuracy"]
Scores = dict[str, Verdict | None]  # None: the part does not apply


class Composer:
    """The rewards of a step.

    `prefilled`: the generation prompt opens the thinking (`chat.prefilled_think`), so the tag is put back in front.
    `models`: reward name -> folder of its model. `warn` takes sentences for the user.
    Raises UserError for unknown names and options; reward models are loaded at their first use.
    """

    def __init__(
        self,
        parts: Mapping[str, RewardPart],
        *,
        tags: Tags = Tags(),
        prefilled: bool = False,
        models: Mapping[str, Path] | None = None,
        warn: Callable[[str], None] = lambda text: None,
    ) -> None:
        registry.validate(parts)
        self.parts, self.context = dict(parts), Context(tags, prefilled)
        self._warn, self._warned = warn, set[str]()
        self.entries = {name: registry.of(name, part) for name, part in parts.items()}
        # Kinds of answer that have a part of their own; `accuracy` leaves those rows to it.
        routed = [n for n, found in self.entries.items() if found.correctness and found is not _ACCURACY]
        self._taken = {kind for n in routed for kind in parts[n].kinds or self.entries[n].kinds or ()}
        self.verifiers: dict[str, Verifier] = {
            name: registry.build(name, part, self.context, (models or {}).get(name)) for name, part in parts.items()
        }
        self._check_roles()

    def applies(self, name: str, row: Row, progress: float | None = None) -> bool:
        """Does a part judge this row? `progress` is the share of the steps done; None: outside of training."""
        part, found = self.parts[name], self.entries[name]
        if progress is not None and progress < part.start:
            return False
        kind = row.get("kind")
        if part.kinds is not None:
            return kind in part.kinds
        if found is _ACCURACY:
            return kind not in registry.WITHOUT_ANSWER and kind not in self._taken
        if found.reads_correct and kind in registry.WITHOUT_ANSWER:
            return False
        return found.kinds is None or kind in found.kinds

    def weight(self, name: str, progress: float | None = None) -> float:
        """The weight of a part at this share of the steps; outside of training that of the last step."""
        part = self.parts[name]
        if not part.schedule:
            return part.weight
        return part.weight * _interpolate(part.schedule, 1.0 if progress is None else progress)

    def _check_roles(self) -> None:
        """Helpers must not lead. Each part counts with its largest weight."""
        sizes = {
            name: abs(part.weight) * max((abs(f) for _, f in part.schedule or ()), default=1.0)
            for name, part in self.parts.items()
        }
        helping = {n: size for n, size in sizes.items() if registry.role(n, self.parts[n]) == "auxiliary"}
        whole = math.fsum(sizes.values())
        if whole and math.fsum(helping.values()) > MOST_AUXILIARY * whole:
            self.warn_once(
                "roles",
                f"auxiliary rewards ({', '.join(helping)}) have {math.fsum(helping.values()) / whole:.0%} of the "
                f"weight: over {MOST_AUXILIARY:.0%} a policy learns to please them instead of answering right",
            )

    def score(self, completions: Sequence[Any], rows: Sequence[Row], progress: float | None = None) -> list[Scores]:
        """The verdict of each part on each completion (strings or message lists), in order.

        An exception in a verifier costs the rows that raise it: status error, score None. A UserError goes on.
        """
        if len(completions) != len(rows):
            raise ValueError(f"{len(completions)} completions, {len(rows)} rows")
        return self.score_whole([self.context.whole(text_of(c)) for c in completions], rows, progress)

    def score_whole(self, texts: Sequence[str], rows: Sequence[Row], progress: float | None = None) -> list[Scores]:
        """`score` of texts that have a prefilled opening tag already (those of a sampler)."""
        given = [{"group": _group(row), **row, **(row.get("extra") or {})} for row in rows]
        result: list[Scores] = [dict.fromkeys(self.parts) for _ in texts]
        # What says right or wrong comes first: length rewards ask for it.
        for name in sorted(self.parts, key=lambda n: not self.entries[n].correctness):
            chosen = [i for i, row in enumerate(given) if self.applies(name, row, progress)]
            if not chosen:
                continue
            verdicts = self.verdicts(name, [texts[i] for i in chosen], [given[i] for i in chosen])
            for index, verdict in zip(chosen, verdicts, strict=True):
                if verdict.score is None and verdict.status == "unverifiable":
                    continue  # a function of the user's that says nothing about this row
                result[index][name] = verdict
                if self.entries[name].correctness:
                    given[index].setdefault("correct", verdict.score)
        return result

    def verdicts(self, name: str, texts: list[str], rows: list[Row]) -> list[Verdict]:
        """The verdicts of one part on whole completions, whether it applies or not. What a verifier raises costs the
        rows that raise it, and is shown; it never becomes a score."""
        try:
            verdicts = self.verifiers[name](texts, rows)
            if len(verdicts) != len(texts):
                raise RuntimeError(f"{len(verdicts)} verdicts on {len(texts)} completions")
        except UserError:
            raise
        except Exception as error:  # noqa: BLE001 (any bug of a verifier is shown as such, never as a score)
            if len(texts) > 1:  # one at a time: only the row that raises is lost
                return [self.verdicts(name, [t], [r])[0] for t, r in zip(texts, rows, strict=True)]
            said = f"{type(error).__name__}: {error}"
            self.warn_once(f"exception/{name}", f'reward "{name}" raised {said}; such rows leave their group')
            return [Verdict(None, "error", said)]
        if remark := next((v.detail for v in verdicts if v.status == "scored" and v.detail), ""):
            self.warn_once(f"remark/{name}", f'reward "{name}": {remark} (said once)')
        return [
            v if v.score is None or math.isfinite(v.score) else Verdict(None, "error", f"not finite: {v.score}")
            for v in verdicts
        ]

    def total(self, parts: Scores, progress: float | None = None) -> float | None:
        """The weighted sum of the parts that apply, after the gates; None when a part that matters is None, or none
        applies. A part of weight 0 without a gate is only logged."""
        known = {name: verdict for name, verdict in parts.items() if verdict is not None}
        weights = {name: self.weight(name, progress) for name in known}
        matters = [name for name in known if weights[name] != 0 or self.parts[name].gate]
        if not any(weights.values()) or any(known[name].score is None for name in matters):
            return None
        scores = {name: known[name].score or 0.0 for name in matters}
        values = {name: weights[name] * score for name, score in scores.items()}
        total = math.fsum(values.values())
        closed = {n: g for n in matters if (g := self.parts[n].gate) and scores[n] < g.below}
        for name, gate in closed.items():
            if gate.cap is not None:
                total = min(total, values[name] + gate.cap)
        floors = [gate.floor for gate in closed.values() if gate.floor is not None]
        return min(floors) if floors else total

    def closed(self, parts: Scores) -> list[str]:
        """The gates that a row closes."""
        return [
            name
            for name, verdict in parts.items()
            if verdict is not None
            and (gate := self.parts[name].gate)
            and verdict.score is not None
            and verdict.score < gate.below
        ]

    def facts(self) -> dict[str, Any]:
        """What the manifest should say of the verifiers (the sandbox, the calls of a judge), by part."""
        said = {name: getattr(verifier, "facts", dict[str, Any])() for name, verifier in self.verifiers.items()}
        return {name: facts for name, facts in said.items() if facts}

    def close(self) -> None:
        """Ends what the verifiers started."""
        for verifier in self.verifiers.values():
            getattr(verifier, "close", lambda: None)()

    def check_columns(self, columns: Iterable[str]) -> None:
        """Does a dataset have what the rewards read? Raises UserError that names what is missing. For before
        training; the TRL reward checks again."""
        found = set(columns)
        for name in self.parts:
            for column in self._reads(name):
                if column not in found and not ("extra" in found and column not in COLUMNS):
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
                if column == "gold":  # other kinds of answer have fields of their own
                    chosen = [row for row in chosen if row.get("kind") not in registry.BY_KIND]
                if column != "kind" and chosen and all(row.get(column) in (None, "") for row in chosen):
                    raise UserError(
                        f'reward "{name}" reads "{column}", which none of its {len(chosen)} rows has',
                        hint=f"map it with `columns: {{{column}: NAME_IN_YOUR_DATA}}`, or set rewards.{name}.kinds",
                    )

    def _reads(self, name: str) -> list[str]:
        """The row fields that a part reads."""
        part = self.parts[name]
        reads = [c for c in self.entries[name].columns if not (c == "language" and part.options.get("target"))]
        if self.entries[name].module == "judge" and part.options.get("mode") == "pairwise":
            reads.append("reference")  # what the response is compared with
        return [*reads, "kind"] if part.kinds is not None and "kind" not in reads else reads

    def as_trl_reward(self, sink: Callable[[dict[str, float]], None] = lambda means: None, **settings: Any) -> Any:
        """One reward function with TRL's signature: see `trl_reward.TRLReward`, which takes the settings."""
        from r1pipe.rewards.trl_reward import TRLReward

        return TRLReward(self, sink, **settings)

    def warn_once(self, key: str, text: str) -> None:
        if key not in self._warned:
            self._warned.add(key)
            self._warn(text)


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


def _group(row: Row) -> Any:
    """Completions of one row belong together."""
    return row["id"] if row.get("id") is not None else id(row)


def _interpolate(points: Sequence[tuple[float, float]], share: float) -> float:
    """Linear between the points, constant before the first and after the last."""
    before = [p for p in points if p[0] <= share]
    after = [p for p in points if p[0] > share]
    if not before:
        return points[0][1]
    if not after:
        return before[-1][1]
    (x0, y0), (x1, y1) = before[-1], after[0]
    return y0 + (y1 - y0) * (share - x0) / (x1 - x0)
