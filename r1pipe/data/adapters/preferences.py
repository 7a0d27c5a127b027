"""Preferences and labels: hh-rlhf, UltraFeedback, HelpSteer 1 to 3, PKU-SafeRLHF, and plain pairs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from r1pipe.chat import Tags
from r1pipe.data.adapters.dialogues import answer_of, asked, with_system
from r1pipe.data.adapters.turns import Message, conversation, reply, split
from r1pipe.data.rows import Row, What
from r1pipe.data.values import Drop, Record, flag, items, number, parsed, text

# A speaker's name separates only at the start of a turn: `\n\nHuman: `, not the word in a sentence.
_TURN = re.compile(r"(?:^\s*|\n\n)(Human|Assistant):[ \t]*")
_SCORES = (("score_chosen", "score_rejected"), ("chosen_score", "rejected_score"),
           ("chosen-rating", "rejected-rating"), ("chosen_rating", "rejected_rating"))  # fmt: skip
# The column that says which response is better, first match. HelpSteer's other columns (verbosity, ...) do not.
SCORES = ("score", "helpfulness", "overall_score", "rating", "reward")


def _as(row: Row, what: What) -> list[Row]:
    """A pair as what is asked for: its prompt alone, or the chosen response as a trace."""
    if what == "pairs":
        return [row]
    prompt = {"messages": row["messages"]}
    if what == "prompts":
        return [prompt]
    return [{"messages": [*row["messages"], {"role": "assistant", "content": row["chosen"]}]}]


def _preferred(messages: list[Message], chosen: str, rejected: str) -> Row:
    if chosen == rejected:
        raise Drop("no_preference")
    return {**split(messages, "prompts"), "chosen": chosen, "rejected": rejected}


def pairs(record: Record, what: What, tags: Tags) -> list[Row]:
    """`chosen` and `rejected` as texts or conversations. The prompt is what both begin with, else `prompt`; scores,
    where there are some, must differ and agree."""
    _check_scores(record)
    chosen, rejected = parsed(record.get("chosen")), parsed(record.get("rejected"))
    prompt = _shared(chosen, rejected, tags)
    good, bad = reply(chosen, tags), reply(rejected, tags)
    if prompt is None:
        prompt = asked(record, tags)
        if prompt[-1]["role"] == "assistant":  # ultrafeedback's `messages` hold the chosen answer too
            prompt = prompt[:-1]
        question = prompt[-1]["content"].strip() if prompt else ""
        if len(question) > 10 and good.startswith(question) and bad.startswith(question):
            good, bad = (reply(t[len(question) :], tags) for t in (good, bad))
    else:
        prompt = with_system(record, prompt)
    return _as(_preferred(prompt, good, bad), what)


def _shared(chosen: Any, rejected: Any, tags: Tags) -> list[Message] | None:
    """What stands before the responses, where they are whole conversations. Raises Drop where it differs."""
    before = [c[:-1] if isinstance(c, list | tuple) and len(c) > 1 else None for c in (chosen, rejected)]
    if before[0] is None or before[1] is None:
        return None
    first, second = (conversation(list(b), tags) for b in before if b is not None)
    if first != second:
        raise Drop("prompts_differ")
    return first


def _check_scores(record: Record) -> None:
    for good, bad in _SCORES:
        if good in record and bad in record:
            high, low = number(record[good]), number(record[bad])
            if high is None or low is None:
                raise Drop("no_score")
            if high == low:
                raise Drop("no_preference")
            if high < low:
                raise Drop("scores_contradict")


def is_transcripts(record: Record) -> bool:
    """Are the responses whole dialogues of `Human:` and `Assistant:`?"""
    return all(isinstance(t := record.get(n), str) and re.match(r"\s*Human:", t) for n in ("chosen", "rejected"))


def hh_rlhf(record: Record, what: What, tags: Tags) -> list[Row]:
    """Two transcripts that differ in the last turn of the assistant."""
    first, second = (_transcript(record[name]) for name in ("chosen", "rejected"))
    if first[-1]["role"] != "assistant" or second[-1]["role"] != "assistant":
        raise Drop("no_response")
    if first[:-1] != second[:-1]:
        raise Drop("prompts_differ")
    chosen, rejected = (reply(turns[-1]["content"], tags) for turns in (first, second))
    return _as(_preferred(first[:-1], chosen, rejected), what)


def _transcript(value: str) -> list[Message]:
    """The turns of a transcript. Speakers take turns: a `Human:` within a human's turn is text."""
    value = value.replace("\r\n", "\n")
    starts: list[re.Match[str]] = []
    for match in _TURN.finditer(value):
        if match[1] == ("Assistant" if len(starts) % 2 else "Human"):
            starts.append(match)
    ends = [m.start() for m in starts[1:]] + [len(value)]
    turns = [
        {"role": "user" if m[1] == "Human" else "assistant", "content": value[m.end() : end].strip()}
        for m, end in zip(starts, ends, strict=True)
    ]
    if len(turns) < 2:
        raise Drop("no_response" if turns else "no_question")
    if any(not t["content"] for t in turns[:-1]):
        raise Drop("empty_turn")
    return turns


def has_transcript_prompt(record: Record) -> bool:
    """Does the prompt column hold a transcript that waits for the assistant (full-hh-rlhf)?"""
    value = record.get("prompt")
    return isinstance(value, str) and bool(re.match(r"\s*Human:", value)) and value.rstrip().endswith("Assistant:")


def hh_prompt(record: Record, what: What, tags: Tags) -> list[Row]:
    """hh-rlhf with its prompt in a column of its own: `prompt` is a transcript, `chosen` and `rejected` are texts."""
    turns = _transcript(record["prompt"])[:-1]
    return _as(_preferred(turns, reply(record["chosen"], tags), reply(record["rejected"], tags)), what)


