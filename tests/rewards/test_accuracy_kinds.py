"""Right answers and near wrong ones, by kind, beyond the shared cases: `accuracy_kinds.txt`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from r1pipe.rewards import accuracy
from tests.rewards import cases


@dataclass
class Kind:
    """The cases of one gold answer."""

    name: str
    gold: str = ""
    answers: list[tuple[str, float]] = field(default_factory=list)


def _kinds() -> list[Kind]:
    kinds: list[Kind] = []
    for line in (Path(__file__).parent / "accuracy_kinds.txt").read_text(encoding="utf-8").split("\n"):
        text = re.sub(r"\\u\{([0-9a-f]+)\}", lambda m: chr(int(m[1], 16)), line[2:]).replace("⏎", "\n")
        match line[:2].strip():
            case "##":
                kinds.append(Kind(text.strip()))
            case "=":
                kinds[-1].gold = text
            case "+" | "-":
                kinds[-1].answers.append((text, 1.0 if line[0] == "+" else 0.0))
    return kinds


KINDS = _kinds()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_kind(kind: Kind) -> None:
    rows = [{"gold": kind.gold, "kind": "math"}] * len(kind.answers)
    verdicts = accuracy.verify_batch([cases.wrap(text) for text, _ in kind.answers], rows)
    wrong = [(text, v.score) for (text, expect), v in zip(kind.answers, verdicts, strict=True) if v.score != expect]
    assert wrong == []


@pytest.mark.parametrize("shape", [r"\boxed{%s}", "$%s$", "%s", "The answer is $%s$."])
def test_every_gold_equals_itself(shape: str) -> None:
    verdicts = accuracy.verify_batch(
        [cases.wrap(shape % kind.gold) for kind in KINDS], [{"gold": kind.gold, "kind": "math"} for kind in KINDS]
    )
    assert [(k.gold, v) for k, v in zip(KINDS, verdicts, strict=True) if v.score != 1.0] == []


def test_golds_can_be_used() -> None:
    assert [r for r in accuracy.check_golds([k.gold for k in KINDS], ["math"] * len(KINDS)) if r] == []
