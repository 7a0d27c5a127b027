"""Templates that lose the reasoning or the end of a turn are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from r1pipe.chat import Tags
from r1pipe.errors import UserError
from r1pipe.training import model, template

CUTS = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{{ m.content.split('</think>')[-1] if m.role == 'assistant' else m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def test_ours_is_good(policy: Path) -> None:
    tokenizer = model.load_tokenizer(policy)
    assert template.check(tokenizer, Tags()) == tokenizer.convert_tokens_to_ids("<|im_end|>")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CUTS, "removes the reasoning"),
        (None, "no chat template"),
        ("{% for m in messages %}{{ m.content }}{% endfor %}", "ends an assistant turn with no token"),
    ],
)
def test_bad_ones(policy: Path, text: str | None, said: str) -> None:
    tokenizer = model.load_tokenizer(policy)
    tokenizer.chat_template = text
    with pytest.raises(UserError, match=said) as error:
        template.check(tokenizer, Tags())
    assert "builtin:r1" in str(error.value)


def test_padding_with_the_end_of_a_turn(policy: Path) -> None:
    tokenizer = model.load_tokenizer(policy)
    tokenizer.pad_token = "<|im_end|>"
    with pytest.raises(UserError, match="same token"):
        template.check(tokenizer, Tags())
