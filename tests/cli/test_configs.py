from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from r1pipe import config, yamlio
from r1pipe.cli import configs
from tests.cli.conftest import Made

SHIPPED = [p.stem for p in config.list_profiles()]


def test_list_says_what_each_needs(call: Any) -> None:
    code, out, _ = call("config", "list", "--json")
    rows = {r["name"]: r for r in json.loads(out)}
    assert code == 0
    assert {"tiny", "smoke"} <= set(rows)
    for row in rows.values():
        assert row["description"], row
        assert row["needs"], row
        assert "r1pipe " in row["launch"] or row["launch"], row
    assert "needs two CPU cores" in call("config", "list")[1]


def test_show_is_the_file_and_resolved_is_the_merged_one(call: Any) -> None:
    assert call("config", "show", "tiny")[1] == config.find("tiny").read_text()
    _, out, _ = call("config", "show", "smoke", "--resolved", "--set", "sft.trainer.max_steps=7")
    merged = yamlio.parse(out, "shown")
    assert merged["steps"]["sft"]["trainer"]["max_steps"] == 7
    assert "extends" not in merged
    assert call("config", "show", "tiny", "--set", "a=1")[0] == 2


@pytest.mark.parametrize("name", SHIPPED)
def test_the_merged_yaml_reads_back_as_the_same_profile(name: str, tmp_path: Path) -> None:
    merged = config.read(config.find(name))
    text = configs.dump(merged)
    assert yamlio.parse(text, "dump") == merged
    again = tmp_path / "again.yaml"
    again.write_text(text)
    assert config.load(str(again)).steps == config.load(name).steps


def test_dump_quotes_text_that_looks_like_something_else() -> None:
    value = {"a": ["1e-4", "on", "no", "true", "1.5", "0x1f", "null", "~", "12:30", "2026-01-01", "中文", "a: b", ""],
             "b": [1e-4, 3e-06, 1.0, True, None, 10, float("inf")]}  # fmt: skip
    assert yamlio.parse(configs.dump(value), "dump") == value


def test_copy_never_overwrites(call: Any, tmp_path: Path) -> None:
    code, _, _ = call("config", "copy", "tiny", "mine.yaml")
    assert code == 0
    assert (tmp_path / "mine.yaml").read_text() == config.find("tiny").read_text()
    assert call("config", "validate", "mine.yaml")[0] == 0
    (tmp_path / "mine.yaml").write_text("mine")
    code, _, err = call("config", "copy", "tiny", "mine.yaml")
    assert code == 2
    assert "there already" in err
    assert (tmp_path / "mine.yaml").read_text() == "mine"
    assert call("config", "copy", "tiny")[0] == 0
    assert (tmp_path / "tiny.yaml").is_file()
    assert call("config", "copy", "tiny", "no/such/folder.yaml")[0] == 2


def test_validate_tells_all_faults_of_all_profiles(call: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(
        "extends: tiny\nsede: 1\nsteps:\n  sft: {treads: 2}\n  rejection-sampling: {sampling: {n: many}}\n"
    )
    code, out, _ = call("config", "validate", "tiny", "bad.yaml", "nope")
    assert code == 2
    assert "tiny: " in out
    for part in ("treads", "sampling.n", "many", 'unknown profile "nope"'):
        assert part in out
    _, out, _ = call("config", "validate", "tiny", "bad.yaml", "--json")
    assert [r["ok"] for r in json.loads(out)] == [True, False]


def test_schemas_fit_what_is_shipped_and_sealed(call: Any, made: Made) -> None:
    profile = json.loads(call("config", "schema")[1])
    jsonschema.Draft202012Validator.check_schema(profile)
    jsonschema.validate(config.read(config.find("tiny")), profile)
    manifest = json.loads(call("config", "schema", "--manifest")[1])
    jsonschema.validate(json.loads(made.sealed["rl"][0].manifest.read_text()), manifest)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"step": "x"}, manifest)
