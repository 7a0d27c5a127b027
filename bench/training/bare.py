"""What a person writes with TRL alone: the same model, rows and settings, no pipeline around them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ANSWER = re.compile(r"<answer>\s*(.*?)\s*</answer>\s*\Z", re.DOTALL)
FORM = re.compile(r"<think>\n.+?\n</think>\n<answer>.+?</answer>\s*", re.DOTALL)
HAN = re.compile(r"[\u4e00-\u9fff]")
LATIN = re.compile(r"[A-Za-z]+")


def sft(model: Path, rows: list[dict[str, Any]], args: Any) -> None:
    """`rows` have `messages`, the last one to be learned."""
    import torch
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer, set_seed
    from trl import SFTTrainer

    set_seed(args.seed)
    data = [{"prompt": row["messages"][:-1], "completion": row["messages"][-1:]} for row in rows]
    trainer = SFTTrainer(
        model=AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32),
        args=args,
        train_dataset=Dataset.from_list(data),
        processing_class=AutoTokenizer.from_pretrained(model),
    )
    trainer.train()
    trainer.save_model()


def grpo(model: Path, rows: Any, args: Any) -> None:
    """`rows` is a dataset with prompt, gold and language."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, set_seed
    from trl import GRPOTrainer

    set_seed(args.seed)
    args.reward_weights = [1.0, 0.5, 0.5]
    trainer = GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32),
        reward_funcs=[accuracy, format, language],
        args=args,
        train_dataset=rows,
        processing_class=AutoTokenizer.from_pretrained(model),
    )
    trainer.train()
    trainer.save_model()


def accuracy(completions: list[Any], gold: list[str], **_: Any) -> list[float]:
    found = [ANSWER.search(text(c)) for c in completions]
    return [float(bool(m) and m[1] == g) for m, g in zip(found, gold, strict=True)]


def format(completions: list[Any], **_: Any) -> list[float]:
    return [float(bool(FORM.fullmatch(text(c)))) for c in completions]


def language(completions: list[Any], language: list[str], **_: Any) -> list[float]:
    """Share of the words that are in the question's language."""
    shares = []
    for completion, wanted in zip(completions, language, strict=True):
        said = text(completion)
        han, latin = len(HAN.findall(said)), len(LATIN.findall(said))
        shares.append((han if wanted == "zh" else latin) / max(1, han + latin))
    return shares


def text(completion: Any) -> str:
    return completion if isinstance(completion, str) else completion[0]["content"]
