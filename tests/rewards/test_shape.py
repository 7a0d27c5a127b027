"""Rewards on the shape of a completion: the papers' formulas, TRL's values, rows without tokens."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from r1pipe.rewards import shape
from r1pipe.rewards.shape import concise, cosine, length, overlong, repetition
from r1pipe.rewards.verdict import Context
from tests.rewards import cases

token_ids = st.lists(st.integers(0, 9), max_size=60)


@pytest.fixture(scope="module")
def trl_rewards():
    from trl import rewards  # 10 s

    return rewards


@pytest.mark.parametrize("ngram_size", [1, 2, 3, 40])
def test_repetition_is_trls(trl_rewards, ngram_size):
    @given(token_ids)
    def check(ids):
        theirs = trl_rewards.get_repetition_penalty_reward(ngram_size, -0.7)([ids])[0]
        ours = repetition.verify("", {"completion_ids": ids}, ngram_size=ngram_size, max_penalty=-0.7)
        assert ours.score == theirs and ours.detail == ""

    check()


@given(st.integers(1, 300), st.integers(0, 300), st.integers(0, 400))
def test_overlong_is_equation_13(max_length, cache, count):
    if cache > max_length:
        with pytest.raises(ValidationError):
            overlong.Options(max_length=max_length, cache=cache)
        return
    score = overlong.verify("", {"completion_ids": [7] * count}, max_length=max_length, cache=cache).score
    if count <= max_length - cache:
        assert score == 0
    elif count <= max_length:
        assert score == pytest.approx((max_length - cache - count) / cache)
    else:
        assert score == -1


def test_overlong_is_trls(trl_rewards):
    theirs = trl_rewards.get_soft_overlong_punishment(100, 20)
    for count in range(130):
        row = {"completion_ids": [1] * count}
        assert overlong.verify("", row, max_length=100).score == theirs([row["completion_ids"]])[0]


def test_cosine_is_trls_below_max_length(trl_rewards):
    theirs = trl_rewards.get_cosine_scaled_reward(max_len=100)
    for count in range(0, 100, 7):
        ids = [1] * count
        for answer, correct in ((r"\boxed{4}", 1.0), (r"\boxed{5}", 0.0)):
            expected = theirs([[{"role": "assistant", "content": answer}]], ["$4$"], [ids])[0]
            ours = cosine.verify(answer, {"completion_ids": ids, "correct": correct}, max_length=100).score
            assert ours == pytest.approx(expected)


PAPER = {"r_c0": 2, "r_cL": 1, "r_w0": -10, "r_wL": 0, "r_exceed": -10, "max_length": 1000}


def test_cosine_with_the_papers_values():
    def score(count: int, correct: float) -> float:
        return cosine.verify("", {"completion_ids": [1] * count, "correct": correct}, **PAPER).score

    assert (score(0, 1), score(0, 0)) == (2, -10)
    assert (score(500, 1), score(500, 0)) == (pytest.approx(1.5), pytest.approx(-5))
    assert (score(999, 1), score(999, 0)) == (pytest.approx(1, abs=1e-4), pytest.approx(0, abs=1e-3))
    assert score(1000, 1) == score(1000, 0) == score(9999, 1) == -10
    assert score(500, 0.5) == pytest.approx(-1.75)


def test_cosine_never_prefers_wrong():
    with pytest.raises(ValidationError, match="wrong answer"):
        cosine.Options(max_length=10, r_cL=-0.8)
    with pytest.raises(ValidationError, match="max_length"):
        cosine.Options()


def row(count: int, correct: float | None = 1.0, group: object = "a") -> dict:
    return {"completion_ids": [1] * count, "correct": correct, "group": group}


def scores(rows: list[dict], **options: object) -> list[float | None]:
    verifier = concise.Concise(concise.Options(**options), Context())
    return [v.score for v in verifier([""] * len(rows), rows)]


def test_concise_is_the_papers_formula():
    assert scores([row(10), row(20), row(30)]) == [0.5, 0.0, -0.5]
    assert scores([row(10, 0), row(20, 0), row(30, 0)]) == [0.0, 0.0, -0.5]  # short and wrong gains nothing
    assert scores([row(10, 0), row(30, 1)]) == [0.0, -0.5]
    assert scores([row(10), row(10, 0)]) == [0.0, 0.0]
    assert scores([row(10, 0.5), row(30, 0.5)]) == [0.25, -0.5]
    assert scores([row(10)]) == [0.0]


def test_concise_keeps_groups_apart():
    mixed = [row(10, group=1), row(500, group=2), row(30, group=1), row(900, group=2)]
    assert scores(mixed) == [0.5, 0.5, -0.5, -0.5]
    assert scores(mixed[::-1]) == [-0.5, -0.5, 0.5, 0.5]


def test_concise_counts_completions_of_unknown_correctness():
    assert scores([row(10), row(20, None), row(30)]) == [0.5, None, -0.5]
    assert concise.verify_group(["a b", "a b c d"], [{"correct": 1}] * 2)[0].score == 0.5
    assert concise.verify("a b", {"correct": 1}).score == 0.0


@pytest.mark.parametrize("correct", [None, "yes", 2, -0.1, math.nan])
def test_unknown_correctness_is_an_error(correct):
    for verdict in (
        cosine.verify("", row(3, correct), max_length=9),
        concise.verify("", row(3, correct)),
    ):
        assert (verdict.score, verdict.status) == (None, "error")
        assert "accuracy" in verdict.detail or "expected 0 to 1" in verdict.detail


def test_missing_group_is_an_error():
    verdict = concise.Concise(concise.Options(), Context())(["a"], [{"correct": 1.0}])[0]
    assert (verdict.score, verdict.status) == (None, "error") and "group" in verdict.detail


def test_units():
    text = "It's 3 words; 我们走。"
    assert length.length(text, {"completion_ids": [1, 2]}, "auto") == (2, "")
    assert length.length(text, {}, "auto") == (7, length.REMARK)
    assert length.length(text, {"completion_ids": [1, 2]}, "words") == (7, "")
    assert length.length(text, {"completion_ids": [1, 2]}, "characters") == (len(text), "")
    verdict = overlong.verify(text, {}, max_length=9, unit="tokens")
    assert (verdict.score, verdict.status) == (None, "error") and "unit" in verdict.detail
    assert overlong.verify(text, {}, max_length=9).detail == length.REMARK
    assert overlong.verify(text, {}, max_length=9, unit="words").detail == ""
    assert length.length("", {"completion_ids": []}, "auto") == (0, "")


@pytest.mark.parametrize(
    "text",
    [
        "We add them again. " * 200,
        "我们再加一次。" * 200,
        "ha" * 400,
        "! " * 400,
        "!" * 400,
        "ครับผม" * 200,
        "5 " * 400,
    ],
)
def test_loops_are_penalised_without_tokens(text):
    assert repetition.verify(text, {}).score < -0.9
    assert repetition.verify(text, {}, max_penalty=-0.5).score < -0.45


def test_shared_repetition_case():
    (case,) = [c for c in cases.load("language") if c["id"] == "lang-repetition"]
    assert repetition.verify(case["input"]["text"], {}).score < -0.7


@pytest.mark.parametrize(
    "text",
    [
        "",
        "one two",
        "First add the tens, then the units. Carry the one; check by subtracting. The sum is forty-two.",
        "先把十位相加，再算个位。别忘了进位，最后用减法检查。",
    ],
)
def test_honest_text_is_hardly_penalised(text):
    assert repetition.verify(text, {}).score > -0.05


def test_penalties_are_checked():
    for bad in ({"max_penalty": 1.0}, {"ngram_size": 0}, {"max_penalty": -math.inf}):
        with pytest.raises(ValidationError):
            repetition.Options(**bad)


@given(st.text(max_size=200), st.none() | token_ids, st.sampled_from([0, 0.3, 1, True]))
def test_always_finite(text, ids, correct):
    given_row = {"completion_ids": ids, "correct": correct}
    for verdict in (
        repetition.verify(text, given_row),
        overlong.verify(text, given_row, max_length=20, cache=0),
        cosine.verify(text, given_row, max_length=20),
        *concise.verify_group([text, text + " a"], [given_row, {"correct": 1}]),
    ):
        assert verdict.score is not None and math.isfinite(verdict.score) and -1 <= verdict.score <= 1


def test_long_completions_end_quickly():
    start = time.monotonic()
    for text in ("a" * 300_000, "中" * 300_000, ". " * 150_000, " " * 300_000):
        repetition.verify(text, {}, ngram_size=40)
        overlong.verify(text, {}, max_length=1000)
    repetition.verify("", {"completion_ids": list(range(100_000))}, ngram_size=40)
    assert time.monotonic() - start < 10


def test_registry_names():
    needed = {"Overlong": {"max_length": 9}, "Cosine": {"max_length": 9}}
    for name in ("Repetition", "Overlong", "Cosine", "Concise"):
        verifier = getattr(shape, name)(getattr(shape, f"{name}Options")(**needed.get(name, {})), Context())
        assert len(verifier(["a", "b c"], [row(3), row(5)])) == 2
