"""The page itself: what it says, that it is whole, and that hostile text stays text."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from r1pipe.report import collect, page, verdict
from r1pipe.report.markdown import markdown
from r1pipe.report.text import visible
from r1pipe.store import Store, append_json
from tests.cli.conftest import Made
from tests.report.conftest import HOSTILE, build, load, rl_log, write_log

Call = Callable[..., tuple[int, str, str]]
ALLOWED = """html head meta title style body header h1 h2 h3 p section div ul li b i u nav a main span code table thead
tbody tr th td br figure figcaption svg g path text circle rect details summary footer"""
TAGS = set(ALLOWED.split())


class Seen(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(k, v or "") for k, v in attrs]

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


def html(made: Made) -> str:
    return page.html(load(made), "2026-01-01 00:00 UTC")


def test_the_first_words_tell_whether_it_worked(demo: Made) -> None:
    words = Seen(html(demo)).words
    start = words[words.index("tiny-full profile") :][:700]
    assert "It worked" in start
    assert "alignment-grpo answers 80.0 % of heldout right, the cold start (sft) 50.0 %" in start
    assert "points [" in start and "200 problems" in start
    assert "1 thing to look at reasoning-grpo : at the end 31% of the completions were cut" in start


def test_every_part_is_there(demo: Made) -> None:
    seen = Seen(html(demo))
    for said in (
        "Which step did what", "The pipeline", "The stage table", "reward", "length, tokens", "KL to the reference",
        "entropy", "gradient norm", "groups without signal", "token accuracy", "length, tokens: the trend changes at",
        "reflection words a completion", "dropped language", "83.3 %", "wrong after the cold start, right at the end",
        "answers 13, right is", "The chain of manifests", "rejection-sampling", "Environment", "2:20 in all",
        "No completions were kept while this step trained", "alignment-grpo.trainer.log_completions=true",
    ):  # fmt: skip
        assert said in seen.words, said
    ids = [v for k, v in seen.attributes if k == "id"]
    assert len(ids) == len(set(ids))
    assert all(v[1:] in ids for k, v in seen.attributes if k == "href")


def test_nothing_is_fetched_and_nothing_runs(demo: Made) -> None:
    text = html(demo)
    seen = Seen(text)
    assert seen.tags <= TAGS
    assert "default-src 'none'" in text
    assert all(k not in ("src", "srcset", "action") and not k.startswith("on") for k, _ in seen.attributes)
    assert all(v.startswith("#") for k, v in seen.attributes if k == "href")
    assert "url(" not in text and "@import" not in text and "http:" not in text and "https:" not in text


def test_hostile_text_stays_text(hostile: Made) -> None:
    text = html(hostile)
    seen = Seen(text)
    assert seen.tags <= TAGS
    assert not [k for k, _ in seen.attributes if k.startswith("on") or k in ("src", "autofocus")]
    assert all(v.startswith("#") for k, v in seen.attributes if k == "href")
    words = "".join(seen.text)
    for shown in HOSTILE[:7]:
        assert shown in words
    assert "\u202e" not in text and "⟦U+202E⟧" in text and "\x1b" not in text and "␛" in text
    assert "\x00" not in text and "3000 more characters" in seen.words
    text.encode("utf-8")  # no lone surrogate is left


def test_visible_leaves_what_is_seen() -> None:
    assert visible("a\r\nb\tc 中文 العربية 😀") == "a\nb\tc 中文 العربية 😀"
    assert visible("\ud800\u2067\x07") == "⟦U+D800⟧⟦U+2067⟧␇"


def test_a_failed_run(partial: Made, tmp_path: Path) -> None:
    attempt = partial.store.attempt("reward-models", "e" * 64)
    attempt.path.mkdir(parents=True)
    for event in ({"event": "started"}, {"event": "failed", "error": "out of memory <b>"}):
        append_json(attempt.attempts_log, event | {"time": "2026-01-02T00:00:00+00:00"})
    run = load(partial)
    assert run.steps["reward-models"].state == "failed"
    assert verdict.verdict(run).word == "Failed"
    assert verdict.worries(run)[0].text == "failed: out of memory <b>"
    assert "out of memory &lt;b&gt;" in html(partial)


def test_a_run_that_has_hardly_begun(tmp_path: Path) -> None:
    made = Made(tmp_path / "runs")
    attempt = made.store.attempt("base", "a" * 64)
    attempt.path.mkdir(parents=True)
    append_json(attempt.attempts_log, {"event": "started", "time": "2026-01-01T00:00:00+00:00"})
    attempt.request.write_text('{"stage": "base-model", "config"', encoding="utf-8")  # killed while writing
    run = load(made)
    said = verdict.verdict(run)
    assert run.steps["base"].state == "interrupted" and said.word == "Not finished"
    assert run.steps["sft"].state == "never run" and run.steps["sft"].upstream == ["base"]  # from the profile
    words = Seen(html(made)).words
    assert "No step has been evaluated for accuracy yet." in words and "No step is sealed yet." in words


def test_a_step_that_trains_shows_its_curves(partial: Made) -> None:
    attempt = partial.store.attempt("reward-models", "d" * 64)
    write_log(attempt, [*rl_log(30)[:12], rl_log(30)[12] | {"kl": float("nan")}], "helpful/log-helpful.jsonl")
    with (attempt.work / "helpful/log-helpful.jsonl").open("a") as file:
        file.write('{"step": 14, "rew')  # being written
    append_json(attempt.attempts_log, {"event": "started", "time": "2026-01-02T00:00:00+00:00"})
    run = load(partial)
    assert [(h.name, len(h.rows)) for h in run.steps["reward-models"].histories] == [("helpful", 13)]
    assert any("kl was nan at training step 13" in w.text for w in verdict.worries(run))
    assert "reward-models: helpful 13 training steps, interrupted" in Seen(html(partial)).words


def test_gates_are_told(partial: Made) -> None:
    gates = [{"metric": "accuracy", "action": a, "verdict": v, "text": t} for a, v, t in (
        ("fail", "tripped", "accuracy fell <b>"), ("warn", "passed", "format held"),
    )]  # fmt: skip
    partial.step("reward-models", inputs={"model": "base"}, facts={"gates": gates}, warnings=["accuracy fell <b>"])
    said = [(w.text, w.bad) for w in verdict.worries(load(partial)) if w.step == "reward-models"]
    assert said == [("accuracy fell <b>", True)]
    assert "passed reward-models: format held" in Seen(html(partial)).words


def test_a_result_that_was_made_again_is_told(demo: Made) -> None:
    old, manifest = demo.sealed["sft"]
    again = demo.store.attempt("sft", manifest.fingerprint, 2)
    again.path.mkdir(parents=True)
    again.manifest.write_text(manifest.model_copy(update={"finished": "2027-01-01T00:00:00"}).model_dump_json())
    texts = [w.text for w in verdict.worries(load(demo))]
    assert f"input model is of sft/{old.path.name}, which has been made again" in texts


def test_a_broken_link_and_a_damaged_manifest_are_told(demo: Made) -> None:
    attempt, manifest = demo.sealed["sft"]
    attempt.manifest.write_text(manifest.model_copy(update={"seed": 7}).model_dump_json())
    demo.sealed["rejection-sft"][0].manifest.write_text("{}")
    run = load(demo)
    assert run.steps["rejection-sft"].state == "damaged"
    said = [w.text for w in verdict.worries(run) if w.bad]
    assert any("is not a manifest of schema 1" in t for t in said)
    assert any("is not the one it was made from" in t for t in said)
    html(demo)


def test_a_profile_that_is_gone(partial: Made) -> None:
    partial.store.run_file.write_text(json.dumps({"path": "/nowhere/x.yaml", "pipeline": "full", "profile": "x"}))
    run = load(partial)
    assert list(run.steps)[:2] == ["base", "sft"] and "reward-models" not in run.steps
    assert "the run's profile cannot be read" in run.notes[0]


def test_a_fall_is_a_worry_and_no_gain_is_no_success(tmp_path: Path) -> None:
    run = load(build(tmp_path / "runs", gain=-0.2))
    assert verdict.verdict(run).word == "It got worse"
    assert any(w.step == "reasoning-grpo" and "accuracy fell against sft" in w.text for w in verdict.worries(run))
    assert verdict.verdict(load(build(tmp_path / "runs", "same", gain=0.0))).word == "No difference shown"


def test_a_long_run_stays_small(tmp_path: Path) -> None:
    made = build(tmp_path / "runs", steps=4_000)
    text = html(made)
    assert len(text.encode()) < 2_000_000
    assert "each point is the mean of 10 steps" in text


def test_markdown(demo: Made) -> None:
    text = markdown(load(demo))
    assert text.startswith("# tiny-full\n\n**It worked.** alignment-grpo answers 80.0 %")
    assert "| rejection-sampling | samples: dropped accuracy | 80 | 83.3 % |" in text


def test_markdown_of_hostile_text(hostile: Made) -> None:
    text = markdown(load(hostile))
    assert "<script>" not in text.replace("\\<script\\>", "") and "\x1b" not in text and "\u202e" not in text


def test_the_command(demo: Made, call: Call) -> None:
    code, out, err = call("report", "tiny-full")
    path = demo.store.root / "report.html"
    assert code == 0 and "It worked." in out and "report.html" in out and not err
    assert path.read_text().startswith("<!doctype html>")
    code, out, _ = call("report", "tiny-full", "--json", "--out", "other.html")
    said = json.loads(out)
    assert code == 0 and said["verdict"] == "It worked" and Path(said["file"]).stat().st_size == said["bytes"]
    assert said["steps"]["reward-models"] == "done"
    code, out, _ = call("report", "tiny-full", "--markdown")
    assert code == 0 and out.startswith("# tiny-full")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("report", "tiny-ful"), 'did you mean "tiny-full"'),
        (("report", "tiny-full", "--out", "no/such/x.html"), "does not exist"),
        (("report", "tiny-full", "--out", "."), "is a folder"),
        (("report", "tiny-full", "--markdown", "--open"), "--markdown does not go with --open"),
    ],
)
def test_bad_input(demo: Made, call: Call, arguments: tuple[str, ...], said: str) -> None:
    code, out, err = call(*arguments)
    assert code == 2 and said in err and not out and "Traceback" not in err


def test_no_run_has_begun(tmp_path: Path, call: Call) -> None:
    Made(tmp_path / "runs")
    code, _, err = call("report", "tiny-full")
    assert code == 2 and "no step of this run has begun" in err


def test_open_says_where_no_browser_is(
    demo: Made, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url))
    code, _, err = call("report", "tiny-full", "--open")
    assert code == 0 and opened[0].startswith("file:///") and "no browser could be opened" in err


def test_no_torch_is_loaded(demo: Made) -> None:
    code = (
        "import sys; from r1pipe.cli.app import dispatch\n"
        f"dispatch(['report', {str(demo.store.root)!r}]); dispatch(['compare', {str(demo.store.root)!r}, "
        f"{str(demo.store.root)!r}])\n"
        "print(*sorted({'torch', 'transformers', 'trl', 'datasets', 'pandas', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "", done.stdout


def test_a_copied_run_is_as_good(demo: Made, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(demo.store.root, tmp_path / "elsewhere" / "tiny-full")
    run = collect.load(Store(tmp_path / "elsewhere", "tiny-full"))
    assert verdict.verdict(run).word == "It worked"


def test_out_replaces_no_pipe_and_no_link(demo: Made, call: Call, tmp_path: Path) -> None:
    """As root, an atomic rename would put a file in the place of /dev/null."""
    pipe, link, target = tmp_path / "pipe", tmp_path / "link.html", tmp_path / "target.html"
    os.mkfifo(pipe)
    target.write_text("old")
    link.symlink_to(target)
    run = str(demo.store.root)
    code, _, said = call("report", run, "--out", str(pipe))
    assert code == 2 and "is a device or a pipe" in said and pipe.is_fifo()
    assert call("report", run, "--out", str(link))[0] == 0
    assert link.is_symlink() and target.read_text().startswith("<!doctype html>")
