"""Problems with an answer: GSM8K, MATH, NuminaMath, OpenR1-Math, DeepScaleR, DAPO, Countdown, and their like."""

from __future__ import annotations

import re
from typing import Any

from r1pipe.chat import Tags
from r1pipe.data.adapters import golds
from r1pipe.data.adapters.turns import conversation, split, with_reasoning
from r1pipe.data.rows import Row, What
from r1pipe.data.values import Drop, Record, first, flag, items, number, parsed, text

QUESTIONS = ("question", "problem")
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _user(content: str) -> dict[str, str]:
    return {"role": "user", "content": content}


def _asked(record: Record) -> str:
    """The question, a text or a number. Raises Drop("no_question")."""
    for name in QUESTIONS:
        if isinstance(record.get(name), str | int | float) and (found := text(record[name])):
            return found
    raise Drop("no_question")


def problem(record: Record, what: What, tags: Tags) -> list[Row]:
    """`question` or `problem`, and an answer or a worked solution. As a trace: the solution between the tags."""
    question = _asked(record)
    gold, column = golds.gold(record, text(record.get("kind")))
    kind = {"kind": "json"} if isinstance(record.get(column or ""), dict) else {}
    worked = golds.worked(record)
    if worked == gold:  # a solution column that holds the bare answer
        worked = None
    if what == "prompts":
        unmarked = column == "answer" and "question" in record and not golds.is_marked(text(record[column]))
        bare = {"bare": True} if unmarked else {}  # in a file of GSM8K rows that is no answer
        return [
            {"messages": [_user(question)], "gold": gold, "gold_from": column, "reference": worked, **kind, **bare}
        ]
    said = text(record.get("answer"))
    if gold is None and said and "####" not in said:  # an answer in words
        return [{"messages": [_user(question), {"role": "assistant", "content": said}]}]
    if gold is None:
        raise Drop("no_gold")
    if worked is None:
        raise Drop("no_response")
    reasoning = re.sub(r"<<[^<>]*>>", "", worked.split("####")[0]).strip()  # GSM8K's calculator marks
    if not reasoning:
        raise Drop("no_response")
    messages = [_user(question), {"role": "assistant", "content": tags.wrap(reasoning, gold)}]
    return [{"messages": messages, "gold": gold, "gold_from": column, **kind}]


def question(record: Record, what: What, tags: Tags) -> list[Row]:
    """A question without any column for an answer."""
    return [{"messages": [_user(_asked(record))], "bare": True}]


def numina15(record: Record, what: What, tags: Tags) -> list[Row]:
    """NuminaMath 1.5: its flags say which problems are whole and solved; "proof" and "notfound" stand where an answer
    would."""
    for name in ("problem", "solution"):
        valid = text(record.get(f"{name}_is_valid"))
        if valid is not None and flag(valid) is not True:
            raise Drop(f"{name}_not_valid")
    if not _verifiable(record):
        raise Drop("not_verifiable")
    return problem(record, what, tags)


def _verifiable(record: Record) -> bool:
    answer = (text(record.get("answer")) or "").lower()
    return text(record.get("question_type")) != "proof" and answer not in ("proof", "notfound", "not found")


def openr1(record: Record, what: What, tags: Tags) -> list[Row]:
    """OpenR1-Math: several traces a problem, and a flag a trace. The first that is complete and flagged correct (by
    math-verify, or by the model that looked again) is taken; where no flag says so, the complete traces without a
    flag are left to our own verifier (`unverified`)."""
    if what == "prompts":
        return numina15(record, what, tags)
    asked = _asked(record)
    traces = items(record.get("generations")) or []
    if not any(isinstance(t, str) and t.strip() for t in traces):
        raise Drop("no_response")
    gold, column = golds.gold(record) if _verifiable(record) else (None, None)
    row: Row = {"messages": [_user(asked)], "gold": gold, "gold_from": column, "reference": golds.worked(record)}
    unknown = []
    for index, trace in enumerate(traces):
        if not isinstance(trace, str) or not trace.strip() or not _complete(record, index, trace):
            continue
        correct = _correct(record, index)
        if correct:
            return [_answered(row, trace.strip())]
        if correct is None:
            unknown.append(trace.strip())
    if not unknown:
        complete = any(_complete(record, i, t) for i, t in enumerate(traces) if isinstance(t, str))
        raise Drop("trace_wrong" if complete else "trace_incomplete")
    if gold is None:
        raise Drop("trace_unverified")
    return [{**_answered(row, unknown[0]), "unverified": unknown}]


def _answered(row: Row, trace: str) -> Row:
    return {**row, "messages": [*row["messages"], {"role": "assistant", "content": trace}]}


def _at(value: Any, index: int) -> Any:
    """The flag of one trace: from a list; a single flag holds for all."""
    value = parsed(value)
    if isinstance(value, list | tuple):
        return value[index] if index < len(value) else None
    return value


