"""The `accuracy` reward of a profile: is the answer right, whatever kind of answer the row asks for?

Rows of the kinds in `registry.BY_KIND` (countdown, choice, exact, number_list, json, code) go to the verifier of
that name with its default options; all others to `accuracy`, which reads numbers and mathematics. A part of a
composition that names such a verifier takes its rows itself.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from r1pipe.chat import Tags
from r1pipe.rewards import accuracy, numbers, registry, rules
from r1pipe.rewards.verdict import Context, Row, Verdict, Verifier
from r1pipe.settings import RewardPart

Options = accuracy.Options


def _version() -> str:
    others = {name: registry.REGISTRY[name].version for name in sorted(set(registry.BY_KIND.values()))}
    return accuracy.VERSION + "".join(f";{name}={version}" for name, version in others.items())


def __getattr__(name: str) -> Any:
    if name == "VERSION":  # of all that it may ask
        return _version()
    raise AttributeError(name)


class Correctness:
    """Batch form; the completions are whole."""

    def __init__(self, options: Options, context: Context) -> None:
        self.options, self.context = options, context
        self._by_name: dict[str, Verifier] = {}

    @cached_property
    def math(self) -> accuracy.Accuracy:
        return accuracy.Accuracy(self.options, self.context)

    def verifier(self, kind: str | None) -> Verifier:
        name = registry.BY_KIND.get(kind or "")
        if name is None:
            return self.math
        if name not in self._by_name:
            part = RewardPart(options={} if self.options.require_think else {"require_think": False})
            self._by_name[name] = registry.build(name, part, self.context, None)
        return self._by_name[name]

    def __call__(self, completions: list[str], rows: list[Row]) -> list[Verdict]:
        places: dict[int, list[int]] = defaultdict(list)
        verifiers: dict[int, Verifier] = {}
        for index, row in enumerate(rows):
            verifier = self.verifier(row.get("kind"))
            verifiers[id(verifier)] = verifier
            places[id(verifier)].append(index)
        verdicts: dict[int, Verdict] = {}
        for key, chosen in places.items():
            found = verifiers[key]([completions[i] for i in chosen], [rows[i] for i in chosen])
            verdicts |= dict(zip(chosen, found, strict=True))
        return [verdicts[i] for i in range(len(rows))]

    def facts(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for verifier in self._by_name.values():
            found |= getattr(verifier, "facts", dict)()
        return found

    def close(self) -> None:
        for verifier in self._by_name.values():
            getattr(verifier, "close", lambda: None)()


def check_golds(rows: Sequence[Row]) -> list[str | None]:
    """Why the gold of each row cannot be used; None where it can. For data preparation: computer algebra is asked
    about all of them together, in its workers."""
    reasons: list[str | None] = [None] * len(rows)
    math = []
    for index, row in enumerate(rows):
        kind = row.get("kind") or ""
        if kind in registry.BY_KIND:
            module = registry.entry(registry.BY_KIND[kind]).load()
            reasons[index] = getattr(module, "check_gold", lambda row: None)({**row, **(row.get("extra") or {})})
        elif kind not in registry.WITHOUT_ANSWER:
            math.append(index)
    found = accuracy.check_golds([rows[i].get("gold") for i in math], [rows[i].get("kind") or "math" for i in math])
    for index, reason in zip(math, found, strict=True):
        reasons[index] = reason
    return reasons


def right_answer(row: Row) -> str | None:
    """The text of an answer block that must score 1 for this row: the gold, or what the kind's verifier says."""
    name = registry.BY_KIND.get(row.get("kind") or "")
    if name is not None:
        return getattr(registry.entry(name).load(), "right_answer", lambda row: None)(row)
    gold = row.get("gold")
    return str(gold) if gold not in (None, "") else None


def wrong_answer(row: Row) -> str | None:
    """The text of an answer block that must score 0 for this row."""
    name = registry.BY_KIND.get(row.get("kind") or "")
    if name is not None:
        return getattr(registry.entry(name).load(), "wrong_answer", lambda row: None)(row)
    gold = rules.gold_text(str(row.get("gold") or ""))
    number = numbers.parse(gold)
    if number is not None:
        return str(number.value + 1)
    if letter := re.fullmatch(r"\(?([A-J])[).]?", gold):
        return "B" if letter[1] == "A" else "A"
    return "12345678987654321" if gold else None


def verify_batch(
    completions: Sequence[str],
    rows: Sequence[Row],
    *,
    tags: Tags = Tags(),
    prefilled: bool = False,
    require_think: bool = True,
) -> list[Verdict]:
    """One verdict per completion, in order, by the kind of its row."""
    context = Context(tags, prefilled)
    verifier = Correctness(Options(require_think=require_think), context)
    return verifier([context.whole(c) for c in completions], list(rows))
