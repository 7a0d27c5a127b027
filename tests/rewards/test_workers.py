"""Killable workers: outcomes, limits, crashes, threads, start methods, ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from r1pipe.errors import UserError
from r1pipe.rewards.workers import Pool

TARGET = "tests.rewards.test_workers:prepare"


def prepare(argument: Any) -> Any:
    """Runs in the worker."""
    if argument == "broken":
        raise ImportError("no such module")
    if argument == "dies":
        os._exit(3)
    if argument == "hangs":
        time.sleep(60)

    def answer(task: Any) -> Any:
        match task:
            case {"sleep": seconds}:
                time.sleep(seconds)
            case {"kill": path}:
                if path is None or not os.path.exists(path):
                    if path:
                        open(path, "w").close()
                    os.kill(os.getpid(), signal.SIGKILL)
            case {"bomb": size}:
                return len(bytearray(size))
            case "deep":
                return answer_deep(0)
            case "raise":
                raise ValueError("on purpose")
            case "odd":
                return {1, 2}
            case "print":
                print("not an answer", flush=True)
            case "pid":
                return os.getpid()
        return {"echo": task, "argument": argument}

    return answer


def answer_deep(depth: int) -> int:
    return answer_deep(depth + 1) + 1


@pytest.fixture
def pool():
    pool = Pool(TARGET, argument=[1, "a"], workers=2, memory_mb=1024)
    yield pool
    pool.close()


def test_answers_come_in_order_and_are_any_json(pool):
    tasks = [1, "é\n\ud800", None, [1.5, {"a": []}], {"b": "x" * 300_000}, True, "print"] * 5
    assert [o.value for o in pool.run(tasks, limit_s=20)] == [{"echo": t, "argument": [1, "a"]} for t in tasks]
    assert pool.run([], limit_s=1) == []


def test_each_fault_costs_its_task_alone(pool):
    tasks = ["a", {"sleep": 30}, "raise", "b", {"bomb": 4 << 30}, "deep", "odd", {"kill": None}, "c", "d"]
    started = time.monotonic()
    outcomes = pool.run(tasks, limit_s=1.0)
    assert time.monotonic() - started < 20
    assert [o.status for o in outcomes] == [
        "ok", "timeout", "error", "ok", "limit", "limit", "error", "crash", "ok", "ok",
    ]  # fmt: skip
    assert outcomes[2].detail == "ValueError: on purpose"
    assert pool.run(["e"], limit_s=5)[0].status == "ok"


def test_a_task_whose_worker_died_once_is_tried_again(pool, tmp_path):
    assert pool.run([{"kill": str(tmp_path / "seen")}], limit_s=10)[0].status == "ok"
    os.kill(pool._live[0].process.pid, signal.SIGKILL)  # between two batches
    assert [o.status for o in pool.run([1, 2, 3], limit_s=10)] == ["ok"] * 3


def test_a_batch_has_a_limit(pool):
    pool.run([1], limit_s=10)
    started = time.monotonic()
    outcomes = pool.run([{"sleep": 1.0}] * 20, limit_s=5, batch_limit_s=2.5)
    assert 2 < time.monotonic() - started < 4
    assert {o.status for o in outcomes} == {"ok", "timeout"}
    assert pool.run(["next"], limit_s=5)[0].value["echo"] == "next"


@pytest.mark.parametrize(("argument", "message"), [("broken", "no such module"), ("dies", "3"), ("hangs", "0.5 s")])
def test_workers_that_do_not_start(argument, message):
    pool = Pool(TARGET, argument=argument, hint="do this", start_limit_s=0.5 if argument == "hangs" else 60)
    with pytest.raises(UserError, match=message) as raised:
        pool.run([1], limit_s=1)
    assert raised.value.hint == "do this"
    pool.close()


def test_start_does_not_wait(pool):
    started = time.monotonic()
    pool.start()
    assert time.monotonic() - started < 0.5 and len(pool._live) == 2
    pids = {w.process.pid for w in pool._live}
    assert {o.value for o in pool.run(["pid"] * 6, limit_s=10)} <= pids


def test_from_threads(pool):
    results: dict[int, Any] = {}

    def work(n: int) -> None:
        results[n] = [o.value["echo"] for o in pool.run([n] * 3, limit_s=10)]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == {n: [n] * 3 for n in range(6)}


_module_pool = Pool(TARGET, workers=1)


def _in_child(queue: Any) -> None:
    queue.put(_module_pool.run(["pid"], limit_s=20)[0].value)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_in_processes_of_multiprocessing(method):
    mine = _module_pool.run(["pid"], limit_s=20)[0].value
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    theirs = queue.get(timeout=60)
    child.join(20)
    assert child.exitcode == 0 and theirs != mine
    assert _module_pool.run(["pid"], limit_s=20)[0].value == mine
    assert _gone(theirs)
    _module_pool.close()


@pytest.mark.parametrize("task", ["'pid'", "{'sleep': 1.0}"])
def test_workers_end_with_their_process(task):
    code = (
        f"from r1pipe.rewards.workers import Pool; import os, threading, time; p = Pool({TARGET!r}, workers=1);"
        "print(p.run(['pid'], limit_s=20)[0].value, flush=True);"
        f"threading.Thread(target=p.run, args=([{task}],), kwargs={{'limit_s': 5}}).start(); time.sleep(0.3);"
        "os.kill(os.getpid(), 9)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert _gone(int(run.stdout)), run


def _gone(pid: int) -> bool:
    for _ in range(100):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.1)
    return False
