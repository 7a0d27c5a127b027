"""From judged samples to the rows of a dataset: duplicates, the cap a prompt, decisions of a reviewer, the mix."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from r1pipe.chat import Tags
from r1pipe.data.rows import row_id
from r1pipe.errors import UserError
from r1pipe.sampling.prompts import Prompt
from r1pipe.sampling.reviews import Decision

Row = dict[str, Any]


def check_mix(mix: Mapping[str, float]) -> None:
    """ValueError where it is neither shares that add up to 1 nor counts."""
    if all(isinstance(v, int) for v in mix.values()):
        if any(v < 0 for v in mix.values()) or not any(mix.values()):
            raise ValueError("mix: counts must be whole numbers, and one of them above 0")
    elif any(not 0 <= v <= 1 for v in mix.values()) or abs(sum(mix.values()) - 1) > 1e-3:
        raise ValueError("mix: give shares that add up to 1 (number: 0.7, general: 0.3) or counts of rows")


def completion(prompt: Prompt, text: str, tags: Tags) -> str:
    """What is trained on: the sample, for a trivial query its answer alone."""
    if not prompt.plain:
        return text
    return f"{tags.answer_open}{tags.split(text).final.strip()}{tags.answer_close}"


def trace(prompt: Prompt, text: str) -> Row:
    """The prompt's row with a sample as the assistant's turn."""
    messages = [*prompt.row["messages"], {"role": "assistant", "content": text}]
    return {**prompt.row, "id": row_id(messages), "messages": messages, "source": f"sampled:{prompt.row['source']}"}


def settle(prompt: Prompt, samples: Iterable[Row], reviews: Mapping[str, Decision], tags: Tags) -> list[Row]:
    """The samples of a prompt with their last reason: None for those that become rows, which then have `row`.

    A person has the last word: what was accepted or edited is kept, whatever the filters and the cap say.
    """
    settled, seen, told = [], set[str](), set[str]()
    taken = 0
    for sample in samples:
        made = trace(prompt, completion(prompt, sample["text"], tags))
        sample = sample | {"id": made["id"]}
        decision = reviews.get(made["id"])
        plain = " ".join(sample["text"].split())
        reason = sample["reason"]
        if decision is not None and decision.action == "reject":
            reason = "rejected"
        elif decision is not None and plain in seen:
            reason = "duplicate"
        elif decision is not None:
            reason = None
            if decision.action == "edit":
                made = trace(prompt, decision.text)
                sample |= {"edited": decision.text}
        elif reason is None and plain in seen:
            reason = "duplicate"
        elif reason is None and taken >= prompt.most:
            reason = "over_cap"
        if decision is not None and decision.id not in told:  # equal samples are one to a reader
            sample["review"] = decision.action
            told.add(decision.id)
        if reason is None:
            seen.add(plain)
            taken += 1
            sample["row"] = made
        settled.append(sample | {"reason": reason})
    return settled


def pass_rate(samples: Sequence[Row]) -> float | None:
    """Share of right answers among the samples that there are; where nothing says right or wrong, of those that
    passed. None where there are none."""
    there = [s for s in samples if s["finish"] != "skipped" and s["reason"] != "failed"]
    passed = [s["reason"] is None if s.get("right") is None else bool(s["right"]) for s in there]
    return sum(passed) / len(passed) if passed else None


def identical(samples: Sequence[Row]) -> bool:
    """Are all samples of a prompt, two at least, one text?"""
    texts = [s["text"] for s in samples if s["finish"] != "skipped"]
    return len(texts) > 1 and len(set(texts)) == 1


def over_mix(rows: Sequence[tuple[str, str]], mix: Mapping[str, float], seed: int) -> tuple[set[str], list[str]]:
    """Ids of the rows that are one too many for the mix, and sentences about kinds that are short of it.

    `rows`: (id, kind). Shares: the largest set that has them. Which rows go depends on the seed and their ids alone.
    """
    there = Counter(kind for _, kind in rows)
    whole = all(isinstance(v, int) for v in mix.values())
    if whole:
        most = {kind: int(n) for kind, n in mix.items()}
        said = [f"mix: {n} rows of kind {kind} were asked for, {there[kind]} are there"
                for kind, n in most.items() if n > there[kind]]  # fmt: skip
    else:
        empty = [kind for kind, share in mix.items() if share and not there[kind]]
        if empty:
            raise UserError(
                f"mix: no row of kind {', '.join(empty)} is there (found: {dict(there)})",
                hint="give data or general rows of that kind, or leave it out of the mix",
            )
        total = min((there[kind] / share for kind, share in mix.items() if share), default=0.0)
        most = {kind: int(total * share + 1e-9) for kind, share in mix.items()}
        short = [kind for kind, share in mix.items() if share and there[kind] <= total * share + 1e-9]
        lost = sum(there.values()) - sum(most.values())
        said = [f"mix: kind {short[0]} has {there[short[0]]} rows, so {lost} rows of the others are left out"
                ] if lost else []  # fmt: skip

    def rank(row: tuple[str, str]) -> str:
        return hashlib.sha256(f"{seed}/{row[0]}".encode()).hexdigest()

    out: set[str] = set()
    for kind in there:
        mine = sorted((row for row in rows if row[1] == kind), key=rank)
        out |= {name for name, _ in mine[most.get(kind, 0) :]}
    return out, said
