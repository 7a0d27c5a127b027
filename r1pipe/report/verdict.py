"""The first ten seconds: did it work, by how much, and is there anything to worry about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from r1pipe.cli.terminal import duration
from r1pipe.report.collect import Run

Row = dict[str, Any]


@dataclass
class Verdict:
    """One word, one sentence, and smaller print."""

    tone: str  # good, bad, plain
    word: str
    sentence: str
    details: list[str]


@dataclass
class Worry:
    """Something a reader must know. `bad`: a result cannot be used or was never made."""

    step: str
    text: str
    bad: bool = False


def sampled(row: Row) -> str:
    heat = row.get("temperature")
    return f"temperature {heat:g}" if isinstance(heat, int | float) else "sampled"


def mode_name(row: Row, mode: str) -> str:
    return "greedy" if mode == "greedy" else sampled(row)


def main_set(rows: list[Row]) -> tuple[str, str] | None:
    """The first set with accuracy, and its first mode (sampled before greedy)."""
    for row in reversed(rows):
        for name, modes in row["sets"].items():
            for mode in ("sample", "greedy"):
                if (modes.get(mode, {}).get("accuracy") or {}).get("value") is not None:
                    return name, mode
    return None


def points(value: float) -> str:
    return f"{100 * value + 0.0:+.1f}"


def change_text(change: Row) -> str:
    """`+34.3 points [31.0, 37.6]`."""
    if change["low"] is None:
        return f"{points(change['delta'])} points, interval unknown"
    low, high = (f"{100 * change[k] + 0.0:.1f}" for k in ("low", "high"))
    return f"{points(change['delta'])} points [{low}, {high}]"


def tone(change: Row | None) -> str:
    if not change or change["low"] is None:
        return "plain"
    return "good" if change["low"] > 0 else "bad" if change["high"] < 0 else "plain"


def verdict(run: Run) -> Verdict:
    rows, steps = run.rows, run.steps.values()
    done = sum(s.state == "done" for s in steps)
    left = [s for s in steps if s.state != "done"]
    failed = next((s for s in left if s.state in ("failed", "damaged")), None)
    spent = sum(m.seconds for m in run.manifests.values())
    facts = [f"{done} of {len(run.steps)} steps done in {duration(spent)}"]
    found = _change(rows)
    if failed is not None:
        tone_, word = "bad", "Failed"
        facts.insert(0, f"{failed.name} {failed.state}: {failed.text}")
    elif left:
        running = next((s for s in left if s.state == "running"), None)
        tone_, word = "plain", "Running" if running else "Not finished"
        facts.insert(0, f"{running.name}: {running.text}" if running else f"still to do: {_names(left)}")
    elif found is None:
        tone_, word = "plain", "Finished"
    else:
        tone_ = tone(found[2])
        word = {"good": "It worked", "bad": "It got worse", "plain": "No difference shown"}[tone_]
        if found[2]["low"] is None:
            word = "Finished"
    if found is None:
        return Verdict(tone_, word, "No accuracy was measured on a trained model." if rows else "", facts)
    before, last, change, where = found
    name, mode = where
    numbers = [r["sets"][name][mode]["accuracy"]["value"] for r in (before, last)]
    against = "the cold start" if "cold_start" in last else "where it started from"
    sentence = (
        f"{last['step']} answers {100 * numbers[1]:.1f} % of {name} right, {against} ({before['step']}) "
        f"{100 * numbers[0]:.1f} %: {change_text(change)}."
    )
    n = change["n"] or last["sets"][name][mode]["accuracy"]["n"]
    facts.insert(0, f"{mode_name(last, mode)}, {n} problems, paired; 95 % interval")
    return Verdict(tone_, word, sentence, facts + _others(last, name, mode))


def _names(steps: list[Any]) -> str:
    return ", ".join(s.name for s in steps)


def _change(rows: list[Row]) -> tuple[Row, Row, Row, tuple[str, str]] | None:
    """(row before, last row, change, (set, mode)): the last policy against the cold start, else against its parent."""
    where = main_set(rows)
    trained = [r for r in rows if r["from"] is not None]
    if where is None or not trained:
        return None
    last = trained[-1]
    since = last.get("since_cold_start") or last["change"]
    start = last.get("cold_start") or last["from"]
    change = since.get(where[0], {}).get(where[1], {}).get("accuracy")
    before = next((r for r in rows if r["step"] == start), None)
    return (before, last, change, where) if change and before else None


def _others(last: Row, main: str, mode: str) -> list[str]:
    """The other measures of the last step against the cold start, a line a set and mode."""
    lines = []
    for name, modes in (last.get("since_cold_start") or {}).items():
        for how, metrics in modes.items():
            if (name, how) == (main, mode):
                continue
            told = [k for k in ("accuracy", "refusal_unsafe", "refusal_safe") if k in metrics]
            label = {"refusal_unsafe": "refused unsafe requests", "refusal_safe": "refused harmless requests"}
            said = [f"{label.get(k, k)} {change_text(metrics[k])}" for k in told]
            if said:
                lines.append(f"{name}, {mode_name(last, how)}: {'; '.join(said)}")
    return lines


def worries(run: Run) -> list[Worry]:
    """Failures first, then broken links, numbers that were not finite, falls, warnings of the manifests."""
    bad, found = [], []
    for step in run.steps.values():
        if step.state in ("failed", "damaged"):
            bad.append(Worry(step.name, f"{step.state}: {step.text}", bad=True))
        elif step.state == "interrupted":
            found.append(Worry(step.name, step.text))
        for link in step.links:
            if link.fault:
                bad.append(Worry(step.name, f"input {link.port}: {link.fault}", bad=True))
            elif outdated(run, link.producer):
                found.append(Worry(step.name, f"input {link.port} is of {link.producer}, which has been made again"))
        for h in step.histories:
            found += [Worry(step.name, text, bad=True) for text in h.broken]
    cold = next((r["step"] for r in run.rows if r["from"] is not None and r["stage"] == "sft"), None)
    for row in run.rows:
        for name, modes in row["change"].items():
            for mode, metrics in modes.items():
                if tone(metrics.get("accuracy")) == "bad":
                    said = change_text(metrics["accuracy"])
                    where = f"{name}, {mode_name(row, mode)}"
                    dip = "; a cold start often costs what RL wins back" if row["step"] == cold else ""
                    found.append(Worry(row["step"], f"accuracy fell against {row['from']} ({where}): {said}{dip}"))
    for step in run.steps.values():
        failed = {str(g["text"]) for g in step.gates if (g["verdict"], g["action"]) == ("tripped", "fail")}
        found += [Worry(step.name, text, bad=text in failed) for text in step.warnings]  # gates warn too
    return bad + found + [Worry("", note) for note in run.notes]


def outdated(run: Run, producer: str) -> bool:
    """Has the step behind this result a newer one?"""
    step, _, folder = producer.partition("/")
    known = run.steps.get(step)
    return bool(known and known.manifest and known.attempt and known.attempt.path.name != folder)
