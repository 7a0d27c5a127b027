"""The comparison: known effects, Holm, seeds, refusals, and how often it cries wolf."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from r1pipe.errors import UserError
from r1pipe.report import compare as cp
from r1pipe.report import comparepage
from tests.cli.conftest import Made, evaluation
from tests.report.conftest import build, load, records, write_log

Call = Callable[..., tuple[int, str, str]]


def effect() -> cp.Effect:
    return cp.Effect("s", "heldout", "sample", "accuracy")


def test_an_effect_has_the_interval_of_the_paired_bootstrap() -> None:
    a = [float(i % 2) for i in range(400)]
    b = [1.0 if i % 10 == 0 else float(i % 2) for i in range(400)]  # +0.1: 40 of 400
    found = cp.paired_groups(effect(), [a], [b])
    assert found.delta == pytest.approx(0.1) and found.a == 0.5 and found.b == pytest.approx(0.6)
    assert 0.065 < found.low < 0.08 and 0.12 < found.high < 0.135 and found.p < 0.001  # type: ignore[operator]


def test_few_problems_cannot_be_certain() -> None:
    assert cp.paired_groups(effect(), [[0.0] * 3], [[1.0] * 3]).p == 0.25
    assert cp.paired_groups(effect(), [[1.0] * 9], [[1.0] * 9]).p == 1.0


def test_false_alarms_are_as_rare_as_said() -> None:
    """Two draws of one recipe: p < 0.05 in about one of twenty."""
    rng = np.random.default_rng(3)
    alarms = 0
    for i in range(200):
        skill = rng.random(100)
        a, b = ((rng.random(100) < skill).astype(float).tolist() for _ in range(2))
        alarms += cp.paired_groups(effect(), [a], [b], resamples=1000, seed=i).p < 0.05  # type: ignore[operator]
    assert alarms <= 20


def test_a_seed_that_differs_widens_the_interval() -> None:
    """Runs that agree say much; runs of which one fails say little."""
    rng = np.random.default_rng(4)
    skill = rng.random(200)

    def run(shift: float) -> list[float]:
        return (rng.random(200) < np.clip(skill + shift, 0, 1)).astype(float).tolist()

    steady = cp.paired_groups(effect(), [run(0), run(0), run(0)], [run(0.2), run(0.2), run(0.2)])
    shaky = cp.paired_groups(effect(), [run(0), run(0), run(0)], [run(0.5), run(-0.4), run(0.5)])
    assert steady.low > 0.05  # type: ignore[operator]
    assert shaky.high - shaky.low > 3 * (steady.high - steady.low)  # type: ignore[operator]
    assert shaky.low < 0  # type: ignore[operator]


def test_seeds_cover_the_true_difference() -> None:
    """Three seeds a side, a seed effect of 10 points, no true difference: the plain bootstrap over problems would miss
    in most draws."""
    rng = np.random.default_rng(5)
    missed = narrow = 0
    for i in range(60):
        skill = rng.random(150)
        sides = [
            [(rng.random(150) < np.clip(skill + 0.1 * rng.normal(), 0, 1)).astype(float).tolist() for _ in range(3)]
            for _ in range(2)
        ]
        found = cp.paired_groups(effect(), *sides, resamples=800, seed=i)
        missed += not found.low <= 0 <= found.high  # type: ignore[operator]
        means = [np.array(s).mean(axis=0).tolist() for s in sides]
        plain = cp.paired_groups(effect(), [means[0]], [means[1]], resamples=800, seed=i)
        narrow += not plain.low <= 0 <= plain.high  # type: ignore[operator]
    assert missed <= 12 and narrow > 2 * missed


def test_holm() -> None:
    effects = [effect() for _ in range(4)]
    for e, p in zip(effects, (0.01, 0.04, 0.03, 0.005), strict=True):
        e.p, e.delta = p, 0.1
    cp._correct(effects)
    assert [e.holm for e in effects] == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert [e.verdict for e in effects] == ["better", cp.NONE, cp.NONE, "better"]


@pytest.mark.parametrize(
    ("metric", "delta", "verdict"),
    [("accuracy", -0.1, "worse"), ("refusal_safe", 0.1, "worse"), ("refusal_unsafe", 0.1, "better"),
     ("truncated", -0.1, "better"), ("tokens", 3.0, "more"), ("tokens", -3.0, "fewer")],
)  # fmt: skip
def test_which_way_is_better(metric: str, delta: float, verdict: str) -> None:
    e = cp.Effect("s", "heldout", "sample", metric, delta=delta, p=0.001)
    cp._correct([e])
    assert e.verdict == verdict


@pytest.fixture
def two(tmp_path: Path) -> tuple[Made, Made]:
    """A and B: the same base and sft; B's GRPO is better."""
    return build(tmp_path / "runs", "a", gain=0.1), build(tmp_path / "runs", "b", gain=0.3)


def test_equal_models_are_not_compared(two: tuple[Made, Made]) -> None:
    found = cp.compare(*([load(m)] for m in two))  # Made seals equal weights
    assert [(s.name, s.same, s.effects) for s in found.steps][-1] == ("alignment-grpo", True, [])
    assert comparepage.headline(found)[1].startswith("Every shared step is the same model on both sides (base, sft")
    assert "one run a side" in found.notes[0]


