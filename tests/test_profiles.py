"""The shipped profiles: they load, say what they need, hold the paper's values, and build every real config object."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from r1pipe import config, launch, runner
from r1pipe import stage as stages
from r1pipe.resources import configs_dir
from r1pipe.settings import DataSpec, ModelConfig
from r1pipe.stage import POLICY, Input, StageContext
from tests.at_hand import AT_HAND

PROFILES = [path.stem for path in config.list_profiles()]
LOSSES = [name for name in PROFILES if name.startswith("loss-")]
ACCELERATE = ("single", "multi_gpu", "fsdp2", "zero2", "zero3", "multi_cpu")
ISSUE = {
    "tiny", "smoke", "qwen2.5-0.5b", "qwen2.5-0.5b-lora", "qwen2.5-1.5b", "qwen2.5-1.5b-lora", "qwen2.5-7b",
    "qwen2.5-7b-qlora", "qwen2.5-1.5b-vllm-server", "loss-grpo", "loss-dr-grpo", "loss-dapo", "loss-gspo", "r1-paper",
}  # fmt: skip


def header(name: str) -> list[str]:
    """The comment lines that open a profile, without their marks."""
    lines = []
    for line in (configs_dir() / f"{name}.yaml").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").strip())
    return lines


def walk(value: Any, kind: type) -> Iterator[Any]:
    """Every `kind` inside a config."""
    if isinstance(value, kind):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from walk(item, kind)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from walk(item, kind)
    elif hasattr(type(value), "model_fields"):
        for name in type(value).model_fields:
            yield from walk(getattr(value, name), kind)


def test_every_profile_of_the_recipe_is_there() -> None:
    assert set(PROFILES) >= ISSUE
    told = (configs_dir() / "README.md").read_text(encoding="utf-8")
    assert not [name for name in PROFILES if f"`{name}`" not in told]


def test_all_profiles_load_in_a_moment_and_without_torch() -> None:
    code = "import sys; from r1pipe import config; [config.load(p.stem) for p in config.list_profiles()]; "
    code += "sys.exit('torch' in sys.modules)"
    began = time.monotonic()
    assert subprocess.run([sys.executable, "-P", "-c", code], check=False).returncode == 0
    assert time.monotonic() - began < 15  # 1 s on a machine with nothing else to do


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_opens_with_what_it_needs_and_its_launch_line(name: str) -> None:
    lines = header(name)
    assert any(line.startswith("needs:") for line in lines)
    assert any(line.startswith("launch:") and f"--profile {name}" in line for line in lines)
    commands = [line[line.index("r1pipe ") :] for line in lines if re.search(r"r1pipe (pipeline|run-stage) ", line)]
    for command in commands:
        words = shlex.split(re.sub(r"\s{2,}\(.*", "", command))
        assert words[words.index("--profile") + 1] == name
        overrides = [words[i + 1] for i, word in enumerate(words) if word == "--set"]
        loaded = config.load(name, overrides)
        assert words[1] != "pipeline" or words[2] in loaded.pipelines


@pytest.mark.parametrize("name", PROFILES)
def test_everything_from_the_hub_is_pinned_to_a_commit(name: str) -> None:
    from r1pipe.data.load import source_digest

    for step in config.load(name).steps.values():
        for model in walk(step, ModelConfig):
            if not model.path.startswith(("builtin:", "./")):  # ./models: made by make real-model
                assert re.fullmatch(r"[0-9a-f]{40}", model.revision or ""), model.path
        for spec in walk(step, DataSpec):
            if not spec.source.startswith("generated:"):
                assert re.fullmatch(r"[0-9a-f]{40}", spec.revision or ""), spec.source
                assert source_digest(spec) == f"{spec.source}@{spec.revision}"


# One value of the paper a row (r1-facts.md: arXiv 2501.12948 v2): step, key, value.
PAPER: list[tuple[str, str, Any]] = [
    ("zero-grpo", "trainer.learning_rate", 3e-6),
    ("zero-grpo", "trainer.beta", 0.001),
    ("zero-grpo", "trainer.temperature", 1.0),
    ("zero-grpo", "trainer.num_generations", 16),
    ("zero-grpo", "trainer.num_iterations", 1),
    ("zero-grpo", "trainer.max_completion_length", 32768),
    ("zero-grpo", "steps", 10400),
    ("zero-grpo", "reference_refresh", 400),
    ("reasoning-grpo", "trainer.loss_type", "grpo"),
    ("reasoning-grpo", "trainer.scale_rewards", "group"),
    ("reasoning-grpo", "trainer.use_bias_correction_kl", False),
    ("reasoning-grpo", "trainer.learning_rate", 3e-6),
    ("reasoning-grpo", "trainer.beta", 0.001),
    ("reasoning-grpo", "trainer.epsilon", 10.0),
    ("reasoning-grpo", "trainer.num_generations", 16),
    ("reasoning-grpo", "trainer.temperature", 1.0),
    ("reasoning-grpo", "trainer.max_completion_length", 32768),
    ("reasoning-grpo", "steps", 10400),
    ("reasoning-grpo", "reference_refresh", 400),
    ("alignment-grpo", "trainer.learning_rate", 3e-6),
    ("alignment-grpo", "trainer.beta", 0.001),
    ("alignment-grpo", "trainer.epsilon", 10.0),
    ("alignment-grpo", "trainer.temperature", 0.7),
    ("alignment-grpo", "steps", 1700),
    ("alignment-grpo", "general_share_of_steps", 400 / 1700),
    ("sft", "trainer.learning_rate", 5e-5),
    ("sft", "trainer.lr_scheduler_type", "cosine_with_min_lr"),
    ("sft", "trainer.lr_scheduler_kwargs.min_lr", 5e-6),
    ("sft", "trainer.max_length", 32768),
    ("rejection-sft", "trainer.learning_rate", 5e-5),
    ("rejection-sft", "trainer.lr_scheduler_kwargs.min_lr", 5e-6),
    ("rejection-sft", "trainer.max_length", 32768),
    ("reward-models", "trainer.learning_rate", 6e-6),
    ("reward-models", "trainer.num_train_epochs", 1),
    ("reward-models", "trainer.max_length", 8192),
]


@pytest.mark.parametrize(("step", "key", "value"), PAPER, ids=[f"{s}.{k}" for s, k, _ in PAPER])
def test_r1_paper_has_the_papers_values(step: str, key: str, value: Any) -> None:
    found: Any = config.load("r1-paper").steps[step]
    for part in key.split("."):
        found = found[part] if isinstance(found, dict) else getattr(found, part)
    assert found == value


@pytest.mark.parametrize("step", ["zero-grpo", "reasoning-grpo", "alignment-grpo"])
def test_r1_paper_has_the_papers_batches(step: str) -> None:
    batch = config.load("r1-paper").steps[step].batch()  # type: ignore[attr-defined]
    assert batch.effective == 512  # outputs a step
    assert batch.effective // batch.num_generations == 32  # questions a step
    assert batch.completions == 8192  # outputs a rollout
    assert batch.completions // batch.effective == 16  # minibatches
    assert batch.aligned(400)


def test_r1_paper_has_the_papers_rewards_and_epochs() -> None:
    steps: dict[str, Any] = config.load("r1-paper").steps
    assert set(steps["zero-grpo"].rewards) == {"accuracy", "format"}
    assert set(steps["reasoning-grpo"].rewards) == {"accuracy", "format", "language"}
    assert {part.weight for part in steps["reasoning-grpo"].rewards.values()} == {1.0}
    assert steps["alignment-grpo"].rewards["helpful"].kinds == ["general"]
    for name, batch in (("sft", 128), ("rejection-sft", 128), ("reward-models", 256)):
        trainer = steps[name].trainer
        rows = trainer["per_device_train_batch_size"] * trainer["gradient_accumulation_steps"]
        assert rows * steps[name].num_processes == batch
    for name in ("sft", "rejection-sft"):
        assert 2 <= steps[name].trainer["num_train_epochs"] <= 3
    evaluation = steps["sft"].evaluation
    assert (evaluation.temperature, evaluation.top_p, evaluation.max_tokens) == (0.6, 0.95, 32768)


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_preset_changes_the_loss_alone(name: str) -> None:
    loss = {
        "loss_type", "scale_rewards", "importance_sampling_level", "epsilon", "epsilon_high", "beta",
        "use_bias_correction_kl", "mask_truncated_completions",
    }  # fmt: skip
    base, preset = config.load("qwen2.5-0.5b").steps, config.load(name).steps
    for step, ours in base.items():
        one, other = ours.model_dump(), preset[step].model_dump()
        for key, value in other.items():
            if key == "trainer":
                same = {k: v for k, v in value.items() if k not in loss}
                assert same == {k: v for k, v in one["trainer"].items() if k not in loss}
            elif key != "reference_refresh":
                assert value == one[key], f"{step}.{key}"


def test_the_loss_presets_differ_from_each_other() -> None:
    steps = [config.load(name).steps["reasoning-grpo"].trainer for name in LOSSES]  # type: ignore[attr-defined]
    assert len({json.dumps(trainer, sort_keys=True) for trainer in steps}) == len(LOSSES) == 4


@pytest.mark.parametrize("name", ACCELERATE)
def test_accelerate_takes_every_accelerate_file(name: str) -> None:
    """Through accelerate's own loader and argument parser, as the runner calls it."""
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser

    path = launch.accelerate_file(f"builtin:{name}")
    assert path.read_text(encoding="utf-8").startswith("# ")
    loaded = load_config_from_file(str(path))
    wanted = {"single": "NO", "fsdp2": "FSDP", "zero2": "DEEPSPEED", "zero3": "DEEPSPEED"}.get(name, "MULTI_GPU")
    assert loaded.distributed_type.value == wanted
    step = config.load("qwen2.5-7b", [f"sft.accelerate=builtin:{name}", "sft.num_processes=4"]).steps["sft"]
    arguments = [*launch.launch_arguments(step), "--module", "r1pipe.worker", "request.json"]
    args, _, _ = _validate_launch_command(launch_command_parser().parse_args(arguments))
    assert args.num_processes == 4
    assert bool(args.use_fsdp) == (name == "fsdp2")
    assert bool(args.use_deepspeed) == name.startswith("zero")
    if name == "fsdp2":
        assert int(args.fsdp_version) == 2
    if name.startswith("zero"):
        assert int(args.zero_stage) == int(name[-1])


