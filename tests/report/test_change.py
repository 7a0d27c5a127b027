"""Change points on curves whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from r1pipe.report import reflection
from r1pipe.report.change import change_points

RNG = np.random.default_rng(7)


@pytest.mark.parametrize("n", [24, 40, 120, 1000])
def test_noise_and_even_trends_have_none(n: int) -> None:
    flat = sum(bool(change_points(RNG.normal(size=n))) for _ in range(60))
    rising = sum(bool(change_points(np.linspace(0, 3, n) + 0.3 * RNG.normal(size=n))) for _ in range(60))
    assert flat <= 4 and rising <= 4  # less than 2 % over 200 draws when this was written


@pytest.mark.parametrize("n", [60, 120, 1000])
def test_a_step_and_a_knee_are_found_in_place(n: int) -> None:
    step = np.r_[np.zeros(n // 2), np.full(n - n // 2, 2.0)] + 0.3 * RNG.normal(size=n)
    assert change_points(step) == [pytest.approx(n / 2, abs=n * 0.04)]
    knee = np.maximum(0, np.arange(n) / n - 0.5) * 10 + 0.2 * RNG.normal(size=n)
    assert change_points(knee)[0] == pytest.approx(n / 2, abs=n * 0.12)


def test_what_cannot_be_judged() -> None:
    assert change_points([1.0] * 100) == []
    assert change_points(list(range(10))) == []
    assert change_points([float("nan")] * 100) == []


def test_reflection_words() -> None:
    text = "Wait, hmm. Let me check this. 等等，我重新算一下，再检查。 A waiter waits; the weight; checkpoint."
    assert dict(reflection.count(text)) == {"wait": 1, "hmm": 1, "let me check": 1, "等等": 1, "重新": 1, "检查": 1}
    assert reflection.count("") == {} and reflection.count("First, 2 plus 52 gives 54.") == {}
