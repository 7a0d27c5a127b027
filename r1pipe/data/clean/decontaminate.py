"""Decontamination: rows that share an n-gram of words with a prompt of an evaluation set (R1 v2 D.1: n = 10).

Two rules on top (known-failures f10):

Stock phrases. A shared run of n-grams counts when it has CONTENT words that are no STOCK words, or covers the
evaluation prompt (COVERED of its words, and all its numbers). "How many positive integers less than or equal to" is in
a thousand problems. What an evaluation set puts into every prompt ("put your final answer in a box") counts for
nothing: an n-gram in SHARED of its prompts, and in 3 or more.

Short prompts. One of fewer than n words has no n-gram: a row is hit when its text, or one of its sentences or lines,
is the same in all tokens; a short row also when it is a telling sentence of a longer prompt.

What is compared are the user's turns of a row; a Chinese, Japanese or Thai character counts as half a word.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from r1pipe.data.clean import normal
from r1pipe.data.clean.words import STOCK, STOCK_HAN
from r1pipe.data.convert import Dropped
from r1pipe.data.rows import Row

CONTENT = 2  # content words of a run that is no stock phrase
COVERED = 0.8
SHARED, SHARED_LEAST = 0.05, 3
SENTENCE_LEAST = 3  # tokens of a sentence that is compared with a short prompt
_SENTENCES = re.compile(r"(?<=[.?!])\s+|[。？！\n]+")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt of an evaluation set."""

    source: str
    id: str
    text: str


@dataclass
class Index:
    """The n-grams of evaluation prompts."""

    n: int
    prompts: list[Prompt] = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)
    numbers: list[set[str]] = field(default_factory=list)
    grams: dict[tuple[str, ...], set[int]] = field(default_factory=lambda: defaultdict(set))
    whole: dict[tuple[str, ...], int] = field(default_factory=dict)
    short: set[tuple[str, ...]] = field(default_factory=set)
    sentences: dict[tuple[str, ...], int] = field(default_factory=dict)  # short ones of longer prompts
    vocabulary: set[str] = field(default_factory=set)
    stock: set[tuple[str, ...]] = field(default_factory=set)
    phrases: int = 0  # texts that share nothing but stock phrases with a prompt

    @classmethod
    def of(cls, prompts: Sequence[Prompt], n: int) -> Index:
        index = cls(n)
        texts: Counter[str] = Counter()
        counts: Counter[tuple[str, ...]] = Counter()
        for prompt in prompts:
            tokens = normal.tokens(prompt.text)
            if not tokens or tuple(tokens) in index.whole:
                continue
            number = len(index.prompts)
            index.prompts.append(prompt)
            index.sizes.append(sum(map(_size, tokens)))
            index.numbers.append({t for t in tokens if t[0].isdigit()})
            index.whole[tuple(tokens)] = number
            if index.sizes[number] < n:
                index.short.add(tuple(tokens))
            for sentence in _sentences(prompt.text):
                if len(sentence) < n and (any(t[0].isdigit() for t in sentence) or _content(sentence) >= CONTENT):
                    index.sentences.setdefault(sentence, number)
            grams = {gram for _, gram in _grams(tokens, n)}
            for gram in grams:
                index.grams[gram].add(number)
                index.vocabulary.update(gram)
            counts.update((prompt.source, *gram) for gram in grams)
            texts[prompt.source] += 1
        for key, times in counts.items():
            if times >= max(SHARED_LEAST, SHARED * texts[key[0]]):
                index.stock.add(key[1:])
        return index

    def find(self, text: str) -> tuple[Prompt, str] | None:
        """The evaluation prompt that a text contains, and the matching words; None for a clean one."""
        tokens = normal.tokens(text)
        number = self.whole.get(tuple(tokens), self.sentences.get(tuple(tokens)))
        if number is not None:
            return self.prompts[number], " ".join(tokens)
        return self._run(tokens) or self._short(text)

    def _run(self, tokens: list[str]) -> tuple[Prompt, str] | None:
        """The longest run of shared n-grams that is no stock phrase."""
        known = [t in self.vocabulary for t in tokens]
        runs: dict[int, tuple[int, int]] = {}  # evaluation prompt -> the run that is open, as (start, end)
        best: tuple[float, int, int, int] | None = None
        shared = False
        for start, gram in _grams(tokens, self.n, known):
            end = start + len(gram)
            for number in self.grams.get(gram, ()):
                shared = True
                begun = runs.get(number)
                if begun is not None and begun[1] >= end - 1:
                    runs[number] = (begun[0], end)
                else:
                    runs[number] = (start, end)
                first, last = runs[number]
                size = sum(map(_size, tokens[first:last]))
                if (best is None or size > best[0]) and self._tells(tokens[first:last], number, size):
                    best = (size, number, first, last)
        if best is None:
            self.phrases += shared
            return None
        return self.prompts[best[1]], " ".join(tokens[best[2] : best[3]])

    def _tells(self, run: list[str], number: int, size: float) -> bool:
        """Does a shared run say that the problem is the same one?"""
        if self.stock and all(gram in self.stock for _, gram in _grams(run, self.n)):
            return False
        if size >= COVERED * self.sizes[number] and self.numbers[number] <= set(run):
            return True
        return _content(run) >= CONTENT

    def _short(self, text: str) -> tuple[Prompt, str] | None:
        """A short prompt that is a sentence of the text."""
        for sentence in _sentences(text) if self.short else ():
            if sentence in self.short:
                return self.prompts[self.whole[sentence]], " ".join(sentence)
        return None


