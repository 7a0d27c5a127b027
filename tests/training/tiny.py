"""A random tiny model with the real tokenizer kind and chat template; no download, made in half a second."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from r1pipe.resources import data_dir
from r1pipe.stage import POLICY, Input, StageContext

TEXT = [
    "First, 23 plus 15 makes 38.",
    "先算23加15，得到38。",
    "<think>\nokay\n</think>\n<answer>38</answer>",
    "user assistant",
]


def make_policy(folder: Path, seed: int = 0, context: int = 256) -> Path:
    """Writes a policy folder: Qwen3 with 2 layers, byte-level BPE, ChatML template with generation markers."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bpe.train_from_iterator(
        TEXT,
        trainers.BpeTrainer(vocab_size=320, special_tokens=special, initial_alphabet=alphabet, show_progress=False),
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe, eos_token="<|im_end|>", pad_token="<|endoftext|>", model_max_length=context
    )
    tokenizer.add_tokens(["<think>", "</think>", "<answer>", "</answer>"])
    tokenizer.chat_template = (data_dir() / "tiny-base" / "chat_template.jinja").read_text()
    torch.manual_seed(seed)
    end, pad = tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|endoftext|>"])
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=32,
            intermediate_size=96,
            tie_word_embeddings=True,
            max_position_embeddings=context,
            eos_token_id=end,
            pad_token_id=pad,
        )
    )
    folder.mkdir(parents=True, exist_ok=True)
    model.generation_config.eos_token_id = end
    model.generation_config.pad_token_id = pad
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def context(tmp: Path, outputs: tuple[str, ...] = ("model",), resume: bool = False, **inputs: Any) -> StageContext:
    """A context as the worker builds it; `inputs` are folders (policies) or Input."""
    made = {
        name: value if isinstance(value, Input) else Input(POLICY, Path(value), "d" * 16, "earlier")
        for name, value in inputs.items()
    }
    out = {name: tmp / "out" / name for name in outputs}
    for folder in (tmp / "work", *out.values()):
        folder.mkdir(parents=True, exist_ok=True)
    return StageContext(step="step", seed=7, inputs=made, outputs=out, work=tmp / "work", resume=resume)


def prompts(n: int) -> list[dict[str, Any]]:
    """Prompt rows of kind number."""
    return [
        {
            "id": f"{i:016x}",
            "messages": [{"role": "user", "content": f"{i} + {i + 1}?"}],
            "gold": str(2 * i + 1),
            "kind": "number",
            "language": "en",
            "level": 1,
            "reference": None,
            "source": "test",
        }
        for i in range(n)
    ]


def traces(n: int) -> list[dict[str, Any]]:
    """SFT rows in the canonical form."""
    rows = []
    for row in prompts(n):
        text = f"<think>\nadding gives {row['gold']}\n</think>\n<answer>{row['gold']}</answer>"
        rows.append({**row, "messages": [*row["messages"], {"role": "assistant", "content": text}]})
    return rows


GRPO = {
    "per_device_train_batch_size": 8,
    "num_generations": 4,
    "max_completion_length": 24,
    "learning_rate": 1.0e-3,
    "beta": 0.04,
    "gradient_checkpointing": False,
    "lr_scheduler_type": "constant",
}
