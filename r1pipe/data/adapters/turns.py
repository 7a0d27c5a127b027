"""Conversations as people write them: roles by any name, contents under any key, reasoning in a field of its own."""

from __future__ import annotations

from typing import Any

from r1pipe.chat import Tags
from r1pipe.data.rows import Row, What
from r1pipe.data.values import Drop, parsed, required

Message = dict[str, str]

_SPELLINGS = {
    "system": "system developer context instructions",
    "user": "user human usr prompter customer",
    "assistant": "assistant gpt chatgpt bot ai model llm bing bard claude chatbot function_call tool_call",
    "tool": "tool function observation function_response function_result tool_response tool_result ipython",
}
ROLES = {spelling: role for role, spellings in _SPELLINGS.items() for spelling in spellings.split()}
_ROLE_KEYS = ("role", "from", "speaker", "author")
_CONTENT_KEYS = ("content", "value", "text", "message")
_REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")


def role_of(name: Any) -> str | None:
    """The role that a name stands for: `human` is the user, `gpt-4` an assistant; None for an unknown one."""
    if not isinstance(name, str):
        return None
    name = name.strip().lower()
    return ROLES.get(name) or ("assistant" if name.startswith(("gpt", "claude-")) else None)


def conversation(value: Any, tags: Tags) -> list[Message]:
    """Messages with known roles and text contents; a plain text is one question.

    Reasoning in a field of its own goes between the tags. Blank system turns are left out. Drops: no_question,
    unknown_role, content_not_text, empty_turn (one before the last), starts_with_assistant.
    """
    value = parsed(value)
    if isinstance(value, str):
        return [{"role": "user", "content": required(value, "no_question")}]
    if not isinstance(value, list | tuple) or not value:
        raise Drop("no_question")
    found = [m for turn in value if (m := _message(turn, tags)) is not None]
    if any(not m["content"].strip() for m in found[:-1]):
        raise Drop("empty_turn")
    spoken = [m["role"] for m in found if m["role"] != "system"]
    if not spoken:
        raise Drop("no_question")
    if spoken[0] == "assistant":
        raise Drop("starts_with_assistant")
    return found


def _message(turn: Any, tags: Tags) -> Message | None:
    if not isinstance(turn, dict):
        raise Drop("unknown_role")
    role = role_of(next((turn[k] for k in _ROLE_KEYS if turn.get(k) is not None), None))
    if role is None:
        raise Drop("unknown_role")
    content = _content(next((turn[k] for k in _CONTENT_KEYS if turn.get(k) is not None), None))
    reasoning = next((t for k in _REASONING_KEYS if isinstance(t := turn.get(k), str) and t.strip()), None)
    if content is None:
        raise Drop("content_not_text")
    if role == "system" and not content.strip():
        return None
    if role == "assistant" and reasoning:
        content = with_reasoning(reasoning, content, tags)
    return {"role": role, "content": content}


def _content(value: Any) -> str | None:
    """A text, or the texts of a list of text parts; None where a part is no text (an image)."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list | tuple) or not value:
        return None
    parts = [part.get("text") if isinstance(part, dict) else part for part in value]
    texts = [part for part in parts if isinstance(part, str)]
    return "\n".join(texts) if len(texts) == len(parts) else None


def with_reasoning(reasoning: str, content: str, tags: Tags) -> str:
    """An assistant's turn of reasoning and answer."""
    return f"{tags.think_open}\n{reasoning.strip()}\n{tags.think_close}\n{content.lstrip()}"


def reply(value: Any, tags: Tags) -> str:
    """An assistant's text, given as a text or as messages that end with it. Raises Drop("no_response")."""
    value = parsed(value)
    if isinstance(value, list | tuple):
        last = value[-1] if value else None
        if not isinstance(last, dict):
            raise Drop("no_response")
        message = _message(last, tags)
        if message is None or message["role"] != "assistant":
            raise Drop("no_response")
        value = message["content"]
    return required(value, "no_response")


def split(messages: list[Message], what: What) -> Row:
    """The row of a conversation: traces end with an assistant's turn, everything else with a user's; an answer behind
    that becomes the reference."""
    if what == "traces":
        while messages and messages[-1]["role"] != "assistant":  # a last user turn carries no target
            messages = messages[:-1]
        if len(messages) < 2 or not messages[-1]["content"].strip():
            raise Drop("no_response")
        return {"messages": messages}
    reference = None
    if messages[-1]["role"] == "assistant":
        reference, messages = messages[-1]["content"].strip(), messages[:-1]
    if not messages or messages[-1]["role"] not in ("user", "tool") or not messages[-1]["content"].strip():
        raise Drop("no_question")
    return {"messages": messages, "reference": reference or None}
