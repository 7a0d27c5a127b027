"""One real-looking record of every schema: its name, what becomes of it, and the ways in which it goes wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from r1pipe.data import adapters
from r1pipe.data.load import load
from r1pipe.errors import UserError
from r1pipe.settings import DataSpec
from tests.data.test_files import Counts, jsonl

USER = {"role": "user", "content": "2+2?"}
FOUR, FIVE = {"role": "assistant", "content": "4"}, {"role": "assistant", "content": "5"}
TRACE = {"role": "assistant", "content": "<think>\ntwo twos\n</think>\n\\boxed{4}"}

RECORDS: dict[str, tuple[str, dict[str, Any]]] = {
    "gsm8k": ("prompts", {"question": "2+2?", "answer": "2+2=<<2+2=4>>4\n#### 4"}),
    "math": ("prompts", {"problem": "2+2?", "level": "Level 5", "type": "Algebra", "solution": "It is $\\boxed{4}$."}),
    "numinamath": (
        "prompts", {"source": "cn_k12", "problem": "2+2?", "solution": "So $\\boxed{4}$.", "messages": [USER, FOUR]},
    ),
    "numinamath-1.5": (
        "prompts",
        {"problem": "2+2?", "solution": "It is 4.", "answer": "4", "problem_type": "Algebra", "synthetic": False,
         "question_type": "math-word-problem", "problem_is_valid": "Yes", "solution_is_valid": "Yes", "source": "x"},
    ),
    "openr1-math": (
        "traces",
        {"problem": "2+2?", "solution": "s", "answer": "4", "generations": [TRACE["content"]], "uuid": "u",
         "correctness_math_verify": [True], "is_reasoning_complete": [True], "messages": [USER, FIVE]},
    ),
    "deepscaler": ("prompts", {"problem": "2+2?", "answer": "4", "solution": ""}),
    "dapo": (
        "prompts",
        {"data_source": "math_dapo", "prompt": [USER], "ability": "MATH", "extra_info": {"index": "1"},
         "reward_model": {"ground_truth": "4", "style": "rule-lighteval/MATH_v2"}},
    ),
    "mixture-of-thoughts": ("traces", {"messages": [USER, TRACE], "num_tokens": 9, "source": "open-r1/OpenR1-Math"}),
    "countdown": ("prompts", {"target": 4, "nums": [2, 2]}),
    "ultrafeedback": (
        "pairs",
        {"prompt": "2+2?", "prompt_id": "p", "chosen": [USER, FOUR], "rejected": [USER, FIVE],
         "messages": [USER, FOUR], "score_chosen": 9.0, "score_rejected": 2.0},
    ),
    "ultrafeedback-raw": (
        "pairs",
        {"instruction": "2+2?", "source": "x", "models": ["a", "b"],
         "completions": [{"response": "5", "overall_score": 2.0}, {"response": "4", "overall_score": 8.5}]},
    ),
    "hh-rlhf": (
        "pairs", {"chosen": "\n\nHuman: 2+2?\n\nAssistant: 4", "rejected": "\n\nHuman: 2+2?\n\nAssistant: 5"},
    ),
    "hh-rlhf-prompt": ("pairs", {"prompt": "\n\nHuman: 2+2?\n\nAssistant:", "chosen": " 4", "rejected": " 5"}),
    "helpsteer": ("pairs", {"prompt": "2+2?", "response": "4", "helpfulness": 4, "correctness": 4, "verbosity": 1}),
    "helpsteer2-preference": (
        "pairs", {"prompt": "2+2?", "response_1": "4", "response_2": "5", "preference_strength": -2},
    ),
    "helpsteer3": (
        "pairs",
        {"domain": "general", "language": "english", "context": [USER], "response1": "5", "response2": "4",
         "overall_preference": 1},
    ),
    "pku-saferlhf": (
        "labels",
        {"prompt": "2+2?", "response_0": "4", "response_1": "5", "is_response_0_safe": True,
         "is_response_1_safe": False, "better_response_id": 0, "safer_response_id": 0},
    ),
    "safety-qa": ("labels", {"prompt": "2+2?", "response": "4", "is_safe": True, "category": {}}),
    "labels": ("labels", {"prompt": "2+2?", "response": "4", "label": "safe"}),
    "pairs": ("pairs", {"prompt": "2+2?", "chosen": "4", "rejected": "5"}),
    "sharegpt": ("traces", {"conversations": [{"from": "human", "value": "2+2?"}, {"from": "gpt", "value": "4"}]}),
    "alpaca": ("traces", {"instruction": "2+2?", "input": "", "output": "4"}),
    "messages": ("traces", {"messages": [USER, FOUR]}),
    "prompt-completion": ("traces", {"prompt": "2+2?", "completion": " 4"}),
    "problem-answer": ("prompts", {"problem": "2+2?", "answer": 4}),
    "multiple-choice": ("prompts", {"question": "2+2?", "choices": ["3", "4"], "answer": 1}),
    "prompt": ("prompts", {"prompt": "2+2?"}),
    "question": ("prompts", {"question": "2+2?"}),
}  # fmt: skip


def one(folder: Path, record: Any, what: Any, **spec: Any) -> dict[str, Any]:
    (row,) = many(folder, [record], what, **spec)[0]
    return row


def many(folder: Path, records: list[Any], what: Any, **spec: Any) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Rows in the order of the source, and the reasons of what was dropped."""
    path, counts = jsonl(folder / "x.jsonl", *records), Counts()
    try:
        rows = load(DataSpec(source=str(path), **spec), what, seed=0, ctx=counts)
    except UserError as error:
        assert "no rows" in str(error)
        rows = []
    asked = [json.dumps(r) for r in records]
    rows.sort(key=lambda r: next((i for i, t in enumerate(asked) if json.dumps(r["messages"][0]["content"]) in t), 99))
    return rows, {k.removeprefix("data/dropped/"): n for k, n in counts.items() if "dropped" in k}


