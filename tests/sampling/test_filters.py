"""Why a sample is not kept."""

from __future__ import annotations

import pytest

from r1pipe.chat import Tags
from r1pipe.rewards import Verdict
from r1pipe.sampling import filters as keep
from r1pipe.settings import RewardPart

PARTS = {"accuracy": RewardPart(), "format": RewardPart(), "language": RewardPart()}
GOOD = Tags().wrap("twenty and three make twenty-three", "23")
RIGHT = {"accuracy": Verdict(1.0, "scored"), "language": Verdict(0.97, "scored")}


def reason(text: str = GOOD, finish: str = "stop", verdicts: object = None, **filters: object) -> str | None:
    chosen = keep.Filters(**filters)  # type: ignore[arg-type]
    given = RIGHT if verdicts is None else verdicts
    return keep.reason_to_drop(text, finish, given, keep.needed(PARTS, chosen), chosen, Tags())  # type: ignore[arg-type]


def test_a_good_one_is_kept() -> None:
    assert reason() is None
    assert reason(finish="length", truncated=True) is None


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        ({"accuracy": Verdict(0.0, "scored")}, "accuracy"),
        (RIGHT | {"language": Verdict(0.9, "scored")}, "language"),
        (RIGHT | {"format": Verdict(0.99, "scored")}, "format"),
        ({"accuracy": Verdict(None, "error")}, "accuracy_error"),
        ({"accuracy": Verdict(0.0, "timeout")}, "accuracy"),
        ({}, "unverified"),  # no reward applies: nothing says that it is good
    ],
)
def test_rewards(verdicts: dict, said: str) -> None:
    assert reason(verdicts=verdicts) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (Tags().wrap("so\n```\ncode\n```", "1"), "code_block"),
        (Tags().wrap("we add one and one. " * 30, "2"), "repetition"),
        (Tags().wrap("先算一先算一先算一先算一先算一先算一先算一", "2"), "repetition"),
        (Tags().wrap("broken \ufffd bytes", "2"), "garbled"),
        (Tags().wrap("an escape \x1b[31m", "2"), "garbled"),
        (Tags().wrap(" ".join(f"word{i}" for i in range(600)), "2"), "long_paragraph"),
    ],
)
def test_readability(text: str, said: str) -> None:
    assert reason(text) == said


def test_readability_can_be_switched_off() -> None:
    assert reason(Tags().wrap("so\n```\ncode\n```", "1"), code_blocks=True) is None
    assert reason(Tags().wrap("broken \ufffd bytes", "2"), garbled=True) is None
    assert reason(Tags().wrap(" ".join(f"word{i}" for i in range(600)), "2"), longest_paragraph=None) is None
    assert reason(longest_paragraph=10) == "long_paragraph"


def test_what_must_be_passed() -> None:
    """Training's rewards as they are: what helps there is only recorded here."""
    parts = PARTS | {"format": RewardPart(weight=0), "judge": RewardPart(role="auxiliary")}
    assert keep.needed(parts, keep.Filters()) == {"accuracy": 1.0, "language": 0.95}
    graded = keep.Filters(minimum={"judge": 0.7, "accuracy": 0.5})
    assert keep.needed(parts, graded) == {"accuracy": 0.5, "language": 0.95, "judge": 0.7}


def test_repetition_is_a_share() -> None:
    assert keep.repetition("") == 0.0 and keep.repetition("a b c d e") == 0.0
    assert keep.repetition("先算一先算一先算一先算一") > 0.5
