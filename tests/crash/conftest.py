"""Prints kills by phase when the crash tests are done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.crash.harness import TALLY, Bench


@pytest.fixture(scope="session")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Fingerprints and outputs of an undisturbed run."""
    return Bench(tmp_path_factory.mktemp("undisturbed")).digests()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if TALLY.kills:
        terminalreporter.section("kills by phase")
        for line in TALLY.lines():
            terminalreporter.write_line(line)
