"""Reward models of the alignment stage: one logit of a sequence classifier, squashed to [0, 1].

`helpful` judges the final answer only (what a reader is shown), `harmless` the whole response with its CoT: the
paper's 3.1. The score is sigmoid(logit - center). A harmless model is trained point-wise (1 safe, 0 unsafe), so its
center is 0; a pairwise helpful model fixes differences of logits only: `center` moves its scale, 0 keeps it.

A response without an end of its thinking has no final answer: `helpful` scores it 0.0, unverifiable. The prompt is
judged as it stands in the row's `messages` (TRL's prompts have the configured system prompt, as in training).
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from pydantic import Field

from r1pipe.errors import UserError
from r1pipe.rewards.verdict import NO_THINKING_END, Context, Row, Verdict
from r1pipe.settings import Strict

VERSION = "1"


class Options(Strict):
    """Options of the `helpful` and `harmless` parts."""

    center: float = Field(0.0, description="Taken from the logit before the sigmoid.")
    batch_size: int = Field(64, ge=1, description="Responses judged together.")
    max_length: int | None = Field(
        None, ge=8, description="Most tokens (null: what the model takes); the end is kept."
    )
    device: str | None = Field(None, description='"cpu", "cuda", ... (null: a GPU where there is one).')


class RewardModel:
    """A sequence classifier with one logit, from a folder. Loaded at the first use.

    `probe` is a response that the chat template must render whole.
    """

    def __init__(self, path: Path, options: Options, *, probe: str | None = None) -> None:
        self.path, self.options, self.probe = Path(path), options, probe
        self._model: Any = None
        self._tokenizer: Any = None

    def load(self) -> None:
        """Loads model and tokenizer. Raises UserError where they cannot serve as a reward model."""
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        if not (self.path / "config.json").is_file():
            raise UserError(f"there is no reward model in {self.path}", hint="run the reward-models step")
        device = self.options.device or ("cuda" if torch.cuda.is_available() else "cpu")
        with torch.random.fork_rng():  # when the model is loaded must not change what the trainer samples
            tokenizer = AutoTokenizer.from_pretrained(self.path)
            model, info = AutoModelForSequenceClassification.from_pretrained(
                self.path, dtype="auto", use_safetensors=True, output_loading_info=True
            )
        if model.config.num_labels != 1 or info["missing_keys"]:
            found = f"{model.config.num_labels} labels" if model.config.num_labels != 1 else "no trained score head"
            raise UserError(f"{self.path} is no reward model: expected one logit, found {found}")
        if not tokenizer.chat_template:
            raise UserError(
                f"the tokenizer in {self.path} has no chat template", hint="save one with the reward model"
            )
        if tokenizer.pad_token_id is None:
            tokenizer.pad_token = tokenizer.eos_token
        model.config.pad_token_id = tokenizer.pad_token_id
        tokenizer.padding_side, tokenizer.truncation_side = "right", "left"
        self._tokenizer, self._model = tokenizer, model.to(device).eval()
        if self.probe and self.probe not in self._render([{"role": "user", "content": "a question"}], self.probe):
            raise UserError(
                f"the chat template in {self.path} drops the reasoning of the response that is to be judged",
                hint='train the reward models with `chat.template: "builtin:r1"`',
            )

    @property
    def max_length(self) -> int:
        """Most tokens that are judged."""
        longest = getattr(self._model.config, "max_position_embeddings", None) or 32_768
        return min(longest, self._tokenizer.model_max_length, self.options.max_length or longest)

    def _render(self, messages: list[dict[str, str]], response: str) -> str:
        conversation = [*messages, {"role": "assistant", "content": response}]
        return self._tokenizer.apply_chat_template(conversation, tokenize=False)

    def logits(self, pairs: list[tuple[list[dict[str, str]], str]]) -> list[tuple[float, str]]:
        """Per (prompt messages, response), in order: the logit, and a remark where the text was cut to what the model
        takes. Batches are sorted by length."""
        import torch

        if self._model is None:
            self.load()
        texts = [self._render(messages, response) for messages, response in pairs]
        ids = [self._tokenizer(t, add_special_tokens=False)["input_ids"] for t in texts]
        most = self.max_length
        remarks = [f"cut: {len(i)} tokens, judged the last {most}" if len(i) > most else "" for i in ids]
        ids = [i[-self.max_length :] for i in ids]
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
        result = [0.0] * len(ids)
        for start in range(0, len(order), self.options.batch_size):
            batch = order[start : start + self.options.batch_size]
            inputs = self._tokenizer.pad({"input_ids": [ids[i] for i in batch]}, return_tensors="pt")
            with torch.inference_mode():
                logits = self._model(**inputs.to(self._model.device)).logits[:, 0].float().tolist()
            for index, logit in zip(batch, logits, strict=True):
                result[index] = logit
        return list(zip(result, remarks, strict=True))


class _Preference:
    """Verdicts of a reward model on what `_judged` gives it."""

    def __init__(self, path: Path, options: Options | None = None, context: Context | None = None) -> None:
        self.options, self.context = options or Options(), context or Context()
        self.model = RewardModel(path, self.options, probe=self._probe())

    def _probe(self) -> str | None:
        return None

    def _judged(self, completion: str) -> str | None:
        raise NotImplementedError

    def __call__(self, completions: list[str], rows: list[Row]) -> list[Verdict]:
        """The completions are whole; rows carry the prompt under `messages`."""
        judged = [self._judged(c) for c in completions]
        asked = [i for i, text in enumerate(judged) if text]
        logits = self.model.logits([(rows[i]["messages"], judged[i] or "") for i in asked]) if asked else []
        verdicts = [NO_THINKING_END if text is None else Verdict(0.0, "unverifiable", "empty") for text in judged]
        for index, (logit, remark) in zip(asked, logits, strict=True):
            if math.isfinite(logit):
                score = 1 / (1 + math.exp(-max(-60.0, min(60.0, logit - self.options.center))))
                verdicts[index] = Verdict(score, "scored", remark)
            else:
                verdicts[index] = Verdict(None, "error", f"the reward model said {logit}")
        return verdicts


class HelpfulReward(_Preference):
    """Judges the final answer only: the answer block, else what follows the thinking."""

    def _judged(self, completion: str) -> str | None:
        parts = self.context.tags.split(completion)
        return parts.final.strip() if parts.closed else None


class HarmlessReward(_Preference):
    """Judges the whole response, CoT included."""

    def _judged(self, completion: str) -> str | None:
        return completion.strip()

    def _probe(self) -> str | None:
        return self.context.tags.wrap("some reasoning", "an answer")
