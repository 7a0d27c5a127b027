"""Training health: faults that a log shows while a step trains. Pure: rows of a log in, findings out; no torch.

Every check looks at the logged rows one by one. One that says "sick" for `patience` rows in a row is a finding: a
sentence with the likely cause and the key to turn. What then happens is the profile's word (`health:` on the step):
off, warn, or stop. `callbacks.Health` drives it; `r1pipe/training/README.md` says which checkpoints a stop leaves.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from pydantic import Field

from r1pipe.settings import Strict

Row = Mapping[str, Any]
Action = Literal["off", "warn", "stop"]
Said = tuple[str, str]  # what was found with its likely cause, and the key to turn

LEAST_GROUPS = 32  # groups in a row without a signal, before the reward is called dead: few groups show little
LOOKBACK = 5  # a length is held against what it was this many patiences ago


class TrainHealth(Strict):
    """What is watched while a model trains on examples."""

    non_finite: Action = Field("stop", description="A loss, gradient norm or weight that is not finite.")
    loss: Action = Field("warn", description="The loss explodes: far above the lowest that it had been.")
    patience: int = Field(5, ge=1, description="Logged steps in a row before a check speaks (non_finite: at once).")
    most_loss_rise: float = Field(
        1.0, gt=0, description="loss: how far above its lowest it may be (and not above three times that)."
    )


class RolloutHealth(Strict):
    """What is watched while a policy trains on rewards."""

    non_finite: Action = Field("stop", description="A loss, KL, gradient norm or weight that is not finite.")
    kl: Action = Field("warn", description="The KL to the reference is above most_kl (needs trainer.beta).")
    dead_reward: Action = Field("warn", description="No group has a signal: all completions are paid alike.")
    truncated: Action = Field("warn", description="The completions are cut at trainer.max_completion_length.")
    entropy: Action = Field("warn", description="The policy writes one text: its entropy is below least_entropy.")
    format: Action = Field("warn", description="The format reward fell from format_high to below format_low.")
    length: Action = Field("warn", description="Completions grow by length_factor while the reward does not rise.")
    patience: int = Field(5, ge=1, description="Logged steps in a row before a check speaks (non_finite: at once).")
    most_kl: float = Field(2.0, gt=0, description="Most KL a token, in nats.")
    most_without_signal: float = Field(1.0, gt=0, le=1, description="Share of groups without a signal that is dead.")
    most_truncated: float = Field(0.95, gt=0, le=1, description="Share of completions cut that is a fault.")
    least_entropy: float = Field(0.01, ge=0, description="Least entropy a token, in nats.")
    format_high: float = Field(0.5, gt=0, le=1, description="From here on the format counts as learned.")
    format_low: float = Field(0.1, ge=0, lt=1, description="Below this a learned format has collapsed.")
    length_factor: float = Field(2.0, gt=1, description="Growth of the mean length that is an explosion.")


@dataclass(frozen=True)
class About:
    """The step, for the sentences: where its keys stand in the profile, and the values that they have."""

    step: str
    keys: str  # prefix of the trainer's keys: steps.sft.trainer
    learning_rate: float = 0.0
    max_grad_norm: float = 1.0
    fp16: bool = False
    beta: float = 0.0
    temperature: float = 1.0
    max_completion_length: int | None = None
    groups: int = 1  # prompts of a generation
    formats: tuple[str, ...] = ()  # rewards of the composition that pay for the form

    def key(self, name: str, value: Any = None) -> str:
        """`steps.sft.trainer.learning_rate (now 0.001)`."""
        return f"{self.keys}.{name}" + ("" if value is None else f" (now {value:g})")

    @property
    def rate(self) -> str:
        return self.key("learning_rate", self.learning_rate)


@dataclass
class Finding:
    """One fault. `since` is the first logged step that shows it, `healthy` the last one before that (0: none)."""

    check: str
    action: str
    since: int
    healthy: int
    found: int
    said: str
    key: str
    rows: int  # logged steps that showed it, the later ones too
    until: int | None = None  # the first healthy step after it

    def text(self) -> str:
        return f"health: {self.said}: {self.key}"


class Check:
    """One kind of fault."""

    name = ""

    def __init__(self, health: Any, about: About) -> None:
        self.health = health
        self.about = about
        self.patience: int = health.patience

    def sick(self, row: Row) -> bool | None:
        """Does this row show the fault? None: it does not say."""
        raise NotImplementedError

    def said(self, rows: list[Row]) -> Said:
        """The sentence about the rows that show it."""
        raise NotImplementedError


def _number(row: Row, name: str) -> float | None:
    value = row.get(name)
    return value if isinstance(value, (int, float)) and math.isfinite(value) else None


class NonFinite(Check):
    """A number that is not finite: at once, before such weights are saved (known-failures e14)."""

    name = "non_finite"

    def __init__(self, health: Any, about: About) -> None:
        super().__init__(health, about)
        self.patience = 1
        self.watched = ["loss", "kl"] if about.fp16 else ["loss", "kl", "grad_norm"]  # a loss scaler skips such steps

    def _bad(self, row: Row) -> list[str]:
        return [name for name in self.watched if name in row and _number(row, name) is None]

    def sick(self, row: Row) -> bool | None:
        return bool(self._bad(row)) if "loss" in row else None

    def said(self, rows: list[Row]) -> Said:
        row = rows[-1]
        name = self._bad(row)[0]
        if row["step"] == 1:
            cause = "no step was made before it, so the input model or the number type is at fault"
            key = f"set {self.about.key('fp16')}: false" if self.about.fp16 else "set base_model.dtype: float32"
            return f"{name} is {row[name]} at training step 1; {cause}", key
        return f"{name} is {row[name]} at training step {row['step']}: {DIVERGED}", lower(self.about)


DIVERGED = "training has diverged, most likely the learning rate is too high"


def lower(about: About) -> str:
    """What helps against steps that are too large."""
    clip = "" if about.max_grad_norm else f", and set {about.key('max_grad_norm')} to 1.0 (now gradients are not cut)"
    return f"lower {about.rate}{clip}, or raise {about.key('warmup_steps')}"


class Loss(Check):
    """Of training on examples; the loss of GRPO says nothing."""

    name = "loss"

    def __init__(self, health: Any, about: About) -> None:
        super().__init__(health, about)
        self.seen: list[float] = []
        self.lowest = math.inf  # of means over `patience` rows: one easy batch sets no mark

    def sick(self, row: Row) -> bool | None:
        value = _number(row, "loss")
        if value is None:
            return None
        bad = value > max(3 * self.lowest, self.lowest + self.health.most_loss_rise)
        self.seen = [*self.seen, value][-self.patience :]
        if len(self.seen) == self.patience:
            self.lowest = min(self.lowest, statistics.fmean(self.seen))
        return bad

    def said(self, rows: list[Row]) -> Said:
        return (
            f"the loss is {rows[-1]['loss']:.3g} and was {self.lowest:.3g} at its lowest, before training step "
            f"{rows[0]['step']}: {DIVERGED}"
        ), lower(self.about)


class KL(Check):
    name = "kl"

    def sick(self, row: Row) -> bool | None:
        value = _number(row, "kl")
        return None if value is None else value > self.health.most_kl

    def said(self, rows: list[Row]) -> Said:
        said = f"the KL is {rows[-1]['kl']:.3g} a token, above {self.health.most_kl:g} since step {rows[0]['step']}"
        if rows[0]["step"] == 1:
            return f"{said}: the reference is not the model that is trained", f"look at steps.{self.about.step}.inputs"
        beta = self.about.key("beta", self.about.beta)
        return f"{said}: the policy runs away from its reference", f"lower {self.about.rate} or raise {beta}"


class DeadReward(Check):
    """No group has a signal: nothing is learned, while the KL term still pulls (known-failures e4)."""

    name = "dead_reward"

    def __init__(self, health: Any, about: About) -> None:
        super().__init__(health, about)
        self.patience = max(health.patience, math.ceil(LEAST_GROUPS / about.groups))

    def sick(self, row: Row) -> bool | None:
        if row.get("frac_reward_zero_std") is None:
            return None
        return bool(row["frac_reward_zero_std"] >= self.health.most_without_signal)

    def said(self, rows: list[Row]) -> Said:
        a, last = self.about, rows[-1]
        said = f"since step {rows[0]['step']} no group has a signal (all its completions are paid alike)"
        entropy, right = _number(last, "entropy"), _number(last, "reward/accuracy")
        if entropy is not None and entropy < self.health.least_entropy:
            return f"{said}, because they are all the same text", (
                f"raise {a.key('temperature', a.temperature)} or lower {a.rate}"
            )
        if right is not None and right > 0.9:
            return f"{said}: the prompts are too easy", f"harder rows in steps.{a.step}.data, or fewer steps"
        if right is not None and right < 0.1:
            return f"{said}: the prompts are too hard, or no answer is found in the completions", (
                f"easier rows in steps.{a.step}.data, more SFT before it, or raise {a.key('num_generations')}"
            )
        paid = _number(last, "reward")
        same = "" if paid is None else f", {paid:.3g} on average"
        return f"{said}{same}: the rewards do not tell completions apart", f"look at steps.{a.step}.rewards"


class Truncated(Check):
    """All completions are cut: they have no answer, and the policy is paid for noise (known-failures e5)."""

    name = "truncated"

    def sick(self, row: Row) -> bool | None:
        value = _number(row, "completions/clipped_ratio")
        return None if value is None else value >= self.health.most_truncated

    def said(self, rows: list[Row]) -> Said:
        key = self.about.key("max_completion_length", self.about.max_completion_length)
        said = f"{rows[-1]['completions/clipped_ratio']:.0%} of the completions are cut at max_completion_length"
        if rows[0]["step"] == 1:
            return f"{said}, from the first step on: the limit is too low, or the model never learned to stop", (
                f"raise {key}, or train on examples first"
            )
        return f"{said}, since step {rows[0]['step']}: the policy no longer ends its turn", (
            f"raise {key}, or lower {self.about.rate}"
        )


class Entropy(Check):
    name = "entropy"

    def sick(self, row: Row) -> bool | None:
        value = _number(row, "entropy")
        return None if value is None else value < self.health.least_entropy

    def said(self, rows: list[Row]) -> Said:
        a = self.about
        return (
            f"the entropy is {rows[-1]['entropy']:.2g} a token, below {self.health.least_entropy:g} since step "
            f"{rows[0]['step']}: the policy has collapsed on one text and explores nothing"
        ), f"lower {a.rate}, or raise {a.key('temperature', a.temperature)} or {a.key('beta', a.beta)}"


class Format(Check):
    """The form was learned and is lost; that it was never there is the preflight's to say."""

    name = "format"

    def __init__(self, health: Any, about: About) -> None:
        super().__init__(health, about)
        self.seen: list[float] = []
        self.high = 0.0

    def _value(self, row: Row) -> float | None:
        values = [v for name in self.about.formats if (v := _number(row, f"reward/{name}")) is not None]
        return min(values) if values else None

    def sick(self, row: Row) -> bool | None:
        value = self._value(row)
        if value is None:
            return None
        self.seen = [*self.seen, value][-self.patience :]
        if len(self.seen) == self.patience:
            self.high = max(self.high, statistics.fmean(self.seen))
        return self.high >= self.health.format_high and value < self.health.format_low

    def said(self, rows: list[Row]) -> Said:
        a = self.about
        return (
            f"the format reward is {self._value(rows[-1]):.2g} since step {rows[0]['step']} and had been "
            f"{self.high:.2g}: the policy has lost the form (reward hacking, or steps that are too large)"
        ), f"lower {a.rate}, or raise {a.key('beta', a.beta)} or steps.{a.step}.rewards.{a.formats[0]}.weight"


