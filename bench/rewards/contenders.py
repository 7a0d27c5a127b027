"""The verifiers that are compared. Each runs in a child process of its own, which a limit ends."""

from __future__ import annotations

import logging
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

Pair = tuple[str, str]  # gold, completion
Score = float | None  # None: skipped, or an error
Check = Callable[[Sequence[Pair]], list[Score]]

# a few rows before the clock starts, so that imports and worker processes are there; not among the rows measured
WARM_UP = [
    (rf"{n}\sqrt{{3}}", f"<think>\nSo.\n</think>\n<answer>\\boxed{{\\sqrt{{{3 * n * n}}}}}</answer>")
    for n in range(31, 47)
]


@dataclass(frozen=True)
class Contender:
    """`load` imports the verifier and returns the function that scores a batch."""

    about: str
    load: Callable[[], Check]
    batch: int = 1
    one_core: bool = False


def _ours() -> Check:
    from r1pipe.rewards import accuracy

    def check(pairs: Sequence[Pair]) -> list[Score]:
        rows = [{"gold": gold, "kind": "math"} for gold, _ in pairs]
        return [verdict.score for verdict in accuracy.verify_batch([completion for _, completion in pairs], rows)]

    return check


def _math_verify(dollars: bool) -> Check:
    from math_verify import parse, verify

    logging.disable()

    def wrap(gold: str) -> str:
        return f"${gold}$" if dollars and "$" not in gold and "\\boxed" not in gold else gold

    def check(pairs: Sequence[Pair]) -> list[Score]:
        return [float(verify(parse(wrap(gold)), parse(completion))) for gold, completion in pairs]

    return check


def _trl(name: str) -> Check:
    import trl.rewards

    logging.disable()
    reward = getattr(trl.rewards, name)

    def check(pairs: Sequence[Pair]) -> list[Score]:
        return reward([[{"role": "assistant", "content": c}] for _, c in pairs], [gold for gold, _ in pairs])

    return check


CONTENDERS: dict[str, Contender] = {
    "ours": Contender("verify_batch, 512 completions a call", _ours, batch=512),
    "ours-1": Contender("the same, with its workers on one core", _ours, batch=512, one_core=True),
    "math-verify": Contender("verify(parse(gold), parse(completion)) in a loop", lambda: _math_verify(False)),
    "math-verify-$": Contender("the same, the gold put in $...$", lambda: _math_verify(True)),
    "trl": Contender("trl.rewards.accuracy_reward", lambda: _trl("accuracy_reward")),
    "trl-reasoning": Contender("trl.rewards.reasoning_accuracy_reward", lambda: _trl("reasoning_accuracy_reward")),
}


@dataclass
class Run:
    """What a contender did with some rows."""

    rows: int
    seconds: float = 0.0  # until its last verdict, or until it was stopped
    scores: list[Score] = field(default_factory=list)
    ended: bool = False  # with a verdict on every row
    note: str = ""

    @property
    def rate(self) -> float:
        """Verdicts a second."""
        return len(self.scores) / self.seconds if self.seconds else 0.0


def measure(name: str, pairs: Sequence[Pair], limit_s: float) -> Run:
    """Scores the pairs in a fresh process: nothing is cached, and a process that does not end is killed."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(name, list(pairs), theirs))
    process.start()
    theirs.close()
    run = Run(len(pairs))
    try:
        _collect(run, ours, limit_s)
    finally:
        if not run.ended:
            process.kill()
        process.join()
    return run


def _collect(run: Run, messages: Connection, limit_s: float) -> None:
    started: float | None = None
    while not run.ended:
        patience = 600.0 if started is None else started + limit_s - time.monotonic()  # imports are slow
        try:
            if patience <= 0 or not messages.poll(patience):
                run.seconds = limit_s
                run.note = f"did not end in {limit_s:g} s"
                return
            message = messages.recv()
        except EOFError:
            run.note = "its process died"
            return
        if started is None:
            started = time.monotonic()
        elif isinstance(message, str):
            run.note = message
            return
        else:
            run.scores += message
            run.seconds = time.monotonic() - started
            run.ended = len(run.scores) == run.rows


def _child(name: str, pairs: list[Pair], messages: Connection) -> None:
    contender = CONTENDERS[name]
    if contender.one_core:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    check = contender.load()
    check(WARM_UP)
    messages.send("ready")
    for batch in _batches(pairs, contender.batch):
        try:
            messages.send(check(batch))
        except Exception as error:  # noqa: BLE001 (it would end the trainer: the run says so)
            messages.send(f"raised {type(error).__name__}")
            return


def _batches(pairs: list[Pair], size: int) -> Iterator[list[Pair]]:
    for start in range(0, len(pairs), size):
        yield pairs[start : start + size]