@pytest.mark.parametrize("name", RECORDS)
def test_schema(name: str, tmp_path: Path) -> None:
    use, record = RECORDS[name]
    schema = adapters.recognise(record)
    assert schema is not None and schema.name == name
    assert adapters.main_use(schema, record) == use
    extra = {**record, "something": {"else": [1]}, "more": None}
    assert adapters.recognise(extra) == schema
    if name == "helpsteer":  # a pair needs two
        rows, _ = many(tmp_path, [record, {**record, "response": "5", "helpfulness": 1}], use)
        row = rows[0]
    else:
        row = many(tmp_path, [extra], use)[0][0]
    last = row["messages"][-1]
    if use == "prompts":
        assert last["role"] == "user" and "2" in last["content"]
        assert row["gold"] == {"countdown": None, "prompt": None, "question": None, "multiple-choice": "B"}.get(
            name, "4"
        )
    elif use == "traces":
        assert row["messages"][0] == USER and "4" in last["content"]
    elif use == "pairs":
        assert (row["messages"], row["chosen"], row["rejected"]) == ([USER], "4", "5")
    else:
        assert (row["messages"], row["response"], row["label"]) in (([USER], "4", 1), ([USER], "5", 0))


def test_every_schema_has_a_record() -> None:
    assert {s.name for s in adapters.SCHEMAS} - set(RECORDS) == {"r1pipe", "scored-responses"}


def test_a_worked_solution_is_the_reference(tmp_path: Path) -> None:
    for name, worked in (
        ("gsm8k", "2+2=<<2+2=4>>4\n#### 4"),
        ("math", "It is $\\boxed{4}$."),
        ("numinamath-1.5", "It is 4."),
    ):
        assert one(tmp_path, RECORDS[name][1], "prompts")["reference"] == worked
    assert one(tmp_path, RECORDS["deepscaler"][1], "prompts")["reference"] is None
    assert one(tmp_path, {"problem": "2+2?", "solution": "4"}, "prompts")["reference"] is None  # only the answer
    assert one(tmp_path, RECORDS["math"][1], "prompts")["level"] == 5


