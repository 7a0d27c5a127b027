"""What the READMEs show about rewards is run."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from r1pipe.rewards import Composer, RewardPart, validate
from tests.rewards import cases

ROOT = Path(__file__).parents[2]


def test_the_composition_of_the_rewards_readme(monkeypatch):
    text = (ROOT / "r1pipe/rewards/README.md").read_text(encoding="utf-8")
    block = re.search(r"```yaml\n(rewards:.*?)```", text, re.DOTALL)
    parts = {n: RewardPart(**(v or {})) for n, v in yaml.safe_load(block[1])["rewards"].items()}
    mine = parts.pop("mine")
    assert mine.use == "my_module:reward" and mine.start == 0.7
    validate(parts)
    composer = Composer({n: p for n, p in parts.items() if n != "harmless"})
    row = {"id": "a", "gold": "12", "kind": "math", "language": "en"}
    right, wrong = composer.score([cases.wrap("12"), cases.wrap("13")], [row, row])
    assert composer.total(right) > 1.5 and composer.total(wrong) <= 0.2


def test_the_ten_lines_of_the_readme(tmp_path, monkeypatch):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    module = re.search(r"```python\n# my_rewards.py\n(.*?)```", text, re.DOTALL)
    settings = re.search(r"```yaml\n( +rewards: .*?)```", text, re.DOTALL)
    (tmp_path / "my_rewards.py").write_text(module[1])
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("R1PIPE_ALLOW_CODE", "1")
    parts = {n: RewardPart(**v) for n, v in yaml.safe_load(settings[1])["rewards"].items()}
    composer = Composer(parts)
    row = {"id": "a", "gold": "12", "kind": "math"}
    try:
        scored = composer.score([cases.wrap("12"), cases.wrap("12, sorry")], [row, row])
        assert composer.total(scored[0]) == 1.2 and scored[1]["polite"].score == 0.0
    finally:
        composer.close()
