"""What is sampled: one prompt once, with the number of samples that are wanted of it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field, field_validator

from r1pipe.chat import ChatConfig
from r1pipe.digest import value_digest
from r1pipe.generate.base import Ask, Conversation, sample_seeds
from r1pipe.settings import DataSpec, Strict

Row = dict[str, Any]

# The last user turn without punctuation, in lower case. What is left is a greeting, thanks, a farewell or "who are
# you": nobody thinks about those.
TRIVIAL = (
    r"(hi|hello|hey|greetings|good (morning|afternoon|evening|day|night)|bye|goodbye|see you|thanks|thank you)"
    r"( (again|there|all|everyone|so much|very much|a lot|a bunch))?",
    r"(how are you|who are you|what are you|what is your name|what s your name)( doing)?( today)?",
    r"(你好|您好|嗨|早上好|上午好|下午好|晚上好|晚安|谢谢|谢谢你|多谢|再见|拜拜|你是谁|你叫什么名字|你好吗)(啊|呀|吗|了)?",
    r"(こんにちは|こんばんは|おはよう|おはようございます|ありがとう|ありがとうございます|さようなら)",
    r"(안녕|안녕하세요|감사합니다|고마워|고맙습니다)",
    r"(hola|buenos días|buenas tardes|buenas noches|gracias|adiós|bonjour|bonsoir|salut|merci|au revoir)",
    r"(hallo|guten (morgen|tag|abend)|danke|tschüss|ciao|grazie|olá|obrigad[oa]|привет|здравствуйте|спасибо|пока)",
    r"(مرحبا|شكرا|السلام عليكم|नमस्ते|धन्यवाद|สวัสดี|ขอบคุณ|xin chào|cảm ơn)",
)


class Regenerate(Strict):
    """General prompts that the policy answers with a CoT (paper: B.3.3), verified by the rewards that apply to their
    kind. The CoT is taken off the answer to a trivial query."""

    data: list[DataSpec] = Field(description="Prompts, with or without a reference answer.", min_length=1)
    n: int = Field(1, ge=1, description="Samples a prompt; drawn as `sampling` says.")
    per_prompt: int = Field(1, ge=1, description="Most samples kept a prompt.")
    trivial: list[str] = Field(
        list(TRIVIAL),
        description="A query is trivial where one of these patterns fits all of it, in lower case and without "
        "punctuation. []: every answer keeps its CoT.",
    )

    @field_validator("trivial", mode="after")
    @classmethod
    def _compile(cls, value: list[str]) -> list[str]:
        for pattern in value:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is no pattern: {error}") from None
        return value


@dataclass(frozen=True, eq=False)
class Prompt:
    """A row whose prompt is sampled `n` times; at most `most` of the samples are kept. `key`: digest of the
    conversation as the policy sees it. `regenerated`: a general one; `plain`: its answer is kept without the CoT."""

    row: Row
    key: str
    conversation: Conversation
    n: int
    most: int
    regenerated: bool = False
    plain: bool = False
    origin: tuple[str, int] | None = None  # of a rewrite: the sample that is rewritten

    def ask(self, seed: int, have: frozenset[int]) -> Ask:
        """Seeds from (run seed, content of the prompt, index)."""
        (seeds,) = sample_seeds([self.conversation], self.n, seed)
        return Ask(self.key, self.conversation, tuple(seeds), have)


def key_of(conversation: Conversation) -> str:
    return value_digest(conversation)[:32]


def distinct(
    rows: Iterable[Row],
    chat: ChatConfig,
    n: int,
    most: int,
    trivial: Sequence[str] = (),
    *,
    regenerated: bool = False,
) -> list[Prompt]:
    """A prompt for each row; a prompt that comes again is left out (it would be sampled twice and pass the cap)."""
    found: dict[str, Prompt] = {}
    patterns = [re.compile(p) for p in trivial]
    for row in rows:
        conversation = chat.conversation(row["messages"])
        key = key_of(conversation)
        if key not in found:
            plain = is_trivial(row["messages"], patterns)
            found[key] = Prompt(row, key, conversation, n, most, regenerated, plain)
    return list(found.values())


def is_trivial(messages: Conversation, patterns: Sequence[re.Pattern[str]]) -> bool:
    """Does one of the patterns fit the whole last user turn of a conversation that has only this one?"""
    asked = [m["content"] for m in messages if m["role"] == "user"]
    if len(asked) != 1:
        return False
    letters = (" " if unicodedata.category(c)[0] in "PSC" else c for c in asked[0].lower())
    plain = " ".join("".join(letters).split())
    return any(pattern.fullmatch(plain) for pattern in patterns)


def conflicting(rows: Sequence[Row], chat: ChatConfig) -> int:
    """Prompts that come with more than one gold answer."""
    golds: dict[str, set[Any]] = {}
    for row in rows:
        golds.setdefault(key_of(chat.conversation(row["messages"])), set()).add(row.get("gold"))
    return sum(len(found) > 1 for found in golds.values())