def test_where_the_gold_is(tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], str | None]] = [
        ({"answer": "", "solution": "so \\boxed{7}"}, "7"),
        ({"answer": None, "solution": "Multiply to get 42."}, None),  # a sentence is no answer
        ({"solution": "34"}, "34"),
        ({"answer": "x" * 300}, "x" * 300),
        ({"answer": "first we add, then we multiply " * 12}, None),
        ({"answer": 123456789012345678901234567890}, "123456789012345678901234567890"),
        ({"answer": [None, "3", ["1", "2"]]}, "3, (1, 2)"),
        ({"answer": []}, None),
        ({"answer": {"a": 1.50}}, '{"a": 1.5}'),
        ({"answer": float("nan")}, None),
        ({"final_answer": "8"}, "8"),
        ({"answer": "She has 5.\n#### five"}, None),
        ({"answer": "She has 12 apples."}, None),
        ({"answer": "New York City"}, "New York City"),
    ]
    for columns, gold in cases:
        rows, dropped = many(tmp_path, [{"problem": "what?", **columns}], "prompts")
        assert [r["gold"] for r in rows] == ([gold] if gold else []), columns
        assert gold or dropped == {"no_gold": 1}
    assert one(tmp_path, {"problem": "what?", "answer": {"a": 1}}, "prompts")["kind"] == "json"


def test_answers_without_the_mark_of_the_others(tmp_path: Path) -> None:
    rows = [{"question": "a?", "answer": "She has\n#### 12"}, {"question": "b?", "answer": "12"}]
    assert many(tmp_path, [*rows, {"problem": "c?", "answer": "3"}], "prompts")[1] == {"no_gold": 1}
    assert many(tmp_path, rows[1:], "prompts")[0][0]["gold"] == "12"
    row = one(tmp_path, {"question": "Why?", "answer": "Because it is so."}, "traces")
    assert row["messages"][-1]["content"] == "Because it is so."


def test_numina_flags(tmp_path: Path) -> None:
    record = RECORDS["numinamath-1.5"][1]
    for change, reason in (
        ({"answer": "notfound"}, "not_verifiable"),
        ({"question_type": "proof"}, "not_verifiable"),
        ({"problem_is_valid": "Incomplete"}, "problem_not_valid"),
        ({"solution_is_valid": "Problem not solved"}, "solution_not_valid"),
    ):
        assert many(tmp_path, [{**record, **change}], "prompts")[1] == {reason: 1}
    assert one(tmp_path, {**record, "problem_is_valid": None, "solution_is_valid": None}, "prompts")["gold"] == "4"


def _openr1(**change: Any) -> dict[str, Any]:
    made = ["<think>a</think>\\boxed{5}", "<think>b</think>\\boxed{4}", "<think>c"]
    return {"problem": "2+2?", "answer": "4", "generations": made, **change}


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        ({"correctness_math_verify": [False, True, False]}, 1),
        ({"correctness_math_verify": [False, False, None], "correctness_llama": [False, True, None]}, 1),
        ({"correctness_math_verify": ["False", "True", "False"]}, 1),
        ({"correctness_math_verify": None, "correctness_llama": None}, 1),  # our own verifier says
        ({"correctness_math_verify": [None]}, 1),  # a list too short
        ({}, 1),
        ({"correctness_math_verify": [True, True, True], "is_reasoning_complete": [False, True, False]}, 1),
        ({"correctness_math_verify": [True, True, True], "finish_reasons": ["length", None, "length"]}, 1),
        ({"correctness_math_verify": [False, False, True]}, "trace_wrong"),  # the right one was cut off
        ({"is_reasoning_complete": [False, False, False]}, "trace_incomplete"),
        ({"answer": None}, "trace_unverified"),
        ({"answer": "6"}, "trace_wrong"),
        ({"generations": None}, "no_response"),
        ({"generations": [None, "", 5]}, "no_response"),
        ({"generations": json.dumps(["<think>b</think>\\boxed{4}"])}, 0),
    ],
)
def test_openr1_flags(flags: dict[str, Any], found: int | str, tmp_path: Path) -> None:
    record = _openr1(**flags)
    rows, dropped = many(tmp_path, [record], "traces")
    if isinstance(found, str):
        assert (rows, dropped) == ([], {found: 1})
        return
    made = record["generations"]
    made = json.loads(made) if isinstance(made, str) else made
    assert rows[0]["messages"][-1]["content"] == made[found]


