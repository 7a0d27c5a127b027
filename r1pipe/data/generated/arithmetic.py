"""Generated chain sums in English and Chinese: problems, noisy worked traces, pretraining text.

A problem is a start value and a chain of signed operands, `23 + 15 - 12`, asked plainly or as a little story.
Its identity is the chain alone, not the wording: the split (train, heldout) is decided by a hash of the chain,
so no wording of a held-out problem is ever trained on. `range` problems use operands (RESERVED) that occur
as an operand in no train or heldout problem. Pure python, deterministic by seed (not by PYTHONHASHSEED).

One row of `prompts("train", 1, seed=0)`:
    {"id": "6d0c...", "messages": [{"role": "user", "content": "What is 23 plus 15 minus 12?"}], "gold": "26",
     "kind": "number", "language": "en", "level": 2, "reference": None, "source": "generated/arithmetic"}
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from typing import Any

from r1pipe.data.generated import wording

VERSION = 1
SOURCE = "generated/arithmetic"
SPLITS = ("train", "heldout", "range")

# Operand values that no train or heldout problem uses (an intermediate result may take them).
RESERVED = frozenset({14, 27, 33, 46, 58, 65})
LOW = 2  # the smallest operand; the smallest running total is 1
# level -> (terms of the chain, largest operand, largest running total). 1 to 4 grow longer and fit the embedded
# base; 5 has larger operands and totals of three digits, and strains it.
LEVELS: dict[int, tuple[int, int, int]] = {
    1: (2, 49, 99),
    2: (3, 49, 99),
    3: (4, 49, 99),
    4: (5, 49, 99),
    5: (3, 69, 139),
}
LEVEL_WEIGHTS = {1: 0.1, 2: 0.2, 3: 0.25, 4: 0.25, 5: 0.2}
DOCUMENT_WEIGHTS = {1: 0.15, 2: 0.2, 3: 0.2, 4: 0.15, 5: 0.3}  # pretraining text has more of the hard facts
FORGOTTEN = 0.8  # share of the slips at a carry that forget it
HARD, EASY = 1.7, 0.4  # how the rate of wrong steps is spread: with a carry, without
HELDOUT_IN = 8  # one problem in eight is held out

Row = dict[str, Any]
Problem = tuple[int, ...]  # (start, +operand, -operand, ...): signed operands


def _rng(*parts: object) -> random.Random:
    """A generator seeded by text: random.Random hashes strings with SHA-512, whatever PYTHONHASHSEED is."""
    return random.Random(":".join(str(p) for p in parts))


def expression(problem: Problem) -> str:
    """`(23, 15, -12)` -> `23+15-12`: the canonical content of a problem."""
    return str(problem[0]) + "".join(f"{n:+d}" for n in problem[1:])


def problem_id(problem: Problem) -> str:
    """16 hex characters of the content hash (operands and signs, not the wording)."""
    return hashlib.sha256(expression(problem).encode()).hexdigest()[:16]


def split_of(problem: Problem) -> str:
    """`range` if a reserved operand occurs, else `heldout` or `train` by content hash."""
    if any(abs(n) in RESERVED for n in problem):
        return "range"
    return "heldout" if int(problem_id(problem), 16) % HELDOUT_IN == 0 else "train"


def totals(problem: Problem) -> list[int]:
    """Running totals after each operand; the last one is the answer."""
    out, total = [], problem[0]
    for n in problem[1:]:
        total += n
        out.append(total)
    return out


def _draw(rng: random.Random, level: int) -> Problem:
    terms, high, limit = LEVELS[level]
    total = rng.randint(LOW, high)
    chain = [total]
    while len(chain) < terms:
        n = rng.randint(LOW, high)
        signs = [s for s in (n, -n) if 1 <= total + s <= limit]
        if signs:
            n = rng.choice(signs)
            total += n
            chain.append(n)
    return tuple(chain)


def draw(rng: random.Random, split: str, level: int) -> Problem:
    """One problem of a split and level, by rejection."""
    reserved = sorted(v for v in RESERVED if v <= LEVELS[level][1])
    while True:
        problem = _draw(rng, level)
        if split == "range" and split_of(problem) != "range":  # plant a reserved operand, or this takes long
            at = rng.randrange(1, len(problem))
            value = rng.choice(reserved)
            problem = (*problem[:at], value if problem[at] > 0 else -value, *problem[at + 1 :])
            if not all(1 <= t <= LEVELS[level][2] for t in totals(problem)):
                continue
        if split_of(problem) == split:
            return problem


def _check(split: str, levels: Sequence[int] | None, languages: Sequence[str]) -> dict[int, float]:
    from r1pipe.errors import UserError

    if split not in SPLITS:
        raise UserError(f"unknown split {split!r} of generated arithmetic", hint=f"use one of {', '.join(SPLITS)}")
    bad = [x for x in levels or () if x not in LEVELS]
    if bad or (levels is not None and not levels):
        raise UserError(f"unknown level(s) {bad or levels} of generated arithmetic", hint=f"levels: {list(LEVELS)}")
    bad_languages = [x for x in languages if x not in wording.LANGUAGES]
    if bad_languages or not languages:
        raise UserError(
            f"unknown language(s) {bad_languages or languages} of generated arithmetic",
            hint=f"use {', '.join(wording.LANGUAGES)}",
        )
    return {k: w for k, w in LEVEL_WEIGHTS.items() if levels is None or k in levels}


def prompts(
    split: str,
    rows: int,
    seed: int,
    levels: Sequence[int] | None = None,
    languages: Sequence[str] = ("en", "zh"),
    story: float = 0.5,
) -> list[Row]:
    """`rows` distinct problems of a split as prompt rows; gold is the answer, an integer as text.

    Raises UserError for an unknown split, level or language, or when the levels hold too few problems.
    """
    return [row for _, row in _problems(split, rows, seed, levels, languages, story)]


def _problems(
    split: str, rows: int, seed: int, levels: Sequence[int] | None, languages: Sequence[str], story: float
) -> list[tuple[Problem, Row]]:
    from r1pipe.errors import UserError

    weights = _check(split, levels, languages)
    rng = _rng("arithmetic.prompts", VERSION, split, seed)
    out: dict[Problem, Row] = {}
    misses = 0
    while len(out) < rows:
        level = rng.choices(list(weights), list(weights.values()))[0]
        problem = draw(rng, split, level)
        if problem in out:
            misses += 1
            if misses > 500:  # in a row: the levels are (nearly) used up
                raise UserError(
                    f"generated arithmetic found only {len(out)} distinct {split} problems of {rows} asked for "
                    f"(levels {list(weights)})",
                    hint="ask for fewer rows or add a level: 2 to 5 hold thousands to millions",
                )
            continue
        misses = 0
        language = rng.choice(list(languages))
        out[problem] = {
            "id": problem_id(problem),
            "messages": [{"role": "user", "content": wording.question(rng, problem, language, story)}],
            "gold": str(totals(problem)[-1]),
            "kind": "number",
            "language": language,
            "level": level,
            "reference": None,
            "source": SOURCE,
        }
    return list(out.items())


def carries(total: int, operand: int) -> bool:
    """Whether the units of a step carry (plus) or borrow (minus)."""
    units = total % 10 + (operand % 10 if operand > 0 else -(-operand % 10))
    return not 0 <= units <= 9


def _slip(rng: random.Random, total: int, operand: int) -> int:
    """A wrong result near the right one: mostly a forgotten carry where there is one, else off by a little."""
    right = total + operand
    if carries(total, operand) and rng.random() < FORGOTTEN:
        wrong = right - 10 if operand > 0 else right + 10
    else:
        wrong = right + rng.choice((-1, 1, -2, 2, -10, 10))
    return wrong if wrong >= 1 else right + 1


def steps(
    rng: random.Random, problem: Problem, language: str, wrong: float, mixed: float, bare: bool = False
) -> tuple[list[str], int]:
    """Worked sentences and the answer they reach: each step slips with probability `wrong` (the error is carried
    on), each sentence is in the other language with probability `mixed`; bare drops `First`, `Then`."""
    total, out = problem[0], []
    for i, n in enumerate(problem[1:]):
        result = total + n
        # Where a carry is needed slips are frequent, elsewhere rare; the mean over the levels is about `wrong`.
        if rng.random() < wrong * (HARD if carries(total, n) else EASY):
            result = _slip(rng, total, n)
        tongue = wording.OTHER[language] if rng.random() < mixed else language
        out.append(wording.step(rng, -1 if bare else i, total, n, result, tongue))
        total = result
    return out, total


def traces(
    rows: int,
    seed: int,
    wrong: float = 0.2,
    mixed: float = 0.3,
    malformed: float = 0.04,
    levels: Sequence[int] | None = None,
    languages: Sequence[str] = ("en", "zh"),
    split: str = "train",
) -> list[Row]:
    """Noisy cold-start SFT rows: prompt rows with an assistant turn `<think>\\n...\\n</think>\\n<answer>..</answer>`.

    wrong: share of steps with a slip, carried to a wrong answer; mixed: share of sentences in the other language;
    malformed: share of completions with a broken format. `gold` stays the right answer.
    """
    rng = _rng("arithmetic.traces", VERSION, split, seed)
    out = []
    for problem, row in _problems(split, rows, seed, levels, languages, story=0.5):
        sentences, answer = steps(rng, problem, row["language"], wrong, mixed)
        text = wording.response(wording.join(sentences), str(answer))
        if rng.random() < malformed:
            text = wording.damage(rng, text)
        row["messages"].append({"role": "assistant", "content": text})
        out.append(row)
    return out


def documents(
    seed: int,
    levels: Sequence[int] | None = None,
    high: int | None = None,
    wrong: float = 0.1,
    mixed: float = 0.2,
) -> Iterator[str]:
    """An endless stream of noisy pretraining documents on train problems: worked sums, bare sums, chats.

    levels: which levels (default: all, weighted); high: only problems whose operands are at most this (a
    curriculum starts low). A quarter are bare facts, three tenths plain worked text, the rest ChatML; a third of
    those use the think and answer tags.
    """
    weights = {k: DOCUMENT_WEIGHTS[k] for k in _check("train", levels, ("en", "zh"))}
    rng = _rng("arithmetic.documents", VERSION, seed)
    keys, values = list(weights), list(weights.values())

    def one() -> Problem:
        while True:
            problem = draw(rng, "train", rng.choices(keys, values)[0])
            if high is None or max(abs(n) for n in problem) <= high:
                return problem

    while True:
        language = rng.choice(wording.LANGUAGES)
        kind = rng.random()
        if kind < 0.25:  # bare facts: the densest arithmetic
            lines = []
            for _ in range(rng.randint(2, 5)):
                problem = one()
                lines += steps(rng, problem, language, wrong, mixed, bare=True)[0]
            yield wording.join(lines)
            continue
        problem = one()
        sentences, answer = steps(rng, problem, language, wrong, mixed)
        asked = wording.question(rng, problem, language, story=0.5)
        if kind < 0.55:
            yield f"{asked}\n{wording.join(sentences)}\n{wording.final(rng, answer, language)}"
        elif kind < 0.71:
            yield wording.chat(asked, wording.response(wording.join(sentences), str(answer)))
        elif kind < 0.95:
            yield wording.chat(asked, f"{wording.join(sentences)}\n{wording.final(rng, answer, language)}")
        else:
            yield wording.chat(asked, wording.final(rng, answer, language))
