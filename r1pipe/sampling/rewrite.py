"""Rewriting the CoT of samples that are right but not in the question's language (paper v2, B.3.2).

The answer and everything after the thinking stay as they are; the rewritten sample is judged again, by the same rules.
"""

from __future__ import annotations

import re
from typing import Any

from pydantic import Field, model_validator

from r1pipe.chat import Tags
from r1pipe.sampling.prompts import Prompt, key_of
from r1pipe.settings import EngineConfig, ModelConfig, SamplingConfig, Strict

Row = dict[str, Any]
PROMPT = """Rewrite the reasoning below in {language}. Keep every step, every number and every formula; change \
nothing but the language and the wording. Write only the rewritten reasoning.

Question:
{question}

Reasoning:
{reasoning}"""
NAMES = {
    "en": "English", "zh": "Chinese", "ja": "Japanese", "ko": "Korean", "ru": "Russian", "ar": "Arabic",
    "hi": "Hindi", "th": "Thai", "es": "Spanish", "fr": "French", "de": "German", "pt": "Portuguese",
    "it": "Italian", "vi": "Vietnamese",
}  # fmt: skip
_FENCE = re.compile(r"\A```\w*\n(.*)\n```\Z", re.DOTALL)


class Rewriter(Strict):
    """What rewrites a CoT into the question's language."""

    engine: EngineConfig = Field(EngineConfig(), description="Usually kind: server; a local engine needs `model`.")
    model: ModelConfig | None = Field(None, description="The model of a local engine: a folder.")
    sampling: SamplingConfig = Field(SamplingConfig(temperature=0.0, max_tokens=4096))
    reasons: list[str] = Field(
        ["language"], description="Samples dropped for these reasons are rewritten; they must be right.", min_length=1
    )
    prompt: str = Field(PROMPT, description="{language}, {question} and {reasoning} are filled in.")

    @model_validator(mode="after")
    def _check(self) -> Rewriter:
        if "{reasoning}" not in self.prompt:
            raise ValueError("rewriter.prompt: {reasoning} is not in it")
        if self.engine.kind not in ("server", "scripted") and self.model is None:
            raise ValueError("rewriter.model: a local engine needs one (or engine: {kind: server, url: ...})")
        if self.sampling.n != 1:
            raise ValueError("rewriter.sampling.n: one rewrite a sample")
        return self


def asks(samples: Any, rewriter: Rewriter, tags: Tags) -> list[Prompt]:
    """A prompt for each sample that a rewrite could cure. `samples`: (prompt, its samples) pairs."""
    found: dict[str, Prompt] = {}
    for prompt, rows in samples:
        for sample in rows:
            thinking = tags.split(sample["text"]).thinking
            if sample["reason"] not in rewriter.reasons or sample.get("right") is False or not thinking:
                continue
            conversation = [{"role": "user", "content": _fill(rewriter.prompt, prompt.row, thinking)}]
            # The answer belongs to the key: equal thinking may stand before different answers.
            key = key_of([*conversation, {"role": "assistant", "content": sample["text"]}])
            row = prompt.row | {"rewritten": sample["text"]}
            origin = (prompt.key, sample["index"])
            found.setdefault(key, Prompt(row, key, conversation, 1, 1, origin=origin))
    return list(found.values())


def _fill(template: str, row: Row, thinking: str) -> str:
    asked = next((m["content"] for m in reversed(row["messages"]) if m["role"] == "user"), "")
    language = NAMES.get(row.get("language") or "", row.get("language") or "the language of the question")
    values = {"language": language, "question": asked, "reasoning": thinking}
    return re.sub(r"\{(language|question|reasoning)\}", lambda m: values[m[1]], template)


def assemble(prompt: Prompt, answer: str, tags: Tags) -> str:
    """The completion with its CoT replaced by what the rewriter wrote (after its own thinking, out of its fence)."""
    written = tags.split(answer).final.strip()
    fenced = _FENCE.match(written)
    reasoning = fenced[1].strip() if fenced else written
    after = tags.split(prompt.row["rewritten"]).after
    return f"{tags.think_open}\n{reasoning}\n{tags.think_close}\n{after}"
