"""What docs/determinism.md promises, piece by piece; whole runs are in tests/slow/test_determinism.py.

(tools/smoke_twice.py compares every artifact of two runs of the whole pipeline.)
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from r1pipe import config, environment, fingerprint
from r1pipe import digest as dg
from r1pipe import manifest as mf
from r1pipe.plan import Action, Options, Planner, Why
from r1pipe.store import Store
from r1pipe.training import grpo, rows, sft
from r1pipe.training.settings import GRPOStep, TrainerStep
from tests.training import tiny


def digest(folder: Path) -> str:
    """The digest of a checkpoint artifact."""
    return dg.files_digest((p.name, dg.file_digest(p)) for p in dg.checkpoint_files(folder))


def train(folder: Path, seed: int) -> list[str]:
    """Digests after a little SFT, and after a little GRPO on it."""
    policy = tiny.make_policy(folder / "base")
    keys = {"per_device_train_batch_size": 4, "gradient_checkpointing": False, "learning_rate": 1.0e-3}
    ctx = tiny.context(folder / "sft", model=policy)
    ctx.seed = seed
    step = TrainerStep(stage="sft", trainer={**keys, "max_length": 128, "max_steps": 3})
    sft.train(ctx, step, tiny.traces(24), overlong="drop")
    learned = ctx.outputs["model"]
    ctx = tiny.context(folder / "rl", model=learned)
    ctx.seed = seed
    trainer = {**tiny.GRPO, "max_completion_length": 12, "save_steps": 50}
    policy_step = GRPOStep(stage="x", rewards={"language": {}}, trainer=trainer, preflight={"enabled": False})
    layout = rows.endless(tiny.prompts(20), policy_step.batch().generations(3) * policy_step.batch().groups, seed)
    grpo.train(ctx, policy_step, layout, 3)
    return [digest(learned), digest(ctx.outputs["model"])]


def test_a_seed_makes_a_result_and_a_folder_does_not(tmp_path: Path) -> None:
    one = train(tmp_path / "one", 7)
    assert train(tmp_path / "another place, 另一个", 7) == one
    other = train(tmp_path / "other", 8)
    assert all(a != b for a, b in zip(one, other, strict=True))


def prints(profile: config.Profile) -> dict[str, str]:
    return {name: fingerprint.of(step, {"model": "x"})[0] for name, step in profile.steps.items()}


def backwards(value: Any) -> Any:
    """The same mapping, every key in the other order."""
    if isinstance(value, dict):
        return {key: backwards(value[key]) for key in reversed(value)}
    return [backwards(item) for item in value] if isinstance(value, list) else value


def test_the_order_of_keys_is_no_setting(tmp_path: Path) -> None:
    plain = {"extends": "smoke", "steps": {
        "sft": {"trainer": {"max_steps": 3, "learning_rate": 1.0e-3}, "seed": 5},
        "reasoning-grpo": {"rewards": {"format": {"weight": 1.0}, "accuracy": {"weight": 0.5}}},
    }}  # fmt: skip
    found = []
    for name, value in (("a", plain), ("b", backwards(plain))):
        path = tmp_path / name / "mine.yaml"
        path.parent.mkdir()
        path.write_text(yaml.safe_dump(value, sort_keys=False))
        found.append(prints(config.load(str(path))))
    assert (tmp_path / "a" / "mine.yaml").read_text() != (tmp_path / "b" / "mine.yaml").read_text()
    assert found[0] == found[1]
    assert found[0]["sft"] != prints(config.load("smoke"))["sft"]


def test_threads_and_seed_are_settings_of_the_result() -> None:
    """Sums are split among threads, so another number may round otherwise: it is another result, and said so."""
    plain = prints(config.load("smoke"))
    for change in ("threads=1", "seed=1"):
        assert all(value != plain[name] for name, value in prints(config.load("smoke", [change])).items())


def test_another_machine_is_told() -> None:
    here = environment.describe()
    assert environment.differences(here, threads_set=False) == []
    moved = here | {"cpu": "Zilog Z80", "machine": "z80", "cpus": 999, "packages": here["packages"] | {"torch": "0.1"}}
    told = environment.differences(moved)
    assert [text.split()[0] for text in told] == ["machine", "cpu", "torch"]
    assert f"cpus 999 → {here['cpus']}" in environment.differences(moved, threads_set=False)
    old = {"packages": here["packages"]}  # a manifest that says nothing of the machine
    assert environment.differences(old, threads_set=False) == []


def test_a_sealed_step_records_its_threads_and_tells_of_a_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Moved to another machine, a result is kept and told; --strict makes it again."""
    command = [sys.executable, "-P", "-m", "r1pipe", "pipeline", "full", "--profile", "smoke", "--only", "base"]
    settings = ["--set", "base.evaluate=true", "--set", "threads=1"]
    done = subprocess.run(
        [*command, *settings, "--runs-dir", str(tmp_path)], capture_output=True, text=True, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
    store = Store(tmp_path, "smoke-full")
    sealed = mf.load(store.all_attempts("base")[0])
    assert sealed.environment["threads"] == 1 and sealed.environment["device"] == "cpu"
    assert sealed.environment["cpu"] == environment.cpu()

    profile = config.load("smoke", ["base.evaluate=true", "threads=1"])
    assert Planner(profile, store).decide("base").notes == ()
    monkeypatch.setattr(environment, "cpu", lambda: "Zilog Z80")
    kept = Planner(profile, store).decide("base")
    assert kept.action is Action.SKIP
    assert kept.notes == (
        f"environment differs: cpu {sealed.environment['cpu']} → Zilog Z80 (--strict runs it again)",
    )
    again = Planner(profile, store, Options(strict=True)).decide("base")
    assert (again.action, again.why) == (Action.RUN, Why.STRICT)
