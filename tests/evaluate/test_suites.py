"""Suites are data: shipped ones, YAML, files, sources; faults name the set."""

from __future__ import annotations

from pathlib import Path

import pytest

from r1pipe.data.load import load as load_rows
from r1pipe.errors import UserError
from r1pipe.evaluate import suites
from r1pipe.settings import EvalSet
from r1pipe.stage import StageContext


def test_every_shipped_suite_loads_and_is_in_the_readme() -> None:
    folder = suites.shipped()[0].parent
    told = (folder / "README.md").read_text(encoding="utf-8")
    assert {"paper", "tiny"} <= {p.stem for p in suites.shipped()}
    for path in suites.shipped():
        suite = suites.load(path.stem)
        assert suite.name == path.stem and suite.description and f"`{suite.name}`" in told
        assert path.read_text(encoding="utf-8").startswith("# ")


def test_tiny_is_the_evaluation_of_the_profile_tiny() -> None:
    from r1pipe import config

    ours, theirs = suites.load("tiny"), config.load("tiny").steps["sft"].evaluation
    assert ours.sets == theirs.sets
    assert (ours.temperature, ours.top_p, ours.max_tokens) == (theirs.temperature, theirs.top_p, theirs.max_tokens)
    assert ours.seed == config.load("tiny").steps["sft"].seed


def test_overrides_limit_and_only() -> None:
    changes = ["max_tokens=100", "aime-2024.n=8", "gsm8k.data.rows=50"]
    suite = suites.load("paper", changes, only=["gsm8k", "aime-2024"], limit=20)
    assert [p.name for p in suite.sets] == ["aime-2024", "gsm8k"]
    assert suite.max_tokens == 100 and suite.sets[0].n == 8
    assert [p.data.rows for p in suite.sets] == [20, 20]
    assert {p.n for p in suites.load("paper", n=2).sets} == {2}


def test_a_file_or_a_source_is_a_suite(tmp_path: Path) -> None:
    (tmp_path / "my-exam.jsonl").write_text('{"question": "2+2?", "answer": "4"}\n')
    suite = suites.load(str(tmp_path / "my-exam.jsonl"))
    assert (suite.name, suite.sets[0].name, suite.temperature) == ("my-exam", "my-exam", 0.6)
    suite = suites.load("generated:arithmetic", limit=7)
    assert (suite.sets[0].data.split, suite.sets[0].data.rows) == ("heldout", 7)
    pytest.importorskip("reasoning_gym", reason="reasoning-gym is not installed")
    gym = suites.load("reasoning-gym:gcd", limit=3)
    assert [r["kind"] for r in load_rows(gym.sets[0].data, "prompts", seed=0)] == ["number"] * 3


def test_what_changes_the_numbers_of_a_set() -> None:
    suite = suites.load("paper")
    part = suite.sets[0]
    same = suites.load("paper", only=[part.name])
    assert same.of(same.sets[0]) == suite.of(part)  # other sets do not matter
    assert suites.load("paper", n=2).of(part.model_copy(update={"n": 2})) != suite.of(part)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sets: [{name: a, data: {source: x.jsonl}, samples: 4}]", "set a.samples: unknown key"),
        ("sets: [{name: a, data: {source: x.jsonl}}, {name: a, data: {source: y.jsonl}}]", "two sets are named a"),
        ("sets: [{name: 'a/b', data: {source: x.jsonl}}]", "set a/b.name"),
        ("sets: []", "lists no sets"),
        ("sets: [{name: a, data: {source: x.jsonl}}]\ntemprature: 1", 'unknown key (did you mean "temperature"?)'),
        ("sets: [{name: a, data: {source: x.jsonl}, n: many}]", "set a.n: "),
    ],
)
def test_faults(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(UserError) as fault:
        suites.load(str(tmp_path / "s.yaml"))
    assert said in str(fault.value)


@pytest.mark.parametrize(
    ("name", "override", "said"),
    [
        ("papre", [], 'did you mean "paper"'),
        ("none.yaml", [], "there is no suite file"),
        ("paper", ["aime-2025"], "not of the form"),
        ("paper", ["aime24.n=3"], "no set or key"),
    ],
)
def test_faults_of_the_command(name: str, override: list[str], said: str) -> None:
    with pytest.raises(UserError) as fault:
        suites.load(name, override)
    assert said in str(fault.value)
    with pytest.raises(UserError, match='no set "aime"'):
        suites.load("paper", only=["aime"])


def test_a_source_without_a_revision_says_which_commit_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    part = EvalSet.model_validate({"name": "x", "data": {"source": "some/set"}})
    ctx = StageContext(step="x", seed=1, inputs={}, outputs={}, work=Path())
    with pytest.raises(UserError, match="some/set has no revision, and the hub does not say one"):
        suites.pinned(part, ctx)
    refs = tmp_path / "datasets--some--set" / "refs"
    refs.mkdir(parents=True)
    (refs / "main").write_text("a" * 40)
    assert suites.pinned(part, ctx).data.revision == "a" * 40
    assert ctx.facts == {"x/revision": "a" * 40} and "it was taken at aaaa" in ctx.warnings[0]
    made = EvalSet.model_validate({"name": "x", "data": {"source": "generated:arithmetic"}})
    assert suites.pinned(made, ctx) is made
