"""Parameters by arithmetic against the real classes, built without weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from r1pipe.errors import UserError
from r1pipe.estimate import memory, models, shape
from r1pipe.resources import configs_dir, data_dir

CONFIGS = {
    "tiny": data_dir() / "tiny-base" / "config.json",
    **{p.parent.name: p for p in (configs_dir() / "models").glob("*/config.json")},
}
MORE: dict[str, dict[str, Any]] = {
    "smollm2": {"model_type": "llama", "hidden_size": 576, "num_hidden_layers": 3, "num_attention_heads": 9,
                "num_key_value_heads": 3, "intermediate_size": 1536, "vocab_size": 49152, "tie_word_embeddings": True},
    "llama with biases": {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
                          "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 300, "attention_bias": True,
                          "mlp_bias": True, "tie_word_embeddings": False},
    "mistral": {"model_type": "mistral", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
                "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 300, "head_dim": 32,
                "tie_word_embeddings": False},
    "qwen3 moe": {"model_type": "qwen3_moe", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
                  "num_key_value_heads": 2, "intermediate_size": 96, "moe_intermediate_size": 48, "num_experts": 4,
                  "num_experts_per_tok": 2, "vocab_size": 300, "head_dim": 32, "tie_word_embeddings": False},
}  # fmt: skip


def real(config: dict[str, Any]) -> Any:
    import torch
    import transformers

    values = {k: v for k, v in config.items() if k not in ("model_type", "torch_dtype", "auto_map", "architectures")}
    values.pop("quantization_config", None)
    made = transformers.CONFIG_MAPPING[config["model_type"]](**values)
    with torch.device("meta"):
        return transformers.AutoModelForCausalLM.from_config(made)


@pytest.mark.parametrize("name", [*sorted(CONFIGS), *MORE])
def test_parameters_are_those_of_the_real_class(name: str) -> None:
    config = json.loads(CONFIGS[name].read_text(encoding="utf-8")) if name in CONFIGS else MORE[name]
    found = shape.of(config)
    model = real(config)
    assert found.parameters == sum(p.numel() for p in model.parameters())
    assert not found.notes


def test_the_paper_s_model_has_671b_of_which_37b_work_on_a_token() -> None:
    config = json.loads(CONFIGS["deepseek-ai--DeepSeek-V3-Base"].read_text(encoding="utf-8"))
    found = shape.of(config)
    assert found.parameters / 1e9 == pytest.approx(671, abs=0.5)
    assert found.active / 1e9 == pytest.approx(37, abs=1)


@pytest.mark.parametrize(
    "lora",
    [
        {"r": 8, "target_modules": "all-linear"},
        {"r": 4},
        {"r": 16, "target_modules": ["q_proj", "down_proj"]},
        {"r": 8, "target_modules": ["v_proj"], "modules_to_save": ["lm_head"]},
    ],
)
def test_adapter_parameters_are_peft_s(lora: dict[str, Any]) -> None:
    import peft

    config = {**MORE["smollm2"], "tie_word_embeddings": False}
    model = peft.get_peft_model(real(config), peft.LoraConfig(task_type="CAUSAL_LM", **lora))
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    found = memory.lora_of(lora, shape.of(config))
    assert found is not None
    assert found.parameters(shape.of(config)) == trained


def test_a_family_that_is_not_known_says_so() -> None:
    assert "not known exactly" in shape.of({**MORE["smollm2"], "model_type": "granite"}).notes[0]


@pytest.mark.parametrize("size", ["20M", "135M", "0.5B", "1.5B", "7B", "32B", "70B"])
def test_a_typical_shape_has_about_the_size_asked_for(size: str) -> None:
    wanted = models.parse_size(size)
    found = shape.typical(wanted)
    assert found.parameters == pytest.approx(wanted, rel=0.1)
    assert "guessed" in found.notes[0]


@pytest.mark.parametrize("text", ["", "seven", "7X", "-3B", "1e9"])
def test_a_size_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="no number of parameters"):
        models.parse_size(text)


def test_a_config_that_is_no_decoder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no decoder"):
        shape.of({"model_type": "resnet", "depths": [1, 2]})
