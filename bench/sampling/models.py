"""The two models of the benchmark: the embedded one, and random weights in the shape of SmolLM2-135M."""

from __future__ import annotations

import random
from pathlib import Path

from r1pipe.resources import data_dir

VOCABULARY = 49_152


def tiny(folder: Path) -> Path:
    """The embedded model: 0.9M parameters that answer sums, so that verifying its samples is real work."""
    return data_dir() / "tiny-base"


def llama135(folder: Path) -> Path:
    """30 layers, 576 wide, 9 heads (3 for keys), 49,152 tokens: 135M parameters in float32, and a byte-level BPE of
    that size. Its samples are noise that never ends, so each has `max_tokens` tokens and none is right."""
    out = folder / "llama-135m"
    if (out / "model.safetensors").is_file():
        return out
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = _tokenizer()
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
        num_key_value_heads=3, head_dim=64, max_position_embeddings=2048, rope_theta=100_000.0,
        tie_word_embeddings=True, bos_token_id=None, eos_token_id=end, pad_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    model = LlamaForCausalLM(config)
    model.generation_config.eos_token_id = end
    model.generation_config.pad_token_id = 0
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    return out


def _tokenizer():  # type: ignore[no-untyped-def]
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    bpe.train_from_iterator(
        _words(),
        trainers.BpeTrainer(
            vocab_size=VOCABULARY - 4,
            special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    made = PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    made.add_tokens(["<think>", "</think>", "<answer>", "</answer>"])
    made.chat_template = (data_dir() / "tiny-base" / "chat_template.jinja").read_text()
    return made


def _words():  # type: ignore[no-untyped-def]
    """Invented words, as many as the vocabulary needs."""
    rng = random.Random(0)
    syllables = [a + b for a in "bcdfghjklmnprstvwz" for b in ("a", "e", "i", "o", "u", "an", "er", "il")]
    for _ in range(6000):
        yield " ".join("".join(rng.choices(syllables, k=rng.randint(2, 4))) for _ in range(12))


MODELS = {"tiny": tiny, "135m": llama135}
