"""Killable worker processes for computer algebra.

Started with `subprocess` when first needed: a fresh interpreter each, so it works from threads, whatever the
multiprocessing start method is, and with torch loaded; sympy is never imported here. A worker that outlasts the
limit is killed and replaced; a worker that dies gives its task one more try on a fresh one. Workers end when this
process does (their stdin closes; an alarm ends one that is busy).
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import selectors
import subprocess
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from r1pipe.errors import UserError

Result = Literal["equal", "different", "answer", "gold", "limit", "ok", "timeout", "crash"]
Pair = tuple[str, str | None]  # gold, answer; None asks whether the gold can be used

MEMORY_MB = 2048  # address space of a worker
START_LIMIT_S = 120.0  # importing sympy, on a loaded machine
CACHE = 65_536  # outcomes kept


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a pair."""

    result: Result
    detail: str = ""


@dataclass(eq=False)
class _Worker:
    """One child; `task` is the index of the pair that it works on."""

    process: subprocess.Popen[bytes]
    deadline: float
    ready: bool = False
    task: int | None = None
    buffer: bytes = b""

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                with contextlib.suppress(OSError):  # unsent bytes for a dead child
                    pipe.close()


@dataclass
class MathPool:
    """`check` many pairs; equal pairs are checked once, in one call and across calls. Safe to use from threads."""

    workers: int = 2
    _live: list[_Worker] = field(default_factory=list)
    _cache: OrderedDict[Pair, Outcome] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _pid: int = 0

    def check(self, pairs: Sequence[Pair], *, limit_s: float, batch_limit_s: float | None = None) -> list[Outcome]:
        """One outcome per pair. `limit_s` is for one pair; what is not done after `batch_limit_s` is a timeout."""
        with self._lock:
            if self._pid != os.getpid():  # a forked copy must not write into its parent's pipes
                self._live, self._pid = [], os.getpid()
                atexit.register(self.close)
            todo = [p for p in dict.fromkeys(pairs) if p not in self._cache]
            done = self._run(todo, limit_s, time.monotonic() + batch_limit_s if batch_limit_s else None)
            result = [done.get(p) or self._cache[p] for p in pairs]
            for pair, outcome in done.items():
                if outcome.result not in ("timeout", "crash"):
                    self._cache[pair] = outcome
            while len(self._cache) > CACHE:
                self._cache.popitem(last=False)
            return result

    def close(self) -> None:
        """Ends the workers; the next check starts fresh ones."""
        if self._pid == os.getpid():
            while self._live:
                self._live.pop().kill()

    def _run(self, todo: list[Pair], limit_s: float, until: float | None) -> dict[Pair, Outcome]:
        done: dict[Pair, Outcome] = {}
        pending = deque(range(len(todo)))
        tried: set[int] = set()
        with selectors.DefaultSelector() as selector:
            for worker in self._live:
                selector.register(worker.process.stdout, selectors.EVENT_READ, worker)  # type: ignore[arg-type]
            while len(done) < len(todo):
                while len(self._live) < min(self.workers, len(todo) - len(done)):
                    worker = self._start()
                    selector.register(worker.process.stdout, selectors.EVENT_READ, worker)  # type: ignore[arg-type]
                for worker in self._live:
                    if worker.ready and worker.task is None and pending:
                        self._send(worker, pending.popleft(), todo, limit_s)
                lost: list[tuple[_Worker, Outcome]] = []
                for key, _ in selector.select(self._patience(until)):
                    lost += self._read(key.data, todo, done)
                now = time.monotonic()
                for worker in self._live:
                    if (worker.task is not None or not worker.ready) and now > worker.deadline:
                        lost.append((worker, Outcome("timeout", f"over {limit_s:g} s")))
                for worker, outcome in dict(lost).items():
                    selector.unregister(worker.process.stdout)  # type: ignore[arg-type]
                    self._drop(worker, outcome, todo, done, pending, tried)
                if until is not None and now > until:
                    self._give_up(todo, done)
        return done

    def _patience(self, until: float | None) -> float:
        deadlines = [w.deadline for w in self._live if w.task is not None or not w.ready]
        if until is not None:
            deadlines.append(until)
        return max(0.0, min(deadlines, default=time.monotonic() + 1) - time.monotonic()) + 0.005

    def _start(self) -> _Worker:
        code = f"import sys; sys.path[:] = {sys.path!r}; from r1pipe.rewards.mathworker import main; main({MEMORY_MB})"
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        )
        worker = _Worker(process, time.monotonic() + START_LIMIT_S)
        self._live.append(worker)
        return worker

    def _send(self, worker: _Worker, index: int, todo: list[Pair], limit_s: float) -> None:
        gold, answer = todo[index]
        worker.task, worker.deadline = index, time.monotonic() + limit_s
        line = json.dumps({"gold": gold, "answer": answer, "limit": limit_s}).encode() + b"\n"
        try:
            assert worker.process.stdin is not None
            worker.process.stdin.write(line)
        except BrokenPipeError:
            pass  # it is dead: reading says so

    def _read(self, worker: _Worker, todo: list[Pair], done: dict[Pair, Outcome]) -> list[tuple[_Worker, Outcome]]:
        assert worker.process.stdout is not None
        data = os.read(worker.process.stdout.fileno(), 65536)
        if not data:
            return [(worker, Outcome("crash", f"exit status {worker.process.wait()}"))]
        *lines, worker.buffer = (worker.buffer + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "fatal" in message:
                raise UserError(
                    f"answers cannot be compared: {message['fatal']}",
                    hint="install math-verify (it comes with r1pipe): pip install math-verify",
                )
            if "ready" in message:
                worker.ready = True
            elif worker.task is not None:
                done[todo[worker.task]] = Outcome(message["r"], message.get("d", ""))
                worker.task = None
        return []

    def _drop(
        self,
        worker: _Worker,
        outcome: Outcome,
        todo: list[Pair],
        done: dict[Pair, Outcome],
        pending: deque[int],
        tried: set[int],
    ) -> None:
        worker.kill()
        self._live.remove(worker)
        if worker.task is None:
            if not worker.ready:
                raise UserError(
                    f"a worker for comparing answers did not start ({outcome.detail})",
                    hint=f"try: {sys.executable} -c 'import math_verify'",
                )
        elif outcome.result == "crash" and worker.task not in tried:
            tried.add(worker.task)
            pending.appendleft(worker.task)
        else:
            done[todo[worker.task]] = outcome

    def _give_up(self, todo: list[Pair], done: dict[Pair, Outcome]) -> None:
        """The batch has used up its time."""
        for worker in [w for w in self._live if w.task is not None]:
            worker.kill()
            self._live.remove(worker)
        for pair in todo:
            done.setdefault(pair, Outcome("timeout", "the batch ran out of time"))


_shared: MathPool | None = None
_shared_lock = threading.Lock()


def shared() -> MathPool:
    """The pool of this process: half of its cores, two to eight workers."""
    global _shared
    with _shared_lock:
        if _shared is None:
            _shared = MathPool(workers=max(2, min(8, (os.cpu_count() or 2) // 2)))
        return _shared
