"""Soft over-length punishment of DAPO (arXiv 2503.14476, equation 13): 0.0 down to -1.0.

0 up to `max_length - cache`, then falling linearly to -1 at `max_length`, and -1 above. A completion that the
generator cut at `max_length` thus has -1.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from r1pipe.chat import Tags
from r1pipe.rewards.shape import length
from r1pipe.rewards.verdict import Context, Row, Verdict
from r1pipe.settings import Strict

VERSION = "1"


class Options(Strict):
    """Options of the `overlong` part."""

    max_length: int = Field(ge=1, description="Length from which the punishment is -1.")
    cache: int | None = Field(
        None, ge=0, description="Length over which it falls (null: a fifth of max_length, as DAPO)."
    )
    unit: length.Unit = Field("auto", description=length.UNIT)

    @model_validator(mode="after")
    def _fits(self) -> Options:
        if self.cache is not None and self.cache > self.max_length:
            raise ValueError(f"cache {self.cache} is more than max_length {self.max_length}")
        return self


def punishment(count: int, max_length: int, cache: int) -> float:
    """Equation 13."""
    if count > max_length:
        return -1.0
    over = count - (max_length - cache)
    return -over / cache if over > 0 else 0.0


class Overlong:
    """Soft over-length punishment of DAPO: 0 up to `max_length - cache`, then linearly down to -1."""

    def __init__(self, options: Options, context: Context) -> None:
        self.options, self.context = options, context

    def __call__(self, completions: list[str], rows: list[Row]) -> list[Verdict]:
        return [self._one(c, r) for c, r in zip(completions, rows, strict=True)]

    def _one(self, completion: str, row: Row) -> Verdict:
        given = self.options
        try:
            found = length.length(completion, row, given.unit)
        except length.UnknownLengthError as error:
            return Verdict(None, "error", str(error))
        cache = given.max_length // 5 if given.cache is None else given.cache
        return Verdict(punishment(found.size, given.max_length, cache), "scored", found.remark)


def verify(completion: str, row: Row, *, tags: Tags = Tags(), prefilled: bool = False, **options: Any) -> Verdict:
    """The verdict on one completion; `options` as in Options."""
    context = Context(tags, prefilled)
    return Overlong(Options(**options), context)([context.whole(completion)], [row])[0]
