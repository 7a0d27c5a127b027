"""The engine on torch-free steps, through real workers: reasons, sealing, refusing, locks."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from r1pipe import manifest as mf
from r1pipe.store import Store
from tests.engine.conftest import Cli


def manifest(tmp_path: Path, step: str) -> tuple[mf.Manifest, Path]:
    store = Store(tmp_path / "runs", "toys-full")
    sealed = [a for a in store.all_attempts(step) if a.sealed]
    attempt = max(sealed, key=lambda a: mf.load(a).finished)
    return mf.load(attempt), attempt.path


def plan(cli: Cli, *arguments: str) -> dict[str, dict[str, Any]]:
    done = cli("status", "full", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return {row["step"]: row for row in json.loads(done.stdout)["steps"]}


def run(cli: Cli, *arguments: str) -> dict[str, Any]:
    done = cli("pipeline", "full", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_runs_in_order_then_is_up_to_date(cli: Cli, tmp_path: Path) -> None:
    assert run(cli)["ran"] == ["a", "b", "c"]
    sealed, folder = manifest(tmp_path, "b")
    above, _ = manifest(tmp_path, "a")
    assert sealed.inputs["rows"].digest == above.outputs["rows"].digest
    assert sealed.counts == {"rows/kept": 2}
    assert sealed.outputs["rows"].meta["note"] == "toy"
    assert sealed.tokens == 20
    assert (folder / "log.txt").is_file()
    assert run(cli)["ran"] == []
    said = cli("pipeline", "full").stdout
    assert "everything is up to date" in said


def test_a_changed_setting_reruns_what_is_below_and_says_why(cli: Cli, tmp_path: Path) -> None:
    run(cli)
    rows = plan(cli, "--set", "a.salt=x")
    assert rows["a"]["why"] == "settings-changed"
    assert "salt default → x" in rows["a"]["reason"]
    assert rows["b"]["action"] == "later"
    assert run(cli, "--set", "a.salt=x")["ran"] == ["a", "b"]  # b makes the same rows, so c is left alone
    assert len(Store(tmp_path / "runs", "toys-full").all_attempts("a")) == 2  # the old result is still there
    assert run(cli)["ran"] == []  # and is found again


def test_settings_without_effect_rerun_nothing(cli: Cli) -> None:
    run(cli)
    assert run(cli, "--set", "a.trainer.logging_steps=7")["ran"] == []


def test_force_makes_a_new_folder(cli: Cli, tmp_path: Path) -> None:
    first = run(cli)
    again = run(cli, "--force", "--only", "b")
    assert again["ran"] == ["b"]
    assert again["steps"]["b"]["folder"] == first["steps"]["b"]["folder"] + "-2"


def test_only_and_from(cli: Cli) -> None:
    refused = cli("pipeline", "full", "--only", "b")
    assert refused.returncode == 2
    assert "b reads a.rows, but a is not up to date: never run" in refused.stderr
    assert run(cli, "--only", "a")["ran"] == ["a"]
    assert run(cli, "--from", "b")["ran"] == ["b", "c"]


def test_run_stage_takes_inputs_from_manifests(cli: Cli) -> None:
    refused = cli("run-stage", "b")
    assert refused.returncode == 2
    assert "run-stage a" in refused.stderr
    assert cli("run-stage", "a").returncode == 0
    assert cli("run-stage", "b").returncode == 0
    several = cli("run-stage", "toy")
    assert several.returncode == 2
    assert "several steps: a, b, c" in several.stderr


@pytest.mark.parametrize(
    ("how", "said", "code"),
    [
        ("user", "the toy is broken", 2),  # bad input
        ("crash", "ZeroDivisionError: toy", 1),
        ("signal", "ended by signal 9", 1),
    ],
)
def test_a_failed_step_names_its_log(cli: Cli, tmp_path: Path, how: str, said: str, code: int) -> None:
    failed = cli("pipeline", "full", "--set", f"b.fail={how}")
    assert failed.returncode == code
    assert said in failed.stderr
    assert "Traceback" not in failed.stderr
    log = re.search(r"log: (\S+)", failed.stderr)
    assert log and (tmp_path / log[1]).is_file()
    rows = plan(cli, "--set", f"b.fail={how}")
    assert rows["a"]["state"] == "done"
    assert rows["b"]["state"] == "failed"
    assert rows["c"]["state"] == "never run"


def test_a_changed_artifact_is_refused_and_made_again(cli: Cli, tmp_path: Path) -> None:
    run(cli)
    _, folder = manifest(tmp_path, "a")
    data = folder / "out" / "rows" / "data.jsonl"
    data.write_text(data.read_text().replace('"n": 0', '"n": 9'))
    verified = cli("verify", "toys-full")
    assert verified.returncode == 1
    assert "digest mismatch" in verified.stdout + verified.stderr
    row = plan(cli)["a"]
    assert row["why"] == "damaged"
    assert run(cli)["steps"]["a"]["folder"].endswith("-2")


def test_a_torn_manifest_is_named(cli: Cli, tmp_path: Path) -> None:
    run(cli)
    _, folder = manifest(tmp_path, "a")
    path = folder / "manifest.json"
    path.write_text(path.read_text()[:200])
    torn = cli("pipeline", "full")
    assert torn.returncode == 2
    assert str(Path("a") / folder.name / "manifest.json") in torn.stderr


def test_environment_changes_show_and_rerun_only_with_strict(cli: Cli, tmp_path: Path) -> None:
    run(cli)
    for step in "abc":
        _, folder = manifest(tmp_path, step)
        path = folder / "manifest.json"
        path.write_text(re.sub(r'"transformers": "[^"]*"', '"transformers": "0.1"', path.read_text()))
    rows = plan(cli)
    assert all(r["state"] == "done" for r in rows.values())
    assert "transformers 0.1 →" in rows["a"]["notes"][0]
    assert run(cli)["ran"] == []
    assert run(cli, "--strict")["ran"] == ["a", "b", "c"]


def test_a_missing_file_of_the_last_step_is_told_before_the_first_runs(cli: Cli, tmp_path: Path) -> None:
    refused = cli("pipeline", "full", "--set", "c.data=[{source: nowhere.jsonl}]")
    assert refused.returncode == 2
    assert "step c: " in refused.stderr
    assert "nowhere.jsonl" in refused.stderr
    assert not (tmp_path / "runs" / "toys-full" / "a").exists()


def test_no_disk_space_is_told_before_anything_runs(
    profile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from r1pipe import config, runner
    from r1pipe.cli.live import Quiet
    from r1pipe.errors import UserError
    from r1pipe.plan import Options

    store = Store(tmp_path / "runs", "toys-full")
    loaded = config.load(str(profile))
    monkeypatch.setattr(runner.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 1000})())
    with pytest.raises(UserError, match=r"0\.00 GiB free; these steps need about 0\.06 GiB \(a, b, c\)"):
        runner.Runner(loaded, store, Options(), Quiet(), "full").run(["a", "b", "c"])
    assert not (store.root / "a").exists()


def test_a_runs_folder_that_cannot_be_made_is_one_sentence(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    refused = cli("pipeline", "full")
    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr
    assert "runs" in refused.stderr


def test_manifest_schema_is_published() -> None:
    import jsonschema

    from r1pipe.resources import configs_dir

    published = json.loads((configs_dir() / "manifest.schema.json").read_text())
    published.pop("$schema", None)
    assert published == mf.Manifest.model_json_schema(), "run: make schemas"
    jsonschema.Draft202012Validator.check_schema(published)
