"""What the views know about a run: built from the runner's calls and the workers' events. Prints nothing."""

from __future__ import annotations

import math
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from r1pipe.manifest import Manifest
    from r1pipe.plan import Decision

# The metrics a person looks for first, in this order; others follow by name.
ORDER = (
    "reward", "accuracy", "format", "language", "helpful", "harmless", "kept", "loss", "token_accuracy",
    "pair_accuracy", "length", "cut", "kl", "zero_signal", "tokens_per_s",
)  # fmt: skip
LABELS = {
    "kl": "KL",
    "zero_signal": "no signal",
    "tokens_per_s": "tokens/s",
    "token_accuracy": "token acc.",
    "pair_accuracy": "pair acc.",
    "cut": "cut off",
    "lr": "learn. rate",
}
SHARES = {
    "accuracy", "format", "language", "kept", "kept_rate", "cut", "zero_signal",
    "token_accuracy", "pair_accuracy", "pass_rate", "truncated",
}  # fmt: skip
WHOLE = {"length", "tokens_per_s", "tokens"}


def label(name: str) -> str:
    return LABELS.get(name, name.replace("heldout_accuracy", "held-out").replace("_", " ").replace("/", " "))


def show(name: str, value: Any) -> str:
    """A metric as a person reads it; shares as per cent."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "–" if value is None else str(value)
    if not math.isfinite(value):
        return "not finite"
    if value == 0 and name not in WHOLE and name not in SHARES:
        return "0"
    last = name.rpartition("/")[2]
    share = last in SHARES or "accuracy" in last or last.endswith("_rate")
    if share and isinstance(value, float) and 0 <= value <= 1:
        return f"{100 * value:.1f} %"
    if name in WHOLE or isinstance(value, int):
        return f"{value:,.0f}".replace(",", " ")  # a narrow space would not do on every terminal
    if value and (abs(value) < 1e-3 or abs(value) >= 1e5):
        return f"{value:.1e}"
    return f"{value:.4f}" if abs(value) < 0.1 else f"{value:.3g}" if abs(value) >= 10 else f"{value:.2f}"


def ordered(metrics: dict[str, Any]) -> list[tuple[str, Any]]:
    rank = {name: i for i, name in enumerate(ORDER)}
    return sorted(metrics.items(), key=lambda item: (rank.get(item[0], len(rank)), item[0]))


@dataclass
class StepState:
    """One step as the views show it. Times are `time.monotonic()` seconds of the runner."""

    name: str
    state: str = "waiting"  # waiting, running, done, kept (was up to date), failed, stopped
    text: str = ""  # why it runs, or what it waits for
    began: float | None = None
    seconds: float = 0.0  # of a step that has ended
    phase: str = "starting"
    at: int = 0
    total: int = 0
    metrics: dict[str, Any] = field(default_factory=dict)
    curve: deque[float] = field(default_factory=lambda: deque(maxlen=600))
    error: str = ""
    result: dict[str, float] = field(default_factory=dict)  # headline numbers of a step that has ended
    _first: tuple[int, float] | None = None  # progress and time where the rate is measured from
    _last: float = 0.0  # time of the last progress

    def elapsed(self, now: float) -> float:
        return now - self.began if self.state == "running" and self.began is not None else self.seconds

    def eta(self, now: float) -> float | None:
        """Seconds to the end of this phase, from the rate since it began (or was resumed)."""
        if self.state != "running" or self._first is None or self.at <= self._first[0] or self.total <= self.at:
            return None
        rate = (self._last - self._first[1]) / (self.at - self._first[0])
        return max(0.0, rate * (self.total - self.at) - (now - self._last))

    def progress(self, at: int, total: int, metrics: dict[str, Any], now: float) -> None:
        if self._first is None or at < self.at or total != self.total:
            self._first = (at, now)
        self.at, self.total, self._last = at, total, now
        self.metrics |= metrics
        value = metrics.get("reward", metrics.get("loss"))
        if isinstance(value, int | float) and math.isfinite(value):
            self.curve.append(float(value))

    def enter(self, phase: str) -> None:
        """What was measured in one phase is not shown as if it came from the next."""
        self.phase, self.at, self.total, self._first = phase, 0, 0, None
        self.metrics = {}
        self.curve.clear()


class Board:
    """Every step of the pipeline and the warnings, as of now. Shared by the live and the plain view."""

    def __init__(self, run: str, profile: str, steps: list[str]) -> None:
        self.run = run
        self.profile = profile
        self.steps = {step: StepState(step) for step in steps}
        self.warnings: list[tuple[str, str]] = []
        self.began = time.monotonic()

    @property
    def running(self) -> StepState | None:
        return next((s for s in self.steps.values() if s.state == "running"), None)

    def step(self, name: str) -> StepState:
        return self.steps.setdefault(name, StepState(name))

    def planned(self, decisions: list[Decision]) -> None:
        for d in decisions:
            state = self.step(d.step)
            state.text = d.text
            state.state = "kept" if str(d.action) == "skip" else "waiting"
            if state.state == "kept" and d.manifest is not None:
                state.result = headline(d.manifest)

    def begin(self, decision: Decision) -> None:
        state = self.step(decision.step)
        verb = "resumes" if str(decision.action) == "resume" else "runs"
        state.state, state.text, state.began = "running", f"{verb}: {decision.text}", time.monotonic()
        state.enter("starting")

    def event(self, step: str, event: dict[str, Any]) -> None:
        state, now = self.step(step), time.monotonic()
        match event.get("event"):
            case "progress":
                metrics = event.get("metrics")
                at, total = int(event.get("step") or 0), int(event.get("total") or 0)
                state.progress(at, total, metrics if isinstance(metrics, dict) else {}, now)
            case "phase":
                state.enter(str(event.get("name", "")))
            case "started":
                state.enter("checking settings")
            case "warning":
                self.warnings.append((step, str(event.get("text", ""))))

    def end(self, decision: Decision, manifest: Manifest) -> None:
        state = self.step(decision.step)
        state.state, state.seconds, state.result = "done", manifest.seconds, headline(manifest)

    def skipped(self, decision: Decision) -> None:
        state = self.step(decision.step)
        state.state, state.text = "kept", decision.text
        if decision.manifest is not None:
            state.result = headline(decision.manifest)

    def failed(self, decision: Decision, error: str) -> None:
        state = self.step(decision.step)
        state.seconds = state.elapsed(time.monotonic())
        state.state, state.error = "failed", error

    def stop(self) -> None:
        """The run ends here; what was running was stopped."""
        state = self.running
        if state is not None:
            state.seconds = state.elapsed(time.monotonic())
            state.state = "stopped"


def headline(manifest: Manifest) -> dict[str, float]:
    """The few numbers of a finished step: its evaluation on the first set, else its own metrics."""
    for modes in manifest.evaluation.values():
        sample = modes.get("sample") or modes.get("greedy") or {}
        found = {k: sample[k]["value"] for k in ("accuracy", "format", "language") if _number(sample.get(k))}
        if "accuracy" in found:
            return found
    numbers = {k: v for k, v in manifest.metrics.items() if isinstance(v, int | float) and not isinstance(v, bool)}
    told = [k for k in numbers if k.endswith(("heldout_accuracy", "kept_rate", "pass_rate"))]
    return {k: numbers[k] for k in (told or [k for k, _ in ordered(numbers)])[:3]}


def _number(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("value"), int | float)
