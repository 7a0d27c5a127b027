"""The shape of a decoder from its config.json: how many parameters, of which kind, and what a token of it costs.

Exact for Llama, Mistral, Qwen2, Qwen3 (dense and mixture of experts) and DeepSeek-V3, which tests hold against the
real classes; other families are counted as a Llama, and the plan says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from r1pipe.errors import UserError

EXACT = {"llama", "mistral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "deepseek_v3", "deepseek_v2"}
TIED_BY_DEFAULT = {"gemma", "gemma2", "gemma3_text", "phi4flash", "cohere"}


@dataclass(frozen=True)
class Linear:
    """A kind of linear layer: `count` of them in the model."""

    name: str
    inputs: int
    outputs: int
    count: int
    active: int  # of them, used by one token
    bias: bool = False

    @property
    def weights(self) -> int:
        return self.inputs * self.outputs + (self.outputs if self.bias else 0)


@dataclass(frozen=True)
class Shape:
    """What the arithmetic needs to know of a model."""

    family: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int  # a head's; differs from head_dim in DeepSeek only
    mlp_width: int  # of one token, in an average layer: the sum over the experts that it sees
    vocab: int
    tied: bool
    context: int | None
    linears: tuple[Linear, ...]
    norms: int  # parameters of all norms, and other small ones
    qk_norm: bool
    cache_width: int  # numbers that a layer's cache holds a token
    notes: tuple[str, ...] = ()

    @cached_property
    def embedding(self) -> int:
        return self.vocab * self.hidden

    @cached_property
    def body(self) -> int:
        """Parameters of the layers."""
        return sum(linear.weights * linear.count for linear in self.linears) + self.norms

    @cached_property
    def parameters(self) -> int:
        return self.body + self.embedding * (1 if self.tied else 2)

    @cached_property
    def classifier(self) -> int:
        """Parameters of the same body with one number for a head (a reward model)."""
        return self.body + self.embedding + self.hidden

    @cached_property
    def linear_weights(self) -> int:
        """Parameters that a 4-bit or 8-bit load quantizes: every linear layer but the head."""
        return sum(linear.inputs * linear.outputs * linear.count for linear in self.linears)

    @cached_property
    def active(self) -> int:
        """Parameters that one token is multiplied with, the head included (the embedding is a look-up)."""
        return sum(linear.weights * linear.active for linear in self.linears) + self.embedding

    @property
    def queries(self) -> int:
        return self.heads * self.head_dim

    @property
    def values(self) -> int:
        return self.heads * self.value_dim


def of(config: Mapping[str, Any]) -> Shape:
    """The shape of a config.json. Raises UserError where it is no decoder's."""
    text = config.get("text_config")
    if isinstance(text, Mapping):
        config = {**text, "tie_word_embeddings": config.get("tie_word_embeddings", text.get("tie_word_embeddings"))}
    try:
        return _of(config)
    except (KeyError, TypeError) as error:
        raise UserError(
            f"this config.json is no decoder's that the plan can count: {type(error).__name__} {error}",
            hint="r1pipe plan --params 7B plans with a typical shape of that size",
        ) from None


def _of(config: Mapping[str, Any]) -> Shape:
    family = str(config.get("model_type", "llama"))
    hidden, layers, heads = config["hidden_size"], config["num_hidden_layers"], config["num_attention_heads"]
    kv_heads = config.get("num_key_value_heads") or heads
    head_dim = config.get("head_dim") or hidden // heads
    tied = config.get("tie_word_embeddings")
    if tied is None:
        tied = family in TIED_BY_DEFAULT
    qk_norm = family.startswith("qwen3")
    norms = layers * 2 * hidden + hidden
    value_dim, cache = head_dim, 2 * kv_heads * head_dim
    if config.get("kv_lora_rank"):
        attention, value_dim, cache, extra = _latent(config, hidden, heads, layers)
        head_dim = config["qk_nope_head_dim"] + config["qk_rope_head_dim"]
        kv_heads, norms = heads, norms + extra
    else:
        everywhere = bool(config.get("attention_bias"))
        bias = everywhere or family.startswith("qwen2")
        attention = [
            Linear("q_proj", hidden, heads * head_dim, layers, layers, bias),
            Linear("k_proj", hidden, kv_heads * head_dim, layers, layers, bias),
            Linear("v_proj", hidden, kv_heads * head_dim, layers, layers, bias),
            Linear("o_proj", heads * head_dim, hidden, layers, layers, everywhere and not family.startswith("qwen2")),
        ]
        norms += layers * 2 * head_dim if qk_norm else 0
    mlp, extra = _mlp(config, hidden, layers)
    width = sum(linear.active * linear.outputs for linear in mlp if linear.name.endswith("up_proj")) // layers
    notes = () if family in EXACT else (f"family {family} is not known exactly: counted as a Llama",)
    return Shape(
        family, layers, hidden, heads, kv_heads, head_dim, value_dim, width, config["vocab_size"], bool(tied),
        config.get("max_position_embeddings"), (*attention, *mlp), norms + extra, qk_norm, cache, notes,
    )  # fmt: skip


