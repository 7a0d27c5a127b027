"""Measured memory of a training step, for the plan to be held against: `python -m bench.plan.measure`.

The real SFTTrainer (and GRPOTrainer) on a model of SmolLM2-135M's shape with random weights, on the CPU in float32.
Every tensor that torch allocates while it trains is followed (a dispatch mode sees each operation's outputs, a weak
reference sees the end of each storage); the peak is the largest sum of what was alive at once. Memory of the process
outside tensors (imports, allocator) is not in it, and neither are temporaries inside one kernel.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
import weakref
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

SMOLLM2_135M: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 576, "num_hidden_layers": 30, "num_attention_heads": 9,
    "num_key_value_heads": 3, "intermediate_size": 1536, "vocab_size": 49152, "tie_word_embeddings": True,
    "max_position_embeddings": 8192, "head_dim": 64,
}  # fmt: skip
LORA = {"r": 16, "lora_alpha": 32, "lora_dropout": 0.0, "target_modules": "all-linear"}


class Live(TorchDispatchMode):
    """Bytes of the storages that are alive, and the most there ever were. Storages count once, whatever views them."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self.alive: dict[int, int] = {}

    def see(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self.alive:
            return
        size = storage.nbytes()
        self.alive[key] = size
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._gone, key)

    def _gone(self, key: int) -> None:
        self.now -= self.alive.pop(key, 0)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for leaf in tree_iter(out):
            if isinstance(leaf, torch.Tensor):
                self.see(leaf)
        return out


def model_of(config: dict[str, Any]) -> Any:
    import transformers

    values = {k: v for k, v in config.items() if k != "model_type"}
    cls = transformers.CONFIG_MAPPING[config["model_type"]]
    torch.manual_seed(0)
    return transformers.AutoModelForCausalLM.from_config(cls(**values), dtype=torch.float32)


