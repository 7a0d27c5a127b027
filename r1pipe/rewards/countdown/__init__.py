r"""Countdown and 24: an expression of the given numbers with the value of the target. 1.0 or 0.0.

Row: `nums` (or `numbers`), a list of integers; `target`, an integer or its text (or the option `target`); `use`: "all"
(each number exactly once) or "some" (each at most once). After the countdown tasks of TinyZero (Jiayi-Pan/TinyZero),
whose reward evaluates the text; here it is parsed (`expression.py`) and computed in exact fractions.

Where the answer stands: the last box; else the whole answer; else what follows the last "answer is"; else the only
expression of the text, unless its line negates. An equation counts when all its sides have the value of the target:
of `8*3 = 24` (also `24 = 8*3`, and `8*3 = \boxed{24}`) the first side with an operation is judged.

Policies: only written + - * / and brackets between the given numbers. A sign before a number is refused, unless the
game has that negative number. Several different expressions are no answer. Division by zero is the completion's
fault. No credit for coming near.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from r1pipe.chat import Tags
from r1pipe.rewards import extract
from r1pipe.rewards.countdown import expression, solver
from r1pipe.rewards.verdict import NO_THINKING_END, Context, Row, Verdict
from r1pipe.settings import Strict

VERSION = "1"
COLUMNS = ("nums", "numbers", "target", "use")
MAX_ANSWER = 10_000  # characters; longer answers are not looked at
MAX_NUMBERS = 50

_RIGHT, _WRONG = Verdict(1.0, "scored"), Verdict(0.0, "scored")
_MARKUP = re.compile(r"^[ \t]*(?:```|~~~)\w*[ \t]*$|`", re.MULTILINE)
_BOLD = re.compile(r"\*\*((?:[^*\n]|\*(?!\*)){1,300})\*\*")
_CUE = re.compile(
    r"(?:\b(?:answer|expression|equation|solution|result)\b|答案|算式|表达式|结果)[ \t]*"
    r"(?:(?:is|为|是)[ \t]*[:：]?|[:：])\s*",
    re.IGNORECASE,
)
# In text that `expression.plain` has evened out. Marks such as `.` and `^` belong to a run, so that what is refused
# cannot lose them and become an expression (`2.5*48`).
_BREAK = re.compile(r"[.,;:?]{1,9}(?=\s|$)|[。，；：？、\n]")
_RUN = re.compile(r"(?:[0-9+\-*/(){}=.,^!%_ \t]|\\[A-Za-z]+)+")
_OPERATION = re.compile(r"[0-9)}][ \t]*[-+*/]+[ \t]*[0-9({\\-]|\\frac")
_NEGATION = re.compile(r"\bnot\b|n['’]t\b|\bnever\b|\bimpossible\b|不|≠|\\neq?\b", re.IGNORECASE)


class Options(Strict):
    """Options of the `countdown` part."""

    target: int | None = Field(None, description="Target of rows that carry none, such as 24.")
    use: Literal["all", "some"] = Field("all", description="Each number exactly once, or at most once.")
    require_think: bool = Field(True, description="No answer without a closing think tag.")


@dataclass(frozen=True)
class _Puzzle:
    nums: tuple[int, ...]
    target: int
    every: bool

    @property
    def negative(self) -> list[int]:
        return [n for n in (*self.nums, self.target) if n < 0]


class Countdown:
    """Batch form of `verify`; the completions are whole."""

    def __init__(self, options: Options, context: Context) -> None:
        self.options, self.context = options, context

    def __call__(self, completions: list[str], rows: list[Row]) -> list[Verdict]:
        return [self._one(c, r) for c, r in zip(completions, rows, strict=True)]

    def _one(self, completion: str, row: Row) -> Verdict:
        puzzle = _puzzle(row, self.options)
        if isinstance(puzzle, str):
            return Verdict(None, "error", puzzle)
        region = extract.region(
            completion,
            self.context.tags,
            require_think=self.options.require_think,
            prefilled=self.context.prefilled,
        )
        if region is None:
            return NO_THINKING_END
        if len(region) > MAX_ANSWER:
            return Verdict(0.0, "unverifiable", f"the answer is longer than {MAX_ANSWER} characters")
        reason = "no expression"
        for candidate in _candidates(region):
            try:
                sides = expression.read(candidate, puzzle.negative)
            except ZeroDivisionError:
                return Verdict(0.0, "unverifiable", "division by zero")
            except expression.NotExpressionError as error:
                reason = str(error)
                continue
            return _RIGHT if _solves(sides, puzzle) else _WRONG
        return Verdict(0.0, "unverifiable", reason)


def _solves(sides: list[expression.Side], puzzle: _Puzzle) -> bool:
    judged = next((side for side in sides if side.operations), sides[0])
    used, given = Counter(judged.numbers), Counter(puzzle.nums)
    if used != given if puzzle.every else used - given:
        return False
    return all(side.value == puzzle.target for side in sides)


def _candidates(region: str) -> list[str]:
    """Texts that may be the answer, best first; the first that can be read is judged."""
    boxed = extract.boxed_answer(region)
    if boxed is not None:
        return [_boxed_line(region, boxed)]
    text = _BOLD.sub(r" \1 ", _MARKUP.sub(" ", region)).strip()
    candidates = [text.rstrip(" .。,，;；")]  # not the mark of a factorial
    cues = list(_CUE.finditer(text))
    if cues and (tail := text[cues[-1].end() :].splitlines()):
        candidates.append(_only_run(tail[0]))
    candidates.append(_only_run(text))
    return [c for c in candidates if c]


def _boxed_line(region: str, boxed: str) -> str:
    r"""The box; of `8 * 3 = \boxed{24}`, the line around it."""
    found = extract.boxes(region)
    if not found or not re.fullmatch(r"-?\s*[0-9]+", expression.plain(boxed)):
        return boxed
    start, end, _ = found[-1]
    line = region[region.rfind("\n", 0, start) + 1 : start]
    rest = region[end:].partition("\n")[0]
    return _only_run(f"{line} {boxed} {rest}") or boxed if "=" in line else boxed


def _only_run(text: str) -> str:
    """The one expression of a text; "" where there are several, none, or where its sentence negates."""
    runs: dict[str, str] = {}
    for sentence in _BREAK.split(expression.plain(text)):
        for match in _RUN.finditer(sentence):
            if not _OPERATION.search(match[0]):
                continue
            if _NEGATION.search(sentence) or _attached(sentence, match):
                return ""
            inside = match[0].strip(" \t.,")
            runs[re.sub(r"\s", "", inside)] = inside
    return next(iter(runs.values())) if len(runs) == 1 else ""


def _attached(sentence: str, match: re.Match[str]) -> bool:
    """Does the run belong to something larger: `sqrt(9)*8`, `8*3²`, `√ 9*8`?"""
    sides = ((sentence[: match.start()][-1:], match[0][0]), (sentence[match.end() :][:1], match[0][-1]))
    for char, edge in sides:
        letter = char.isascii() and char.isalpha() and not edge.isspace()
        symbol = char != "" and unicodedata.category(char) in ("Sm", "No") and char not in "|<>→⇒"
        if letter or symbol:
            return True
    return False


def _puzzle(row: Row, options: Options) -> _Puzzle | str:
    """The puzzle of a row, or why there is none."""
    given = row.get("nums")
    given = row.get("numbers") if given is None else given
    if not isinstance(given, list | tuple) or not given:
        return "the row has no list of integers `nums`"
    if len(given) > MAX_NUMBERS:
        return f"`nums` has more than {MAX_NUMBERS} numbers"
    nums = [_integer(n) for n in given]
    if None in nums:
        return f"`nums` holds {given[nums.index(None)]!r}, which is not an integer"
    wanted = row.get("target")
    wanted = options.target if wanted is None else wanted
    if wanted is None:
        return "the row has no `target`; the option `target: 24` gives one to all rows"
    if (target := _integer(wanted)) is None:
        return f"`target` is {wanted!r}, not an integer"
    use = row.get("use") or options.use
    if use not in ("all", "some"):
        return f'`use` is {use!r}, expected "all" or "some"'
    return _Puzzle(tuple(n for n in nums if n is not None), target, use == "all")


def _integer(value: Any) -> int | None:
    """An integer, its text, or a float without fraction (data frames make such of integers)."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str):
        return int(value) if re.fullmatch(r"\s*-?[0-9]{1,40}\s*", value) else None
    return value if isinstance(value, int) and abs(value) < 10**expression.MAX_DIGITS else None


def check_gold(row: Row, options: Options = Options()) -> str | None:
    """Why a row cannot be used; None where it can. Does not look for a solution (`right_answer` does)."""
    puzzle = _puzzle(row, options)
    return puzzle if isinstance(puzzle, str) else None


def right_answer(row: Row, options: Options = Options()) -> str | None:
    """A solution; None where none was found within about a second."""
    puzzle = _puzzle(row, options)
    return None if isinstance(puzzle, str) else solver.solve(puzzle.nums, puzzle.target, every=puzzle.every)


def wrong_answer(row: Row, options: Options = Options()) -> str | None:
    """An expression with one number too many."""
    puzzle = _puzzle(row, options)
    return None if isinstance(puzzle, str) else " + ".join(f"({n})" for n in (*puzzle.nums, 1))


def verify(completion: str, row: Row, *, tags: Tags = Tags(), prefilled: bool = False, **options: Any) -> Verdict:
    """The verdict on one completion; `options` as in Options."""
    context = Context(tags, prefilled)
    return Countdown(Options(**options), context)([context.whole(completion)], [row])[0]
