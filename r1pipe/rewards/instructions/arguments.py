"""The arguments (`kwargs`) of each instruction, under IFEval's names. Unknown keys and wrong types are refused."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from r1pipe.rewards import language
from r1pipe.settings import Strict

Relation = Literal["at least", "less than", "at most", "more than", "exactly"]


class Nothing(Strict):
    """No arguments."""


class Keywords(Strict):
    keywords: list[str] = Field(min_length=1)


class Frequency(Strict):
    keyword: str = Field(min_length=1)
    frequency: int = Field(ge=0)
    relation: Relation


class Forbidden(Strict):
    forbidden_words: list[str] = Field(min_length=1)


class Letter(Strict):
    letter: str = Field(min_length=1, max_length=1)
    let_frequency: int = Field(ge=0)
    let_relation: Relation


class Language(Strict):
    language: str

    @field_validator("language")
    @classmethod
    def _known(cls, code: str) -> str:
        if language.script_of(code) is None:
            raise ValueError(f"no script is known for the language {code!r}")
        return code


class Sentences(Strict):
    num_sentences: int = Field(ge=0)
    relation: Relation


class Paragraphs(Strict):
    num_paragraphs: int = Field(ge=1)


class Words(Strict):
    num_words: int = Field(ge=0)
    relation: Relation


class FirstWord(Strict):
    num_paragraphs: int = Field(ge=1)
    nth_paragraph: int = Field(ge=1)
    first_word: str = Field(min_length=1)

    @model_validator(mode="after")
    def _exists(self) -> FirstWord:
        if self.nth_paragraph > self.num_paragraphs:
            raise ValueError("nth_paragraph is more than num_paragraphs")
        return self


class Placeholders(Strict):
    num_placeholders: int = Field(ge=1)


class Postscript(Strict):
    postscript_marker: str = Field(min_length=1)


class Bullets(Strict):
    num_bullets: int = Field(ge=1)


class Highlights(Strict):
    num_highlights: int = Field(ge=1)


class Sections(Strict):
    section_spliter: str = Field(min_length=1)
    num_sections: int = Field(ge=1)


class Repeat(Strict):
    prompt_to_repeat: str = Field(min_length=1)


class Ending(Strict):
    end_phrase: str = Field(min_length=1)


class Capitals(Strict):
    capital_frequency: int = Field(ge=0)
    capital_relation: Relation
