"""How a run looks while it works: redrawn on a terminal, plain lines elsewhere, nothing with --json."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from r1pipe.cli import progress as pg
from r1pipe.cli.terminal import clean, console, duration, fancy, is_terminal

if TYPE_CHECKING:
    from rich.console import Console

    from r1pipe.config import Profile
    from r1pipe.errors import UserError
    from r1pipe.manifest import Manifest
    from r1pipe.plan import Decision
    from r1pipe.runner import Observer

REFRESH = 4  # a second
QUIET_SECONDS = 10.0  # plain view: progress at most this often
LONG_SECONDS = 60.0  # and at least this often


class Quiet:
    """Watches and says nothing (--json, --dry-run)."""

    def planned(self, decisions: list[Decision]) -> None: ...
    def begin(self, decision: Decision) -> None: ...
    def event(self, step: str, event: dict[str, Any]) -> None: ...
    def end(self, decision: Decision, manifest: Manifest) -> None: ...
    def skipped(self, decision: Decision) -> None: ...
    def failed(self, decision: Decision, error: UserError) -> None: ...


@contextmanager
def observer(run: str, profile: Profile, steps: list[str], *, json: bool = False) -> Iterator[Observer]:
    """The view that fits stdout, for the time of a run."""
    if json:
        yield Quiet()
        return
    board = pg.Board(run, profile.name, steps)
    if not is_terminal():
        yield Plain(board, console())
        return
    view = Live(board, console())
    with view:
        yield view


class Plain:
    """A line for every event worth one."""

    def __init__(self, board: pg.Board, out: Console) -> None:
        self.board = board
        self.out = out
        self._said: dict[str, tuple[float, float]] = {}  # step → (time, share) of its last progress line
        self._width = max((len(s) for s in board.steps), default=0)

    def _line(self, step: str, text: str) -> None:
        clock = time.strftime("%H:%M:%S")
        self.out.print(f"{clock}  {step:<{self._width}}  {clean(text)}", markup=False, soft_wrap=True)

    def planned(self, decisions: list[Decision]) -> None:
        self.board.planned(decisions)
        self.out.print(
            f"run {self.board.run}, profile {self.board.profile}: {len(decisions)} steps", markup=False, soft_wrap=True
        )
        for d in decisions:
            self.out.print(f"  {d.action:<6}  {d.step:<{self._width}}  {clean(d.text)}", markup=False, soft_wrap=True)
            for note in d.notes:
                self.out.print(f"  {'':<6}  {'':<{self._width}}  note: {clean(note)}", markup=False, soft_wrap=True)

    def begin(self, decision: Decision) -> None:
        self.board.begin(decision)
        self._said[decision.step] = (time.monotonic(), 0.0)
        self._line(decision.step, self.board.step(decision.step).text)

    def event(self, step: str, event: dict[str, Any]) -> None:
        self.board.event(step, event)
        if event.get("event") == "warning":
            self._line(step, f"warning: {event.get('text', '')}")
        elif event.get("event") == "gate":  # passed; the others are warnings
            self._line(step, str(event.get("text", "")))
        elif event.get("event") == "phase":
            self._said[step] = (self._said.get(step, (time.monotonic(), 0.0))[0], 0.0)
        elif event.get("event") == "progress":
            self._progress(step)

    def _progress(self, step: str) -> None:
        """At most every ten seconds, each tenth of the way or each minute."""
        state, now = self.board.step(step), time.monotonic()
        then, share_then = self._said.get(step, (0.0, 0.0))
        share = state.at / state.total if state.total else 0.0
        crossed = int(share * 10) > int(share_then * 10)
        if now - then < QUIET_SECONDS or not (crossed or now - then >= LONG_SECONDS):
            return
        self._said[step] = (now, share)
        eta = state.eta(now)
        parts = [f"{state.phase} {state.at}/{state.total}"]
        parts += [f"{pg.label(k)} {pg.show(k, v)}" for k, v in pg.ordered(state.metrics)[:8]]
        parts += [f"{duration(eta)} to go"] if eta is not None else []
        self._line(step, ", ".join(parts))

    def end(self, decision: Decision, manifest: Manifest) -> None:
        self.board.end(decision, manifest)
        result = ", ".join(f"{pg.label(k)} {pg.show(k, v)}" for k, v in self.board.step(decision.step).result.items())
        self._line(decision.step, f"done in {duration(manifest.seconds)}" + (f": {result}" if result else ""))

    def skipped(self, decision: Decision) -> None:
        planned = self.board.step(decision.step).state == "kept"
        self.board.skipped(decision)
        if not planned:  # decided only now: what it reads came out as it was
            self._line(decision.step, f"up to date: {decision.text}")

    def failed(self, decision: Decision, error: UserError) -> None:
        self.board.failed(decision, error.message)
        self._line(decision.step, "failed")  # the command says why, at the end


class Live:
    """The pipeline, redrawn in place; what is drawn is in `panels`."""

    def __init__(self, board: pg.Board, out: Console) -> None:
        from rich.live import Live as RichLive

        self.board = board
        self.out = out
        self._live = RichLive(
            get_renderable=self._draw, console=out, refresh_per_second=REFRESH, redirect_stdout=False,
            redirect_stderr=False, vertical_overflow="crop",
        )  # fmt: skip

    def _draw(self) -> Any:
        from r1pipe.cli import panels

        return panels.board(
            self.board, width=self.out.width, height=self.out.height, fancy=fancy(self.out), now=time.monotonic()
        )

    def __enter__(self) -> Live:
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.board.stop()
        self._live.stop()  # leaves the last picture on the screen

    def planned(self, decisions: list[Decision]) -> None:
        self.board.planned(decisions)

    def begin(self, decision: Decision) -> None:
        self.board.begin(decision)

    def event(self, step: str, event: dict[str, Any]) -> None:
        self.board.event(step, event)

    def end(self, decision: Decision, manifest: Manifest) -> None:
        self.board.end(decision, manifest)

    def skipped(self, decision: Decision) -> None:
        self.board.skipped(decision)

    def failed(self, decision: Decision, error: UserError) -> None:
        self.board.failed(decision, error.message)
