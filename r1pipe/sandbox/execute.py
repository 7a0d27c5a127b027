"""Runs one program in a sandbox: starts it, reads what it writes, ends it, leaves nothing behind.

Safe to use from threads: no `preexec_fn`, no signals, every descriptor is this call's own.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import marshal
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Literal

from r1pipe.sandbox import backends, enter, runner, seccomp

START_S = 60.0  # until the supervisor speaks, on a loaded machine
GRACE_S = 2.0  # the supervisor ends a program at its limit; after this the parent does
KILL_S = 30.0  # until a killed sandbox is gone
STDERR = 4096  # bytes kept

End = Literal["exit", "time", "memory", "processes", "disk", "output", "program", "call", "lost", "failed"]


@dataclass(frozen=True)
class Limits:
    """Of one run. `time_s` is wall-clock time; `processes` counts threads too."""

    time_s: float = 5.0
    memory_mb: int = 1024
    processes: int = 64
    output_kb: int = 1024
    disk_mb: int = 64


@dataclass(frozen=True)
class Job:
    """A program, and what to do with it: run it with `stdin`, or import it and evaluate `call` or `function(*args)`;
    the outcome's stdout is then the value, encoded by `runner.encode`."""

    program: str
    stdin: bytes = b""
    call: str | None = None
    function: str | None = None
    args: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """How a run ended. `exit`: by itself, with `code` (negative: by a signal). Limits have their names. `program`: it
    does not compile. `call`: the call does not. `lost`: the program got its supervisor killed. `failed`: the sandbox
    did not start, which is not the program's fault; `stderr` says why."""

    end: End
    code: int
    stdout: bytes
    stderr: str
    seconds: float


@functools.cache
def _code(module: Any) -> Any:
    """The compiled text of a module that runs inside; compiled once, for the same interpreter."""
    path = Path(module.__file__)
    return compile(path.read_text(encoding="utf-8"), f"<{path.name}>", "exec")


