"""Which of the configured languages of one script each word is in.

Every word has evidence for each language: from the list of function words where one has it, else from the letter
sequences that py3langid knows. The best path through all words (Viterbi) then labels them: going to another language
costs, less at a clause mark, and the text starts in the target. So a word or a name changes no label, a sentence does,
and short foreign sentences in a row add up. Two more rules:

- a word that is surely of another language (a function word that the target lacks, letters that are unlikely there) is
  foreign even where the path stays with the target; a function word that the target has and the language of the path
  lacks is the target's;
- words far from the target and from the other languages that are configured, but close to some other one of those
  py3langid knows, are in no language (Turkish where it is not configured, transliterated Chinese).

Names say little, so capitalised words count for less. py3langid (0.6 s and 80 MB to load) is asked only about words
that no list has; its answers are remembered.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from r1pipe.rewards.words import function_words

# Log-odds a word; set and measured on the sentences of the tests, see there.
SWITCH, SWITCH_AT_CLAUSE = 5.0, 2.0
LEAVE = 3.0  # what starting in another language costs, and one more for each word that a text is shorter than SHORT
SHORT = 4
UNLISTED = 3.0  # a function word, for a language that does not list it
CAP = 3.0  # the most that one other word says
SHARPNESS = 0.5  # py3langid adds up sequences that overlap: its log-odds are too large
NAME, OPENING = 0.25, 0.5  # weight of a capitalised word; of one that is a function word or opens a sentence
NOWHERE, INTO_NOWHERE = 2.0, 5.0  # how far from the configured languages a word is in none, and what going there costs
STRAY, SALT = 4, 3  # letters of a function word that counts on its own: a foreign one, one of the target
FAR = 6.0  # and what another word must say against the target to be foreign on its own

_lock = threading.Lock()
_model: Any = None


class Token(NamedTuple):
    """A word: lower-cased; whether a clause or a sentence starts with it; whether it is capitalised; its weight."""

    word: str
    clause: bool
    sentence: bool
    capital: bool
    worth: float


def _rank(word: str) -> list[tuple[str, float]]:
    """py3langid's log-odds of a word in every language it knows, best first."""
    global _model
    if _model is None:
        with _lock:
            if _model is None:
                from py3langid.langid import MODEL_FILE, LanguageIdentifier

                _model = LanguageIdentifier.from_model_file(MODEL_FILE)
    found: list[tuple[str, float]] = _model.rank(f" {word} ")
    return found


class Evidence(NamedTuple):
    """What a word says: for each language and, last, for none of them (0 for the likeliest language, less for others);
    whether it is a function word of one; which languages it is foreign to, whatever its neighbours are."""

    scores: tuple[float, ...]
    listed: bool
    foreign_to: tuple[bool, ...]


@lru_cache(maxsize=200_000)
def _evidence(word: str, languages: tuple[str, ...]) -> Evidence:
    having = function_words.languages(word).intersection(languages)
    if having:
        lacking = [x not in having and function_words.listed(x) for x in languages]
        sure = len(word) >= STRAY and "'" not in word
        return Evidence((*(-UNLISTED * x for x in lacking), -UNLISTED), True, tuple(x and sure for x in lacking))
    ranks = _rank(word)
    of, top = dict(ranks), ranks[0][1]
    best = max((of[x] for x in languages if x in of), default=0.0)
    if best < -1e30:  # none of its letter sequences is known
        return Evidence((0.0,) * len(languages) + (-NOWHERE,), False, (False,) * len(languages))
    gaps = [(of.get(x, best) - best) * SHARPNESS for x in languages]
    nowhere = min((top - best) * SHARPNESS, CAP) - NOWHERE
    return Evidence((*(max(x, -CAP) for x in gaps), nowhere), False, tuple(x < -FAR for x in gaps))


def foreign(tokens: Sequence[Token], target: str, languages: tuple[str, ...]) -> float:
    """How many of the words (by their worth) are not in `target`, which is one of `languages`."""
    found = [_evidence(t.word, languages) for t in tokens]
    weighed = [_weighed(t, e) for t, e in zip(tokens, found, strict=True)]
    at = languages.index(target)
    leave = LEAVE + max(0, SHORT - len(tokens))
    # Leaving the target cannot pay where all that speaks for it is worth less than the cheapest way out.
    if sum(max(0.0, scores[-1]) - scores[at] for scores in weighed) < min(leave, INTO_NOWHERE):
        path = [at] * len(tokens)
    else:
        path = _path([t.clause for t in tokens], weighed, at, leave)
    lost = 0.0
    for token, state, evidence in zip(tokens, path, found, strict=True):
        if state == at:
            lost += token.worth * (evidence.foreign_to[at] and not token.capital)
        elif not (_salt(token, evidence, at) and state < len(languages) and evidence.scores[state] < 0):
            lost += token.worth
    return lost


def _salt(token: Token, evidence: Evidence, at: int) -> bool:
    """Whether a word is a function word of the target, and cannot be a name."""
    return evidence.listed and evidence.scores[at] == 0 and len(token.word) >= SALT and not token.capital


def _weighed(token: Token, evidence: Evidence) -> tuple[float, ...]:
    """What a word says where it stands; capitalised ones may be names, which say little."""
    if not token.capital or (evidence.listed and token.sentence):
        return evidence.scores
    weight = OPENING if evidence.listed or token.sentence else NAME
    return tuple(x * weight for x in evidence.scores)


def _path(clauses: Sequence[bool], evidence: Sequence[tuple[float, ...]], at: int, leave: float) -> list[int]:
    """The best label of each word, as the place of its language; the last one is "no language"."""
    nowhere = len(evidence[0]) - 1
    states = range(nowhere + 1)
    score = [-leave] * nowhere + [-INTO_NOWHERE]
    score[at] = 0.0
    came_from: list[list[int]] = []
    for clause, scores in zip(clauses, evidence, strict=True):
        best = max(states, key=score.__getitem__)
        change = score[best] - (SWITCH_AT_CLAUSE if clause else SWITCH)
        arriving = [change] * nowhere + [score[best] - INTO_NOWHERE]
        step = list(states)
        for k in states:
            if score[k] < arriving[k]:
                step[k], score[k] = best, arriving[k]
            score[k] += scores[k]
        came_from.append(step)
    state = at if score[at] >= max(score) else max(states, key=score.__getitem__)
    path = []
    for step in reversed(came_from):
        path.append(state)
        state = step[state]
    return path[::-1]
