"""Reward models: one logit of a sequence classifier, squashed to [0, 1].

helpful       a model that a step trained, on the final answer only (what a reader is shown): the paper's 3.1.
harmless      such a model on the whole response with its CoT.
reward_model  any model, by folder or by hub id and commit; `judges` says on what.

The score is sigmoid(logit - center). A harmless model is trained point-wise (1 safe, 0 unsafe), so its center is 0; a
pairwise model fixes differences of logits only: `center` moves its scale, 0 keeps it. `scale: raw` gives
logit - center, without bounds.

A response without an end of its thinking has no final answer: 0.0, unverifiable. The prompt is judged as it stands in
the row's `messages` (TRL's prompts have the configured system prompt, as in training). Only safetensors are read, and
no code that ships with a model is run.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from r1pipe.chat import Tags
from r1pipe.digest import checkpoint_files, files_digest, remembered_file_digest
from r1pipe.errors import UserError
from r1pipe.rewards import extract
from r1pipe.rewards.verdict import NO_THINKING_END, Context, Row, Verdict
from r1pipe.settings import Strict

VERSION = "1"
COLUMNS: tuple[str, ...] = ()


class Options(Strict):
    """Options of the `helpful` and `harmless` parts."""

    center: float = Field(0.0, description="Taken from the logit before the sigmoid.")
    batch_size: int = Field(64, ge=1, description="Responses judged together.")
    max_length: int | None = Field(
        None, ge=8, description="Most tokens (null: what the model takes); the end is kept."
    )
    device: str | None = Field(None, description='"cpu", "cuda", ... (null: a GPU where there is one).')


class ModelOptions(Options):
    """Options of the `reward_model` part."""

    path: str = Field(description="Folder of a sequence classifier with one logit, or a hub id (owner/name).")
    revision: str | None = Field(None, description="Commit of a hub model.")
    judges: Literal["answer", "response"] = Field(
        "answer", description="The final answer, or the whole response with its reasoning."
    )
    require_think: bool = Field(True, description="judges: answer: no answer without a closing think tag.")
    scale: Literal["sigmoid", "raw"] = Field("sigmoid", description="sigmoid: 0 to 1. raw: the logit less `center`.")

    @property
    def hub(self) -> bool:
        """A hub id, not a folder."""
        looks = not self.path.startswith((".", "/", "~")) and self.path.count("/") == 1
        return looks and not Path(self.path).is_dir()

    @model_validator(mode="after")
    def _pinned(self) -> ModelOptions:
        if self.hub and not self.revision:
            raise ValueError(f"{self.path} is no folder here, and a hub model needs a pinned `revision` (a commit)")
        if self.revision and not self.hub:
            raise ValueError(f"`revision` belongs to a hub id (owner/name), and {self.path} is a folder")
        return self


class RewardModel:
    """A sequence classifier with one logit, from a folder or (with a revision) the hub. Loaded at the first use.

    `probe` is a response that the chat template must render whole.
    """

    def __init__(self, path: Path, options: Options, *, revision: str | None = None, probe: str | None = None) -> None:
        self.path, self.options, self.revision, self.probe = Path(path), options, revision, probe
        self._model: Any = None
        self._tokenizer: Any = None

    def load(self) -> None:
        """Loads model and tokenizer. Raises UserError where they cannot serve as a reward model."""
        import torch
        from safetensors import SafetensorError
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        if self.revision is not None:
            self.path, self.revision = fetch(str(self.path), self.revision), None
        if not (self.path / "config.json").is_file():
            raise UserError(
                f"there is no reward model in {self.path}",
                hint="run the reward-models step, or look at rewards.reward_model.options.path",
            )
        device = self.options.device or ("cuda" if torch.cuda.is_available() else "cpu")
        try:
            with torch.random.fork_rng():  # when the model is loaded must not change what the trainer samples
                tokenizer = AutoTokenizer.from_pretrained(self.path, trust_remote_code=False)
                model, info = AutoModelForSequenceClassification.from_pretrained(
                    self.path, dtype="auto", use_safetensors=True, trust_remote_code=False, output_loading_info=True
                )
        except (
            OSError,
            ValueError,
            SafetensorError,
        ) as error:  # no safetensors, own code, a kind without a classifier, a broken file
            first = str(error).strip().split("\n")[0][:300]
            raise UserError(
                f"{self.path} cannot be loaded as a reward model: {first}",
                hint="a sequence classifier of transformers with its weights in safetensors",
            ) from error
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
                hint='train it with `chat.template: "builtin:r1"`, or let it judge the answer only',
            )

    @property
    def loaded(self) -> bool:
        return self._model is not None

    def digest(self) -> str:
        """Digest of the model's files, weights included."""
        return files_digest((p.name, remembered_file_digest(p)) for p in checkpoint_files(self.path))[:16]

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


