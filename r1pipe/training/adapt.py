"""A model's chat template made fit for a run: ours where that is asked for, else its own with two faults mended.

- **No system role** (Gemma raises; some templates drop the turn, or show it only while the user speaks last): the
  system turn is put before the first user turn, by the template itself, so that SFT, GRPO, every engine and the
  exported model agree.
- **The day in the prompt** (`strftime_now`, Llama 3.2): frozen, or tomorrow's prompts are not today's.
"""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

from r1pipe.chat import render
from r1pipe.errors import UserError
from r1pipe.resources import data_dir

FOLD = (
    '{%- if messages | length > 1 and messages[0].role == "system" and messages[1].role == "user" -%}'
    '{%- set messages = [{"role": "user", "content": messages[0].content + "\\n\\n" + messages[1].content}]'
    " + messages[2:] -%}{%- endif %}"
)
DAY = datetime.date(2024, 7, 26)  # what Llama's templates fall back to
CHATML = ("<|im_start|>", "<|im_end|>")
PADS = ("<|endoftext|>", "<|finetune_right_pad_id|>", "<pad>", "[PAD]", "<|pad|>", "<|PAD_TOKEN|>", "<|fim_pad|>")
_SPARE = re.compile(r"pad|reserved|unused|dummy|placeholder", re.IGNORECASE)
_BOS = "{{- bos_token }}"
_NOW = re.compile(r"strftime_now\(\s*(?:\"([^\"]*)\"|'([^']*)')\s*\)")
_PLAIN = Path(__file__).with_name("plain.jinja")


def configured(name: str, tokenizer: Any) -> str | None:
    """The text of `chat.template`; None keeps the model's."""
    if name == "model":
        return None
    if name == "builtin:r1":
        return _ours(tokenizer)
    path = Path(name)
    if not path.is_file():
        raise UserError(f"chat.template: there is no file {path.absolute()}", hint="model, builtin:r1, or a .jinja")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UserError(f"chat.template: {path.absolute()} is no text in UTF-8", hint="a .jinja file") from None


def _ours(tokenizer: Any) -> str:
    """ChatML where the tokenizer knows its tokens; else the paper's "User: Assistant:", ended by the model's own end
    of text: a new token would have an embedding that was never trained."""
    vocabulary = tokenizer.get_vocab()
    if all(token in vocabulary for token in CHATML):
        text = _chatml()
    elif tokenizer.eos_token is None:
        raise UserError(
            f"chat.template: builtin:r1 needs a token that ends a turn: the tokenizer has no {' and '.join(CHATML)} "
            "and no end-of-text token",
            hint="give the base model's tokenizer an eos_token",
        )
    else:
        text = _PLAIN.read_text(encoding="utf-8")
    return _BOS + text if begins_with_bos(tokenizer) else text


def _chatml() -> str:
    return (data_dir() / "tiny-base" / "chat_template.jinja").read_text(encoding="utf-8")


def is_ours(template: str) -> bool:
    """Is it one of ours, as it is? Then there is nothing to try out or to mend."""
    return template.removeprefix(_BOS) in (_chatml(), _PLAIN.read_text(encoding="utf-8"))


def begins_with_bos(tokenizer: Any) -> bool:
    """Does the tokenizer itself begin every text with the token for that? Such a model was never without it."""
    return tokenizer.bos_token_id is not None and tokenizer("x")["input_ids"][:1] == [tokenizer.bos_token_id]


def default_of(template: Any) -> str | None:
    """One template: of several named ones the default."""
    if isinstance(template, dict):
        if "default" not in template:
            raise UserError(
                f"the model has several chat templates ({', '.join(sorted(template))}) and none is the default",
                hint="set chat.template to builtin:r1 or to a .jinja file with one of them",
            )
        return template["default"]
    return template or None


def fold_system(template: str) -> str:
    """The template, for a model without a system role."""
    return FOLD + template


def freeze_day(template: str) -> str:
    """The template with a fixed day instead of today's."""
    return _NOW.sub(lambda m: f'"{DAY.strftime(m[1] if m[1] is not None else m[2])}"', template)


def pad_token(tokenizer: Any, end: int | None, rendered: list[str], embeddings: int | None = None) -> str:
    """A token to pad with that ends no turn and is in no conversation (`rendered`): one made for it, a reserved one,
    else one that is at most at the edge of a text. Raises UserError where there is none with an embedding."""
    vocabulary = {t: n for t, n in tokenizer.get_vocab().items() if embeddings is None or n < embeddings}
    own = {token.content for token in tokenizer.added_tokens_decoder.values()} | set(tokenizer.all_special_tokens)
    free = sorted(
        (token for token in own if vocabulary.get(token, end) != end and not any(token in text for text in rendered)),
        key=lambda token: vocabulary[token],
    )
    edges = [t for t in (tokenizer.unk_token, tokenizer.eos_token, tokenizer.bos_token) if t]
    known = [token for token in PADS if token in vocabulary]
    for name in (*known, *(t for t in free if _SPARE.search(t)), *edges):
        if vocabulary.get(name, end) != end:
            return name
    raise UserError(
        "the tokenizer has no token that could pad: padding with the end of a turn would hide it from the loss",
        hint="add a pad token to the base model's tokenizer",
    )


def set_eos(tokenizer: Any, end: int, conversation: list[dict[str, str]]) -> None:
    """A base ends documents, not turns (known-failures e7): its end token becomes that of a turn, unless the template
    writes that token (Phi-3) and would then write another text."""
    before, own = render(tokenizer, conversation), tokenizer.eos_token
    tokenizer.eos_token = tokenizer.convert_ids_to_tokens(end)
    if render(tokenizer, conversation) != before:
        tokenizer.eos_token = own
