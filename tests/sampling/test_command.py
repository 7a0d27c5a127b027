"""`r1pipe samples`: browse, review, and a run of the step that applies what was decided. On a real run."""

from __future__ import annotations

import io
import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from r1pipe import manifest as mf
from r1pipe.store import Store
from tests.cli.conftest import call  # noqa: F401  fixture
from tests.sampling import steps

Call = Callable[..., tuple[int, str, str]]
HOSTILE = "\x1b]0;title\x07\x1b[2JAdding [bold]both[/] numbers makes it"


def profile(folder: Path, **more: Any) -> Path:
    replies = [steps.right(3, HOSTILE), steps.right(3, "One and two make three."), steps.right(99), "no idea"]
    sampling = {
        "stage": "rejection-sampling", "inputs": {"model": "base"}, "data": [steps.problems(folder)],
        "engine": {"kind": "scripted", "options": {"replies": replies, "pick": "seed"}}, "shard_size": 5,
        "sampling": {"n": 16, "max_tokens": 64}, "per_prompt": 3, "filters": {"garbled": True},
    } | more  # fmt: skip
    made = {
        "name": "small", "base_model": {"path": "builtin:tiny-base"},
        "steps": {"base": {"stage": "base-model", "evaluate": False}, "sampling": sampling},
        "pipelines": {"full": ["base", "sampling"]},
    }  # fmt: skip
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump(made))
    return path


@pytest.fixture
def run(tmp_path: Path, call: Call) -> Path:  # noqa: F811
    path = profile(tmp_path)
    code, _, err = call("pipeline", "full", "--profile", str(path), "--json")
    assert code == 0, err
    return path


def listed(call: Call, *more: str) -> dict[str, Any]:  # noqa: F811
    code, out, err = call("samples", "small-full", "--json", *more)
    assert code == 0, err
    assert out.isascii()
    return json.loads(out)


def typed(monkeypatch: pytest.MonkeyPatch, *keys: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{k}\n" for k in keys)))


def sealed(tmp_path: Path) -> list[mf.Manifest]:
    attempts = Store(tmp_path / "runs", "small-full").all_attempts("sampling")
    made = sorted((a for a in attempts if a.sealed), key=lambda a: a.manifest.stat().st_mtime_ns)
    return [mf.load(a) for a in made]  # times in a manifest are whole seconds


def test_browse_and_review(run: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    found = listed(call, "--limit", "0")
    assert found["sampled"] == len(found["samples"]) == 192 and found["finished"]
    assert sum(found["dropped"].values()) + found["kept"] == 192 and found["kept"] >= 2
    assert {s["reason"] for s in listed(call, "--dropped", "-n", "0")["samples"]} == set(found["dropped"])
    assert {s["reason"] for s in listed(call, "--reason", "accuracy", "-n", "3")["samples"]} == {"accuracy"}
    kept = listed(call, "--kept", "-n", "0")["samples"]
    assert len(kept) == found["kept"] and all(s["verdicts"]["accuracy"]["score"] == 1 for s in kept)

    _, out, _ = call("samples", "small-full", "--kept", "--limit", "0")
    assert "\x1b" not in out and "Adding [bold]both[/] numbers" in out and "accuracy 1" in out
    code, _, err = call("samples", "small-full", "--reason", "acuracy")
    assert code == 2 and 'did you mean "accuracy"' in err

    # accept, undo it, reject; edit into something wrong, edit again, keep what passes; then leave
    editor = tmp_path / "editor"
    good = steps.right(3, "Edited by hand.")
    script = f'if grep -q WRONG "$1"; then printf \'%s\' \'{good}\' > "$1"; else printf WRONG > "$1"; fi'
    editor.write_text(f"#!/bin/sh\n{script}\n")
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("EDITOR", str(editor))
    typed(monkeypatch, "a", "u", "x", "r", "e", "e", "q")
    code, out, err = call("samples", "small-full", "--review")
    assert code == 0, err
    assert "does not pass: accuracy" in out and "\npasses" in out
    assert "0 accepted, 1 edited, 1 rejected" in out
    log = tmp_path / "runs/small-full/sampling/reviews.jsonl"
    before = len(log.read_bytes().splitlines())
    typed(monkeypatch, *("s" * 99))
    _, out, _ = call("samples", "small-full", "--review")
    assert kept[0]["id"] not in out and "nothing" in out, "it goes on where it was"
    assert len(log.read_bytes().splitlines()) == before

    (line,) = [text for text in out.splitlines() if text.strip().startswith("r1pipe pipeline full")]
    assert "reviews.source=" in line
    code, out, err = call(*line.split()[1:], "--json")
    assert code == 0, err
    first, second = sealed(tmp_path)
    assert second.facts["samples_made"] == 0 and second.facts["samples_from_earlier_attempts"] == 192
    assert second.counts["review/edit"] == second.counts["review/reject"] == 1
    assert second.outputs["samples"].digest != first.outputs["samples"].digest
    made = steps.lines(
        next((tmp_path / "runs/small-full/sampling").glob(f"{second.fingerprint[:8]}/out/samples")) / "data.jsonl"
    )
    assert kept[0]["id"] not in [r["id"] for r in made]
    assert any("Edited by hand." in r["messages"][-1]["content"] for r in made)
    code, _, err = call("verify", "small-full")
    assert code == 0, err


def test_what_failed_can_be_looked_at(tmp_path: Path, call: Call) -> None:  # noqa: F811
    """Nothing kept: the step fails, and its samples are there to see why."""
    path = profile(tmp_path, filters={"longest_paragraph": 1})
    code, _, err = call("pipeline", "full", "--profile", str(path), "--json")
    assert code == 2 and "0 kept of 192" in err
    found = listed(call, "--dropped", "--limit", "0")
    assert not found["finished"] and found["kept"] == 0 and found["sampled"] == 192
    assert {"accuracy", "long_paragraph"} <= set(found["dropped"])
    _, out, _ = call("samples", "small-full", "--limit", "1")
    assert "not finished" in out and "1 of 192" in out


def test_faults(tmp_path: Path, call: Call, run: Path) -> None:  # noqa: F811
    assert call("samples", "nope")[0] == 2
    assert "holds no samples" in call("samples", "small-full", "--step", "base")[2]
    assert call("samples", "small-full", "--kept", "--dropped")[0] == 2
    assert "no --json" in call("samples", "small-full", "--review", "--json")[2]
