"""The one place that knows how a reasoning completion is written.

    <think>
    ...reasoning...
    </think>
    <answer>...</answer>

Prompts, SFT targets, the format reward, evaluation and `r1pipe chat` all build on `Tags`, so that a
reward can never wait for a tag that the prompt does not ask for (known-failures b8).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from r1pipe.errors import UserError

R1_SYSTEM_PROMPT = (
    "A conversation between User and Assistant. The Assistant first thinks about the reasoning process "
    "and then gives the answer. The reasoning is enclosed in {think_open} {think_close} and the answer in "
    "{answer_open} {answer_close}, like this: {think_open}\nreasoning\n{think_close}\n"
    "{answer_open}answer{answer_close}"
)


class Tags(BaseModel):
    """The four tags around reasoning and answer; plain text, never special tokens (decoding drops those)."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    think_open: str = Field("<think>", min_length=1)
    think_close: str = Field("</think>", min_length=1)
    answer_open: str = Field("<answer>", min_length=1)
    answer_close: str = Field("</answer>", min_length=1)

    @model_validator(mode="after")
    def _apart(self) -> Tags:
        """One tag inside another could never be counted apart: the format reward would be 0 for every completion."""
        tags = list(self.model_dump().values())
        for tag in tags:
            if sum(tag in other for other in tags) > 1:
                raise ValueError(f"the tag {tag!r} is part of another tag: {', '.join(map(repr, tags))}")
        return self

    def wrap(self, reasoning: str, answer: str) -> str:
        """A completion in the canonical form."""
        return (
            f"{self.think_open}\n{reasoning.strip()}\n{self.think_close}\n"
            f"{self.answer_open}{answer.strip()}{self.answer_close}"
        )

    def split(self, completion: str) -> Parts:
        """Thinking and answer of a completion, leniently: the *last* closing tag ends the thinking."""
        head, closed, tail = completion.rpartition(self.think_close)
        thinking = None
        if closed:
            thinking = head.split(self.think_open, 1)[-1].strip()
        region = tail if closed else completion
        answer = self._last_block(region)
        return Parts(thinking=thinking, answer=answer, after=region.strip(), closed=bool(closed))

    def _last_block(self, text: str) -> str | None:
        """The text of the last answer block, read from the left; None without one. Linear in the text."""
        found, at = None, 0
        while (start := text.find(self.answer_open, at)) >= 0:
            start += len(self.answer_open)
            end = text.find(self.answer_close, start)
            if end < 0:
                break
            found, at = text[start:end], end + len(self.answer_close)
        return found.strip() if found is not None else None


@dataclass(frozen=True)
class Parts:
    """`thinking` is None without a closing tag; `answer` None without an answer block; `after` is what follows
    the thinking (the whole text without one)."""

    thinking: str | None
    answer: str | None
    after: str
    closed: bool

    @property
    def final(self) -> str:
        """What a reader is shown: the answer block, else what follows the thinking."""
        return self.answer if self.answer is not None else self.after


class ChatConfig(BaseModel):
    """How conversations are rendered."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    template: str = Field(
        "model",
        description='"model" keeps the base model\'s chat template (with the system turn put before the first user '
        'turn where it has no system role); "builtin:r1" takes ours (ChatML, or "User: Assistant:" where the '
        "tokenizer does not know it; keeps the reasoning of earlier turns); else a path of a .jinja file.",
    )
    system_prompt: str | None = Field(
        None,
        description='Put before every conversation without a system turn; "builtin:r1" is the paper\'s, with '
        "the configured tags.",
    )
    tags: Tags = Tags()

    def system(self) -> str | None:
        """The system prompt with its tags filled in."""
        if self.system_prompt == "builtin:r1":
            return R1_SYSTEM_PROMPT.format(**self.tags.model_dump())
        return self.system_prompt

    def conversation(self, messages: list[dict[str, str]]) -> list[dict[str, str]]:
        """`messages` with the system prompt in front where there is none."""
        system = self.system()
        if system is None or (messages and messages[0]["role"] == "system"):
            return messages
        return [{"role": "system", "content": system}, *messages]


def template_digest(template: str | None) -> str | None:
    """Digest of a chat template's text; None without one."""
    return hashlib.sha256(template.encode()).hexdigest()[:16] if template else None


def render(tokenizer: Any, messages: list[dict[str, str]], **options: Any) -> str:
    """A conversation as text. Raises UserError where the template refuses it (a role that it does not know, turns
    that do not alternate, a fault of its own)."""
    return render_all(tokenizer, [messages], **options)[0]


def render_all(tokenizer: Any, conversations: Sequence[list[dict[str, str]]], **options: Any) -> list[str]:
    """Conversations as texts. Raises UserError for the first that the template refuses."""
    from jinja2.exceptions import TemplateError

    if not conversations:
        return []
    try:
        return tokenizer.apply_chat_template(list(conversations), tokenize=False, **options)
    except (TemplateError, TypeError, ValueError) as error:
        for conversation in conversations if len(conversations) > 1 else ():
            render(tokenizer, conversation, **options)
        roles = ", ".join(str(m.get("role")) for m in conversations[0])
        raise UserError(
            f"the chat template refuses a conversation of {roles}: {str(error)[:300]}",
            hint="chat.template: builtin:r1 takes every conversation; chat.system_prompt adds a system turn",
        ) from error


def prefilled_think(tokenizer: Any, tags: Tags) -> bool:
    """Does the generation prompt already open the thinking? Then completions start without the tag, and every
    reward must see it put back (known-failures b1)."""
    rendered = render(tokenizer, [{"role": "user", "content": "1+1?"}], add_generation_prompt=True)
    return rendered.rstrip().endswith(tags.think_open)
