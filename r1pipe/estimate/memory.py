"""Memory of one process while it trains or generates, part by part. Arithmetic; no torch.

What a layer keeps for its backward pass is counted tensor by tensor as transformers' Llama-like layers keep it (tests
and `bench/plan` hold the sums against tensors that were really allocated). The loss of TRL 1.16 never makes whole
logits: its head works in tiles of 4,096 tokens x 32,768 words, and sums gradients in float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from r1pipe.estimate.shape import Linear, Shape

TILE_TOKENS, TILE_WORDS = 4096, 32768  # trl.kernels.chunked_logprob
TORCH_TILES = 8.25  # float32 tiles alive at once in its backward pass without Triton (`_backward_tile`), as on a CPU
# optimizer -> bytes a trained parameter, in units of the parameter's own size or fixed
_STATES: dict[str, tuple[float, float]] = {  # (times the parameter's bytes, plus bytes)
    "adamw_torch": (2, 0), "adamw_torch_fused": (2, 0), "adamw_8bit": (0, 2), "adamw_bnb_8bit": (0, 2),
    "paged_adamw_8bit": (0, 2), "paged_adamw_32bit": (0, 8), "paged_adamw": (0, 8), "adafactor": (0, 0.02),
    "lion_8bit": (0, 1), "paged_lion_8bit": (0, 1), "lion_32bit": (0, 4), "sgd": (0, 0), "adagrad": (1, 0),
    "rmsprop": (1, 0), "adamw_apex_fused": (2, 0), "adamw_anyprecision": (1, 2), "adamw_torch_8bit": (0, 2),
    "adamw_torch_4bit": (0, 1),
}  # fmt: skip


def optimizer_bytes(name: str, parameter_bytes: int) -> tuple[float, bool]:
    """Bytes a trained parameter of an optimizer's state; False where it is not known (counted as AdamW)."""
    times, plus = _STATES.get(name, (2, 0))
    return times * parameter_bytes + plus, name in _STATES


@dataclass(frozen=True)
class Sharding:
    """What is split over the processes: a sharded part is held as 1/`processes` by each."""

    name: str = "one process"
    processes: int = 1
    weights: bool = False
    gradients: bool = False
    optimizer: bool = False
    deepspeed: bool = False  # bf16 weights and gradients, and a float32 master copy beside the optimizer
    offload_optimizer: bool = False
    offload_weights: bool = False

    def share(self, part: str) -> float:
        return 1 / self.processes if getattr(self, part) else 1.0


@dataclass(frozen=True)
class Lora:
    """An adapter: its rank, the linear layers it sits on, and the modules that are trained whole beside it."""

    rank: int
    targets: frozenset[str]
    whole: int = 0  # parameters of modules_to_save

    def on(self, linear: Linear) -> bool:
        return linear.name.rpartition(".")[2] in self.targets

    def parameters(self, shape: Shape) -> int:
        return self.whole + sum(
            self.rank * (linear.inputs + linear.outputs) * linear.count for linear in shape.linears if self.on(linear)
        )


def lora_of(lora: Mapping[str, Any] | None, shape: Shape, *, head: bool = False) -> Lora | None:
    """From `lora:` of a step. `head`: a reward model's, whose new head is trained whole."""
    if lora is None:
        return None
    names = {linear.name.rpartition(".")[2] for linear in shape.linears}
    given = lora.get("target_modules")
    if given == "all-linear":
        targets = names
    elif isinstance(given, list | tuple):
        targets = {name for name in names if any(str(g).rpartition(".")[2] == name for g in given)}
    elif isinstance(given, str):
        targets = {name for name in names if name in given}  # a regular expression that spells the names out
    else:
        targets = names & {"q_proj", "v_proj"}  # peft's default for these families
    saved = lora.get("modules_to_save") or ()
    whole = (shape.hidden if head else 0) + sum(shape.embedding for m in saved if m in ("embed_tokens", "lm_head"))
    return Lora(int(lora.get("r", 8)), frozenset(targets), whole)


