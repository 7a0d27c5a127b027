"""A comparison as one HTML file: the verdicts, what differs in the settings, and the curves on one another."""

from __future__ import annotations

from r1pipe.report import compare as cp
from r1pipe.report.collect import Run
from r1pipe.report.page import render
from r1pipe.report.svg import Line, chart

SHARES = {"groups without signal", "cut off", "token accuracy", "pair accuracy"}


def html(c: cp.Comparison, made: str) -> str:
    from r1pipe import __version__

    a, b = names(c.a, c.b), names(c.b, c.a)
    overlaid = []
    for step, charts in cp.curves(c):
        figures = [
            chart(title, [Line(label, points) for label, points in lines], share=title in SHARES)
            for title, _, lines in charts
        ]
        overlaid.append((step, [f for f in figures if f]))
    return render(
        "compare.html",
        title=f"{a} against {b}: r1pipe comparison",
        c=c, a=a, b=b, headline=headline(c), overlaid=overlaid, cell=cell, made=made,
        version=__version__,
    )  # fmt: skip


def names(runs: list[Run], others: list[Run]) -> str:
    """The runs of a side; by their paths where the other side has one of the same name."""
    taken = {r.store.run for r in others}
    return ", ".join(str(r.store.root) if r.store.run in taken else r.store.run for r in runs)


def headline(c: cp.Comparison) -> tuple[str, str]:
    """(tone, sentence): the accuracy of the last step, sampled before greedy."""
    found = [e for e in c.effects if e.metric == "accuracy" and e.delta is not None]
    if not found:
        same = [s.name for s in c.steps if s.same]
        if len(same) == len(c.steps):
            return "plain", f"Every shared step is the same model on both sides ({', '.join(same)})."
        return "plain", "No accuracy was compared; see the table."
    last = found[-1].step
    main = next(e for e in found if e.step == last)
    tone = {"better": "good", "worse": "bad"}.get(main.verdict, "plain")
    said = {"better": "B is better", "worse": "B is worse"}.get(main.verdict, "No difference shown")
    return tone, f"{said} at {last}: accuracy on {main.set} ({main.mode}) {cell(main)}, {main.n} problems, paired."


def cell(e: cp.Effect) -> str:
    """`+3.1 [1.0, 5.2] points`; tokens as they are."""
    if e.delta is None or e.low is None or e.high is None:
        return ""
    factor, unit = (1.0, "") if e.metric == "tokens" else (100.0, " points")
    delta, low, high = (round(factor * v, 1) + 0.0 for v in (e.delta, e.low, e.high))
    return f"{delta:+.1f}{unit} [{low:.1f}, {high:.1f}]"
