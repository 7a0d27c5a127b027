"""Locks, and the rule that nothing outlives its runner."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from r1pipe.errors import UserError


class Held(Exception):
    """A lock is held by another process."""

    def __init__(self, path: Path, pid: int | None) -> None:
        super().__init__(f"{path} is held by process {pid or 'unknown'}")
        self.path = path
        self.pid = pid


def acquire(path: Path) -> IO[str]:
    """Takes the lock for the life of this process (flock: freed by the kernel, however it ends). Raises Held."""
    handle = path.open("a+")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        handle.close()
        raise Held(path, holder(path)) from None
    handle.seek(0)
    handle.truncate()
    handle.write(json.dumps({"pid": os.getpid()}))
    handle.flush()
    return handle


def holder(path: Path) -> int | None:
    """The pid written in a lock file."""
    with contextlib.suppress(OSError, ValueError):
        return int(json.loads(path.read_text())["pid"])
    return None


def is_held(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("r") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(handle, fcntl.LOCK_UN)
    return False


@contextlib.contextmanager
def run_lock(path: Path, what: str) -> Iterator[None]:
    """The runner's lock on a run folder. Raises UserError that names the pid which holds it."""
    try:
        handle = acquire(path)
    except Held as held:
        raise UserError(
            f"{what} is being worked on by process {held.pid or 'unknown'}",
            hint="wait for it, stop it, or use another --run",
        ) from None
    except OSError as error:
        raise UserError(f"cannot lock {path}: {error.strerror}", hint="is the runs folder writable?") from error
    try:
        yield
    finally:
        handle.close()


def die_with_parent() -> None:
    """Linux: SIGKILL for this process when its parent ends."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL)


def die_with(pid: int) -> None:
    """Ends this process, and its group, soon after process `pid` ends; works below any launcher."""
    try:
        fd = os.pidfd_open(pid)
    except (AttributeError, OSError):
        fd = -1

    def watch() -> None:
        if fd >= 0:
            import select

            select.select([fd], [], [])
        else:
            while True:
                try:
                    os.kill(pid, 0)
                except ProcessLookupError:
                    break
                except PermissionError:
                    pass
                time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)

    if fd < 0:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            os.kill(os.getpid(), signal.SIGKILL)
    threading.Thread(target=watch, daemon=True, name="r1pipe-watch").start()


def end_group(pgid: int, *, grace: float = 5.0) -> None:
    """SIGTERM to a process group, then SIGKILL."""
    for sig, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, 5.0)):
        try:
            os.killpg(pgid, sig)
        except (ProcessLookupError, PermissionError):
            return
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                os.killpg(pgid, 0)
            except (ProcessLookupError, PermissionError):
                return
            with contextlib.suppress(ChildProcessError):
                os.waitpid(-pgid, os.WNOHANG)
            time.sleep(0.05)