def tokenizer_of(vocab: int) -> Any:
    """A tokenizer of words w0, w1, …: the trainers want one."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.WordLevel({f"w{i}": i for i in range(vocab)}, unk_token="w0"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=core, pad_token="w1", eos_token="w2", unk_token="w0")


def sft(config: dict[str, Any], rows: int, length: int, *, lora: bool, checkpointing: bool, accumulate: int = 1,
        steps: int = 2) -> dict[str, Any]:  # fmt: skip
    """Peak bytes of `steps` optimizer steps of the real SFTTrainer."""
    import datasets
    import peft
    import trl

    vocab = config["vocab_size"]
    ids = torch.randint(3, vocab, (rows * accumulate * steps, length), generator=torch.Generator().manual_seed(0))
    data = datasets.Dataset.from_list([{"input_ids": r, "labels": r} for r in ids.tolist()])
    with tempfile.TemporaryDirectory() as folder:
        arguments = trl.SFTConfig(
            output_dir=folder, use_cpu=True, bf16=False, report_to=[], disable_tqdm=True, max_steps=steps,
            per_device_train_batch_size=rows, gradient_accumulation_steps=accumulate, max_length=length,
            gradient_checkpointing=checkpointing, save_strategy="no", dataloader_pin_memory=False, logging_steps=1,
        )  # fmt: skip
        trainer = trl.SFTTrainer(
            model=model_of(config), args=arguments, train_dataset=data, processing_class=tokenizer_of(vocab),
            peft_config=peft.LoraConfig(task_type="CAUSAL_LM", **LORA) if lora else None,
        )  # fmt: skip
        return _watch(trainer)


def grpo(config: dict[str, Any], rows: int, prompt: int, completion: int, *, beta: float, steps: int = 2,
         checkpointing: bool = False) -> dict[str, Any]:  # fmt: skip
    """Peak bytes of the real GRPOTrainer: rollouts, reference and training; random completions of the full length."""
    import datasets
    import trl

    vocab = config["vocab_size"]
    words = torch.randint(3, vocab, (rows * steps, prompt), generator=torch.Generator().manual_seed(0)).tolist()
    data = datasets.Dataset.from_list([{"prompt": " ".join(f"w{i}" for i in r)} for r in words])
    with tempfile.TemporaryDirectory() as folder:
        made = model_of(config)
        path = f"{folder}/model"
        made.save_pretrained(path)
        tokenizer_of(vocab).save_pretrained(path)
        arguments = trl.GRPOConfig(
            output_dir=folder, use_cpu=True, bf16=False, report_to=[], disable_tqdm=True, max_steps=steps,
            per_device_train_batch_size=rows, gradient_accumulation_steps=1, num_generations=rows, beta=beta,
            max_completion_length=completion, gradient_checkpointing=checkpointing, save_strategy="no",
            dataloader_pin_memory=False, logging_steps=1, loss_type="grpo", num_completions_to_print=0,
            generation_kwargs={"min_new_tokens": completion},
        )  # fmt: skip
        trainer = trl.GRPOTrainer(
            model=path, args=arguments, train_dataset=data,
            reward_funcs=lambda completions, **_: [float(i) for i in range(len(completions))],
        )  # fmt: skip
        return _watch(trainer)


def _watch(trainer: Any) -> dict[str, Any]:
    live = Live()
    models = [m for m in (trainer.model, getattr(trainer, "ref_model", None)) if m is not None]
    for model in models:
        for tensor in (*model.parameters(), *model.buffers()):
            live.see(tensor.data)
    start, began = live.now, time.monotonic()
    with live, contextlib.redirect_stdout(sys.stderr):  # the trainer prints its logs
        trainer.train()
    return {"peak": live.peak, "models": start, "seconds": round(time.monotonic() - began, 1)}


# name, arguments: full and LoRA at two batch shapes, and what changes the sum most
CASES: list[tuple[str, dict[str, Any]]] = [
    ("full, 2 x 128", {"rows": 2, "length": 128, "lora": False, "checkpointing": False}),
    ("full, 4 x 512", {"rows": 4, "length": 512, "lora": False, "checkpointing": False}),
    ("LoRA, 2 x 128", {"rows": 2, "length": 128, "lora": True, "checkpointing": False}),
    ("LoRA, 4 x 512", {"rows": 4, "length": 512, "lora": True, "checkpointing": False}),
    ("full, 4 x 512, checkpointing", {"rows": 4, "length": 512, "lora": False, "checkpointing": True}),
    ("LoRA, 4 x 512, checkpointing", {"rows": 4, "length": 512, "lora": True, "checkpointing": True}),
    ("full, 4 x 512, accumulated twice",
     {"rows": 4, "length": 512, "lora": False, "checkpointing": False, "accumulate": 2}),
]  # fmt: skip
GRPO = {"rows": 4, "prompt": 64, "completion": 64, "beta": 0.04}


def planned(config: dict[str, Any], rows: int, length: int, *, lora: bool, checkpointing: bool,
            accumulate: int = 1) -> float:  # fmt: skip
    """What the plan says for the same step."""
    from r1pipe.estimate import memory, shape

    found = shape.of(config)
    return memory.training(
        memory.Training(
            found, rows, length, lora=memory.lora_of(LORA, found) if lora else None, checkpointing=checkpointing,
            accumulates=accumulate > 1,
        )
    ).peak  # fmt: skip


def planned_grpo(config: dict[str, Any], rows: int, prompt: int, completion: int, *, beta: float) -> float:
    """The same for GRPO without checkpointing: the reference beside the trained model."""
    from r1pipe.estimate import memory, shape

    found = shape.of(config)
    parts = memory.training(memory.Training(found, rows, prompt + completion, checkpointing=False))
    return parts.peak + (memory.weights_bytes(found, 4) if beta else 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", help="cases whose name holds this text")
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    rows = []
    for name, arguments in CASES:
        if wanted.only and wanted.only not in name:
            continue
        found = sft(SMOLLM2_135M, **arguments)
        plan = planned(SMOLLM2_135M, **arguments)
        rows.append({"case": name, **found, "planned": plan, "ratio": plan / found["peak"]})
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    if not wanted.only or wanted.only in "GRPO":
        found = grpo(SMOLLM2_135M, **GRPO)
        plan = planned_grpo(SMOLLM2_135M, **GRPO)
        rows.append({"case": "GRPO full, 4 x (64 + 64), reference", **found, "planned": plan,
                     "ratio": plan / found["peak"]})  # fmt: skip
    if wanted.json:
        print(json.dumps(rows, indent=2))
        return
    print("| SmolLM2-135M's shape, float32 | measured peak, MiB | planned, MiB | planned / measured |")
    print("| --- | ---: | ---: | ---: |")
    for row in rows:
        print(f"| {row['case']} | {row['peak'] / 2**20:,.0f} | {row['planned'] / 2**20:,.0f} | {row['ratio']:.2f} |")


if __name__ == "__main__":
    main()
