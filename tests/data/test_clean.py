"""Duplicates, decontamination, filters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from r1pipe.data.clean import decontaminate, dedup, normal
from r1pipe.data.load import load
from r1pipe.data.rows import canonical, row_id
from r1pipe.digest import text_digest
from r1pipe.errors import UserError
from r1pipe.settings import Cleaning, DataSpec
from tests.data.test_files import Counts, jsonl


def row(text: str, number: int = 0, **more: Any) -> dict[str, Any]:
    return {"id": f"{number:016x}", "record": number, "messages": [{"role": "user", "content": text}], "gold": None,
            "kind": "math", "language": "en", **more}  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What is 2 + 2?", "  what is 2+2 ?\n"),
        ("Find $x^2$.", "find x^2"),
        (r"Compute \dfrac{1}{2}", r"compute \( \frac{1}{2} \)"),
        ("二加三等于几？", "二加三等于几"),
        ("Ｗhat is ２＋２?", "What is 2+2"),
        ("a × b − c", r"a \cdot b - c"),
        (r"x \leqslant 3", "x ≤ 3"),
        ("Don’t say “hi”", "don't say hi"),
        (r"\left( x \right)", "( x )"),
        ("Hello!", "hello"),
        ("zero\u200bwidth", "zerowidth"),
    ],
)
def test_one_spelling(one: str, other: str) -> None:
    assert normal.tokens(one) == normal.tokens(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What is 2 + 2?", "What is 2 + 3?"),
        ("2+2", "2-2"),
        ("1 2", "12"),
        ("12 3", "1 23"),
        ("1.5", "15"),
        ("3:4", "34"),
        ("x²", "x2"),
        ("10²", "102"),
        ("x₁", "x1"),
        ("2½", "21/2"),
        ("5!", "5"),
        ("n!", "n"),
        ("-5", "5"),
        ("f'(x)", "f(x)"),
        ("a^{b+c}", "a^b+c"),
        (r"\frac{1}{23}", r"\frac{12}{3}"),
        ("二加三", "二加四"),
        ("1,234", "1234"),
    ],
)
def test_digits_are_never_merged(one: str, other: str) -> None:
    assert normal.tokens(one) != normal.tokens(other)


@given(st.text(max_size=80))
def test_tokens_take_any_text(text: str) -> None:
    found = normal.tokens(text)
    assert all(t and not t.isspace() for t in found)
    if "\\" not in text:  # commands of LaTeX have their own case
        assert found == normal.tokens(f"  {text.upper() if text.isascii() else text}\n")
    digits = "".join(c for t in found for c in t if c.isdecimal())
    assert "\\" in text or digits == normal.digits(text)


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.text()), min_size=1, max_size=4))
def test_row_id_is_that_of_the_canonical_form(turns: list[tuple[str, str]]) -> None:
    messages = [{"role": role, "content": text} for role, text in turns]
    assert row_id(messages) == text_digest(canonical([[r, t] for r, t in turns]))[:16]


def test_exact_duplicates_keep_the_first() -> None:
    rows = [row("What is 2 + 2?", 1, gold="4"), row("what is 2+2", 2, gold="4"), row("What is 2+2 ?", 3, gold="5"),
            row("What is 2 + 3?", 4), row("Say hi", 5), row("say HI!", 6)]  # fmt: skip
    kept, dropped = dedup.exact(rows)
    assert kept == [0, 3, 4]
    assert [(d.reason, d.record, d.detail.get("of")) for d in dropped] == [
        ("duplicate", 2, rows[0]["id"]),
        ("duplicate_other_gold", 3, rows[0]["id"]),
        ("duplicate", 6, rows[4]["id"]),
    ]


def test_samples_of_one_question_are_no_duplicates() -> None:
    def trace(answer: str, number: int) -> dict[str, Any]:
        made = row("What is 2+2?", number)
        return {**made, "messages": [*made["messages"], {"role": "assistant", "content": answer}]}

    assert dedup.exact([trace("Four.", 1), trace("It is 4.", 2), trace("four. ", 3)])[0] == [0, 1]
    pairs = [
        row("Q", 1, chosen="a", rejected="b"),
        row("q?", 2, chosen="a", rejected="c"),
        row("Q", 3, chosen="A", rejected="b"),
    ]
    assert dedup.exact(pairs)[0] == [0, 1]
    long = "Find the value of x when the train has left the station and both of the clocks show noon"
    near = [{**trace("a", 1)}, trace("b", 2)]
    for made, text in zip(near, (long, long + " today"), strict=True):
        made["messages"][0]["content"] = text
    assert dedup.near(near, 0.8)[0] == [0]


APPLES = "小明有五个苹果，他又买了三个苹果，请问他现在一共有多少个苹果？"
STORY = "Write a short story about a dragon who lives in the old castle on the hill near the quiet village"
TRAIN = "A train travels 60 miles in 2 hours. How far will the train travel in 5 hours at the same speed?"


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [
        (STORY, STORY.replace("quiet village", "quiet little village"), True),
        (STORY, STORY.replace("Write", "Tell"), True),
        (STORY, STORY.replace("castle", "castel"), True),  # misspelled
        (STORY, STORY.replace("dragon", "wizard"), False),
        (STORY, STORY.replace("castle", "hill").replace("on the hill", "on the castle"), False),
        (TRAIN, TRAIN.replace("How far will the train", "Find how far the train will"), False),  # under the threshold
        (TRAIN, TRAIN.replace("at the same speed", "at that same speed"), True),
        (TRAIN, TRAIN.replace("5 hours", "6 hours"), False),
        (TRAIN.replace("5", "five"), TRAIN.replace("5", "six"), False),
        (STORY + " with x", STORY + " with y", False),
        (STORY + " 2 + 2", STORY + " 2 * 2", False),
        (STORY.replace("short", "shortest"), STORY.replace("short", "longest"), False),
        (STORY.replace("who lives", "who not lives"), STORY, False),
        (APPLES, APPLES.replace("？", "呢？"), True),
        (APPLES, APPLES.replace("三", "四"), False),
    ],
)  # fmt: skip
def test_near_duplicates(one: str, other: str, near: bool) -> None:
    kept, dropped = dedup.near([row(one, 1), row(other, 2)], 0.7)
    assert kept == ([0] if near else [0, 1])
    assert not near or dropped[0].detail["of"] == f"{1:016x}"


def test_near_duplicates_among_many() -> None:
    """MinHash finds what comparing all with all finds."""
    words = [f"{chr(97 + i // 26)}zq{chr(97 + i % 26)}x" for i in range(300)]
    texts = [" ".join(words[(i * 7 + j * (i % 5 + 1)) % 300] for j in range(24)) for i in range(120)]
    texts += [f"{t} extra words here" for t in texts[:40]]
    rows = [row(t, i) for i, t in enumerate(texts)]
    kept, _ = dedup.near(rows, 0.8)

    def shingles(text: str) -> set[tuple[str, ...]]:
        found = text.split()
        return {tuple(found[i : i + 3]) for i in range(len(found) - 2)}

    def like(a: int, b: int) -> bool:
        one, other = shingles(texts[a]), shingles(texts[b])
        contents = set(texts[a].split()) - {"here"}, set(texts[b].split()) - {"here"}
        replaced = bool(contents[0] - contents[1]) and bool(contents[1] - contents[0])
        return len(one & other) >= 0.8 * len(one | other) and not replaced

    expected: list[int] = []
    for i in range(len(texts)):
        if not any(like(j, i) for j in expected):
            expected.append(i)
    assert kept == expected and 100 < len(kept) < 130


# The evaluation prompts, a row, and whether it is one of them.
STOCK = "How many positive integers less than or equal to {} {}?"
SUM = "What is the sum of all positive integers less than {}?"
FORM = "{} It can be written in the form m/n where m and n are relatively prime positive integers. Find m+n."
DIVISORS = STOCK.format(90, "have exactly three odd divisors")
DECONTAMINATION: list[tuple[str, str, int, bool]] = [
    (DIVISORS, STOCK.format(600, "are multiples of 7"), 8, False),
    (DIVISORS, DIVISORS + " Explain.", 8, True),
    (SUM.format(50), SUM.format(100), 8, False),
    (SUM.format(50), "So: " + SUM.format(50), 8, True),
    (FORM.format("AB=5."), FORM.format("A box."), 10, False),
    ("What is 7*8?", "What is 7*8?", 8, True),
    ("What is 7*8?", "what is 7 * 8", 10, True),
    ("What is 7*8?", "Solve this.\n\nWhat is 7*8?\n\nPut it in a box.", 10, True),
    ("What is 7*8? Put your final answer within a box and explain it.", "What is 7*8?", 10, True),
    ("What is 7*8?", "What is 7*9?", 10, False),
    ("What is 7*8?", "What is 7*8+1?", 10, False),
    ("Janet's ducks lay 16 eggs per day. She eats three for breakfast and bakes muffins for her friends with four.",
     "In a book: janet's ducks lay 16 eggs per day; she eats three for breakfast and bakes cakes!", 10, True),
    (APPLES, "题目：" + APPLES, 10, True),
    ("求满足条件的所有正整数的个数，其中能被7整除", "求满足条件的所有正整数的个数，其中小于等于100", 8, False),
]  # fmt: skip


def index(*texts: str, n: int = 10) -> decontaminate.Index:
    return decontaminate.Index.of([decontaminate.Prompt("e", str(i), t) for i, t in enumerate(texts)], n)


@pytest.mark.parametrize(("prompt", "text", "n", "hit"), DECONTAMINATION)
def test_decontamination(prompt: str, text: str, n: int, hit: bool) -> None:
    made = index(prompt, n=n)
    found = made.find(text)
    assert (found is not None) == hit
    if found:  # the matching words are words of both
        assert found[1].split()[0] in normal.tokens(text) and found[0].text == prompt


def test_what_every_prompt_of_a_set_says_is_stock() -> None:
    wrap = "Solve the following math problem step by step. The last line should be of the form Answer: $Answer. "
    made = index(*(wrap + f"Quokka number {i} ate {i * 3} purple bananas in zone {i}" for i in range(30)))
    assert made.find(wrap + "Zebras run over 14 hills each day in spring") is None and made.phrases == 1
    assert made.find("Quokka number 7 ate 21 purple bananas in zone 7, really") is not None


def test_hits_are_written_out(tmp_path: Path) -> None:
    class Context(Counts):
        facts: dict[str, Any]

        def fact(self, name: str, value: Any) -> None:
            self.facts = {name: value}

    source = jsonl(
        tmp_path / "x.jsonl", {"problem": "What is 7*8?", "answer": "56"}, {"problem": "7+1?", "answer": "8"}
    )
    against = jsonl(tmp_path / "eval.jsonl", {"prompt": "what is 7 * 8"})  # a prompt without an answer
    context = Context()
    spec = DataSpec(source=str(source), clean=Cleaning(decontaminate=[str(against)]))  # type: ignore[list-item]
    assert [r["gold"] for r in load(spec, "prompts", seed=0, ctx=context)] == ["8"]
    assert context == {"data/dropped/contaminated": 1}
    (about,) = context.facts.values()
    assert about["evaluation_prompts"] == 1 and about["contaminated"][0]["ngram"] == "what is 7 * 8"
    assert about["contaminated"][0]["text"] == "What is 7*8?" and about["gold_from"] == {"answer": 2}


def test_filters(tmp_path: Path) -> None:
    source = jsonl(
        tmp_path / "x.jsonl",
        {"problem": "Short?", "answer": "1", "pass_rate": 0.5},
        {"problem": "Wie groß ist die Summe der Zahlen, die kleiner als 10 sind?", "answer": "2", "pass_rate": "0.5"},
        {"problem": "What is the number of days in a week of the year?", "answer": "3", "pass_rate": 1},
        {"problem": "What is the number of days in a month of the year?", "answer": "4"},
        {"problem": "What is the number of days in a year of the era?", "answer": "5", "pass_rate": 0.0},
        {"problem": "What is the number of days? " * 20, "answer": "6", "pass_rate": 0.5},
        {"problem": "What is the number of hours in a day of the year?", "answer": "7", "pass_rate": 0.2},
    )

    def golds(**options: Any) -> tuple[set[str], dict[str, float]]:
        counts = Counts()
        rows = load(DataSpec(source=str(source), clean=Cleaning(**options)), "prompts", seed=0, ctx=counts)
        return {r["gold"] for r in rows}, {k.removeprefix("data/dropped/"): n for k, n in counts.items()}

    assert golds(languages=["German"]) == ({"2"}, {"language": 6})
    assert golds(min_chars=10, max_chars=100) == ({"2", "3", "4", "5", "7"}, {"too_short": 1, "too_long": 1})
    assert golds(pass_rate=(0.2, 0.9)) == ({"1", "2", "6", "7"}, {"no_pass_rate": 1, "too_easy": 1, "too_hard": 1})
    rows = load(DataSpec(source=str(source)), "prompts", seed=0)
    rates = [{"id": r["id"], "passed": int(r["gold"]), "sampled": 8} for r in rows]
    jsonl(tmp_path / "rates.jsonl", *rates, {"id": None}, {"id": "x", "pass_rate": 7})
    assert golds(pass_rate=(0.5, 0.7), pass_rates=str(tmp_path / "rates.jsonl"))[0] == {"4", "5"}
    traces = [{**r, "messages": [*r["messages"], {"role": "assistant", "content": "so"}], "id": "0" * 16,
               "pass_rate": int(r["gold"]) / 8} for r in rows]  # fmt: skip
    jsonl(tmp_path / "rates.jsonl", *traces)  # of a sampling run
    assert golds(pass_rate=(0.5, 0.7), pass_rates=str(tmp_path / "rates.jsonl"))[0] == {"4", "5"}
    jsonl(tmp_path / "rates.jsonl", {"id": "x"})
    with pytest.raises(UserError, match="no measured pass rates"):
        golds(pass_rate=(0.5, 0.7), pass_rates=str(tmp_path / "rates.jsonl"))


@pytest.mark.parametrize("options", [{"pass_rate": (0.9, 0.1)}, {"pass_rates": "x"}, {"near_dup": 0.1}, {"ngrams": 5}])
def test_bad_options(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Cleaning(**options)


def test_nothing_is_cleaned_unasked(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "x.jsonl", *({"problem": "2+2?", "answer": a} for a in "44"))
    assert len(load(DataSpec(source=str(source)), "prompts", seed=0)) == 2
    assert len(load(DataSpec(source=str(source), clean=Cleaning()), "prompts", seed=0)) == 1
    spec = DataSpec(source="generated:arithmetic", rows=40, args={"levels": [1]})
    counts = Counts()
    rows = load(spec, "prompts", seed=0, ctx=counts)
    assert len(rows) == 40 and not counts
    cleaned = load(spec.model_copy(update={"clean": Cleaning()}), "prompts", seed=0, ctx=counts)
    assert len(cleaned) + counts.get("data/dropped/duplicate", 0) == 40


def test_the_fingerprint_sees_the_evaluation_sets(tmp_path: Path) -> None:
    from r1pipe.settings import walk

    against = jsonl(tmp_path / "eval.jsonl", {"prompt": "x"})
    spec = DataSpec(source="x.jsonl", clean=Cleaning(decontaminate=[str(against)]))  # type: ignore[list-item]
    assert [s.source for s in walk(spec) if isinstance(s, DataSpec)] == ["x.jsonl", str(against)]
    assert json.loads(spec.model_dump_json(exclude_defaults=True))["clean"]["decontaminate"][0]["split"] == "test"
