"""The stage table: base, every step that made a policy, and what changed; for JSON, terminals, Markdown.

Every number comes from the manifests. A change is paired, problem by problem, against the step whose policy the
step started from; that of the last step is also given against the cold start.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r1pipe.cli import grid
from r1pipe.cli import progress as pg
from r1pipe.cli.grid import Cell, Column
from r1pipe.cli.terminal import clean, duration
from r1pipe.stage import POLICY

if TYPE_CHECKING:
    from rich.console import Console

    from r1pipe.manifest import Manifest

Row = dict[str, Any]
FROM_START = ("accuracy", "format", "language", "refusal_unsafe", "refusal_safe")  # told of the last step
SAID = {"refusal_unsafe": "refused unsafe", "refusal_safe": "refused safe"}


def stage_rows(manifests: dict[str, Manifest], root: Path | None = None) -> list[Row]:
    """A row for each step that made a policy: {step, stage, from, seconds, temperature, sets, change}.

    sets: set -> mode -> metric -> {value, low, high, n}. change: set -> mode -> "accuracy" -> {delta, low, high, n}
    against the step in `from`. The last row also has `cold_start` and `since_cold_start` (set -> mode -> metric).
    `root` is the run folder; without it, or without records, a change has no interval (low and high are None).
    """
    policies = {s: m for s, m in manifests.items() if any(a.kind == POLICY for a in m.outputs.values())}
    records = _Records(root)
    rows: list[Row] = []
    for step, manifest in policies.items():
        parent = next((r.producer.split("/")[0] for r in manifest.inputs.values() if r.kind == POLICY), None)
        start = parent if parent in policies else None
        rows.append(
            {
                "step": step,
                "stage": manifest.stage,
                "from": parent,
                "seconds": manifest.seconds,
                "temperature": (manifest.config.get("evaluation") or {}).get("temperature"),
                "sets": {s: {m: _numbers(v) for m, v in modes.items()} for s, modes in manifest.evaluation.items()},
                "change": _changes(policies[start], manifest, ("accuracy",), records) if start else {},
            }
        )
    trained = [r for r in rows if r["from"] is not None]
    if len(trained) > 1:
        first, last = trained[0]["step"], trained[-1]
        last["cold_start"] = first
        last["since_cold_start"] = _changes(policies[first], policies[last["step"]], FROM_START, records)
    return rows


def _numbers(mode: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in mode.items() if isinstance(v, dict) and "value" in v}


class _Records:
    """Records of evaluations, read once."""

    def __init__(self, root: Path | None) -> None:
        self.root = root
        self._read: dict[str, list[Row]] = {}

    def of(self, manifest: Manifest) -> list[Row]:
        from r1pipe.manifest import DATA_FILE
        from r1pipe.store import read_lines

        artifact = manifest.outputs.get("evaluation")
        if self.root is None or artifact is None:
            return []
        if artifact.uri not in self._read:
            self._read[artifact.uri] = list(read_lines(self.root / artifact.uri / DATA_FILE))
        return self._read[artifact.uri]


def _changes(before: Manifest, after: Manifest, metrics: Iterable[str], records: _Records) -> dict[str, Any]:
    from r1pipe.evaluate.paired import paired

    found: dict[str, Any] = {}
    for (name, modes), metric in itertools.product(after.evaluation.items(), metrics):
        for mode, numbers in modes.items():
            old = before.evaluation.get(name, {}).get(mode, {}).get(metric)
            new = numbers.get(metric)
            if not old or not new or old.get("value") is None or new.get("value") is None:
                continue
            change = {"delta": new["value"] - old["value"], "low": None, "high": None, "n": 0}
            a, b = records.of(before), records.of(after)
            if a and b and (exact := paired(a, b, metric, name, mode))["n"]:
                change = exact
            found.setdefault(name, {}).setdefault(mode, {})[metric] = change
    return found


def timing_rows(manifests: dict[str, Manifest]) -> list[Row]:
    """Seconds of each step: {step, seconds, run, evaluate, seal, startup, machinery, share, tokens, result}.

    `startup` is what the runner waited for imports and process start (an overlapped start costs nothing);
    `machinery` = startup + seal, `share` of the step's seconds.
    """
    rows = []
    for step, m in manifests.items():
        run, evaluate, seal = (float(m.timing.get(k, 0.0)) for k in ("run", "evaluate", "seal"))
        machinery = max(0.0, m.seconds - run - evaluate)
        rows.append(
            {
                "step": step, "seconds": m.seconds, "run": run, "evaluate": evaluate, "seal": seal,
                "startup": round(max(0.0, machinery - seal), 3), "machinery": round(machinery, 3),
                "share": round(machinery / m.seconds, 4) if m.seconds else 0.0, "tokens": m.tokens,
                "result": pg.headline(m),
            }
        )  # fmt: skip
    return rows


def columns(rows: list[Row]) -> list[Column]:
    """The stage table as columns, the step's name first; only columns with a number in them."""
    sets = list(dict.fromkeys(s for r in rows for s in r["sets"]))
    with_accuracy = [s for s in sets if any("accuracy" in m for r in rows for m in r["sets"].get(s, {}).values())]
    main = with_accuracy[0] if with_accuracy else (sets[0] if sets else "")
    heat = next((r["temperature"] for r in rows if r["temperature"] is not None), None)
    sampled = f"T={heat:g}" if isinstance(heat, int | float) else "sampled"
    made: list[Column] = [
        ("step", "left", [(r["step"], "") for r in rows]),
        ("from", "left", [(r["from"] or "", "dim") for r in rows]),
        _column(f"accuracy\n{sampled}, %", rows, lambda r: _interval(_get(r, main, "sample", "accuracy"))),
        ("change\n95 % interval", "right", [_change(r["change"], main, "sample") for r in rows]),
        _column("accuracy\ngreedy, %", rows, lambda r: _share(_get(r, main, "greedy", "accuracy"))),
    ]
    for name in with_accuracy[1:]:
        for mode, said in (("sample", sampled), ("greedy", "greedy")):
            header = f"{name}\n{said}, %"
            made.append(_column(header, rows, partial(_share_of, name=name, mode=mode, metric="accuracy")))
    for metric, said in (("format", "format\n%"), ("language", "language\n%")):
        made.append(_column(said, rows, partial(_share_of, name=main, mode=None, metric=metric)))
    made.append(_column("length\ntokens", rows, lambda r: _whole(_first(r, main, "tokens"))))
    made.append(_column("cut off\n%", rows, lambda r: _share(_first(r, main, "truncated"))))
    for metric, said in (("refusal_unsafe", "refused\nunsafe, %"), ("refusal_safe", "refused\nsafe, %")):
        made.append(_column(said, rows, partial(_share_of, name=None, mode=None, metric=metric)))
    made.append(("time", "right", [(duration(r["seconds"]), "dim") for r in rows]))
    return [c for c in made if c[0] in ("step", "from", "time") or any(text for text, _ in c[2])]


