"""The smoke pipeline through the command line, and every command of the README on its run."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from r1pipe import manifest as mf
from r1pipe.store import Store
from tests.report.browser import check, needs_chromium

ROOT = Path(__file__).resolve().parent.parent


def r1pipe(cwd: Path, *arguments: str, timeout: float = 600, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "r1pipe", *arguments], cwd=cwd, capture_output=True, text=True,
        timeout=timeout, input=given, env=os.environ | {"COLUMNS": "160"},
    )  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A directory with a finished run `smoke-full`, and what `--json` said of it."""
    folder = tmp_path_factory.mktemp("smoke")
    done = r1pipe(folder, "pipeline", "full", "--profile", "smoke", "--json")
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def manifests(folder: Path) -> dict[str, mf.Manifest]:
    store = Store(folder / "runs", "smoke-full")
    return {s: mf.load(a) for s in store.steps() for a in store.all_attempts(s) if a.sealed}


def test_every_step_is_sealed_and_reads_what_the_paper_says(finished: tuple[Path, dict[str, Any]]) -> None:
    folder, said = finished
    sealed = manifests(folder)
    assert said["ran"] == list(said["steps"])
    assert set(sealed) == {
        "base", "sft", "reasoning-grpo", "rejection-sampling", "rejection-sft", "reward-models", "alignment-grpo"
    }  # fmt: skip
    base = sealed["base"].outputs["model"].digest
    assert sealed["sft"].inputs["model"].digest == base
    assert sealed["rejection-sft"].inputs["model"].digest == base, "the second SFT starts from the BASE model"
    assert sealed["reasoning-grpo"].inputs["model"].producer.startswith("sft/")
    assert sealed["rejection-sampling"].inputs["model"].producer.startswith("reasoning-grpo/")
    assert sealed["alignment-grpo"].inputs["model"].producer.startswith("rejection-sft/")
    for step, manifest in sealed.items():
        assert manifest.environment["packages"]["torch"], step
        if "model" in manifest.outputs:
            assert manifest.evaluation["heldout"]["sample"]["accuracy"]["n"] == 16, step
            assert manifest.outputs["evaluation"].meta["rows"] > 0


def test_each_rl_step_starts_at_its_reference(finished: tuple[Path, dict[str, Any]]) -> None:
    sealed = manifests(finished[0])
    for step in ("reasoning-grpo", "alignment-grpo"):
        assert sealed[step].facts["kl_first_step"] < 1e-3
        assert sealed[step].facts["prefilled_think"] is False


def test_the_machinery_takes_little(finished: tuple[Path, dict[str, Any]]) -> None:
    assert finished[1]["machinery_seconds"] < 0.5 * finished[1]["seconds"]  # smoke trains for moments only


