r"""A list of numbers: every number of the gold answer, no other, each exactly equal. 1.0 or 0.0.

Numbers are read by `numbers.parse` (fractions, mixed numbers, decimals, percent, units) and compared by
`numbers.same`. Separators: comma, semicolon, line break, "and", "or", `、`; white space where there is no other.
Brackets around the list, `x =` before a number, bullets and list numbers do not matter. A comma between digits may
group thousands or separate: an answer is right when one of the readings is.

Gold: a list, or its text. By default the order counts; `ordered: false` for sets of solutions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic import Field

from r1pipe.chat import Tags
from r1pipe.rewards import extract, numbers, rules
from r1pipe.rewards.answers import stated
from r1pipe.rewards.numbers import Quantity
from r1pipe.rewards.verdict import Context, Row, Verdict

VERSION = "1"
MAX_ITEMS = 300

_BRACKETS = {"[": "]", "(": ")", "{": "}"}
_WORD = re.compile(r",?\s?(?:\b(?:and|or)\b|\\text\s?\{\s*(?:and|or)\s*\}|和|与|及|&)\s?", re.IGNORECASE)
_SPACED = re.compile(r"[;\n、]|,(?=\s|\\[,;: ]|$)")
_ASSIGNED = re.compile(r"^[A-Za-z](?:_\{?\w{1,3}\}?)?\s*=\s*")
_VERB = re.compile(r"\b(?:is|are)\b|[:：是为]")  # of a sentence: `The roots are 1 and 2.`
_BULLET = re.compile(r"\s*(?:[-*•]|\d{1,3}[.)])\s+(?=\S)")


class Options(stated.AnswerOptions):
    """Options of the `number_list` part."""

    ordered: bool = Field(True, description="The order counts (false: a multiset).")


class NumberList(stated.AnswerVerifier):
    """A list of numbers: every number of the gold answer, no other, each exactly equal."""

    options: Options

    def gold(self, row: Row) -> list[Quantity]:
        return _gold(row)

    def judge(self, region: str, gold: list[Quantity]) -> Verdict:
        read = False
        texts = stated.statements(region)
        if extract.boxed_answer(region) is None:
            texts.append(_VERB.split(region.rpartition("\n")[2])[-1])
        for text in texts:
            for found in _readings(text):
                if _equal(gold, found, self.options.ordered):
                    return stated.RIGHT
                read = True
            if read:
                break
        return stated.WRONG if read else Verdict(0.0, "unverifiable", "no list of numbers")


def _gold(row: Row) -> list[Quantity]:
    gold = row.get("gold")
    if isinstance(gold, list | tuple):
        found: list[Quantity] | None = _parsed([_item(g) for g in gold])
    else:
        found = next(_readings(rules.gold_text(_item(gold))), None)
    if not found:
        raise stated.BadGoldError(f"the gold answer {str(gold)[:40]!r} is no list of numbers")
    return found


def _item(value: Any) -> str:
    return "" if value is None or isinstance(value, bool) else str(value)


def _parsed(items: list[str]) -> list[Quantity] | None:
    """Each item as a number; None where one is not, or there are too many."""
    if not items or len(items) > MAX_ITEMS:
        return None
    found = []
    for item in items:
        quantity = numbers.parse(_ASSIGNED.sub("", item.strip()))
        if quantity is None:
            return None
        found.append(quantity)
    return found


def _readings(text: str) -> Iterator[list[Quantity]]:
    """The lists that a text may stand for, the likeliest first."""
    text = _outer(rules.bare(stated.plain(text)))
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and all(_BULLET.match(line) for line in lines):  # `- 3` is a bullet there
        text = "\n".join(line[m.end() :] for line in lines if (m := _BULLET.match(line)))
    text = _WORD.sub(", ", _ASSIGNED.sub("", text))
    pieces = [p for p in _SPACED.split(text) if p.strip()]
    every = [p for piece in pieces for p in piece.split(",")]
    candidates = [pieces, every]
    if len(every) == 1:
        candidates.append(text.split())
    for index, items in enumerate(candidates):
        if items not in candidates[:index] and (found := _parsed([_outer(i) for i in items])):
            yield found


def _outer(text: str) -> str:
    """Without brackets around the whole, and the LaTeX for their size."""
    text = re.sub(r"\\(?:left|right)(?![A-Za-z])", "", text).replace("\\{", "{").replace("\\}", "}").strip()
    if len(text) > 1 and _BRACKETS.get(text[0]) == text[-1] and not re.search(r"[\[\](){}]", text[1:-1]):
        return text[1:-1].strip()
    return text


def _equal(gold: list[Quantity], found: list[Quantity], ordered: bool) -> bool:
    if len(gold) != len(found):
        return False
    if ordered:
        return all(numbers.same(g, f) for g, f in zip(gold, found, strict=True))
    left = list(found)
    for wanted in gold:
        match = next((i for i, f in enumerate(left) if numbers.same(wanted, f)), None)
        if match is None:
            return False
        del left[match]
    return True


def check_gold(row: Row) -> str | None:
    """Why the gold answer of a row cannot be used; None where it can."""
    return stated.gold_reason(NumberList(Options(), Context()), row)


def right_answer(row: Row) -> str | None:
    if check_gold(row):
        return None
    gold = row["gold"]
    return ", ".join(map(str, gold)) if isinstance(gold, list | tuple) else str(gold)


def wrong_answer(row: Row) -> str | None:
    """The list with one number too many."""
    right = right_answer(row)
    return None if right is None else ", ".join([str(q.value) for q in _gold(row)] + ["0"])


def verify(completion: str, row: Row, *, tags: Tags = Tags(), prefilled: bool = False, **options: Any) -> Verdict:
    """The verdict on one completion; `options` as in Options."""
    return stated.one(NumberList, Options(**options), completion, row, Context(tags, prefilled))
