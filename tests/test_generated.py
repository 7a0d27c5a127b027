"""The generated data: right answers, disjoint splits, determinism, what the noise and the errors look like."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import islice

import pytest

from r1pipe.data.generated import GENERATORS, arithmetic, corpus, general, make
from r1pipe.errors import UserError

FORM = re.compile(r"<think>\n(.+)\n</think>\n<answer>(.+)</answer>", re.DOTALL)
FIELDS = {"id", "messages", "gold", "kind", "language", "level", "reference", "source"}


@pytest.mark.parametrize("split", arithmetic.SPLITS)
def test_prompts_are_distinct_rows_of_their_split(split: str) -> None:
    rows = arithmetic.prompts(split, 1000, seed=0)
    assert len({r["id"] for r in rows}) == len(rows) == 1000
    assert all(set(r) == FIELDS and re.fullmatch(r"[0-9a-f]{16}", r["id"]) for r in rows)
    assert {r["level"] for r in rows} == set(arithmetic.LEVELS)
    assert {r["language"] for r in rows} == {"en", "zh"}
    assert json.loads(json.dumps(rows)) == rows


def test_gold_is_the_sum_and_the_numbers_stand_in_the_question() -> None:
    for row in arithmetic.prompts("train", 500, seed=3, story=0.0):
        asked = row["messages"][0]["content"]
        for words, sign in ((" plus ", "+"), (" minus ", "-"), ("加", "+"), ("减", "-"), (" + ", "+"), (" - ", "-")):
            asked = asked.replace(words, sign)
        found = re.search(r"\d+([+-]\d+)+", asked)
        assert found, asked
        assert sum(int(n) for n in re.findall(r"[+-]?\d+", found[0])) == int(row["gold"])


def test_splits_share_no_problem_and_range_operands_are_unseen() -> None:
    ids = {s: {r["id"] for r in arithmetic.prompts(s, 3000, seed=1)} for s in arithmetic.SPLITS}
    assert not ids["train"] & ids["heldout"] and not ids["train"] & ids["range"] and not ids["heldout"] & ids["range"]
    rng = arithmetic._rng("test")
    for split in ("train", "heldout"):
        for level in arithmetic.LEVELS:
            for _ in range(200):
                problem = arithmetic.draw(rng, split, level)
                assert not arithmetic.RESERVED & {abs(n) for n in problem}
                assert arithmetic.split_of(problem) == split
    for _ in range(200):
        assert arithmetic.RESERVED & {abs(n) for n in arithmetic.draw(rng, "range", 3)}


def test_at_least_a_million_problems() -> None:
    """Of random chains of level 4 nearly none repeats; by the birthday estimate n^2 / (2 * repeats) there are more
    than a million in that level alone."""
    rng = arithmetic._rng("count")
    drawn = [arithmetic.draw(rng, "train", 4) for _ in range(8_000)]
    assert 8_000**2 / (2 * max(1, len(drawn) - len(set(drawn)))) > 1_000_000


@pytest.mark.parametrize("name", ["arithmetic.prompts", "arithmetic.traces", "general.pairs", "general.labels"])
def test_same_seed_same_rows_whatever_the_hash_seed(name: str) -> None:
    maker, what = name.split(".")
    args = {"rows": 40, "seed": 5} | ({} if what == "traces" else {"split": "train"})
    code = (
        "import hashlib, json; from r1pipe.data.generated import make; "
        f"print(hashlib.sha256(json.dumps(make({maker!r}, {what!r}, **{args!r})).encode()).hexdigest())"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": s},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for s in ("0", "1234")
    }
    assert len(seen) == 1
    assert make(maker, what, **args) != make(maker, what, **{**args, "seed": 6})


def test_trace_noise_is_as_asked() -> None:
    clean = arithmetic.traces(400, seed=0, wrong=0.0, mixed=0.0, malformed=0.0)
    for row in clean:
        found = FORM.fullmatch(row["messages"][-1]["content"])
        assert found and found[2] == row["gold"]
        assert bool(re.search("[\u4e00-\u9fff]", found[1])) == (row["language"] == "zh")
        assert bool(re.search("[A-Za-z]", found[1])) == (row["language"] == "en")
    noisy = arithmetic.traces(1000, seed=0, wrong=0.2, mixed=0.3, malformed=0.0)
    right = sum(f"<answer>{r['gold']}</answer>" in r["messages"][-1]["content"] for r in noisy) / 1000
    assert 0.45 < right < 0.65
    broken = arithmetic.traces(1000, seed=0, malformed=0.1)
    assert 0.07 < sum(not FORM.fullmatch(r["messages"][-1]["content"]) for r in broken) / 1000 < 0.13


def test_general_splits_are_disjoint_by_combination() -> None:
    for language in ("en", "zh"):
        for sort in general.SORTS:
            train, held = (general.requests(s, sort, language) for s in general.SPLITS)
            assert train and held and not {r.key for r in train} & {r.key for r in held}
            alike = [r for r in general.requests("train", sort, language)]
            if sort != "unsafe":
                alike += [r for o in ("harmless", "lookalike") for r in general.requests("train", o, language)]
            assert {r.thing for r in held} <= {r.thing for r in alike}  # known words, new combinations
            assert {r.verb for r in held} <= {r.verb for r in train}
    unsafe = {r.key for s in general.SPLITS for la in ("en", "zh") for r in general.requests(s, "unsafe", la)}
    safe = {
        r.key
        for s in general.SPLITS
        for la in ("en", "zh")
        for o in general.SORTS[:2]
        for r in general.requests(s, o, la)
    }
    assert not unsafe & safe


def test_general_prompts_shares() -> None:
    rows = general.prompts("train", 1000, seed=0, unsafe=0.4, lookalike=0.3)
    assert 0.35 < sum(r["kind"] == "safety" for r in rows) / 1000 < 0.45
    assert 0.12 < sum(r["lookalike"] for r in rows) / 1000 < 0.24
    assert len({r["id"] for r in general.prompts("train", 500, seed=0)}) > 450
    assert all(r["gold"] is None for r in rows)


def test_refusals_are_told_from_help() -> None:
    for row in general.traces(600, seed=0, comply=0.0, overrefuse=0.0, offtopic=0.0):
        assert general.is_refusal(row["messages"][-1]["content"]) == (row["kind"] == "safety")
        assert FORM.fullmatch(row["messages"][-1]["content"])
    noisy = general.traces(1000, seed=0, comply=0.3, overrefuse=0.2)
    unsafe = [general.is_refusal(r["messages"][-1]["content"]) for r in noisy if r["kind"] == "safety"]
    safe = [general.is_refusal(r["messages"][-1]["content"]) for r in noisy if r["kind"] != "safety"]
    assert 0.6 < sum(unsafe) / len(unsafe) < 0.8 and 0.12 < sum(safe) / len(safe) < 0.28


def test_pairs_and_labels() -> None:
    for row in general.pairs("heldout", 300, seed=0):
        assert row["chosen"] and row["rejected"] and row["chosen"] != row["rejected"]
        assert "<think>" not in row["chosen"] + row["rejected"] and not general.is_refusal(row["chosen"])
    rows = general.labels("heldout", 300, seed=0)
    for row in rows:
        assert row["response"].startswith("<think>")
        assert row["label"] == int(row["kind"] != "safety" or general.is_refusal(row["response"]))
    assert 0.3 < sum(r["label"] for r in rows) / 300 < 0.7


def test_documents_never_hold_a_held_out_problem() -> None:
    """Every question of the pretraining text is a train problem: its chain is read back and looked up."""
    signs = ((" plus ", "+"), (" minus ", "-"), (" + ", "+"), (" - ", "-"), ("加", "+"), ("减", "-"))
    checked = 0
    for text in islice(corpus.documents("test"), 3000):
        for line in text.split("\n"):
            if not line.endswith(("?", "？")) and not line.startswith(
                ("Compute", "Work out", "Find", "计算", "请算出")
            ):
                continue
            for words, sign in signs:
                line = line.replace(words, sign)
            if found := re.search(r"\d+([+-]\d+)+", line):
                problem = tuple(int(n) for n in re.findall(r"[+-]?\d+", found[0]))
                assert arithmetic.split_of(problem) == "train"
                checked += 1
    assert checked > 300


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: make("arithmetics", "prompts"), "did you mean 'arithmetic'"),
        (lambda: make("general", "pair"), "did you mean 'pairs'"),
        (lambda: make("general", "prompts", split="train", rows=1, seed=0, unsave=1), "did you mean 'unsafe'"),
        (lambda: make("arithmetic", "prompts", split="train"), "needs rows, seed"),
        (lambda: arithmetic.prompts("test", 1, 0), "unknown split 'test'"),
        (lambda: arithmetic.prompts("train", 1, 0, levels=[9]), r"unknown level\(s\) \[9\]"),
        (lambda: arithmetic.prompts("train", 1, 0, languages=["fr"]), r"unknown language\(s\) \['fr'\]"),
        (lambda: arithmetic.prompts("heldout", 5000, 0, levels=[1]), "found only"),
        (lambda: general.prompts("train", 1, 0, unsafe=1.5), "unsafe=1.5 is not a share"),
    ],
)
def test_user_faults_name_the_way_out(call: object, says: str) -> None:
    with pytest.raises(UserError, match=says):
        call()  # type: ignore[operator]


def test_every_generator_is_listed() -> None:
    assert {k: sorted(v) for k, v in GENERATORS.items()} == {
        "arithmetic": ["prompts", "traces"],
        "general": ["labels", "pairs", "prompts", "traces"],
    }
