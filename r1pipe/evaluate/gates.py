"""Gates: what a profile says should happen when a number of a step falls against the right one.

    steps:
      alignment-grpo:
        gates:
          - {metric: heldout/sample/accuracy, drop: 0.03, action: fail}
          - {metric: general/greedy/refusal_unsafe, against: sft, action: warn}

The right one (`against`):
parent  the policy whose samples the step learned from, where it reads a dataset that a policy made (rejection-sft:
        reasoning-grpo); else the policy that it started from. The second SFT starts from the base again: compared
        with the base it could lose all that RL won and still look like a gain. A small loss to the sampling policy
        is normal, so give such a gate a `drop`. A cold start is compared with the base, and dips (paper: AIME from
        77.9 to 59): put no gate on it that fails, or one with a number.
base    the policy that the chain of policies began with.
STEP    a step above this one.
NUMBER  a fixed bound.

A gate trips when the number is worse by more than `drop` and, with `significant`, the whole 95 % interval of the
change lies on the wrong side of no change: paired by problem where both evaluations have records, else the value's
own interval (against a number). Where there is no interval, `drop` alone decides, and the verdict says so.

What happens: warn: it is told. fail: the result stays sealed, the run ends with exit code 1. stop: the run ends there,
exit code 0. A gate is no part of what a step is made of: after its settings change, the same command judges the sealed
result again, trains nothing anew, and goes on where the gate now passes. A gate whose number is not there is told, and
stops nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r1pipe import stage as stages
from r1pipe.errors import UserError, nearest
from r1pipe.settings import MetricGate
from r1pipe.stage import DATASET, POLICY
from r1pipe.store import read_lines

if TYPE_CHECKING:
    from r1pipe.config import Profile

RECORDS = "data.jsonl"
Verdict = dict[str, Any]  # as it stands in the manifest's facts: see `judge`


@dataclass(frozen=True)
class Evidence:
    """What is known of a step: its evaluation, its own metrics, and the folder with the records."""

    evaluation: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    folder: Path | None = None

    def number(self, metric: str) -> dict[str, Any] | None:
        """{"value", "low", "high"}; None where the step has no such number."""
        where, _, name = metric.rpartition("/")
        if where.count("/") == 1:
            part, _, mode = where.partition("/")
            found = self.evaluation.get(part, {}).get(mode, {}).get(name)
            return found if isinstance(found, dict) and found.get("value") is not None else None
        value = self.metrics.get(metric)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return {"value": float(value), "low": None, "high": None}

    def records(self) -> list[dict[str, Any]]:
        return list(read_lines(self.folder / RECORDS)) if self.folder is not None else []


def check(profile: Profile, steps: Iterable[str]) -> None:
    """Raises UserError for a gate that compares with nothing, before anything runs."""
    for step in steps:
        for gate in profile.steps[step].gates:
            if reference(profile, step, gate) is None and not isinstance(gate.against, float):
                raise UserError(
                    f"steps.{step}.gates: there is nothing above {step} to compare {gate.metric} with",
                    hint="against: a number",
                )


def reference(profile: Profile, step: str, gate: MetricGate) -> str | None:
    """The step that a gate compares with; None for a number, or where there is none."""
    if isinstance(gate.against, float):
        return None
    if gate.against == "parent":
        return parent(profile, step)
    if gate.against == "base":
        found, up = None, _policy(profile, step)
        while up is not None:
            found, up = up, _policy(profile, up)
        return found
    above = _above(profile, step)
    if gate.against not in above:
        raise UserError(
            f'steps.{step}.gates: "{gate.against}" is not above {step}{nearest(gate.against, above)}',
            hint="against: parent, base, a step above this one, or a number",
        )
    return gate.against


def parent(profile: Profile, step: str) -> str | None:
    """The step whose numbers a step must not fall behind: see above."""
    for source, output in profile.sources(step).values():
        if _kind(profile, source, output) == DATASET and (maker := _policy(profile, source)):
            return maker
    return _policy(profile, step) or next(iter(profile.upstream(step)), None)


def _policy(profile: Profile, step: str) -> str | None:
    """The step whose policy a step reads."""
    sources = profile.sources(step).values()
    return next((source for source, output in sources if _kind(profile, source, output) == POLICY), None)


def _kind(profile: Profile, step: str, output: str) -> str:
    return stages.load(profile.steps[step].stage).OUTPUTS[output]


def _above(profile: Profile, step: str) -> list[str]:
    found: list[str] = []
    for up in profile.upstream(step):
        found += [s for s in (up, *_above(profile, up)) if s not in found]
    return found


def judge(profile: Profile, step: str, mine: Evidence, evidence: Callable[[str], Evidence | None]) -> list[Verdict]:
    """The verdict of each gate of a step: {"metric", "against", "action", "verdict": passed, tripped or unknown,
    "value", "reference", "delta", "low", "high", "n", "drop", "text"}. `evidence(step)`: what is known of another
    step; None where it is not up to date."""
    return [_one(profile, step, gate, mine, evidence) for gate in profile.steps[step].gates]


def _one(
    profile: Profile, step: str, gate: MetricGate, mine: Evidence, evidence: Callable[[str], Evidence | None]
) -> Verdict:
    name = reference(profile, step, gate)
    against = name if name is not None else gate.against
    out: Verdict = {"metric": gate.metric, "against": against, "action": gate.action, "drop": gate.drop}
    value = mine.number(gate.metric)
    if value is None:
        return _unknown(out, f"{step} has no such number")
    if name is None:
        assert isinstance(gate.against, float)
        before = gate.against
        change = {k: None if value.get(k) is None else value[k] - before for k in ("low", "high")}
        change |= {"delta": value["value"] - before, "n": value.get("n")}
    else:
        other = evidence(name)
        found = other.number(gate.metric) if other is not None else None
        if other is None or found is None:
            return _unknown(out, f"{name} {'is not up to date' if other is None else 'has no such number'}")
        before = found["value"]
        change = _paired(gate.metric, other, mine) or {
            "delta": value["value"] - before, "low": None, "high": None, "n": None
        }  # fmt: skip
    out |= {"value": value["value"], "reference": before, **change}
    tripped = _trips(gate, change)
    return out | {"verdict": "tripped" if tripped else "passed", "text": _text(gate, out, tripped)}


def _unknown(out: Verdict, why: str) -> Verdict:
    text = f"gate {out['metric']} against {out['against']} cannot be judged: {why}"
    return out | {"verdict": "unknown", "text": text}


def _paired(metric: str, before: Evidence, after: Evidence) -> dict[str, Any] | None:
    from r1pipe.evaluate.paired import paired

    where, _, name = metric.rpartition("/")
    part, _, mode = where.partition("/")
    a, b = (before.records(), after.records()) if where.count("/") == 1 else ([], [])
    if not a or not b:
        return None
    try:
        change = paired(a, b, name, part, mode)
    except UserError:  # a number of the whole set, with no value a problem (tokens_per_right)
        return None
    return change if change["n"] else None


def lower_is_better(gate: MetricGate) -> bool:
    from r1pipe.evaluate.paired import LOWER_IS_BETTER

    if gate.better is not None:
        return gate.better == "lower"
    return gate.metric.rpartition("/")[2] in LOWER_IS_BETTER


def _trips(gate: MetricGate, change: dict[str, Any]) -> bool:
    sign = -1 if lower_is_better(gate) else 1
    worse = sign * change["delta"] < -gate.drop - 1e-12
    if not worse or not gate.significant or change["low"] is None:
        return worse
    return max(sign * change["low"], sign * change["high"]) < 0


def _text(gate: MetricGate, out: Verdict, tripped: bool) -> str:
    """`gate heldout/greedy/accuracy against sft: 0.832 → 0.71, change -0.122 [-0.15, -0.09]; more than 0.05 worse`."""
    interval = f" [{out['low']:+.4g}, {out['high']:+.4g}]" if out["low"] is not None else " (no interval)"
    said = f"gate {out['metric']} against {out['against']}: "
    if isinstance(out["against"], str):
        said += f"{out['reference']:.4g} → "
    said += f"{out['value']:.4g}, change {out['delta']:+.4g}{interval}"
    allowed = f"worse by more than {gate.drop:g}" if gate.drop else "worse"
    return f"{said}; {allowed if tripped else 'passed'}"


def failed(verdicts: Iterable[Verdict], action: str) -> list[Verdict]:
    """The tripped gates with an action."""
    return [v for v in verdicts if v["verdict"] == "tripped" and v["action"] == action]
