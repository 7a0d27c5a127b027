"""What a chat template does with an assistant's turn: does the reasoning survive, and what ends the turn?"""

from __future__ import annotations

from typing import Any

from r1pipe.chat import Tags
from r1pipe.errors import UserError

_PROBE = "zq reasoning probe zq"
_ADVICE = "set chat.template: builtin:r1 (or the path of a template that keeps the whole assistant turn)"


def check(tokenizer: Any, tags: Tags) -> int:
    """Renders a probe conversation; returns the id of the token that ends a turn.

    Raises UserError where the template cuts the reasoning out (known-failures e6; R1's own templates do), where
    nothing ends a turn, or where the padding token does (e7).
    """
    if not tokenizer.chat_template:
        raise UserError("the base model has no chat template", hint=_ADVICE)
    messages = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": tags.wrap(_PROBE, "4")}]
    text = tokenizer.apply_chat_template(messages, tokenize=False)
    longer = tokenizer.apply_chat_template([*messages, {"role": "user", "content": "and 3+3?"}], tokenize=False)
    for rendered, where in ((text, "the last assistant turn"), (longer, "earlier assistant turns")):
        if tags.wrap(_PROBE, "4") not in rendered:
            if where == "earlier assistant turns":
                continue  # costs nothing in single-turn training
            raise UserError(f"the chat template removes the reasoning from {where}, so training never sees it",
                            hint=_ADVICE)  # fmt: skip
    end = turn_end(tokenizer)
    if end is None:
        raise UserError("the chat template ends an assistant turn with no token of its own", hint=_ADVICE)
    if tokenizer.pad_token_id == end:
        raise UserError("padding and the end of a turn are the same token", hint="give the tokenizer a pad token")
    return end


def turn_end(tokenizer: Any) -> int | None:
    """The first token after an assistant's content."""
    messages = [{"role": "user", "content": "?"}, {"role": "assistant", "content": _PROBE}]
    tail = tokenizer.apply_chat_template(messages, tokenize=False).rpartition(_PROBE)[2].strip()
    if not tail:
        return None
    ids = tokenizer(tail, add_special_tokens=False)["input_ids"]
    special = set(tokenizer.all_special_ids)
    return ids[0] if ids and (ids[0] in special or len(ids) == 1) else None
