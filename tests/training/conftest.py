from __future__ import annotations

from pathlib import Path

import pytest

from tests.training.tiny import make_policy


@pytest.fixture(scope="session")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_policy(tmp_path_factory.mktemp("tiny") / "policy")
