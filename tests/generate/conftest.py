"""A tiny random model, built once a session."""

from __future__ import annotations

from typing import Any

import pytest

from tests.generate import tiny


@pytest.fixture(scope="session")
def tok() -> Any:
    return tiny.tokenizer()


@pytest.fixture(scope="session")
def model(tok: Any) -> Any:
    return tiny.model(tok)
