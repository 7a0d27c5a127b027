"""`r1pipe evaluate`: cached by model and set, resumed by set, sealed, and honest about what it was given."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from r1pipe.cli import evaluationtable
from r1pipe.evaluate import job, models, results, suites
from r1pipe.resources import data_dir
from tests.cli.conftest import Made

REPLY = "<think>\nI add them.\n</think>\n<answer>42</answer>"
SCRIPTED = ["--set", "engine.kind=scripted", "--set", f"engine.options.replies={json.dumps([REPLY, 'no idea'])}"]
SMALL = ["--suite", "tiny", "--limit", "6", "--n", "2", *SCRIPTED]


@pytest.fixture
def trained(tmp_path: Path) -> Made:
    """base → sft → rl, whose models are folders of numbers."""
    run = Made(tmp_path / "runs")
    run.step("base")
    run.step("sft", inputs={"model": "base"})
    run.step("rl", inputs={"model": "sft"})
    run.step("samples", kind="dataset", inputs={"model": "rl"})
    return run


def report(call: Any, *arguments: str) -> dict[str, Any]:
    code, out, err = call("evaluate", *arguments, "--json")
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def test_every_step_then_cached(trained: Made, call: Any) -> None:
    found = report(call, "tiny-full", "--steps", "all", *SMALL)
    assert [m["name"] for m in found["models"]] == ["base", "sft", "rl"]
    assert [m["from"] for m in found["models"]] == [None, "base", "sft"]
    heldout = found["models"][1]["sets"]["heldout"]
    assert not heldout["cached"]
    assert heldout["metrics"]["sample"]["pass@2"]["n"] == 6
    assert heldout["metrics"]["sample"]["status"] == {"scored": 6, "unverifiable": 6}
    assert heldout["change"]["greedy"]["accuracy"]["n"] == 6  # paired against base
    again = report(call, "tiny-full", "--steps", "all", *SMALL)
    assert all(s["cached"] for m in again["models"] for s in m["sets"].values())
    for before, after in zip(found["models"], again["models"], strict=True):
        assert {n: s["metrics"] for n, s in before["sets"].items()} == {
            n: s["metrics"] for n, s in after["sets"].items()
        }
    assert call("verify", "tiny-full")[0] == 0
    assert "nothing to remove" in call("prune", "tiny-full")[1]
    assert len(report(call, "tiny-full", *SMALL)["models"]) == 1  # without --steps the last model


def test_cached_means_no_torch(trained: Made, call: Any) -> None:
    report(call, "tiny-full", *SMALL)
    code = (
        "import sys; from r1pipe.cli.app import dispatch\n"
        f"code = dispatch(['evaluate', 'tiny-full', *{SMALL!r}, '--runs-dir', {str(trained.store.runs_dir)!r}])\n"
        "assert not {'torch', 'transformers', 'datasets', 'sympy'} & set(sys.modules), 'heavy'\nsys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "rl: heldout cached" in done.stderr and "cached →" in done.stdout


def test_only_what_changed_is_measured_again(trained: Made, call: Any) -> None:
    report(call, "tiny-full", *SMALL)
    cached = {
        n: s["cached"]
        for n, s in report(call, "tiny-full", *SMALL, "--set", "heldout.n=3")["models"][0]["sets"].items()
    }
    assert cached == {"heldout": True, "range": True, "general": True}  # --n 2 stands above it
    small = [a for a in SMALL if a not in ("--n", "2")]
    found = report(call, "tiny-full", *small, "--set", "heldout.n=2", "--set", "range.n=2", "--set", "general.n=2")
    assert all(s["cached"] for s in found["models"][0]["sets"].values())
    found = report(call, "tiny-full", *small, "--set", "heldout.max_tokens=3")
    assert [s["cached"] for s in found["models"][0]["sets"].values()] == [False, False, False]
    found = report(call, "tiny-full", *SMALL, "--set", 'chat.system_prompt="Think."')
    assert not any(s["cached"] for s in found["models"][0]["sets"].values())
    assert list(report(call, "tiny-full", *SMALL, "--only", "range")["models"][0]["sets"]) == ["range"]


def test_what_is_kept(trained: Made, call: Any) -> None:
    found = report(call, "tiny-full", *SMALL, "--only", "heldout")["models"][0]["sets"]["heldout"]
    folder = Path(found["folder"])
    texts = [json.loads(line) for line in (folder / results.SAMPLES).open()]
    assert len(texts) == 6 * 2 + 6  # sample and greedy
    assert {t["text"] for t in texts} == {REPLY, "no idea"}
    assert {(t["score"], t["status"]) for t in texts if t["text"] == "no idea"} == {(0.0, "unverifiable")}
    sealed = results.load(folder)
    assert sealed.model["source"].startswith("rl/") and sealed.key_of["verifiers"]["accuracy"]
    assert {f.name for f in sealed.files.files} == {results.SAMPLES, results.RECORDS}
    (index,) = results.Cache(trained.store.root).suites()
    assert index["models"]["rl"]["sets"]["heldout"]["folder"] == folder.relative_to(folder.parents[1]).as_posix()
    assert results.Cache(trained.store.root).result(index["models"]["rl"]["sets"]["heldout"]["folder"]) == sealed


def test_killed_in_a_set_it_goes_on_at_that_set(trained: Made, call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = job._set

    def dies(subject: Any, part: Any, *more: Any) -> Any:
        if part.name == "range":
            raise KeyboardInterrupt
        return real(subject, part, *more)

    monkeypatch.setattr(job, "_set", dies)
    assert call("evaluate", "tiny-full", *SMALL)[0] == 130
    half = next((trained.store.root / results.FOLDER).glob("model-*"))
    (half / "range-000000000000").mkdir()  # what a kill in the middle of a write leaves
    monkeypatch.setattr(job, "_set", real)
    found = report(call, "tiny-full", *SMALL)["models"][0]["sets"]
    assert {name: s["cached"] for name, s in found.items()} == {"heldout": True, "range": False, "general": False}


def test_a_changed_result_is_not_trusted_and_not_overwritten(trained: Made, call: Any) -> None:
    folder = Path(report(call, "tiny-full", *SMALL)["models"][0]["sets"]["range"]["folder"])
    (folder / results.SAMPLES).write_text("{}\n")
    found = report(call, "tiny-full", *SMALL)["models"][0]["sets"]["range"]
    assert not found["cached"] and found["folder"] == f"{folder}-2"
    assert (folder / results.SAMPLES).read_text() == "{}\n"
    (folder.parent / f"{folder.name}-2" / results.RESULT).write_text("{")
    code, _, err = call("evaluate", "tiny-full", *SMALL)
    assert code == 2 and "result.json cannot be read" in err


def test_a_model_by_itself(tmp_path: Path, call: Any) -> None:
    """The embedded model through the real engine; its numbers are those of the same model in a run."""
    arguments = ["--suite", "tiny", "--only", "range", "--limit", "5", "--set", "max_tokens=48"]
    found = report(call, "builtin:tiny-base", *arguments)
    (model,) = found["models"]
    assert model["name"] == "tiny-base" and found["folder"].endswith("runs/evaluations")
    assert model["sets"]["range"]["facts"]["engine"]["engine"] == "transformers"
    metrics = model["sets"]["range"]["metrics"]["greedy"]
    assert metrics["accuracy"]["n"] == 5 and metrics["tokens"]["value"] > 5
    copied = report(call, str(data_dir() / "tiny-base"), *arguments)["models"][0]
    assert copied["digest"] == model["digest"] and copied["sets"]["range"]["cached"]
    run = Made(tmp_path / "runs")
    run.step("base", model=data_dir() / "tiny-base", config={"chat": {}, "threads": 2})
    step = report(call, "tiny-full", *arguments)["models"][0]
    assert step["digest"] == model["digest"] and step["sets"]["range"]["metrics"]["greedy"] == metrics


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tiny-full"], "which suite?"),
        (["nowhere", "--suite", "tiny"], "neither a run in"),
        (
            ["tiny-full", "--suite", "tiny", "--steps", "sfd"],
            'no finished model of a step "sfd" (did you mean "sft"?)',
        ),
        (["tiny-full", "--suite", "tiny", "--steps", "samples"], 'no finished model of a step "samples"'),
        (["builtin:tiny-base", "--suite", "tiny", "--steps", "all"], "--steps is for runs"),
        (["builtin:tiny", "--suite", "tiny"], "no shipped model"),
        (["tiny-full", "--suite", "tiny", "--set", "chat.template=builtin:r1"], "chat.template belongs to the model"),
        (["tiny-full", "--suite", "tiny", "--set", "chat.prompt=x"], "chat.prompt"),
        (["tiny-full", "--suite", "tiny", "--engine", "vlm"], "engine.kind"),
        (["tiny-full", "--suite", "tiny", "--set", "temprature=1"], 'did you mean "temperature"'),
    ],
)
def test_faults(trained: Made, call: Any, arguments: list[str], said: str) -> None:
    code, _, err = call("evaluate", *arguments)
    assert code == 2 and said in err.replace("\n", " ") and "Traceback" not in err


def test_a_changed_model_is_refused(trained: Made, call: Any) -> None:
    path = trained.sealed["rl"][0].output("model") / "tokenizer.json"
    path.write_text('{"a": 1}')
    code, _, err = call("evaluate", "tiny-full", *SMALL)
    assert code == 2 and "tokenizer digest mismatch" in err


def test_two_at_a_time_are_told(trained: Made, call: Any) -> None:
    from r1pipe import process

    cache = results.Cache(trained.store.root)
    cache.root.mkdir()
    with process.run_lock(cache.root / "lock", "x"):
        code, _, err = call("evaluate", "tiny-full", *SMALL)
    assert code == 2 and f"process {os.getpid()}" in err


@pytest.mark.parametrize("width", [60, 100, 160])
def test_the_table_stays_whole(trained: Made, width: int) -> None:
    from r1pipe.cli import runs

    suite = suites.load("tiny", limit=6, n=4)
    subjects = models.of_run(runs.sealed_steps(trained.store), "all")
    script = {"kind": "scripted", "options": {"replies": [REPLY, "no idea"]}}
    subjects = [type(s)(**{**vars(s), "engine": s.engine.model_validate(script)}) for s in subjects]
    cache = results.Cache(trained.store.root)
    done = job.run(subjects, suite, cache, job.Watcher())
    out = Console(file=io.StringIO(), width=width)
    evaluationtable.show(out, done, cache)
    said = out.file.getvalue()  # type: ignore[attr-defined]
    assert "…" not in said
    for part in ("pass@1", "majority", "refused", "@4", "12 scored, 12 unverifiable", "6 x 4"):
        assert part in said, part


def test_the_report_shows_it_and_verify_reads_it(trained: Made, call: Any) -> None:
    report(call, "tiny-full", "--steps", "all", *SMALL)
    code, out, err = call("report", "tiny-full")
    assert code == 0, err
    page = (trained.store.root / "report.html").read_text()
    assert "Suite tiny" in page and "rl heldout sample" in page and "majority" in page
    _, out, _ = call("verify", "tiny-full")
    assert "9 evaluations" in out  # three models, three sets
    samples = next((trained.store.root / "evaluations").glob("model-*/*/samples.jsonl"))
    samples.write_text(samples.read_text().replace("42", "43"))
    code, out, _ = call("verify", "tiny-full")
    assert code == 1 and f"digest mismatch: {samples}" in out
