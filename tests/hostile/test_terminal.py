# ruff: noqa: E501  one attack after the other
"""What a model, a judge, a log or a dataset says never acts on the terminal, in any command that shows it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from r1pipe.cli import terminal
from r1pipe.report import collect
from tests.cli.conftest import Made, call, evaluation, records  # noqa: F401  call is a fixture
from tests.sampling import steps
from tests.sampling.test_command import profile as sampling_profile

Call = Callable[..., tuple[int, str, str]]
ATTACKS = [
    "\x1b]52;c;bm90IHlvdXJz\x07", "\x1b]52;c;bm90IHlvdXJz\x1b\\", "\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\",
    "\x1b]0;owned\x07", "\x1b]2;never ended", "\x1b[2J\x1b[H", "\x1b[?1049h", "\x1b[6n", "\x1bc", "\x1b[38;5;1m", "\x1bP$q\x1b\\",
    "\x1b_Gf=100;AAAA\x1b\\", "\x1b^x\x1b\\", "\x9b31m", "\x9d0;t\x9c", "\x90x\x9c", "\x07", "\x08" * 20, "\r over", "\x00", "\x7f", "\x0e", "\x85",
    "\u202egnp.exe", "\u2066x\u2069", "\u061c", "\u200b", "\u2060", "\ufeff", "\u2028", "\U000e0041", "\ud800", "\udfff",
    "[bold red]x[/]", "[/]", "[link=http://evil]x[/link]", "\\[", ":bomb:", "x" * 100_000, "\x1b" * 10_000, "\x1b[" * 10_000,
]  # fmt: skip
ALL = " ".join(ATTACKS).encode(errors="replace").decode()  # manifests hold no halves of pairs: see test_a_step_says
ACTS = set(
    "\x1b\x07\x08\r\x00\x7f\x0e\x85\x9b\x9d\x9c\x90\u202e\u2066\u2069\u061c\u200b\u2060\ufeff\u2028\U000e0041\ud800\udfff"
)


def harmless(text: str) -> None:
    assert not ACTS & set(text), sorted(map(repr, ACTS & set(text)))


@pytest.mark.parametrize("attack", ATTACKS, ids=range(len(ATTACKS)))
def test_clean(attack: str) -> None:
    harmless(terminal.clean(f"before {attack} after"))
    harmless(terminal.clean(attack + attack))
    assert terminal.clean("before " + attack).startswith("before ")


def test_joiners_and_scripts_stay() -> None:
    for text in ("می‌خواهم", "👩‍💻", "七乘六", "a\tb\nc", "é", "ﷺ"):
        assert terminal.clean(text) == text


@pytest.fixture
def hostile(tmp_path: Path) -> Made:
    """A finished run that says hostile things in its samples, warnings, facts, counts, logs and names of metrics."""
    run = Made(tmp_path / "runs")
    rows = [{**r, "text": ALL, "prompt": ALL} for r in records(0.4, rows=20)]
    run.step("base", evaluation=evaluation(0.2), records=rows, warnings=[ALL], facts={"first_row": ALL, ALL[:40]: 1})
    run.step("sft", inputs={"model": "base"}, evaluation=evaluation(0.5), records=rows, warnings=["\x1b]0;t\x07warned"],
             counts={"data/dropped/\x1b[2J": 3}, metrics={"train/\x1b[31mloss": 1.0})  # fmt: skip
    for attempt, _ in run.sealed.values():
        attempt.log.write_text(ALL, encoding="utf-8", errors="surrogatepass")
    return run


def test_a_step_says_half_a_surrogate_pair(tmp_path: Path) -> None:
    """In a fact, a warning or an event: it must not cost the step its result."""
    from r1pipe.store import append_json, read_json, read_lines, write_json

    write_json(tmp_path / "result.json", {"facts": {"x\udfff": "a\ud800b"}})
    append_json(tmp_path / "events.jsonl", {"text": "a\ud800b"})
    assert read_json(tmp_path / "result.json") == {"facts": {"x?": "a?b"}}
    assert list(read_lines(tmp_path / "events.jsonl")) == [{"text": "a?b"}]


@pytest.mark.parametrize(
    "line",
    ["verify tiny-full", "table tiny-full", "table tiny-full --markdown", "report tiny-full", "prune tiny-full", "status --why",
     "report tiny-full --markdown", "compare tiny-full tiny-full --step base=sft",
     "samples tiny-full", "serve tiny-full", "plan --run tiny-full --why"],
)  # fmt: skip
def test_a_hostile_run_on_the_terminal(line: str, hostile: Made, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    _, out, err = call(*line.split())
    harmless(out + err)
    assert "r1pipe has a fault" not in err


def test_chat(capsys: pytest.CaptureFixture[str]) -> None:
    from r1pipe.cli import chat

    turn = {"thinking": ALL, "answer": ALL + "\ud800", "tokens": 3, "seconds": 0.1, "finish": "length"}
    chat._show(terminal.console(), turn)
    out = capsys.readouterr().out
    harmless(out)
    assert "[bold red]x[/]" in out and "x" * 1000 in out.replace("\n", "")


def test_the_report_of_a_hostile_run(hostile: Made, tmp_path: Path, call: Call) -> None:  # noqa: F811
    code, _, err = call("report", "tiny-full")
    assert code == 0, err
    page = (tmp_path / "runs" / "tiny-full" / "report.html").read_bytes().decode()  # strict: no lone surrogate
    assert "\x1b" not in page and "\x00" not in page
    assert collect.load(hostile.store).manifests


@pytest.mark.slow
def test_samples_and_their_review(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """A real sampling step whose model attacks in its thinking and its answer."""
    printable = [a for a in ATTACKS if a.isascii() and len(a) < 200]
    replies = [steps.right(3, f"Adding {a} makes it") for a in printable[:8]] + ["no " + a for a in printable]
    path = sampling_profile(tmp_path, engine={"kind": "scripted", "options": {"replies": replies, "pick": "seed"}})
    code, out, err = call("pipeline", "full", "--profile", str(path))
    assert code == 0, err
    harmless(out + err)
    for more in ([], ["--kept"], ["--dropped"], ["--json"]):
        code, out, err = call("samples", "small-full", "--limit", "0", *more)
        assert code == 0, err
        harmless(out + err)
    if json.loads(call("samples", "small-full", "--json")[1])["kept"]:
        monkeypatch.setattr("sys.stdin", io.StringIO("a\nq\n"))
        _, out, err = call("samples", "small-full", "--review")
        harmless(out + err)
