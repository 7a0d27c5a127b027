"""Length-scaled correctness of Yeo et al. 2025 (arXiv 2502.03373, section 4.2): a cosine between two values.

Right answers go from `r_c0` at length 0 to `r_cL` at `max_length` (shorter is better), wrong ones from `r_w0` to
`r_wL` (longer is better: think on); at `max_length` and above it is `r_exceed`. An answer that is partly right lies
between the two by its share. The paper takes 2, 1, -10, 0 and -10; the defaults here are of the size of other rewards.

Needs `correct` in the row: the score of the part that says whether the answer is right.
"""

from __future__ import annotations

import math
from typing import Any

from pydantic import Field, model_validator

from r1pipe.chat import Tags
from r1pipe.rewards.shape import length
from r1pipe.rewards.verdict import Context, Row, Verdict
from r1pipe.settings import Strict

VERSION = "1"


class Options(Strict):
    """Options of the `cosine` part."""

    max_length: int = Field(ge=1, description="The longest completion (max_completion_length of the trainer).")
    r_c0: float = Field(1.0, allow_inf_nan=False, description="Right, at length 0.")
    r_cL: float = Field(0.5, allow_inf_nan=False, description="Right, at max_length.")
    r_w0: float = Field(-1.0, allow_inf_nan=False, description="Wrong, at length 0.")
    r_wL: float = Field(-0.5, allow_inf_nan=False, description="Wrong, at max_length.")
    r_exceed: float = Field(-1.0, allow_inf_nan=False, description="At max_length and above.")
    unit: length.Unit = Field("auto", description=length.UNIT)

    @model_validator(mode="after")
    def _right_is_better(self) -> Options:
        if max(self.r_w0, self.r_wL) > min(self.r_c0, self.r_cL):
            raise ValueError("a wrong answer of some length would be worth more than a right one")
        return self


def scaled(count: int, correct: float, options: Options) -> float:
    """The reward of a completion of this length."""
    if count >= options.max_length:
        return options.r_exceed
    done = (1 - math.cos(math.pi * count / options.max_length)) / 2  # 0 at length 0, 1 at max_length
    right = options.r_c0 + done * (options.r_cL - options.r_c0)
    wrong = options.r_w0 + done * (options.r_wL - options.r_w0)
    return correct * right + (1 - correct) * wrong


class Cosine:
    """Length-scaled correctness of Yeo et al. 2025: right answers better when short, wrong ones when long."""

    def __init__(self, options: Options, context: Context) -> None:
        self.options, self.context = options, context

    def __call__(self, completions: list[str], rows: list[Row]) -> list[Verdict]:
        return [self._one(c, r) for c, r in zip(completions, rows, strict=True)]

    def _one(self, completion: str, row: Row) -> Verdict:
        correct = length.correctness(row)
        if isinstance(correct, Verdict):
            return correct
        try:
            found = length.length(completion, row, self.options.unit)
        except length.UnknownLengthError as error:
            return Verdict(None, "error", str(error))
        return Verdict(scaled(found.size, correct, self.options), "scored", found.remark)


def verify(completion: str, row: Row, *, tags: Tags = Tags(), prefilled: bool = False, **options: Any) -> Verdict:
    """The verdict on one completion; `options` as in Options."""
    context = Context(tags, prefilled)
    return Cosine(Options(**options), context)([context.whole(completion)], [row])[0]
