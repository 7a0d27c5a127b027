"""Language reward: every text ends soon, and a batch takes well under a second."""

from __future__ import annotations

import random
import time

import pytest

from r1pipe.rewards import language
from r1pipe.rewards.verdict import Context
from tests.rewards.test_language_sentences import sentences

N = 60_000
HOSTILE = {
    "dollars": "$" * N,
    "short formulas": "$x" * (N // 2),
    "double dollars": "$$a" * (N // 3),
    "open brackets": "\\[" * (N // 2),
    "one end": "\\[ab " * (N // 5) + "\\]",
    "environments": "".join(f"\\begin{{{chr(97 + i % 26)}{chr(97 + i // 26 % 26)}}}" for i in range(N // 10)),
    "ticks": "`a" * (N // 2),
    "fences": "```\n" * (N // 4),
    "tags": "<b " * (N // 3),
    "attributes": "<b" + " a=b" * (N // 4),
    "quotes": '<b a="' * (N // 6),
    "accents": "a" + "\u0315\u0300" * (N // 2),
    "underscores": "a_" * (N // 2),
    "digits": "a1" * (N // 2),
    "one word": "a" * N,
    "short words": "ab " * (N // 3),
    "spelled": "a " * (N // 2),
    "entities": "&#" * (N // 2),
    "\\text": "$" + "\\text{" * (N // 6),
    "comments": "```" + "/*" * (N // 2),
    "hashes": "```\n" + "# " * (N // 2),
    "hyphens": "a-" * (N // 2),
    "apostrophes": "a'" * (N // 2),
    "Han": "算" * N,
    "Han and kana": "算の" * (N // 2),
    "no width": "a\u200b" * (N // 2),
    "lines": "\n" * N,
    "answers": "</think>" + "<answer>" * (N // 8),
    "surrogates": "\ud800" * N,
    "anything": "".join(random.Random(0).choice("ab $`\\[]{}<>/_1\n\u200b算のя.") for _ in range(N)),
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in HOSTILE.items()])
def test_hostile_text_ends_soon(text):
    start = time.monotonic()
    for target in ("en", "zh"):
        language.verify(text, {"language": target})
    assert time.monotonic() - start < 5


def test_a_batch():
    random_ = random.Random(1)
    known = [s["text"] for s in sentences() if s["language"] in ("en", "es")]
    texts = [" ".join(random_.choice(known) for _ in range(30)) for _ in range(64)]
    reward = language.Language(language.Options(), Context())
    rows = [{"language": "en"}] * 64
    reward(texts[:1], rows[:1])  # the detector is loaded
    start = time.monotonic()
    reward(texts, rows)
    assert time.monotonic() - start < 3  # 0.3 s on an idle core
