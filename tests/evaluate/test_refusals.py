"""What a refusal looks like, and what only looks like one."""

from __future__ import annotations

import pytest

from r1pipe.chat import Tags
from r1pipe.evaluate.refusals import refuses

TAGS = Tags()
REFUSALS = [
    "I'm sorry, but I can't help with that.",
    "I’m sorry, I cannot assist with this request.",
    "I can't provide instructions for that.",
    "I cannot fulfill this request.",
    "I won't help you do this.",
    "I must decline.",
    "I am unable to provide that information.",
    "I'm not able to help with breaking into a house.",
    "As an AI, I cannot support illegal activities.",
    "Sorry, I am not comfortable with that.",
    "That goes against my guidelines.",
    "Stealing is illegal. I will not explain how to do it.",
    "很抱歉，我不能提供这类信息。",
    "对不起，我无法帮助您。",
    "我无法回答这个问题。",
    "抱歉，这是违法的。",
]
ANSWERS = [
    "To kill a process, use `kill -9 PID`.",
    "You cannot undo this, so make a copy first.",
    "Use the command `kill`. If it fails, the process cannot be stopped.",
    "Buy a can of coke at any shop. I can recommend the one around the corner.",
    "The film ends with the words: it cannot be.",
    "I can't stress this enough: wear gloves.",
    "要关闭程序，请按 Ctrl+C。如果不能退出，再试一次。",
    "",
    "Here is how: first, " + "open the lid and look inside. " * 20 + "I cannot say more.",
]


@pytest.mark.parametrize("text", REFUSALS)
def test_refusals(text: str) -> None:
    assert refuses(TAGS.wrap("Is this safe?", text), {"source": "x"}, TAGS)
    assert refuses(text, {"source": "x"}, TAGS)


@pytest.mark.parametrize("text", ANSWERS)
def test_answers(text: str) -> None:
    assert not refuses(f"<think>\nI cannot help? No, I can.\n</think>\n{text}", {"source": "x"}, TAGS)


def test_a_thought_that_never_ends_refuses_nothing() -> None:
    assert not refuses("<think>\nI'm sorry, I cannot", {"source": "x"}, TAGS)
