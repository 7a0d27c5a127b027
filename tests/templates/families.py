"""Model families as people bring them: the shape of the chat template (fixtures/), and a small real tokenizer with the
family's special tokens and its way of tokenizing. Nothing is downloaded."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parent / "fixtures"
TEXT = [
    "[INST] What is 2 plus 3? [/INST]<think>\nFirst, 2 plus 3 makes 5.\n</think>\n<answer>5</answer>",
    "User:\nAssistant:\n<think>\nadding gives\n</think>\n\n<answer> system user assistant model",
    "先算23加15，得到38。 A conversation between User and Assistant.",
]


@dataclass(frozen=True)
class Family:
    """`special`: added tokens besides bos, eos, pad, unk; `plain`: those that are not special. `kind`: "bytes"
    (byte-level BPE) or "pieces" (a BPE like SentencePiece's, with byte fallback). `lead`: the tokenizer puts a space
    before a text (Llama 2). `adds_bos`: so does the tokenizer. What must come out: `end`, `pad_after`, `prefix`,
    `folded` (the system turn), `refused`."""

    name: str
    template: str
    kind: str
    eos: str
    end: str
    pad_after: str
    special: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()
    bos: str | None = None
    pad: str | None = None
    unk: str | None = None
    adds_bos: bool = False
    lead: bool = False
    strips: bool = False  # special tokens swallow the white space after them (Phi-3)
    prefix: str = ""
    folded: bool = False
    refused: str = ""
    stops: tuple[str, ...] = field(default=())  # in the generation config that the model comes with

    @property
    def text(self) -> str:
        return (FIXTURES / f"{self.template}.jinja").read_text(encoding="utf-8")


QWEN: dict[str, Any] = {"kind": "bytes", "end": "<|im_end|>", "pad": "<|endoftext|>", "pad_after": "<|endoftext|>",
        "special": ("<|endoftext|>", "<|im_start|>", "<|im_end|>")}  # fmt: skip
THINK = ("<think>", "</think>")
LLAMA: dict[str, Any] = {"kind": "bytes", "bos": "<|begin_of_text|>", "adds_bos": True, "end": "<|eot_id|>"}
HEADERS = ("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
SP: dict[str, Any] = {"kind": "pieces", "bos": "<s>", "unk": "<unk>", "lead": True}
DEEPSEEK: dict[str, Any] = {"kind": "bytes", "bos": "<｜begin▁of▁sentence｜>", "eos": "<｜end▁of▁sentence｜>",
            "pad": "<｜end▁of▁sentence｜>", "adds_bos": True, "end": "<｜end▁of▁sentence｜>",
            "plain": ("<｜User｜>", "<｜Assistant｜>", *THINK)}  # fmt: skip

FAMILIES = [
    Family("qwen2.5", "qwen2.5", eos="<|im_end|>", **QWEN),
    Family("qwen2.5-base", "qwen2.5", eos="<|endoftext|>", stops=("<|endoftext|>",), **QWEN),
    Family("qwen3", "qwen3", eos="<|im_end|>", plain=THINK, **QWEN),
    Family("qwen3-thinking", "qwen3-thinking", eos="<|im_end|>", plain=THINK, prefix="<think>\n", **QWEN),
    Family("qwen3-nothink", "qwen3-nothink", eos="<|im_end|>", plain=THINK, refused="closes the thinking", **QWEN),
    Family("llama3", "llama3", eos="<|end_of_text|>", pad_after="<|reserved_special_token_0|>",
           special=("<|reserved_special_token_0|>", *HEADERS), stops=("<|end_of_text|>", "<|eot_id|>"), **LLAMA),
    Family("llama3.2", "llama3.2", eos="<|eot_id|>", pad_after="<|finetune_right_pad_id|>",
           special=("<|end_of_text|>", "<|finetune_right_pad_id|>", *HEADERS), **LLAMA),
    Family("gemma", "gemma", kind="pieces", bos="<bos>", eos="<eos>", pad="<pad>", unk="<unk>", adds_bos=True,
           special=("<start_of_turn>", "<end_of_turn>"), end="<end_of_turn>", pad_after="<pad>", folded=True,
           stops=("<eos>",)),
    Family("mistral", "mistral", eos="</s>", end="</s>", pad_after="<unk>", adds_bos=True, folded=True,
           special=("[INST]", "[/INST]"), **SP),
    Family("mistral-v0.1", "mistral-v0.1", eos="</s>", pad="</s>", end="</s>", pad_after="<unk>", adds_bos=True,
           folded=True, **SP),
    Family("phi3", "phi3", eos="<|endoftext|>", pad="<|endoftext|>", end="<|end|>", pad_after="<|endoftext|>",
           special=("<|system|>", "<|user|>", "<|assistant|>", "<|end|>"), strips=True,
           stops=("<|endoftext|>", "<|assistant|>", "<|end|>"), **SP),
    Family("phi4", "phi4", kind="bytes", bos="<|endoftext|>", eos="<|endoftext|>", pad="<|endoftext|>",
           end="<|im_end|>", pad_after="<|endoftext|>", special=("<|im_start|>", "<|im_sep|>", "<|im_end|>")),
    Family("smollm2", "smollm2", kind="bytes", bos="<|im_start|>", eos="<|im_end|>", pad="<|im_end|>",
           unk="<|endoftext|>", special=("<|im_start|>", "<|im_end|>"), end="<|im_end|>", pad_after="<|endoftext|>"),
    Family("deepseek-r1-distill", "deepseek-r1-distill", pad_after="<|fim_pad|>", special=("<|fim_pad|>",),
           prefix="<think>\n", refused="removes the reasoning", **DEEPSEEK),
    Family("deepseek-r1-distill-kept", "deepseek-r1-distill-kept", pad_after="<|fim_pad|>", special=("<|fim_pad|>",),
           prefix="<think>\n", **DEEPSEEK),
]  # fmt: skip
BY_NAME = {family.name: family for family in FAMILIES}


def tokenizer(family: Family) -> Any:
    """The tokenizer as the family ships it, with its template."""
    from tokenizers import AddedToken
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    core = _bytes() if family.kind == "bytes" else _pieces(family.lead)
    named = {"bos_token": family.bos, "eos_token": family.eos, "pad_token": family.pad, "unk_token": family.unk}
    special = dict.fromkeys([t for t in named.values() if t] + list(family.special))
    core.add_special_tokens([AddedToken(t, special=True, normalized=False, rstrip=family.strips) for t in special])
    core.add_tokens([AddedToken(t, special=False, normalized=False) for t in family.plain])
    if family.adds_bos and family.bos:
        core.post_processor = TemplateProcessing(
            single=f"{family.bos} $A",
            pair=f"{family.bos} $A $B",
            special_tokens=[(family.bos, core.token_to_id(family.bos))],
        )
    out = PreTrainedTokenizerFast(tokenizer_object=core, **{k: v for k, v in named.items() if v})
    out.chat_template = family.text
    return out


def _bytes() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    core.train_from_iterator(TEXT, trainers.BpeTrainer(vocab_size=340, initial_alphabet=alphabet, show_progress=False))
    return core


def _pieces(lead: bool) -> Any:
    """Pieces of a text may cross words and lines. Here "]<" and newline + "<" are some, so that a prompt and a turn
    always meet inside one."""
    from tokenizers import Tokenizer, decoders, models, normalizers, trainers

    spaces = [normalizers.Prepend("▁")] if lead else []
    raw = Tokenizer(models.BPE())
    raw.normalizer = normalizers.Sequence([*spaces, normalizers.Replace(" ", "▁")])
    raw.train_from_iterator(TEXT * 2, trainers.BpeTrainer(vocab_size=220, show_progress=False, max_token_length=6))
    trained = json.loads(raw.to_str())["model"]
    across = [("]", "<"), ("\n", "<")]
    pieces = ["<unk>", *(f"<0x{n:02X}>" for n in range(256)), *trained["vocab"], *map("".join, across)]
    merges = across + [tuple(m) if isinstance(m, list) else tuple(m.split(" ")) for m in trained["merges"]]
    core = Tokenizer(
        models.BPE(
            vocab={piece: n for n, piece in enumerate(dict.fromkeys(pieces))}, merges=merges, byte_fallback=True,
            unk_token="<unk>", fuse_unk=True,
        )
    )  # fmt: skip
    core.normalizer = raw.normalizer
    strip = [decoders.Strip(" ", 1, 0)] if lead else []
    core.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), *strip])
    return core


def folder(path: Path, family: Family, config: Any = None) -> Path:
    """A checkpoint folder: the tokenizer, and a random model of a few thousand parameters."""
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig

    tok = tokenizer(family)
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
            "head_dim": 16, "intermediate_size": 48, "max_position_embeddings": 1024, "vocab_size": len(tok),
            "tie_word_embeddings": True, "bos_token_id": None, "eos_token_id": tok.eos_token_id,
            "pad_token_id": tok.pad_token_id}  # fmt: skip
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config((config or LlamaConfig)(**size))
    model.generation_config.eos_token_id = tok.convert_tokens_to_ids(list(family.stops or (family.eos,)))
    model.save_pretrained(path)
    tok.save_pretrained(path)
    return path
