"""The report as Markdown: what a pull request or a note needs. The numbers are those of the page."""

from __future__ import annotations

import re

from r1pipe.cli import tables
from r1pipe.cli.terminal import clean, duration
from r1pipe.report import page, verdict
from r1pipe.report.collect import Run

_ACTIVE = re.compile(r"([\\`*_\[\]<>|#~])")  # what Markdown, or HTML inside it, would act on
MOST_WORRIES = 20


def markdown(run: Run) -> str:
    """Verdict, worries, states, stage table, what was dropped, cost."""
    said, worries = verdict.verdict(run), verdict.worries(run)
    lines = [f"# {safe(run.store.run)}", "", f"**{safe(said.word)}.** {safe(said.sentence)}".rstrip(), ""]
    lines += [f"- {safe(line)}" for line in said.details]
    lines += ["", "## Worries", ""]
    lines += [f"- {f'{safe(w.step)}: ' if w.step else ''}{safe(w.text)}" for w in worries[:MOST_WORRIES]] or ["None."]
    if len(worries) > MOST_WORRIES:
        lines.append(f"- and {len(worries) - MOST_WORRIES} more")
    if any(r["sets"] for r in run.rows):
        lines += ["", "## Stages", "", tables.markdown(run.rows)]
    lines += ["", "## Steps", "", "| step | state | reads | time |", "| --- | --- | --- | ---: |"]
    for step in run.steps.values():
        spent = duration(step.manifest.seconds) if step.manifest else ""
        reads = ", ".join(step.upstream)
        lines.append(f"| {safe(step.name)} | {safe(step.state)} | {safe(reads)} | {spent} |")
    counted = [d for step in run.steps.values() if (d := page.dropped(step))]
    if counted:
        lines += ["", "## Dropped", "", "| step | what | n | share |", "| --- | --- | ---: | ---: |"]
        for d in counted:
            for r in d["rows"]:
                share = "" if r["share"] is None else f"{100 * r['share']:.1f} %"
                lines.append(f"| {safe(d['step'])} | {safe(r['group'])}: {safe(r['name'])} | {r['n']:.0f} | {share} |")
    total = page.cost(run)
    lines += [
        "", "## Cost", "",
        f"{duration(total['seconds'])}, {total['tokens']:,} tokens, {total['device_hours']:.2f} device-hours.",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def safe(text: str) -> str:
    """One line of text that Markdown shows as it is."""
    return _ACTIVE.sub(r"\\\1", " ".join(clean(text).split()))
