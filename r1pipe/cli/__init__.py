"""The command line."""

from __future__ import annotations


def main() -> None:
    """Entry point of `r1pipe`."""
    from r1pipe.cli.app import run

    run()
