"""The report of a run as one HTML file: no script, no request; a policy in its head forbids both.

Every view is made here from what `collect` read; `templates/report.html` lays it out. jinja2 escapes, and `visible`
writes out what acts unseen.
"""

from __future__ import annotations

import functools
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r1pipe.cli import progress as pg
from r1pipe.cli import tables
from r1pipe.cli.terminal import duration, size
from r1pipe.report import change, dag, samples, suites, verdict
from r1pipe.report.collect import Run, Step
from r1pipe.report.history import RL, History, Points
from r1pipe.report.svg import Figure, Line, chart, number
from r1pipe.report.text import cut, visible

if TYPE_CHECKING:
    from jinja2 import Environment

Row = dict[str, Any]
MOST_WORRIES = 60


def html(run: Run, made: str) -> str:
    """The page; `made` is when, for its foot."""
    from r1pipe import __version__

    found = verdict.worries(run)
    return render(
        "report.html",
        title=f"{run.store.run}: r1pipe report",
        run=run,
        made=made,
        version=__version__,
        verdict=verdict.verdict(run),
        worries=found[:MOST_WORRIES],
        more_worries=len(found) - len(found[:MOST_WORRIES]),
        ladder=ladder(run),
        across=dag.draw(nodes(run)),
        down=dag.draw(nodes(run), down=True),
        stages=stage_table(run),
        since=tables.summary(run.rows),
        suites=suites.tables(run),
        gates=[(s.name, g) for s in run.steps.values() for g in s.gates],
        training=[t for step in run.steps.values() if (t := training(step))],
        over_time=[t for step in run.steps.values() for h in step.histories if h.rl and (t := over_time(step, h))],
        reflection=samples.reflection_by_step(run),
        dropped=[d for step in run.steps.values() if (d := dropped(step))],
        sets=samples.sets(run),
        chain=[chain(step, run) for step in run.steps.values() if step.attempt is not None],
        environment=environment(run),
        settings=[(s.name, flatten(s.settings)) for s in run.steps.values() if s.settings],
        cost=cost(run),
    )


