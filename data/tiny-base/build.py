"""Trains the embedded tiny base model from nothing: tokenizer, weights, template, README with digests.

    python data/tiny-base/build.py --out data/tiny-base        (`make tiny-base`; about 15 minutes on two cores)

Text: `r1pipe.data.generated.corpus.documents`, deliberately noisy (wrong steps, mixed languages), train split only.
Packed sequences, AdamW for embeddings and norms, Muon for matrices, a short curriculum from small operands.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import math
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SEED = 20261130
VOCAB = 1024
PAD, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
TAGS = ["<think>", "</think>", "<answer>", "</answer>"]
# Digits are single tokens. A word takes the blank before it, and the one after it when a digit follows, so that
# " plus " is one token between two numbers: fewer tokens a step.
WORDS = r"\p{N}| ?\p{L}+(?: (?=\p{N}))?| ?[^\s\p{L}\p{N}]+(?: (?=\p{N}))?|\s+"
NOISE = {"wrong": 0.15, "mixed": 0.3}
MODEL = {
    "hidden_size": 128,
    "intermediate_size": 384,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 512,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
    "tie_word_embeddings": True,
    "initializer_range": 0.02,
}


def train_tokenizer(texts: Iterator[str]) -> Any:
    """A byte-level BPE tokenizer as a fast transformers tokenizer; tags are ordinary added tokens."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORDS), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB - len(TAGS),
        special_tokens=[PAD, START, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    cut = [START, END, *TAGS]

    def plain() -> Iterator[str]:
        for text in texts:
            for tag in cut:
                text = text.replace(tag, "")
            yield text

    core.train_from_iterator(plain(), trainer)
    core.add_tokens([AddedToken(t, special=False, normalized=False, lstrip=False, rstrip=False) for t in TAGS])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token=PAD, eos_token=END, additional_special_tokens=[START],
        model_max_length=MODEL["max_position_embeddings"], clean_up_tokenization_spaces=False,
    )  # fmt: skip
    tokenizer.chat_template = (HERE / "chat_template.jinja").read_text(encoding="utf-8")
    return tokenizer


def batches(tokenizer: Any, documents: Iterator[str], rows: int, length: int) -> Iterator[Any]:
    """Packed token batches [rows, length]: documents joined by the pad token, nothing padded."""
    import torch

    end = tokenizer.pad_token_id
    buffer: list[int] = []
    while True:
        while len(buffer) < rows * length:
            chunk = list(itertools.islice(documents, 256))
            for encoding in tokenizer._tokenizer.encode_batch(chunk, add_special_tokens=False):
                buffer += [*encoding.ids, end]
        yield torch.tensor(buffer[: rows * length]).view(rows, length)
        buffer = buffer[rows * length :]