def _correct(record: Record, index: int) -> bool | None:
    found = [flag(_at(record.get(name), index)) for name in ("correctness_math_verify", "correctness_llama")]
    return True if True in found else False if False in found else None


def _complete(record: Record, index: int, trace: str) -> bool:
    """Finished, and not cut off while it thinks; a flag that is not there says nothing."""
    if flag(_at(record.get("is_reasoning_complete"), index)) is False:
        return False
    if _at(record.get("finish_reasons"), index) == "length":
        return False
    return "<think>" not in trace or "</think>" in trace


def dapo(record: Record, what: What, tags: Tags) -> list[Row]:
    """verl's schema: `prompt` as messages, the answer in `reward_model.ground_truth`."""
    reward = parsed(record.get("reward_model"))
    truth = parsed(reward.get("ground_truth")) if isinstance(reward, dict) else None
    row = split(conversation(record["prompt"], tags), "prompts")
    if isinstance(truth, dict) and "target" in truth:  # TinyZero's countdown
        numbers = truth.get("numbers") or truth.get("nums")
        return [{**row, "kind": "countdown", "extra": {"nums": numbers, "target": truth["target"]}}]
    answer = text(truth)
    given = golds.gold_of(answer) if answer else None
    column = "reward_model.ground_truth" if given else None
    if given is None:
        given, column = golds.gold(record)
    return [{**row, "gold": given, "gold_from": column}]


def is_dapo(record: Record) -> bool:
    reward = parsed(record.get("reward_model"))
    return isinstance(reward, dict) and "ground_truth" in reward


COUNTDOWN = (
    "Using the numbers {numbers}, write an expression that equals {target}. Use only + - * / and brackets, "
    "and use {how}. Answer with the expression."
)


def countdown(record: Record, what: What, tags: Tags) -> list[Row]:
    """Numbers and a target, without a prompt: the prompt is built here. Without a column for the target it is 24."""
    numbers = items(record.get("nums")) or items(record.get("numbers"))
    values = [number(n) for n in numbers or ()]
    if not numbers or any(v is None or v != int(v) for v in values):
        raise Drop("no_numbers")
    target = number(record.get("target", 24))
    if target is None or target != int(target):
        raise Drop("no_target")
    whole = [int(v) for v in values if v is not None]
    use = "some" if record.get("use") == "some" else "all"
    how = "each number exactly once" if use == "all" else "each number at most once"
    asked = COUNTDOWN.format(numbers=", ".join(map(str, whole)), target=int(target), how=how)
    return [
        {
            "messages": [_user(asked)],
            "kind": "countdown",
            "extra": {"nums": whole, "target": int(target), **({"use": use} if use == "some" else {})},
        }
    ]


def is_countdown(record: Record) -> bool:
    """Numbers to count with, and nothing that asks."""
    asks = any(record.get(name) is not None for name in ("messages", "prompt", *QUESTIONS))
    return not asks and ("nums" in record or "target" in record)


def choices(record: Record, what: What, tags: Tags) -> list[Row]:
    """Multiple choice (MMLU, ARC): the choices are put below the question where it does not show them."""
    asked = _asked(record)
    options = _options(parsed(record.get("choices")))
    if not options:
        raise Drop("no_choices")
    answer = first(record, "gold", "answer", "answerkey", "answer_key")
    if answer is None:
        raise Drop("no_gold")
    labels = list(options)
    position = number(record.get("answer"))
    if position is not None and answer not in options and 0 <= position < len(labels) and position == int(position):
        answer = labels[int(position)]  # MMLU counts from 0
    if any(t not in asked for t in options.values()):
        asked += "\n\n" + "\n".join(f"{label}. {t}" for label, t in options.items())
    return [{"messages": [_user(asked)], "gold": answer, "gold_from": "answer", "kind": "choice",
             "extra": {"choices": options}}]  # fmt: skip


def _options(given: Any) -> dict[str, str]:
    if isinstance(given, dict) and isinstance(given.get("text"), list):
        texts, labels = given["text"], given.get("label") or _LETTERS
    elif isinstance(given, dict):
        texts, labels = list(given.values()), list(given)
    else:
        texts, labels = given if isinstance(given, list) else [], _LETTERS
    found = [text(t) for t in texts]
    if len(found) < 2 or None in found or len(found) > len(labels):
        return {}
    return {str(label): str(t) for label, t in zip(labels, found, strict=False)}


def trace_with_reasoning(record: Record, content: str, tags: Tags) -> str:
    """The response, with a `reasoning` column in front of it."""
    reasoning = text(record.get("reasoning"))
    if reasoning and tags.think_close not in content:
        return with_reasoning(reasoning, content, tags)
    return content
