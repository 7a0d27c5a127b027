"""The core of supervised fine-tuning: rows to token ids and labels here, so that whatever is cut is counted."""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

from r1pipe.errors import UserError
from r1pipe.rewards.registry import WITHOUT_ANSWER
from r1pipe.stage import StageContext
from r1pipe.training import common
from r1pipe.training import model as models
from r1pipe.training import rows as rendering
from r1pipe.training.labels import encode, turn_end
from r1pipe.training.settings import TrainerStep

LOSS_ROWS, LOSS_BATCH = 64, 8
Row = dict[str, Any]
Example = dict[str, list[int]]  # input_ids and labels, (length,) each; -100 where there is no loss


def check(ctx: StageContext, config: TrainerStep) -> dict[str, Any]:
    """Builds the real SFTConfig and LoraConfig without weights; facts for --dry-run."""
    args, facts = common.build("SFTConfig", ctx, config.trainer, num_processes=config.num_processes)
    lora = common.lora_config(config.lora)
    common.quantization_config(config.quantization)
    facts |= {
        "sequences_a_step": (
            args.per_device_train_batch_size * args.gradient_accumulation_steps * config.num_processes
        ),
        "max_length": args.max_length,
        "packing": args.packing,
        "epochs": args.num_train_epochs if args.max_steps < 0 else None,
        "steps": args.max_steps if args.max_steps > 0 else None,
    }
    return facts | common.model_facts(ctx, lora, trained=True)


def tokenize(
    rows: list[Row], tokenizer: Any, config: TrainerStep, ctx: StageContext
) -> tuple[list[Row], list[Example]]:
    """The rows that can be trained on, with their token ids and labels. What is lost on the way is counted: rows that
    the chat template refuses or whose reasoning it drops, earlier turns without a loss, and rows that do not begin
    like the prompt that sampling writes."""
    tags = config.chat.tags
    try:
        encoded = encode(tokenizer, [config.chat.conversation(row["messages"]) for row in rows])
    except UserError:  # the template refuses a conversation: the others are taken
        rows = rendering.taken(rows, tokenizer, config.chat, ctx, "rows")
        encoded = encode(tokenizer, [config.chat.conversation(row["messages"]) for row in rows])
    kept: list[tuple[Row, Example]] = []
    odd = unseen = empty = 0
    for row, one in zip(rows, encoded, strict=True):
        said = row["messages"][-1]["content"]
        if not _survives(tags.split(said).thinking, one.turn):
            continue
        odd += not one.agrees
        unseen += one.unseen
        empty += tags.think_close not in said and tags.think_close in one.turn
        kept.append((row, {"input_ids": one.input_ids, "labels": one.labels}))
    if rows and not kept:
        raise UserError(
            f"the chat template removes the reasoning of all {len(rows)} rows, so the loss does not see the reasoning",
            hint="set chat.template: builtin:r1 (the model's own template removes it)",
        )
    for name, number, said in (
        ("rows/reasoning_lost", len(rows) - len(kept), "the chat template drops the reasoning of {}: left out"),
        ("rows/unlike_the_prompt", odd, "{} do not begin like the prompt of sampling (such as no thinking where the "
         "template opens it)"),
        ("rows/empty_thinking", empty, "the chat template puts an empty thinking into {} that have none"),
        ("turns/without_loss", unseen, "earlier assistant turns get no loss (the template marks none): {}"),
    ):  # fmt: skip
        if number:
            ctx.count(name, number)
            ctx.warn(said.format(f"{number} of {len(rows)} rows" if name.startswith("rows/") else number))
    return [row for row, _ in kept], [example for _, example in kept]


def _survives(thinking: str | None, turn: str) -> bool:
    """Is the thinking in what the template wrote, whatever white space it changed?"""
    return not thinking or thinking in turn or "".join(thinking.split()) in "".join(turn.split())


def fit(examples: list[Example], max_length: int, overlong: str, ctx: StageContext) -> list[Example]:
    """Examples of at most `max_length` tokens: longer ones are dropped or cut, and counted."""
    long = [e for e in examples if len(e["input_ids"]) > max_length]
    if not long:
        return examples
    lost = sum(len(e["input_ids"]) - (max_length if overlong == "cut" else 0) for e in long)
    ctx.count(f"rows/overlong_{'cut' if overlong == 'cut' else 'dropped'}", len(long))
    ctx.count("tokens/overlong_lost", lost)
    ctx.warn(
        f"{len(long)} of {len(examples)} rows are longer than trainer.max_length {max_length} and were "
        f"{'cut' if overlong == 'cut' else 'dropped'} ({lost} tokens); the longest has "
        f"{max(len(e['input_ids']) for e in long)}"
    )
    if overlong == "drop":
        kept = [e for e in examples if len(e["input_ids"]) <= max_length]
    else:
        cut = [{k: v[:max_length] for k, v in e.items()} for e in examples]
        kept = [e for e in cut if any(label != -100 for label in e["labels"])]
        if len(kept) < len(cut):
            ctx.count("rows/nothing_left_after_cut", len(cut) - len(kept))
    if not kept:
        raise UserError(
            f"none of {len(examples)} rows has at most {max_length} tokens", hint="raise trainer.max_length"
        )
    return kept


