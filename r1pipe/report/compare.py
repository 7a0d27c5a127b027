"""Is B better than A? Two groups of runs, step by step, on the problems that both answered.

A run of a group stands for a seed. A value of a problem is its mean over the runs of a group; a change is B minus A,
problem by problem. The bootstrap draws problems, and, where a group has several runs, runs as well: the interval then
says what another seed might give too. With one run a side it is about problems only, and the table says so.

Verdicts: two-sided bootstrap p-values, corrected after Holm over all numbers that are shown for one step. `better`,
`worse`, `more`, `fewer` where the corrected p is below 0.05, else `no difference shown`. Intervals are the plain 95 %.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from r1pipe.errors import UserError, nearest
from r1pipe.evaluate.paired import LOWER_IS_BETTER, METRICS
from r1pipe.manifest import Manifest
from r1pipe.report import history
from r1pipe.report.collect import Run
from r1pipe.report.page import flatten
from r1pipe.stage import POLICY

Record = dict[str, Any]
Values = dict[str, float]  # problem -> its value in one run

NEUTRAL = frozenset({"tokens"})  # longer is neither better nor worse
SHOWN = ("accuracy", "format", "language", "tokens", "truncated", "refusal_unsafe", "refusal_safe")
NONE = "no difference shown"
RESAMPLES = 10_000
LEAST_SHARED = 0.5  # of the problems of the larger side; with fewer a change is not of the same thing
# Settings of an evaluation that change what is measured on a problem.
_MEASURES = re.compile(r"evaluation\.(?:temperature|top_p|max_tokens|sets\[.*\]\.n)|chat\..*")
CELLS = 4_000_000  # of one block of resampled weights


@dataclass
class Effect:
    """B minus A of one number."""

    step: str
    set: str
    mode: str
    metric: str
    a: float | None = None
    b: float | None = None
    delta: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    holm: float | None = None
    n: int = 0
    verdict: str = NONE
    refused: str = ""  # why it was not paired

    @property
    def name(self) -> str:
        return f"{self.set}, {self.mode}: {self.metric}"


@dataclass
class Step:
    """A step of both groups."""

    name: str
    same: bool  # the same model on both sides
    effects: list[Effect]
    config: list[tuple[str, str, str]]  # (setting, in A, in B)
    notes: list[str] = field(default_factory=list)


@dataclass
class Comparison:
    """Two groups of runs."""

    a: list[Run]
    b: list[Run]
    steps: list[Step]
    notes: list[str]
    environment: list[tuple[str, str, str]]

    @property
    def effects(self) -> list[Effect]:
        return [e for s in self.steps for e in s.effects]


def compare(a: list[Run], b: list[Run], steps: Sequence[str] = (), metrics: Sequence[str] = ()) -> Comparison:
    """Compares every step that all runs have evaluated (or those named). Raises UserError where nothing is shared."""
    _check(metrics, [*a, *b])
    chosen = _steps(a, b, steps)
    found = [_step(a, b, *names, tuple(metrics) or SHOWN) for names in chosen]
    _refuse(found)
    notes = []
    if len(a) == len(b) == 1:
        notes.append("one run a side: the intervals are about problems only; another seed might differ")
    for side, (letter, group) in enumerate((("A", a), ("B", b))):
        keys = {key for names in chosen for key, *_ in _differences(_configs(group, names[side]))}
        odd = sorted(k for k in keys if k != "seed" and not k.startswith("inputs."))
        if odd:
            notes.append(f"the runs of {letter} differ in more than the seed: {', '.join(odd[:6])}")
    return Comparison(a, b, found, notes, _environments(a, b, [n[0] for n in chosen]))


def _check(metrics: Sequence[str], runs: list[Run]) -> None:
    """Raises UserError for a number that no record has: those of every record, and those of several samples."""
    more = {name for run in runs for rows in run.records.values() for r in rows for name in r.get("more") or ()}
    known = [*METRICS, *sorted(more)]
    for metric in metrics:
        if metric not in known:
            raise UserError(f'unknown metric "{metric}"{nearest(metric, known)}', hint=f"one of {', '.join(known)}")


def _steps(a: list[Run], b: list[Run], wanted: Sequence[str]) -> list[tuple[str, str]]:
    """(step of A, step of B): those of the same name in all runs; or where the pipelines end in steps of different
    names, those too."""
    evaluated = [_policies(run) for run in (*a, *b)]
    shared = [s for s in evaluated[0] if all(s in other for other in evaluated)]
    if wanted:
        pairs = []
        for name in wanted:
            left, _, right = name.partition("=")
            pair = (left, right or left)
            for step, run in [(pair[0], r) for r in a] + [(pair[1], r) for r in b]:
                have = _policies(run)
                if step not in have:
                    raise UserError(
                        f'run {run.store.run} has no evaluated step "{step}"{nearest(step, have)}',
                        hint=f"it has {', '.join(have) or 'none'}; --step NAME, or --step NAME_IN_A=NAME_IN_B",
                    )
            pairs.append(pair)
        return pairs
    pairs = [(s, s) for s in shared]
    ends = ({_policies(r)[-1] for r in a if _policies(r)}, {_policies(r)[-1] for r in b if _policies(r)})
    if len(ends[0]) == len(ends[1]) == 1 and (end := (min(ends[0]), min(ends[1]))) not in pairs:
        pairs.append(end)
    if not pairs:
        names = "; ".join(f"{r.store.run}: {', '.join(_policies(r)) or 'none'}" for r in (*a, *b))
        raise UserError(f"the runs share no evaluated step ({names})", hint="--step NAME_IN_A=NAME_IN_B")
    return pairs


def _policies(run: Run) -> list[str]:
    """Steps that made a policy and kept records of its evaluation."""
    made = (s for s, m in run.manifests.items() if any(x.kind == POLICY for x in m.outputs.values()))
    return [s for s in made if s in run.records]


def _step(a: list[Run], b: list[Run], name_a: str, name_b: str, metrics: Sequence[str]) -> Step:
    name = name_a if name_a == name_b else f"{name_a} / {name_b}"
    digests = [{_policy_digest(r.manifests[s]) for r in runs} for runs, s in ((a, name_a), (b, name_b))]
    same = len(digests[0] | digests[1]) == 1
    rows_a, rows_b = ([r.records[s] for r in runs] for runs, s in ((a, name_a), (b, name_b)))
    effects: list[Effect] = []
    if not same:
        places = dict.fromkeys((r["set"], r["mode"]) for r in rows_a[0])
        places = {p: None for p in places if any((r["set"], r["mode"]) == p for r in rows_b[0])}
        for (set_, mode), metric in itertools.product(places, metrics):
            effect = _effect(name, rows_a, rows_b, set_, mode, metric)
            if effect is not None:
                effects.append(effect)
        _correct(effects)
    both = [_configs(a, name_a), _configs(b, name_b)]
    config = _differences([c for group in both for c in group], split=len(a))
    measured = [f"{key.partition('.')[2]} {x} → {y}" for key, x, y in config if _MEASURES.fullmatch(key)]
    notes = [f"the two sides were not measured alike: {', '.join(measured)}"] if measured else []
    return Step(name, same, effects, config, notes)


def _policy_digest(manifest: Manifest) -> str:
    return next(x.digest for x in manifest.outputs.values() if x.kind == POLICY)


def _effect(
    step: str, rows_a: list[list[Record]], rows_b: list[list[Record]], set_: str, mode: str, metric: str
) -> Effect | None:
    """None where the number applies to no problem of a side."""
    a, b = ([_values(rows, set_, mode, metric) for rows in group] for group in (rows_a, rows_b))
    if not all(a) or not all(b):
        return None
    effect = Effect(step, set_, mode, metric)
    sides = [set.intersection(*(set(v) for v in group)) for group in (a, b)]
    shared = sorted(sides[0] & sides[1])
    largest = max(len(v) for v in (*a, *b))
    effect.n = len(shared)
    if len(shared) < LEAST_SHARED * largest or not shared:
        effect.refused = f"not paired: {len(shared)} of {largest} problems are shared"
        effect.verdict = "not comparable"
        return effect
    return paired_groups(effect, [[v[i] for i in shared] for v in a], [[v[i] for i in shared] for v in b])


def _values(rows: Iterable[Record], set_: str, mode: str, metric: str) -> Values:
    pick = METRICS.get(metric) or (lambda r: (r.get("more") or {}).get(metric))
    mine = (r for r in rows if r["set"] == set_ and r["mode"] == mode)
    return {r["id"]: v for r in mine if (v := pick(r)) is not None}


def paired_groups(
    effect: Effect, a: list[list[float]], b: list[list[float]], *, resamples: int = RESAMPLES, seed: int = 0
) -> Effect:
    """Fills in the numbers of an effect: a row is a run, a column a problem.

    Run weights are stretched by sqrt(k / (k - 1)), or resampling k runs would show too little of their spread. The p
    is never below that of a sign test on the problems that changed: three problems cannot be certain.
    """
    import numpy as np

    rng = np.random.Generator(np.random.Philox(key=seed))
    left, right = np.array(a, dtype=float), np.array(b, dtype=float)
    n = left.shape[1]
    effect.a, effect.b = float(left.mean()), float(right.mean())
    effect.delta = effect.b - effect.a
    means = []
    todo = resamples
    while todo:
        size = min(todo, max(1, CELLS // n))
        drawn = rng.integers(0, n, (size, n)) + np.arange(size)[:, None] * n
        problems = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n) / n
        means.append(_drawn(problems, right, rng) - _drawn(problems, left, rng))
        todo -= size
    found = np.concatenate(means)
    low, high = np.percentile(found, [2.5, 97.5])
    effect.low, effect.high = float(low), float(high)
    slack = 1e-12
    tail = min(int((found <= slack).sum()), int((found >= -slack).sum()))
    changed = int((np.abs(right.mean(axis=0) - left.mean(axis=0)) > slack).sum())
    effect.p = min(1.0, max(2 * (tail + 1) / (resamples + 1), 2.0 ** (1 - changed)))
    return effect


def _drawn(problems: Any, values: Any, rng: Any) -> Any:
    """Means of one side under resampled problems and, where there are several, resampled runs."""
    import numpy as np

    runs = len(values)
    by_run = problems @ values.T  # (resample, run)
    if runs == 1:
        return by_run[:, 0]
    weights = rng.multinomial(runs, np.full(runs, 1 / runs), size=len(problems)) / runs
    weights = 1 / runs + (weights - 1 / runs) * (runs / (runs - 1)) ** 0.5
    return (by_run * weights).sum(axis=1)


def _correct(effects: list[Effect]) -> None:
    """Holm's step-down correction over the effects of a step, and their verdicts."""
    tested = sorted((e for e in effects if e.p is not None), key=lambda e: e.p or 0.0)
    highest = 0.0
    for i, effect in enumerate(tested):
        assert effect.p is not None and effect.delta is not None
        highest = max(highest, min(1.0, (len(tested) - i) * effect.p))
        effect.holm = highest
        if highest < 0.05:
            up = effect.delta > 0
            good = effect.metric not in LOWER_IS_BETTER
            told = ("more" if up else "fewer") if effect.metric in NEUTRAL else "better" if up == good else "worse"
            effect.verdict = told


