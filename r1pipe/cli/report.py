"""`r1pipe report RUN`: what a run did, as one HTML file that needs nothing else. No GPU, no model, no torch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from r1pipe.cli import options as o
from r1pipe.cli import runs, terminal


def report(
    run: Annotated[str, typer.Argument(help="Name or path of a run; finished, failed or under way.")],
    runs_dir: o.RunsDir = Path("runs"),
    out: Annotated[
        Path | None, typer.Option("--out", help="The file to write; without it <run>/report.html.", show_default=False)
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Markdown on stdout (or to --out), no HTML.")] = False,
    open_: Annotated[bool, typer.Option("--open", help="Show the page in a browser.")] = False,
    json: o.Json = False,
    debug: o.Debug = False,
) -> int:
    """One self-contained HTML file: did it work, which step did what, and the samples behind the numbers."""
    from r1pipe.errors import UserError

    if markdown and (open_ or json):
        raise UserError(
            f"--markdown does not go with {'--open' if open_ else '--json'}", hint="give one of them, or run it twice"
        )
    from datetime import UTC, datetime

    from r1pipe.report import collect, verdict
    from r1pipe.report import markdown as md
    from r1pipe.report import page as html

    found = collect.load(runs.open_run(run, runs_dir))
    if markdown:
        text = md.markdown(found)
        if out is None:
            sys.stdout.write(text)
            return 0
    else:
        text = html.html(found, datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"))
    path = out or found.store.root / "report.html"
    write(path, text)
    said = verdict.verdict(found)
    if json:
        import json as js

        value = {
            "run": found.store.run, "file": str(path.absolute()), "bytes": path.stat().st_size,
            "verdict": said.word, "sentence": said.sentence,
            "steps": {s.name: s.state for s in found.steps.values()},
            "worries": [{"step": w.step or None, "text": w.text, "bad": w.bad} for w in verdict.worries(found)],
        }  # fmt: skip
        sys.stdout.write(js.dumps(value, ensure_ascii=False, indent=2) + "\n")
    else:
        console = terminal.console()
        style = {"good": "bold green", "bad": "bold red"}.get(said.tone, "bold")
        console.print(f"[{style}]{terminal.safe(said.word)}.[/] {terminal.safe(said.sentence)}", soft_wrap=True)
        worries = len(verdict.worries(found))
        if worries:
            console.print(f"[yellow]{worries} to look at[/], at the top of the page")
        console.print(f"{terminal.safe(str(path))}  [dim]{terminal.size(path.stat().st_size)}[/]", soft_wrap=True)
    if open_:
        show(path)
    return 0


def write(path: Path, text: str) -> None:
    """A whole file or none. Raises UserError where it cannot be written."""
    from r1pipe.errors import UserError
    from r1pipe.store import write_text

    if path.is_dir():
        raise UserError(f"--out {path} is a folder", hint=f"give a file: --out {path / 'report.html'}")
    if path.exists() and not path.is_file():  # root could put a file in the place of /dev/null
        raise UserError(
            f"{path} is a device or a pipe, not a file", hint="give a file; --markdown alone writes to stdout"
        )
    if not path.parent.is_dir():
        raise UserError(f"the folder of {path} does not exist", hint=f"mkdir -p {path.parent}")
    write_text(path.resolve() if path.is_symlink() else path, text)


def show(path: Path) -> None:
    """Opens a browser; says so where there is none."""
    import webbrowser

    if not webbrowser.open(path.absolute().as_uri()):
        terminal.err_console().print(f"no browser could be opened: open {terminal.safe(str(path.absolute()))} by hand")