def test_dapo_shapes(tmp_path: Path) -> None:
    record = RECORDS["dapo"][1]
    for truth in (4, "4", ["4"], "\\boxed{4}"):
        row = one(tmp_path, {**record, "reward_model": {"ground_truth": truth}}, "prompts")
        assert (row["gold"], row["kind"]) == ("4", "math")
    assert one(tmp_path, {**record, "reward_model": '{"ground_truth": "4"}'}, "prompts")["gold"] == "4"
    row = one(tmp_path, {**record, "reward_model": {"ground_truth": {"target": 4, "numbers": [2, 2]}}}, "prompts")
    assert (row["kind"], row["gold"], row["extra"]) == ("countdown", None, {"nums": [2, 2], "target": 4})


def test_countdown(tmp_path: Path) -> None:
    row = one(tmp_path, {"nums": [3, 3, 8, 8], "target": 24}, "prompts")
    assert row["extra"] == {"nums": [3, 3, 8, 8], "target": 24} and row["kind"] == "countdown" and row["gold"] is None
    assert "3, 3, 8, 8" in row["messages"][0]["content"] and "24" in row["messages"][0]["content"]
    assert one(tmp_path, {"nums": "[1, 2]", "target": "3"}, "prompts")["extra"] == {"nums": [1, 2], "target": 3}
    assert one(tmp_path, {"nums": [4, 4, 8, 8]}, "prompts")["extra"]["target"] == 24  # the game of 24
    given = one(tmp_path, {"prompt": "Make 3 of 1 and 2.", "nums": [1, 2], "target": 3}, "prompts")
    assert given["messages"][0]["content"] == "Make 3 of 1 and 2." and given["kind"] == "countdown"
    bad = [{"nums": n, "target": 3} for n in (None, [], [1, 2.5], ["a"], "x", [True])]
    assert many(tmp_path, bad, "prompts")[1] == {"no_numbers": 6}
    assert many(tmp_path, [{"nums": [1, 2], "target": t} for t in (None, "x", 1.5)], "prompts")[1] == {"no_target": 3}


def test_hh_rlhf(tmp_path: Path) -> None:
    def pair(chosen: str, rejected: str) -> tuple[list[dict[str, Any]], dict[str, float]]:
        return many(tmp_path, [{"chosen": chosen, "rejected": rejected}], "pairs")

    said = "\n\nHuman: What does\nHuman: mean, and 'Assistant: '?\n\nAssistant: "
    rows, _ = pair(said + "A speaker.", said + "Nothing.")
    assert rows[0]["messages"][0]["content"] == "What does\nHuman: mean, and 'Assistant: '?"
    assert (rows[0]["chosen"], rows[0]["rejected"]) == ("A speaker.", "Nothing.")
    twice = "\n\nHuman: a\n\nHuman: b\n\nAssistant: "
    assert pair(twice + "c", twice + "d")[0][0]["messages"][0]["content"] == "a\n\nHuman: b"
    assert pair("Human: a\r\n\r\nAssistant: b", "Human: a\r\n\r\nAssistant: c")[0][0]["chosen"] == "b"
    assert pair(said + "x", said + "x")[1] == {"no_preference": 1}
    assert pair(said, said + "x")[1] == {"no_response": 1}
    assert pair("\n\nHuman: a\n\nAssistant: b\n\nHuman: c", said + "x")[1] == {"no_response": 1}
    assert pair("\n\nHuman: a\n\nAssistant: b", "\n\nHuman: z\n\nAssistant: c")[1] == {"prompts_differ": 1}
    assert pair("\n\nHuman: \n\nAssistant: b", "\n\nHuman: \n\nAssistant: c")[1] == {"empty_turn": 1}


