"""Options that several commands share; each has one home."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Profile = Annotated[
    str, typer.Option("--profile", "-p", help="A shipped profile (r1pipe config list) or a YAML file.")
]
Run = Annotated[
    str | None,
    typer.Option("--run", help="Name of the run folder; without it <profile>-<pipeline>.", show_default=False),
]
RunsDir = Annotated[Path, typer.Option("--runs-dir", envvar="R1PIPE_RUNS_DIR", help="Where runs are kept.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="STEP.KEY=VALUE", help="Overrides a setting; may be repeated."),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, for scripts.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Force = Annotated[bool, typer.Option("--force", help="Run again, in a new folder; sealed results stay.")]
Strict = Annotated[bool, typer.Option("--strict", help="Run again where library versions differ.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Check everything and build every real config object; train nothing.")
]
AllowCode = Annotated[
    bool,
    typer.Option(
        "--allow-code", help="Let the profile name code: module:NAME as a stage or reward, trust_remote_code."
    ),
]
