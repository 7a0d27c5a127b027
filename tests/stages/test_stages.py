"""Every stage end to end on a random tiny model, with a context built by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from r1pipe.errors import UserError
from r1pipe.stage import DATASET, REWARD_MODEL, Input
from stages import alignment_grpo, base_model, reasoning_grpo, rejection_sampling, reward_models, sft
from tests.training import tiny

PROBLEMS = {"source": "generated:arithmetic", "rows": 24}
REQUESTS = {"source": "generated:general", "rows": 24}
HELDOUT = {"source": "generated:general", "rows": 12, "split": "heldout"}
POLICY_FILES = {
    "model.safetensors", "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
    "chat_template.jinja",
}  # fmt: skip
GRPO = {**tiny.GRPO, "max_completion_length": 16}
QUICK = {"max_steps": 2, "per_device_train_batch_size": 4, "gradient_checkpointing": False, "save_steps": 2}


def files(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir()}


def test_base_model_takes_the_shipped_one(tmp_path: Path) -> None:
    config = base_model.Config(stage="base-model", base_model={"path": "builtin:tiny-base"})
    ctx = tiny.context(tmp_path)
    assert base_model.check(ctx, config)["parameters"] < 2_000_000
    base_model.run(ctx, config)
    assert files(ctx.outputs["model"]) == POLICY_FILES
    stops = json.loads((ctx.outputs["model"] / "generation_config.json").read_text())["eos_token_id"]
    assert stops == 2 or 2 in stops  # <|im_end|>


def test_base_model_repairs_what_a_base_lacks(policy: Path, tmp_path: Path) -> None:
    """A base that ends documents, pads with that, and has no template (known-failures e7)."""
    import shutil

    from r1pipe.training.model import load_tokenizer

    raw = tmp_path / "raw"
    shutil.copytree(policy, raw)
    tokenizer = load_tokenizer(raw)
    tokenizer.chat_template, tokenizer.eos_token, tokenizer.pad_token = None, "<|endoftext|>", None
    (raw / "chat_template.jinja").unlink()
    tokenizer.save_pretrained(raw)
    (raw / "generation_config.json").write_text('{"eos_token_id": 0}')
    (raw / "pytorch_model.bin").write_bytes(b"a pickle")
    config = base_model.Config(stage="base-model", base_model={"path": str(raw)}, chat={"template": "builtin:r1"})
    ctx = tiny.context(tmp_path)
    base_model.run(ctx, config)
    out = ctx.outputs["model"]
    assert files(out) == POLICY_FILES
    made = load_tokenizer(out)
    assert made.eos_token == "<|im_end|>" and made.pad_token == "<|endoftext|>"
    assert json.loads((out / "generation_config.json").read_text())["eos_token_id"] == [made.eos_token_id, 0]
    with pytest.raises(UserError, match="no chat template"):
        base_model.run(
            tiny.context(tmp_path / "b"), config.model_copy(update={"chat": sft.Config.model_fields["chat"].default})
        )


@pytest.mark.parametrize(
    ("path", "said"), [("builtin:huge", "no shipped model"), ("/nowhere", "no folder"), ("a/b/c", "no folder")]
)
def test_base_model_that_is_not_there(path: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=said):
        base_model.run(tiny.context(tmp_path), base_model.Config(stage="base-model", base_model={"path": path}))


def test_base_model_refuses_pickles(policy: Path, tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.json").write_bytes((policy / "config.json").read_bytes())
    (tmp_path / "m" / "pytorch_model.bin").write_bytes(b"x")
    config = base_model.Config(stage="base-model", base_model={"path": str(tmp_path / "m")})
    with pytest.raises(UserError, match="pickles"):
        base_model.run(tiny.context(tmp_path), config)


def test_hub_model_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    config = base_model.Config(stage="base-model", base_model={"path": "nobody/no-such-model", "revision": "main"})
    with pytest.raises(UserError) as error:
        base_model.run(tiny.context(tmp_path), config)
    assert "base_model.path" in str(error.value)


def test_sft_mixes_data_and_samples(policy: Path, tmp_path: Path) -> None:
    from r1pipe.data.load import write_rows

    write_rows(tmp_path / "data.jsonl", tiny.traces(8))
    config = sft.Config(stage="sft", inputs={"samples": "x"}, data=[PROBLEMS], trainer={**QUICK, "max_length": 256})
    ctx = tiny.context(tmp_path, model=policy, samples=Input(DATASET, tmp_path, "d", "x"))
    assert sft.check(ctx, config)["sequences_a_step"] == 4
    metrics = sft.run(ctx, config)
    assert metrics["steps"] == 2 and ctx.facts["rows_from_samples"] == 8
    assert ctx.facts["rows"] + ctx.counts.get("rows/overlong_dropped", 0) == 32
    assert files(ctx.outputs["model"]) == POLICY_FILES


def test_reasoning_grpo(policy: Path, tmp_path: Path) -> None:
    config = reasoning_grpo.Config(stage="reasoning-grpo", data=[PROBLEMS], steps=2, trainer=GRPO)
    ctx = tiny.context(tmp_path, model=policy)
    facts = reasoning_grpo.check(ctx, config)
    assert facts["prompts_a_generation"] == 2 and facts["parameters"] == facts["trainable_parameters"]
    events: list[dict[str, Any]] = []
    ctx.emit = events.append
    metrics = reasoning_grpo.run(ctx, config)
    assert files(ctx.outputs["model"]) == POLICY_FILES
    assert ctx.facts["kl_first_step"] == pytest.approx(0, abs=1e-3)
    shown = [e for e in events if e["event"] == "progress"]
    assert [(e["step"], e["total"]) for e in shown] == [(1, 2), (2, 2)]
    assert {"reward", "accuracy", "format", "language", "length", "kl", "zero_signal"} <= set(shown[-1]["metrics"])
    assert 0 <= metrics["train/format"] <= 1 and metrics["tokens"] > 0


def test_prompts_that_do_not_fit_are_counted(policy: Path, tmp_path: Path) -> None:
    rows = tiny.prompts(6)
    rows[1]["messages"][0]["content"] = "1 + " * 300 + "1?"
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    data = [{"source": str(tmp_path / "p.jsonl"), "kind": "number"}]
    config = reasoning_grpo.Config(stage="reasoning-grpo", data=data, steps=1, trainer=GRPO)
    ctx = tiny.context(tmp_path, model=policy)
    reasoning_grpo.run(ctx, config)
    assert ctx.counts["prompts/too_long"] == 1 and "longer than 240 tokens" in ctx.warnings[0]
    config = reasoning_grpo.Config(
        stage="reasoning-grpo", data=data, steps=1, trainer={**GRPO, "max_completion_length": 255}
    )
    with pytest.raises(UserError, match="none of 6 prompts fits"):
        reasoning_grpo.run(tiny.context(tmp_path / "b", model=policy), config)


def reward_config(**more: Any) -> reward_models.Config:
    section = {"data": [REQUESTS], "heldout": [HELDOUT]}
    return reward_models.Config(
        stage="reward-models", helpful=section, harmless=section, trainer={**QUICK, "max_length": 256}, **more
    )


@pytest.fixture(scope="module")
def rewards(policy: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    ctx = tiny.context(tmp_path_factory.mktemp("rm"), outputs=("helpful", "harmless"), model=policy)
    config = reward_config()
    assert reward_models.check(ctx, config)["helpful/rows_a_step"] == 4
    return ctx, reward_models.run(ctx, config)


def test_reward_models(rewards: Any) -> None:
    ctx, metrics = rewards
    for name in ("helpful", "harmless"):
        out = ctx.outputs[name]
        assert files(out) == POLICY_FILES - {"generation_config.json"}
        assert "ForSequenceClassification" in json.loads((out / "config.json").read_text())["architectures"][0]
        assert 0 <= metrics[f"{name}/heldout_accuracy"] <= 1 and metrics[f"{name}/heldout_rows"] == 12
        assert ctx.meta[name]["heldout_accuracy"] == metrics[f"{name}/heldout_accuracy"]
    assert any("alignment will refuse it" in w for w in ctx.warnings)  # two steps learn nothing


def test_a_reward_scores_what_the_training_measured(rewards: Any, policy: Path) -> None:
    """The reward that GRPO asks and the held-out measurement are the same function of a response."""
    import math
    import statistics

    from r1pipe.chat import Tags
    from r1pipe.data.load import load
    from r1pipe.rewards import Composer
    from r1pipe.settings import DataSpec, RewardPart

    ctx, metrics = rewards
    rows = load(DataSpec(**HELDOUT), "pairs", seed=ctx.seed)
    part = RewardPart(kinds=["general", "safety"])
    composer = Composer({"helpful": part}, tags=Tags(), models={"helpful": ctx.outputs["helpful"]})
    texts = [Tags().wrap("some thought", r[side]) for r in rows for side in ("chosen", "rejected")]
    twice = [r for r in rows for _ in range(2)]
    got = [v["helpful"].score for v in composer.score(texts, twice)]
    logits = [math.log(p / (1 - p)) for p in got]
    assert statistics.fmean(logits) == pytest.approx(metrics["helpful/heldout_mean_score"], abs=1e-4)


def test_reward_models_with_lora(policy: Path, tmp_path: Path) -> None:
    ctx = tiny.context(tmp_path, outputs=("helpful", "harmless"), model=policy)
    config = reward_config(lora={"r": 4, "target_modules": "all-linear"})
    reward_models.run(ctx, config)
    from safetensors import safe_open

    with safe_open(ctx.outputs["helpful"] / "model.safetensors", "pt") as file:
        assert not any("lora" in key for key in file.keys())  # noqa: SIM118
        assert any(key.startswith("score") for key in file.keys())  # noqa: SIM118


def alignment(**more: Any) -> alignment_grpo.Config:
    base = {"stage": "alignment-grpo", "data": [PROBLEMS], "general": [REQUESTS], "steps": 4, "trainer": GRPO,
            "general_share_of_steps": 0.5}  # fmt: skip
    return alignment_grpo.Config(**{**base, **more})


def inputs(rewards: Any, accuracy: float) -> dict[str, Input]:
    ctx, _ = rewards
    return {n: Input(REWARD_MODEL, ctx.outputs[n], "d", "reward-models", {"heldout_accuracy": accuracy})
            for n in ("helpful", "harmless")}  # fmt: skip


def test_alignment_refuses_bad_reward_models(rewards: Any, policy: Path, tmp_path: Path) -> None:
    ctx = tiny.context(tmp_path, model=policy, **inputs(rewards, 0.86))
    with pytest.raises(UserError, match=r"helpful reward model of step reward-models is right on 86\.0%"):
        alignment_grpo.run(ctx, alignment())


def test_alignment(rewards: Any, policy: Path, tmp_path: Path) -> None:
    """Reasoning prompts alone at first, then the mix; each row is judged by the rewards of its kind."""
    from r1pipe.training.callbacks import read_history

    ctx = tiny.context(tmp_path, model=policy, **inputs(rewards, 0.97))
    assert alignment_grpo.check(ctx, alignment())["steps_with_general_prompts"] == 2
    alignment_grpo.run(ctx, alignment())
    assert files(ctx.outputs["model"]) == POLICY_FILES
    history = read_history(ctx.work / "log.jsonl")
    judged = ["reward/harmless" in row or "reward/helpful" in row for row in history]
    assert judged == [False, False, True, True]
    assert all("reward/accuracy" in row for row in history)
    assert ctx.facts["general_prompts_a_generation"] == 1


@pytest.mark.parametrize(
    ("module", "settings", "said"),
    [
        (sft, {"data": [PROBLEMS]}, "max_length must be set"),
        (sft, {"trainer": {"max_length": 8}}, "nothing to train on"),
        (sft, {"data": [PROBLEMS], "trainer": {"max_length": 8, "output_dir": "x"}}, "work folder"),
        (sft, {"data": [PROBLEMS], "trainer": {"max_length": 8, "save_total_limit": 1}}, "at least 2"),
        (sft, {"data": [PROBLEMS], "trainer": {"max_length": 8}, "quantization": {"load_in_4bit": True}}, "lora"),
        (reasoning_grpo, {"data": [PROBLEMS], "trainer": {"num_generations": 3}}, "does not divide"),
        (reasoning_grpo, {"data": [PROBLEMS], "rewards": {"helpful": {}}}, "is a reward model"),
        (reasoning_grpo, {"data": [PROBLEMS], "rewards": {"acuracy": {}}}, 'did you mean "accuracy"'),
        (reasoning_grpo, {"data": [PROBLEMS], "reference_refresh": 4}, "without trainer.beta"),
        (reasoning_grpo, {"data": [PROBLEMS], "trainer": {"bta": 0.1}}, 'did you mean "beta"'),
        (reasoning_grpo, {"data": [PROBLEMS], "lora": {"rank": 4}}, "LoraConfig has no"),
        (reasoning_grpo, {"data": [PROBLEMS], "steps": 4, "trainer": {"max_steps": 5}}, "set one of them"),
        (reasoning_grpo, {}, "no prompts"),
        (alignment_grpo, {"data": [PROBLEMS]}, "no general prompts"),
        (rejection_sampling, {"data": [PROBLEMS], "num_processes": 2}, "one process"),
    ],
)
def test_faults_show_at_load(module: Any, settings: dict, said: str) -> None:
    with pytest.raises(ValidationError) as error:
        module.Config(stage=module.NAME, **settings)
    assert said in str(error.value)


def test_a_gpu_profile_is_checked_on_this_machine(policy: Path, tmp_path: Path) -> None:
    """Eight processes and bf16, on a machine with neither: the arithmetic is that of the launch."""
    trainer = {"bf16": True, "per_device_train_batch_size": 2, "num_generations": 16, "use_vllm": True}
    config = reasoning_grpo.Config(
        stage="reasoning-grpo", data=[PROBLEMS], steps=2, trainer=trainer, num_processes=8,
        lora={"r": 8, "target_modules": "all-linear"},
    )  # fmt: skip
    facts = reasoning_grpo.check(tiny.context(tmp_path, model=policy), config)
    assert facts["completions_a_generation"] == 16 and facts["rollouts"] == "vllm (colocate)"
    assert facts["trainable_parameters"] < facts["parameters"]