def test_a_number_of_several_samples(two: tuple[Made, Made]) -> None:
    """pass@k and its like stand in the records under `more`."""
    for made, value in zip(two, (0.0, 1.0), strict=True):
        attempt, _ = made.sealed["alignment-grpo"]
        rows = [r | {"more": {"pass@4": value}} for r in records(0.8)]
        (attempt.output("evaluation") / "data.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    different(two[1], "alignment-grpo")
    found = cp.compare([load(two[0])], [load(two[1])], ["alignment-grpo"], ["pass@4"])
    assert {(e.metric, e.verdict, e.delta) for e in found.effects} == {("pass@4", "better", 1.0)}


def different(made: Made, step: str, **more: object) -> None:
    """Gives a step other weights (Made writes the same for every run)."""
    attempt, manifest = made.sealed[step]
    model = manifest.outputs["model"].model_copy(update={"digest": "f" * 64})
    changed = manifest.model_copy(update={"outputs": {**manifest.outputs, "model": model}, **more})
    attempt.manifest.write_text(changed.model_dump_json())


def test_a_better_run_is_better(two: tuple[Made, Made]) -> None:
    different(two[1], "alignment-grpo", config={"evaluation": {"temperature": 1.0}, "seed": 42, "trainer": {"lr": 2}})
    found = cp.compare([load(two[0])], [load(two[1])])
    step = found.steps[-1]
    main = next(e for e in step.effects if e.name == "heldout, sample: accuracy")
    assert not step.same and main.verdict == "better" and main.low > 0.1 and main.n == 200  # type: ignore[operator]
    assert next(e for e in step.effects if e.name == "heldout, sample: format").verdict == cp.NONE
    assert step.config == [("trainer.lr", "unset", "2")]
    assert comparepage.headline(found)[1].startswith("B is better at alignment-grpo: accuracy on heldout (sample) +")


def test_no_difference_is_said(two: tuple[Made, Made], tmp_path: Path) -> None:
    same = build(tmp_path / "runs", "c", gain=0.1)
    different(same, "alignment-grpo")
    found = cp.compare([load(two[0])], [load(same)])
    assert comparepage.headline(found) == (
        "plain", "No difference shown at alignment-grpo: accuracy on heldout (sample) +0.0 points [0.0, 0.0], 200 "
        "problems, paired.",
    )  # fmt: skip


def test_other_problems_are_not_paired(two: tuple[Made, Made]) -> None:
    attempt, _ = two[1].sealed["alignment-grpo"]
    rows = records(0.8)
    for r in rows[10:]:
        r["id"] = "other" + r["id"]
    (attempt.output("evaluation") / "data.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    different(two[1], "alignment-grpo")
    with pytest.raises(UserError, match=r"do not share their problems.*heldout: 10 of 200 problems are shared"):
        cp.compare([load(two[0])], [load(two[1])], steps=["alignment-grpo"])


def test_an_evaluation_that_measures_otherwise_is_told(two: tuple[Made, Made]) -> None:
    different(two[1], "alignment-grpo", config={"evaluation": {"temperature": 0.6, "bootstrap": 9}, "seed": 42})
    found = cp.compare([load(two[0])], [load(two[1])])
    assert found.steps[-1].notes == ["the two sides were not measured alike: temperature 1.0 → 0.6"]


def test_pipelines_that_end_in_other_steps(tmp_path: Path, two: tuple[Made, Made]) -> None:
    zero = Made(tmp_path / "runs", "zero")
    zero.step("base", evaluation=evaluation(0.2), records=records(0.2))
    zero.step("zero-grpo", inputs={"model": "base"}, evaluation=evaluation(0.5), records=records(0.5))
    names = [s.name for s in cp.compare([load(zero)], [load(two[1])]).steps]
    assert names == ["base", "zero-grpo / alignment-grpo"]
    chosen = cp.compare([load(zero)], [load(two[1])], steps=["zero-grpo=sft"], metrics=["accuracy"])
    assert {e.metric for e in chosen.effects} == {"accuracy"} and chosen.steps[0].name == "zero-grpo / sft"


def test_seeds_on_the_command_line(tmp_path: Path, call: Call) -> None:
    for name, gain, seed in (("a1", 0.1, 1), ("a2", 0.1, 2), ("b1", 0.3, 1), ("b2", 0.3, 2)):
        made = build(tmp_path / "runs", name, gain=gain, seed=seed)
        if name[0] == "b":
            different(made, "alignment-grpo")
    code, out, err = call("compare", "a1,a2", "b1,b2", "--step", "alignment-grpo", "--json")
    said = json.loads(out)
    assert code == 0, err
    assert said["a"] == ["a1", "a2"] and not said["notes"]
    assert said["headline"].startswith("B is better at alignment-grpo")
    assert said["steps"][0]["settings"] == {}  # the seeds are the same on both sides


def test_the_command(two: tuple[Made, Made], call: Call, tmp_path: Path) -> None:
    different(two[1], "alignment-grpo")
    for made in two:
        write_log(made.sealed["alignment-grpo"][0], [{"step": s, "reward": float(s)} for s in range(1, 9)])
    code, out, err = call("compare", "a", "b", "--html", "c.html")
    assert code == 0 and not err
    assert "B is better at alignment-grpo" in out and "no difference shown" in out and "95 % interval" in out
    page = (tmp_path / "c.html").read_text()
    assert "A a" in page and "<script" not in page and "Curves" in page


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("a", "nope"), 'there is no run "nope"'),
        (("a", "b", "--metric", "acuracy"), 'did you mean "accuracy"'),
        (("a", "b", "--step", "alignment-grp"), 'did you mean "alignment-grpo"'),
        (("a,a", "b"), "names a run twice"),
        ((",", "b"), "names no run"),
    ],
)
def test_bad_input(two: tuple[Made, Made], call: Call, arguments: tuple[str, ...], said: str) -> None:
    code, out, err = call("compare", *arguments)
    assert code == 2 and said in err and not out
