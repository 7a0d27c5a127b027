"""reasoning-gym as a source. The package is an extra; what needs it is skipped where it is missing."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
from typing import Any

import pytest

from r1pipe.chat import Tags
from r1pipe.data import gym
from r1pipe.data.load import load, source_digest
from r1pipe.errors import UserError
from r1pipe.settings import DataSpec

needed = pytest.mark.skipif(importlib.util.find_spec("reasoning_gym") is None, reason="reasoning-gym is not installed")
SLOW = {"futoshiki", "number_sequence", "sudoku", "zebra_puzzles"}  # seconds a problem


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Problems made in this process: the import of the package takes seconds."""
    from r1pipe.data import gymworker

    monkeypatch.setattr(gym, "_run", gymworker.answer)


def spec(task: str, rows: int | None = 4, **more: Any) -> DataSpec:
    return DataSpec(source=f"reasoning-gym:{task}", rows=rows, **more)


@needed
@pytest.mark.parametrize("task", sorted(set(gym.KINDS) - SLOW))
def test_every_gold_scores_one(task: str) -> None:
    """By our own verifiers; a wrong answer scores 0."""
    from r1pipe.data import gymworker
    from r1pipe.rewards import correctness

    entries = gymworker.make({"task": task, "args": {}, "level": None, "size": 4, "seed": 3})
    rows = [gym.row(spec(task), task, entry, None) for entry in entries]
    rows = [{**r, **(r.get("extra") or {})} for r in rows]
    assert correctness.check_golds(rows) == [None] * 4
    wrap = Tags().wrap
    good = correctness.verify_batch([wrap("so", entry["answer"]) for entry in entries], rows)
    bad = correctness.verify_batch([wrap("so", correctness.wrong_answer(r) or "") for r in rows], rows)
    assert ([v.score for v in good], [v.score for v in bad]) == ([1.0] * 4, [0.0] * 4)


@needed
def test_deterministic_in_any_process() -> None:
    """Tasks that iterate over sets, or use the global random state, too."""
    code = (
        "import random, sys, hashlib, json; random.seed(sys.argv[1]);"
        "from r1pipe.data.load import load; from r1pipe.settings import DataSpec;"
        "made = [load(DataSpec(source='reasoning-gym:' + t, rows=6), 'prompts', seed=1)"
        " for t in ('isomorphic_strings', 'list_functions', 'chain_sum')];"
        "print(hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest())"
    )
    found = {
        subprocess.run([sys.executable, "-c", code, seed], env={**os.environ, "PYTHONHASHSEED": seed}, check=True,
                       capture_output=True, text=True).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(found) == 1


@needed
@pytest.mark.usefixtures("here")
def test_seeds_and_splits() -> None:
    rows = load(spec("chain_sum"), "prompts", seed=1)
    assert rows == load(spec("chain_sum"), "prompts", seed=1)
    assert rows != load(spec("chain_sum"), "prompts", seed=2)
    assert not {r["id"] for r in rows} & {r["id"] for r in load(spec("chain_sum", split="heldout"), "prompts", seed=1)}


@needed
@pytest.mark.usefixtures("here")
def test_levels_and_arguments() -> None:
    easy = load(spec("chain_sum", 20, args={"level": 0}), "prompts", seed=0)
    hard = load(spec("chain_sum", 20, args={"level": 3}), "prompts", seed=0)
    assert {r["level"] for r in easy} == {0} and {r["level"] for r in hard} == {3}
    assert max(len(r["messages"][0]["content"]) for r in easy) < max(len(r["messages"][0]["content"]) for r in hard)
    args = {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1}
    given = load(spec("chain_sum", 20, args=args), "prompts", seed=0)
    assert all(abs(int(r["gold"])) <= 18 for r in given)


@needed
@pytest.mark.usefixtures("here")
def test_what_rows_say() -> None:
    row = load(spec("gsm_symbolic", 1), "prompts", seed=0)[0]
    assert row["kind"] == "number" and row["reference"] and row["source"] == "reasoning-gym:gsm_symbolic"
    row = load(spec("countdown", 1), "prompts", seed=0)[0]
    assert row["gold"] is None and set(row["extra"]) == {"nums", "target"}
    row = load(spec("puzzle24", 1), "prompts", seed=0)[0]
    assert row["extra"]["target"] == 24
    row = load(spec("chain_sum", 1, kind="arithmetic"), "prompts", seed=0)[0]
    assert row["kind"] == "arithmetic"
    gold = load(spec("power_function", 1), "prompts", seed=0)[0]["gold"]
    assert len(gold.partition("E")[0].replace("-", "").replace(".", "").strip("0")) <= 3


@needed
@pytest.mark.parametrize(
    ("task", "more", "said"),
    [
        ("chain_sum", {"args": {"min_tems": 2}}, 'did you mean "min_terms"'),
        ("chain_sum", {"args": {"level": 99}}, "levels|no level 99: they go from 0 to"),
        ("chain_sum", {"args": {"level": "two"}}, "no level 'two'"),
        ("acre", {"args": {"level": 1}}, "no levels"),
        ("chain_sum", {"args": {"min_terms": -1}}, "cannot be made with these arguments"),
        ("chain_sum", {"rows": None}, "how many rows"),
    ],
)
@pytest.mark.usefixtures("here")
def test_faults(task: str, more: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        load(spec(task, **{"rows": 3, **more}), "prompts", seed=0)


def test_faults_that_need_no_package() -> None:
    with pytest.raises(UserError, match="no single right answer") as fault:
        load(spec("graph_color"), "prompts", seed=0)
    assert "chain_sum" in str(fault.value)
    with pytest.raises(UserError, match='did you mean "chain_sum"'):
        load(spec("chain_sums"), "prompts", seed=0)
    with pytest.raises(UserError, match="makes prompts, not traces"):
        load(spec("chain_sum"), "traces", seed=0)
    assert not set(gym.KINDS) & gym.OPEN


def test_a_missing_package_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    for call in (lambda: load(spec("chain_sum"), "prompts", seed=0), lambda: source_digest(spec("chain_sum"))):
        with pytest.raises(UserError, match="not installed") as fault:
            call()
        assert 'pip install "r1pipe[gym]"' in str(fault.value)


@needed
def test_every_task_of_the_package_is_known() -> None:
    from reasoning_gym.factory import DATASETS

    assert set(DATASETS) == set(gym.KINDS) | gym.OPEN
    assert source_digest(spec("chain_sum")) == f"reasoning-gym:chain_sum@{gym.version()}+{gym.VERSION}"
