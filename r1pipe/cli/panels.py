"""The picture of the live view: pipeline, running step, warnings. Pure: a board and a size in, a renderable out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from r1pipe.cli import progress as pg
from r1pipe.cli.terminal import clean, duration

if TYPE_CHECKING:
    from rich.console import RenderableType

# state → (symbol, plain symbol, style)
LOOK = {
    "done": ("✓", "+", "green"),
    "kept": ("✓", "+", "dim"),
    "running": ("▶", ">", "bold cyan"),
    "waiting": ("·", ".", "dim"),
    "failed": ("✗", "x", "bold red"),
    "stopped": ("‖", "=", "yellow"),
}
BARS = "▁▂▃▄▅▆▇█"
SHOWN_WARNINGS = 4


def board(b: pg.Board, *, width: int, height: int, fancy: bool, now: float) -> RenderableType:
    """Everything. Where the screen is low, warnings go first, then finished and waiting steps are folded."""
    from rich.console import Group
    from rich.text import Text

    running = b.running
    states = list(b.steps.values())
    done = sum(s.state in ("done", "kept") for s in states)
    head = Text.assemble(
        (clean(b.run), "bold"), f"  profile {clean(b.profile)}  ",
        (f"{done}/{len(states)} steps, {duration(now - b.began)}", "dim"), overflow="ellipsis", no_wrap=True,
    )  # fmt: skip
    rows_of_metrics = min(_metric_rows(running, width), max(1, height - 7 - min(len(states), 4))) if running else 0
    step_panel = _running(running, rows_of_metrics, width=width, fancy=fancy, now=now) if running else None
    panel_lines = 5 + rows_of_metrics if running else 0
    left = height - 3 - panel_lines
    rows = states
    if len(rows) > left:
        rows = _fold(states, max(3, left - 1))
    parts: list[RenderableType] = [head, _table(rows, len(states), width=width, fancy=fancy, now=now)]
    if step_panel is not None:
        parts.append(step_panel)
    room = height - 2 - len(rows) - (len(rows) < len(states)) - panel_lines
    parts += _warnings(b.warnings, room, fancy)
    return Group(*parts)


def _fold(states: list[pg.StepState], room: int) -> list[pg.StepState]:
    """The steps around the one that runs."""
    at = next((i for i, s in enumerate(states) if s.state in ("running", "failed", "stopped")), len(states) - 1)
    first = max(0, min(at - room // 2, len(states) - room))
    return states[first : first + room]


def _table(states: list[pg.StepState], total: int, *, width: int, fancy: bool, now: float) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False, expand=True)
    grid.add_column(width=1)
    grid.add_column(no_wrap=True, overflow="ellipsis", max_width=max(12, width // 3))
    grid.add_column(justify="right", no_wrap=True, min_width=6)
    grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    for s in states:
        symbol, plain, style = LOOK[s.state]
        elapsed = duration(s.elapsed(now)) if s.state in ("running", "done", "failed", "stopped") else ""
        if s.state == "kept":
            elapsed = "kept"
        grid.add_row(
            Text(symbol if fancy else plain, style=style), Text(clean(s.name), style=style),
            Text(elapsed, style="dim" if s.state == "kept" else style), _about(s, now),
        )  # fmt: skip
    if len(states) < total:
        grid.add_row("", Text(f"and {total - len(states)} more", style="dim"), "", "")
    return grid


def _about(s: pg.StepState, now: float) -> Any:
    from rich.text import Text

    if s.state == "failed":
        return Text(clean(s.error).split("\n")[0].removeprefix(f"step {s.name} failed: "), style="red")
    if s.state == "running":
        eta = s.eta(now)
        return Text(f"{clean(s.phase)}, {duration(eta)} to go" if eta is not None else clean(s.phase), style="cyan")
    if s.state == "stopped":
        return Text("stopped; the same command goes on from here", style="yellow")
    if s.state in ("done", "kept"):
        said = "  ".join(f"{pg.label(k)} {pg.show(k, v)}" for k, v in list(s.result.items())[:3])
        return Text(said, style="dim" if s.state == "kept" else "")
    return Text(clean(s.text), style="dim")


def _running(s: pg.StepState, rows: int, *, width: int, fancy: bool, now: float) -> RenderableType:
    """step/total with a bar, the metrics, the curve of the reward (or loss)."""
    from rich import box
    from rich.console import Group
    from rich.panel import Panel
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    inner = width - 4
    count = f"{s.at}/{s.total}" if s.total else ""
    eta = s.eta(now)
    right = "  ".join(x for x in (count, f"ETA {duration(eta)}" if eta is not None else "") if x)
    line = Table.grid(expand=True, padding=(0, 1))
    line.add_column(ratio=1)
    line.add_column(justify="right", no_wrap=True)
    bar = ProgressBar(total=s.total or None, completed=s.at, pulse=not s.total, animation_time=now)
    line.add_row(bar if fancy or s.total else Text("working"), Text(right))
    curve = list(s.curve)
    name = "reward" if "reward" in s.metrics else "loss"
    lines: list[Any] = [Text(clean(s.text), style="dim", no_wrap=True, overflow="ellipsis"), line]
    if fancy and len(curve) > 1:
        chart = sparkline(curve, max(10, inner - 24))
        lines.append(Text.assemble((f"{name} ", "dim"), (chart, "cyan"), no_wrap=True, overflow="crop"))
    else:
        lines.append(Text(""))
    lines.append(_metrics(s, rows, width))
    return Panel(
        Group(*lines), title=Text(f"{clean(s.name)}: {clean(s.phase)}"), title_align="left",
        border_style="cyan", box=box.ROUNDED if fancy else box.ASCII, width=width, padding=(0, 1),
    )  # fmt: skip


def _columns(width: int) -> int:
    return max(1, (width - 4) // 25)


def _metric_rows(s: pg.StepState, width: int) -> int:
    return max(1, -(-len(s.metrics) // _columns(width)))


def _metrics(s: pg.StepState, rows: int, width: int) -> RenderableType:
    """As many as fit in `rows`; they come in order of interest."""
    from rich.table import Table
    from rich.text import Text

    columns = _columns(width)
    grid = Table.grid(padding=(0, 2))
    for _ in range(columns):
        grid.add_column(width=(width - 4) // columns - 2, no_wrap=True, overflow="ellipsis")
    cells = [
        Text.assemble((f"{clean(pg.label(k))} ", "dim"), (clean(pg.show(k, v)), "bold"))
        for k, v in pg.ordered(dict(s.metrics))
    ]
    for r in range(rows):
        row = cells[r * columns : (r + 1) * columns]
        grid.add_row(*row, *[Text("") for _ in range(columns - len(row))])
    return grid


def _warnings(warnings: list[tuple[str, str]], room: int, fancy: bool) -> Iterable[RenderableType]:
    """The last few, a line each; the manifest has all of them."""
    from rich.text import Text

    keep = min(SHOWN_WARNINGS, room)
    if not warnings or keep < 1:
        return []
    hidden = max(0, len(warnings) - keep)
    mark = "⚠" if fancy else "!"
    lines = [
        Text(line.replace("\n", " "), style="yellow", no_wrap=True, overflow="ellipsis")
        for line in (f"{mark} {clean(step)}: {clean(text)}" for step, text in warnings[-keep:])
    ]
    if hidden:
        lines[0].append(f"  (+{hidden} earlier)", style="dim")
    return lines


def sparkline(values: list[float], width: int) -> str:
    """A curve of at most `width` characters, from the means of equal parts."""
    if len(values) > width:
        parts = [values[i * len(values) // width : (i + 1) * len(values) // width] for i in range(width)]
        values = [sum(p) / len(p) for p in parts]
    low, high = min(values), max(values)
    if high - low < 1e-12:
        return BARS[3] * len(values)
    return "".join(BARS[min(7, int(8 * (v - low) / (high - low)))] for v in values)
