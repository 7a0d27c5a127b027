"""What a chat template does with a conversation: does the reasoning survive, what ends a turn, does a training text
begin like the prompt that sampling writes? `prepare` is asked once, by the step that prepares the base model."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from r1pipe.chat import ChatConfig, Tags, render
from r1pipe.errors import UserError
from r1pipe.training import adapt, tryrender
from r1pipe.training.labels import IGNORED, encode, turn_end

_PROBE = "zq reasoning probe zq"
_SYSTEM = "zq system probe zq"
_ADVICE = "set chat.template: builtin:r1 (or the path of a template that keeps the whole assistant turn)"
_USER = {"role": "user", "content": "2+2?"}
_THINK = "<think>"


@dataclass
class Prepared:
    """The template to write, the token that ends a turn, and what a user should hear about them."""

    template: str
    end: int
    facts: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def prepare(tokenizer: Any, chat: ChatConfig, embeddings: int | None = None) -> Prepared:
    """The run's template, tried and checked. The tokenizer gets it, a pad token that ends nothing, and the end of a
    turn as its end token. `embeddings`: how many tokens the model knows; a tokenizer may have more (some classes of
    transformers add their own).

    Raises UserError where a template cannot be used (see `check`).
    """
    own = adapt.configured(chat.template, tokenizer)
    template = own if own is not None else adapt.default_of(tokenizer.chat_template)
    if template is None:
        raise UserError("the base model has no chat template", hint=_ADVICE)
    out = Prepared(template, -1, {"chat_template": chat.template, "system_role": "the template's"})
    frozen = adapt.freeze_day(template)
    if frozen != template:
        out.warnings.append(
            f"the chat template writes today's date into every prompt; it is frozen at {adapt.DAY:%d %b %Y}, so that "
            "the prompts of a run stay the same"
        )
        out.facts["frozen_day"] = f"{adapt.DAY:%Y-%m-%d}"
    out.template = _with_system(frozen, tokenizer, chat, out)
    tokenizer.chat_template = out.template
    probe = [_USER, _turn(chat.tags)]
    end = turn_end(tokenizer)
    if embeddings is not None and end is not None and end >= embeddings:
        raise UserError(
            f"the token {tokenizer.convert_ids_to_tokens(end)} that ends a turn has the id {end}, the model has "
            f"embeddings for {embeddings} tokens",
            hint="take the tokenizer that came with the model, or resize the model's embeddings",
        )
    pad = tokenizer.pad_token_id
    if pad is None or pad == end or (embeddings is not None and pad >= embeddings):
        tokenizer.pad_token = adapt.pad_token(tokenizer, end, [render(tokenizer, probe)], embeddings)
    out.end = check(tokenizer, chat.tags)
    if tokenizer.eos_token_id != out.end:
        adapt.set_eos(tokenizer, out.end, probe)
    if _SYSTEM not in render(tokenizer, [{"role": "system", "content": _SYSTEM}, _USER]):
        raise UserError("the chat template drops a system turn", hint=_ADVICE)
    bos = tokenizer.bos_token_id
    (first, *_) = tokenizer(render(tokenizer, [_USER]), add_special_tokens=False)["input_ids"]
    if adapt.begins_with_bos(tokenizer) and first != bos:
        out.warnings.append(
            f"the tokenizer begins a text with {tokenizer.bos_token}, the chat template does not: the model may never "
            "have seen such a text"
        )
    longer = render(tokenizer, [*probe, _USER])
    out.facts["earlier_reasoning"] = "kept" if _PROBE in longer else "dropped by the template"
    return out


def _turn(tags: Tags) -> dict[str, str]:
    return {"role": "assistant", "content": tags.wrap(_PROBE, "4")}


def _with_system(template: str, tokenizer: Any, chat: ChatConfig, out: Prepared) -> str:
    """The template as it is where system turns work in it; else with the system turn before the first user turn."""
    if adapt.is_ours(template) or all(_system_works(template, tokenizer, chat.tags)):
        return template
    out.facts["system_role"] = "put before the first user turn"
    if chat.system() is not None:
        out.warnings.append(
            "the chat template has no system role: the system prompt (chat.system_prompt) is put before the first "
            "user turn"
        )
    return adapt.fold_system(template)


def _system_works(template: str, tokenizer: Any, tags: Tags) -> tuple[bool, bool]:
    """Is a system turn shown, in a prompt and in a training text alike? Renders in a child with limits: this is the
    first time that anything is rendered with the template."""
    asked = [([_USER], True), ([_USER, _turn(tags)], False)]
    system = {"role": "system", "content": _SYSTEM}
    try:
        prompt, whole, with_system, whole_with_system = tryrender.render(
            template, tokenizer.special_tokens_map, asked + [([system, *turns], add) for turns, add in asked]
        )
    except tryrender.Unusable as error:
        raise UserError(f"the chat template cannot be used: {error}", hint=_ADVICE) from None
    if prompt is None or whole is None:
        raise UserError("the chat template refuses a user's question with an assistant's answer", hint=_ADVICE)
    shown = [text is not None and _SYSTEM in text and "2+2?" in text for text in (with_system, whole_with_system)]
    agree = not whole.startswith(prompt) or (whole_with_system or "").startswith(with_system or "")
    return all(shown), agree


def check(tokenizer: Any, tags: Tags) -> int:
    """Renders a probe conversation; returns the id of the token that ends a turn.

    Raises UserError where the template cuts the reasoning out (known-failures e6; R1's own templates do), where
    nothing ends a turn or the padding token does (e7), where prompts end with thinking that is closed already, where
    a training text does not begin like a prompt, or where the tokenizer loses the tags.
    """
    if not tokenizer.chat_template:
        raise UserError("the base model has no chat template", hint=_ADVICE)
    _check_tags(tokenizer, tags)
    text = render(tokenizer, [_USER, _turn(tags)])
    if _squeezed(tags.wrap(_PROBE, "4")) not in _squeezed(text):
        raise UserError(
            "the chat template removes the reasoning from the last assistant turn, so training never sees it",
            hint=_ADVICE,
        )
    end = turn_end(tokenizer)
    if end is None:
        raise UserError("the chat template ends an assistant turn with no token of its own", hint=_ADVICE)
    if tokenizer.pad_token_id == end:
        raise UserError("padding and the end of a turn are the same token", hint="give the tokenizer a pad token")
    _check_prompt(render(tokenizer, [_USER], add_generation_prompt=True), tags)
    (example,) = encode(tokenizer, [[_USER, _turn(tags)]])
    if not example.agrees:
        raise UserError(
            "a training text of the chat template does not begin with the prompt that sampling writes, so the model "
            "would be trained on one form and asked in another",
            hint=_ADVICE,
        )
    learned = [t for t in example.labels if t != IGNORED]
    if end not in learned or _PROBE not in tokenizer.decode(learned):
        raise UserError("the loss would not see the whole assistant turn of the chat template", hint=_ADVICE)
    return end


def _squeezed(text: str) -> str:
    """Without white space: some templates (Qwen3) lay the turn out anew."""
    return re.sub(r"\s+", "", text)


def _check_tags(tokenizer: Any, tags: Tags) -> None:
    """Decoding drops special tokens: a tag that is one would be gone before a reward reads it."""
    ids = tokenizer(tags.wrap(_PROBE, "4"), add_special_tokens=False)["input_ids"]
    text = tokenizer.decode(ids, skip_special_tokens=True)
    if lost := [tag for tag in tags.model_dump().values() if tag not in text]:
        raise UserError(
            f"the tokenizer drops {' '.join(lost)} when it decodes, so no reward could see them",
            hint="set other chat.tags, or make them ordinary tokens (special: false) in the base model's tokenizer",
        )


def _check_prompt(prompt: str, tags: Tags) -> None:
    """What the generation prompt has already written of the answer."""
    ending = prompt.rstrip()
    if ending.endswith(tags.think_close):
        raise UserError(
            "the chat template closes the thinking in the prompt, so the model could never reason",
            hint=_ADVICE,
        )
    if ending.endswith(_THINK) and tags.think_open != _THINK:
        raise UserError(
            f"the chat template opens the thinking with {_THINK}, chat.tags.think_open is {tags.think_open!r}",
            hint=f"set chat.tags to {_THINK} ..., or chat.template: builtin:r1",
        )
