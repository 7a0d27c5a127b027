"""The rows of the rewards benchmark: deterministic, mixed as its README says, and right by construction."""

from __future__ import annotations

import random
import re
import statistics
from collections import Counter
from fractions import Fraction

import pytest

from bench.rewards import contenders, generator
from bench.rewards.kinds import base
from r1pipe.chat import Tags

ROWS = 2_500


@pytest.fixture(scope="module")
def rows() -> list[generator.Row]:
    return generator.generate(ROWS, 0)


def test_same_seed_same_rows(rows):
    assert generator.generate(ROWS, 0) == rows
    assert generator.generate(300, 0) == rows[:300]  # a row does not depend on how many there are
    assert generator.generate(300, 1) != rows[:300]
    assert generator.with_hostile(rows, 0.01, 0) == generator.with_hostile(rows, 0.01, 0)


def test_few_duplicates_and_about_half_right(rows):
    assert len({(r.gold, r.answer) for r in rows}) > 0.98 * ROWS
    assert 0.45 < statistics.mean(r.expected for r in rows) < 0.58
    assert {r.expected for r in rows} == {0.0, 1.0}


def test_every_kind_is_there(rows):
    counts = Counter(r.kind for r in rows[:1000])
    assert set(counts) == set(generator.ORDINARY)
    plain = {
        "integer",
        "big integer",
        "negative",
        "decimal",
        "fraction",
        "mixed number",
        "repeating decimal",
        "thousands",
    }
    plain |= {
        "scientific",
        "percent",
        "money",
        "unit",
        "text around a number",
        "cue",
        "box shapes",
        "last box wins",
        "draft box",
    }
    plain |= {"gold shapes", "arithmetic", "probability"}
    assert 0.45 < sum(counts[k] for k in plain) / 1000 < 0.6
    for kind in generator.ORDINARY:  # right and wrong answers, but where nothing can be right
        expected = {r.expected for r in generator.generate(60, 3, [kind])}
        assert expected == {0.0, 1.0} or (expected == {0.0} and kind in (
            "box only in the thinking", "unfinished thinking", "hack"
        )), kind  # fmt: skip
    with pytest.raises(ValueError, match="nonsense"):
        generator.generate(1, 0, ["nonsense"])


def test_completions_think_first(rows):
    lengths = []
    for row in rows:
        parts = Tags().split(row.completion)
        assert row.completion.startswith("<think>\n")
        assert parts.closed == (row.kind != "unfinished thinking")
        if parts.closed:
            lengths.append(max(len(parts.thinking.split()), len(parts.thinking) // 6))
            answer = row.answer.rpartition("</think>")[2].strip()
            assert answer in row.completion.rpartition("</think>")[2], row
    assert min(lengths) >= 45 and max(lengths) <= 340
    boxed = sum("\\boxed" in r.completion for r in rows)
    assert 0.45 < boxed / ROWS < 0.85
    assert 0.15 < sum("<answer>" not in r.completion for r in rows) / ROWS < 0.5


def test_hostile_share(rows):
    mixed = generator.with_hostile(rows, 0.01, 0)
    hostile = [r for r in mixed if r.kind not in generator.ORDINARY]
    assert [r for r in mixed if r.kind in generator.ORDINARY] == rows
    assert round(len(hostile) / len(mixed), 3) == 0.01
    assert {r.kind for r in hostile} == set(generator.HOSTILE)
    assert all(r.expected == (r.kind == "equal tower") for r in hostile)
    assert generator.with_hostile(rows, 0.0, 0) == rows


def _value(text: str) -> Fraction | None:
    """A number in the plain notations, read by this test alone."""
    text = re.sub(
        r"^x = |\\displaystyle|[{}()]|\\left|\\right|\s|,\\!|\\,|(?<=\d),(?=\d{3})", "", text.replace("}{", "/")
    )
    text = re.sub(r"\\[dt]?frac", "", text).replace("−", "-")
    return Fraction(text) if re.fullmatch(r"-?(\d+/-?\d+|\d*\.?\d+)", text) and "/-" not in text else None


def test_expected_values_of_numbers():
    read = 0
    for kind in ("integer", "big integer", "negative", "decimal", "fraction", "thousands"):
        for row in generator.generate(400, 7, [kind]):
            gold, answer = _value(row.gold), _value(row.answer)
            if gold is not None and answer is not None and not re.search(r"\\frac\d|\d\\frac", row.answer):
                assert (gold == answer) == bool(row.expected), row
                read += 1
    assert read > 1200


def test_spelling_of_numbers_and_polynomials():
    assert base.decimal(Fraction(-3, 8)) == "-0.375" and base.decimal(Fraction(1, 3)) is None
    assert base.rounded(Fraction(2, 3), 2) == "0.67" and base.rounded(Fraction(-1, 2), 0) == "-1"
    assert base.poly([-6, 0, Fraction(1, 2), -1], "x") == r"-x^3+\frac{1}{2}x^2-6"
    assert base.multiply([-1, 1], [1, 1]) == [-1, 0, 1]
    assert base.shuffled(random.Random(0), ["a", "b"]) == ["b", "a"]


def test_a_run_counts_and_ends():
    rows = generator.generate(40, 0, ["integer"])
    run = contenders.measure("ours", [(r.gold, r.completion) for r in rows], limit_s=60)
    assert run.ended and not run.note and run.rate > 0
    assert run.scores == [r.expected for r in rows]


def test_what_never_returns_is_killed():
    tower = r"\frac{7^{\left(7^{\left(7^{\left(7^7\right)}\right)} - 2\right)} - 1}{6}"
    run = contenders.measure("trl", [("3", r"\boxed{3}"), ("3", rf"\boxed{{{tower}}}")], limit_s=4)
    assert not run.ended and run.scores == [1.0] and run.note == "did not end in 4 s"
