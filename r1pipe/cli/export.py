"""`r1pipe export`: the model of a run as a folder with a model card, or as GGUF; to the hub with --push."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from r1pipe.cli import options as o
from r1pipe.cli import terminal

if TYPE_CHECKING:
    from r1pipe.export.source import Source


def export(
    run: Annotated[str, typer.Argument(help="Name or path of a run, or a model or adapter folder.")],
    to: Annotated[
        Literal["hf", "merged", "gguf"],
        typer.Option("--to", help="hf: safetensors; merged: an adapter merged first; gguf: for llama.cpp."),
    ] = "hf",
    step: Annotated[
        str | None, typer.Option("--step", help="Whose model; without it the last policy.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder to make; without it exports/<run>-<step>-<to>.",
                                  show_default=False)
    ] = None,
    dtype: Annotated[
        Literal["auto", "f32", "f16", "bf16"], typer.Option("--dtype", help="Of a GGUF's weights; auto: as stored.")
    ] = "auto",
    push: Annotated[
        str | None, typer.Option("--push", metavar="OWNER/NAME", help="Upload it to the hub.", show_default=False)
    ] = None,
    public: Annotated[bool, typer.Option("--public", help="A pushed repository is private without this.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the folder where it is there.")] = False,
    runs_dir: o.RunsDir = Path("runs"),
    json: o.Json = False,
    debug: o.Debug = False,
) -> int:  # fmt: skip
    """A run's model as a folder with a model card made from its manifests, or as GGUF."""
    from r1pipe.export import push as hub
    from r1pipe.export import source as sources

    if push is not None:
        hub.check(push)
    found = sources.find(run, step, runs_dir)
    target = out or Path("exports") / f"{found.name}-{to}"
    made = _write(found, to, target, dtype, force)
    if push is not None:
        made["pushed"] = hub.upload(target, push, public=public)
    if json:
        import json as js

        sys.stdout.write(js.dumps(made, ensure_ascii=False, indent=2) + "\n")
        return 0
    console = terminal.console()
    for note in made["notes"]:
        console.print(f"[yellow]note:[/] {terminal.safe(note)}", soft_wrap=True)
    files = ", ".join(made["files"][:6]) + (f" and {len(made['files']) - 6} more" if len(made["files"]) > 6 else "")
    console.print(
        f"[bold]{terminal.safe(str(target))}[/]  {terminal.size(made['bytes'])}: {terminal.safe(files)}",
        soft_wrap=True,
    )
    if push is not None:
        console.print(f"pushed: {terminal.safe(made['pushed'])}", soft_wrap=True)
    return 0


def _write(found: Source, to: str, target: Path, dtype: str, force: bool) -> dict[str, Any]:
    from r1pipe.errors import UserError
    from r1pipe.export import card, folder, gguf_file

    notes: list[str] = []
    if found.adapter and to != "merged":
        raise UserError(f"{found.folder} is an adapter, not a whole model", hint="--to merged makes one of it")
    if dtype != "auto" and to != "gguf":
        raise UserError(f"--dtype {dtype} is for --to gguf; {to} keeps what is stored", hint="leave --dtype out")
    with folder.fresh(target, force=force) as place:
        if to == "gguf":
            made = gguf_file.write(found, place, dtype)
            notes += made.notes
            names = [made.name]
        elif found.adapter:
            names = folder.merge(found, place)
        else:
            if to == "merged":
                notes.append("there was no adapter to merge: a step's model is merged when it is sealed")
            names = folder.copy(found, place)
        text = card.text(found, kind=to, notes=notes, files=names)
        (place / "README.md").write_text(text, encoding="utf-8")
        size = sum(p.stat().st_size for p in place.iterdir())
    return {
        "folder": str(target.absolute()),
        "to": to,
        "step": found.step,
        "files": [*names, "README.md"],
        "bytes": size,
        "notes": notes,
    }
