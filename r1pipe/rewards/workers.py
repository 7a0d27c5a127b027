"""Killable worker processes for code that may not end: computer algebra, reward functions of users.

    pool = Pool("package.module:prepare", argument={"any": "JSON"}, workers=2)
    pool.run([1, {"any": "JSON"}], limit_s=5.0, batch_limit_s=60.0)  # one Outcome a task, in order

`prepare(argument)` is called once in each worker and returns the function that answers one task; argument, tasks and
answers are JSON values. What it imports stays out of this process. An exception is its task's Outcome (`error`), a
worker that outlasts `limit_s` is killed and replaced (`timeout`), one that dies gives its task one more try on a
fresh one (`crash`); all three cost that task alone. `prepare` itself may take `start_limit_s`; where it raises, `run`
raises UserError with its message and the pool's `hint`.

Workers are fresh interpreters, started by `start` (in the background) or when first needed: the pool works from any
thread, under any start method of multiprocessing, with torch loaded. A forked copy of a pool starts workers of its
own. Each has `memory_mb` of address space, no GPU, one thread for linear algebra, and prints to this process' stderr.
They end with this process: their stdin closes, and the kernel's alarm ends one that is busy some time after its limit
(not PR_SET_PDEATHSIG, which goes off when the *thread* that started the worker ends).
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from r1pipe.errors import UserError

Status = Literal["ok", "error", "limit", "timeout", "crash"]

AHEAD = 4  # tasks that wait in a worker's pipe, so that it never waits for this process
MAX_FAILED_STARTS = 3  # workers in a row that die or hang before they are ready


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a task: ok (`value` is the answer), error (it raised: `detail`), limit (out of memory or too
    deep a recursion), timeout (of the task or of the batch), crash (the worker died at it, twice)."""

    status: Status
    value: Any = None
    detail: str = ""


