"""Tables that stay whole: columns in as few tables as a terminal's width allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r1pipe.cli.terminal import clean

if TYPE_CHECKING:
    from rich.table import Table

GAP = 2  # columns between two columns
Cell = tuple[str, str]  # text, style
Column = tuple[str, str, list[Cell]]  # header (may have two lines), justify, a cell a row


def tables(made: list[Column], width: int) -> list[Table]:
    """The columns in as few tables as `width` allows; each begins with the step's name."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    first, *others = made
    packs: list[list[Column]] = [[]]
    used = _width(first)
    for column in others:
        if packs[-1] and used + _width(column) - GAP > width:
            packs.append([])
            used = _width(first)
        packs[-1].append(column)
        used += _width(column)
    found = []
    for pack in packs:
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold", show_edge=False)
        for header, justify, _ in [first, *pack]:
            table.add_column(header, justify=justify, no_wrap=True, overflow="ellipsis")  # type: ignore[arg-type]
        for cells in zip(*(c[2] for c in [first, *pack]), strict=True):
            table.add_row(*[Text(clean(text), style=style) for text, style in cells])
        found.append(table)
    return found


def _width(column: Column) -> int:
    header, _, cells = column
    return max(len(line) for line in [*header.split("\n"), *(text for text, _ in cells)]) + GAP