def _refuse(steps: list[Step]) -> None:
    """Nothing that can be paired is an answer that must not look like `no difference`."""
    effects = [e for s in steps for e in s.effects]
    if all(s.same for s in steps) or any(not e.refused for e in effects):
        return
    if not effects:
        raise UserError("the runs were evaluated on no common set and metric", hint="r1pipe table shows what each has")
    most: dict[str, str] = {}
    for e in sorted(effects, key=lambda e: e.n):
        most[e.set] = f"{e.set}: {e.refused.removeprefix('not paired: ')}"
    raise UserError(
        "the runs do not share their problems, so they cannot be compared in pairs: " + "; ".join(most.values()),
        hint="evaluate both on the same sets (the same `evaluation.sets` in the profiles)",
    )


def _configs(runs: list[Run], step: str) -> list[dict[str, str]]:
    """The sealed settings of a step, flattened, with what they read by version."""
    found = []
    for run in runs:
        m = run.manifests[step]
        inputs = {f"inputs.{port}": record.digest[:8] for port, record in m.inputs.items()}
        settings = {k: v for k, v in m.config.items() if k != "inputs"}
        found.append(dict(flatten(settings)) | inputs | {"stage version": m.stage_version})
    return found


def _differences(configs: list[dict[str, str]], split: int | None = None) -> list[tuple[str, str, str]]:
    """(key, left, right) where the configs differ; `split` divides them into A and B, else any two."""
    keys = list(dict.fromkeys(k for c in configs for k in c))
    found = []
    for key in keys:
        values = [c.get(key, "unset") for c in configs]
        if len(set(values)) > 1:
            left, right = (values[:split], values[split:]) if split else (values[:1], values[1:])
            if split is None or set(left) != set(right):
                found.append((key, " | ".join(dict.fromkeys(left)), " | ".join(dict.fromkeys(right))))
    return found


