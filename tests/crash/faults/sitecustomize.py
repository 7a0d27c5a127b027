"""Ends a process of a run at a named point of what it writes: crash tests put this folder on PYTHONPATH, and Python
imports the module before anything else. r1pipe knows nothing of it, and it does nothing without CRASH_ROOT.

    CRASH_ROOT    the run folder; only what is written below it counts
    CRASH_LOG     a file that gets every point, a line each, in order
    CRASH_POINT   role|operation|when|path|nth: SIGKILL to this process there

role is runner or worker; operation one of write, fsync, rename, mkdir, unlink; when one of before, middle (of a write:
half of the bytes are in the file), after. In a path the fingerprint's folder is `#` and the pid of a partial file is
left out, so a point has the same name in every run.

    CRASH_SIGNAL  another signal than SIGKILL
    CRASH_ERROR   an errno: instead, every operation of this process fails with it from the point on
    CRASH_FILL    a file: instead, it is grown until its disk is full

    CRASH_CLOCK   seconds to put the clock forward (below zero: back), as processes see it
"""

from __future__ import annotations

import builtins
import datetime
import io
import os
import re
import signal
import sys
import time
from collections import Counter
from typing import Any

ROOT = os.environ.get("CRASH_ROOT", "")
POINT = os.environ.get("CRASH_POINT", "")
LOG = os.environ.get("CRASH_LOG", "")
SIGNAL = int(os.environ.get("CRASH_SIGNAL", signal.SIGKILL))
ERROR = int(os.environ.get("CRASH_ERROR", "0"))
FILL = os.environ.get("CRASH_FILL", "")
ROLE = "worker" if "r1pipe.worker" in sys.orig_argv else "runner"

_write, _open = os.write, io.open
_seen: Counter[str] = Counter()
_broken: list[str] = []
_log = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT) if LOG else -1


def _name(path: Any) -> str | None:
    """The path below the run folder; None for one outside."""
    full = os.path.abspath(os.fspath(path))
    if not full.startswith(ROOT + os.sep):
        return None
    inside = re.sub(r"(?<=/)[0-9a-f]{8}(-\d+)?(?=/|$)", "#", os.path.relpath(full, ROOT))
    return re.sub(r"(^|/)\.([^/]+?)\.\d+\.partial$", r"\1\2.partial", inside)


def _reach(operation: str, when: str, name: str) -> None:
    point = f"{ROLE}|{operation}|{when}|{name}"
    _seen[point] += 1
    point += f"|{_seen[point]}"
    if _log >= 0:
        _write(_log, f"{point}\n".encode())
    if point == POINT:
        if FILL:
            _fill()
        elif not ERROR:
            os.kill(os.getpid(), SIGNAL)
        _broken.append(point)
    if ERROR and _broken:
        raise OSError(ERROR, os.strerror(ERROR))


def _fill() -> None:
    """Leaves no byte on the disk of FILL."""
    size = 2**20
    with _open(FILL, "ab", buffering=0) as filler:
        while size:
            try:
                filler.write(b"\0" * size)
            except OSError:
                size //= 2


class _File(io.FileIO):
    """A file that is written in two halves where the point lies in the middle."""

    def write(self, data: Any) -> int:
        whole = bytes(data)
        name = _name(self.name)
        assert name is not None
        _reach("write", "before", name)
        if POINT.startswith(f"{ROLE}|write|middle|{name}|") and len(whole) > 1:
            at = len(whole) // 2
            super().write(whole[:at])
            _reach("write", "middle", name)
            super().write(whole[at:])
        else:
            super().write(whole)
            _reach("write", "middle", name)
        _reach("write", "after", name)
        return len(whole)


def _watched_open(file: Any, mode: str = "r", buffering: int = -1, *args: Any, **named: Any) -> Any:
    """open(), with a file of ours where it writes below the run folder."""
    writes = bool(set(mode) & set("wax+"))
    if not writes or isinstance(file, int) or _name(file) is None:
        return _open(file, mode, buffering, *args, **named)
    raw = _File(os.fspath(file), mode.replace("b", "").replace("t", ""))
    if buffering == 0:
        return raw
    buffered: Any = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
    if "b" in mode:
        return buffered
    return io.TextIOWrapper(
        buffered, named.get("encoding") or (args[0] if args else None), named.get("errors"), named.get("newline")
    )


def _around(operation: str, real: Any, path_of: Any) -> Any:
    def call(*args: Any, **named: Any) -> Any:
        name = None if named.get("dir_fd") is not None else path_of(*args)
        if name is None:
            return real(*args, **named)
        _reach(operation, "before", name)
        result = real(*args, **named)
        _reach(operation, "after", name)
        return result

    return call


def _of_fd(fd: int) -> str | None:
    return _name(os.readlink(f"/proc/self/fd/{fd}"))


def _watch() -> None:
    io.open = builtins.open = _watched_open  # type: ignore[assignment]
    os.fsync = _around("fsync", os.fsync, _of_fd)
    os.replace = _around("rename", os.replace, lambda source, target, **named: _name(target))
    os.rename = _around("rename", os.rename, lambda source, target, **named: _name(target))
    os.mkdir = _around("mkdir", os.mkdir, lambda path, *args, **named: _name(path))
    os.unlink = _around("unlink", os.unlink, lambda path, **named: _name(path))


def _shift(seconds: float) -> None:
    """Another time of day; what is measured with time.monotonic() stays."""
    real = time.time
    time.time = lambda: real() + seconds

    class Shifted(datetime.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return cls.fromtimestamp(real() + seconds, tz)

    datetime.datetime = Shifted  # type: ignore[misc]


if ROOT:
    _watch()
if os.environ.get("CRASH_CLOCK"):
    _shift(float(os.environ["CRASH_CLOCK"]))