def test_a_second_run_has_nothing_to_do_and_loads_no_torch(finished: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = finished
    code = (
        "import sys; from r1pipe.cli.app import dispatch\n"
        "assert dispatch(['pipeline', 'full', '--profile', 'smoke']) == 0\n"
        "assert 'torch' not in sys.modules and 'trl' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "everything is up to date (7 steps)" in done.stdout


def test_the_commands_of_the_readme(finished: tuple[Path, dict[str, Any]]) -> None:
    """As they stand there, with smoke for tiny."""
    folder, _ = finished
    block = next(
        b for b in re.findall(r"```\n(.*?)```", (ROOT / "README.md").read_text(), re.S) if "r1pipe status" in b
    )
    lines = [line.partition("#")[0].strip() for line in block.splitlines() if line.startswith("r1pipe")]
    assert len(lines) >= 10
    for line in lines:
        words = shlex.split(re.sub("tiny-full|run-[ab]", "smoke-full", line))[1:]
        if words[0] in ("pipeline", "run-stage", "status"):
            words += ["--profile", "smoke"]
        if words[0] == "chat":
            words += ["--prompt", "What is 3 plus 4?"]
        done = r1pipe(folder, *words, given="n\n")
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr


def test_a_changed_tokenizer_is_refused_by_name(finished: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    shutil.copytree(finished[0] / "runs", tmp_path / "runs")
    for name, what in (("chat_template.jinja", "chat template"), ("tokenizer.json", "tokenizer")):
        path = next((tmp_path / "runs").glob(f"smoke-full/base/*/out/model/{name}"))
        before = path.read_bytes()
        path.write_bytes(before.replace(b"assistant", b"assistent") if name.endswith("jinja") else before + b"\n")
        row = json.loads(r1pipe(tmp_path, "status", "--profile", "smoke", "--json").stdout)["steps"][0]
        assert row["why"] == "damaged"
        assert f"{what} digest mismatch" in row["reason"]
        path.write_bytes(before)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_grpo_step_ends_with_the_same_weights(
    finished: tuple[Path, dict[str, Any]], tmp_path: Path, how: signal.Signals
) -> None:
    """Killed after its first checkpoint, it goes on from there to the digests of the run that was left alone."""
    (tmp_path / "runs" / "smoke-full").mkdir(parents=True)
    for step in ("base", "sft"):
        shutil.copytree(finished[0] / "runs" / "smoke-full" / step, tmp_path / "runs" / "smoke-full" / step)
    command = [sys.executable, "-P", "-m", "r1pipe", "run-stage", "reasoning-grpo", "--profile", "smoke"]
    child = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 120
    marks = "smoke-full/reasoning-grpo/*/work/checkpoints/checkpoint-2/complete.json"
    while not list((tmp_path / "runs").glob(marks)) and time.monotonic() < until:
        time.sleep(0.01)
    child.send_signal(how)
    assert child.wait(timeout=30) == (-9 if how == signal.SIGKILL else 130)
    assert not list((tmp_path / "runs").glob("smoke-full/reasoning-grpo/*/manifest.json"))
    status = r1pipe(tmp_path, "status", "--profile", "smoke", "--json")
    row = next(r for r in json.loads(status.stdout)["steps"] if r["step"] == "reasoning-grpo")
    assert row["action"] == "resume"
    assert "goes on from checkpoint-2" in row["reason"]
    done = r1pipe(tmp_path, "run-stage", "reasoning-grpo", "--profile", "smoke", "--json")
    assert done.returncode == 0, done.stderr
    sealed = mf.load(Store(tmp_path / "runs", "smoke-full").all_attempts("reasoning-grpo")[0])
    assert sealed.facts["resumed_from_step"] == 2
    left_alone = manifests(finished[0])["reasoning-grpo"]
    assert sealed.outputs["model"].digest == left_alone.outputs["model"].digest
    assert sealed.outputs["evaluation"].digest == left_alone.outputs["evaluation"].digest


def test_r1_zero(finished: tuple[Path, dict[str, Any]]) -> None:
    """RL straight on the base: a run of its own."""
    done = r1pipe(finished[0], "pipeline", "zero", "--profile", "smoke", "--run", "zero", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ran"] == ["base", "zero-grpo"]


def test_no_pickle_lies_in_an_output(finished: tuple[Path, dict[str, Any]]) -> None:
    outputs = [p for p in (finished[0] / "runs").glob("*/*/*/out/**/*") if p.is_file()]
    assert {p.suffix for p in outputs} <= {".safetensors", ".json", ".jinja", ".jsonl", ".md"}


@needs_chromium
def test_the_report_of_a_real_run_is_whole(finished: tuple[Path, dict[str, Any]]) -> None:
    path = finished[0] / "report.html"
    assert r1pipe(finished[0], "report", "smoke-full", "--out", str(path)).returncode == 0
    check(path)


def test_preflight_of_a_finished_run(finished: tuple[Path, dict[str, Any]]) -> None:
    done = r1pipe(finished[0], "preflight", "--profile", "smoke", "--prompts", "4", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)["steps"]["reasoning-grpo"]
    assert report["golds"]["wrong"] == report["broken"]["wrong"] == 0
    assert report["samples"]["groups"] == 4 and report["fails"] is None
