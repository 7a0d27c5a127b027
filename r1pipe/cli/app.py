"""The command table, and the one place where errors become exit codes.

Commands are imported when they are called: `--help` must not wait for what it does not need.
"""

from __future__ import annotations

import importlib
import os
import sys

# command → (module, function or typer app, line of help); the lines stand here so that --help imports nothing
COMMANDS = {
    "pipeline": ("r1pipe.cli.run", "pipeline", "Run a whole pipeline: resumes, skips what is done, says why."),
    "run-stage": ("r1pipe.cli.run", "run_stage", "Run one step; its inputs come from manifests."),
    "plan": ("r1pipe.cli.plan", "plan", "Before a run: steps with reasons, memory, time, disk, money; what fits."),
    "status": ("r1pipe.cli.status", "status", "Each step: done, stale (and why), failed, never run."),
    "verify": ("r1pipe.cli.verify", "verify", "Digest every artifact of a run again; check the chain of manifests."),
    "score": ("r1pipe.cli.score", "score", "A verdict on each row of a file, with the rewards of training."),
    "preflight": ("r1pipe.cli.preflight", "preflight", "Check the rewards and the data of a profile before training."),
    "data": ("r1pipe.cli.data", "app", "Datasets: inspect what is there, prepare a clean copy with its manifest."),
    "config": ("r1pipe.cli.configs", "app", "Profiles: list, show, copy, validate, schema."),
    "samples": ("r1pipe.cli.samples", "samples", "Kept and dropped samples with their verdicts; --review decides."),
    "chat": ("r1pipe.cli.chat", "chat", "Talk to the model of any step."),
    "evaluate": ("r1pipe.cli.evaluate", "evaluate", "Measure steps of a run, or any model, on a suite of benchmarks."),
    "table": ("r1pipe.cli.run", "table", "The stage table of a run."),
    "export": ("r1pipe.cli.export", "export", "A run's model as a folder with a model card, or as GGUF; --push."),
    "serve": ("r1pipe.cli.serve", "serve", "The vllm serve line of a run's model, or run it."),
    "report": ("r1pipe.cli.report", "report", "One HTML file: did it work, which step did what, samples."),
    "compare": ("r1pipe.cli.compare", "compare", "Is run B better than run A? Paired, with intervals."),
    "prune": ("r1pipe.cli.prune", "prune", "Free disk; lists first, never touches a sealed result."),
    "doctor": ("r1pipe.cli.doctor", "doctor", "What works on this machine, and what does not."),
}


def run(argv: list[str] | None = None) -> None:
    """Runs the command line and exits: 0 done, 1 a step failed, 2 something the user can mend, 130 interrupted."""
    argv = sys.argv[1:] if argv is None else argv
    if argv in (["--version"], ["-V"]):
        from r1pipe import __version__

        print(f"r1pipe {__version__}")  # noqa: T201
        sys.exit(0)
    if not argv or argv in (["--help"], ["-h"], ["help"]):
        _overview()
        sys.exit(0)
    sys.exit(dispatch(argv))


def dispatch(argv: list[str]) -> int:
    """Runs one command; returns the exit code. No traceback without --debug."""
    from r1pipe.errors import UserError, nearest

    debug = "--debug" in argv or os.environ.get("R1PIPE_DEBUG") == "1"
    try:
        for text in argv:
            if any("\ud800" <= c <= "\udfff" for c in text):  # bytes of the shell: no manifest could write them down
                raise UserError(f"{text!r:.200} is not UTF-8 text", hint="rename the file or folder")
        name = argv[0]
        if name not in COMMANDS:
            raise UserError(f'there is no command "{name}"{nearest(name, COMMANDS)}', hint="r1pipe --help")
        return _call(name, argv[1:])
    except KeyboardInterrupt:
        _say("interrupted; run the same command again to go on", None)
        return 130
    except UserError as error:
        if debug:
            raise
        _say(error.message, error.hint)
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except Exception as error:
        if debug:
            raise
        if isinstance(error, OSError) and error.filename:
            _say(f"{error.filename}: {error.strerror}", "check the path, permissions and free space")
            return 2
        _say(f"r1pipe has a fault: {type(error).__name__}: {error}", "run again with --debug and report it")
        return 1


def _call(name: str, rest: list[str]) -> int:
    import typer

    module, attribute, _ = COMMANDS[name]
    target = getattr(importlib.import_module(module), attribute)
    if isinstance(target, typer.Typer):
        app = target
    else:
        app = typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)
        app.command(name)(target)
    command = typer.main.get_command(app)
    try:
        code = command.main(rest, prog_name=f"r1pipe {name}", standalone_mode=False)
    except typer.Exit as stop:
        return stop.exit_code
    except typer.Abort:
        raise KeyboardInterrupt from None
    except Exception as error:
        # typer's usage errors; from click or from its own copy of click, by version
        if not (hasattr(error, "format_message") and hasattr(error, "exit_code")):
            raise
        _say(error.format_message(), f"r1pipe {name} --help")
        return 2
    if code == 130:  # typer makes this of Ctrl-C by itself, and would say nothing
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0


def _say(message: str, hint: str | None) -> None:
    from r1pipe.cli.terminal import err_console, safe

    console = err_console()
    console.print(f"[bold red]error:[/] {safe(message)}", highlight=False, soft_wrap=True)
    if hint:
        console.print(f"  [bold]→[/] {safe(hint)}", highlight=False, soft_wrap=True)


def _overview() -> None:
    from r1pipe import __version__

    width = max(len(name) for name in COMMANDS)
    lines = [
        f"r1pipe {__version__}: train a reasoning model the DeepSeek-R1 way, all stages, one command.",
        "",
        "usage: r1pipe COMMAND [OPTIONS]        r1pipe COMMAND --help tells its options",
        "",
        *(f"  {name:<{width}}  {text}" for name, (_, _, text) in COMMANDS.items()),
        "",
        "start here: r1pipe pipeline full       trains the embedded model through every stage on this machine",
    ]
    print("\n".join(lines))  # noqa: T201