def test_scores(tmp_path: Path) -> None:
    def made(response: str, score: Any, prompt: str = "p?") -> dict[str, Any]:
        return {"prompt": prompt, "response": response, "helpfulness": score}

    rows, dropped = many(tmp_path, [made("a", 3), made("b", 1), made("c", 4), made("d", None), made("e", 2, "q?"),
                                    made("f", 2, "r?"), made("g", 2, "r?")], "pairs")  # fmt: skip
    assert [(r["chosen"], r["rejected"]) for r in rows] == [("c", "b")] and "score" not in rows[0]
    assert dropped == {"no_score": 1, "between_best_and_worst": 1, "one_response": 1, "no_preference": 2}
    record = RECORDS["ultrafeedback"][1]
    for change, reason in (
        ({"score_chosen": None}, "no_score"),
        ({"score_chosen": 2.0}, "no_preference"),
        ({"score_chosen": "1"}, "scores_contradict"),
        ({"rejected": record["chosen"]}, "no_preference"),
        ({"rejected": [{"role": "user", "content": "other"}, FIVE]}, "prompts_differ"),
        ({"chosen": [USER]}, "no_response"),
        ({"chosen": []}, "no_response"),
    ):
        assert many(tmp_path, [{**record, **change}], "pairs")[1] == {reason: 1}, change


def test_the_prompt_is_not_repeated(tmp_path: Path) -> None:
    asked = "What is two plus two?"
    row = one(tmp_path, {"prompt": asked, "chosen": f"{asked} Four.", "rejected": f"{asked} Five."}, "pairs")
    assert (row["messages"][0]["content"], row["chosen"], row["rejected"]) == (asked, "Four.", "Five.")
    row = one(tmp_path, {"prompt": [USER], "chosen": [FOUR], "rejected": [FIVE]}, "pairs")
    assert (row["messages"], row["chosen"]) == ([USER], "4")
    turns = [{"role": "system", "content": "Be brief."}, USER, FOUR, {"role": "user", "content": "Sure?"}]
    row = one(tmp_path, {"prompt": "2+2?", "chosen": [*turns, FOUR], "rejected": [*turns, FIVE]}, "pairs")
    assert row["messages"] == turns


def test_safety(tmp_path: Path) -> None:
    record = RECORDS["pku-saferlhf"][1]
    rows, _ = many(tmp_path, [record], "labels")
    assert sorted((r["response"], r["label"], r["kind"]) for r in rows) == [("4", 1, "safety"), ("5", 0, "safety")]
    assert many(tmp_path, [{**record, "is_response_0_safe": None}], "labels")[0][0]["label"] == 0
    row = one(tmp_path, {**record, "better_response_id": 1}, "pairs")
    assert (row["chosen"], row["rejected"]) == ("5", "4")
    row = one(tmp_path, {**record, "better_response_id": None}, "pairs")  # then the safer one
    assert row["chosen"] == "4"
    assert many(tmp_path, [{**record, "better_response_id": -1}], "pairs")[1] == {"no_preference": 1}
    for label, value in ((1, 1), ("unsafe", 0), (True, 1), ("harmful", 0), ("1.0", 1)):
        assert one(tmp_path, {"prompt": "2+2?", "response": "4", "label": label}, "labels")["label"] == value
    assert many(tmp_path, [{"prompt": "2+2?", "response": "4", "label": "maybe"}], "labels")[1] == {"no_label": 1}


def test_roles_by_any_name(tmp_path: Path) -> None:
    turns = [("System", "Be brief."), ("HUMAN", "Hi"), ("chatgpt", "Hello"), ("user", "2+2?"), ("gpt-4", "4"),
             ("observation", "a tool said"), ("Assistant", "4")]  # fmt: skip
    for role, content in (("from", "value"), ("role", "content"), ("speaker", "text")):
        row = one(tmp_path, {"conversations": [{role: r, content: c} for r, c in turns]}, "traces")
        assert [m["role"] for m in row["messages"]] == [
            "system", "user", "assistant", "user", "assistant", "tool", "assistant",
        ]  # fmt: skip
    turns_text = json.dumps([{"from": "human", "value": "Hi"}, {"from": "bing", "value": "Ho"}])
    row = one(tmp_path, {"conversation": turns_text}, "traces")
    assert [m["content"] for m in row["messages"]] == ["Hi", "Ho"]


