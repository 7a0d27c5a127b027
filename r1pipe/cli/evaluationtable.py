"""What an evaluation shows: every set after every step, with intervals and paired changes; and the details."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from r1pipe.cli import grid
from r1pipe.cli.terminal import duration, safe

if TYPE_CHECKING:
    from rich.console import Console

    from r1pipe.cli.grid import Cell, Column
    from r1pipe.evaluate.job import Evaluated
    from r1pipe.evaluate.results import Cache

Line = tuple["Evaluated", str, str, dict[str, Any]]  # model, set, mode, its numbers
HEAD = (("accuracy", "pass@1"), ("refusal_unsafe", "refused unsafe"), ("refusal_safe", "refused safe"))


def lines(done: list[Evaluated]) -> list[Line]:
    """A line a model, set and mode."""
    return [
        (found, name, mode, numbers)
        for found in done
        for name, (_, result) in found.results.items()
        for mode, numbers in result.metrics.items()
    ]


def report(target: str, suite: str, done: list[Evaluated], cache: Cache) -> dict[str, Any]:
    """The whole of it for --json."""
    changes = _changes(done, cache)
    return {
        "target": target,
        "suite": suite,
        "folder": str(cache.root),
        "models": [
            {
                "name": found.subject.name,
                "source": found.subject.source,
                "digest": found.subject.digest,
                "from": found.subject.parent,
                "sets": {
                    name: {
                        "cached": name in found.cached,
                        "folder": str(folder),
                        "metrics": result.metrics,
                        "change": changes.get((found.subject.name, name), {}),
                        "counts": result.counts,
                        "facts": result.facts,
                        "warnings": result.warnings,
                        "tokens": result.tokens,
                        "seconds": result.seconds,
                    }
                    for name, (folder, result) in found.results.items()
                },
            }
            for found in done
        ],
    }


def _changes(done: list[Evaluated], cache: Cache) -> dict[tuple[str, str], dict[str, Any]]:
    """(model, set) -> mode -> metric -> the paired change against the step it started from, where both are here."""
    from r1pipe.evaluate.paired import paired

    by_name = {found.subject.name: found for found in done}
    changes: dict[tuple[str, str], dict[str, Any]] = {}
    for found in done:
        parent = by_name.get(found.subject.parent or "")
        for name, (folder, result) in found.results.items():
            if parent is None or name not in parent.results:
                continue
            a, b = cache.records(parent.results[name][0]), cache.records(folder)
            for mode, numbers in result.metrics.items():
                for metric, _ in HEAD:
                    if metric in numbers and (change := paired(a, b, metric, name, mode))["n"]:
                        changes.setdefault((found.subject.name, name), {}).setdefault(mode, {})[metric] = change
    return changes


def show(out: Console, done: list[Evaluated], cache: Cache) -> None:
    for table in grid.tables(_main(done, cache), out.width):
        out.print(table)
        out.print()
    told = [(f"{f.subject.name} {name} {mode}", numbers) for f, name, mode, numbers in lines(done)]
    for table in grid.tables(details(told), out.width):
        out.print(table)
        out.print()
    total = sum(len(found.results) for found in done)
    cached = sum(len(found.cached) for found in done)
    seconds = sum(r.seconds for f in done for n, (_, r) in f.results.items() if n not in f.cached)
    said = (
        "cached"
        if cached == total
        else f"{cached} of {total} cached, {duration(seconds)}"
        if cached
        else duration(seconds)
    )
    out.print(f"{said} → {safe(str(cache.root))}", highlight=False, soft_wrap=True)


def _main(done: list[Evaluated], cache: Cache) -> list[Column]:
    """A row a model, a column a set, mode and headline number."""
    changes = _changes(done, cache)
    heads = list(
        dict.fromkeys(
            (name, mode, metric, said)
            for _, name, mode, numbers in lines(done)
            for metric, said in HEAD
            if metric in numbers
        )
    )
    several = {(n, x) for n, _, x, _ in heads if len({m for a, m, b, _ in heads if (a, b) == (n, x)}) > 1}
    made: list[Column] = [("model", "left", [(f.subject.name, "") for f in done])]
    if any(f.subject.parent for f in done):
        made.append(("from", "left", [(f.subject.parent or "", "dim") for f in done]))
    for name, mode, metric, said in heads:
        how = f"{said} {mode}, %" if (name, metric) in several else f"{said}, %"
        made.append((f"{name}\n{how}", "right", [_number(f, name, mode, metric) for f in done]))
        told = [changes.get((f.subject.name, name), {}).get(mode, {}).get(metric) for f in done]
        if any(told):
            made.append(("change\n95 % interval", "right", [_change(c, metric) for c in told]))
    return made


def _number(found: Evaluated, name: str, mode: str, metric: str) -> Cell:
    if name not in found.results:
        return "", ""
    return _share(found.results[name][1].metrics.get(mode, {}).get(metric), interval=True), ""


def _share(number: dict[str, Any] | None, *, interval: bool = False) -> str:
    if not number:
        return ""
    text = f"{100 * number['value']:.1f}"
    if interval and number["low"] is not None and number["high"] is not None:
        text += f" [{100 * number['low']:.1f}, {100 * number['high']:.1f}]"
    return text


def _change(change: dict[str, Any] | None, metric: str) -> Cell:
    if not change:
        return "", ""
    from r1pipe.evaluate.paired import LOWER_IS_BETTER

    sign = -1 if metric in LOWER_IS_BETTER else 1
    low, high = sorted((sign * change["low"], sign * change["high"]))
    style = "green" if low > 0 else "red" if high < 0 else ""
    points = [round(100 * change[k], 1) + 0.0 for k in ("delta", "low", "high")]
    return f"{points[0]:+.1f} [{points[1]:.1f}, {points[2]:.1f}]", style


def details(all_: list[tuple[str, dict[str, Any]]]) -> list[Column]:
    """A row a model, set and mode (their label, its numbers); only columns with something in them."""
    names = {name for _, numbers in all_ for name in numbers}
    most = max((int(n.partition("@")[2]) for n in names if n.startswith("pass@")), default=0)

    def column(header: str, cell: Any) -> Column:
        return header, "right", [(cell(numbers), "") for _, numbers in all_]

    def share(metric: str, header: str) -> Column:
        return column(header, lambda numbers: _share(numbers.get(metric)))

    def whole(metric: str, header: str) -> Column:
        return column(header, lambda m: f"{m[metric]['value']:,.0f}" if m.get(metric) else "")

    def best(prefix: str, numbers: dict[str, Any]) -> str:
        ks = [int(n.partition("@")[2]) for n in numbers if n.startswith(f"{prefix}@")]
        return f"{_share(numbers[f'{prefix}@{max(ks)}'])} @{max(ks)}" if ks else ""

    label = ("model, set", "left", [(name, "") for name, _ in all_])
    made: list[Column] = [
        label,
        column("problems\nx samples", lambda m: f"{m['problems']} x {m['samples']}"),
        column("pass@1\n%", lambda m: _share(m.get("accuracy"), interval=True)),
        share("partial", "partial\n%"),
        *(
            [column("pass@k\n%", partial(best, "pass")), column("majority\n%", partial(best, "majority"))]
            if most
            else []
        ),
        share("format", "format\n%"),
        share("language", "language\n%"),
        whole("tokens", "length\ntokens"),
        whole("tokens_per_right", "tokens\na right one"),
        share("truncated", "cut off\n%"),
        share("distinct_answers", "distinct\nanswers, %"),
        share("distinct_2", "distinct\npairs, %"),
        share("refusal_unsafe", "refused\nunsafe, %"),
        share("refusal_safe", "refused\nsafe, %"),
        ("verdicts", "left", [(_verdicts(m), "red" if m["status"].get("error") else "dim") for _, m in all_]),
    ]
    return [c for c in made if c is label or any(text for text, _ in c[2])]


def _verdicts(numbers: dict[str, Any]) -> str:
    """`812 scored, 3 unverifiable, 1 timeout, 2 error, 4 skipped`."""
    told = [*numbers["status"].items(), *([("skipped", numbers["skipped"])] if numbers["skipped"] else [])]
    return ", ".join(f"{count} {status}" for status, count in told)
