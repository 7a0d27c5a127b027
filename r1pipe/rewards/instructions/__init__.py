"""Verifiable instructions: the share of them that an answer keeps ("at least 300 words", "no commas", "in JSON").

For prompts without one right answer. Rows in the shape of IFEval (Zhou et al. 2023, arXiv 2311.07911):
`instruction_id_list`, and `kwargs`, a list of mappings in the same order (nulls are dropped, as data frames add them).
All 25 instructions of IFEval; `checks.py` says what keeps each, `text.py` how words and sentences are counted.

Judged is the final answer, not the CoT (`whole: true`: the whole completion). Score: the share kept; with `strict`
1.0 where all are, else 0.0. An answer without words keeps nothing. An instruction that stands twice counts twice.
An unknown instruction or wrong `kwargs` are errors of the row.

Such checks see form, not sense: use it beside a reward that reads the answer (`helpful`, `judge`).
"""

from __future__ import annotations

from typing import Any

from pydantic import Field, ValidationError

from r1pipe.chat import Tags
from r1pipe.errors import nearest
from r1pipe.rewards import extract
from r1pipe.rewards.instructions import text
from r1pipe.rewards.instructions.checks import CHECKS, Check
from r1pipe.rewards.verdict import NO_THINKING_END, Context, Row, Verdict
from r1pipe.settings import Strict

VERSION = "1"
COLUMNS = ("instruction_id_list", "kwargs")
MAX_ANSWER = 100_000  # characters; longer answers are not looked at


class Options(Strict):
    """Options of the `instructions` part."""

    strict: bool = Field(False, description="1.0 only where every instruction is kept.")
    whole: bool = Field(False, description="Judge the whole completion, thinking and tags too.")
    require_think: bool = Field(True, description="No answer without a closing think tag.")


class BadRowError(ValueError):
    """The instructions of a row cannot be used; the message says why."""


def _read(row: Row) -> list[tuple[Check, Strict]]:
    """The checks of a row with their arguments. Raises BadRowError."""
    names, arguments = row.get("instruction_id_list"), row.get("kwargs")
    if not isinstance(names, list | tuple) or not names:
        raise BadRowError("the row has no `instruction_id_list`")
    if arguments is None:
        arguments = [{}] * len(names)
    if not isinstance(arguments, list | tuple) or len(arguments) != len(names):
        raise BadRowError(f"`kwargs` is not a list of {len(names)} mappings, one an instruction")
    return [_check(str(name), given) for name, given in zip(names, arguments, strict=True)]


def _check(name: str, given: Any) -> tuple[Check, Strict]:
    if name not in CHECKS:
        raise BadRowError(f'unknown instruction "{name}"{nearest(name, CHECKS)}')
    if given is not None and not isinstance(given, dict):
        raise BadRowError(f"kwargs of {name}: {given!r} is not a mapping")
    try:
        check = CHECKS[name]
        return check, check.arguments(**{k: v for k, v in (given or {}).items() if v is not None})
    except ValidationError as error:
        bullets = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise BadRowError(f"kwargs of {name}: {bullets}") from None


class Instructions:
    """Batch form of `verify`; the completions are whole."""

    def __init__(self, options: Options, context: Context) -> None:
        self.options, self.context = options, context

    def __call__(self, completions: list[str], rows: list[Row]) -> list[Verdict]:
        return [self._one(c, r) for c, r in zip(completions, rows, strict=True)]

    def _one(self, completion: str, row: Row) -> Verdict:
        try:
            checks = _read(row)
        except BadRowError as error:
            return Verdict(None, "error", str(error))
        answer = completion if self.options.whole else self._answer(completion)
        if answer is None:
            return NO_THINKING_END
        if len(answer) > MAX_ANSWER:
            return Verdict(0.0, "unverifiable", f"the answer is longer than {MAX_ANSWER} characters")
        if not text.has_words(answer):
            return Verdict(0.0, "unverifiable", "no answer")
        kept = sum(check.kept(answer, arguments) for check, arguments in checks)
        return Verdict(float(kept == len(checks)) if self.options.strict else kept / len(checks), "scored")

    def _answer(self, completion: str) -> str | None:
        return extract.region(
            completion,
            self.context.tags,
            require_think=self.options.require_think,
            prefilled=self.context.prefilled,
        )


def check_gold(row: Row) -> str | None:
    """Why the instructions of a row cannot be used; None where they can."""
    try:
        _read(row)
    except BadRowError as error:
        return str(error)
    return None


def wrong_answer(row: Row) -> str | None:
    """An answer without words keeps nothing. A right one takes a model."""
    return "..." if check_gold(row) is None else None


def verify(completion: str, row: Row, *, tags: Tags = Tags(), prefilled: bool = False, **options: Any) -> Verdict:
    """The verdict on one completion; `options` as in Options."""
    context = Context(tags, prefilled)
    return Instructions(Options(**options), context)([context.whole(completion)], [row])[0]
