from __future__ import annotations

import io
import time
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from r1pipe.cli import live, panels
from r1pipe.cli import progress as pg
from r1pipe.errors import StepFailed
from r1pipe.plan import Action, Decision, Why

STEPS = ["base", "sft", "reasoning-grpo", "rejection-sampling", "rejection-sft", "reward-models", "alignment-grpo"]
METRICS = {
    "reward": 1.81, "accuracy": 0.629, "format": 0.993, "language": 0.845, "loss": 1e-9, "length": 80.4, "kl": 1.9e-4,
    "zero_signal": 0.307, "tokens_per_s": 5721.3, "lr": 2.5e-4, "[bold]odd": 1.0, "nothing": None, "bad": float("nan"),
}  # fmt: skip


def decision(step: str, action: Action = Action.RUN, text: str = "never run", manifest: Any = None) -> Decision:
    return Decision(step, step, action, Why.NEVER_RUN, text, manifest=manifest)


def sealed(accuracy: float = 0.7) -> Any:
    sample = {"accuracy": {"value": accuracy}, "format": {"value": 0.99}}
    return SimpleNamespace(seconds=61.2, evaluation={"heldout": {"sample": sample}}, metrics={})


def board() -> pg.Board:
    """base was done, sft has run, reasoning-grpo runs."""
    b = pg.Board("tiny-full", "tiny", STEPS)
    plan = [decision(s, Action.RUN if i < 2 else Action.LATER, f"after {STEPS[i - 1]}") for i, s in enumerate(STEPS)]
    plan[0] = decision("base", Action.SKIP, "sealed 2026-01-01 00:00", sealed(0.3))
    b.planned(plan)
    b.begin(plan[1])
    b.end(plan[1], sealed())
    b.begin(plan[2])
    b.event(STEPS[2], {"event": "phase", "name": "training"})
    for i in range(1, 20):
        b.event(STEPS[2], {"event": "progress", "step": i, "total": 60, "metrics": METRICS | {"reward": i / 10}})
    return b


def draw(b: pg.Board, width: int, height: int, fancy: bool = True) -> list[str]:
    out = Console(file=io.StringIO(), width=width, height=height)
    out.print(panels.board(b, width=width, height=height, fancy=fancy, now=time.monotonic()))
    return out.file.getvalue().rstrip("\n").split("\n")  # type: ignore[attr-defined]


@pytest.mark.parametrize(("width", "height"), [(40, 24), (60, 12), (80, 24), (120, 40), (200, 60)])
@pytest.mark.parametrize("warnings", [0, 9])
def test_the_picture_fits_any_screen(width: int, height: int, warnings: int) -> None:
    b = board()
    for i in range(warnings):
        b.event(STEPS[2], {"event": "warning", "text": f"{i}: " + "a long sentence " * 20})
    lines = draw(b, width, height)
    assert len(lines) <= height
    assert all(len(line) <= width for line in lines)
    said = "\n".join(lines)
    assert "reasoning-grpo: training" in said
    assert "reward 1.90" in said
    if height >= 24:
        assert "19/60" in said
        assert width < 60 or all(step[:12] in said for step in STEPS)
    if warnings and height >= 24 and width >= 60:
        assert "8: a long" in said
        assert "2/7 steps" in said


def test_states_and_reasons_are_shown() -> None:
    said = "\n".join(draw(board(), 120, 40))
    assert "accuracy 70.0 %  format 99.0 %" in said
    assert "after reward-models" in said
    assert "kept" in said
    assert "no signal 30.7 %" in said
    assert "[bold]odd" in said
    assert "not finite" in said
    assert "▁" in said


def test_plain_characters_where_the_terminal_has_no_others() -> None:
    "\n".join(draw(board(), 80, 24, fancy=False)).replace("━", "").replace("╺", "").replace("–", "").encode("ascii")


def test_a_failure_and_a_stop_stay_on_the_screen() -> None:
    b = board()
    b.failed(decision("reasoning-grpo"), "step reasoning-grpo failed: [kl] is nan\x1b[2J\nmore")
    said = "\n".join(draw(b, 120, 40))
    assert "[kl] is nan" in said
    assert "\x1b" not in said
    b = board()
    b.stop()
    assert "stopped; the same command goes on" in "\n".join(draw(b, 120, 40))


