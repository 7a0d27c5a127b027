"""The pipeline as a picture: layers by longest path, long edges through lanes of their own, few crossings."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from markupsafe import Markup

from r1pipe.report.text import safe

WIDE, HIGH = 178, 54  # of a node
LANE = 12  # what an edge that passes a layer takes there
MARKS = {"done": "✓", "running": "▶", "failed": "✗", "damaged": "✗", "interrupted": "‖", "never run": "·"}


@dataclass
class Node:
    """A step of the picture."""

    name: str
    state: str
    text: str = ""
    upstream: list[str] = field(default_factory=list)


@dataclass
class _Place:
    """A node, or the point where a long edge passes a layer."""

    key: str
    node: Node | None
    before: list[_Place] = field(default_factory=list)
    after: list[_Place] = field(default_factory=list)
    at: float = 0.0


def draw(nodes: list[Node], *, down: bool = False) -> Markup:
    """The graph from left to right, or downwards for a narrow screen."""
    layers, edges = _layers(nodes)
    size = (WIDE, LANE) if down else (HIGH, LANE)
    _order(layers)
    _place(layers, size, gap=14 if down else 18)
    along = HIGH + 34 if down else WIDE + 46
    low = min(p.at - _half(p, size) for row in layers for p in row)
    high = max(p.at + _half(p, size) for row in layers for p in row)
    length = along * (len(layers) - 1) + (HIGH if down else WIDE)
    across = high - low
    width, height = (across + 4, length + 4) if down else (length + 4, across + 4)

    def spot(layer: int, place: _Place, end: bool) -> tuple[float, float]:
        """Where an edge leaves (`end`) or enters a place."""
        thick = HIGH if down else WIDE
        depth = layer * along + 2 + (thick if end else 0)
        over = place.at - low + 2
        return (over, depth) if down else (depth, over)

    out = [
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" style="max-width:{width:.0f}px" role="img" '
        'aria-label="The steps and what each reads">'
    ]
    for chain in edges:
        points: list[tuple[float, float]] = []
        for i, (depth, place) in enumerate(chain):
            if i:
                points.append(spot(depth, place, end=False))
            if i < len(chain) - 1:
                points.append(spot(depth, place, end=True))
        out.append(f'<path class="edge" d="{_curve(points, down)}"/>')
        x, y = points[-1]
        tip = f"M{x - 4:.1f} {y - 7:.1f}L{x:.1f} {y:.1f}L{x + 4:.1f} {y - 7:.1f}Z" if down else (
            f"M{x - 7:.1f} {y - 4:.1f}L{x:.1f} {y:.1f}L{x - 7:.1f} {y + 4:.1f}Z"
        )  # fmt: skip
        out.append(f'<path class="tip" d="{tip}"/>')
    for i, layer in enumerate(layers):
        for place in layer:
            if place.node is not None:
                x, y = spot(i, place, end=False)
                out.append(_box(place.node, *((x - WIDE / 2, y) if down else (x, y - HIGH / 2))))
    return Markup("".join([*out, "</svg>"]))


def _layers(nodes: list[Node]) -> tuple[list[list[_Place]], list[list[tuple[int, _Place]]]]:
    """Places by layer, and each edge as the chain of places that it passes."""
    known = {n.name: n for n in nodes}
    rank: dict[str, int] = {}
    for node in nodes:  # producers come first
        rank[node.name] = max((rank[u] + 1 for u in node.upstream if u in rank), default=0)
    layers: list[list[_Place]] = [[] for _ in range(max(rank.values(), default=0) + 1)]
    places = {name: _Place(name, node) for name, node in known.items()}
    for name, place in places.items():
        layers[rank[name]].append(place)
    edges = []
    for node in nodes:
        for up in node.upstream:
            if up not in rank or rank[up] >= rank[node.name]:
                continue
            chain = [(rank[up], places[up])]
            for layer in range(rank[up] + 1, rank[node.name]):
                lane = _Place(f"{up}>{node.name}", None)
                layers[layer].append(lane)
                chain.append((layer, lane))
            chain.append((rank[node.name], places[node.name]))
            for (_, a), (_, b) in itertools.pairwise(chain):
                a.after.append(b)
                b.before.append(a)
            edges.append(chain)
    return layers, edges


def _order(layers: list[list[_Place]]) -> None:
    """Sorts each layer by the middle of its neighbours, a few times back and forth."""
    for sweep in range(6):
        forth = sweep % 2 == 0
        for beside, layer in itertools.pairwise(layers if forth else layers[::-1]):
            index = {id(p): float(i) for i, p in enumerate(beside)}
            ranked = []
            for i, place in enumerate(layer):
                near = [index[id(q)] for q in (place.before if forth else place.after)]
                ranked.append((sum(near) / len(near) if near else float(i), i, place))
            layer[:] = [place for _, _, place in sorted(ranked, key=lambda r: r[:2])]


def _half(place: _Place, size: tuple[int, int]) -> float:
    return (size[0] if place.node is not None else size[1]) / 2


def _place(layers: list[list[_Place]], size: tuple[int, int], gap: int) -> None:
    """Each place as near to its neighbours as the others of its layer let it."""
    for layer in layers:
        at = 0.0
        for place in layer:
            place.at = at + _half(place, size)
            at += 2 * _half(place, size) + gap
    for sweep in range(12):
        for layer in layers if sweep % 2 == 0 else layers[::-1]:
            wanted = []
            for place in layer:
                near = [q.at for q in place.before + place.after]
                wanted.append(sum(near) / len(near) if near else place.at)
            least: list[float] = []
            for i, place in enumerate(layer):
                floor = least[-1] + _half(layer[i - 1], size) + gap + _half(place, size) if i else wanted[0]
                least.append(max(floor, wanted[i]))
            shift = sum(w - at for w, at in zip(wanted, least, strict=True)) / len(layer)
            for place, at in zip(layer, least, strict=True):
                place.at = at + shift


def _curve(points: list[tuple[float, float]], down: bool) -> str:
    parts = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    for (x, y), (u, v) in itertools.pairwise(points):
        a, b = ((x, (y + v) / 2), (u, (y + v) / 2)) if down else (((x + u) / 2, y), ((x + u) / 2, v))
        parts.append(f"C{a[0]:.1f} {a[1]:.1f} {b[0]:.1f} {b[1]:.1f} {u:.1f} {v:.1f}")
    return "".join(parts)


def _box(node: Node, x: float, y: float) -> str:
    name = node.name if len(node.name) <= 20 else node.name[:19] + "…"
    text = node.text if len(node.text) <= 26 else node.text[:25] + "…"
    state = node.state.replace(" ", "-")
    return (
        f'<g class="node {safe(state)}"><title>{safe(f"{node.name}: {node.state}")}</title>'
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{WIDE}" height="{HIGH}" rx="8"/>'
        f'<text x="{x + 12:.1f}" y="{y + 22:.1f}" class="st">{MARKS.get(node.state, "·")}</text>'
        f'<text x="{x + 28:.1f}" y="{y + 22:.1f}" class="nm">{safe(name)}</text>'
        f'<text x="{x + 28:.1f}" y="{y + 41:.1f}" class="nt">{safe(text)}</text></g>'
    )