def _sentences(text: str) -> list[tuple[str, ...]]:
    """The tokens of sentences and lines that are not too short to say anything."""
    found = (tuple(normal.tokens(part)) for part in _SENTENCES.split(text))
    return [tokens for tokens in found if len(tokens) >= SENTENCE_LEAST]


def _content(tokens: Sequence[str]) -> float:
    """How many words of a text are no stock words."""
    return sum(_size(t) for t in tokens if not _is_stock(t))


def _size(token: str) -> float:
    return 0.5 if normal.is_han(token) else 1.0


def _is_stock(token: str) -> bool:
    if normal.is_han(token):
        return token in STOCK_HAN
    if normal.is_word(token):
        return token in STOCK
    return not token[0].isdigit()  # operators, brackets and single letters


def _grams(tokens: Sequence[str], n: int, known: Sequence[bool] | None = None) -> list[tuple[int, tuple[str, ...]]]:
    """The n-grams of a text with their places; with `known`, those without an unknown token."""
    found = []
    if all(len(t) > 1 or t.isascii() for t in tokens):
        last_unknown = -1
        for place in range(len(tokens)):
            if known is not None and not known[place]:
                last_unknown = place
            start = place - n + 1
            if start > last_unknown:
                found.append((start, tuple(tokens[start : place + 1])))
        return found
    sizes = [_size(t) for t in tokens]
    start, total = 0, 0.0
    for place, size in enumerate(sizes):
        total += size
        if known is not None and not known[place]:
            start, total = place + 1, 0.0
            continue
        while total - sizes[start] >= n:
            total -= sizes[start]
            start += 1
        if total >= n:
            found.append((start, tuple(tokens[start : place + 1])))
    return found


def decontaminate(rows: Sequence[Row], index: Index) -> tuple[list[int], list[Dropped]]:
    """Indexes of the rows to keep, and the others with the matching words."""
    kept: list[int] = []
    dropped: list[Dropped] = []
    for place, row in enumerate(rows):
        text = "\n".join(m["content"] for m in row["messages"] if m["role"] == "user")
        hit = index.find(text)
        if hit is None:
            kept.append(place)
        else:
            prompt, words = hit
            dropped.append(Dropped.row(row, "contaminated", ngram=words, against=prompt.source, against_id=prompt.id))
    return kept, dropped
