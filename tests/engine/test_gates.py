"""Gates through the engine, on torch-free steps: tokens are 10 a row, so b (2 rows) lies below a (3 rows)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from r1pipe import config
from r1pipe.errors import UserError
from r1pipe.evaluate import gates
from r1pipe.settings import MetricGate
from tests.engine.conftest import Cli
from tests.engine.test_pipeline import manifest, plan, run

GATE = "b.gates=[{metric: tokens, %s}]"


def test_a_gate_that_passes_is_on_record(cli: Cli, tmp_path: Path) -> None:
    assert run(cli, "--set", GATE % "drop: 10, action: fail")["ran"] == ["a", "b", "c"]
    (verdict,) = manifest(tmp_path, "b")[0].facts["gates"]
    assert (verdict["verdict"], verdict["against"], verdict["value"], verdict["reference"]) == ("passed", "a", 20, 30)
    assert verdict["text"] == "gate tokens against a: 30 → 20, change -10 (no interval); passed"
    assert verdict["text"] in plan(cli)["b"]["notes"]


def test_fail_keeps_the_result_and_ends_the_run(cli: Cli, tmp_path: Path) -> None:
    setting = GATE % "drop: 9, action: fail"
    failed = cli("pipeline", "full", "--set", setting)
    assert failed.returncode == 1
    assert "step b: gate tokens against a: 30 → 20, change -10 (no interval); worse by more than 9" in failed.stderr
    assert "Traceback" not in failed.stderr
    sealed, _ = manifest(tmp_path, "b")
    assert sealed.facts["gates"][0]["verdict"] == "tripped"
    assert any("worse by more than 9" in w for w in sealed.warnings)
    rows = plan(cli, "--set", setting)
    assert rows["b"]["state"] == "done" and "fail: gate tokens" in rows["b"]["reason"]
    assert rows["c"]["state"] == "never run"
    assert cli("verify", "toys-full").returncode == 0
    again = cli("pipeline", "full", "--set", setting)  # the sealed result is judged again, and nothing runs
    assert again.returncode == 1 and "worse by more than 9" in again.stderr
    assert run(cli, "--set", GATE % "drop: 10, action: fail")["ran"] == ["c"]  # a looser gate: it goes on from there


def test_stop_ends_quietly(cli: Cli, tmp_path: Path) -> None:
    setting = GATE % "against: 25, action: stop"
    found = run(cli, "--set", setting)
    assert found["ran"] == ["a", "b"]
    assert found["stopped"] == "after b: gate tokens against 25.0: 20, change -5 (no interval); worse"
    said = cli("pipeline", "full", "--set", setting)
    assert said.returncode == 0 and "stopped after b: gate tokens" in said.stdout


def test_warn_goes_on(cli: Cli, tmp_path: Path) -> None:
    done = cli("pipeline", "full", "--set", GATE % "action: warn")
    assert done.returncode == 0 and "warning: gate tokens against a" in done.stdout
    assert len(manifest(tmp_path, "c")[0].outputs) == 1


def test_a_number_that_is_not_there_stops_nothing_and_is_told(cli: Cli, tmp_path: Path) -> None:
    run(cli, "--set", "b.gates=[{metric: kept_rate, action: fail}]")
    (verdict,) = manifest(tmp_path, "b")[0].facts["gates"]
    assert verdict["verdict"] == "unknown"
    assert manifest(tmp_path, "b")[0].warnings == [
        "gate kept_rate against a cannot be judged: b has no such number"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("a.gates=[{metric: tokens}]", "there is nothing above a"),
        ("b.gates=[{metric: tokens, against: c}]", '"c" is not above b'),
        ("b.gates=[{metric: x/sample/accuracy}]", "no set and mode of the evaluation"),
        ("b.gates=[{metric: tokens, drops: 3}]", "unknown key"),
    ],
)
def test_a_gate_that_cannot_be_is_told_before_anything_runs(cli: Cli, tmp_path: Path, setting: str, said: str) -> None:
    refused = cli("pipeline", "full", "--set", setting)
    assert refused.returncode == 2
    assert said in refused.stderr
    assert not (tmp_path / "runs" / "toys-full" / "a").exists()


def test_the_right_parent_in_the_papers_graph() -> None:
    profile = config.load("tiny")

    def of(step: str, against: str = "parent") -> str | None:
        return gates.reference(profile, step, MetricGate(metric="m", against=against))

    assert of("sft") == "base"
    assert of("reasoning-grpo") == "sft"
    assert of("rejection-sft") == "reasoning-grpo"  # the policy whose samples it learned, not the base
    assert of("alignment-grpo") == "rejection-sft"
    assert of("alignment-grpo", "base") == "base"
    assert of("alignment-grpo", "sft") == "sft"
    assert of("base") is None
    with pytest.raises(UserError, match="is not above"):
        of("sft", "alignment-grpo")


def evidence(tmp_path: Path, name: str, right: int, n: int = 200) -> gates.Evidence:
    folder = tmp_path / name
    folder.mkdir()
    rows = [
        {"id": str(i), "set": "h", "mode": "greedy", "kind": "number", "lookalike": False, "correct": float(i < right),
         "truncated": float(i < right)}
        for i in range(n)
    ]  # fmt: skip
    (folder / gates.RECORDS).write_text("".join(json.dumps(r) + "\n" for r in rows))
    number = {"value": right / n, "low": right / n - 0.06, "high": right / n + 0.06, "n": n}
    return gates.Evidence({"h": {"greedy": {"accuracy": number, "truncated": number}}}, {}, folder)


@pytest.mark.parametrize(
    ("gate", "right", "verdict"),
    [
        ({}, 150, "passed"),
        ({}, 149, "passed"),  # one problem of 200: the interval reaches 0
        ({"significant": False}, 149, "tripped"),
        ({}, 140, "tripped"),
        ({"drop": 0.06}, 140, "passed"),
        ({"against": 0.75}, 140, "passed"),  # 0.70, its own interval reaches 0.76
        ({"against": 0.8}, 140, "tripped"),
        ({"better": "lower"}, 160, "tripped"),
        ({"metric": "h/greedy/truncated"}, 160, "tripped"),  # a rise is worse by itself
        ({"metric": "h/greedy/truncated"}, 140, "passed"),
    ],
)
def test_intervals_decide(tmp_path: Path, gate: dict[str, object], right: int, verdict: str) -> None:
    profile = config.load("tiny")
    steps = profile.steps | {
        "sft": profile.steps["sft"].model_copy(
            update={"gates": [MetricGate(**({"metric": "h/greedy/accuracy"} | gate))]}  # type: ignore[arg-type]
        )
    }
    profile = config.Profile("t", "", Path(), steps, {})
    before = evidence(tmp_path, "before", 150)
    (found,) = gates.judge(profile, "sft", evidence(tmp_path, "after", right), lambda step: before)
    assert found["verdict"] == verdict, found["text"]
    json.dumps(found)


def test_no_shipped_profile_fails_on_the_cold_start() -> None:
    for path in config.list_profiles():
        for step, settings in config.load(path.stem).steps.items():
            assert not [g for g in settings.gates if g.action == "fail" and step == "sft" and g.against == "parent"]