def run(backend: backends.Backend, job: Job, limits: Limits) -> Outcome:
    """Runs `job` to its end or to a limit. Nothing of it is left afterwards."""
    with contextlib.ExitStack() as stack:
        folder = "/tmp"
        if not backend.namespaces:
            folder = tempfile.mkdtemp(prefix="r1pipe-")
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        plan = os.memfd_create("job")
        stack.callback(os.close, plan)
        stdin = os.memfd_create("stdin", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        stack.callback(os.close, stdin)
        reads: dict[str, IO[bytes]] = {}
        writes: dict[str, IO[bytes]] = {}
        for name in ("status", "stdout", "stderr", "lifeline"):
            read, write = os.pipe()
            reads[name] = stack.enter_context(open(read, "rb", buffering=0))
            writes[name] = stack.enter_context(open(write, "wb", buffering=0))
        command, owner, entry = backend.prepare(functools.partial(_boot, plan), limits.disk_mb * runner.MIB)
        if owner and not backend.namespaces:
            os.chown(folder, owner["user"], owner["group"])
        _fill(stdin, job.stdin)
        seal = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
        fcntl.fcntl(stdin, fcntl.F_ADD_SEALS, seal)
        inside = {
            **asdict(job), **asdict(limits), "value": bool(job.call or job.function), "folder": folder,
            "status": writes["status"].fileno(), "lifeline": reads["lifeline"].fileno(),
            "namespaces": backend.namespaces, "counts_processes": backend.counts_processes,
            "filter": seccomp.program(),
        }  # fmt: skip
        del inside["stdin"]
        stages = {"runner": _code(runner), "job": inside}
        if entry:
            stages |= {"enter": _code(enter), "entry": entry}
        _fill(plan, marshal.dumps(stages))
        try:
            process = subprocess.Popen(
                command, stdin=stdin, stdout=writes["stdout"], stderr=writes["stderr"], cwd="/",
                env=backends.ENVIRONMENT | {"HOME": folder}, pass_fds=(plan, inside["status"], inside["lifeline"]),
                start_new_session=True, **owner,
            )  # fmt: skip
        except OSError as error:
            return Outcome("failed", 0, b"", f"{command[0]}: {error}", 0.0)
        for pipe in (writes["status"], writes["stdout"], writes["stderr"], reads["lifeline"]):
            pipe.close()
        watch = _Watch(process, backend.namespaces, limits, reads, writes["lifeline"])
        try:
            watch.until_end()
        finally:
            watch.end()
        return watch.outcome()


def _boot(fd: int, stage: str) -> str:
    """The Python text that loads the job and goes on with a stage of it."""
    load = f"import marshal,os\nj=marshal.loads(os.pread({fd},os.fstat({fd}).st_size,0))\ng={{'__name__':'inside'}}\n"
    if stage == "enter":
        return load + "exec(j['enter'],g)\ng['main'](**j['entry'])"
    return load + "exec(j['runner'],g)\nj=j['job']\ng['main'](j)\ng['run_program'](j)"


def _fill(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
    os.lseek(fd, 0, os.SEEK_SET)


class _Watch:
    """Reads the pipes of one process until it has ended."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        namespaces: bool,
        limits: Limits,
        reads: dict[str, IO[bytes]],
        lifeline: IO[bytes],
    ) -> None:
        self.process, self.namespaces, self.limits = process, namespaces, limits
        self.reads, self.lifeline = reads, lifeline
        self.status, self.stdout, self.stderr = b"", bytearray(), b""
        self.room = limits.output_kb * 1024  # bytes of output still allowed, both streams together
        self.over: End | None = None  # the limit that this side saw passed
        self.began = time.monotonic()
        self.deadline = self.began + START_S

    def until_end(self) -> None:
        """Until the status pipe closes: then the supervisor has ended, and in namespaces everything else."""
        with selectors.DefaultSelector() as selector:
            for name in ("status", "stdout", "stderr"):
                os.set_blocking(self.reads[name].fileno(), False)
                selector.register(self.reads[name], selectors.EVENT_READ, name)
            while True:
                for key, _ in selector.select(max(0.0, self.deadline - time.monotonic())):
                    if self._read(key.data) == b"":
                        selector.unregister(key.fileobj)
                        if key.data == "status":
                            return
                if time.monotonic() >= self.deadline:
                    if self.lifeline.closed or not self.status:
                        return  # it does not end, or never began: `end` kills it
                    self._stop("time")

    def _read(self, name: str) -> bytes | None:
        """Takes what is there: None where there is nothing, b"" at the end of the stream."""
        data = self.reads[name].read(65536)
        if not data:
            return data
        if name == "status":
            if not self.status:
                self.began = time.monotonic()
                self.deadline = self.began + self.limits.time_s + GRACE_S
            self.status += data
            return data
        self.room -= len(data)
        if name == "stderr":
            self.stderr = (self.stderr + data)[-STDERR:]
        elif self.room >= 0:
            self.stdout += data
        if self.room < 0:
            self._stop("output")
        return data

    def _stop(self, why: End) -> None:
        """Asks the supervisor to end."""
        if not self.lifeline.closed:
            self.over = why
            self.lifeline.close()
            self.deadline = time.monotonic() + GRACE_S

    def end(self) -> None:
        """Sees the process off, and reads the last of its output."""
        self.lifeline.close()
        try:
            self.process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            self._kill()
        for name in ("status", "stdout", "stderr"):
            while self.room >= 0 and self._read(name):
                pass

    def _kill(self) -> None:
        """Kills the supervisor, whose parent (bwrap, unshare) then takes in what is left of the namespace: that lasts
        where many processes end on a loaded machine. Without namespaces the supervisor is the process itself."""
        pid = self.process.pid
        with contextlib.suppress(OSError):
            for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
                os.kill(int(child), signal.SIGKILL)
        try:
            self.process.wait(KILL_S if self.namespaces else 0.1)
        except subprocess.TimeoutExpired:
            os.killpg(pid, signal.SIGKILL)
            self.process.wait()

    def outcome(self) -> Outcome:
        seconds = time.monotonic() - self.began
        stderr = self.stderr.decode(errors="replace").strip()
        lines = self.status.decode(errors="replace").split("\n")
        if lines[0] != "start":
            return Outcome("failed", 0, b"", stderr or "it did not start", seconds)
        reason, code = lines[1].split()[1:3] if lines[1].startswith("end ") else ("lost", "0")
        exit_code = os.waitstatus_to_exitcode(int(code)) if reason == "exit" else 0
        end: Any = self.over or ("program" if exit_code == runner.BAD_PROGRAM else reason)
        return Outcome(end, exit_code, bytes(self.stdout), stderr, seconds)
