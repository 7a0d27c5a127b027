"""From the shapes that people's datasets have to rows: one small adapter a shape, tried in the order of ADAPTERS.

An adapter says by column names whether it knows the shape, and converts one record into the fields of a row. A
record that cannot be used raises `Drop(reason)`; the loader counts reasons. A new shape is one function here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from r1pipe.chat import Tags
from r1pipe.data.rows import Row, What

Record = dict[str, Any]
GOLDS = ("gold", "answer", "solution")
# Columns that only some rewards read; they travel in the row's `extra`.
EXTRAS = (
    "nums", "numbers", "target", "use", "choices", "tests", "time_limit_s", "verification_info",
    "instruction_id_list", "kwargs",
)  # fmt: skip
# Kinds of row that a reward judges by something else than a gold answer, or not for being right.
WITHOUT_GOLD = frozenset({"general", "safety", "instructions", "countdown", "code"})
ROLES = ("system", "user", "assistant", "tool")


class Drop(Exception):
    """A record that cannot become a row; its text is the reason, counted as data/dropped/<reason>."""


@dataclass(frozen=True)
class Adapter:
    """`needs`: groups of column names, one of each must be there."""

    name: str
    uses: tuple[What, ...]
    needs: tuple[tuple[str, ...], ...]
    convert: Callable[[Record, What, Tags], Row]

    def matches(self, columns: set[str], what: What) -> bool:
        return what in self.uses and all(columns & set(group) for group in self.needs)


def text(value: Any) -> str | None:
    """An answer as text, digits kept; None for null and blank. True is "True", never "1"; a list gets commas."""
    if value is None:
        return None
    if isinstance(value, list | tuple):
        parts = [t for t in map(text, value) if t]
        return ", ".join(parts) or None
    return str(value).strip() or None


def kind_of(extra: Record) -> str | None:
    """The kind that the extra columns of a row speak of; None where they speak of none."""
    if "instruction_id_list" in extra:
        return "instructions"
    if "tests" in extra or "verification_info" in extra:
        return "code"
    if "target" in extra and ("nums" in extra or "numbers" in extra):
        return "countdown"
    return None


def first(record: Record, *names: str) -> str | None:
    """The first of the columns that is not empty."""
    return next((t for n in names if (t := text(record.get(n)))), None)


def conversation(value: Any, tags: Tags) -> list[dict[str, str]]:
    """Messages with known roles and text contents; `reasoning_content` goes back between the tags."""
    if isinstance(value, str):
        return [{"role": "user", "content": _required(value, "no_question")}]
    if not isinstance(value, list) or not value:
        raise Drop("no_question")
    out = []
    for turn in value:
        role, content = (turn.get("role"), turn.get("content")) if isinstance(turn, dict) else (None, None)
        if role not in ROLES:
            raise Drop("unknown_role")
        if not isinstance(content, str):
            raise Drop("content_not_text")
        reasoning = turn.get("reasoning_content")
        if role == "assistant" and reasoning:
            content = f"{tags.think_open}\n{reasoning.strip()}\n{tags.think_close}\n{content.lstrip()}"
        out.append({"role": role, "content": content})
    return out


def response(value: Any) -> str:
    """An assistant's text, given as a text or as messages that end with it."""
    if isinstance(value, list):
        value = value[-1].get("content") if value and isinstance(value[-1], dict) else None
    return _required(value, "no_response")


def _required(value: Any, reason: str) -> str:
    found = value.strip() if isinstance(value, str) else None
    if not found:
        raise Drop(reason)
    return found


def _turns(messages: list[dict[str, str]], what: What) -> Row:
    """Prompt rows end with a user turn (a last answer becomes the reference), traces with an assistant turn."""
    if what == "traces":
        while messages and messages[-1]["role"] != "assistant":  # a last user turn carries no target
            messages = messages[:-1]
        if len(messages) < 2:
            raise Drop("no_response")
        return {"messages": messages}
    reference = None
    if messages[-1]["role"] == "assistant":
        reference, messages = messages[-1]["content"], messages[:-1]
    if not messages or messages[-1]["role"] != "user":
        raise Drop("no_question")
    return {"messages": messages} | ({"reference": reference} if reference else {})


def _messages(record: Record, what: What, tags: Tags) -> Row:
    return _turns(conversation(record["messages"], tags), what) | {"gold": _gold(record)}