def _latent(config: Mapping[str, Any], hidden: int, heads: int, layers: int) -> tuple[list[Linear], int, int, int]:
    """DeepSeek's multi-head latent attention: (linear layers, a head's value size, cache width, norm parameters)."""
    rank, rope, nope = config["kv_lora_rank"], config["qk_rope_head_dim"], config["qk_nope_head_dim"]
    value, q_rank = config["v_head_dim"], config.get("q_lora_rank")
    if q_rank:
        queries = [
            Linear("q_a_proj", hidden, q_rank, layers, layers),
            Linear("q_b_proj", q_rank, heads * (nope + rope), layers, layers),
        ]
    else:
        queries = [Linear("q_proj", hidden, heads * (nope + rope), layers, layers)]
    linears = [
        *queries,
        Linear("kv_a_proj_with_mqa", hidden, rank + rope, layers, layers),
        Linear("kv_b_proj", rank, heads * (nope + value), layers, layers),
        Linear("o_proj", heads * value, hidden, layers, layers),
    ]
    # transformers caches the expanded keys and values, vLLM the latent; the larger one is counted
    return linears, value, heads * (nope + rope + value), layers * (rank + (q_rank or 0))


def _mlp(config: Mapping[str, Any], hidden: int, layers: int) -> tuple[list[Linear], int]:
    """The feed-forward layers, and the parameters of routers that are no linear layers."""
    experts = config.get("n_routed_experts") or config.get("num_experts") or config.get("num_local_experts")
    bias = bool(config.get("mlp_bias"))

    def gated(prefix: str, width: int, count: int, active: int) -> list[Linear]:
        return [
            Linear(f"{prefix}gate_proj", hidden, width, count, active, bias),
            Linear(f"{prefix}up_proj", hidden, width, count, active, bias),
            Linear(f"{prefix}down_proj", width, hidden, count, active, bias),
        ]

    if not experts:
        return gated("", config["intermediate_size"], layers, layers), 0
    dense = config.get("first_k_dense_replace") or len(config.get("mlp_only_layers") or ())
    sparse = layers - dense
    width = config.get("moe_intermediate_size") or config["intermediate_size"]
    used = config.get("num_experts_per_tok") or config.get("num_experts_per_token") or 1
    made = gated("", config["intermediate_size"], dense, dense) if dense else []
    made += gated("experts.", width, sparse * experts, sparse * used)
    shared = config.get("n_shared_experts") or 0
    if shared:
        made += gated("shared_experts.", width * shared, sparse, sparse)
    other = 0
    if config.get("shared_expert_intermediate_size"):  # Qwen2-MoE: one shared expert, and a gate for it
        made += gated("shared_expert.", config["shared_expert_intermediate_size"], sparse, sparse)
        other = sparse * hidden
    return made, other + sparse * experts * hidden


def typical(parameters: float) -> Shape:
    """A dense decoder of about this size, where there is no config.json: Llama-like proportions.

    Layers and width grow together (width is 64 to 128 times the layers); grouped queries, a vocabulary of 128k (32k
    below 0.3B), untied from 3B on.
    """
    if parameters < 1e5:
        raise UserError(f"--params {parameters:.0f} is no model's size", hint="--params 7B, 1.5B, 135M")
    vocab = 128_000 if parameters > 3e8 else 32_000 if parameters > 2e7 else 1_000
    best: tuple[float, dict[str, Any]] | None = None
    for layers in range(2, 130):
        for heads in range(1, 257):
            size = 64 if heads < 24 else 128
            hidden = heads * size
            if not 20 <= hidden / layers <= 200:
                continue
            config = {
                "model_type": "llama", "hidden_size": hidden, "num_hidden_layers": layers, "vocab_size": vocab,
                "num_attention_heads": heads, "num_key_value_heads": max(1, heads // 4), "head_dim": size,
                "intermediate_size": 256 * round(hidden * 3.5 / 256) or 256, "tie_word_embeddings": parameters < 3e9,
            }  # fmt: skip
            found = _quick(config)
            wide = abs(hidden / layers - 110) / 110 * 0.05  # among near ones, the usual proportions
            off = abs(found - parameters) / parameters + wide
            if best is None or off < best[0]:
                best = (off, config)
    assert best is not None
    shape = of(best[1])
    note = (
        f"shape guessed from --params: {shape.layers} layers, width {shape.hidden}, vocabulary {vocab:,}, "
        f"{shape.parameters / 1e9:.2f}B"
    )
    return Shape(**{**{f: getattr(shape, f) for f in shape.__dataclass_fields__}, "notes": (note,)})


def _quick(config: Mapping[str, Any]) -> int:
    """`of(config).parameters` of a Llama, without the objects."""
    hidden, size = config["hidden_size"], config["head_dim"]
    attention = 2 * hidden * size * (config["num_attention_heads"] + config["num_key_value_heads"])
    layer = attention + 3 * hidden * config["intermediate_size"] + 2 * hidden
    return config["num_hidden_layers"] * layer + config["vocab_size"] * hidden * (
        1 if config["tie_word_embeddings"] else 2
    )
