"""Measures this machine on a profile's model in some seconds: `python -m r1pipe.estimate.probe REQUEST` prints JSON.

A child of its own: the plan itself loads no torch. The same paths as a run: our decode loop on real prompts, the
model's forward and backward pass at a step's own batch, AdamW. The weights are the base's own where they are on this
machine, else random ones of the same shape (a completion's length is then not known).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PASSES = 3  # timed, after one that warms up; the fastest counts: others use the machine too


def measure(request: dict[str, Any]) -> dict[str, Any]:
    began = time.monotonic()
    import torch
    import transformers

    startup = time.monotonic() - began
    if request["threads"]:
        torch.set_num_threads(request["threads"])
    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(0)
    folder = request["folder"]
    config = transformers.AutoConfig.from_pretrained(folder)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    whole = any(Path(folder).glob("*.safetensors"))
    if whole:
        model: Any = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="float32")
    else:
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.to(device)
    vocab = model.config.get_text_config().vocab_size
    found: dict[str, Any] = {"startup": startup, "device": device, "random_weights": not whole}
    found |= _generate(model, request, vocab, device)
    rows, length = request["rows"], request["length"]
    ids = torch.randint(3, vocab, (rows, length), device=device)
    small = request["bf16"] and device == "cuda"
    model.config.use_cache = False

    def loss() -> Any:
        with torch.autocast(device, torch.bfloat16, enabled=small):
            return model(input_ids=ids, labels=ids, use_cache=False).loss

    def forward() -> None:
        with torch.no_grad():
            loss()

    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0)
    if request["checkpointing"]:
        model.gradient_checkpointing_enable()

    def train() -> None:
        model.train()
        loss().backward()
        optimizer.step()
        optimizer.zero_grad()

    found["forward"] = _fastest(forward, device) / (rows * length)
    found["train"] = _fastest(train, device) / (rows * length)
    return found


def _generate(model: Any, request: dict[str, Any], vocab: int, device: str) -> dict[str, Any]:
    """Seconds a generated token, and of a prompt's; and how long completions are, with real weights and prompts."""
    import torch

    from r1pipe.chat import ChatConfig
    from r1pipe.generate.decode import Sequence, decode
    from r1pipe.generate.render import Renderer, load_tokenizer, stop_ids
    from r1pipe.settings import SamplingConfig

    count, limit = request["sequences"], request["completion"]
    stop: list[int] = []
    pad = 0
    if (Path(request["folder"]) / "tokenizer.json").is_file() and request["prompts"]:
        tokenizer = load_tokenizer(request["folder"])
        prompts = Renderer(tokenizer, ChatConfig.model_validate(request["chat"])).prompts(request["prompts"])
        stop = stop_ids(request["folder"], model, tokenizer)
        pad = tokenizer.pad_token_id or 0
    else:
        prompts = torch.randint(3, vocab, (4, 64)).tolist()
    model.eval()
    sampling = SamplingConfig(temperature=1.0, max_tokens=limit)

    def run(budget: int) -> tuple[float, int]:
        batch = [Sequence(i % len(prompts), i, i, budget) for i in range(count)]
        began = time.monotonic()
        with torch.inference_mode():
            decode(model, batch, prompts, sampling, stop, pad)
        _wait(device)
        return time.monotonic() - began, sum(len(s.tokens) for s in batch)

    run(min(4, limit))
    first = min(run(1)[0] for _ in range(2))  # the prompts alone, and one token each
    spent, tokens = min((run(limit) for _ in range(2)), key=lambda found: found[0])
    distinct = len({tuple(p) for p in prompts})
    return {
        "decode": max(spent - first, 1e-9) / max(tokens - count, 1),
        "prefill": first / sum(len(p) for p in prompts[:distinct]),
        "completion": tokens / count,
        "prompt": sum(len(p) for p in prompts) / len(prompts),
    }


def _fastest(work: Callable[[], None], device: str) -> float:
    times = []
    for _ in range(PASSES + 1):
        began = time.monotonic()
        work()
        _wait(device)
        times.append(time.monotonic() - began)
    return min(times[1:])


def _wait(device: str) -> None:
    if device == "cuda":
        import torch

        torch.cuda.synchronize()


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))) + "\n")
