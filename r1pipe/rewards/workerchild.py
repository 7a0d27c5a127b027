"""The child process of `workers.Pool`: reads one task a line from stdin, writes one outcome a line.

    {"task": 1, "limit": 5.0}  ->  {"status": "ok", "value": 2}

The kernel's alarm ends it some time after the limit, whatever it computes: that is for when the parent, which kills at
the limit, is gone.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from typing import Any

GRACE_S = 2.0


def main(target: str, argument: str, memory_mb: int | None) -> None:
    """Serves until stdin closes."""
    out = os.dup(1)
    os.dup2(2, 1)  # what the target prints must not look like an answer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    try:
        _limit_memory(memory_mb)
        module, _, name = target.partition(":")
        answer = getattr(importlib.import_module(module), name)(json.loads(argument))
    except Exception as error:  # noqa: BLE001 (the parent raises it)
        _send(out, {"fatal": f"{type(error).__name__}: {error}"})
        return
    _send(out, {"ready": True})
    for line in sys.stdin.buffer:
        message = json.loads(line)
        signal.setitimer(signal.ITIMER_REAL, message["limit"] + GRACE_S)
        try:
            reply = json.dumps({"status": "ok", "value": answer(message["task"])})
        except (MemoryError, RecursionError) as error:
            reply = json.dumps({"status": "limit", "detail": type(error).__name__})
        except Exception as error:  # noqa: BLE001 (the parent shows it)
            reply = json.dumps({"status": "error", "detail": f"{type(error).__name__}: {error}"[:2000]})
        signal.setitimer(signal.ITIMER_REAL, 0)
        _write(out, reply)


def _send(out: int, message: dict[str, Any]) -> None:
    _write(out, json.dumps(message))


def _write(out: int, line: str) -> None:
    data = line.encode() + b"\n"
    while data:
        data = data[os.write(out, data) :]


def _limit_memory(memory_mb: int | None) -> None:
    import resource

    if memory_mb is not None:
        size, hard = memory_mb * 1024 * 1024, resource.getrlimit(resource.RLIMIT_AS)[1]
        if hard == resource.RLIM_INFINITY or size < hard:
            resource.setrlimit(resource.RLIMIT_AS, (size, hard))