@pytest.mark.parametrize(
    ("turns", "reason"),
    [
        ([{"from": "alien", "value": "x"}], "unknown_role"),
        ([{"from": "human", "value": "x"}, {"from": "gpt", "value": None}], "content_not_text"),
        ([{"from": "human", "value": "x"}, {"from": "gpt", "value": "  "}], "no_response"),
        ([{"from": "gpt", "value": "x"}, {"from": "human", "value": "y"}], "starts_with_assistant"),
        ([{"from": "human", "value": ""}, {"from": "gpt", "value": "y"}], "empty_turn"),
        ([{"from": "human", "value": "x"}], "no_response"),
        ([{"from": "system", "value": "x"}], "no_question"),
        (["x", "y"], "unknown_role"),
        ([], "no_question"),
        (None, "no_question"),
        ([{"role": "user", "content": [{"type": "image_url"}]}, FOUR], "content_not_text"),
        ([{"from": "human", "value": "half \ud800"}, {"from": "gpt", "value": "y"}], "broken_text"),
    ],
)
def test_turns_that_cannot_be_used(turns: Any, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"conversations": turns}) + "\n", encoding="ascii")
    counts = Counts()
    with pytest.raises(UserError, match=f"1 {reason}"):
        load(DataSpec(source=str(path)), "traces", seed=0, ctx=counts)
    assert counts == {f"data/dropped/{reason}": 1}


def test_text_parts_and_reasoning(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "Look:"}, {"type": "text", "text": "2+2?"}]
    row = one(tmp_path, {"messages": [{"role": "user", "content": parts}, FOUR]}, "traces")
    assert row["messages"][0]["content"] == "Look:\n2+2?"
    row = one(tmp_path, {"prompt": "2+2?", "reasoning": "two twos", "response": "4"}, "traces")
    assert row["messages"][-1]["content"] == "<think>\ntwo twos\n</think>\n4"
    row = one(tmp_path, {"instruction": "a", "output": "d", "history": [["b", "c"]], "system": "s"}, "traces")
    assert [m["content"] for m in row["messages"]] == ["s", "b", "c", "a", "d"]


def test_mixed_schemas_and_nulls_in_one_file(tmp_path: Path) -> None:
    rows, dropped = many(
        tmp_path,
        [
            {"problem": "1+1?", "answer": 2},
            {"problem": "1+3?", "answer": 4, "messages": None, "prompt": None},  # as Parquet fills it
            {"Problem": "1+4?", " Answer": 5},
            {"problem": "1+5?"},  # a problem whose answer is missing
            {"prompt": "Write a poem."},
            {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]},
            {"foo": 1},
            {},
        ],
        "prompts",
    )
    assert [r["messages"][0]["content"] for r in rows] == ["1+1?", "1+3?", "1+4?", "Write a poem.", "Hi"]
    assert [r["kind"] for r in rows] == ["math"] * 3 + ["general"] * 2
    assert dropped == {"no_gold": 1, "unknown_schema": 2}


def test_columns_win_and_look_into_objects(tmp_path: Path) -> None:
    record = {"messages": [USER, FOUR], "q": "3+3?", "meta": {"gt": ["6"]}, "stars": 4}
    row = one(tmp_path, record, "prompts", columns={"question": "q", "gold": "meta.gt", "level": "stars"})
    assert (row["messages"][0]["content"], row["gold"], row["level"]) == ("3+3?", "6", 4)
    path = jsonl(tmp_path / "x.jsonl", record)
    with pytest.raises(UserError, match=r'no column "mta\.gt"'):
        load(DataSpec(source=str(path), columns={"question": "q", "gold": "mta.gt"}), "prompts", seed=0)


def test_languages(tmp_path: Path) -> None:
    for said, guessed in (
        ("¿Cuál es la suma de los números primos menores que 10?", "es"),
        ("Wie groß ist die Summe der Primzahlen, die kleiner als 10 sind?", "de"),
        ("Найдите сумму всех простых чисел, которые меньше десяти.", "ru"),
        ("小明有 3 apples，他又买了两个", "zh"),
        ("3足す4はいくつですか", "ja"),
        ("$x^2 + y^2 = 1$, 12 + 30 = ?", "en"),
    ):
        assert one(tmp_path, {"prompt": said}, "prompts")["language"] == guessed
    assert one(tmp_path, {"prompt": "Hola", "language": "Spanish"}, "prompts")["language"] == "es"
    assert one(tmp_path, {"prompt": "Sort it", "language": "python"}, "prompts")["language"] == "en"
