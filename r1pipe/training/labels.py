"""Conversations to token ids and labels. The loss is on the assistant's turns, with the token that ends them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from r1pipe.chat import render, render_all

Conversation = list[dict[str, str]]
_PROBE = "zq turn probe zq"
_MARKED = re.compile(r"\{%-?\s*generation\s*-?%\}")
IGNORED = -100


@dataclass
class Encoded:
    """`labels` are the ids, or IGNORED where there is no loss. `turn` is the text that the template wrote after the
    prompt of the last assistant turn. `agrees`: the text begins, token by token, with the prompt that sampling
    writes. `unseen`: earlier assistant turns without loss."""

    input_ids: list[int]
    labels: list[int]
    turn: str
    agrees: bool
    unseen: int = 0


def turn_end(tokenizer: Any) -> int | None:
    """The first token after an assistant's content; None where that is no token of its own."""
    tail = render(tokenizer, [{"role": "user", "content": "?"}, {"role": "assistant", "content": _PROBE}])
    tail = tail.rpartition(_PROBE)[2].strip()
    if not tail:
        return None
    ids = tokenizer(tail, add_special_tokens=False)["input_ids"]
    own = set(tokenizer.all_special_ids) | set(tokenizer.added_tokens_decoder)
    return ids[0] if ids and (ids[0] in own or len(ids) == 1) else None


def encode(tokenizer: Any, conversations: Sequence[Conversation]) -> list[Encoded]:
    """Each conversation, which ends with an assistant's turn. The template must take them all."""
    if not conversations:
        return []
    texts = render_all(tokenizer, conversations)
    prompts = render_all(tokenizer, [c[:-1] for c in conversations], add_generation_prompt=True)
    prompt_ids = tokenizer(prompts, add_special_tokens=False)["input_ids"]
    turns = [t.removeprefix(p) if t.startswith(p) else t[_common(t, p) :] for t, p in zip(texts, prompts, strict=True)]
    end = turn_end(tokenizer)
    masks: list[list[int]] | None = None
    if _marks_the_end(tokenizer, end):
        encoded = tokenizer.apply_chat_template(
            list(conversations), tokenize=True, return_dict=True, return_assistant_tokens_mask=True
        )
        whole, masks = encoded["input_ids"], encoded["assistant_masks"]
    else:
        whole = tokenizer(texts, add_special_tokens=False)["input_ids"]
    out = []
    for n, (ids, prompt) in enumerate(zip(whole, prompt_ids, strict=True)):
        agrees = ids[: len(prompt)] == prompt
        if masks and (agrees or not texts[n].startswith(prompts[n])):
            labels = [t if m else IGNORED for t, m in zip(ids, masks[n], strict=True)]
            out.append(Encoded(ids, labels, turns[n], agrees))
            continue
        # No marks in the template: the loss is on what the last turn adds to the generation prompt.
        if not agrees and texts[n].startswith(prompts[n]):
            ids = _split(tokenizer, ids, prompt, turns[n])
        start = _common(ids, prompt)
        stop = next((i + 1 for i in range(len(ids) - 1, start - 1, -1) if ids[i] == end), len(ids))
        labels = [IGNORED] * start + ids[start:stop] + [IGNORED] * (len(ids) - stop)
        unseen = sum(m["role"] == "assistant" for m in conversations[n][:-1])
        out.append(Encoded(ids, labels, turns[n], start == len(prompt), unseen))
    return out


def _common(a: Sequence[Any], b: Sequence[Any]) -> int:
    """How many leading items are the same."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _split(tokenizer: Any, joint: list[int], prompt: list[int], turn: str) -> list[int]:
    """Prompt and turn tokenized apart, as sampling has them: one token of the whole text lies across the border. The
    joint ids where that cannot be. A tokenizer may put a space before a text (Llama 2): then the turn is tokenized
    after another character."""
    text = tokenizer.decode(joint)
    for before in ("", *"\nx0]"):
        lead, ids = tokenizer([before, before + turn], add_special_tokens=False)["input_ids"]
        if ids[: len(lead)] == lead and tokenizer.decode(prompt + ids[len(lead) :]) == text:
            return prompt + ids[len(lead) :]
    return joint


def _marks_the_end(tokenizer: Any, end: int | None) -> bool:
    """Does the template mark assistant turns, with what ends them? (SmolLM3's marks leave the end out.)"""
    if not _MARKED.search(tokenizer.chat_template or ""):
        return False
    probe = [{"role": "user", "content": "?"}, {"role": "assistant", "content": _PROBE}]
    encoded = tokenizer.apply_chat_template(probe, tokenize=True, return_dict=True, return_assistant_tokens_mask=True)
    marked = [t for t, m in zip(encoded["input_ids"], encoded["assistant_masks"], strict=True) if m]
    return end in marked and _PROBE in tokenizer.decode(marked)
