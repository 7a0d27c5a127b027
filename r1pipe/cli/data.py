"""`r1pipe data`: what is in a dataset, and a clean copy of it that a profile can use."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from r1pipe.cli import options as o
from r1pipe.cli import terminal
from r1pipe.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console

    from r1pipe.settings import Cleaning, DataSpec

app = typer.Typer(
    add_completion=False, no_args_is_help=True, rich_markup_mode="rich", pretty_exceptions_enable=False,
    help="Datasets: inspect, prepare.",
)  # fmt: skip

NEAR = 0.8  # share of word triples at which two questions are near duplicates, by default
EXCERPT = 400  # characters of an example on the screen
REASONS = 30

Source = Annotated[
    str,
    typer.Argument(
        help="A .jsonl, .json, .csv or .parquet file, a folder, a hub id, reasoning-gym:TASK, generated:NAME."
    ),
]
Use = Annotated[
    Literal["auto", "prompts", "traces", "pairs", "labels"],
    typer.Option("--use", "-u", help="What the rows are for: RL, SFT, preferences, safe or not."),
]
Split = Annotated[str, typer.Option("--split", help="Split of the source.")]
Revision = Annotated[str | None, typer.Option("--revision", help="Commit of a hub dataset.", show_default=False)]
Kind = Annotated[str | None, typer.Option("--kind", help="Kind of rows that carry none.", show_default=False)]
Columns = Annotated[
    list[str] | None,
    typer.Option("--columns", "-c", metavar="FIELD=COLUMN", help="A row field and its column; may be repeated."),
]
Args = Annotated[
    list[str] | None,
    typer.Option("--arg", "-a", metavar="KEY=VALUE", help="An argument of the source (level=2, name=main); repeat."),
]
Rows = Annotated[
    int | None, typer.Option("--rows", min=1, help="So many rows, drawn by the seed.", show_default=False)
]
Seed = Annotated[int, typer.Option("--seed", help="For drawing rows, and for sources that are made.")]
Against = Annotated[
    list[str] | None,
    typer.Option(
        "--against",
        metavar="EVALSET",
        help="Leave out rows that are in this set: a source, with @REVISION and #SPLIT (test); may be repeated.",
    ),
]
Ngram = Annotated[int, typer.Option("--ngram", min=4, max=50, help="Words of an n-gram for --against.")]
NearDup = Annotated[
    float, typer.Option("--near-dup", min=0, max=1, help="Likeness of near duplicates that are left out; 0: none are.")
]
NoDedup = Annotated[bool, typer.Option("--no-dedup", help="Keep exact duplicates.")]
Language = Annotated[
    list[str] | None, typer.Option("--language", "-l", help="Keep rows of this language (en, zh); may be repeated.")
]
MinChars = Annotated[int | None, typer.Option("--min-chars", min=0, help="Least characters of a question.")]
MaxChars = Annotated[int | None, typer.Option("--max-chars", min=1, help="Most characters of a row.")]
PassRate = Annotated[
    tuple[float, float] | None, typer.Option("--pass-rate", metavar="LOW HIGH", help="Keep rows within this band.")
]
PassRates = Annotated[
    str | None, typer.Option("--pass-rates", metavar="FILE", help="Measured pass rates by row id; else a column.")
]


@app.command("inspect")
def inspect_(
    source: Source,
    use: Use = "auto",
    split: Split = "train",
    revision: Revision = None,
    columns: Columns = None,
    kind: Kind = None,
    arg: Args = None,
    rows: Rows = None,
    tokenizer: Annotated[
        str | None, typer.Option("--tokenizer", help="Lengths in tokens too: a folder, builtin:tiny-base, a hub id.")
    ] = None,
    against: Against = None,
    ngram: Ngram = 10,
    near_dup: NearDup = NEAR,
    seed: Seed = 42,
    json: o.Json = False,
    debug: o.Debug = False,
) -> int:
    """Schema, rows, lengths, languages, golds that parse, duplicates, and what would be dropped and why."""
    from r1pipe.data import inspection

    clean = _cleaning(near_dup=near_dup, against=against, ngram=ngram)
    spec = _spec(source, split, revision, columns, kind, arg, rows, clean)
    with _progress(json) as (progress, reading):
        report = inspection.inspect(
            spec, None if use == "auto" else use, seed=seed, tokenizer=tokenizer, progress=progress, reading=reading
        )
    if json:
        _print_json(report)
    else:
        _show(terminal.console(), report, source)
    return 0


@app.command()
def prepare(
    source: Source,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for rows, dropped rows, manifest and card.")],
    use: Use = "auto",
    split: Split = "train",
    revision: Revision = None,
    columns: Columns = None,
    kind: Kind = None,
    arg: Args = None,
    rows: Rows = None,
    against: Against = None,
    ngram: Ngram = 10,
    near_dup: NearDup = NEAR,
    no_dedup: NoDedup = False,
    language: Language = None,
    min_chars: MinChars = None,
    max_chars: MaxChars = None,
    pass_rate: PassRate = None,
    pass_rates: PassRates = None,
    seed: Seed = 42,
    force: Annotated[bool, typer.Option("--force", help="Write into a folder that holds other files.")] = False,
    json: o.Json = False,
    debug: o.Debug = False,
) -> int:
    """Write normalised rows, what was dropped and why, a manifest and a card. The folder is a source for profiles."""
    from r1pipe.data import prepare as preparing

    clean = _cleaning(
        dedup=not no_dedup, near_dup=near_dup, against=against, ngram=ngram, languages=language or None,
        min_chars=min_chars, max_chars=max_chars, pass_rate=pass_rate, pass_rates=pass_rates,
    )  # fmt: skip
    spec = _spec(source, split, revision, columns, kind, arg, rows, clean)
    with _progress(json) as (progress, reading):
        manifest = preparing.prepare(
            spec, None if use == "auto" else use, out, seed=seed, force=force, progress=progress, reading=reading
        )
    if json:
        _print_json({"out": str(out), **manifest})
    else:
        _show_prepared(terminal.console(), manifest, out)
    return 0


def _print_json(value: dict[str, Any]) -> None:
    import json as js

    text = js.dumps(value, ensure_ascii=False, indent=2)
    sys.stdout.write(text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n")


def _cleaning(*, near_dup: float, against: list[str] | None, **given: Any) -> Cleaning:
    from pydantic import ValidationError

    from r1pipe.settings import Cleaning

    given = {k: v for k, v in given.items() if v is not None}
    try:
        return Cleaning(
            **{"dedup": True, **given},
            near_dup=near_dup or None,
            decontaminate=[_evaluation_set(text) for text in against or ()],
        )
    except ValidationError as error:
        said = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise UserError(said.removeprefix(": "), hint="r1pipe data prepare --help") from None


def _evaluation_set(text: str) -> dict[str, str]:
    """`SOURCE[@REVISION][#SPLIT]`; what is there as a file is one, whatever its name."""
    if Path(text).expanduser().exists():
        return {"source": text, "split": "test"}
    match = re.fullmatch(r"(?P<source>[^@#]+)(?:@(?P<revision>[^@#]+))?(?:#(?P<split>[^@#]+))?", text)
    if match is None:
        raise UserError(f"--against {text} is not of the form SOURCE@REVISION#SPLIT")
    return {"split": "test", **{k: v for k, v in match.groupdict().items() if v is not None}}


def _spec(
    source: str,
    split: str,
    revision: str | None,
    columns: list[str] | None,
    kind: str | None,
    arg: list[str] | None,
    rows: int | None,
    clean: Cleaning,
) -> DataSpec:
    from r1pipe import keys, yamlio
    from r1pipe.settings import DataSpec

    spec = DataSpec(
        source=source,
        split=split,
        revision=revision,
        columns=_pairs("--columns", columns),
        kind=kind,
        args={k: yamlio.parse(v, f"--arg {k}") for k, v in _pairs("--arg", arg).items()},
        rows=rows,
        clean=clean,
    )
    keys.refuse(spec.model_dump(mode="json"))  # they go into the manifest and the card
    return spec


def _pairs(option: str, given: list[str] | None) -> dict[str, str]:
    found = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise UserError(f"{option} {text!r} is not of the form key=value", hint=f"{option} gold=your_column")
        found[key.strip()] = value.strip()
    return found


@contextmanager
def _progress(json: bool) -> Iterator[tuple[Any, Any]]:
    """What is being done and how many rows were read, in one line that goes again; nothing where nobody looks."""
    console = terminal.err_console()
    if json or not console.is_terminal:
        yield (lambda text: None), (lambda records: records)
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("reading")

        def progress(text: str) -> None:
            bar.update(task, description=text)

        def reading(records: Iterable[Any]) -> Iterator[Any]:
            n = 0
            for n, record in enumerate(records, start=1):
                if n % 1000 == 0:
                    progress(f"reading: {n:,} records")
                yield record
            progress(f"{n:,} records")

        yield progress, reading


def _show(out: Console, report: dict[str, Any], source: str) -> None:
    from rich.padding import Padding

    _head(out, f"{source} ({report['split']})", report)
    _facts(out, report)
    golds, twice = report["golds"], report["duplicates"]
    if golds["usable"] or golds["unusable"] or golds["missing"]:
        n = golds["usable"] + golds["unusable"]
        share = f" ({golds['usable'] / n:.1%})" if n else ""
        rest = f"; {golds['missing']:,} rows have none" if golds["missing"] else ""
        _line(out, "golds", f"{golds['usable']:,} of {n:,} can be compared{share}{rest}")
    other = f", {twice['with_another_gold']:,} of them with another gold" if twice["with_another_gold"] else ""
    _line(out, "duplicates", f"{twice['exact']:,} exact{other}; {twice['near']:,} near")
    if "evaluation_prompts" in report["facts"]:
        facts = report["facts"]
        hits = f"{facts['evaluation_prompts']:,} prompts: {report['contaminated']:,} rows share an n-gram with one"
        _line(out, "evaluation", f"{hits}, {facts['stock_phrases_only']:,} more only stock phrases")
    _lengths(out, report)
    _dropped(out, report["dropped"], report["dropped_examples"])
    for row in report["examples"]:
        out.print(f"\n[bold]example[/] [dim]{row['id']}[/] {terminal.safe(row['kind'])}, {row['language']}")
        for name, text in _texts(row):
            out.print(Padding(f"[dim]{name}[/] {terminal.safe(_cut(text))}", (0, 0, 0, 2)))
    command = f"r1pipe data prepare {shlex.quote(source)} --use {report['use']} --out FOLDER"
    out.print(f"\n[bold]→[/] {terminal.safe(command)}", soft_wrap=True)


def _head(out: Console, title: str, report: dict[str, Any]) -> None:
    out.print(f"[bold]{terminal.safe(title)}[/]  {report['rows']:,} rows for {report['use']} from "
              f"{report['records']:,} records, {terminal.duration(report['seconds'])}", soft_wrap=True)  # fmt: skip


def _facts(out: Console, report: dict[str, Any]) -> None:
    for name, key in (("schema", "schemas"), ("gold from", "gold_from"), ("kinds", "kinds"),
                      ("languages", "languages"), ("levels", "levels")):  # fmt: skip
        if report[key]:
            _line(out, name, _counts(report[key]))


def _line(out: Console, name: str, text: str) -> None:
    out.print(f"  [dim]{name:<11}[/]{terminal.safe(text)}", soft_wrap=True)


def _counts(found: dict[str, int], most: int = 8) -> str:
    if len(found) == 1:
        return next(iter(found))
    said = [f"{name} {n:,}" for name, n in list(found.items())[:most]]
    return ", ".join(said) + (f", and {len(found) - most} more" if len(found) > most else "")


def _lengths(out: Console, report: dict[str, Any]) -> None:
    from rich import box
    from rich.table import Table

    for unit in ("chars", "tokens"):
        if not report[unit]:
            continue
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, header_style="bold")
        table.add_column("  characters" if unit == "chars" else "  tokens")
        for name in ("rows", "least", "median", "mean", "95 %", "most"):
            table.add_column(name, justify="right")
        for part, s in report[unit].items():
            cells = [s[k] for k in ("n", "min", "median", "mean", "p95", "max")]
            table.add_row(f"  {part}", *(f"{v:,.0f}" for v in cells))
        out.print()
        out.print(table)


def _dropped(out: Console, reasons: dict[str, int], examples: list[dict[str, Any]]) -> None:
    if not reasons:
        out.print("\n  nothing would be dropped")
        return
    out.print(f"\n  [bold]{sum(reasons.values()):,} would be dropped[/]")
    for reason, n in sorted(reasons.items(), key=lambda item: -item[1])[:REASONS]:
        shown = next((e for e in examples if e["reason"] == reason), None)
        out.print(f"  [yellow]{n:>9,}[/] {reason:<22} [dim]{terminal.safe(_why(shown))}[/]",
                  no_wrap=True, overflow="ellipsis")  # fmt: skip


def _why(example: dict[str, Any] | None) -> str:
    """The record that was dropped, and what showed it."""
    if example is None:
        return ""
    detail = example.get("detail", {})
    found = next(
        (f"{k} {detail[k]}" for k in ("why", "ngram", "of", "chars", "language", "pass_rate") if k in detail), ""
    )
    where = f"record {example['record']}: " if example["record"] else ""
    return " ".join(f"{where}{found} {example['text']}".split())


def _texts(row: dict[str, Any]) -> list[tuple[str, str]]:
    said = [(m["role"], m["content"]) for m in row["messages"]]
    said += [(n, str(row[n])) for n in ("chosen", "rejected", "response", "label", "gold", "reference")
             if row.get(n) is not None]  # fmt: skip
    return [(name, text) for name, text in said if text]


def _cut(text: str) -> str:
    text = text.strip()
    return text if len(text) <= EXCERPT else text[:EXCERPT] + "…"


def _show_prepared(out: Console, manifest: dict[str, Any], folder: Path) -> None:
    _head(out, str(folder), manifest)
    _facts(out, manifest)
    for reason, n in sorted(manifest["dropped"].items(), key=lambda item: -item[1])[:REASONS]:
        out.print(f"  [yellow]{n:>9,}[/] {reason}")
    if manifest["not_drawn"]:
        out.print(f"  {manifest['not_drawn']:>9,} not drawn")
    _line(out, "digest", manifest["digest"])
    out.print(f"\n[bold]→[/] in a profile: data: \\[{{source: {terminal.safe(str(folder))}}}]", soft_wrap=True)
    dropped = folder / "dropped.jsonl"
    out.print(f"[bold]→[/] what was left out and why: {terminal.safe(str(dropped))}", soft_wrap=True)
