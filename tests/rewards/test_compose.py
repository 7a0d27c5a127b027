"""Composition: routing, weights, None, schedule, shuffling, and the TRL signature."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from r1pipe.errors import UserError
from r1pipe.rewards import Composer, Verdict, trl_reward, validate, versions
from r1pipe.settings import RewardPart
from tests.rewards import cases

RULES = {"accuracy": RewardPart(), "format": RewardPart(weight=0.5), "language": RewardPart()}
ROW = {"id": "a", "gold": "12", "kind": "number", "language": "en", "level": 1}


def call(composer: Composer, completions, rows=None, sink=lambda means: None, step=None, settings=None, **more):
    rows = rows or [ROW] * len(completions)
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    state = None if step is None else SimpleNamespace(global_step=step, max_steps=10)
    prompts = [[{"role": "user", "content": row.get("id", "?")}] for row in rows]
    reward = composer.as_trl_reward(sink, **(settings or {}))
    return reward(prompts=prompts, completions=completions, trainer_state=state, **columns, **more)


def test_weighted_sum_logging_and_names():
    metrics, extra, sunk = {}, {}, []
    good, bad = cases.wrap("12"), "<think>Let me see</think> 13"
    messages = [[{"role": "assistant", "content": good}], [{"role": "assistant", "content": bad}]]
    composer = Composer(RULES)
    totals = call(composer, messages, sink=sunk.append, log_metric=metrics.__setitem__, log_extra=extra.__setitem__)
    assert totals == [2.5, 1.0]
    assert metrics["reward/accuracy"] == 0.5 and metrics["reward/format"] == 0.5 and metrics["reward/total"] == 1.75
    assert metrics["reward/accuracy/unverifiable"] == 0.0
    assert extra["reward_accuracy"] == [1.0, 0.0]
    assert sunk == [{k.removeprefix("reward/"): v for k, v in metrics.items()}]
    assert composer.as_trl_reward().__name__ == "r1pipe_accuracy_format_language"
    assert call(composer, [good, bad]) == totals  # strings as well


def test_routing_by_kind():
    composer = Composer({"accuracy": RewardPart(), "format": RewardPart(kinds=["general"])})
    general = {**ROW, "kind": "general", "gold": None}
    scored = composer.score([cases.wrap("12")] * 2, [ROW, general])
    assert scored[0]["format"] is None and scored[1]["accuracy"] is None
    assert [composer.total(parts) for parts in scored] == [1.0, 1.0]
    only = Composer({"accuracy": RewardPart()})
    assert call(only, [cases.wrap("1")], [general]) == [None]  # not 0: nothing applies: no signal


def test_none_where_a_part_that_applies_is_none():
    composer = Composer(RULES)
    rows = [{**ROW, "gold": g} for g in ("12", "several", "12")]
    totals = call(composer, [cases.wrap(a) for a in ("12", "12", "13")], rows)
    assert totals[0] == 2.5 and totals[1] is None and totals[2] == 1.5
    logged = Composer({**RULES, "accuracy": RewardPart(weight=0)})
    assert call(logged, [cases.wrap("12")], [rows[1]]) == [1.5]  # weight 0 is only logged


def test_lengths_stay_aligned():
    composer = Composer({"accuracy": RewardPart()})
    rows = [{**ROW, "gold": str(n)} for n in range(1, 6)]
    answers = ["1", "I don't know.", "3", "4", "5"]
    assert call(composer, [cases.wrap(a) for a in answers], rows) == [1.0, 0.0, 1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="2 completions, 1 rows"):
        composer.score(["a", "b"], [ROW])


def test_an_exception_is_an_error_never_a_score():
    warnings, metrics = [], {}
    composer = Composer(RULES, warn=warnings.append)

    def broken(completions, rows):
        if any("boom" in c for c in completions):
            raise ZeroDivisionError("boom")
        return [Verdict(math.nan if "nan" in c else 1.0, "scored") for c in completions]

    composer.verifiers["accuracy"] = broken
    texts = [cases.wrap(a) for a in ("12", "boom", "nan", "boom")]
    totals = call(composer, texts, log_metric=metrics.__setitem__)
    assert totals == [2.5, None, None, None]
    assert metrics["reward/accuracy/error"] == 0.75 and metrics["reward/accuracy"] == 1.0
    assert len(warnings) == 2 and "ZeroDivisionError" in warnings[0]
    assert "3 of 4 completions of a batch have no reward (accuracy: ZeroDivisionError: boom)" in warnings[1]


def test_missing_columns_are_named():
    composer = Composer({**RULES, "format": RewardPart(kinds=["number"])})
    with pytest.raises(UserError, match=r'"accuracy" reads the column "gold".*found: id, kind'):
        composer.check_columns(["id", "kind"])
    with pytest.raises(UserError, match='"language"'):
        call(composer, ["x"], [{"gold": "1", "kind": "number"}])
    composer.check_columns(ROW)
    with pytest.raises(UserError, match='"accuracy" reads "gold", which none of its 2 rows'):
        call(composer, ["x", "y"], [{**ROW, "gold": None}] * 2)
    composer.check_rows([ROW, {**ROW, "gold": None}, {**ROW, "gold": None, "kind": "general"}])
    Composer({"language": RewardPart(options={"target": "en"})}).check_columns(["id"])


def test_start_within_the_steps():
    composer = Composer({"accuracy": RewardPart(), "format": RewardPart(start=0.7)})
    text = [cases.wrap("12")]
    assert call(composer, text, step=6) == [1.0]
    assert call(composer, text, step=7) == [2.0]
    assert call(composer, text) == [2.0]  # outside of training all parts apply
    assert composer.as_trl_reward(total_steps=100).progress(SimpleNamespace(global_step=7, max_steps=10)) == 0.07


def test_shuffled_control_keeps_each_group():
    rows = [{**ROW, "id": "a"}] * 8 + [{**ROW, "id": "b"}] * 8
    texts = [cases.wrap(f"{12 if i % 4 else i}") for i in range(16)]
    plain = call(Composer(RULES), texts, rows)
    shuffled = call(Composer(RULES), texts, rows, settings={"shuffle": True, "seed": 3})
    assert shuffled != plain
    assert sorted(shuffled[:8]) == sorted(plain[:8]) and sorted(shuffled[8:]) == sorted(plain[8:])
    assert shuffled == call(
        Composer(RULES), texts, rows, settings={"shuffle": True, "seed": 3}
    )  # the same after a resume
    pairs = call(Composer(RULES), texts, rows, settings={"shuffle": True, "seed": 1, "num_generations": 2})
    assert all(sorted(pairs[i : i + 2]) == sorted(plain[i : i + 2]) for i in range(0, 16, 2))


def test_a_batch_without_structure_warns_once():
    warnings: list[str] = []
    composer = Composer(RULES, warn=warnings.append)
    for _ in range(3):
        call(composer, ["Six sevens are 42.", "12"])
    assert len(warnings) == 1 and "</think>" in warnings[0]


def test_prefilled_tag_is_put_back():
    text = ["hm, well</think>\n<answer>12</answer>"]
    assert call(Composer(RULES, prefilled=True), text) == [2.5]
    assert call(Composer({"format": RewardPart()}), text) == [0.0]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"acuracy": {}}, 'unknown reward "acuracy" .did you mean "accuracy"'),
        ({"format": {"options": {"sotf": True}}}, 'no option "sotf" .did you mean "soft"'),
        ({"format": {"options": {"soft": "perhaps"}}}, "rewards.format.options: soft"),
        ({}, "no rewards"),
    ],
)
def test_bad_settings(parts, message):
    with pytest.raises(UserError, match=message):
        validate({name: RewardPart(**part) for name, part in parts.items()})


def test_models_are_asked_for():
    with pytest.raises(UserError, match='"helpful" needs a reward model'):
        Composer({"helpful": RewardPart()})


def test_versions():
    assert set(versions({**RULES, "helpful": RewardPart()})) == {"accuracy", "format", "language", "helpful"}


def scores(**parts: float | None) -> dict[str, Verdict | None]:
    return {name: Verdict(value, "scored" if value is not None else "error") for name, value in parts.items()}


def test_gates():
    composer = Composer(
        {
            "accuracy": RewardPart(gate={"below": 1, "cap": 0.2}),
            "format": RewardPart(),
            "language": RewardPart(weight=0, gate={"below": 0.5, "floor": -1}),
        }
    )
    assert composer.total(scores(accuracy=1.0, format=1.0, language=1.0)) == 2.0
    assert composer.total(scores(accuracy=0.0, format=1.0, language=1.0)) == 0.2  # wrong caps the rest
    assert composer.total(scores(accuracy=0.0, format=0.1, language=1.0)) == 0.1  # and never lifts it
    assert composer.total(scores(accuracy=1.0, format=1.0, language=0.4)) == -1.0  # unsafe gets the floor
    assert composer.total(scores(accuracy=1.0, format=1.0, language=None)) is None  # a gate matters at weight 0
    assert composer.total(scores(accuracy=1.0, format=1.0) | {"language": None}) == 2.0  # it does not apply
    metrics: dict[str, float] = {}
    call(composer, [cases.wrap("12"), cases.wrap("13")], log_metric=metrics.__setitem__)
    assert metrics["reward/accuracy/gated"] == 0.5
    with pytest.raises(ValueError, match="exactly one of floor and cap"):
        RewardPart(gate={"below": 1})


def test_schedule_of_weights():
    part = RewardPart(weight=2, schedule=[(0.2, 0.0), (0.6, 1.0)])
    composer = Composer({"accuracy": RewardPart(), "format": part})
    weights = [composer.weight("format", p) for p in (0.0, 0.2, 0.4, 0.6, 1.0, None)]
    assert weights == [0.0, 0.0, pytest.approx(1.0), 2.0, 2.0, 2.0]
    metrics: dict[str, float] = {}
    assert call(composer, [cases.wrap("12")], step=4, log_metric=metrics.__setitem__) == [pytest.approx(2.0)]
    assert metrics["reward/format/weight"] == pytest.approx(1.0) and metrics["reward/format"] == 1.0
    with pytest.raises(ValueError, match="must rise"):
        RewardPart(schedule=[(0.5, 1.0), (0.2, 0.0)])


def test_helpers_that_lead_are_warned_about():
    warnings: list[str] = []
    Composer({"accuracy": RewardPart(), "repetition": RewardPart(weight=0.6)}, warn=warnings.append)
    assert not warnings
    Composer({"accuracy": RewardPart(), "repetition": RewardPart(weight=0.7)}, warn=warnings.append)
    assert len(warnings) == 1 and "repetition) have 41% of the weight" in warnings[0]
    Composer({"accuracy": RewardPart(), "format": RewardPart(role="auxiliary")}, warn=warnings.append)
    assert len(warnings) == 2


def test_accuracy_asks_the_verifier_of_the_kind():
    rows = [
        {"id": "a", "kind": "choice", "gold": "B"},
        {"id": "b", "kind": "countdown", "nums": [3, 8], "target": 24},
        {"id": "c", "kind": "json", "gold": '{"a": 1}'},
        {"id": "d", "kind": "number", "gold": "24"},
    ]
    texts = [cases.wrap(a) for a in ("(B)", "3*8", '{"a": 1.0}', "23")]
    composer = Composer({"accuracy": RewardPart()})
    assert [parts["accuracy"].score for parts in composer.score(texts, rows)] == [1.0, 1.0, 1.0, 0.0]
    apart = Composer({"accuracy": RewardPart(), "countdown": RewardPart(weight=2)})
    found = apart.score(texts, rows)
    assert found[1]["accuracy"] is None and found[1]["countdown"].score == 1.0
    assert [apart.total(parts) for parts in found] == [1.0, 2.0, 1.0, 0.0]


def test_length_rewards_know_what_was_right():
    composer = Composer({"concise": RewardPart(), "accuracy": RewardPart()})
    rows = [{**ROW, "id": "a"}] * 3
    texts = [cases.wrap("12"), "<think>" + "hm " * 50 + "</think><answer>12</answer>", cases.wrap("13")]
    ids = [[0] * 10, [0] * 60, [0] * 10]
    assert call(composer, texts, rows, completion_ids=ids) == [1.5, 0.5, 0.0]


def test_the_same_verifier_twice_under_two_names():
    soft = RewardPart(use="format", options={"soft": True}, weight=0.5)
    composer = Composer({"format": RewardPart(), "form": soft})
    parts = composer.score(["<think>a</think>b"], [ROW])[0]
    assert parts["format"].score == 0.0 and 0 < parts["form"].score < 1


def test_in_anybodys_trl_script():
    reward = trl_reward("accuracy", "language", language={"target": "en"})
    prompts, texts = ["q"] * 2, [cases.wrap("0.5"), cases.wrap("0.6")]
    assert reward(prompts=prompts, completions=texts, solution=["1/2", "1/2"], other=[1, 2]) == [2.0, 1.0]
    with pytest.raises(UserError, match='"accuracy" reads the column "gold"'):
        trl_reward("accuracy")(prompts=prompts, completions=texts, question=["1/2", "1/2"])


def test_what_only_some_rewards_read_reaches_them_through_trl():
    from r1pipe.chat import ChatConfig
    from r1pipe.training import rows as training_rows

    row = {"id": "c", "messages": [{"role": "user", "content": "24 from 3 and 8"}], "gold": None, "kind": "countdown"}
    rows = [{**row, "extra": {"nums": [3, 8], "target": 24}}, {**ROW, "messages": row["messages"]}]
    given = training_rows.columns(rows, ChatConfig())
    columns = {name: [r[name] for r in given] for name in given[0] if name != "prompt"}
    reward = Composer({"accuracy": RewardPart()}).as_trl_reward()
    texts = [cases.wrap("3*8"), cases.wrap("12")]
    assert reward(prompts=[r["prompt"] for r in given], completions=texts, **columns) == [1.0, 1.0]
