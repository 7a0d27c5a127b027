"""Rows on their way into a trainer: what the template takes, lengths, and the order in which GRPO sees its prompts."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from r1pipe.chat import ChatConfig, render_all
from r1pipe.errors import UserError
from r1pipe.rewards.compose import COLUMNS
from r1pipe.stage import StageContext
from r1pipe.training.model import context_length

Row = dict[str, Any]


def render(tokenizer: Any, conversations: Sequence[list[dict[str, str]]], **options: Any) -> list[list[int]]:
    """Token ids of conversations, through the chat template. No BOS is added: the template writes its own."""
    texts = render_all(tokenizer, conversations, **options)
    return tokenizer(texts, add_special_tokens=False)["input_ids"] if texts else []


def taken(
    rows: list[Row], tokenizer: Any, chat: ChatConfig, ctx: StageContext, what: Literal["rows", "prompts"]
) -> list[Row]:
    """The rows whose conversation the chat template takes (some want user and assistant to alternate, or refuse a
    role), as a training text and as a prompt. The others are dropped and counted. To be asked where the template
    refused all of them together."""
    kept, first = [], ""
    for row in rows:
        conversation = chat.conversation(row["messages"])
        try:
            if what == "rows":
                render_all(tokenizer, [conversation])
            prompt = conversation[:-1] if what == "rows" else conversation
            render_all(tokenizer, [prompt], add_generation_prompt=True)
        except UserError as error:
            first = first or error.message
        else:
            kept.append(row)
    if not kept:
        raise UserError(f"{first} (and so all of {len(rows)} {what})", hint="set chat.template: builtin:r1")
    ctx.count(f"{what}/refused_by_template", len(rows) - len(kept))
    ctx.warn(f"{len(rows) - len(kept)} of {len(rows)} {what} are left out: {first}")
    return kept


def fit_prompts(
    rows: list[Row], tokenizer: Any, chat: ChatConfig, source: Path, new_tokens: int, ctx: StageContext
) -> list[Row]:
    """The rows whose prompt the template takes and that leave `new_tokens` of the context. The others are dropped and
    counted: TRL does not cut a long prompt, and a model past its context writes noise."""
    options = {"add_generation_prompt": True}
    try:
        ids = render(tokenizer, [chat.conversation(r["messages"]) for r in rows], **options)
    except UserError:
        rows = taken(rows, tokenizer, chat, ctx, "prompts")
        ids = render(tokenizer, [chat.conversation(r["messages"]) for r in rows], **options)
    context = context_length(source)
    if context is None or not rows:
        return rows
    if new_tokens >= context:
        raise UserError(
            f"trainer.max_completion_length {new_tokens} leaves no room for a prompt: the context is {context} tokens",
            hint="lower trainer.max_completion_length",
        )
    limit = context - new_tokens
    lengths = [len(prompt) for prompt in ids]
    kept = [row for row, length in zip(rows, lengths, strict=True) if length <= limit]
    if len(kept) < len(rows):
        ctx.count("prompts/too_long", len(rows) - len(kept))
        ctx.warn(
            f"{len(rows) - len(kept)} of {len(rows)} prompts are longer than {limit} tokens (context {context} - "
            f"max_completion_length {new_tokens}) and are left out"
        )
    if not kept:
        raise UserError(
            f"none of {len(rows)} prompts fits: the shortest has {min(lengths)} tokens, {limit} are left of the "
            f"context of {context} after {new_tokens} for the completion",
            hint="lower trainer.max_completion_length, or shorten the prompts",
        )
    ctx.fact("longest_prompt_tokens", max(n for n in lengths if n <= limit))
    return kept


def endless(rows: list[Row], n: int, seed: int) -> list[Row]:
    """`n` rows: the rows shuffled, then shuffled anew, and so on. The order is that of `seed` alone."""
    out: list[Row] = []
    turn = 0
    while len(out) < n:
        again = list(rows)
        random.Random(f"{seed}/{turn}").shuffle(again)
        out += again
        turn += 1
    return out[:n]


def columns(rows: list[Row], chat: ChatConfig) -> list[Row]:
    """Rows as TRL takes them: `prompt` and the columns that rewards read. Arrow needs one type a column, so what only
    some rewards read goes as one JSON text."""
    return [
        {
            "prompt": chat.conversation(row["messages"]),
            **{name: row.get(name) for name in COLUMNS},
            "extra": json.dumps(row["extra"]) if row.get("extra") else None,
        }
        for row in rows
    ]
