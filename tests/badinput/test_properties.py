"""Invented profiles and settings: whatever comes, a profile or a UserError, and no folder outside the runs folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from r1pipe import config, yamlio
from r1pipe.errors import UserError
from r1pipe.settings import StepConfig
from tests.engine.conftest import PROFILE, toy_stage  # noqa: F401  fixture

ODD = st.sampled_from(["", "..", "../x", "/", "a b", "1e400", "nan", "-1", "\0", "\n", "a" * 300, "toy", "a", "full"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | ODD
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda v: st.lists(v, max_size=4) | st.dictionaries(ODD | st.text(max_size=8), v, max_size=4),
    max_leaves=9,
)
KEYS = st.sampled_from(["name", "description", "steps", "pipelines", "extends", "seed", "engine", "evaluation",
                        "trainer",
                        "chat", "data", "inputs", "gates"])  # fmt: skip
FIELDS = st.sampled_from([*StepConfig.model_fields, "steps", "salt", "data", "trainer"])
FAST = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _checked(raw: dict[str, Any], path: Path) -> None:
    """A profile whose folders stay in the run, or a refusal in words."""
    try:
        profile = config.build(raw, path)
    except UserError as error:
        assert error.message.strip()
        return
    for step in profile.steps:
        inside = (Path("/runs/run") / step).resolve()
        assert inside.parent == Path("/runs/run") and step not in config.TAKEN
    json.dumps(profile.raw)


@FAST
@given(raw=st.dictionaries(KEYS | st.text(max_size=6), VALUES, max_size=5))
def test_any_mapping_is_a_profile_or_refused(raw: dict[str, Any]) -> None:
    _checked(raw, Path("x.yaml"))


@FAST
@given(
    name=ODD | st.text(max_size=12),
    own=st.dictionaries(FIELDS | st.text(max_size=6), VALUES, max_size=4),
    listed=VALUES,
)
def test_any_step(name: str, own: dict[str, Any], listed: Any) -> None:
    _checked(
        {"steps": {name: {"stage": "toy", **own}, "a": {"stage": "toy"}}, "pipelines": {"full": listed}},
        Path("x.yaml"),
    )


@FAST
@given(
    text=st.text(max_size=200)
    | st.lists(st.sampled_from(list("{}[],:&*!|>-?#%@`'\"\n \t<~a1")), max_size=60).map("".join)
)
def test_any_text_is_yaml_or_refused(text: str) -> None:
    try:
        value = yamlio.parse(text, "x")
    except UserError as error:
        assert error.message.startswith("x")
        return
    json.dumps(value)  # JSON's types alone


@FAST
@given(value=VALUES.filter(lambda v: "nan" not in repr(v)))
@example(value={"a\x85b": "\x85", "c": "\u2028 \u2029"})
def test_what_is_dumped_reads_back(value: Any) -> None:
    from r1pipe.cli.configs import dump

    try:
        found = yamlio.parse(dump(value), "x")
    except (UserError, yaml.YAMLError):
        return  # control characters, which YAML has no place for
    assert found == value


@FAST
@given(key=st.text(max_size=12) | st.builds("a.{}".format, FIELDS), value=st.text(max_size=20) | ODD)
def test_any_set(key: str, value: str, tmp_path: Path) -> None:
    path = tmp_path / "toys.yaml"
    path.write_text(PROFILE)
    try:
        config.load(str(path), [f"{key}={value}"])
    except UserError as error:
        assert error.message.strip()


@pytest.mark.parametrize(("text", "value"), [("010", 10), ("0x10", 16), ("0o10", 8), ("1_000", 1000), ("1:30", "1:30"),
                                             ("2026-01-01", "2026-01-01"), ("1e-4", 1e-4), ("on", "on"), ("-3", -3),
                                             ("0b1", "0b1"), ("", None)])  # fmt: skip
def test_scalars(text: str, value: object) -> None:
    assert yamlio.parse(text, "x") == value and type(yamlio.parse(text, "x")) is type(value)