def _completion(record: Record, what: What, tags: Tags) -> Row:
    answer = record.get("completion") if record.get("completion") is not None else record.get("response")
    messages = [*conversation(record["prompt"], tags), {"role": "assistant", "content": response(answer)}]
    return _turns(messages, what) | {"gold": _gold(record)}


def _prompt(record: Record, what: What, tags: Tags) -> Row:
    return _turns(conversation(record["prompt"], tags), what) | {"gold": _gold(record)}


def gsm8k_gold(answer: str) -> str | None:
    """The number after the last `####`, without commas; None where there is none."""
    found = re.findall(r"####[ \t]*([^\n]*)", answer)
    number = re.fullmatch(r"[-+]?\$?\s*([\d,]*\.?\d+)\.?", found[-1].strip()) if found else None
    if not number or not number[1].strip(","):
        return None
    return ("-" if found[-1].strip().startswith("-") else "") + number[1].replace(",", "")


def gold_of(answer: str) -> str | None:
    """The gold answer of an `answer` or `solution` column: after `####`, else the last \\boxed{}, else a short
    single line as it is; None for a worked text that marks no answer."""
    if "####" in answer:
        return gsm8k_gold(answer)
    from r1pipe.rewards.extract import last_boxed

    return last_boxed(answer) or (answer if "\n" not in answer and len(answer) <= 200 else None)


def _gold(record: Record) -> str | None:
    """The first of the gold columns that says an answer."""
    texts = (text(record.get(n)) for n in GOLDS)
    return next((g for t in texts if t and (g := gold_of(t))), None)


def _problem(record: Record, what: What, tags: Tags) -> Row:
    question = first(record, "question", "problem")
    if question is None:
        raise Drop("no_question")
    gold = _gold(record)
    marked = (t for n in GOLDS if (t := text(record.get(n))) and "####" in t)
    worked = next(marked, None) or first(record, "solution")
    user = {"role": "user", "content": question}
    if what == "prompts":
        return {"messages": [user], "gold": gold} | ({"reference": worked} if worked else {})
    if gold is None:
        raise Drop("no_gold")
    if worked is None:
        raise Drop("no_response")
    reasoning = re.sub(r"<<[^<>]*>>", "", worked.split("####")[0]).strip()  # GSM8K's calculator marks
    return {"messages": [user, {"role": "assistant", "content": tags.wrap(reasoning, gold)}], "gold": gold}


def _pair(record: Record, what: What, tags: Tags) -> Row:
    chosen, rejected = response(record["chosen"]), response(record["rejected"])
    if chosen == rejected:
        raise Drop("no_preference")
    prompt = record.get("messages") or record.get("prompt")
    if prompt is None and isinstance(record["chosen"], list):
        prompt = record["chosen"][:-1]
    return _turns(conversation(prompt, tags), "prompts") | {"chosen": chosen, "rejected": rejected}


def _label(record: Record, what: What, tags: Tags) -> Row:
    label = str(record["label"]).strip().lower()
    if label not in ("0", "1", "true", "false", "safe", "unsafe"):
        raise Drop("no_label")
    answer = record.get("response") if record.get("response") is not None else record.get("completion")
    prompt = record.get("messages") or record.get("prompt")
    return _turns(conversation(prompt, tags), "prompts") | {
        "response": response(answer),
        "label": int(label in ("1", "true", "safe")),
    }


_PROMPT = ("messages", "prompt")
_ANSWER = ("response", "completion")
ADAPTERS: tuple[Adapter, ...] = (
    Adapter("labels", ("labels",), (_PROMPT, _ANSWER, ("label",)), _label),
    Adapter("pairs", ("pairs",), (("chosen",), ("rejected",)), _pair),
    Adapter("messages", ("prompts", "traces"), (("messages",),), _messages),
    Adapter("prompt-completion", ("prompts", "traces"), (("prompt",), ("completion", "response")), _completion),
    Adapter(
        "problem-answer",
        ("prompts", "traces"),
        (("question", "problem"), GOLDS),
        _problem,
    ),
    Adapter("prompt", ("prompts",), (("prompt",),), _prompt),
)


def choose(columns: set[str], what: What) -> Adapter | None:
    """The first adapter that knows the shape."""
    return next((a for a in ADAPTERS if a.matches(columns, what)), None)


def expected(what: What) -> str:
    """The shapes known for a use, for messages."""
    return "; ".join(" + ".join("|".join(g) for g in a.needs) for a in ADAPTERS if what in a.uses)
