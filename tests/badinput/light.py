"""Run as a process: every bad profile at every command that takes one, and whether torch was imported on the way.

Arguments: a folder to work in. Prints one line a fault; the last line is the number of refusals.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys


def main(folder: str) -> None:
    os.chdir(folder)
    from r1pipe.cli import app
    from tests.badinput import nasties
    from tests.badinput.surface import commands, profile_parameter

    heavy = {"torch", "transformers", "trl", "datasets", "numpy"}
    refused = 0
    for command in commands():
        name = profile_parameter(command)
        if name is None or heavy & set(sys.modules):
            continue
        for label, content in nasties.PROFILES.items():
            with open("profile.yaml", "wb") as file:
                file.write(content)
            line = command.line(**{name: "./profile.yaml"})
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                refused += app.dispatch(line) == 2
            if found := heavy & set(sys.modules):
                print(f"{command} imported {', '.join(sorted(found))} for the profile {label!r}")
                break
    print(refused)


main(sys.argv[1])
