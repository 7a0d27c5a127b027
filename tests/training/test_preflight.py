"""Preflight: gold and broken answers through the rewards, and what samples of a policy say."""

from __future__ import annotations

import pytest

from r1pipe.errors import UserError
from r1pipe.generate.base import Sample
from r1pipe.rewards import Composer
from r1pipe.settings import RewardPart
from r1pipe.training import preflight
from tests.rewards import cases

RULES = {"accuracy": RewardPart(), "format": RewardPart(), "language": RewardPart()}


def row(gold: str, kind: str = "math", **more):
    messages = [{"role": "user", "content": f"Which? ({gold})"}]
    return {"id": gold, "messages": messages, "gold": gold, "kind": kind, "language": "en", **more}


def group(*texts: str, finish: str = "stop") -> list[Sample]:
    return [Sample(text, len(text.split()), finish, i) for i, text in enumerate(texts)]


def test_good_golds_pass_and_broken_answers_do_not():
    rows = [row(g) for g in ("12", r"\frac{1}{2}", "B", r"\sqrt{8}", "x^2 - 1", "Wednesday")]
    rows += [row("", "countdown", extra={"nums": [2, 3], "target": 6}), row("", "general")]
    report = preflight.check_rewards(Composer(RULES), rows, most=100)
    assert report["golds"]["wrong"] == 0 and report["broken"]["wrong"] == 0, report
    assert report["golds"]["checked"] >= 6 and report["unjudged"] == 1 and report["form"] == {"format": 1.0}
    preflight.refuse(report, 0.0)
    assert preflight.advice(report) == []


def test_bad_golds_are_named_and_refused():
    rows = [row("12"), row("13"), row(r"\frac{")]
    report = preflight.check_rewards(Composer(RULES), rows, most=100)
    assert report["golds"]["wrong"] == 1 and report["golds"]["examples"][0]["gold"] == r"\frac{"
    assert "1 of 3 gold answers do not score 1" in preflight.advice(report)[0]
    preflight.refuse(report, 0.5)
    with pytest.raises(UserError, match="1 of 3 gold answers do not score 1"):
        preflight.refuse(report, 0.05)


def test_a_prefilled_tag_is_put_back_before_the_form_is_tried():
    report = preflight.check_rewards(Composer(RULES, prefilled=True), [row("12")], most=10)
    assert report["form"] == {"format": 1.0} and report["golds"]["wrong"] == 0


def test_samples_say_what_to_change():
    rows = [row("12"), row("13"), row("14")]
    none = [group("no idea", "none", finish="length") for _ in rows]
    report = preflight.check_rewards(Composer(RULES), rows, most=10)
    report["samples"] = preflight.check_samples(Composer(RULES), rows, none)
    s = report["samples"]
    assert (s["groups"], s["samples"], s["no_signal"], s["truncated"], s["all_wrong"]) == (3, 6, 1.0, 1.0, 1.0)
    said = " ".join(preflight.advice(report, max_tokens=64))
    assert "closes its thinking" in said and "max_completion_length (64)" in said and "too hard" in said

    easy = [group(cases.wrap(r["gold"]), cases.wrap(r["gold"])) for r in rows]
    report["samples"] = preflight.check_samples(Composer({"accuracy": RewardPart()}), rows, easy)
    assert "too easy" in " ".join(preflight.advice(report))

    mixed = [group(cases.wrap(r["gold"]), cases.wrap("0")) for r in rows]
    report["samples"] = preflight.check_samples(Composer(RULES), rows, mixed)
    assert report["samples"]["no_signal"] == 0.0 and report["samples"]["means"]["accuracy"] == 0.5
    assert preflight.advice(report) == []
