"""`r1pipe config`: puts a profile in the user's hands, and says what is wrong with theirs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from r1pipe.cli import options as o
from r1pipe.cli import terminal
from r1pipe.errors import UserError

app = typer.Typer(
    help="Profiles: list, show, copy, validate, schema.", no_args_is_help=True, add_completion=False,
    rich_markup_mode="rich", pretty_exceptions_enable=False,
)  # fmt: skip
Name = Annotated[str, typer.Argument(help="A shipped profile (r1pipe config list) or a YAML file.")]


def header(path: Path) -> dict[str, str]:
    """`needs` and `launch` from the comment that opens a profile: the first line of each, where there is one."""
    found: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8-sig").splitlines():
        if not line.startswith("#"):
            break
        name, colon, value = line.removeprefix("#").strip().partition(":")
        if colon and name.lower() in ("needs", "launch"):
            found.setdefault(name.lower(), value.strip())
    return found


@app.command("list")
def list_(json: o.Json = False, debug: o.Debug = False) -> int:
    """The shipped profiles: what each is and what it needs."""
    from r1pipe import config

    rows = []
    for path in config.list_profiles():
        raw = config.read(path)
        first = str(raw.get("description", "")).strip().split("\n")[0]
        rows.append({"name": path.stem, "description": first, "path": str(path), **header(path)})
    if json:
        _print_json(rows)
        return 0
    from rich.padding import Padding

    out = terminal.console()
    for row in rows:
        out.print(f"[bold]{terminal.safe(row['name'])}[/]")
        for key, style in (("description", ""), ("needs", "dim")):
            if row.get(key):
                text = terminal.safe(row[key]) if key == "description" else f"needs {terminal.safe(row[key])}"
                out.print(Padding(f"[{style}]{text}[/]" if style else text, (0, 0, 0, 4), expand=False))
    out.print("[dim]r1pipe config show NAME, config copy NAME mine.yaml, pipeline full --profile mine.yaml[/]")
    return 0


@app.command()
def show(
    name: Name = "tiny",
    resolved: Annotated[bool, typer.Option("--resolved", help="Merged with what it extends and with --set.")] = False,
    set_: o.Set = None,
    json: o.Json = False,
    debug: o.Debug = False,
) -> int:
    """A profile as its file has it, or merged."""
    from r1pipe import config

    if set_ and not resolved:
        raise UserError("--set shows only in the merged profile", hint=f"r1pipe config show {name} --resolved --set …")
    path = config.find(name)
    merged = config.load(name, set_ or ()).raw if resolved else config.yamlio.read(path)
    if not resolved and not json:
        text = config.yamlio.text(path)
        sys.stdout.write(terminal.clean(text) if sys.stdout.isatty() else text)
        return 0
    if json:
        _print_json(merged)
    else:
        sys.stdout.write(dump(merged))
    return 0


@app.command()
def copy(
    name: Name,
    dest: Annotated[Path | None, typer.Argument(help="File to write; without it NAME.yaml here.")] = None,
    json: o.Json = False,
    debug: o.Debug = False,
) -> int:
    """Copies a profile to a file of yours; never overwrites one."""
    from r1pipe import config

    source = config.find(name)
    config.yamlio.read(source)  # what is no profile at all is not worth a copy
    content = config.yamlio.text(source)
    target = dest or Path(source.name)
    if target.is_dir():
        target = target / source.name
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(content)
    except FileExistsError:
        raise UserError(
            f"{target} is there already; nothing was written", hint=f"r1pipe config copy {name} another.yaml"
        ) from None
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror}", hint="is the folder there?") from error
    if json:
        _print_json({"profile": name, "path": str(target)})
    else:
        terminal.console().print(
            f"wrote {terminal.safe(str(target))}; run it: r1pipe pipeline full --profile {terminal.safe(str(target))}",
            soft_wrap=True,
        )
    return 0


@app.command()
def validate(
    names: Annotated[list[str], typer.Argument(metavar="NAME|PATH...", help="Profiles to check.")],
    set_: o.Set = None,
    json: o.Json = False,
    debug: o.Debug = False,
) -> int:
    """Checks profiles and tells every fault at once; exit code 2 where there is one."""
    from r1pipe import config

    results: list[dict[str, Any]] = []
    for name in names:
        try:
            profile = config.load(name, set_ or ())
            pipelines = {p: len(steps) for p, steps in profile.pipelines.items()}
            results.append({"profile": name, "ok": True, "steps": len(profile.steps), "pipelines": pipelines})
        except UserError as error:
            results.append({"profile": name, "ok": False, "error": error.message, "hint": error.hint})
    if json:
        _print_json(results)
    else:
        _show_results(results)
    return 0 if all(r["ok"] for r in results) else 2


@app.command()
def schema(
    manifest: Annotated[bool, typer.Option("--manifest", help="Of manifest.json instead of a profile.")] = False,
    json: o.Json = False,
    debug: o.Debug = False,
) -> int:
    """The JSON Schema of a profile (for an editor), or of a manifest."""
    if manifest:
        from r1pipe.manifest import Manifest

        value = Manifest.model_json_schema() | {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    else:
        from r1pipe import config

        value = config.schema()
    _print_json(value)
    return 0


def _show_results(results: list[dict[str, Any]]) -> None:
    out = terminal.console()
    good, bad = ("✓", "✗") if terminal.fancy(out) else ("+", "x")
    for r in results:
        if r["ok"]:
            listed = terminal.safe(", ".join(f"{p} ({n})" for p, n in r["pipelines"].items()))
            name = terminal.safe(r["profile"])
            out.print(f"[green]{good}[/] {name}: {r['steps']} steps; pipelines {listed}", soft_wrap=True)
            continue
        out.print(f"[red]{bad}[/] {terminal.safe(r['error'])}", soft_wrap=True)
        if r["hint"]:
            out.print(f"  → {terminal.safe(r['hint'])}", soft_wrap=True)


def dump(value: Any) -> str:
    """YAML that our loader (and YAML 1.1 ones) read back as the same value."""
    import yaml

    from r1pipe import yamlio

    class Dumper(yaml.SafeDumper):
        """Quotes text that either set of rules would read as something else (`1e-4`, `on`)."""

        def ignore_aliases(self, data: Any) -> bool:
            return True  # a reader of the merged profile should not have to follow anchors

    def text(dumper: Any, value: str) -> Any:
        """PyYAML folds text at Unicode's line breaks as it does at its own, and loses them."""
        odd = any(c in value for c in "\x85\u2028\u2029")
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style='"' if odd else None)

    Dumper.add_representer(str, text)
    ours, theirs = yamlio.Loader.yaml_implicit_resolvers, yaml.SafeDumper.yaml_implicit_resolvers
    Dumper.yaml_implicit_resolvers = {k: [*theirs.get(k, []), *ours.get(k, [])] for k in {*ours, *theirs}}
    return yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110)


def _print_json(value: Any) -> None:
    import json

    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")
