"""`r1pipe plan`: no torch, fast, reasons of the real planner, errors with the next step."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest


def run(*arguments: str, cwd: Path) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "r1pipe", "plan", *arguments],
        cwd=cwd, capture_output=True, text=True, check=False, env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_no_torch_and_in_a_moment(tmp_path: Path) -> None:
    code = (
        "import sys; from r1pipe.cli import app; "
        "c = app.dispatch(['plan', 'full', '-p', 'qwen2.5-7b', '--device', 'h100', '--json']); "
        "sys.exit(c or any(m in sys.modules for m in ('torch', 'trl', 'transformers', 'datasets')))"
    )
    began = time.process_time()
    wall = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - wall < 15  # 0.9 s on a machine with nothing else to do
    assert time.process_time() - began < 1
    steps = {s["step"]: s for s in json.loads(done.stdout)["steps"]}
    assert steps["reasoning-grpo"]["processes"] == 8
    assert steps["reasoning-grpo"]["fits"]
    assert {p["name"] for p in steps["reasoning-grpo"]["phases"]} >= {"train", "rollouts"}


def test_the_json_names_every_step_with_reason_and_numbers(call: Any) -> None:
    code, out, _ = call("plan", "full", "--json")
    assert code == 0
    made = json.loads(out)
    assert [s["action"] for s in made["steps"]] == ["run", *["later"] * 6]
    assert made["steps"][1]["reason"] == "after base"
    assert "unmeasured" in made["time_is"]
    assert made["total"]["fits"] is True
    assert made["total"]["seconds"] == pytest.approx(sum(s["seconds"] for s in made["steps"]), abs=1)
    for step in made["steps"]:
        assert step["memory_bytes"] == max(p["bytes"] for p in step["phases"])
        assert step["seconds"] == pytest.approx(sum(step["seconds_of"].values()), abs=0.3)


def test_what_does_not_fit_is_named_with_a_way_out(call: Any) -> None:
    code, out, _ = call("plan", "full", "-p", "qwen2.5-1.5b", "--device", "rtx4090", "--price", "1")
    assert code == 0
    assert "reasoning-grpo does not fit:" in out
    assert "--set reasoning-grpo." in out
    assert ", fits" in out
    assert "unmeasured" in out


def test_too_few_devices_is_a_fault(call: Any) -> None:
    _, out, _ = call("plan", "full", "-p", "qwen2.5-7b", "--device", "h100", "--devices", "2", "--json")
    steps = {s["step"]: s for s in json.loads(out)["steps"]}
    assert "needs 8 devices, and there are 2" in steps["sft"]["faults"][0]
    assert not steps["sft"]["fits"]


def test_money_is_devices_times_hours_times_price(call: Any) -> None:
    _, out, _ = call("plan", "full", "-p", "qwen2.5-7b", "--device", "h100", "--price", "2", "--json")
    total = json.loads(out)["total"]
    assert total["price"] == pytest.approx(total["seconds"] / 3600 * 2 * 8, rel=1e-3)


def test_a_model_that_is_not_here_needs_its_size(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    sets = ["--set", "base_model.path=nobody/none", "--set", f"base_model.revision={'a' * 40}"]
    code, _, err = call("plan", "full", "-p", "qwen2.5-0.5b", "--device", "h100", *sets)
    assert code == 2
    assert "--params 7B" in err
    code, out, _ = call("plan", "full", "-p", "qwen2.5-0.5b", "--device", "h100", *sets, "--params", "3B", "--json")
    assert code == 0
    sizes = [s["parameters"] for s in json.loads(out)["steps"]]
    assert all(abs(size - 3e9) < 0.3e9 for size in sizes)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--device", "h10"], 'did you mean "h100"'),
        (["--device", "h100", "--probe"], "measures this machine"),
        (["--price", "-2", "--device", "h100"], "below 0"),
        (["--params", "big", "--device", "h100"], "no number of parameters"),
    ],
)
def test_bad_input_is_one_clear_sentence(call: Any, arguments: list[str], said: str) -> None:
    code, _, err = call("plan", "full", *arguments)
    assert code == 2
    assert said in err


def test_sealed_steps_are_skipped_and_their_lengths_are_used(made: Any) -> None:
    from r1pipe.estimate import report

    facts = report.facts_of(made.manifests.items(), None)
    assert facts.completion["rl"] == pytest.approx(60)
    assert facts.tokens("rl", 1000) == (60, False)
    assert facts.tokens("never", 1000) == (500, True)


def test_a_done_step_shows_what_it_took(call: Any, profile: Path) -> None:
    assert call("run-stage", "a", "--profile", str(profile))[0] == 0
    code, out, _ = call("plan", "--profile", str(profile), "--device", "cpu", "--json")
    assert code == 0
    rows = {s["step"]: s for s in json.loads(out)["steps"]}
    assert rows["a"]["action"] == "skip"
    assert rows["b"]["action"] in ("run", "later")
    assert rows["a"]["fits"]


def test_a_probe_measures_and_says_so(tmp_path: Path) -> None:
    code, out, err = run("full", "-p", "smoke", "--probe", "--json", cwd=tmp_path)
    assert code == 0, err
    made = json.loads(out)
    assert "measured on this machine" in made["time_is"]
    assert not any("assumed" in note and "tokens" in note for s in made["steps"] for note in s["notes"])
