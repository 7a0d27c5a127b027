# ruff: noqa: E501  lists of bombs
"""Completions of 100,000 characters made to be slow: each reward, and all else that reads model text, stays fast.

Time of this process is counted, not the clock: accuracy works in processes of its own with limits of its own, which
tests/rewards has.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from r1pipe.chat import Tags
from r1pipe.cli import terminal
from r1pipe.data import languages
from r1pipe.evaluate import refusals
from r1pipe.report import reflection, text
from r1pipe.rewards.scorefile import Scorer

N = 100_000
LIMIT_S = 1.5  # on a busy machine; a quadratic pattern takes minutes
UNITS = [
    "<think>", "</think>", "<answer>", "\\boxed{", "\\boxed{1}", "(", "[", "{", " ", "\n", "wait ", "1", "12,", "1.", "1/",
    "a ", "a-", "$", "\\[", "\\frac{1}{", "\\underbrace{", "9**", "^{", "`", "```\n", "**", "- a\n", "the answer is ", "not ",
    "or ", "答案是", "½", "“", "\x1b[", "\x1b]0;", "<|im_end|>", '{"a":', "ab cd ", "I cannot ", "\n\n",
]  # fmt: skip
ROWS: dict[str, dict[str, Any]] = {
    "accuracy": {"gold": "1/2"},
    "format": {},
    "language": {"language": "en"},
    "countdown": {"kind": "countdown", "nums": [3, 3, 8, 8], "target": 24},
    "choice": {"gold": "B", "kind": "choice", "choices": ["one", "two", "three"]},
    "exact": {"gold": "abc", "kind": "exact"},
    "number_list": {"gold": "[1, 2]", "kind": "number_list"},
    "json": {"gold": '{"a": 1}', "kind": "json"},
    "instructions": {
        "kind": "instructions",
        "instruction_id_list": ["punctuation:no_comma", "detectable_format:title", "startend:quotation",
                                "length_constraints:number_sentences", "detectable_format:number_bullet_lists"],
        "kwargs": [{}, {}, {}, {"relation": "at least", "num_sentences": 3}, {"num_bullets": 2}],
    },
}  # fmt: skip
SHAPES = {
    "whole": "{}",
    "answer": "<think>\nx\n</think>\n<answer>{}</answer>",
    "thinking": "<think>\n{}\n</think>\n<answer>1</answer>",
    "after": "<think>\nx\n</think>\n{} the answer is \\boxed{1}",
}


def bomb(unit: str, size: int = N) -> str:
    return (unit * (size // len(unit) + 1))[:size]


def spent(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def _rewards(reward: str, shapes: list[str], units: list[str]) -> None:
    scorer = Scorer(reward, {})
    list(scorer.score([{**ROWS[reward], "completion": "x"}]))  # imports are not counted
    slow = []
    for unit in units:
        for shape in shapes:
            record = {**ROWS[reward], "completion": SHAPES[shape].replace("{}", bomb(unit), 1)}
            seconds = spent(lambda record=record: list(scorer.score([record])))  # type: ignore[misc]
            if seconds > LIMIT_S:
                slow.append(f"{unit!r} as {shape}: {seconds:.1f} s")
    scorer.close()
    assert not slow


@pytest.mark.parametrize("reward", ROWS)
def test_rewards(reward: str) -> None:
    _rewards(reward, ["answer"], UNITS[::3])


@pytest.mark.slow
@pytest.mark.parametrize("reward", ROWS)
def test_rewards_on_every_bomb(reward: str) -> None:
    _rewards(reward, list(SHAPES), UNITS)


READERS: dict[str, Callable[[str], object]] = {
    "tags": Tags().split,
    "terminal": terminal.clean,
    "markup": terminal.safe,
    "report": text.visible,
    "language": languages.guess,
    "refusal": lambda said: refusals.refuses(said, {}, Tags()),
    "reflection": reflection.count,
}


@pytest.mark.parametrize("reader", READERS)
def test_readers(reader: str) -> None:
    slow = {unit: s for unit in UNITS if (s := spent(lambda unit=unit: READERS[reader](bomb(unit)))) > LIMIT_S}  # type: ignore[misc]
    assert not slow