class Length(Check):
    """Growth that pays is what RL is for; growth without a better reward is padding or repetition."""

    name = "length"

    def __init__(self, health: Any, about: About) -> None:
        super().__init__(health, about)
        self.seen: list[tuple[float, float]] = []  # length and reward
        self.was = 0.0

    def sick(self, row: Row) -> bool | None:
        length, paid = _number(row, "completions/mean_length"), _number(row, "reward")
        if length is None:
            return None
        before = self.seen[: self.patience]
        self.seen = [*self.seen, (length, -math.inf if paid is None else paid)][-LOOKBACK * self.patience :]
        if len(before) < self.patience:
            return False
        was, worth = (statistics.fmean(values) for values in zip(*before, strict=True))
        bad = length > self.health.length_factor * was and self.seen[-1][1] <= worth
        if bad:
            self.was = was
        return bad

    def said(self, rows: list[Row]) -> Said:
        a, now = self.about, rows[-1]["completions/mean_length"]
        return (
            f"completions grew from {self.was:.0f} to {now:.0f} tokens around step {rows[0]['step']} while the reward "
            "did not rise: the policy pads, repeats itself, or no longer stops"
        ), f"lower {a.rate}, or give steps.{a.step}.rewards a repetition or overlong part"


CHECKS: dict[type[Strict], tuple[type[Check], ...]] = {
    TrainHealth: (NonFinite, Loss),
    RolloutHealth: (NonFinite, KL, DeadReward, Truncated, Entropy, Format, Length),
}


