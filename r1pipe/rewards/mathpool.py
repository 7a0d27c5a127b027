"""Asks computer algebra about pairs of gold and answer, in killable workers (`workers.Pool`, `mathworker`). Equal
pairs are asked once, within a call and across calls."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from r1pipe.rewards.workers import Outcome as Reply
from r1pipe.rewards.workers import Pool

Result = Literal["equal", "different", "answer", "gold", "limit", "ok", "timeout", "crash", "error"]
Pair = tuple[str, str | None]  # gold, answer; None asks whether the gold can be used

CACHE = 65_536  # outcomes kept


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a pair: equal or different; answer or gold: it cannot be parsed; ok: the gold can; else as in
    `workers.Outcome`."""

    result: Result
    detail: str = ""


@dataclass
class MathPool:
    """`check` many pairs. Safe to use from threads."""

    workers: int = 2
    pool: Pool = field(init=False)
    asked: int = 0  # pairs that a worker was given
    _cache: OrderedDict[Pair, Outcome] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.pool = Pool(
            "r1pipe.rewards.mathworker:prepare",
            workers=self.workers,
            hint="install math-verify (it comes with r1pipe): pip install math-verify",
        )

    def check(self, pairs: Sequence[Pair], *, limit_s: float, batch_limit_s: float | None = None) -> list[Outcome]:
        """One outcome per pair. `limit_s` is for one pair; what is not done after `batch_limit_s` is a timeout."""
        found = {p: o for p in dict.fromkeys(pairs) if (o := self._cache.get(p)) is not None}
        todo = [p for p in dict.fromkeys(pairs) if p not in found]
        replies = self.pool.run(todo, limit_s=limit_s, batch_limit_s=batch_limit_s)
        found |= {pair: _outcome(reply) for pair, reply in zip(todo, replies, strict=True)}
        with self._lock:
            self.asked += len(todo)
            self._cache |= {p: found[p] for p in todo if found[p].result not in ("timeout", "crash")}
            while len(self._cache) > CACHE:
                self._cache.popitem(last=False)
        return [found[p] for p in pairs]

    def start(self) -> None:
        """Starts the workers and does not wait for them."""
        self.pool.start()

    def close(self) -> None:
        """Ends the workers; the next check starts fresh ones."""
        self.pool.close()


def _outcome(reply: Reply) -> Outcome:
    return Outcome(*reply.value) if reply.status == "ok" else Outcome(reply.status, reply.detail)


_shared: MathPool | None = None
_shared_lock = threading.Lock()


def shared() -> MathPool:
    """The pool of this process: its share of the machine's cores, two to eight workers."""
    global _shared
    with _shared_lock:
        if _shared is None:
            cores = len(os.sched_getaffinity(0)) // int(os.environ.get("LOCAL_WORLD_SIZE") or 1)
            _shared = MathPool(workers=max(2, min(8, cores)))
        return _shared