@functools.cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    env = Environment(
        loader=PackageLoader("r1pipe.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    env.filters |= {"duration": duration, "size": size, "number": number, "share": lambda v: number(v, share=True)}
    env.filters |= {"label": pg.label, "shown": pg.show}
    return env


def render(template: str, **values: Any) -> str:
    """A page of `templates/`. The style stands in the page itself."""
    style = (Path(__file__).parent / "templates" / "style.css").read_text(encoding="utf-8")
    from markupsafe import Markup

    return _environment().get_template(template).render(style=Markup(style), **values)


def ladder(run: Run) -> dict[str, Any] | None:
    """The main accuracy of every step with its interval, and what the step added to the one it started from."""
    where = verdict.main_set(run.rows)
    if where is None:
        return None
    name, mode = where
    lines = []
    for row in run.rows:
        modes = row["sets"].get(name, {})
        main, greedy = modes.get(mode, {}).get("accuracy"), modes.get("greedy", {}).get("accuracy")
        if not main or main.get("value") is None:
            continue
        gain = row["change"].get(name, {}).get(mode, {}).get("accuracy")
        lines.append(
            {
                "step": row["step"], "from": row["from"], "value": main["value"], "low": main["low"],
                "high": main["high"], "greedy": greedy["value"] if greedy and mode != "greedy" else None,
                "gain": verdict.change_text(gain) if gain else "", "tone": verdict.tone(gain),
            }
        )  # fmt: skip
    return {"set": name, "mode": verdict.mode_name(run.rows[-1], mode), "lines": lines,
            "greedy": any(line["greedy"] is not None for line in lines)}  # fmt: skip


def nodes(run: Run) -> list[dag.Node]:
    """The pipeline's picture: each step with its state and its first number."""
    found = []
    for step in run.steps.values():
        text = step.state
        if step.manifest is not None:
            numbers = pg.headline(step.manifest)
            first = next(iter(numbers.items()), None)
            said = [f"{pg.label(first[0]).partition(' ')[0]} {pg.show(*first)}"] if first else []
            text = " · ".join([*said, duration(step.manifest.seconds)])
        found.append(dag.Node(step.name, step.state, text, step.upstream))
    return found


def stage_table(run: Run) -> dict[str, Any] | None:
    if not any(r["sets"] for r in run.rows):
        return None
    made = tables.columns(run.rows)
    return {
        "head": [(h.split("\n"), justify) for h, justify, _ in made],
        "rows": [[(c[2][i], c[1]) for c in made] for i in range(len(run.rows))],
    }


def training(step: Step) -> dict[str, Any] | None:
    """The curves of a step's trainers."""
    groups = []
    for h in step.histories:
        figures = [f for title, keys, band, share in h.charts if (f := _figure(h, title, keys, band, share))]
        groups.append({"name": h.name, "figures": figures, "missing": h.missing, "steps": int(h.rows[-1]["step"])})
    if not groups:
        return None
    return {"step": step.name, "stage": step.stage, "state": step.state, "groups": groups}


def _figure(h: History, title: str, keys: tuple[str, ...], band: tuple[str, ...], share: bool) -> Figure | None:
    lines = [Line(k.removeprefix("reward/"), h.points(k), _band(h, k, band)) for k in keys]
    return chart(title, lines, share=share)


def _band(h: History, key: str, names: tuple[str, ...]) -> tuple[Points, Points] | None:
    """Lowest and highest, or a spread on both sides."""
    sides = [dict(h.points(name)) for name in names]
    points = [(x, y) for x, y in h.points(key) if all(x in side for side in sides)]
    if not sides or not points:
        return None
    if len(sides) == 2:
        return [(x, sides[0][x]) for x, _ in points], [(x, sides[1][x]) for x, _ in points]
    return [(x, y - sides[0][x]) for x, y in points], [(x, y + sides[0][x]) for x, y in points]


def over_time(step: Step, h: History) -> dict[str, Any] | None:
    """Length and accuracy of the rollouts with change points, and reflection words where completions were kept."""
    figures, said = [], []
    length = next(c for c in RL if c[0].startswith("length"))
    for title, key, share in (("accuracy of the rollouts", "reward/accuracy", True), (length[0], length[1][0], False)):
        points = h.points(key)
        places = change.change_points([y for _, y in points])
        marks = [points[i][0] for i in places]
        figure = chart(title, [Line(title, points)], share=share, marks=marks, width=520, height=210)
        if figure is None:
            continue
        figures.append(figure)
        if len(points) < change.FEWEST:
            said.append(f"{title}: {len(points)} logged steps are too few to look for a change of trend")
        elif marks:
            at = ", ".join(f"{m:.0f}" for m in marks)
            said.append(f"{title}: the trend changes at training step {at}")
        else:
            said.append(f"{title}: no change of trend shown")
    r = step.rollouts
    if r is not None:
        words = chart("reflection words a completion", [Line("words", r.words)], width=520, height=210)
        figures += [words] if words else []
    if not figures:
        return None
    return {
        "step": step.name, "figures": figures, "said": said, "rollouts": r,
        "top": r.totals.most_common(8) if r else [],
        "examples": [(at, *cut(prompt), *cut(text)) for at, prompt, text in r.examples] if r else [],
    }  # fmt: skip


def dropped(step: Step) -> dict[str, Any] | None:
    """The counters of a step; with shares where the total of a group was counted too."""
    if step.manifest is None or not step.manifest.counts:
        return None
    counts = Counter({k: float(v) for k, v in step.manifest.counts.items()})
    rows: list[Row] = []
    for name, n in counts.items():
        group, _, rest = name.partition("/")
        total = counts.get(f"{group}/sampled", 0.0)
        share = n / total if total and n <= total else None
        tone = "good" if rest == "kept" else "bad" if "dropped" in rest else "plain"
        rows.append({"name": pg.label(rest or group), "group": group, "n": n, "share": share, "tone": tone})
    rows.sort(key=lambda r: (r["group"], {"good": 1, "bad": 2}.get(r["tone"], 0), -r["n"]))
    return {"step": step.name, "rows": rows}


def chain(step: Step, run: Run) -> Row:
    """What a step was made from, and what it sealed."""
    m = step.manifest
    return {
        "step": step, "folder": step.attempt.path.name if step.attempt else "", "manifest": m,
        "outputs": list(m.outputs.items()) if m else [],
        "outdated": {link.port for link in step.links if verdict.outdated(run, link.producer)},
    }  # fmt: skip


def environment(run: Run) -> dict[str, Any]:
    """What all steps ran with, and where a step differs from the first."""
    found: list[tuple[str, dict[str, str]]] = [
        (name, _flat_environment(m.environment)) for name, m in run.manifests.items()
    ]
    if not found:
        return {"all": {}, "differs": []}
    first = found[0][1]
    differs = [
        (name, key, first.get(key, "absent"), mine.get(key, "absent"))
        for name, mine in found[1:] for key in sorted({*first, *mine}) if first.get(key) != mine.get(key)
    ]  # fmt: skip
    return {"all": first, "differs": differs}


def _flat_environment(value: dict[str, Any]) -> dict[str, str]:
    packages = value.get("packages") or {}
    rest = {k: v for k, v in value.items() if k != "packages" and v is not None}
    return {k.replace("_", " "): str(v) for k, v in {**rest, **packages}.items()}


def cost(run: Run) -> dict[str, Any]:
    """Seconds and tokens of each step, and their sums."""
    rows = tables.timing_rows(run.manifests)
    for row in rows:
        m = run.manifests[row["step"]]
        row["processes"] = int(m.config.get("num_processes") or 1)
        row["device"] = str(m.environment.get("device", ""))
        row["attempts"] = m.attempts
    total = sum(r["seconds"] for r in rows)
    return {
        "rows": rows, "seconds": total, "tokens": sum(r["tokens"] for r in rows),
        "machinery": sum(r["machinery"] for r in rows),
        "device_hours": sum(r["seconds"] * r["processes"] for r in rows) / 3600,
        "longest": max((r["seconds"] for r in rows), default=1.0) or 1.0,
    }  # fmt: skip


def flatten(value: Any, path: str = "") -> list[tuple[str, str]]:
    """`trainer.learning_rate` → its value, for every leaf; entries of a list by their name, where they have one."""
    if isinstance(value, dict) and value:
        return [pair for k, v in value.items() for pair in flatten(v, f"{path}.{k}" if path else str(k))]
    if isinstance(value, list) and any(isinstance(v, dict | list) for v in value):
        keys = [str(v.get("name", i)) if isinstance(v, dict) else str(i) for i, v in enumerate(value)]
        return [pair for k, v in zip(keys, value, strict=True) for pair in flatten(v, f"{path}[{k}]")]
    return [(path, str(value))]
