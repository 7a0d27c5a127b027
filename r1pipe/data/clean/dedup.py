"""Exact and near duplicates. The first row of its kind, in the order of the source, is kept.

Exact: all turns but the system's (and chosen and rejected, response and label) have the same tokens
(`normal.tokens`); of answers of a model, the same text but for case and spacing.

Near: two *questions*; rows that answer one question in other words are samples of it, and stay. Questions are near
duplicates when they share so much of their word triples (Jaccard, found through MinHash and then computed) and nothing
in them makes them different questions:
- the same numbers, operators, variables and CRITICAL words, in the same order;
- no content word of the one stands in for one of the other ("cats" for "dogs"), and none has moved: one of the two has
  words that the other leaves out, and that is all.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from typing import Any

from r1pipe.data.clean import minhash, normal
from r1pipe.data.clean.words import CRITICAL, CRITICAL_HAN, FILLER
from r1pipe.data.convert import EXCERPT, Dropped
from r1pipe.data.rows import Row

SHINGLE = 3  # words
MOST_SORTS = 1 << 20
SPELLING = 0.8  # likeness at which two words are one, misspelled


def question(row: Row) -> str:
    """What a row asks: all turns before the last answer, without the system's."""
    turns = row["messages"]
    if turns[-1]["role"] == "assistant":
        turns = turns[:-1]
    return "\n".join(m["content"] for m in turns if m["role"] != "system")


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def exact(rows: Sequence[Row]) -> tuple[list[int], list[Dropped]]:
    """Indexes of the rows to keep, and the others. Where a duplicate states another gold, it is told apart: one of the
    two is wrong."""
    questions = [question(row) for row in rows]
    digits = [normal.digits(q) for q in questions]
    times = Counter(digits)
    seen: dict[tuple[Any, ...], int] = {}
    kept: list[int] = []
    dropped: list[Dropped] = []
    for index, row in enumerate(rows):
        if times[digits[index]] == 1:  # nothing else has these numbers
            kept.append(index)
            continue
        first = seen.setdefault(_key(row, questions[index]), index)
        if first == index:
            kept.append(index)
            continue
        golds = {g for g in (row.get("gold"), rows[first].get("gold")) if g is not None}
        detail = {"of": rows[first]["id"], "golds": sorted(golds)} if len(golds) > 1 else {"of": rows[first]["id"]}
        dropped.append(Dropped.row(row, "duplicate_other_gold" if len(golds) > 1 else "duplicate", **detail))
    return kept, dropped


def _key(row: Row, asked: str) -> tuple[Any, ...]:
    """What exact duplicates share."""
    answers = [_plain(m["content"]) for m in row["messages"][-1:] if m["role"] == "assistant"]
    answers += [_plain(row[n]) for n in ("chosen", "rejected", "response") if n in row]
    return (" ".join(normal.tokens(asked)), *answers, row.get("label"))


def near(rows: Sequence[Row], threshold: float) -> tuple[list[int], list[Dropped]]:
    """Indexes of the rows to keep, and the others with the row that they are like."""
    asked = _comparable(rows)
    first = {tokens: index for index, tokens in reversed(list(enumerate(asked))) if tokens}
    unique = [tokens for tokens in dict.fromkeys(asked) if tokens]
    if len(unique) < 2:
        return list(range(len(rows))), []
    grams = minhash.Grams(unique, SHINGLE)
    like: dict[tuple[str, ...], tuple[Row, float]] = {}  # a question -> an earlier one that stays, how like

    def compare(a: int, b: int) -> bool:
        """Is b, the later one, a near duplicate of a?"""
        one, other = grams.of(a), grams.of(b)
        share = len(one & other) / len(one | other)
        if share < threshold or _substituted(_content(unique[a]), _content(unique[b])):
            return False
        like[unique[b]] = (rows[first[unique[a]]], share)
        return True

    minhash.candidates(grams, [_fixed(tokens) for tokens in unique], threshold, compare)
    kept: list[int] = []
    dropped: list[Dropped] = []
    for index, row in enumerate(rows):
        if asked[index] not in like:
            kept.append(index)
            continue
        other, share = like[asked[index]]
        shown = question(other)[:EXCERPT]
        dropped.append(Dropped.row(row, "near_duplicate", of=other["id"], likeness=round(share, 3), question=shown))
    return kept, dropped


def _comparable(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """The tokens of the questions; none of those with digits that no other has."""
    questions = [question(row) for row in rows]
    digits = [normal.digits(q) for q in questions]
    times = Counter(digits)
    return [tuple(normal.tokens(q)) if times[d] > 1 else () for q, d in zip(questions, digits, strict=True)]


def _fixed(tokens: Sequence[str]) -> str:
    """What must be the same in near duplicates."""
    sorts = list(map(_SORTS.__getitem__, tokens))
    found = [t for t, sort in zip(tokens, sorts, strict=True) if sort <= ARTICLE]
    if ARTICLE in sorts:
        places = [i for i, sort in enumerate(sorts) if sort <= ARTICLE]
        found = [tokens[i] for i in places if sorts[i] == FIXED or _beside_maths(tokens, i)]
    return " ".join(found)


def _content(tokens: Sequence[str]) -> list[str]:
    return [t for t in tokens if _SORTS[t] == CONTENT]


# Sorts of tokens: must be the same; a letter that may be a word; must not be replaced by another; does not matter.
FIXED, ARTICLE, CONTENT, FILLING = range(4)


class _Sorts(dict[str, int]):
    """The sort of every token, found once."""

    def __missing__(self, token: str) -> int:
        if normal.is_han(token):
            sort = FIXED if token in CRITICAL_HAN else CONTENT
        elif not normal.is_word(token):
            sort = ARTICLE if token in ("a", "i") else FIXED
        else:
            sort = FIXED if token in CRITICAL else FILLING if token in FILLER else CONTENT
        if len(self) < MOST_SORTS:
            self[token] = sort
        return sort


_SORTS = _Sorts()


def _beside_maths(tokens: Sequence[str], index: int) -> bool:
    """Is the letter a variable: next to a number or an operator?"""
    beside = [*tokens[max(0, index - 1) : index], *tokens[index + 1 : index + 2]]
    return any(not t[0].isalpha() for t in beside)


def _substituted(a: list[str], b: list[str]) -> bool:
    """Do the content words differ by more than words that one of the two leaves out, and misspellings?"""
    changes = set()
    for change, a_start, a_end, b_start, b_end in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if change == "replace":
            if a_end - a_start != b_end - b_start or not all(map(_misspelled, a[a_start:a_end], b[b_start:b_end])):
                return True
        elif change != "equal":
            changes.add(change)
    return len(changes) > 1


def _misspelled(word: str, other: str) -> bool:
    return difflib.SequenceMatcher(None, word, other).ratio() >= SPELLING