def _column(header: str, rows: list[Row], cell: Callable[[Row], str]) -> Column:
    return header, "right", [(cell(r), "") for r in rows]


def _get(row: Row, name: str, mode: str, metric: str) -> dict[str, Any] | None:
    found = row["sets"].get(name, {}).get(mode, {}).get(metric)
    return found if found and found.get("value") is not None else None


def _share_of(row: Row, *, name: str | None, mode: str | None, metric: str) -> str:
    """Per cent; without `name` from the first set that has the metric, without `mode` sampled before greedy."""
    if name is None:
        return _share(next((x for s in row["sets"] if (x := _first(row, s, metric))), None))
    return _share(_first(row, name, metric) if mode is None else _get(row, name, mode, metric))


def _first(row: Row, name: str, metric: str) -> dict[str, Any] | None:
    return _get(row, name, "sample", metric) or _get(row, name, "greedy", metric)


def _interval(n: dict[str, Any] | None) -> str:
    if n is None:
        return ""
    low, high = n.get("low"), n.get("high")
    return _share(n) + (f" [{100 * low:.1f}, {100 * high:.1f}]" if low is not None and high is not None else "")


def _share(n: dict[str, Any] | None) -> str:
    return f"{100 * n['value']:.1f}" if n else ""


def _whole(n: dict[str, Any] | None) -> str:
    return f"{n['value']:.0f}" if n else ""