def _environments(a: list[Run], b: list[Run], steps: list[str]) -> list[tuple[str, str, str]]:
    from r1pipe.report.page import environment

    sides = [[environment(run)["all"] for run in group] for group in (a, b)]
    flat = [dict(e) for group in sides for e in group]
    return _differences(flat, split=len(a))


def curves(comparison: Comparison) -> list[tuple[str, list[tuple[str, str, list[tuple[str, history.Points]]]]]]:
    """Step -> (title, key, (label, points)): the training curves of all runs, for an overlay."""
    runs = [(f"A {r.store.run}", r) for r in comparison.a] + [(f"B {r.store.run}", r) for r in comparison.b]
    found = []
    same = {s.name for s in comparison.steps if s.same}
    for name in dict.fromkeys(s for _, r in runs for s in r.steps if s not in same):
        have = [(label, r.steps[name].histories) for label, r in runs if name in r.steps]
        logs = [(label, histories[0]) for label, histories in have if histories]
        if len(logs) < 2:
            continue
        wanted = history.RL if logs[0][1].rl else history.SUPERVISED
        charts = []
        for title, keys, _, _ in wanted:
            lines = [(label, log.points(keys[0])) for label, log in logs]
            if any(points for _, points in lines):
                charts.append((title, keys[0], lines))
        found.append((name, charts))
    return found