@dataclass
class Streak:
    """What one check has seen."""

    check: Check
    action: str
    rows: list[Row] = field(default_factory=list)
    healthy: int = 0
    measured: bool = False


class Monitor:
    """Every check of a step that is not off."""

    def __init__(self, health: TrainHealth | RolloutHealth, about: About) -> None:
        self.health = health
        self.about = about
        self.findings: dict[str, Finding] = {}
        self._streaks = [
            Streak(check(health, about), action)
            for check in CHECKS[type(health)]
            if (action := getattr(health, check.name)) != "off"
        ]

    def see(self, row: Row) -> list[Finding]:
        """What this row brings to light. Rows come in order, each once."""
        return [found for streak in self._streaks if (found := self._see(streak, row)) is not None]

    def _see(self, streak: Streak, row: Row) -> Finding | None:
        sick = streak.check.sick(row)
        if sick is None:
            return None
        streak.measured = True
        known = self.findings.get(streak.check.name)
        if not sick:
            if known and known.until is None:
                known.until = row["step"]
            streak.rows, streak.healthy = [], row["step"]
            return None
        streak.rows = [*streak.rows, row][-max(streak.check.patience, 1) :] if known else [*streak.rows, row]
        if known:
            known.rows += 1
            return None
        if len(streak.rows) < streak.check.patience:
            return None
        said, key = streak.check.said(streak.rows)
        found = Finding(
            streak.check.name, streak.action, streak.rows[0]["step"], streak.healthy, row["step"], said, key,
            len(streak.rows),
        )  # fmt: skip
        self.findings[found.check] = found
        return found

    def spoiled(self, step: int) -> Finding | None:
        """Weights that are not finite after `step`; None where that is known, or not watched."""
        action = self.health.non_finite
        if action == "off" or NonFinite.name in self.findings:
            return None
        healthy = next((s.healthy for s in self._streaks if s.check.name == NonFinite.name), 0)
        said = f"weights are not finite after training step {step}: {DIVERGED}"
        found = Finding(NonFinite.name, action, step, healthy, step, said, lower(self.about), 1)
        self.findings[found.check] = found
        return found

    def in_doubt(self) -> bool:
        """Is a check that would stop the step on its way to do so? Then nothing should be saved: what is saved now
        would push out the last good checkpoint."""
        return any(streak.rows and streak.action == "stop" for streak in self._streaks)

    def facts(self) -> dict[str, Any]:
        """For the manifest."""
        return {
            "watched": {streak.check.name: streak.action for streak in self._streaks},
            "not_measured": [streak.check.name for streak in self._streaks if not streak.measured],
            "found": {name: asdict(found) for name, found in self.findings.items()},
        }
