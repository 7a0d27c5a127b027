"""Prompts and conversations: messages, ShareGPT, Alpaca, prompt and completion."""

from __future__ import annotations

from typing import Any

from r1pipe.chat import Tags
from r1pipe.data.adapters import golds
from r1pipe.data.adapters.problems import trace_with_reasoning
from r1pipe.data.adapters.turns import Message, conversation, reply, split
from r1pipe.data.rows import Row, What, is_ours
from r1pipe.data.values import Record, first, items, parsed, required, text


def asked(record: Record, tags: Tags) -> list[Message]:
    """The conversation of `messages`, else of `prompt`; a `system` column stands in front of it."""
    value = record.get("messages")
    if value is None:
        value = record.get("prompt")
    found = conversation(value if isinstance(parsed(value), list | tuple) else text(value) or "", tags)
    return with_system(record, found)


def with_system(record: Record, messages: list[Message]) -> list[Message]:
    system = first(record, "system", "system_prompt")
    if system is None or messages[0]["role"] == "system":
        return messages
    return [{"role": "system", "content": system}, *messages]


def answer_of(record: Record) -> Any:
    """The column of the response that holds something."""
    return next((record[n] for n in ("completion", "response") if record.get(n) is not None), None)


def _with_gold(record: Record, row: Row) -> list[Row]:
    if is_ours(record):  # what it says was read before, whatever marks are in it
        return [{**row, "gold": text(record["gold"])}]
    gold, column = golds.gold(record, text(record.get("kind")))
    return [{**row, "gold": gold, "gold_from": column}]


def messages(record: Record, what: What, tags: Tags) -> list[Row]:
    return _with_gold(record, split(asked(record, tags), what))


def mixture_of_thoughts(record: Record, what: What, tags: Tags) -> list[Row]:
    """Messages with a trace; the set that a row came from says what it is about."""
    row = split(asked(record, tags), what)
    origin = (text(record.get("source")) or "").lower()
    kind = "code" if "code" in origin else "math" if "math" in origin else "science" if "science" in origin else None
    return [{**row, "kind": kind} if what == "traces" and kind else row]


def sharegpt(record: Record, what: What, tags: Tags) -> list[Row]:
    """All turns, roles by name. A blank `system` is none."""
    turns = record.get("conversations")
    turns = record.get("conversation") if turns is None else turns
    return _with_gold(record, split(with_system(record, conversation(turns, tags)), what))


def alpaca(record: Record, what: What, tags: Tags) -> list[Row]:
    """`instruction`, the `input` it is about, `output`; earlier turns in `history` (pairs of texts)."""
    instruction = required(text(record.get("instruction")), "no_question")
    about = text(record.get("input"))
    turns: list[Message] = []
    for pair in items(record.get("history")) or ():
        for role, said in zip(("user", "assistant"), pair if isinstance(pair, list | tuple) else (), strict=False):
            turns.append({"role": role, "content": required(said, "empty_turn")})
    turns.append({"role": "user", "content": f"{instruction}\n\n{about}" if about else instruction})
    output = text(record.get("output"))
    if what == "traces" or output:
        output = trace_with_reasoning(record, required(output, "no_response"), tags)
        turns.append({"role": "assistant", "content": output})
    return [split(with_system(record, turns), what)]


def completion(record: Record, what: What, tags: Tags) -> list[Row]:
    """`prompt` and `completion` or `response`, as texts or messages."""
    messages = asked(record, tags)
    given = answer_of(record)
    if what == "traces" or given is not None:
        content = trace_with_reasoning(record, reply(given, tags), tags)
        messages = [*messages, {"role": "assistant", "content": content}]
    return _with_gold(record, split(messages, what))


def prompt(record: Record, what: What, tags: Tags) -> list[Row]:
    return _with_gold(record, split(asked(record, tags), what))
