"""`r1pipe score FILE --reward NAME`: a verdict on each row of a file, with the verifiers that training uses."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from r1pipe.cli import options as o
from r1pipe.cli import terminal
from r1pipe.errors import UserError

if TYPE_CHECKING:
    from r1pipe.rewards.scorefile import Tally

SHOWN = 12  # reasons and differences that people are shown


def score(
    file: Annotated[Path | None, typer.Argument(help="Rows: .jsonl, .json, .csv or .parquet.")] = None,
    reward: Annotated[
        str, typer.Option("--reward", "-r", help="accuracy, format, language, countdown, code, ...: see --list.")
    ] = "accuracy",
    list_: Annotated[bool, typer.Option("--list", help="The rewards, what they read and what they say.")] = False,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-o", metavar="KEY=VALUE", help="An option of the reward; may be repeated."),
    ] = None,
    prefilled: Annotated[
        bool, typer.Option("--prefilled", help="The prompt ended with the opening think tag: put it back.")
    ] = False,
    model: Annotated[
        Path | None, typer.Option("--model", help="Folder of the reward model (helpful, harmless).")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the JSON lines here; the table stays.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a row on stdout, in order.")] = False,
    allow_code: o.AllowCode = False,
    debug: o.Debug = False,
) -> int:
    """Score the rows of a file: {completion|text, gold|answer, kind?, target?}, flat or under "input"."""
    import json as js

    from r1pipe import stage
    from r1pipe.data import files
    from r1pipe.rewards import registry, scorefile

    if allow_code:
        stage.allow_code(Path.cwd())
    if list_:
        return _list()
    if file is None:
        raise UserError("which file?", hint="r1pipe score FILE.jsonl --reward accuracy; --list shows the rewards")
    registry.entry(reward)  # a wrong name before a wrong file
    err = terminal.err_console()
    torn = 0

    def count(reason: str) -> None:
        nonlocal torn
        torn += 1

    records = (r for path in files.find(str(file), "train") for r in files.read(path, count))
    scorer = scorefile.Scorer(
        reward,
        _options(option),
        prefilled=prefilled,
        model=model,
        warn=lambda text: err.print(f"[yellow]![/] {terminal.safe(text)}", soft_wrap=True),
    )
    tally = scorefile.Tally()
    started = time.monotonic()
    sink = out.open("w", encoding="utf-8") if out else sys.stdout if json else None
    try:
        for line, expect in scorer.score(records):
            tally.take(line, expect)
            if sink is not None:
                sink.write(js.dumps(line, ensure_ascii=False) + "\n")
    finally:
        scorer.close()
        if sink is not None and out:
            sink.close()
    if not tally.rows:
        raise UserError(f"{file} has no rows")
    if torn:
        err.print(f"[yellow]![/] {torn} torn lines were left out", soft_wrap=True)
    if not json:
        _show(reward, tally, time.monotonic() - started, scorer.facts(), out)
    return 0


def _options(given: list[str] | None) -> dict[str, Any]:
    from r1pipe import yamlio

    found = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UserError(f"--option {text!r} is not of the form key=value", hint="--option soft=true")
        found[key.strip()] = yamlio.parse(value, f"--option {key}")
    return found


def _show(reward: str, tally: Tally, seconds: float, facts: dict[str, Any], out: Path | None) -> None:
    from rich.table import Table

    console = terminal.console()
    table = Table(title=f"{reward}: {tally.rows} rows in {terminal.duration(seconds)}", title_justify="left")
    table.add_column("status")
    table.add_column("rows", justify="right")
    table.add_column("share", justify="right")
    for status in ("scored", "unverifiable", "timeout", "error"):
        n = tally.status[status]
        style = "red" if n and status == "error" else "yellow" if n and status == "timeout" else None
        table.add_row(status, str(n), f"{n / tally.rows:.1%}", style=style)
    console.print(table)
    if tally.scored:
        nulls = tally.rows - tally.scored
        without = f" ({nulls} without a score left out)" if nulls else ""
        console.print(f"mean score {tally.total / tally.scored:.4f}{without}")
    for (status, detail), n in tally.details.most_common(SHOWN):
        console.print(f"  {n} {status}: {terminal.safe(detail[:160])}", soft_wrap=True)
    if len(tally.details) > SHOWN:
        console.print(f"  and {len(tally.details) - SHOWN} other reasons (--json has each)")
    for key, value in facts.items():
        console.print(f"  {key}: {terminal.safe(str(value))}", soft_wrap=True)
    if tally.expected:
        right = tally.expected - len(tally.differ)
        console.print(f"as expected: {right} of {tally.expected} rows ({right / tally.expected:.1%})")
        for line in tally.differ[:SHOWN]:
            said = f"{line['score']} {line['status']} {line['detail']}".strip()
            console.print(
                f"  {terminal.safe(str(line['id']))}: expected {line['expect']}, is {terminal.safe(said[:120])}",
                soft_wrap=True,
            )
        if len(tally.differ) > SHOWN:
            console.print(f"  and {len(tally.differ) - SHOWN} more")
    if out:
        console.print(f"each verdict: {terminal.safe(str(out))}")


def _list() -> int:
    """The rewards, with the first line of what each says of itself."""
    from rich.table import Table

    from r1pipe.rewards import registry

    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("reward", "rows", "needs", "what"):
        table.add_column(column)
    for name in [*registry.REGISTRY, *sorted(registry.installed())]:
        found = registry.entry(name)
        kinds = ", ".join(sorted(found.kinds)) if found.kinds else "all"
        table.add_row(name, kinds, ", ".join(found.columns), registry.about(name))
    terminal.console().print(table)
    return 0