def _change(changes: dict[str, Any], name: str, mode: str, metric: str = "accuracy") -> Cell:
    """`+12.3 [10.1, 14.4]`, green or red where the interval leaves out 0."""
    c = changes.get(name, {}).get(mode, {}).get(metric)
    if not c:
        return "", ""
    text = f"{_points(c['delta']):+.1f}"
    if c["low"] is None:
        return text, "dim"
    style = "green" if c["low"] > 0 else "red" if c["high"] < 0 else ""
    return f"{text} [{_points(c['low']):.1f}, {_points(c['high']):.1f}]", style


def _points(share: float) -> float:
    return round(100 * share, 1) + 0.0  # never -0.0


def summary(rows: list[Row]) -> list[str]:
    """What the last step is against the cold start, a sentence a set and mode."""
    last = next((r for r in rows if r.get("since_cold_start")), None)
    if last is None:
        return []
    heat = f"T={last['temperature']:g}" if last["temperature"] is not None else "sampled"
    lines = []
    for name, modes in last["since_cold_start"].items():
        for mode, metrics in modes.items():
            told = [k for k in metrics if "accuracy" in metrics or k not in ("format", "language")]
            said = [f"{SAID.get(k, k)} {_change({name: {mode: metrics}}, name, mode, k)[0]}" for k in told]
            lines.append(f"{name}, {'greedy' if mode == 'greedy' else heat}: {'; '.join(said)}")
    return [f"{last['step']} against {last['cold_start']} (points, 95 % interval, paired):", *lines]


def timing_columns(rows: list[Row]) -> list[Column]:
    """Where the time of each step went; what steps without a policy came to stands at the end."""

    def column(header: str, cell: Callable[[Row], str]) -> Column:
        return header, "right", [(cell(r), "") for r in rows]

    return [
        ("step", "left", [(r["step"], "") for r in rows]),
        column("time", lambda r: duration(r["seconds"])),
        column("work", lambda r: duration(r["run"])),
        column("evaluation", lambda r: duration(r["evaluate"]) if r["evaluate"] else ""),
        column("machinery", lambda r: f"{duration(r['machinery'])} {100 * r['share']:3.0f} %"),
        ("result", "left", [(_result(r["result"]), "dim") for r in rows]),
    ]


def _result(numbers: dict[str, float]) -> str:
    return "  ".join(f"{pg.label(k)} {pg.show(k, v)}" for k, v in numbers.items())


def show(console: Console, rows: list[Row], manifests: dict[str, Manifest], ran: list[str] | None = None) -> None:
    """Prints the stage table, the change since the cold start, and where the time went (of the steps that ran)."""
    if any(r["sets"] for r in rows):
        for table in grid.tables(columns(rows), console.width):
            console.print(table)
            console.print()
    for line in summary(rows):
        console.print(clean(line), markup=False, soft_wrap=True)
    timed = {s: m for s, m in manifests.items() if ran is None or s in ran}
    if timed:
        console.print()
        for table in grid.tables(timing_columns(timing_rows(timed)), console.width):
            console.print(table)
            console.print()


def markdown(rows: list[Row]) -> str:
    """The stage table for a README."""
    made = columns(rows)

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |"

    lines = [
        line(h.replace("\n", " ") for h, _, _ in made),
        line("---:" if j == "right" else "---" for _, j, _ in made),
    ]
    lines += [line(clean(c[2][i][0]) for c in made) for i in range(len(rows))]
    said = summary(rows)
    return "\n".join([*lines, *(["", said[0], *(f"- {s}" for s in said[1:])] if said else [])])