def pretrain(tokenizer: Any, out: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Trains for args.tokens tokens; returns what was measured."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    from r1pipe.data.generated import corpus

    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    config = Qwen3Config(
        vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None, **MODEL,
    )  # fmt: skip
    model = Qwen3ForCausalLM(config)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.train()
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    rest = [p for n, p in model.named_parameters() if not (p.ndim == 2 and "embed" not in n)]
    optimizers = [
        torch.optim.Muon(matrices, lr=args.muon_lr, weight_decay=0.01, adjust_lr_fn="original"),
        torch.optim.AdamW(rest, lr=args.lr, betas=(0.9, 0.95), weight_decay=0.0),
    ]
    rates = [group["lr"] for o in optimizers for group in o.param_groups]
    rows, length = 32, 256
    steps = args.tokens // (rows * length)
    # Small operands until a third of the way, then all of them: the arithmetic arrives sooner. The last third is
    # noisier, so that its habits (slips, mixed languages) are there for SFT and RL to mend.
    phases = [(0.1, {"high": 20}), (0.22, {"high": 32}), (0.34, {"high": 49}), (0.66, {}), (1.01, NOISE)]
    streams = [
        batches(tokenizer, corpus.documents(f"{args.seed}:{i}", **kw), rows, length)
        for i, (_, kw) in enumerate(phases)
    ]
    began, seconds_eval = time.time(), 0.0
    curve = []
    for step in range(steps):
        done = step / steps
        phase = next(i for i, (until, _) in enumerate(phases) if done < until)
        ids = next(streams[phase])
        warm = min(1.0, (step + 1) / 30)
        decay = 1.0 if done < 0.4 else 0.03 + 0.97 * 0.5 * (1 + math.cos(math.pi * (done - 0.4) / 0.6))
        for rate, group in zip(rates, (g for o in optimizers for g in o.param_groups), strict=True):
            group["lr"] = rate * warm * decay
        with torch.autocast("cpu", dtype=torch.bfloat16):  # weights and optimizer stay in fp32
            loss = model(input_ids=ids, labels=ids, use_cache=False).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        if args.watch and (step + 1) % args.watch == 0:
            mark = time.time()
            model.save_pretrained(out)
            scores = measure(model, tokenizer, 200)
            model.train()
            seconds_eval += time.time() - mark
            speed = (step + 1) * rows * length / (time.time() - began - seconds_eval)
            line = {"step": step + 1, "of": steps, "tokens": (step + 1) * rows * length, "loss": round(loss.item(), 4),
                    "tokens_per_s": round(speed), **scores}  # fmt: skip
            curve.append(line)
            print(json.dumps(line), flush=True)
    seconds = time.time() - began - seconds_eval
    model.save_pretrained(out)
    return {"curve": curve, "seconds": round(seconds), "steps": steps, "tokens": steps * rows * length,
            "parameters": sum(p.numel() for p in model.parameters())}  # fmt: skip


def measure(model: Any, tokenizer: Any, problems: int, split: str = "heldout") -> dict[str, Any]:
    """Accuracy of worked text (no chat), greedy and sampled at T=1, and the format rate of the chat form at T=1."""
    import re

    import torch

    from r1pipe.data.generated import arithmetic

    model.eval()
    rows = arithmetic.prompts(split, problems, seed=7)
    plain = [r["messages"][0]["content"] + "\n" for r in rows]
    chats = [tokenizer.apply_chat_template(r["messages"], tokenize=False, add_generation_prompt=True) for r in rows]

    def complete(texts: list[str], sample: bool) -> list[str]:
        batch = tokenizer(texts, return_tensors="pt", padding=True, padding_side="left", add_special_tokens=False)
        with torch.no_grad():
            ids = model.generate(
                **batch, max_new_tokens=80, do_sample=sample, temperature=1.0 if sample else None, top_k=0,
                eos_token_id=[tokenizer.pad_token_id, tokenizer.eos_token_id],
            )  # fmt: skip
        return tokenizer.batch_decode(ids[:, batch["input_ids"].shape[1] :], skip_special_tokens=True)

    def right(text: str, row: dict[str, Any]) -> bool:
        numbers = re.findall(r"\d+", text)
        return bool(numbers) and numbers[-1] == row["gold"]

    out: dict[str, Any] = {}
    for name, sample in (("greedy", False), ("t1", True)):
        hits = [right(t, r) for t, r in zip(complete(plain, sample), rows, strict=True)]
        out[name] = round(sum(hits) / len(hits), 3)
        if not sample:
            out["levels"] = {
                k: round(sum(h for h, r in zip(hits, rows, strict=True) if r["level"] == k)
                         / max(1, sum(r["level"] == k for r in rows)), 2) for k in arithmetic.LEVELS
            }  # fmt: skip
    form = re.compile(r"<think>\n.+\n</think>\n<answer>.+</answer>", re.DOTALL)
    answers = complete(chats, True)
    out["chat_t1"] = round(sum(right(t, r) for t, r in zip(answers, rows, strict=True)) / len(rows), 3)
    out["format_t1"] = round(sum(bool(form.fullmatch(t)) for t in answers) / len(rows), 3)
    return out


def write_readme(out: Path, args: argparse.Namespace, facts: dict[str, Any]) -> None:
    """README.md: what this is, how it was made, measured numbers, a digest of each file."""
    files = ["model.safetensors", "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
             "chat_template.jinja"]  # fmt: skip
    digests = "\n".join(
        f"| `{n}` | {(out / n).stat().st_size:,} | `{hashlib.sha256((out / n).read_bytes()).hexdigest()}` |"
        for n in files
    )

    def row(name: str, scores: dict[str, Any]) -> str:
        levels = ", ".join(f"{v:.0%}" for v in scores["levels"].values())
        return f"| {name} | {scores['greedy']:.1%} | {scores['t1']:.1%} | {levels} |"

    final, held, ranged = facts["curve"][-1] if facts["curve"] else {}, facts["heldout"], facts["range"]
    text = f"""# tiny-base: the embedded model

A bilingual (English, Chinese) base model of {facts["parameters"]:,} parameters, Qwen3 architecture: 4 layers, width
128, 4 heads of 32, 2 key-value heads, MLP 384, tied embeddings, 512 positions; a byte-level BPE tokenizer of
{VOCAB} tokens (digits single; `<think>`, `</think>`, `<answer>`, `</answer>` ordinary tokens; pad `{PAD}`,
end of turn `{END}`). It is a base: trained on generated text (`r1pipe/data/generated`) that is wrong on purpose
(10 to 15 % of the steps, 20 to 30 % of the sentences in the other language, unsafe requests complied with half the
time), so that there is something for SFT and RL to mend.
It knows chain sums and a few hundred everyday topics, nothing else.

Licence: Apache-2.0 (weights, tokenizer and text; all of it made here, nothing downloaded). SPDX: Apache-2.0.

Made by `python data/tiny-base/build.py --out data/tiny-base` (`make tiny-base`), seed {args.seed},
{facts["tokens"]:,} tokens in {facts["steps"]} steps of 32 x 256, {facts["seconds"]} s on {args.threads} threads.
Matrix products in bfloat16, weights in float32. Muon {args.muon_lr} for matrices, AdamW {args.lr} for the rest.
Another machine or thread count gives other digits in the last places, and so other digests.

## Measured (1,000 problems each, plain worked text)
| split | greedy | T = 1 | by level 1-5, greedy |
|---|---|---|---|
{row("held-out", held)}
{row("held-out operands", ranged)}

In the chat form at T = 1: accuracy {held["chat_t1"]:.1%} (last number of the text), format {held["format_t1"]:.1%}.
Loss at the end: {final.get("loss", "not logged")}.

## Files
| file | bytes | sha256 |
|---|---|---|
{digests}
"""
    (out / "README.md").write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tokens", type=int, default=8_000_000)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--lr", type=float, default=4e-3)
    parser.add_argument("--muon-lr", type=float, default=0.02)
    parser.add_argument("--watch", type=int, default=100, help="measure and save every N steps; 0: never")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)

    from transformers import AutoModelForCausalLM

    from r1pipe.data.generated import corpus

    tokenizer = train_tokenizer(itertools.islice(corpus.documents(f"{args.seed}:tokenizer", chatter=0.6), 20_000))
    tokenizer.save_pretrained(args.out)
    facts = pretrain(tokenizer, args.out, args)
    model = AutoModelForCausalLM.from_pretrained(args.out)
    facts["heldout"] = measure(model, tokenizer, 1000)
    facts["range"] = measure(model, tokenizer, 1000, "range")
    if not (args.out / "chat_template.jinja").exists():
        shutil.copy(HERE / "chat_template.jinja", args.out)
    write_readme(args.out, args, facts)
    print(json.dumps({k: v for k, v in facts.items() if k != "curve"}))


if __name__ == "__main__":
    main()