def check_first(example: Example, row: Row, tokenizer: Any, config: TrainerStep, ctx: StageContext) -> None:
    """Decodes what the loss sees of the first row: its reasoning and the end of its turn must be there (e6, e7)."""
    labels = [t for t in example["labels"] if t != -100]
    text = tokenizer.decode(labels)
    ctx.fact("first_row_trained_on", text)
    if ctx.is_main:
        sys.stdout.write(f"what the loss sees of the first row:\n{text}\n")  # the step's log
    parts = config.chat.tags.split(row["messages"][-1]["content"])
    if not _survives(parts.thinking, text):
        raise UserError(
            f"the loss does not see the reasoning of the first row; it sees {text[:200]!r}",
            hint="set chat.template: builtin:r1 (the model's own template removes the reasoning)",
        )
    if not labels or turn_end(tokenizer) not in labels:
        raise UserError(
            f"the loss does not see the end of the assistant's turn; it sees {text[-80:]!r}",
            hint="set chat.template: builtin:r1 (else the model never learns to stop)",
        )


def train(ctx: StageContext, config: TrainerStep, rows: list[Row], *, overlong: str) -> dict[str, Any]:
    """Trains the input `model` on `rows` and writes the output `model`; returns metrics."""
    import datasets
    from transformers import set_seed
    from trl import SFTTrainer

    from r1pipe.training import callbacks

    source = ctx.inputs["model"].path
    tokenizer = models.load_tokenizer(source)
    args, facts = common.build("SFTConfig", ctx, config.trainer)
    ctx.phase("loading")
    rows, whole = tokenize(rows, tokenizer, config, ctx)
    check_first(whole[0], rows[0], tokenizer, config, ctx)
    examples = fit(whole, args.max_length, overlong, ctx)
    tokens = [len(e["input_ids"]) for e in examples]
    for name, value in {
        **facts,
        "rows": len(examples),
        "tokens": sum(tokens),
        "mean_tokens": round(statistics.fmean(tokens), 1),
        "tokens_in_loss": sum(sum(label != -100 for label in e["labels"]) for e in examples),
    }.items():
        ctx.fact(name, value)
    last = common.resume_point(ctx)
    set_seed(ctx.seed)  # LoRA's first weights are random
    model = models.load_policy(source, config.model_options, common.quantization_config(config.quantization))
    progress = callbacks.Progress(ctx)
    health = callbacks.watch(ctx, config.health, args, progress)
    trainer: Any = SFTTrainer(
        model=model,
        args=args,
        train_dataset=datasets.Dataset.from_list(examples),
        processing_class=tokenizer,
        peft_config=common.lora_config(config.lora),
        callbacks=[
            progress,
            health,
            callbacks.Checkpoints(ctx, health),
        ],
    )
    common.no_model_card(trainer)
    models.check_trainable(trainer.model, ctx)
    ctx.phase("training")
    started = time.monotonic()
    callbacks.train(trainer, last)
    seconds = time.monotonic() - started
    apart = losses(trainer.model, whole, rows, args.max_length, tokenizer.pad_token_id) if ctx.world_size == 1 else {}
    models.save_policy(trainer, source, ctx.outputs["model"], ctx, config.model_options)
    return {**metrics(progress.history, seconds), **apart}


def losses(model: Any, examples: list[Example], rows: list[Row], max_length: int, pad: int) -> dict[str, float]:
    """The trained model's loss on reasoning rows and on general ones, apart: of two mixed losses one can get worse
    unseen. Means over the tokens of at most LOSS_ROWS rows each, which the model was trained on. Draws no random
    numbers. In one process only (a sharded model would need all of them)."""
    import torch

    kinds: dict[str, list[Example]] = {}
    for example, row in zip(examples, rows, strict=True):
        name = "general" if row.get("kind") in WITHOUT_ANSWER else "reasoning"
        chosen = kinds.setdefault(name, [])
        if len(chosen) < LOSS_ROWS and len(example["input_ids"]) <= max_length:
            chosen.append(example)
    found: dict[str, float] = {}
    training = model.training
    model.eval()
    for name, chosen in kinds.items():
        total, tokens = 0.0, 0
        for start in range(0, len(chosen), LOSS_BATCH):
            batch = sorted(chosen, key=lambda e: len(e["input_ids"]))[start : start + LOSS_BATCH]
            width = max(len(e["input_ids"]) for e in batch)
            ids = torch.tensor([e["input_ids"] + [pad] * (width - len(e["input_ids"])) for e in batch])
            mask = torch.tensor([[1] * len(e["input_ids"]) + [0] * (width - len(e["input_ids"])) for e in batch])
            labels = torch.tensor([e["labels"] + [-100] * (width - len(e["labels"])) for e in batch])
            with torch.no_grad():
                logits = model(input_ids=ids.to(model.device), attention_mask=mask.to(model.device)).logits
            targets = labels[:, 1:].to(logits.device)
            total += torch.nn.functional.cross_entropy(
                logits[:, :-1].flatten(0, 1).float(), targets.flatten(), ignore_index=-100, reduction="sum"
            ).item()
            tokens += int((targets != -100).sum())
        if tokens:
            found[f"train/loss_{name}"] = total / tokens
    model.train(training)
    return found


def metrics(history: list[Row], seconds: float) -> dict[str, Any]:
    """Means over the last tenth of the logged steps."""
    logged = [row for row in history if "loss" in row]
    tail = logged[-max(1, len(logged) // 10) :]
    out: dict[str, Any] = {"train_seconds": round(seconds, 1), "steps": logged[-1]["step"] if logged else 0}
    for key, name in (("loss", "loss"), ("mean_token_accuracy", "token_accuracy"), ("accuracy", "pair_accuracy")):
        values = [row[key] for row in tail if key in row]
        if values:
            out[f"train/{name}"] = statistics.fmean(values)
    if logged and "num_tokens" in logged[-1]:
        out["tokens"] = logged[-1]["num_tokens"]
    return out
