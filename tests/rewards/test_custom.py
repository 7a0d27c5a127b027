"""Reward functions of users: TRL's signature, in workers that can be killed."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import pytest

from r1pipe.errors import UserError
from r1pipe.rewards import Composer, registry, validate, versions
from r1pipe.settings import RewardPart

FUNCTIONS = """
    import os, time

    def contains(prompts, completions, **columns):
        assert len(columns["gold"]) == len(prompts) == len(completions)
        return [1.0 if g in c[0]["content"] else 0.0 for c, g in zip(completions, columns["gold"])]

    async def logged(completions, log_metric, bonus=0):
        log_metric("seen", len(completions))
        return [bonus] * len(completions)

    def short(completions):
        return [1.0]

    def hostile(completions, **columns):
        scores = []
        for completion in completions:
            text = completion[0]["content"]
            if "hang" in text:
                time.sleep(60)
            if "raise" in text:
                raise ValueError("no")
            if "die" in text:
                os._exit(3)
            if "bomb" in text:
                bytearray(10**11)
            scores.append(None if "none" in text else float("nan") if "nan" in text else 1.0)
        return scores
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a module with FUNCTIONS, allowed."""
    name = f"mine_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(textwrap.dedent(FUNCTIONS))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("R1PIPE_ALLOW_CODE", "1")
    return name


def scored(use: str, texts: list[str], **options):
    composer = Composer({"mine": RewardPart(use=use, options=options)})
    try:
        result = composer.score(texts, [{"id": str(i), "gold": "12", "kind": "math"} for i in range(len(texts))])
        return [parts["mine"] for parts in result], composer
    finally:
        composer.close()


def test_a_function_gets_what_trl_would_give_it(module):
    verdicts, _ = scored(f"{module}:contains", ["is it 12?", "no"])
    assert [(v.score, v.status) for v in verdicts] == [(1.0, "scored"), (0.0, "scored")]


def test_async_metrics_and_arguments(module):
    verdicts, composer = scored(f"{module}:logged", ["a", "b", "c"], args={"bonus": 0.5})
    assert [v.score for v in verdicts] == [0.5] * 3
    assert composer.verifiers["mine"].metrics == {"seen": 3.0}


def test_each_fault_costs_its_completion_alone(module):
    texts = ["fine", "hang", "raise", "die", "bomb", "none", "nan", "fine"]
    verdicts, _ = scored(f"{module}:hostile", texts, limit_s=1.5, batch_limit_s=30)
    assert verdicts[5] is None  # does not apply
    found = [(v.score, v.status) for v in verdicts if v is not None]
    assert found == [
        (1.0, "scored"),
        (0.0, "timeout"),
        (None, "error"),
        (None, "error"),
        (0.0, "unverifiable"),
        (None, "error"),
        (1.0, "scored"),
    ]


def test_a_wrong_number_of_scores_is_told(module):
    with pytest.raises(UserError, match="returned 1 scores for 2 completions"):
        scored(f"{module}:short", ["a", "b"])


def test_code_needs_permission(module, monkeypatch):
    part = {"mine": RewardPart(use=f"{module}:contains")}
    validate(part)
    monkeypatch.delenv("R1PIPE_ALLOW_CODE")
    with pytest.raises(UserError, match="would import code"):
        validate(part)


def test_a_missing_function_or_module_is_told(module):
    with pytest.raises(UserError, match="has no attribute 'nothing'"):
        scored(f"{module}:nothing", ["a"])
    with pytest.raises(UserError, match='no module "nowhere"'):
        scored("nowhere:f", ["a"])


def test_the_fingerprint_follows_the_file(module, tmp_path):
    from r1pipe.rewards import custom

    part = {"mine": RewardPart(use=f"{module}:contains")}
    before = versions(part)
    custom.version.cache_clear()
    path = tmp_path / f"{module}.py"
    path.write_text(path.read_text() + "\n# changed\n")
    assert versions(part) != before


def test_an_installed_entry_point_needs_no_flag(tmp_path):
    package = tmp_path / "their_rewards-1.0.dist-info"
    package.mkdir()
    (tmp_path / "their_rewards.py").write_text(
        "def polite(completions, **kw):\n    return [0.25] * len(completions)\n"
    )
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: their-rewards\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(f"[{registry.GROUP}]\npolite = their_rewards:polite\n")
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "completion": "x"}\n')
    run = subprocess.run(
        [sys.executable, "-m", "r1pipe", "score", "rows.jsonl", "-r", "polite", "--json"],
        cwd=tmp_path, env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip
    assert json.loads(run.stdout) == {"id": "a", "score": 0.25, "status": "scored", "detail": ""}, run.stderr
