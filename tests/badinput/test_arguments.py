"""Absurd values for every argument and option of every command, one at a time, in a folder with a finished run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.badinput import nasties
from tests.badinput.conftest import Call, sound
from tests.badinput.surface import NEVER, Command, commands, profile_parameter

FEW = 14  # values a parameter in the fast run
# of those whose every call starts processes or imports libraries
SLOW = {"doctor": 1, "pipeline": 5, "run-stage": 5, "data inspect": 5, "data prepare": 5}


def _line(command: Command, name: str, value: str) -> list[str]:
    values = {name: value}
    profile = profile_parameter(command)
    if profile and profile != name:
        values[profile] = "toys.yaml"
    line = command.line(**values)
    if command.takes("dry_run"):
        line.insert(len(command.words), "--dry-run")
    return line


def _attack(command: Command, call: Call, values: list[str], arena: Path) -> int:
    tried = 0
    faults = []
    for p in command.parameters:
        if p.flag or p.name in NEVER:
            continue
        for value in values:
            line = _line(command, p.name, value)
            tried += 1
            try:
                said = call(line)
                sound(said, line)
                # an output file may be put where the user asks for it, and nowhere else
                assert p.name in ("out", "dest", "html", "runs_dir") or said.code == 0 or not said.wrote, (line, said)
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                faults.append(f"{line!r:.300}: {type(error).__name__}: {error!s:.1500}")
    assert not faults, f"{len(faults)} of {tried}\n" + "\n".join(faults)
    assert not list(arena.parent.rglob("owned")), "a value was run by a shell"
    return tried


@pytest.mark.parametrize("command", commands(), ids=str)
def test_absurd_values(command: Command, call: Call, sealed: Path, arena: Path) -> None:
    place = sum(map(ord, str(command)))  # another part of the list for each command
    values = [nasties.VALUES[(place + 7 * i) % len(nasties.VALUES)] for i in range(SLOW.get(str(command), FEW))]
    _attack(command, call, values, arena)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("command", commands(), ids=str)
def test_every_absurd_value(command: Command, call: Call, sealed: Path, arena: Path) -> None:
    _attack(command, call, nasties.VALUES, arena)