@dataclass(frozen=True)
class Training:
    """One training process: what it holds and the shape of one forward and backward pass."""

    shape: Shape
    rows: int  # sequences in one pass
    length: int  # tokens of each, padded
    loss_tokens: int | None = None  # tokens that go through the head; None: all (on a GPU only those in the loss)
    weight_bytes: int = 4
    autocast: bool = False  # bf16 or fp16 arithmetic on float32 weights
    quantized_bits: int | None = None
    lora: Lora | None = None
    optimizer: str = "adamw_torch_fused"
    checkpointing: bool = True
    accumulates: bool = False  # several passes before an optimizer step: gradients and activations meet
    sharding: Sharding = Sharding()
    classifier: bool = False  # a reward model: one number for a head
    triton: bool = False  # TRL's fused head has a kernel for it (a GPU)

    @property
    def parameters(self) -> int:
        return self.shape.classifier if self.classifier else self.shape.parameters

    @property
    def trained(self) -> int:
        return self.parameters if self.lora is None else self.lora.parameters(self.shape)


@dataclass
class Parts:
    """Bytes by part. `peak` is the largest sum that is there at once, not the sum of all."""

    fixed: dict[str, float] = field(default_factory=dict)  # there all the time
    forward: dict[str, float] = field(default_factory=dict)  # there when the backward pass begins
    gradients: float = 0.0
    end: float = 0.0  # there when it ends, beside the gradients

    @property
    def peak(self) -> float:
        return sum(self.fixed.values()) + self.working

    @property
    def working(self) -> float:
        """What a pass needs beside `fixed`."""
        return max(sum(self.forward.values()), self.gradients + self.end)

    def table(self) -> dict[str, float]:
        """The parts of the peak; they sum to it."""
        out = dict(self.fixed)
        if sum(self.forward.values()) >= self.gradients + self.end:
            out |= self.forward
        else:
            out |= {"gradients": self.gradients, "last gradients": self.end}
        return {name: size for name, size in out.items() if size}


def weights_bytes(shape: Shape, weight_bytes: int, bits: int | None = None, *, classifier: bool = False) -> float:
    """A whole model's weights. Quantized: linear layers in `bits` and their scales, the rest in `weight_bytes`."""
    total = shape.classifier if classifier else shape.parameters
    if not bits:
        return total * weight_bytes
    scales = 0.127 / 8 if bits == 4 else 0.002  # NF4 with double quantization: 0.127 bits a parameter
    return shape.linear_weights * (bits / 8 + scales) + (total - shape.linear_weights) * weight_bytes


def training(t: Training) -> Parts:
    """Memory of a training process, reference and other models apart."""
    parts = Parts()
    s = t.sharding
    trained, width = t.trained, t.weight_bytes
    small = t.autocast or width == 2
    if s.deepspeed and small:
        width = 2  # the engine casts; the master copy is with the optimizer
    held = weights_bytes(t.shape, width, t.quantized_bits, classifier=t.classifier)
    parts.fixed["weights"] = 0.0 if s.offload_weights else held * s.share("weights")
    # what a pass gathers of a sharded model: two layers and the largest matrix (embedding and head)
    compute = 2 if small else 4
    gathered = (2 * t.shape.body / t.shape.layers + t.shape.embedding) * compute if s.weights else 0.0
    if t.lora is not None:
        parts.fixed["adapter"] = trained * 4 * (s.share("weights"))
    state_width = width if t.lora is None else 4  # peft keeps adapters in float32
    state, _ = optimizer_bytes(t.optimizer, 4 if s.deepspeed and small else state_width)
    master = 4.0 if s.deepspeed and small else 0.0
    parts.fixed["optimizer"] = 0.0 if s.offload_optimizer else trained * (state + master) * s.share("optimizer")
    gradients = trained * state_width * s.share("gradients")
    saved, working = activations(t)
    head, head_gradient = _head(t)
    copies = 0.0
    if t.autocast and not s.weights and not s.deepspeed and t.lora is None:
        copies = t.shape.linear_weights * 2 + (0 if t.classifier else t.shape.embedding * 2)
        if t.checkpointing:
            copies = copies / t.shape.layers + (0 if t.classifier else t.shape.embedding * 2)
    parts.forward = {"activations": saved + working, "head": head + head_gradient}
    if copies:
        parts.forward["bf16 copies"] = copies
    if gathered:
        parts.forward["gathered weights"] = gathered
    held_back = s.gradients and s.processes > 1
    if t.accumulates or held_back:
        parts.forward["gradients"] = gradients
    parts.gradients = gradients
    # with tied weights the embedding's own gradient meets the head's
    tied = not t.classifier and t.shape.tied and t.lora is None
    parts.end = (t.shape.embedding * state_width if tied else 0.0) + gathered + working
    return parts


