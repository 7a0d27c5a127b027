"""The core of the reward models: a base with one number for a head, trained on pairs or on labels.

- pairs (`helpful`): TRL's RewardTrainer, chosen above rejected; the texts are final answers.
- labels (`harmless`): transformers' Trainer with one logit and binary cross-entropy (TRL's is pairwise only); the
  text is the whole response.

Both render prompt and response with the base's chat template, as `r1pipe.rewards.preference` does when it scores.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from r1pipe.chat import ChatConfig
from r1pipe.errors import UserError
from r1pipe.stage import StageContext
from r1pipe.training import common
from r1pipe.training import model as models
from r1pipe.training import rows as rendering
from r1pipe.training.health import TrainHealth
from r1pipe.training.sft import metrics as log_metrics

Row = dict[str, Any]
_DEFAULT_LENGTH = 1024


def render(rows: list[Row], field: str, tokenizer: Any, chat: ChatConfig) -> list[list[int]]:
    """Token ids of prompt (with the configured system prompt, as a rollout has it) and `row[field]`."""
    return rendering.render(
        tokenizer,
        [[*chat.conversation(r["messages"]), {"role": "assistant", "content": r[field]}] for r in rows],
    )


def pairs(rows: list[Row], tokenizer: Any, chat: ChatConfig, limit: int, ctx: StageContext) -> list[Row]:
    """`chosen_ids` and `rejected_ids` of pairs that fit; the others are counted."""
    chosen, rejected = (render(rows, field, tokenizer, chat) for field in ("chosen", "rejected"))
    out = [
        {"chosen_ids": a, "rejected_ids": b}
        for a, b in zip(chosen, rejected, strict=True)
        if max(len(a), len(b)) <= limit
    ]
    return _counted(out, rows, limit, "pairs", ctx)


def labels(rows: list[Row], tokenizer: Any, chat: ChatConfig, limit: int, ctx: StageContext) -> list[Row]:
    """`input_ids` and `labels` ([0.0] or [1.0]) of responses that fit; the others are counted."""
    ids = render(rows, "response", tokenizer, chat)
    out = [
        {"input_ids": a, "labels": [float(row["label"])]} for a, row in zip(ids, rows, strict=True) if len(a) <= limit
    ]
    return _counted(out, rows, limit, "labels", ctx)


def _counted(out: list[Row], rows: list[Row], limit: int, what: str, ctx: StageContext) -> list[Row]:
    if len(out) < len(rows):
        ctx.count(f"{what}/too_long", len(rows) - len(out))
        ctx.warn(f"{len(rows) - len(out)} of {len(rows)} {what} are longer than {limit} tokens and were dropped")
    if not out:
        raise UserError(f"no {what} are left", hint="raise trainer.max_length, or look at the data")
    return out


def limit_of(trainer: Mapping[str, Any], source: Path) -> int:
    """Most tokens of prompt and response."""
    return min(trainer.get("max_length") or _DEFAULT_LENGTH, models.context_length(source) or 10**9)


def _load(source: Path, ctx: StageContext, options: Mapping[str, Any], tokenizer: Any) -> Any:
    from transformers import AutoModelForSequenceClassification, set_seed

    set_seed(ctx.seed)  # the head is new
    model = AutoModelForSequenceClassification.from_pretrained(source, num_labels=1, **models.init_kwargs(options))
    model.config.pad_token_id = tokenizer.pad_token_id  # the score is read at the last token that is not this
    return model


def _callbacks(ctx: StageContext, name: str, args: Any, settings: TrainHealth) -> list[Any]:
    from r1pipe.training import callbacks

    progress = callbacks.Progress(ctx, f"log-{name}.jsonl")
    health = callbacks.watch(ctx, settings, args, progress, section=name)
    return [progress, health, callbacks.Checkpoints(ctx, health)]


def train_pairs(
    ctx: StageContext, trainer_keys: Mapping[str, Any], lora: Any, options: Mapping[str, Any], chat: ChatConfig,
    rows: list[Row], heldout: list[Row], out: Path, health: TrainHealth,
) -> dict[str, Any]:  # fmt: skip
    """The helpful model; returns metrics with the held-out accuracy (share of pairs ranked right)."""
    import datasets
    from trl import RewardTrainer

    source = ctx.inputs["model"].path
    tokenizer = models.load_tokenizer(source)
    limit = limit_of(trainer_keys, source)
    args, _ = common.build("RewardConfig", ctx, trainer_keys)
    last = common.resume_point(ctx)
    model = _load(source, ctx, options, tokenizer)
    trainer: Any = RewardTrainer(
        model=model,
        args=args,
        train_dataset=datasets.Dataset.from_list(pairs(rows, tokenizer, chat, limit, ctx)),
        processing_class=tokenizer,
        peft_config=common.lora_config(lora, "SEQ_CLS"),
        callbacks=_callbacks(ctx, "helpful", args, health),
    )
    common.no_model_card(trainer)
    found = _fit(trainer, ctx, last)
    test = pairs(heldout, tokenizer, chat, limit, ctx)
    better = scores(trainer, [r["chosen_ids"] for r in test], tokenizer.pad_token_id)
    worse = scores(trainer, [r["rejected_ids"] for r in test], tokenizer.pad_token_id)
    found["heldout_accuracy"] = statistics.fmean(float(a > b) for a, b in zip(better, worse, strict=True))
    found["heldout_rows"] = len(test)
    found["heldout_mean_score"] = statistics.fmean(better + worse)
    return _save(trainer, source, out, ctx, options, found, "final answer")


def train_labels(
    ctx: StageContext, trainer_keys: Mapping[str, Any], lora: Any, options: Mapping[str, Any], chat: ChatConfig,
    rows: list[Row], heldout: list[Row], out: Path, health: TrainHealth,
) -> dict[str, Any]:  # fmt: skip
    """The harmless model; returns metrics with the held-out accuracy (share of responses labelled right)."""
    import datasets
    from transformers import DataCollatorWithPadding, Trainer

    source = ctx.inputs["model"].path
    tokenizer = models.load_tokenizer(source)
    limit = limit_of(trainer_keys, source)
    keys = {k: v for k, v in trainer_keys.items() if k not in ("max_length",)}
    args, _ = common.build("TrainingArguments", ctx, keys)
    last = common.resume_point(ctx)
    model = _load(source, ctx, options, tokenizer)
    model.config.problem_type = "multi_label_classification"  # binary cross-entropy on the one logit
    adapter = common.lora_config(lora, "SEQ_CLS")
    if adapter is not None:
        import peft

        model = peft.get_peft_model(model, adapter)
    trainer: Any = Trainer(
        model=model,
        args=args,
        train_dataset=datasets.Dataset.from_list(labels(rows, tokenizer, chat, limit, ctx)),
        data_collator=DataCollatorWithPadding(tokenizer),
        processing_class=tokenizer,
        callbacks=_callbacks(ctx, "harmless", args, health),
    )
    found = _fit(trainer, ctx, last)
    test = labels(heldout, tokenizer, chat, limit, ctx)
    got = scores(trainer, [r["input_ids"] for r in test], tokenizer.pad_token_id)
    right = [(score > 0) == (row["labels"][0] > 0.5) for score, row in zip(got, test, strict=True)]
    found["heldout_accuracy"] = statistics.fmean(map(float, right))
    found["heldout_rows"] = len(test)
    for name, wanted in (("safe", 1.0), ("unsafe", 0.0)):
        some = [float(ok) for ok, row in zip(right, test, strict=True) if row["labels"][0] == wanted]
        if some:
            found[f"heldout_accuracy_{name}"] = statistics.fmean(some)
    return _save(trainer, source, out, ctx, options, found, "whole response")


def _fit(trainer: Any, ctx: StageContext, last: Path | None) -> dict[str, Any]:
    from r1pipe.training import callbacks

    models.check_trainable(trainer.model, ctx)
    ctx.phase("training")
    started = time.monotonic()
    callbacks.train(trainer, last)
    history = next(c.history for c in trainer.callback_handler.callbacks if hasattr(c, "history"))
    return log_metrics(history, time.monotonic() - started)


def scores(trainer: Any, ids: list[list[int]], pad: int, batch_size: int = 64) -> list[float]:
    """The logit of each sequence, in order; batches are padded on the right."""
    import torch

    model = trainer.accelerator.unwrap_model(trainer.model).eval()
    device = next(model.parameters()).device
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    out = [0.0] * len(ids)
    for start in range(0, len(order), batch_size):
        some = order[start : start + batch_size]
        longest = len(ids[some[-1]])
        batch = torch.tensor([ids[i] + [pad] * (longest - len(ids[i])) for i in some], device=device)
        mask = torch.tensor([[1] * len(ids[i]) + [0] * (longest - len(ids[i])) for i in some], device=device)
        with torch.no_grad():
            logits = model(input_ids=batch, attention_mask=mask).logits[:, 0].float()
        for i, score in zip(some, logits.tolist(), strict=True):
            out[i] = score
    return out


def _save(
    trainer: Any, source: Path, out: Path, ctx: StageContext, options: Mapping[str, Any], found: dict[str, Any],
    judges: str,
) -> dict[str, Any]:  # fmt: skip
    """Writes the model; its held-out numbers go with it."""
    models.save_policy(trainer, source, out, ctx, options)
    if ctx.is_main:
        (out / "generation_config.json").unlink(missing_ok=True)  # it generates nothing
    ctx.describe(out.name, judges=judges, **{k: v for k, v in found.items() if k.startswith("heldout")})
    return found
