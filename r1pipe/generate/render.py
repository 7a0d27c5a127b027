"""From a conversation to prompt ids and back to text: the same for every engine that has a tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from r1pipe.chat import ChatConfig, prefilled_think, render, render_all
from r1pipe.errors import UserError
from r1pipe.generate.base import Ask, Conversation, Made, Sample


class Renderer:
    """Renders prompts with the model's own chat template; `prefix` is what the template prefills of a completion
    ("" where it prefills nothing) and every text starts with it again (known-failures b1)."""

    def __init__(self, tokenizer: Any, chat: ChatConfig) -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise UserError(
                f"the tokenizer of {getattr(tokenizer, 'name_or_path', 'the model')} has no chat template",
                hint='set chat.template: "builtin:r1" and run the step that prepares the base model again',
            )
        self.tokenizer = tokenizer
        self.chat = chat
        self.prefix = self._prefix()

    def _prefix(self) -> str:
        probe = self.chat.conversation([{"role": "user", "content": "1+1?"}])
        rendered = render(self.tokenizer, probe, add_generation_prompt=True)
        if not prefilled_think(self.tokenizer, self.chat.tags):
            return ""
        return rendered[rendered.rindex(self.chat.tags.think_open) :]

    def taken(self, asks: list[Ask]) -> tuple[list[Ask], Made]:
        """The asks whose conversation the template takes (some want user and assistant to alternate, or refuse a
        role); the missing samples of the others, skipped."""
        try:
            self._texts(asks)
        except UserError:
            pass
        else:
            return asks, []
        kept: list[Ask] = []
        made: Made = []
        for ask in asks:
            try:
                self._texts([ask])
            except UserError as error:
                made += [(ask, Sample("", 0, "skipped", index, error.message)) for index in ask.missing]
            else:
                kept.append(ask)
        return kept, made

    def _texts(self, asks: list[Ask]) -> list[str]:
        conversations = [self.chat.conversation(ask.conversation) for ask in asks]
        return render_all(self.tokenizer, conversations, add_generation_prompt=True)

    def prompts(self, conversations: list[Conversation]) -> list[list[int]]:
        """Token ids of each prompt, generation prompt included."""
        texts = render_all(
            self.tokenizer, [self.chat.conversation(c) for c in conversations], add_generation_prompt=True
        )
        # The template writes every special token itself: adding them again would double the BOS.
        return self.tokenizer(texts, add_special_tokens=False)["input_ids"] if texts else []

    def texts(self, ids: list[list[int]]) -> list[str]:
        """Texts of completions, special tokens dropped, the prefilled part put back."""
        if not ids:  # batch_decode([]) is [""]
            return []
        decoded = self.tokenizer.batch_decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return [self.prefix + text for text in decoded]


def load_tokenizer(model_dir: str | Path) -> Any:
    """The tokenizer of a checkpoint folder."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(model_dir))


def stop_ids(model_dir: str | Path | None, model: Any, tokenizer: Any) -> list[int]:
    """Ids that end a turn: those of the generation config, else the tokenizer's end-of-sequence token."""
    config = getattr(model, "generation_config", None)
    if config is None and model_dir is not None and (Path(model_dir) / "generation_config.json").exists():
        from transformers import GenerationConfig

        config = GenerationConfig.from_pretrained(str(model_dir))
    found = getattr(config, "eos_token_id", None)
    found = tokenizer.eos_token_id if found is None else found
    ids = [found] if isinstance(found, int) else list(found or [])
    if not ids:
        raise UserError(
            "neither generation_config.json nor the tokenizer names an end-of-turn token: no sample could end",
            hint="set eos_token_id in the model's generation_config.json",
        )
    return ids
