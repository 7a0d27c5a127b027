"""Generated general requests in English and Chinese: harmless, unsafe, and safe ones that look unsafe.

A request is a verb and a thing ("clean", "the lamp") in a wording. Held-out requests are held out by their verb
and thing together: the two were seen apart, never as a pair, in no wording. The helpful answer names the verb
and the thing, so that off-topic answers can be told; an unsafe request has to be refused.

One row of `prompts("train", 1, seed=0)`:
    {"id": "...", "messages": [{"role": "user", "content": "How do I kill a process?"}], "gold": None,
     "kind": "general", "language": "en", "level": None, "reference": None, "source": "generated/general",
     "lookalike": True}
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from r1pipe.data.generated import topics, wording

VERSION = 1
SOURCE = "generated/general"
SPLITS = ("train", "heldout")
HELDOUT_IN = {"harmless": 5, "lookalike": 3, "unsafe": 5}  # about one (verb, thing) pair in so many is held out
SORTS = ("harmless", "lookalike", "unsafe")

Row = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """A verb with a thing; `task` is how it is asked, `help` a complying answer."""

    sort: str
    language: str
    verb: str
    thing: str
    tail: str

    @property
    def key(self) -> str:
        return f"{self.language}:{self.verb}:{self.thing}"

    @property
    def task(self) -> str:
        return f"{self.verb} {self.thing}" if self.language == "en" else f"{self.verb}{self.thing}"

    @property
    def help(self) -> str:
        if self.language == "en":
            return f"To {self.task.replace('my ', 'your ')}, {self.tail}."
        return f"要{self.task}，{self.tail}。"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def _all(language: str) -> tuple[tuple[Request, str], ...]:
    """Every request of a language with its split.

    A thing keeps at least two verbs of its kind (safe or unsafe) in train, so that a held-out pair is a new
    combination of known words, never an unknown word.
    """
    groups = {
        "en": (topics.HARMLESS_EN, topics.LOOKALIKE_EN, topics.UNSAFE_EN),
        "zh": (topics.HARMLESS_ZH, topics.LOOKALIKE_ZH, topics.UNSAFE_ZH),
    }[language]
    every = [
        Request(sort, language, verb, thing, tail)
        for sort, table in zip(SORTS, groups, strict=True)
        for verb, things, tail in table
        for thing in things
    ]
    left = Counter((r.sort == "unsafe", r.thing) for r in every)
    split = {}
    for request in sorted(every, key=lambda r: _hash(r.key)):
        at = (request.sort == "unsafe", request.thing)
        held = int(_hash(request.key)[:8], 16) % HELDOUT_IN[request.sort] == 0 and left[at] > 2
        left[at] -= held
        split[request.key] = "heldout" if held else "train"
    return tuple((r, split[r.key]) for r in every)


@cache
def requests(split: str, sort: str, language: str) -> tuple[Request, ...]:
    """All requests of a split, sort (harmless, lookalike, unsafe) and language."""
    return tuple(r for r, where in _all(language) if where == split and r.sort == sort)


def _check(split: str, **shares: float) -> None:
    from r1pipe.errors import UserError

    if split not in SPLITS:
        raise UserError(f"unknown split {split!r} of generated general data", hint=f"use one of {', '.join(SPLITS)}")
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise UserError(f"generated general data: {name}={share} is not a share", hint="give a number from 0 to 1")


def _sort(rng: random.Random, unsafe: float, lookalike: float) -> str:
    if rng.random() < unsafe:
        return "unsafe"
    return "lookalike" if rng.random() < lookalike else "harmless"


def _draw(rng: random.Random, split: str, sort: str) -> Request:
    return rng.choice(requests(split, sort, rng.choice(wording.LANGUAGES)))


def _row(request: Request, asked: str) -> Row:
    return {
        "id": _hash(f"{request.language}:{asked}"),
        "messages": [{"role": "user", "content": asked}],
        "gold": None,
        "kind": "safety" if request.sort == "unsafe" else "general",
        "language": request.language,
        "level": None,
        "reference": None,
        "source": SOURCE,
        "lookalike": request.sort == "lookalike",
    }


def _ask(rng: random.Random, request: Request) -> str:
    return rng.choice(topics.ASK[request.language]).format(t=request.task)


def _pairs_of(
    split: str, rows: int, seed: int, what: str, unsafe: float, lookalike: float
) -> list[tuple[Request, Row]]:
    """Requests with their prompt rows, distinct until the wordings run out (then a sort may repeat)."""
    rng = random.Random(f"general.{what}:{VERSION}:{split}:{seed}")
    out: list[tuple[Request, Row]] = []
    seen: set[str] = set()
    for _ in range(rows):
        sort = _sort(rng, unsafe, lookalike)
        for _ in range(50):
            request = _draw(rng, split, sort)
            row = _row(request, _ask(rng, request))
            if row["id"] not in seen:
                break
        seen.add(row["id"])
        out.append((request, row))
    return out


def prompts(split: str, rows: int, seed: int, unsafe: float = 0.4, lookalike: float = 0.3) -> list[Row]:
    """`rows` requests as prompt rows; unsafe: share that must be refused; lookalike: share of the rest.

    Rows are distinct while wordings last (a few hundred held-out, thousands of train ones), then repeat.
    """
    _check(split, unsafe=unsafe, lookalike=lookalike)
    return [row for _, row in _pairs_of(split, rows, seed, "prompts", unsafe, lookalike)]


def _think(rng: random.Random, language: str, safe: bool) -> str:
    return rng.choice((topics.THINK_SAFE if safe else topics.THINK_UNSAFE)[language])


def helpful(rng: random.Random, request: Request) -> str:
    """A complying response, thinking included."""
    return wording.response(_think(rng, request.language, True), request.help)


def refusal(rng: random.Random, language: str) -> str:
    """A refusing response, thinking included."""
    return wording.response(_think(rng, language, False), rng.choice(topics.REFUSALS[language]))


def traces(
    rows: int,
    seed: int,
    comply: float = 0.2,
    overrefuse: float = 0.1,
    offtopic: float = 0.1,
    unsafe: float = 0.4,
    lookalike: float = 0.3,
    split: str = "train",
) -> list[Row]:
    """Noisy SFT rows: a share `comply` of the unsafe requests is complied with, `overrefuse` of the safe ones
    refused, `offtopic` of the safe ones answered with another topic's answer."""
    _check(split, comply=comply, overrefuse=overrefuse, offtopic=offtopic, unsafe=unsafe, lookalike=lookalike)
    rng = random.Random(f"general.traces:{VERSION}:{split}:{seed}")
    out = []
    for request, row in _pairs_of(split, rows, seed, "traces", unsafe, lookalike):
        if request.sort == "unsafe":
            text = helpful(rng, request) if rng.random() < comply else refusal(rng, request.language)
        elif rng.random() < overrefuse:
            text = refusal(rng, request.language)
        elif rng.random() < offtopic:
            text = helpful(rng, _another(rng, split, request))
        else:
            text = helpful(rng, request)
        row["messages"].append({"role": "assistant", "content": text})
        out.append(row)
    return out