@dataclass(eq=False)
class _Worker:
    """One child. `tasks` are the indices it has been given, the one it works on first; `deadline` is for that one,
    or for the start."""

    process: subprocess.Popen[bytes]
    deadline: float
    ready: bool = False
    tasks: deque[int] = field(default_factory=deque)
    unsent: bytes = b""
    received: bytes = b""

    @property
    def busy(self) -> bool:
        return bool(self.tasks) or not self.ready

    @property
    def stdin(self) -> int:
        assert self.process.stdin is not None
        return self.process.stdin.fileno()

    @property
    def stdout(self) -> int:
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def close_pipes(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                with contextlib.suppress(OSError):
                    pipe.close()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.close_pipes()

    def write(self) -> None:
        """Sends what the pipe takes; a dead child is noticed when it is read from."""
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            while self.unsent:
                self.unsent = self.unsent[os.write(self.stdin, self.unsent) :]


@dataclass(eq=False)
class Pool:
    """Workers of one target. Safe to use from threads: batches run one after the other."""

    target: str
    argument: Any = None
    workers: int = 2
    memory_mb: int | None = 2048
    start_limit_s: float = 120.0
    hint: str | None = None
    _live: list[_Worker] = field(default_factory=list, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _failed_starts: int = field(default=0, repr=False)  # in a row

    def __post_init__(self) -> None:
        _pools.add(self)

    def start(self) -> None:
        """Starts all workers and does not wait for them."""
        if self._lock.acquire(blocking=False):  # else a batch is running, and has started them
            try:
                while len(self._live) < self.workers:
                    self._start()
            finally:
                self._lock.release()

    def run(self, tasks: Sequence[Any], *, limit_s: float, batch_limit_s: float | None = None) -> list[Outcome]:
        """One outcome a task, in order. `limit_s` is for one task, once a worker has begun it; tasks that are not
        done after `batch_limit_s` are timeouts (the start of the first workers does not count)."""
        with self._lock:
            batch = _Batch(self, tasks, limit_s, batch_limit_s)
            try:
                return batch.run()
            finally:  # an exception (Ctrl-C) must not leave answers of this batch to the next one
                for worker in [w for w in self._live if w.tasks]:
                    self._live.remove(worker)
                    worker.kill()

    def close(self) -> None:
        """Ends the workers; a later `run` starts fresh ones."""
        with self._lock:
            while self._live:
                self._live.pop().kill()

    def _start(self) -> _Worker:
        code = (
            f"import sys; sys.path[:] = {sys.path!r}; from r1pipe.rewards.workerchild import main; "
            f"main({self.target!r}, {json.dumps(self.argument)!r}, {self.memory_mb!r})"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"},
        )
        worker = _Worker(process, time.monotonic() + self.start_limit_s)
        os.set_blocking(worker.stdin, False)
        self._live.append(worker)
        return worker

    def _after_fork(self) -> None:
        """In a forked copy: the workers are its parent's. Its ends of their pipes are closed, or they would outlive
        the parent."""
        self._lock = threading.Lock()
        for worker in self._live:
            worker.close_pipes()
        self._live = []


class _Batch:
    """One call of `run`."""

    def __init__(self, pool: Pool, tasks: Sequence[Any], limit_s: float, batch_limit_s: float | None) -> None:
        self.pool, self.tasks, self.limit_s, self.batch_limit_s = pool, tasks, limit_s, batch_limit_s
        self.pending = deque(range(len(tasks)))
        self.done: dict[int, Outcome] = {}
        self.tried: set[int] = set()  # a worker died at them once
        self.until = float("inf")

    def run(self) -> list[Outcome]:
        if not self.tasks:
            return []
        with selectors.DefaultSelector() as selector:
            for worker in self.pool._live:
                selector.register(worker.stdout, selectors.EVENT_READ, worker)
            while len(self.done) < len(self.tasks):
                self._hand_out(selector)
                writing = [w for w in self.pool._live if w.unsent]
                for worker in writing:
                    selector.register(worker.stdin, selectors.EVENT_WRITE, worker)
                events = selector.select(self._patience())
                for worker in writing:
                    selector.unregister(worker.stdin)
                for key, event in events:
                    if event & selectors.EVENT_WRITE:
                        key.data.write()
                for key, event in events:
                    if event & selectors.EVENT_READ and not self._read(key.data):
                        self._lost(selector, key.data, died=True)
                now = time.monotonic()
                for worker in [w for w in self.pool._live if w.busy and now > w.deadline]:
                    self._lost(selector, worker, died=False)
                if now > self.until:
                    for index in range(len(self.tasks)):
                        self.done.setdefault(index, Outcome("timeout", detail="the batch ran out of time"))
        return [self.done[i] for i in range(len(self.tasks))]

    def _hand_out(self, selector: selectors.BaseSelector) -> None:
        while len(self.pool._live) < min(self.pool.workers, len(self.tasks) - len(self.done)):
            worker = self.pool._start()
            selector.register(worker.stdout, selectors.EVENT_READ, worker)
        ready = [w for w in self.pool._live if w.ready]
        if ready and self.batch_limit_s is not None and self.until == float("inf"):
            self.until = time.monotonic() + self.batch_limit_s
        for ahead in range(AHEAD):  # evenly: the last tasks of a batch must not queue behind each other
            for worker in ready:
                if self.pending and len(worker.tasks) <= ahead:
                    self._give(worker, self.pending.popleft())

    def _give(self, worker: _Worker, index: int) -> None:
        if not worker.tasks:
            worker.deadline = time.monotonic() + self.limit_s
        worker.tasks.append(index)
        worker.unsent += json.dumps({"task": self.tasks[index], "limit": self.limit_s}).encode() + b"\n"
        worker.write()

    def _patience(self) -> float:
        first = min([self.until, *(w.deadline for w in self.pool._live if w.busy)])
        return max(0.0, first - time.monotonic()) + 0.005

    def _read(self, worker: _Worker) -> bool:
        """Takes in what a worker says; False where it is dead."""
        data = os.read(worker.stdout, 1 << 16)
        *lines, worker.received = (worker.received + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if not worker.ready:
                if "fatal" in message:
                    raise self._no_start(message["fatal"])
                worker.ready, self.pool._failed_starts = True, 0
            else:
                self.done[worker.tasks.popleft()] = Outcome(**message)
            worker.deadline = time.monotonic() + self.limit_s
        return bool(data)

    def _lost(self, selector: selectors.BaseSelector, worker: _Worker, *, died: bool) -> None:
        """A worker is dead or has outlasted its deadline. The task that it worked on pays; the others go back."""
        selector.unregister(worker.stdout)
        self.pool._live.remove(worker)
        status = worker.process.wait() if died else None
        worker.kill()
        if not worker.ready:
            self.pool._failed_starts += 1
            if self.pool._failed_starts == MAX_FAILED_STARTS:
                self.pool._failed_starts = 0
                took = f"it took over {self.pool.start_limit_s:g} s"
                raise self._no_start(f"exit status {status}" if died else took)
        if not worker.tasks:
            return
        index = worker.tasks.popleft()
        self.pending.extendleft(reversed(worker.tasks))
        worker.tasks.clear()
        if not died or status == -signal.SIGALRM:
            self.done[index] = Outcome("timeout", detail=f"over {self.limit_s:g} s")
        elif index in self.tried:
            self.done[index] = Outcome("crash", detail=f"exit status {status}")
        else:
            self.tried.add(index)
            self.pending.appendleft(index)

    def _no_start(self, why: str) -> UserError:
        return UserError(f"a worker for {self.pool.target} did not start: {why}", hint=self.pool.hint)


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def _after_fork() -> None:
    for pool in list(_pools):
        pool._after_fork()


@atexit.register
def _close_all() -> None:
    for pool in list(_pools):
        for worker in list(pool._live):  # not `close`: a daemon thread may hold the lock
            worker.process.kill()


os.register_at_fork(after_in_child=_after_fork)
