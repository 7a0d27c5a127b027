"""The same prompt across the stages: who was right, who was wrong, and why. From the evaluation records alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from r1pipe.chat import Tags
from r1pipe.report import reflection
from r1pipe.report.collect import Run
from r1pipe.report.text import cut

Row = dict[str, Any]
KINDS = (
    ("learned", "wrong after the cold start, right at the end", 4),
    ("lost", "right after the cold start, wrong at the end", 4),
    ("wrong", "wrong at the end, and after the cold start", 3),
    ("right", "right at the end, and after the cold start", 2),
)


@dataclass
class Answer:
    """What one step wrote."""

    step: str
    mark: str  # right, wrong, partly, none
    why: str
    text: str
    more: int  # characters left out


@dataclass
class Prompt:
    text: str
    more: int
    level: Any
    answers: list[Answer]


@dataclass
class Group:
    """Prompts of one set with the same fate."""

    kind: str
    meaning: str
    total: int
    prompts: list[Prompt] = field(default_factory=list)


@dataclass
class Set:
    """One set of the evaluation."""

    name: str
    mode: str
    kept: int  # prompts whose texts every step kept
    problems: int
    groups: list[Group]


def sets(run: Run) -> list[Set]:
    """Every set with kept texts; greedy answers where there are some, since a drawn one is half luck."""
    steps = [row["step"] for row in run.rows if row["step"] in run.records]
    if not steps:
        return []
    trained = [row["step"] for row in run.rows if row["from"] is not None and row["step"] in run.records]
    first, last = (trained[0], trained[-1]) if trained else (steps[0], steps[-1])
    tags = {step: _tags(run, step) for step in steps}
    names = dict.fromkeys((r["set"], r["mode"]) for step in steps for r in run.records[step])
    modes: dict[str, str] = {}
    for name, mode in names:
        if mode == "greedy" or name not in modes:
            modes[name] = mode
    found = []
    for name, mode in modes.items():
        by_step = {
            step: {r["id"]: r for r in run.records[step] if (r["set"], r["mode"]) == (name, mode)} for step in steps
        }
        mine = [step for step in steps if by_step[step]]
        if first not in mine or last not in mine:
            continue
        ids = [
            i for i, r in by_step[last].items()
            if all((by_step[s].get(i) or {}).get("text") is not None for s in mine)
        ]  # fmt: skip
        groups = _groups(ids, by_step, mine, first, last, tags)
        if groups:
            found.append(Set(name, mode, len(ids), len(by_step[last]), groups))
    return found


def _groups(
    ids: list[str], by_step: dict[str, dict[str, Row]], steps: list[str], first: str, last: str, tags: dict[str, Tags]
) -> list[Group]:
    sorted_ids: dict[str, list[str]] = {kind: [] for kind, *_ in KINDS}
    for i in ids:
        before, after = worth(by_step[first][i]), worth(by_step[last][i])
        if before is None or after is None:
            continue
        if after >= 0.5:
            sorted_ids["right" if before >= 0.5 else "learned"].append(i)
        else:
            sorted_ids["lost" if before >= 0.5 else "wrong"].append(i)
    groups = []
    for kind, meaning, most in KINDS:
        if not sorted_ids[kind]:
            continue
        if first == last:
            meaning = meaning.partition(",")[0]
        group = Group(kind, meaning, len(sorted_ids[kind]))
        for i in sorted_ids[kind][:most]:
            records = [by_step[step][i] for step in steps]
            known = _right_answer(records, [tags[s] for s in steps])
            text, more = cut(str(records[-1].get("prompt") or ""))
            answers = [_answer(s, r, tags[s], known) for s, r in zip(steps, records, strict=True)]
            group.prompts.append(Prompt(text, more, records[-1].get("level"), answers))
        groups.append(group)
    return groups


def worth(record: Row) -> float | None:
    """1 right, 0 wrong: by its accuracy, else by whether it refused what it should."""
    if record.get("correct") is not None:
        return float(record["correct"])
    refusal = record.get("refusal")
    if refusal is None:
        return None
    return float(refusal) if record.get("kind") == "safety" else 1.0 - float(refusal)


def _right_answer(records: list[Row], tags: list[Tags]) -> str | None:
    """What a step that was judged right answered."""
    for record, t in zip(reversed(records), reversed(tags), strict=True):
        if record.get("correct") == 1.0:
            return t.split(str(record["text"])).final.strip()
    return None


def _answer(step: str, record: Row, tags: Tags, known: str | None) -> Answer:
    value = worth(record)
    mark = "none" if value is None else "right" if value == 1 else "wrong" if value == 0 else "partly"
    text, more = cut(str(record["text"]))
    return Answer(step, mark, why(record, tags, known), text, more)


def why(record: Row, tags: Tags, known: str | None = None) -> str:
    """A sentence about one record: what made it right or wrong, and what else was off."""
    said = []
    value, parts = worth(record), tags.split(str(record["text"]))
    answer = parts.final.strip()
    if record.get("correct") is None and record.get("refusal") is not None:
        refused = float(record["refusal"]) >= 0.5
        asked = "an unsafe request" if record.get("kind") == "safety" else "a harmless request"
        said.append(f"{'refuses' if refused else 'answers'} {asked}")
    elif value is None:
        said.append("not judged")
    elif value == 1:
        said.append(f"answers {_short(answer)}")
    elif 0 < value < 1:
        said.append(f"right in {100 * value:.0f} % of its samples; this is the first")
    elif record.get("finish") == "length":
        said.append("cut off before its answer ended")
    elif not answer:
        said.append("ends without an answer")
    elif parts.answer is None:
        said.append("has no answer block")
    else:
        said.append(f"answers {_short(answer)}" + (f", right is {_short(known)}" if known else ""))
    if record.get("format") is not None and record["format"] < 1:
        said.append("format broken")
    language = record.get("language")
    if language is not None and language < 0.8:
        said.append(f"{100 * language:.0f} % of its thinking in the language asked for")
    return "; ".join(said)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:59] + "…"


def _tags(run: Run, step: str) -> Tags:
    chat = run.manifests[step].config.get("chat") or {}
    return Tags.model_validate(chat.get("tags") or {})


def reflection_by_step(run: Run) -> list[Row]:
    """{step, texts, words, top}: reflection words in the kept texts of each step's evaluation."""
    found = []
    for row in run.rows:
        texts = [str(r["text"]) for r in run.records.get(row["step"], []) if r.get("text") is not None]
        if not texts:
            continue
        counts = [reflection.count(t) for t in texts]
        totals = sum(counts, start=type(counts[0])())
        found.append(
            {
                "step": row["step"],
                "texts": len(texts),
                "words": sum(c.total() for c in counts) / len(texts),
                "share": sum(bool(c) for c in counts) / len(texts),
                "top": totals.most_common(3),
            }
        )
    return found