def ultrafeedback_raw(record: Record, what: What, tags: Tags) -> list[Row]:
    """UltraFeedback as it was collected: `instruction` and four scored `completions`: the best against the worst."""
    prompt = conversation(text(record.get("instruction")) or "", tags)
    if what == "prompts":
        return [split(prompt, what)]
    scored = []
    for made in items(record.get("completions")) or ():
        if isinstance(made, dict) and (score := number(made.get("overall_score"))) is not None:
            scored.append((score, made.get("response")))
    if len(scored) < 2:
        raise Drop("no_score")
    best, worst = max(scored, key=lambda s: s[0]), min(scored, key=lambda s: s[0])
    if best[0] == worst[0]:
        raise Drop("no_preference")
    return _as(_preferred(prompt, reply(best[1], tags), reply(worst[1], tags)), what)


def helpsteer3(record: Record, what: What, tags: Tags) -> list[Row]:
    """HelpSteer 3: `context`, two responses, `overall_preference` from -3 (the first) to 3 (the second)."""
    return _two(record, what, tags, record.get("context"), ("response1", "response2"), "overall_preference")


def helpsteer2_preference(record: Record, what: What, tags: Tags) -> list[Row]:
    """HelpSteer 2's preferences: `preference_strength` from -3 (the first) to 3 (the second)."""
    return _two(record, what, tags, record.get("prompt"), ("response_1", "response_2"), "preference_strength")


def _two(record: Record, what: What, tags: Tags, prompt: Any, names: tuple[str, str], column: str) -> list[Row]:
    messages = conversation(prompt, tags)
    if what == "prompts":
        return [split(messages, what)]
    preference = number(record.get(column))
    if preference is None:
        raise Drop("no_score")
    if preference == 0:
        raise Drop("no_preference")
    first, second = (reply(record.get(name), tags) for name in names)
    chosen, rejected = (second, first) if preference > 0 else (first, second)
    return _as(_preferred(messages, chosen, rejected), what)


def pku_saferlhf(record: Record, what: What, tags: Tags) -> list[Row]:
    """PKU-SafeRLHF: two responses, each safe or not (labels: a row each), and which is better (pairs: the more helpful
    one; `better_response_id`, else `safer_response_id`)."""
    messages = conversation(record.get("prompt"), tags)
    if what == "prompts":
        return [{**split(messages, what), "kind": "safety"}]
    responses = [reply(record.get(f"response_{i}"), tags) for i in (0, 1)]
    if what == "labels":
        safe = [flag(record.get(f"is_response_{i}_safe")) for i in (0, 1)]
        found = [_label(messages, r, s) for r, s in zip(responses, safe, strict=True) if s is not None]
        if not found:
            raise Drop("no_label")
        return found
    better = number(record.get("better_response_id"))
    better = number(record.get("safer_response_id")) if better is None else better
    if better not in (0, 1):
        raise Drop("no_preference")
    return _as(_preferred(messages, responses[int(better)], responses[1 - int(better)]), what)


def _label(messages: list[Message], response: str, safe: bool) -> Row:
    return {**split(messages, "prompts"), "response": response, "label": int(safe), "kind": "safety"}


def safety(record: Record, what: What, tags: Tags) -> list[Row]:
    """PKU-SafeRLHF-QA, BeaverTails: one response and `is_safe`."""
    safe = flag(record.get("is_safe"))
    if safe is None:
        raise Drop("no_label")
    return [_label(conversation(record.get("prompt"), tags), reply(answer_of(record), tags), safe)]


_LABELS = {"safe": True, "unsafe": False, "harmless": True, "harmful": False}


def labels(record: Record, what: What, tags: Tags) -> list[Row]:
    """A response and `label`: 1, true, safe or harmless; 0, false, unsafe or harmful."""
    given = record.get("label")
    found = _LABELS.get(str(given).strip().lower(), flag(given))
    if found is None:
        raise Drop("no_label")
    row = split(asked(record, tags), "prompts")
    return [{**row, "response": reply(answer_of(record), tags), "label": int(found)}]


def scored(record: Record, what: What, tags: Tags) -> list[Row]:
    """One response and its score (HelpSteer 1 and 2: `helpfulness`). As pairs, the responses of a prompt are put
    together by `best_against_worst`."""
    messages = asked(record, tags)
    if what == "prompts":
        return [split(messages, what)]
    score = next((s for n in SCORES if (s := number(record.get(n))) is not None), None)
    if what == "pairs" and score is None:
        raise Drop("no_score")
    response = reply(answer_of(record), tags)
    if what == "traces":
        return [split([*messages, {"role": "assistant", "content": response}], what)]
    return [{**split(messages, "prompts"), "response": response, "score": score}]


def best_against_worst(rows: Iterable[Row]) -> tuple[list[Row], list[tuple[Row, str]]]:
    """A pair for every prompt with two or more scored responses: the best against the worst. The rows that enter no
    pair, with why."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["id"]].append(row)
    found: list[Row] = []
    dropped: list[tuple[Row, str]] = []
    for group in groups.values():
        best, worst = max(group, key=lambda r: r["score"]), min(group, key=lambda r: r["score"])
        if len(group) == 1:
            dropped.append((group[0], "one_response"))
            continue
        if best["score"] == worst["score"] or best["response"] == worst["response"]:
            dropped += [(row, "no_preference") for row in group]
            continue
        dropped += [(row, "between_best_and_worst") for row in group if row is not best and row is not worst]
        kept = {k: v for k, v in best.items() if k not in ("response", "score")}
        found.append({**kept, "chosen": best["response"], "rejected": worst["response"]})
    return found, dropped
