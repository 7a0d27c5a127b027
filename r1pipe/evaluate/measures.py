"""Numbers that need several samples of a problem: pass@k, majority@k, diversity.

pass@k       chance that one of k samples is right: the unbiased estimator 1 - C(n-c, k) / C(n, k), n samples of which
             c are right (Chen et al. 2021). For k = 2, 4, 8, ... and n.
majority@k   is the answer that most of the k samples give right? Votes are counted on answers: all right ones are one
             answer (the verifier said so); wrong ones are one where their text is the same, or where the verifier says
             so, asked only where that can decide. Texts without an answer do not vote; between equal votes the share
             of the right one counts. Not for code and instructions, which have no answer to compare.
distinct_2   distinct word pairs / word pairs, over the samples of a problem (a Han character is a word).
distinct_answers   different answers / answers.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from r1pipe.chat import Tags
from r1pipe.generate import Sample
from r1pipe.rewards.verdict import Verdict

Row = dict[str, Any]
COMPARED = 20  # most different wrong answers of a problem that the verifier compares; rarer ones stay apart
# Answers that are judged together. The verifiers have a time limit for a batch, meant for one of training: a whole set
# in one would run into it, and what is not judged by then counts as wrong, or not at all.
BATCH, PROGRAMS = 256, 16
WITHOUT_VOTE = frozenset({"code", "instructions", "general", "safety"})
_WORD = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]|[^\W\u3040-\u30ff\u4e00-\u9fff]+")


@dataclass(frozen=True)
class Problem:
    """A row with the samples that were made of it, and their verdicts (None: the row has no answer to be right)."""

    row: Row
    samples: Sequence[Sample]
    verdicts: Sequence[Verdict | None]

    @property
    def judged(self) -> list[float]:
        """1.0 or 0.0 for each sample with a score: wholly right, or not."""
        return [float(v.score >= 1.0) for v in self.verdicts if v is not None and v.score is not None]


def pass_at(n: int, right: int, k: int) -> float | None:
    """None where there are fewer than k samples."""
    if k > n:
        return None
    return 1.0 - math.comb(n - right, k) / math.comb(n, k)


def sizes(n: int) -> list[int]:
    """The k of pass@k for n samples."""
    return sorted({*(2**i for i in range(1, n.bit_length()) if 2**i <= n), n} - {0, 1})


def of_samples(problems: Sequence[Problem], n: int, tags: Tags, *, require_think: bool) -> list[dict[str, float]]:
    """The numbers of each problem that has them, by name; empty with one sample a problem."""
    found: list[dict[str, float]] = [{} for _ in problems]
    if n < 2:
        return found
    votes = [_votes(p, tags, require_think) for p in problems]
    for place, (problem, (right, wrong)) in enumerate(zip(problems, votes, strict=True)):
        judged = problem.judged
        for k in sizes(n):
            value = pass_at(len(judged), round(sum(judged)), k)
            if value is not None:
                found[place][f"pass@{k}"] = value
        if all_votes := right + wrong.total():
            found[place]["distinct_answers"] = (len(wrong) + (right > 0)) / all_votes
        if len(problem.samples) > 1 and (pairs := _pairs([s.text for s in problem.samples])):
            found[place]["distinct_2"] = len(set(pairs)) / len(pairs)
    for place, value in _majorities(problems, votes, tags).items():
        found[place][f"majority@{n}"] = value
    return found


def verify(texts: Sequence[str], rows: Sequence[Row], tags: Tags, *, require_think: bool = True) -> list[Verdict]:
    """The verdicts of training, in batches of a bounded size; programs apart, as they take the longest."""
    from r1pipe.rewards import correctness

    found: dict[int, Verdict] = {}
    programs = [i for i, row in enumerate(rows) if row["kind"] == "code"]
    others = [i for i, row in enumerate(rows) if row["kind"] != "code"]
    for places, size in ((others, BATCH), (programs, PROGRAMS)):
        for start in range(0, len(places), size):
            batch = places[start : start + size]
            mine = [rows[i] for i in batch]
            verdicts = correctness.verify_batch(
                [texts[i] for i in batch], mine, tags=tags, require_think=require_think
            )
            found |= dict(zip(batch, verdicts, strict=True))
    return [found[i] for i in range(len(rows))]


def _votes(problem: Problem, tags: Tags, require_think: bool) -> tuple[int, Counter[str]]:
    """How many samples are right, and the wrong answers by text."""
    right, wrong = 0, Counter[str]()
    if problem.row["kind"] in WITHOUT_VOTE:
        return right, wrong
    for sample, verdict in zip(problem.samples, problem.verdicts, strict=True):
        if verdict is None or verdict.score is None:
            continue
        if verdict.score >= 1.0:
            right += 1
        elif verdict.status != "unverifiable" and (text := answer(sample.text, tags, require_think)):
            wrong[text] += 1
    return right, wrong


def answer(text: str, tags: Tags, require_think: bool) -> str | None:
    """What a completion answers, as text to compare; None where it answers nothing."""
    from r1pipe.rewards import extract, rules

    region = extract.region(text, tags, require_think=require_think)
    if region is None:
        return None
    found = extract.boxed_answer(region) or next(iter(extract.plain_candidates(region)), region)
    return " ".join(rules.bare(found).split()).casefold()[:2000] or None


def _majorities(
    problems: Sequence[Problem], votes: Sequence[tuple[int, Counter[str]]], tags: Tags
) -> dict[int, float]:
    """Place of a problem -> is its majority right."""
    found: dict[int, float] = {}
    open_: dict[int, Counter[str]] = {}
    for place, (problem, (right, wrong)) in enumerate(zip(problems, votes, strict=True)):
        if problem.row["kind"] in WITHOUT_VOTE or not problem.judged:
            continue
        if not right or right < max(wrong.values(), default=0):
            found[place] = 0.0  # answers that join only make the others stronger
        elif right > wrong.total():
            found[place] = 1.0
        else:
            open_[place] = wrong
    for place, wrong in _merge(problems, open_, tags).items():
        right = votes[place][0]
        ties = sum(v == right for v in wrong.values())
        found[place] = 0.0 if right < max(wrong.values()) else 1.0 / (1 + ties)
    return found


def _merge(problems: Sequence[Problem], wrong: dict[int, Counter[str]], tags: Tags) -> dict[int, Counter[str]]:
    """Wrong answers that the verifier calls equal become one. All problems are asked about together."""
    asked: list[tuple[int, str, str]] = []
    for place, texts in wrong.items():
        common = [text for text, _ in texts.most_common(COMPARED)]
        asked += [(place, a, b) for a, b in itertools.combinations(common, 2)]
    rows = [{**problems[place].row, **(problems[place].row.get("extra") or {}), "gold": a} for place, a, _ in asked]
    verdicts = verify([tags.wrap("compared", b) for _, _, b in asked], rows, tags)
    root = {(place, text): text for place, texts in wrong.items() for text in texts}

    def top(place: int, text: str) -> str:
        while root[place, text] != text:
            text = root[place, text]
        return text

    for (place, a, b), verdict in zip(asked, verdicts, strict=True):
        if verdict.score is not None and verdict.score >= 1.0:
            root[place, top(place, b)] = top(place, a)
    out: dict[int, Counter[str]] = {place: Counter() for place in wrong}
    for place, texts in wrong.items():
        for text, count in texts.items():
            out[place][top(place, text)] += count
    return out


def _pairs(texts: Sequence[str]) -> list[tuple[str, str]]:
    words = (_WORD.findall(text.casefold()) for text in texts)
    return [pair for found in words for pair in itertools.pairwise(found)]
