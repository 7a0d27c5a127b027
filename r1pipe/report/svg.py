"""Line charts as static inline SVG: no script, colours from the page's style, values under the pointer as titles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from r1pipe.report.history import Points, smooth, thin
from r1pipe.report.text import safe

LEFT, RIGHT, TOP, BOTTOM = 46, 10, 8, 24
HITS = 100  # points of a chart that tell their value


@dataclass
class Line:
    """A curve, with a band around it where there is one."""

    label: str
    points: Points
    band: tuple[Points, Points] | None = None


@dataclass
class Figure:
    """A chart with its caption."""

    title: str
    svg: Markup
    lines: list[str] = field(default_factory=list)  # legend, where there are several
    last: str = ""
    note: str = ""


def number(value: float, share: bool = False) -> str:
    """Short, for an axis or a caption."""
    if share:
        return f"{100 * value:.3g} %" if 0 < abs(value) < 0.1 else f"{100 * value:.0f} %"
    if value == 0:
        return "0"
    if abs(value) < 1e-3 or abs(value) >= 1e6:
        mantissa, _, exponent = f"{value:.1e}".partition("e")
        return f"{mantissa.removesuffix('.0')}e{int(exponent)}"
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.3g}"


def ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Round numbers from `low` to `high`."""
    if not high > low:
        return [low]
    raw = (high - low) / about
    size = 10.0 ** math.floor(math.log10(raw))
    size *= min((m for m in (1, 2, 2.5, 5, 10) if m * size >= raw), default=10)
    first = math.ceil(low / size - 1e-9)
    return [
        round((first + i) * size, 12)
        for i in range(int((high - low) / size + 1e-9) + 1)
        if (first + i) * size <= high + 1e-9 * size
    ]


def chart(
    title: str,
    lines: Sequence[Line],
    *,
    share: bool = False,
    marks: Sequence[float] = (),
    width: int = 280,
    height: int = 150,
) -> Figure | None:
    """A chart of one or several curves over the training steps; None without a point."""
    bucket = 1
    drawn: list[Line] = []
    for line in lines:
        points, size = thin(line.points)
        bucket = max(bucket, size)
        if points:
            band = (thin(line.band[0])[0], thin(line.band[1])[0]) if line.band else None
            drawn.append(Line(line.label, points, band))
    if not drawn:
        return None
    xs = [x for line in drawn for x, _ in line.points]
    ys = [y for line in drawn for _, y in line.points]
    ys += [y for line in drawn if line.band for side in line.band for _, y in side]
    x0, x1 = min(xs), max(xs)
    low, high = _range(ys, share)
    inner_w, inner_h = width - LEFT - RIGHT, height - TOP - BOTTOM

    def px(x: float) -> float:
        return LEFT + (inner_w / 2 if x1 == x0 else inner_w * (x - x0) / (x1 - x0))

    def py(y: float) -> float:
        return TOP + inner_h * (1 - (y - low) / (high - low))

    def path(points: Points) -> str:
        return "M" + "L".join(f"{px(x):.1f} {py(y):.1f}" for x, y in points)

    parts = [f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{safe(title)}">']
    for y in ticks(low, high):
        parts.append(
            f'<path class="grid" d="M{LEFT} {py(y):.1f}H{width - RIGHT}"/>'
            f'<text x="{LEFT - 6}" y="{py(y) + 3.5:.1f}" class="ay">{safe(number(y, share))}</text>'
        )
    for x in _steps(x0, x1):
        parts.append(f'<text x="{px(x):.1f}" y="{height - 8}" class="ax">{safe(number(x))}</text>')
    for x in marks:
        late = px(x) > width - 60  # its number stands before it
        parts.append(
            f'<path class="mark" d="M{px(x):.1f} {TOP}V{TOP + inner_h}"/>'
            f'<text x="{px(x) + (-4 if late else 4):.1f}" y="{TOP + 10}" class="at{" end" if late else ""}">'
            f"{safe(number(x))}</text>"
        )
    for i, line in enumerate(drawn):
        if line.band:
            lower, upper = line.band
            parts.append(f'<path class="band s{i % 8}" d="{path(upper)}L{path(lower[::-1])[1:]}Z"/>')
        soft = smooth(line.points)
        if len(line.points) == 1:
            x, y = line.points[0]
            parts.append(f'<circle class="dot s{i % 8}" cx="{px(x):.1f}" cy="{py(y):.1f}" r="3"/>')
        parts.append(f'<path class="line s{i % 8}{" raw" if soft else ""}" d="{path(line.points)}"/>')
        if soft:
            parts.append(f'<path class="line s{i % 8}" d="{path(soft)}"/>')
        for x, y in thin(line.points, max(2, HITS // len(drawn)))[0]:
            label = f"{line.label}, " if len(drawn) > 1 else ""
            parts.append(
                f'<circle class="hit" cx="{px(x):.1f}" cy="{py(y):.1f}" r="6">'
                f"<title>{safe(f'{label}step {x:.0f}: {number(y, share)}')}</title></circle>"
            )
    parts.append("</svg>")
    several = len(drawn) > 1
    return Figure(
        title,
        Markup("".join(parts)),
        [line.label for line in drawn] if several else [],
        "" if several else f"{number(drawn[0].points[0][1], share)} → {number(drawn[0].points[-1][1], share)}",
        f"each point is the mean of {bucket} steps" if bucket > 1 else "",
    )


def _range(ys: Sequence[float], share: bool) -> tuple[float, float]:
    low, high = min(ys), max(ys)
    if share:
        low, high = min(0.0, low), max(high, 0.1)
    elif low > 0 and low < 0.4 * high:
        low = 0.0  # near enough to zero for zero to be honest
    if high == low == 0:
        return 0.0, 1.0
    if high == low:
        pad = abs(high) * 0.1 or 1.0
        return low - pad, high + pad
    room = 0.04 * (high - low)
    return (low if low == 0 else low - room), (high if share and high == 1 else high + room)


def _steps(x0: float, x1: float) -> list[float]:
    return sorted({float(round(x)) for x in ticks(x0, x1, 5)}) if x1 - x0 >= 4 else sorted({x0, x1})
