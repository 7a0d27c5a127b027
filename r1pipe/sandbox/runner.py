"""What runs inside the sandbox: a supervisor, and below it the program, in a process of its own.

`backends` starts it as process 1 of the sandbox, as compiled code; it imports nothing but the standard library, and
little of that, since it starts once a test. The supervisor writes two lines to the status pipe, which the program
never holds: "start", then "end REASON STATUS PEAK" (wait status and peak memory in KiB of the program's main process).
It ends the test when the main process ends, a limit is passed, or `lifeline` closes; with it the whole PID namespace
ends. Without namespaces it kills what descends from it instead.

A function-call test writes its value, encoded, to the pipe that is stdout elsewhere, and stdout becomes /dev/null.
The program can write to that pipe too. That gains it nothing: what is expected never comes in here, so a forged value
is one more way to answer.
"""

from __future__ import annotations

import _signal  # `signal` costs an enum
import os
import resource
import sys
import time
from typing import Any

POLL_S = 0.02
BAD_PROGRAM = 121  # exit code: the program does not compile
MAX_FILES = 20_000  # inodes in /tmp: they cost kernel memory that the size of a tmpfs does not count
MIB = 1024 * 1024
_PDEATHSIG, _DUMPABLE, _SECCOMP, _SUBREAPER, _NO_NEW_PRIVS = 1, 4, 22, 36, 38


def main(job: dict[str, Any]) -> None:
    """Supervises, and never returns; returns in the program's process, which goes on with `run_program`."""
    import ctypes

    prctl = ctypes.CDLL(None).prctl
    prctl(_PDEATHSIG, _signal.SIGKILL, 0, 0, 0)
    prctl(_DUMPABLE, 0, 0, 0, 0)  # the program has the same uid: it may not look into this process
    prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
    if not job["namespaces"]:
        prctl(_SUBREAPER, 1, 0, 0, 0)
        try:  # noqa: SIM105 (as root, no limit counts the processes: this one must get its turn among many)
            os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
        except OSError:
            pass  # not root
    status = job["status"]
    try:
        job["code"] = compile(job["call"], "<call>", "eval") if job["call"] else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        os.write(status, b"start\nend call 0 0\n")
        os._exit(0)
    _signal.pthread_sigmask(_signal.SIG_BLOCK, {_signal.SIGCHLD})
    os.set_blocking(job["lifeline"], False)
    os.write(status, b"start\n")
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        prctl(_DUMPABLE, 1, 0, 0, 0)
        _confine(job, prctl, ctypes)
        return
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    reason, code, peak = "lost", 0, 0
    try:
        reason, code, peak = _watch(pid, job, started)
    finally:
        os.write(status, f"end {reason} {code} {peak}\n".encode())
        if not job["namespaces"]:
            _kill_below()
        os._exit(0)


def _watch(pid: int, job: dict[str, Any], started: float) -> tuple[str, int, int]:
    """Waits for the program's main process or a limit: (reason, wait status, peak KiB)."""
    wait = 0.001
    while True:
        _signal.sigtimedwait({_signal.SIGCHLD}, wait)
        ended = _reap(pid)
        if ended is not None:
            code, peak = ended
            return ("memory" if peak > job["memory_mb"] * 1024 else "exit"), code, peak
        now = time.monotonic()
        if now - started > job["time_s"]:
            return "time", 0, 0
        try:
            if os.read(job["lifeline"], 1) == b"":
                return "stopped", 0, 0
        except BlockingIOError:
            pass
        tasks, resident = _survey(job["namespaces"])
        if tasks > job["processes"]:
            return "processes", 0, 0
        # Looked at twice: what forks share moves from one to the other while they are counted.
        if resident > job["memory_mb"] * 1024 and _survey(job["namespaces"])[1] > job["memory_mb"] * 1024:
            return "memory", 0, 0
        if job["namespaces"]:
            disk = os.statvfs("/tmp")
            if disk.f_files - disk.f_ffree > MAX_FILES:
                return "disk", 0, 0
        wait = max(min(POLL_S, 2 * wait), 4 * (time.monotonic() - now))


def _reap(pid: int) -> tuple[int, int] | None:
    """Takes in every ended child; wait status and peak of the one asked about."""
    found = None
    while True:
        try:
            child, code, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if child == 0:
            return found
        if child == pid:
            found = code, usage.ru_maxrss


def _stats(namespaces: bool) -> dict[int, list[str]]:
    """Fields of /proc/PID/stat after the name, of every process of the test."""
    own, stats = os.getpid(), {}
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != own:
            try:
                with open(f"/proc/{name}/stat", "rb", buffering=0) as file:
                    stats[int(name)] = file.read(4096).rpartition(b") ")[2].decode().split()
            except OSError:
                continue  # it has just ended
    if namespaces:
        return stats
    below, grown = {own}, True
    while grown:
        more = {pid for pid, fields in stats.items() if int(fields[1]) in below} - below
        below |= more
        grown = bool(more)
    return {pid: fields for pid, fields in stats.items() if pid in below}


def _tasks_of_user() -> int:
    """Threads of all processes that this uid has."""
    tasks, uid = 0, os.getuid()
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == uid:
                tasks += len(os.listdir(f"/proc/{name}/task"))
        except OSError:
            continue
    return tasks


def _survey(namespaces: bool) -> tuple[int, int]:
    """Threads, and KiB of memory, of the program and all that it started."""
    stats = _stats(namespaces)
    page = resource.getpagesize() // 1024
    tasks = sum(int(fields[17]) for fields in stats.values())
    return tasks, sum(_unshared(pid, int(fields[21]) * page, len(stats)) for pid, fields in stats.items())