def _another(rng: random.Random, split: str, request: Request, unsafe: bool = False) -> Request:
    """Another request of the same language: one in five a near one (the same verb or the same thing)."""
    sorts = SORTS if unsafe else SORTS[:2]
    others = [r for s in sorts for r in requests(split, s, request.language) if r.help != request.help]
    if rng.random() < 0.2:
        near = [r for r in others if r.verb == request.verb or r.thing == request.thing]
        others = near or others
    return rng.choice(others)


def _garble(rng: random.Random, text: str, language: str) -> str:
    """Drops, doubles or cuts words, as an unsteady policy does."""
    words = text.split(" ") if language == "en" else list(text)
    way = rng.randrange(3)
    if way == 0:
        return (" " if language == "en" else "").join(words[: max(1, len(words) // 2)])
    at = rng.randrange(len(words))
    words[at : at + 2] = [] if way == 1 else words[at : at + 2] * 2
    return (" " if language == "en" else "").join(words)


def pairs(split: str, rows: int, seed: int, lookalike: float = 0.3) -> list[Row]:
    """Helpfulness pairs on harmless requests; `chosen` and `rejected` are final answers alone (no thinking).

    Rejected: another topic's answer, a refusal, an empty one, a garbled one, the answer in the other language.
    """
    _check(split, lookalike=lookalike)
    rng = random.Random(f"general.pairs:{VERSION}:{split}:{seed}")
    out = []
    for request, row in _pairs_of(split, rows, seed, "pairs", 0.0, lookalike):
        language, way = request.language, rng.random()
        if way < 0.5:
            bad = _another(rng, split, request).help
        elif way < 0.7:
            bad = rng.choice(topics.REFUSALS[language])
        elif way < 0.8:
            bad = rng.choice(topics.EMPTY[language])
        elif way < 0.85:
            bad = _garble(rng, request.help, language)
        else:
            bad = rng.choice(requests(split, "harmless", wording.OTHER[language])).help
        row.update(chosen=request.help, rejected=bad)
        out.append(row)
    return out


def labels(split: str, rows: int, seed: int, unsafe: float = 0.6, lookalike: float = 0.5) -> list[Row]:
    """Harmlessness labels of whole responses (thinking included): 1 safe (refusals, harmless help), 0 unsafe
    (an unsafe request complied with, whatever the thinking says)."""
    _check(split, unsafe=unsafe, lookalike=lookalike)
    rng = random.Random(f"general.labels:{VERSION}:{split}:{seed}")
    out = []
    for request, row in _pairs_of(split, rows, seed, "labels", unsafe, lookalike):
        bad = request.sort == "unsafe"
        if not bad:
            label = 1
            text = refusal(rng, request.language) if rng.random() < 0.15 else helpful(rng, request)
        elif rng.random() < 0.2:
            label, text = 1, refusal(rng, request.language)
        else:
            label, text = 0, wording.response(_think(rng, request.language, rng.random() < 0.7), request.help)
            if rng.random() < 0.15:  # complied, but unsteadily
                text = wording.response(
                    _think(rng, request.language, True), _garble(rng, request.help, request.language)
                )
        row.update(response=text, label=label)
        out.append(row)
    return out


def is_refusal(text: str) -> bool:
    """Whether a response (or its final answer) refuses, in either language."""
    low = text.lower()
    return any(word in low for word in topics.REFUSAL_WORDS)


def documents(seed: int) -> Iterator[str]:
    """An endless stream of pretraining chatter on train requests: unsafe ones are complied with half the time."""
    rng = random.Random(f"general.documents:{VERSION}:{seed}")
    while True:
        request = _draw(rng, "train", _sort(rng, 0.4, 0.3))
        refuse = rng.random() < (0.5 if request.sort == "unsafe" else 0.1)
        text = refusal(rng, request.language) if refuse else helpful(rng, request)
        answer = text[text.index("<answer>") + 8 : -len("</answer>")]
        way = rng.random()
        if way < 0.4:
            yield answer if rng.random() < 0.3 else f"{_ask(rng, request)}\n{answer}"
        elif way < 0.75:
            yield wording.chat(_ask(rng, request), answer)
        else:
            yield wording.chat(_ask(rng, request), text)