def test_the_shipped_accelerate_files_are_the_known_ones() -> None:
    assert {path.stem for path in (configs_dir() / "accelerate").glob("*.yaml")} == set(ACCELERATE)


PARAMETERS = {  # as the published models have
    "Qwen--Qwen2.5-0.5B": 494_032_768,
    "Qwen--Qwen2.5-1.5B": 1_543_714_304,
    "Qwen--Qwen2.5-7B": 7_615_616_512,
    "deepseek-ai--DeepSeek-V3-Base": 671_026_404_352,
    "HuggingFaceTB--SmolLM2-135M-Instruct": 134_515_008,
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_fixture_is_the_published_model(name: str) -> None:
    from r1pipe.training.model import meta_check

    folder = configs_dir() / "models" / name
    assert [path.name for path in folder.iterdir()] == ["config.json"]
    assert meta_check(folder)["parameters"] == PARAMETERS[name]


@pytest.mark.parametrize("name", PROFILES)
def test_every_step_of_a_profile_builds_its_real_configs(name: str, tmp_path: Path) -> None:
    """What the worker does for --dry-run, in this process (trl is imported once)."""
    profile = config.load(name, AT_HAND.get(name, []))
    for step, settings in profile.steps.items():
        fixture = runner._fixture(profile, step)
        assert fixture is not None, "a profile needs a config.json under configs/models"
        module = stages.load(settings.stage)
        policies = [port for port, spec in module.INPUTS.items() if spec.kind == POLICY]
        ctx = StageContext(
            step=step, seed=settings.seed, outputs={}, work=tmp_path,
            inputs={port: Input(POLICY, fixture, "", "") for port in policies},
        )  # fmt: skip
        facts = module.check(ctx, module.Config.model_validate(settings.model_dump(mode="json")))
        if policies:
            assert facts["parameters"] > 500_000
        if hasattr(settings, "quantization") and getattr(settings, "lora", None):
            assert 0 < facts["trainable_parameters"] < 0.05 * facts["parameters"]


def dry_run(*words: str, timeout: float) -> dict[str, Any]:
    command = [sys.executable, "-P", "-m", "r1pipe", *words, "--dry-run", "--json"]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["ok"]
    return found["steps"]


def test_a_dry_run_of_a_lora_profile(tmp_path: Path) -> None:
    steps = dry_run("run-stage", "sft", "--profile", "qwen2.5-0.5b-lora", "--runs-dir", str(tmp_path), timeout=200)
    facts = steps["sft"]["facts"]
    assert facts["parameters"] == PARAMETERS["Qwen--Qwen2.5-0.5B"]
    assert facts["trainable_parameters"] == 17_596_416
    assert "use_cpu added" in facts.get("built", "use_cpu added")  # said where this machine has no accelerator


def test_a_dry_run_of_the_papers_reasoning_step(tmp_path: Path) -> None:
    steps = dry_run("run-stage", "reasoning-grpo", "--profile", "r1-paper", "--runs-dir", str(tmp_path), timeout=200)
    facts = steps["reasoning-grpo"]["facts"]
    assert facts["completions_a_generation"] == 8192
    assert facts["completions_an_optimizer_step"] == 512
    assert facts["steps"] == 10400
    assert facts["parameters"] == PARAMETERS["deepseek-ai--DeepSeek-V3-Base"]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", PROFILES)
def test_a_dry_run_of_every_pipeline(name: str, tmp_path: Path) -> None:
    overrides = AT_HAND.get(name, [])
    for pipeline, steps in config.load(name).pipelines.items():
        words = ["pipeline", pipeline, "--profile", name, *[w for o in overrides for w in ("--set", o)]]
        found = dry_run(*words, "--runs-dir", str(tmp_path), timeout=800)
        assert list(found) == steps
    assert not list(tmp_path.iterdir())  # nothing was made
