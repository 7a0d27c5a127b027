"""A bad profile at every command that takes one: exit code 2, a sentence, nothing written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.badinput import nasties
from tests.badinput.conftest import Call, refused
from tests.badinput.surface import Command, commands, profile_parameter

TAKERS = [c for c in commands() if profile_parameter(c)]


def _line(command: Command, path: str) -> list[str]:
    """The command on this profile, checked in full (`config show` only prints the file without --resolved)."""
    line = command.line(**{profile_parameter(command) or "": path})
    if command.takes("resolved"):
        line.insert(len(command.words), "--resolved")
    return line


@pytest.mark.parametrize("command", TAKERS, ids=str)
def test_a_bad_profile_is_refused(command: Command, call: Call, arena: Path) -> None:
    if command.words == ("config", "copy"):
        pytest.skip("copies a file as it is")
    for name, content in nasties.PROFILES.items():
        (arena / "profile.yaml").write_bytes(content)
        line = _line(command, "./profile.yaml")
        refused(call(line), [name, *line])
