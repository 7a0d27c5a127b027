"""Every command of `r1pipe --help` and its parameters, read from the command table: a new one is covered."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import typer

from r1pipe.cli.app import COMMANDS

# What a parameter is about; the rest is a plain value.
PROFILES = {"profile"}
RUNS = {"run", "a", "b", "target"}
SOURCES = {"source", "file"}
# Flags that change what a command does so much that an attack would wait for a person, a browser or a server.
NEVER = {"help", "debug", "open_", "review", "start", "probe", "push", "public", "yes"}


@dataclass(frozen=True)
class Parameter:
    name: str
    option: str  # --run; empty for an argument
    flag: bool
    required: bool

    def given(self, value: str) -> list[str]:
        return [value] if not self.option else [f"{self.option}={value}"]


@dataclass(frozen=True)
class Command:
    words: tuple[str, ...]  # ("data", "inspect")
    parameters: tuple[Parameter, ...]

    def __str__(self) -> str:
        return " ".join(self.words)

    def takes(self, name: str) -> bool:
        return any(p.name == name for p in self.parameters)

    def line(self, **values: str) -> list[str]:
        """The command line with these values by parameter name; other required ones are given what is harmless."""
        options: list[str] = []
        arguments: list[str] = []
        for p in self.parameters:
            value = values.get(p.name, HARMLESS.get(p.name, "x") if p.required else None)
            if value is not None:
                (options if p.option else arguments).extend(p.given(value))
        return [*self.words, *options, "--", *arguments]


# For required parameters that a case is not about; the profile and the data file lie in the attacked folder.
HARMLESS = {"run": "toys-full", "a": "toys-full", "b": "toys-full", "target": "toys-full", "step": "a",
            "name": "toys.yaml", "names": "toys.yaml", "source": "rows.jsonl",
            "out": "runs/out", "file": "rows.jsonl"}  # fmt: skip


def commands() -> list[Command]:
    return list(_commands())


def _commands() -> Iterator[Command]:
    for name, (module, attribute, _) in COMMANDS.items():
        target: Any = getattr(importlib.import_module(module), attribute)
        app = target
        if not isinstance(target, typer.Typer):
            app = typer.Typer(add_completion=False)
            app.command(name)(target)
        command: Any = typer.main.get_command(app)
        for sub, found in getattr(command, "commands", {"": command}).items():
            yield Command((name, sub) if sub else (name,), tuple(_parameter(p) for p in found.params))


def _parameter(p: Any) -> Parameter:
    option = next((o for o in p.opts if o.startswith("--")), "")
    return Parameter(p.name, option, bool(getattr(p, "is_flag", False)), bool(p.required))


def profile_parameter(command: Command) -> str | None:
    """The parameter that takes a profile: --profile, or the name of `config`."""
    if command.takes("profile"):
        return "profile"
    if command.words[0] == "config":
        return next((p.name for p in command.parameters if p.name in ("name", "names")), None)
    return None