def _unshared(pid: int, resident: int, processes: int) -> int:
    """Resident KiB, less what a process shares with its forks: they would count it once each."""
    if processes == 1:
        return resident
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb", buffering=0) as file:
            for line in file.read(4096).split(b"\n"):
                if line.startswith(b"Pss:"):
                    return int(line.split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0  # it has just ended
    except OSError:
        pass  # not readable: counted in full
    return resident


def _kill_below() -> None:
    """Without a PID namespace: kills all that descends from this process, for as long as it takes, within reason."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        pids = list(_stats(False))
        for pid in pids:
            try:
                os.kill(pid, _signal.SIGKILL)
            except OSError:
                continue
        _reap(0)
        if not pids:
            return


def _confine(job: dict[str, Any], prctl: Any, ctypes: Any) -> None:
    """The program's process: its files, limits and filter. What is set here binds all that it starts."""
    os.setsid()
    _signal.pthread_sigmask(_signal.SIG_SETMASK, set())
    os.closerange(3, 1 << 20)
    if job["value"]:
        job["result"] = os.dup(1)
        os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
    os.chdir(job["folder"])
    seconds = int(job["time_s"]) + 2
    limits = {
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_CORE: 1,  # 0 would still start the machine's crash handler, where there is one
        resource.RLIMIT_NOFILE: 128,
        resource.RLIMIT_FSIZE: job["disk_mb"] * MIB,
        resource.RLIMIT_AS: (job["memory_mb"] + 512) * MIB,  # stacks and libraries are mapped, not used
    }
    if job["counts_processes"]:
        limits[resource.RLIMIT_NPROC] = job["processes"] + 1  # the supervisor has the same uid
    elif not job["namespaces"]:  # what else the user runs counts too, and changes
        limits[resource.RLIMIT_NPROC] = job["processes"] + _tasks_of_user() + 256
    for which, most in limits.items():
        hard = resource.getrlimit(which)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (most, most))
    if job["filter"]:
        code = ctypes.create_string_buffer(job["filter"], len(job["filter"]))
        length, address = len(job["filter"]) // 8, ctypes.addressof(code)
        fprog = ctypes.create_string_buffer(length.to_bytes(8, sys.byteorder) + address.to_bytes(8, sys.byteorder), 16)
        if prctl(_SECCOMP, 2, ctypes.c_void_p(ctypes.addressof(fprog)), 0, 0) != 0:
            os.write(2, b"the system-call filter cannot be set\n")
            os._exit(1)


def run_program(job: dict[str, Any]) -> None:
    """Runs the program as `python main.py` would, or calls its function and writes the value."""
    import builtins

    # What `site` would bring, and programs use.
    from _sitebuiltins import Quitter

    builtins.exit = Quitter("exit", "Ctrl-D")  # type: ignore[assignment]
    builtins.quit = Quitter("quit", "Ctrl-D")  # type: ignore[assignment]
    name = "solution" if job["value"] else "__main__"
    path = os.path.join(job["folder"], "main.py")
    with open(path, "w", encoding="utf-8", errors="replace") as file:
        file.write(job["program"])
    module = type(sys)(name)
    module.__dict__.update(__file__=path, __builtins__=builtins)
    sys.modules[name], job["main"] = module, sys.modules.get("__main__")  # the replaced one stays alive
    sys.argv, sys.path[:0] = [path], [job["folder"]]
    try:
        code = compile(job["program"], path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode(errors="replace"))
        os._exit(BAD_PROGRAM)
    exec(code, module.__dict__)  # noqa: S102 (this is the sandbox)
    if job["value"]:
        if job["code"] is not None:
            value = eval(job["code"], module.__dict__)  # noqa: S307
        else:
            function = module.__dict__.get(job["function"])
            if function is None:
                function = getattr(module.__dict__["Solution"](), job["function"])
            value = function(*job["args"])
        data = memoryview(encode(value).encode())
        while data:
            data = data[os.write(job["result"], data) :]
        os._exit(0)


def encode(value: Any) -> str:
    """A plain value as JSON that keeps its types: tuples, sets, dicts with any keys, big integers, nan.

    Read with the methods of the base types, whatever a subclass does. Raises TypeError for what is not plain data.
    """
    from _json import encode_basestring_ascii as text

    def many(tag: str, values: Any) -> str:
        return f'["{tag}",[' + ",".join([encode(v) for v in values]) + "]]"

    kind = type(value)
    if value is None or kind is bool:
        return {None: "null", True: "true", False: "false"}[value]
    if issubclass(kind, int):
        return f'["i","{int.__format__(value, "x")}"]'
    if issubclass(kind, float):
        return f'["f","{float.hex(value)}"]'
    if issubclass(kind, str):
        return f'["s",{text(str.__str__(value))}]'
    if issubclass(kind, complex):
        return f'["c","{float.hex(complex.real.__get__(value))}","{float.hex(complex.imag.__get__(value))}"]'
    if issubclass(kind, bytes | bytearray):
        return f'["b","{bytes.hex(bytes(value))}"]'
    if issubclass(kind, list):
        return many("l", list.__iter__(value))
    if issubclass(kind, tuple):
        return many("t", tuple.__iter__(value))
    if issubclass(kind, set | frozenset):
        return many(
            "S", sorted(set.__iter__(value) if issubclass(kind, set) else frozenset.__iter__(value), key=encode)
        )
    if issubclass(kind, dict):
        return many("d", [v for pair in dict.items(value) for v in pair])
    raise TypeError(f"the value holds a {kind.__name__}, which is not plain data")
