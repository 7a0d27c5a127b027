"""Profiles: what is refused, how it is said, and that every shipped one loads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from r1pipe import config, yamlio
from r1pipe.errors import UserError
from tests.engine.conftest import FIXTURE


def write(tmp_path: Path, text: str, name: str = "p.yaml") -> str:
    path = tmp_path / name
    path.write_text(text)
    return str(path)


TWO = "steps:\n  a: {stage: toy}\n  b: {stage: toy, inputs: {rows: a}}\npipelines: {full: [a, b]}\n"


def test_pipelines_are_put_in_order_of_work(profile: Path) -> None:
    assert config.load(str(profile)).pipelines["full"] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("steps:\n  a: {stage: toy, stepz: 3}\n", 'steps.a: unknown key "stepz" (did you mean "steps"?)'),
        ("steps:\n  a: {stage: toyy}\n", 'unknown stage "toyy" (did you mean "toy"?)'),
        ("steps:\n  a: {steps: 3}\n", "steps.a: has no stage"),
        ("steps:\n  a: {stage: toy, steps: many}\n", "steps.a.steps: Input should be a valid integer"),
        ("steps:\n  a: {stage: toy}\nsedd: 3\n", 'unknown key "sedd" (did you mean "seed"?)'),
        ("steps:\n  a: {stage: toy, inputs: {rows: z}}\npipelines: {full: [a]}\n", 'there is no step "z"'),
        (
            "steps:\n  a: {stage: toy, inputs: {row: a}}\npipelines: {full: [a]}\n",
            'no input "row" (did you mean "rows"?)',
        ),
        ("steps:\n  a: {stage: toy, inputs: {rows: a}}\npipelines: {full: [a]}\n", "in a circle: a → a"),
        (TWO.replace("[a, b]", "[b]"), "b needs a, which is not in the list"),
        (TWO.replace("[a, b]", "[a, q]"), 'there is no step "q"'),
        ("steps: []\n", "has no steps"),
        ("- a\n- b\n", "holds list, expected a mapping"),
        ("steps:\n  a: {stage: toy\n", "is not valid YAML"),
        ("steps:\n  a: {stage: toy, stage: toy}\n", 'key "stage" stands twice'),
        ("extends: nothing\nsteps: {}\n", 'extends "nothing", but there is no'),
    ],
)
def test_a_fault_is_one_sentence_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        config.load(write(tmp_path, text))
    assert said in str(caught.value)


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    text = "steps:\n  a: {stage: toy, stepz: 1}\n  b: {stage: toy, steps: x}\nsedd: 1\n"
    with pytest.raises(UserError) as caught:
        config.load(write(tmp_path, text))
    assert all(f"steps.{s}" in str(caught.value) for s in "ab")


def test_top_level_keys_are_defaults_of_every_step_that_has_them(tmp_path: Path) -> None:
    text = TWO + "seed: 7\ntrainer: {max_steps: 3, use_cpu: true}\n"
    loaded = config.load(write(tmp_path, text), ["a.trainer.max_steps=9", "b.seed=8"])
    assert loaded.steps["a"].seed == 7
    assert loaded.steps["b"].seed == 8
    assert loaded.steps["a"].trainer == {"max_steps": 9, "use_cpu": True}  # type: ignore[attr-defined]


def test_a_profile_extends_another(tmp_path: Path) -> None:
    write(tmp_path, TWO, "below.yaml")
    loaded = config.load(write(tmp_path, "extends: below.yaml\nsteps:\n  a: {steps: 99}\n"))
    assert loaded.steps["a"].steps == 99  # type: ignore[attr-defined]
    assert loaded.pipelines["full"] == ["a", "b"]


def test_extending_in_a_circle_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "extends: p.yaml\n", "q.yaml")
    with pytest.raises(UserError, match="extends itself"):
        config.load(write(tmp_path, "extends: q.yaml\n"))


@pytest.mark.parametrize("text", ["a", "a=1", "nope.x=1", "=3", "a..b=1"])
def test_set_that_cannot_be_meant_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserError, match="--set"):
        config.load(write(tmp_path, TWO), [text])


def test_numbers_are_what_people_write() -> None:
    value = yamlio.parse("a: 1e-4\nb: 3E5\nc: on\nd: 2.5\ne: 1_000\nf: true\ng: no", "x")
    assert value == {"a": 1e-4, "b": 3e5, "c": "on", "d": 2.5, "e": 1000, "f": True, "g": "no"}


@pytest.mark.parametrize("path", config.list_profiles(), ids=lambda p: p.stem)
def test_every_shipped_profile_loads(path: Path) -> None:
    loaded = config.load(str(path))
    assert loaded.description
    assert {"full", "zero"} <= set(loaded.pipelines)


def test_unknown_profile_names_the_nearest() -> None:
    with pytest.raises(UserError, match="tiny"):
        config.load("tinyy")


def test_the_schema_accepts_every_shipped_profile() -> None:
    import jsonschema

    schema = config.schema()
    for path in config.list_profiles():
        jsonschema.validate(config.read(path), schema)


def test_a_profile_cannot_import_code_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    path = write(tmp_path, "steps:\n  a: {stage: module:mine}\n")
    with pytest.raises(UserError, match="--allow-code"):
        config.load(path)
    with pytest.raises(UserError, match="--allow-code"):
        config.load("tiny", ["base.base_model.trust_remote_code=true"])
    (tmp_path / "mine.py").write_text((FIXTURE / "toy_stage.py").read_text())
    monkeypatch.setenv("R1PIPE_ALLOW_CODE", "1")
    assert config.load(path).steps["a"].stage == "module:mine"


def test_two_splits_of_one_source_have_two_digests(tmp_path: Path) -> None:
    from r1pipe import fingerprint
    from r1pipe.settings import DataSpec, StepConfig

    folder = tmp_path / "rows"
    folder.mkdir()
    for split in ("train", "test"):
        (folder / f"{split}.jsonl").write_text(json.dumps({"question": split, "answer": "1"}) + "\n")

    class Step(StepConfig):
        data: list[DataSpec]

    step = Step(stage="x", data=[DataSpec(source=str(folder), split=s) for s in ("train", "test")])
    before = fingerprint.sources(step)
    assert sorted(before) == [str(folder), f"{folder}#test"]
    (folder / "test.jsonl").write_text(json.dumps({"question": "other", "answer": "1"}) + "\n")
    changed = [key for key, value in fingerprint.sources(step).items() if before[key] != value]
    assert changed == [f"{folder}#test"]
