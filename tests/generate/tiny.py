"""A random tiny Qwen3 with a byte-level BPE tokenizer, for tests of samplers: nothing is downloaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TAGS = ["<think>", "</think>", "<answer>", "</answer>"]


def tokenizer(template: str = TEMPLATE, vocabulary: int = 400) -> Any:
    """Byte-level BPE; the tags are ordinary added tokens."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary - len(SPECIAL) - len(TAGS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(["What is 2 plus 3? 2 plus 3 makes 5.", "二加三等于五。"] * 4, trainer)
    core.add_special_tokens(SPECIAL)
    core.add_tokens([AddedToken(t, normalized=False, special=False) for t in TAGS])
    out = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<|endoftext|>", eos_token="<|im_end|>", padding_side="left"
    )
    out.chat_template = template
    return out


def model(tok: Any, *, context: int = 128, hidden: int = 32, layers: int = 2, seed: int = 0) -> Any:
    """Random weights; `context` is its longest sequence."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=len(tok),
        hidden_size=hidden,
        intermediate_size=hidden * 3,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=context,
        tie_word_embeddings=True,
        pad_token_id=tok.pad_token_id,
        eos_token_id=tok.eos_token_id,
        initializer_range=0.3,
    )
    out = Qwen3ForCausalLM(config).eval()
    out.generation_config.eos_token_id = tok.eos_token_id
    out.generation_config.pad_token_id = tok.pad_token_id
    return out


def folder(path: Path, template: str = TEMPLATE, **options: Any) -> Path:
    """A checkpoint folder."""
    tok = tokenizer(template)
    model(tok, **options).save_pretrained(path)
    tok.save_pretrained(path)
    return path