def fetch(name: str, revision: str) -> Path:
    """The folder of a hub model at a commit: safetensors, configuration and tokenizer, never pickles or code."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    from r1pipe.training.hub import ALLOWED

    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=ALLOWED))
    except LocalEntryNotFoundError as error:
        raise UserError(
            f"the reward model {name} at {revision} is not in the local cache, and the hub cannot be reached",
            hint="go online, download it beforehand, or set rewards.reward_model.options.path to a folder",
        ) from error
    except (HfHubHTTPError, HFValidationError, OSError) as error:
        raise UserError(
            f"the reward model {name} at {revision} cannot be had: {str(error).strip().splitlines()[0][:300]}",
            hint="look at path and revision in rewards.reward_model.options",
        ) from error


class _Preference:
    """Verdicts of a reward model on what `_judged` gives it."""

    raw = False  # the logit itself

    def __init__(
        self,
        path: Path,
        options: Options | None = None,
        context: Context | None = None,
        *,
        revision: str | None = None,
    ) -> None:
        self.options, self.context = options or Options(), context or Context()
        self.model = RewardModel(path, self.options, revision=revision, probe=self._probe())

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
                verdicts[index] = Verdict(self._score(logit - self.options.center), "scored", remark)
            else:
                verdicts[index] = Verdict(None, "error", f"the reward model said {logit}")
        return verdicts

    def _score(self, logit: float) -> float:
        return logit if self.raw else 1 / (1 + math.exp(-max(-60.0, min(60.0, logit))))


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


class ModelReward(_Preference):
    """Any reward model; `judges` says whether it sees the final answer or all."""

    def __init__(self, options: ModelOptions, context: Context) -> None:
        self.settings, self.raw = options, options.scale == "raw"
        path = Path(options.path)
        super().__init__(path if options.hub else path.expanduser(), options, context, revision=options.revision)

    def _judged(self, completion: str) -> str | None:
        if self.settings.judges == "response":
            return completion.strip()
        return extract.region(
            completion,
            self.context.tags,
            require_think=self.settings.require_think,
            prefilled=self.context.prefilled,
        )

    def _probe(self) -> str | None:
        if self.settings.judges == "answer":
            return None
        return self.context.tags.wrap("some reasoning", "an answer")

    @staticmethod
    def reads(options: ModelOptions) -> str | None:
        """Digest of the folder, for the fingerprint of a step (a hub id is pinned by its revision)."""
        folder = Path(options.path).expanduser()
        if not options.hub and not (folder / "config.json").is_file():
            raise UserError(f"there is no reward model in {folder.absolute()}", hint="correct the option `path`")
        return None if options.hub else RewardModel(folder, options).digest()

    def facts(self) -> dict[str, Any]:
        """Which model it was, for the manifest; the digest once it was loaded."""
        known = self.settings.model_dump(include={"path", "revision", "judges", "scale"})
        return {**known, "digest": self.model.digest() if self.model.loaded else None}


def verify(completion: str, row: Row, *, tags: Tags = Tags(), prefilled: bool = False, **options: Any) -> Verdict:
    """The verdict of `reward_model` on one completion. Loads the model: build a ModelReward for more than one."""
    context = Context(tags, prefilled)
    return ModelReward(ModelOptions(**options), context)([context.whole(completion)], [row])[0]