def activations(t: Training) -> tuple[float, float]:
    """(kept from the forward pass, of the layer that the backward pass is in). Bytes."""
    tokens = t.rows * t.length
    stream = 2 if t.weight_bytes == 2 else 4  # the residual stream: the embedding's dtype
    layer = _layer(t) * tokens
    mask = t.rows * t.length * t.length if t.rows > 1 else 0  # one for all layers
    last = tokens * t.shape.hidden * (stream + 2 * 4)  # final norm
    if not t.checkpointing:
        return t.shape.layers * layer + last + mask, 0.0
    return t.shape.layers * tokens * t.shape.hidden * stream + last + mask, layer


def _layer(t: Training) -> float:
    """Bytes a token that one layer keeps for its backward pass."""
    s = t.shape
    small = t.autocast or t.weight_bytes == 2
    a = 2 if small else 4
    frozen = t.lora is not None
    targets = t.lora.targets if t.lora is not None else frozenset[str]()

    def input_kept(*names: str) -> bool:
        """Is the input of these layers kept: for a gradient of their weights, or for the adapter on them?"""
        return not frozen or bool(targets & set(names))

    # two norms: their input in float32, the normalised stream (for the weight's gradient), and their output
    norm_in = 4 * s.hidden
    normalised = 0 if frozen else (4 if t.weight_bytes == 4 else 2) * s.hidden
    total = 2.0 * (norm_in + normalised)
    total += a * s.hidden * input_kept("q_proj", "k_proj", "v_proj", "q_a_proj", "kv_a_proj_with_mqa")
    total += a * s.hidden * input_kept("gate_proj", "up_proj")
    if s.qk_norm:
        total += (4 + (0 if frozen else a)) * (s.queries + s.kv_heads * s.head_dim)
    # attention: queries, keys and values repeated over the groups, output; one float32 a head for the softmax
    total += a * (s.queries * 2 + s.values * 2) + 4 * s.heads
    # gate, up, silu(gate); their product for the last matrix
    total += a * s.mlp_width * (3 + input_kept("down_proj"))
    if t.lora is not None:
        total += 4 * t.lora.rank * sum(t.lora.on(linear) for linear in s.linears)
        if small:  # the adapter reads its input in its own dtype
            total += 4 * sum(
                linear.inputs for linear in s.linears if t.lora.on(linear) and "expert" not in linear.name
            )
    return total


def _head(t: Training) -> tuple[float, float]:
    """(tiles and gradient of the hidden states, gradient of the head's weight): bytes."""
    if t.classifier:
        return 0.0, 0.0
    tokens = t.rows * t.length if t.loss_tokens is None else t.loss_tokens
    compute = 2 if t.autocast or t.weight_bytes == 2 else 4
    rows = min(tokens, TILE_TOKENS)
    tiles: float = rows * TILE_WORDS * compute  # its buffer has the whole width, whatever the vocabulary
    if not t.triton:
        tiles += (TORCH_TILES - 1) * rows * min(t.shape.vocab, TILE_WORDS) * 4
    gradient = t.shape.embedding * 4.0 if t.lora is None else 0.0
    return tiles + tokens * t.shape.hidden * 8, gradient


def cache_bytes(shape: Shape, rows: int, length: int, width: int) -> float:
    """Keys and values of `rows` sequences of `length` tokens."""
    return shape.layers * shape.cache_width * width * rows * length
