"""GGUF, for llama.cpp and what builds on it: Llama, Mistral, Qwen2 and Qwen3 with byte-level BPE tokenizers.

Tensor names come from `gguf.tensor_mapping`; weights are streamed, one at a time. llama.cpp cuts text with a fixed
list of rules before BPE; a tokenizer whose rule is not among them is given the nearest, measured on texts, and the
card and the terminal say so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from r1pipe.errors import UserError
from r1pipe.export.source import Source, read_json

ARCHITECTURES = {"llama": "LLAMA", "mistral": "LLAMA", "qwen2": "QWEN2", "qwen3": "QWEN3"}
DTYPES = ("auto", "f32", "f16", "bf16")
_QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# llama.cpp's name of a rule -> its regular expression; None: GPT-2's, which ByteLevel has built in
RULES: dict[str, str | None] = {
    "qwen2": _QWEN2,
    "llama-bpe": _QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|"),
    "gpt-2": None,
}
TEXTS = (
    "Hello, world! It's 2024 and we've got 1,234.5 items.", "What is 23 plus 15? First, 23 plus 15 makes 38.",
    "先算23加15，得到38。", "x = (a + b) / 2\n\nfor i in range(10):\n    print(i)", "Ünïcode, émojis 🙂 and   spaces.",
)  # fmt: skip
QWEN3_HEAD = 128
NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5


@dataclass
class Made:
    """A written file, and what a reader must know about it."""

    name: str
    tensors: int
    dtype: str
    rule: str
    notes: list[str]


def library() -> Any:
    """The `gguf` package. Raises UserError where it is not installed."""
    try:
        import gguf
    except ImportError:
        raise UserError("the package gguf is not installed", hint="pip install 'r1pipe[gguf]'") from None
    return gguf


def write(source: Source, target: Path, dtype: str = "auto") -> Made:
    """Writes `<name>.gguf` into the folder `target`. Raises UserError for a family or tokenizer that cannot be."""
    gguf = library()
    config = source.config
    family = str(config.get("model_type"))
    if family not in ARCHITECTURES:
        raise UserError(
            f"GGUF of the family {family} is not supported here: {', '.join(ARCHITECTURES)} are",
            hint="--to hf, and llama.cpp's own convert_hf_to_gguf.py on that folder",
        )
    scaling = (config.get("rope_parameters") or config.get("rope_scaling") or {}).get("rope_type", "default")
    if scaling not in ("default", None):
        raise UserError(
            f"{source.name} scales its positions ({scaling}), which this export does not write",
            hint="llama.cpp's own convert_hf_to_gguf.py knows it",
        )
    tokenizer = read_json(source.folder / "tokenizer.json")
    if tokenizer.get("model", {}).get("type") != "BPE" or not _byte_level(tokenizer):
        raise UserError(
            f"{source.folder / 'tokenizer.json'} is a {tokenizer.get('model', {}).get('type')} tokenizer; GGUF here "
            "takes byte-level BPE only",
            hint="--to hf keeps every tokenizer",
        )
    architecture = getattr(gguf.MODEL_ARCH, ARCHITECTURES[family])
    rule, notes = pre_tokenizer(tokenizer, texts(source))
    if family == "qwen3" and config.get("head_dim") not in (None, QWEN3_HEAD):
        notes.append(
            f"transformers takes every Qwen3 GGUF for one with heads of {QWEN3_HEAD}, and these have "
            f"{config['head_dim']}: give from_pretrained the model's own config= as well (llama.cpp reads the size)"
        )
    name = f"{source.name}.gguf"
    writer = gguf.GGUFWriter(target / name, gguf.MODEL_ARCH_NAMES[architecture])
    try:
        _describe(writer, gguf, source, config)
        _vocabulary(writer, source, config, tokenizer, rule)
        written, said = _tensors(writer, gguf, source.folder, config, architecture, dtype)
    finally:
        writer.close()
    return Made(name, written, said, rule, notes)


def _describe(writer: Any, gguf: Any, source: Source, config: dict[str, Any]) -> None:
    heads = config["num_attention_heads"]
    size = config.get("head_dim") or config["hidden_size"] // heads
    rope = config.get("rope_parameters") or {}
    writer.add_name(source.name)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config.get("num_key_value_heads") or heads)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(float(rope.get("rope_theta") or config.get("rope_theta") or 10000.0))
    writer.add_rope_dimension_count(size)
    writer.add_key_length(size)
    writer.add_value_length(size)
    writer.add_vocab_size(config["vocab_size"])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)


def _vocabulary(writer: Any, source: Source, config: dict[str, Any], tokenizer: dict[str, Any], rule: str) -> None:
    size = config["vocab_size"]
    tokens = [f"[PAD{i}]" for i in range(size)]
    kinds = [UNUSED] * size
    for token, place in tokenizer["model"]["vocab"].items():
        tokens[place], kinds[place] = token, NORMAL
    for added in tokenizer.get("added_tokens") or []:
        tokens[added["id"]] = added["content"]
        kinds[added["id"]] = CONTROL if added.get("special") else USER_DEFINED
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(rule)
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in tokenizer["model"]["merges"]])
    settings = read_json(source.folder / "tokenizer_config.json")
    by_name = {token: place for place, token in enumerate(tokens)}
    for key, add in (
        ("bos_token", writer.add_bos_token_id), ("eos_token", writer.add_eos_token_id),
        ("pad_token", writer.add_pad_token_id), ("unk_token", writer.add_unk_token_id),
    ):  # fmt: skip
        value = settings.get(key)
        content = value.get("content") if isinstance(value, dict) else value
        if content in by_name:
            add(by_name[content])
    writer.add_add_bos_token(bool(settings.get("add_bos_token")))
    template = source.folder / "chat_template.jinja"
    if template.is_file():
        writer.add_chat_template(template.read_text(encoding="utf-8"))
    elif isinstance(settings.get("chat_template"), str):
        writer.add_chat_template(settings["chat_template"])


def _tensors(
    writer: Any, gguf: Any, folder: Path, config: dict[str, Any], architecture: Any, dtype: str
) -> tuple[int, str]:
    """All weights; names first, then one tensor at a time. Returns (how many, in which type most are)."""
    kinds = {
        "f32": gguf.GGMLQuantizationType.F32, "f16": gguf.GGMLQuantizationType.F16,
        "bf16": gguf.GGMLQuantizationType.BF16,
    }  # fmt: skip
    names = gguf.get_tensor_name_map(architecture, config["num_hidden_layers"])
    stored = {"F32": "f32", "F16": "f16", "BF16": "bf16"}
    plan: list[tuple[Path, str, str]] = []
    used: dict[str, int] = {}
    tied = bool(config.get("tie_word_embeddings"))
    for path, key, kind, shape in _entries(folder):
        if tied and key == "lm_head.weight":
            continue
        name = names.get_name(key, try_suffixes=(".weight", ".bias"))
        if name is None:
            raise UserError(f"GGUF has no name for the tensor {key} of {path.name}", hint="--to hf keeps it")
        if kind not in stored:
            raise UserError(f"the tensor {key} of {path.name} is stored as {kind}", hint="export it in 16 or 32 bits")
        wanted = (
            "f32" if len(shape) == 1 else stored[kind] if dtype == "auto" else dtype
        )  # norms and biases: as llama.cpp
        width = 4 if wanted == "f32" else 2
        count = int(np.prod(shape))
        used[wanted] = used.get(wanted, 0) + count
        raw = kinds[wanted]
        shown = (*shape[:-1], shape[-1] * 2) if wanted == "bf16" else shape  # bytes, as gguf takes them
        holds = {"f32": np.float32, "f16": np.float16, "bf16": np.uint8}[wanted]
        writer.add_tensor_info(name, shown, np.dtype(holds), count * width, raw_dtype=raw)
        plan.append((path, key, wanted))
    most = max(used, key=lambda k: used[k])
    writer.add_file_type({"f32": 0, "f16": 1, "bf16": 32}[most])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for path, key, wanted in plan:
        writer.write_tensor_data(_values(path, key, wanted, config))
    return len(plan), most


def _entries(folder: Path) -> Iterator[tuple[Path, str, str, tuple[int, ...]]]:
    """(file, name, dtype, shape) of every tensor, from the headers."""
    import safetensors

    for path in sorted(folder.glob("*.safetensors")):
        with safetensors.safe_open(path, framework="pt") as handle:  # type: ignore[no-untyped-call]
            for key in handle.keys():  # noqa: SIM118  it is no dict
                part = handle.get_slice(key)
                yield path, key, part.get_dtype(), tuple(part.get_shape())


def _values(path: Path, key: str, wanted: str, config: dict[str, Any]) -> np.ndarray[Any, Any]:
    """One tensor as gguf takes it. Llama's queries and keys are turned to the layout of ggml's rotary embedding."""
    import safetensors
    import torch

    with safetensors.safe_open(path, framework="pt") as handle:  # type: ignore[no-untyped-call]
        tensor = handle.get_tensor(key)
    if ARCHITECTURES[config["model_type"]] == "LLAMA" and ".self_attn." in key:
        heads = config["num_attention_heads"]
        if ".q_proj." in key:
            tensor = rotary(tensor, heads)
        elif ".k_proj." in key:
            tensor = rotary(tensor, config.get("num_key_value_heads") or heads)
    if wanted == "bf16":
        tensor = tensor.to(torch.bfloat16).contiguous()
        found: np.ndarray[Any, Any] = tensor.view(torch.uint8).numpy()
        return found
    out: np.ndarray[Any, Any] = tensor.to(torch.float32 if wanted == "f32" else torch.float16).contiguous().numpy()
    return out


def rotary(tensor: Any, heads: int) -> Any:
    """Rows of a head from halves (transformers) to pairs (ggml)."""
    rows = tensor.shape[0]
    return (
        tensor.reshape(heads, 2, rows // heads // 2, *tensor.shape[1:])
        .swapaxes(1, 2)
        .reshape(tensor.shape)
        .contiguous()
    )


# ---- the rule that cuts text before BPE


def _parts(tokenizer: dict[str, Any]) -> list[dict[str, Any]]:
    pre = tokenizer.get("pre_tokenizer") or {}
    if pre.get("type") == "Sequence":
        return list(pre.get("pretokenizers") or [])
    return [pre] if pre else []


def _byte_level(tokenizer: dict[str, Any]) -> bool:
    return any(part.get("type") == "ByteLevel" for part in _parts(tokenizer))


def pre_tokenizer(tokenizer: dict[str, Any], samples: Iterable[str]) -> tuple[str, list[str]]:
    """(llama.cpp's name of the rule, what to say). Exact where the regular expression is one of llama.cpp's, else the
    one that gives most texts the same ids."""
    splits = [p.get("pattern", {}).get("Regex") for p in _parts(tokenizer) if p.get("type") == "Split"]
    byte = next(p for p in _parts(tokenizer) if p.get("type") == "ByteLevel")
    for name, pattern in RULES.items():
        if (pattern is None and not splits and byte.get("use_regex", True)) or (pattern and splits == [pattern]):
            return name, []
    from tokenizers import Tokenizer

    own = Tokenizer.from_str(json.dumps(tokenizer))
    given = list(samples)
    wanted = [own.encode(text, add_special_tokens=False).ids for text in given]
    same: dict[str, int] = {}
    for name, pattern in RULES.items():
        other = Tokenizer.from_str(json.dumps(_with(tokenizer, pattern)))
        same[name] = sum(
            other.encode(text, add_special_tokens=False).ids == ids for text, ids in zip(given, wanted, strict=True)
        )
    best = max(same, key=lambda name: same[name])
    note = (
        f"llama.cpp has no rule that cuts text as this tokenizer does; {best} is the nearest: {same[best]} of "
        f"{len(given)} texts get the same tokens. Give it token ids, or expect worse answers than the model's own"
    )
    return best, [] if same[best] == len(given) else [note]


def _with(tokenizer: dict[str, Any], pattern: str | None) -> dict[str, Any]:
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": pattern is None}
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return {
        **tokenizer,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, level] if pattern else [level]},
    }


def texts(source: Source) -> list[str]:
    """Texts to try a rule on: ours, and what the step's evaluation asked and got."""
    found = list(TEXTS)
    if source.manifest is not None and "evaluation" in source.manifest.outputs:
        from r1pipe.manifest import DATA_FILE
        from r1pipe.store import read_lines

        for row in read_lines(source.folder.parent / "evaluation" / DATA_FILE):
            found += [row[key] for key in ("prompt", "text") if isinstance(row.get(key), str)]
            if len(found) >= 200:
                break
    return found