def test_eta_counts_from_where_the_step_was_resumed() -> None:
    s = pg.StepState("x", state="running")
    assert s.eta(0.0) is None
    s.progress(100, 200, {}, now=50.0)
    assert s.eta(50.0) is None
    s.progress(110, 200, {}, now=60.0)
    assert s.eta(60.0) == pytest.approx(90.0)
    assert s.eta(64.0) == pytest.approx(86.0)  # runs down between two reports
    s.enter("evaluating")
    assert s.eta(65.0) is None
    assert s.metrics == {}


def test_sparkline() -> None:
    assert panels.sparkline([0.0, 1.0], 10) == "▁█"
    assert panels.sparkline([2.0, 2.0, 2.0], 10) == "▄▄▄"
    assert len(panels.sparkline([float(i) for i in range(1000)], 50)) == 50


def plain(monkeypatch: pytest.MonkeyPatch) -> tuple[live.Plain, Any, list[float]]:
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    out = Console(file=io.StringIO(), width=80)
    return live.Plain(pg.Board("tiny-full", "tiny", STEPS), out), out.file, clock


def test_plain_lines_are_few_and_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    view, said, clock = plain(monkeypatch)
    plan = [decision(s, Action.LATER, "after base") for s in STEPS]
    plan[0] = decision("base", Action.SKIP, "sealed 2026-01-01 00:00", sealed())
    plan[1] = decision("sft", text="settings changed: trainer.max_steps 4 → 6")
    view.planned(plan)
    view.skipped(plan[0])
    view.begin(plan[1])
    view.event("sft", {"event": "phase", "name": "training"})
    for i in range(1, 1001):  # 100 s
        clock[0] += 0.1
        view.event("sft", {"event": "progress", "step": i, "total": 1000, "metrics": {"loss": 0.5}})
    view.event("sft", {"event": "warning", "text": "12 rows \x1b[31m[bold]dropped[/bold]"})
    view.end(plan[1], sealed())
    view.begin(plan[2])
    view.failed(plan[2], StepFailed("step failed"))
    lines = said.getvalue().rstrip("\n").split("\n")
    progress = [line for line in lines if "training" in line]
    assert 9 <= len(progress) <= 10
    assert "training 100/1000, loss 0.50, 1:30 to go" in progress[0]
    assert any("run     sft" in line and "max_steps 4 → 6" in line for line in lines)
    assert any("warning: 12 rows [bold]dropped[/bold]" in line for line in lines)
    assert any("done in 1:01: accuracy 70.0 %" in line for line in lines)
    assert not any("up to date" in line for line in lines)  # the plan said so already
    assert lines[-1].endswith("failed")


def test_plain_progress_comes_each_minute_of_a_long_step(monkeypatch: pytest.MonkeyPatch) -> None:
    view, said, clock = plain(monkeypatch)
    view.begin(decision("sft"))
    view.event("sft", {"event": "phase", "name": "training"})
    for i in range(1, 31):  # ten minutes, 0.3 % of the way
        clock[0] += 20
        view.event("sft", {"event": "progress", "step": i, "total": 10000, "metrics": {}})
    assert said.getvalue().count("training") == 10


def test_a_step_that_turns_out_unchanged_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    view, said, _ = plain(monkeypatch)
    view.planned([decision("sft", Action.LATER, "after base")])
    view.skipped(decision("sft", Action.SKIP, "sealed before", sealed()))
    assert "up to date: sealed before" in said.getvalue()


def test_the_live_view_runs_and_leaves_the_last_picture() -> None:
    out = Console(file=io.StringIO(), width=100, height=30, force_terminal=True)
    b = pg.Board("tiny-full", "tiny", STEPS)
    with live.Live(b, out) as view:
        view.planned([decision(s) for s in STEPS])
        view.begin(decision("base"))
        view.event("base", {"event": "progress", "step": 1, "total": 2, "metrics": METRICS})
        time.sleep(0.4)
        view.end(decision("base"), sealed())
        view.begin(decision("sft"))
    said = out.file.getvalue()  # type: ignore[attr-defined]
    assert "1/2" in said
    assert "stopped" in said[-3000:]
