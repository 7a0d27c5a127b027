"""The whole recipe on SmolLM2-135M-Instruct (`make real-model`, then this; about 15 minutes on two cores).

A finished run in models/runs is looked at as it is, since its steps are skipped; delete it to see it made again.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from r1pipe import manifest as mf
from r1pipe.store import Store, read_lines

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "models" / "smollm2-135m"
RUN, PROFILE = "smollm2-135m-full", "smollm2-135m"
RL = ("reasoning-grpo", "alignment-grpo")
LORA = ("sft", "reasoning-grpo", "rejection-sft", "alignment-grpo")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(7200),
    pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vllm is not installed"),
    pytest.mark.skipif(not MODEL.is_dir(), reason="there is no models/smollm2-135m: make real-model"),
]


@pytest.fixture(scope="module")
def run() -> Store:
    command = [sys.executable, "-P", "-m", "r1pipe", "pipeline", "full", "--profile", PROFILE]
    done = subprocess.run(
        [*command, "--runs-dir", "models/runs"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return Store(ROOT / "models" / "runs", RUN)


def sealed(run: Store, step: str) -> Any:
    attempt = next(a for a in run.all_attempts(step) if a.sealed)
    return attempt, mf.load(attempt)


def output(run: Store, step: str) -> Path:
    attempt, _ = sealed(run, step)
    path: Path = attempt.output("model")
    return path


def weights(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    found: dict[str, Any] = {}
    for path in sorted(folder.glob("*.safetensors")):
        found |= load_file(path)
    return found


def test_updates_had_a_signal_and_the_first_kl_is_zero(run: Store) -> None:
    """At least four GRPO updates of 16 completions whose groups differ; the reference is the step before."""
    for step in RL:
        attempt, manifest = sealed(run, step)
        rows = list(read_lines(attempt.work / "log.jsonl"))
        assert sum(row["frac_reward_zero_std"] < 1 for row in rows) >= (4 if step == "reasoning-grpo" else 1)
        assert manifest.config["trainer"]["per_device_train_batch_size"] == 16
        assert abs(rows[0]["kl"]) < 1e-6
        assert any(row["kl"] > 0 for row in rows)  # and it moves away


def test_the_adapter_is_trained_and_the_weights_change(run: Store) -> None:
    before = {"sft": "base", "reasoning-grpo": "sft", "rejection-sft": "base", "alignment-grpo": "rejection-sft"}
    for step in LORA:
        _, manifest = sealed(run, step)
        assert 0 < manifest.facts["trainable_parameters"] < manifest.facts["parameters"] / 10
        old, new = weights(output(run, before[step])), weights(output(run, step))
        assert set(old) == set(new)  # merged: a whole model, no adapter left in the names
        changed = [name for name in new if not old[name].equal(new[name])]
        assert changed and all("proj" in name for name in changed)


def test_the_merged_model_is_base_and_adapter(run: Store) -> None:
    import peft
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    attempt, _ = sealed(run, "sft")
    last = max((attempt.work / "checkpoints").glob("checkpoint-*"), key=lambda p: int(p.name.split("-")[1]))
    tokenizer = AutoTokenizer.from_pretrained(output(run, "base"))
    asked = [{"role": "user", "content": "What is 17 plus 25?"}]
    ids = tokenizer.apply_chat_template(asked, add_generation_prompt=True, return_tensors="pt", return_dict=True)

    def load(folder: Path) -> Any:
        return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    with torch.inference_mode():
        plain = load(output(run, "base"))(**ids).logits
        apart = peft.PeftModel.from_pretrained(load(output(run, "base")), last).eval()(**ids).logits
        merged = load(attempt.output("model"))(**ids).logits
    assert (apart - plain).abs().max() > 0.1  # it does something
    torch.testing.assert_close(merged, apart, atol=2e-3, rtol=1e-3)


def test_greedy_text_of_vllm_is_that_of_transformers(run: Store) -> None:
    from r1pipe.chat import ChatConfig
    from r1pipe.data.load import load
    from r1pipe.generate import make
    from r1pipe.settings import DataSpec, EngineConfig, SamplingConfig

    data = DataSpec(source="generated:arithmetic", split="heldout", rows=16, args={"levels": [1], "languages": ["en"]})
    asked = [row["messages"] for row in load(data, "prompts", seed=1)]
    texts = {}
    for kind, options in (("vllm", {"max_model_len": 512}), ("transformers", {})):
        sampler = make(EngineConfig(kind=kind, options=options), output(run, RL[-1]), ChatConfig())
        found = sampler.generate(asked, SamplingConfig(temperature=0, max_tokens=64), seed=1)
        texts[kind] = [group[0].text for group in found]
        sampler.close()
    assert texts["vllm"] == texts["transformers"]


def test_every_step_is_sealed_and_evaluated(run: Store) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "r1pipe", "verify", RUN, "--runs-dir", "models/runs"], cwd=ROOT, text=True,
        capture_output=True,
    )  # fmt: skip
    assert done.returncode == 0 and "intact: 7 manifests" in done.stdout, done.stdout + done.stderr
    for step in ("base", *LORA):
        _, manifest = sealed(run, step)
        assert manifest.evaluation["heldout"]["sample"]["problems"] == 32
        assert manifest.facts["evaluation/engine"]["engine"] == "vllm"
