r"""Accuracy reward: is the answer right? 1.0 or 0.0.

`extract` finds what is stated, only after the thinking; `rules` compares it by our own exact reading: numbers,
choices, words, dates, times, ratios, bases, expressions, equations, sets, intervals, points, matrices, lists
(`mathread`, `mathcompare`; nothing is rounded, and nothing run). Only golds in a notation that it does not know
(integrals, limits) go to math-verify, in killable processes (`mathpool`). Rows of kind "number" never do.

Whose fault: no answer, one that cannot be read, a bound or limit reached while it is checked: 0.0. A gold answer that
cannot be used, a crashed worker: None.

Policies
- Thinking that was opened (or prefilled) and not closed is never paid. A completion without any think tag is judged
  whole: a model that does not think in tags yet gets a signal, and the form is the format reward's to ask for, as in
  the paper; scoring 0 kills all signal at the start of an R1-Zero run. `require_think: true` asks for the tag.
- An exact gold needs the exact value, in any form of the same value (`2 \cdot 21`, `\sqrt{1764}`); no rounding.
- Rows of kind "number" ask for a number: what is still to be worked out (`3*8`, `48/2`) may be their question, and is
  no answer. `3*8 = 24` is one.
- An integral, a limit, a derivative or an infinite sum in place of its value is no answer: it repeats the question.
- 28 = 28 % either way, and 28 % = 0.28. A unit that only one side names is not asked for; a name before a value
  (`x = 5`) neither; a degree sign may be dropped, except within sin, cos, tan.
- Several answers for one are wrong ("5 or 6", two boxes side by side), and so is a part of several. A denied answer
  ("not 5", "5 is wrong") is none. The last box wins.
- Families with free constants are compared as families (`A + B/x` is `C + D/x`, `x^2 + C` is `x^2 - C`), where the
  constants cannot be given by the question: `mathfamily` says which count. An answer without its constant is wrong.
- A completion of over 25,000 characters behind its thinking is not read, unless it is the gold answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from r1pipe.chat import Tags
from r1pipe.rewards import answertext, extract, mathpool, numbers, rules
from r1pipe.rewards.mathclean import clean
from r1pipe.rewards.verdict import NO_THINKING_END, Context, Row, Verdict
from r1pipe.settings import Strict

VERSION = "2"
MAX_ANSWER = 25_000  # characters; longer answers are not looked at

_RIGHT, _WRONG = Verdict(1.0, "scored"), Verdict(0.0, "scored")
_UNREADABLE = Verdict(0.0, "unverifiable", "the answer cannot be read")
_NO_NUMBER = Verdict(0.0, "unverifiable", "not a number, but something to be worked out")


class Options(Strict):
    """Options of the `accuracy` part."""

    require_think: bool = Field(False, description="A completion without think tags has no answer.")
    limit_s: float = Field(5.0, gt=0, description="Seconds to compare one answer; over it is 0.")
    batch_limit_s: float = Field(120.0, gt=0, description="Seconds to compare the answers of one batch.")


class Accuracy:
    """Batch form of `verify`; the completions are whole (a prefilled opening tag has been put back)."""

    def __init__(self, options: Options, context: Context) -> None:
        self.options, self.context = options, context

    def __call__(self, completions: list[str], rows: list[Row]) -> list[Verdict]:
        verdicts: list[Verdict | None] = []
        asked: list[tuple[int, mathpool.Pair]] = []
        for index, (completion, row) in enumerate(zip(completions, rows, strict=True)):
            first = self._first(completion, row)
            if isinstance(first, Verdict):
                verdicts.append(first)
            else:
                if not asked:
                    mathpool.shared().start()  # while the other rows are read
                asked.append((index, first))
                verdicts.append(None)
        if asked:
            outcomes = mathpool.shared().check(
                [pair for _, pair in asked],
                limit_s=self.options.limit_s,
                batch_limit_s=self.options.batch_limit_s,
            )
            for (index, _), outcome in zip(asked, outcomes, strict=True):
                verdicts[index] = _verdict(outcome)
        return [v if v is not None else Verdict(None, "error", "no verdict") for v in verdicts]

    def facts(self) -> dict[str, Any]:
        """How many pairs were left to computer algebra."""
        return {"computer_algebra": mathpool.shared().asked}

    def close(self) -> None:
        """Ends the worker processes (a later batch starts new ones)."""
        mathpool.shared().close()

    def _first(self, completion: str, row: Row) -> Verdict | mathpool.Pair:
        """The verdict, where our own code can say; else the pair to compare."""
        gold = row.get("gold")
        number = row.get("kind") == "number"
        if gold is None or not str(gold).strip():
            return Verdict(None, "error", "the row has no gold answer")
        gold = rules.gold_text(str(gold))
        if number and numbers.parse(gold) is None:
            return Verdict(None, "error", "the gold answer is not a number")
        region = extract.region(
            completion,
            self.context.tags,
            require_think=self.options.require_think,
            prefilled=self.context.prefilled,
        )
        if region is None:
            return NO_THINKING_END
        if len(region) > MAX_ANSWER:
            if len(gold) > MAX_ANSWER // 2 and gold == rules.bare(extract.boxed_answer(region) or region):
                return _RIGHT
            return Verdict(0.0, "unverifiable", f"the answer is longer than {MAX_ANSWER} characters")
        return _decide(gold, region, number)


def _decide(gold: str, region: str, number: bool) -> Verdict | mathpool.Pair:
    boxed = extract.boxed_answer(region)
    if boxed == "":
        return Verdict(0.0, "unverifiable", "an open, empty or denied box")
    sentence = clean(region if boxed is None else boxed)  # `\\text{The answer is } 7`
    stated = extract.plain_candidates(region) if boxed is None else [boxed]
    if rules.is_words(gold) or rules.is_choice(gold):  # `No, it is not.`, `Option D is correct.`
        return _compare(gold, [*stated, *extract.plain_candidates(sentence), sentence], number, words=True)
    verdict = _compare(gold, stated, number)
    if verdict is _UNREADABLE:
        stated = extract.plain_candidates(sentence)
        verdict = _compare(gold, stated, number)
    if verdict is _UNREADABLE and stated and (found := _only(gold, stated[0])):
        return _RIGHT if rules.decide(gold, found) == "equal" else _WRONG
    return verdict


def _compare(gold: str, candidates: list[str], number: bool, *, words: bool = False) -> Verdict | mathpool.Pair:
    """The first reading of the answer that means something decides; where words are expected, the first that has
    them."""
    verdict = _UNREADABLE
    for candidate in candidates:
        judgement = rules.decide(gold, candidate)
        if judgement == "equal" and number and not _is_number(candidate):
            verdict = _NO_NUMBER
            continue
        if judgement == "equal":
            return _RIGHT
        if judgement == "hard":
            return Verdict(0.0, "unverifiable", "too large, too deep or too long")
        if judgement == "gold":
            return Verdict(None, "error", "the gold answer is too deep or too long")
        if judgement == "ask" and not number:
            return gold, rules.bare(candidate)
        if judgement == "different":
            verdict = _WRONG
            if not words:
                break
    return verdict


def _is_number(answer: str) -> bool:
    """A number, not something to be worked out; of an equation its last side, of a fraction one in lowest terms."""
    last = rules.bare(answer).rpartition("=")[2].strip()
    found = numbers.parse(last)
    return found is not None and (found.value.denominator != 1 or not re.search(r"/|\\frac|÷", last))


def _only(gold: str, sentence: str) -> str | None:
    """The number, or the time of day, of a sentence that holds just one, and no formula (`\\sqrt{25}` is not 25)."""
    if not re.search(r"[A-Za-z\u4e00-\u9fff]", sentence):
        return None
    if numbers.parse(gold) is not None:
        tokens = [] if re.search(r"[\\^√!*+<>~]", sentence) else numbers.TOKEN.findall(sentence)
    else:
        tokens = answertext.CLOCK.findall(sentence) if answertext.clock(clean(gold)) else []
    return tokens[0] if len(tokens) == 1 else None


def _verdict(outcome: mathpool.Outcome) -> Verdict:
    match outcome.result:
        case "equal":
            return _RIGHT
        case "different":
            return _WRONG
        case "timeout":
            return Verdict(0.0, "timeout", outcome.detail)
        case "answer" | "limit":
            return Verdict(0.0, "unverifiable", outcome.detail)
        case "gold":
            return Verdict(None, "error", f"the gold answer {outcome.detail}")
        case _:
            return Verdict(None, "error", f"{outcome.result}: {outcome.detail}")


def verify(
    completion: str, row: Row, *, tags: Tags = Tags(), prefilled: bool = False, require_think: bool = False
) -> Verdict:
    """The verdict on one completion; `verify_batch` shares the work of many."""
    return verify_batch([completion], [row], tags=tags, prefilled=prefilled, require_think=require_think)[0]


def verify_batch(
    completions: Sequence[str],
    rows: Sequence[Row],
    *,
    tags: Tags = Tags(),
    prefilled: bool = False,
    require_think: bool = False,
) -> list[Verdict]:
    """One verdict per completion, in order."""
    context = Context(tags, prefilled)
    return Accuracy(Options(require_think=require_think), context)([context.whole(c) for c in completions], list(rows))


def check_gold(gold: str | None, kind: str) -> str | None:
    """Why a gold answer cannot be used; None where it can. For data preparation."""
    return check_golds([gold], [kind])[0]


def check_golds(golds: Sequence[str | None], kinds: Sequence[str]) -> list[str | None]:
    """`check_gold` for many: the parser is asked about all of them together."""
    reasons: list[str | None] = []
    asked: list[tuple[int, mathpool.Pair]] = []
    for index, (gold, kind) in enumerate(zip(golds, kinds, strict=True)):
        text = rules.gold_text(str(gold)) if gold is not None else ""
        reason = None
        if text.strip().lower() in rules.NO_GOLD:
            reason = "no answer" if not text.strip() else f'"{text[:40]}" is not an answer'
        elif len(text) > MAX_ANSWER:
            reason = f"longer than {MAX_ANSWER} characters"
        elif numbers.parse(text) is None:
            if kind == "number":
                reason = f'"{text[:40]}" is not a number'
            elif not rules.self_sufficient(text):
                asked.append((index, (text, None)))
        reasons.append(reason)
    if asked:
        outcomes = mathpool.shared().check([pair for _, pair in asked], limit_s=Options().limit_s)
        for (index, (text, _)), outcome in zip(asked, outcomes, strict=True):
            if outcome.result != "ok":
                reasons[index] = f'"{text[:40]}" cannot be used ({outcome.result} {outcome.detail})'.strip()
    return reasons
