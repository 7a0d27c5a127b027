"""The ways to isolate a program, and which of them this machine has.

A way counts as there when a test program has really run in it (`find`, once a process). Where r1pipe runs as root,
programs still run under a uid that nobody has, another one each: what only root may read stays closed, and the kernel
counts their processes, which it does not do for root. `inside`: real root builds the sandbox, and the program drops
to its uid in there; `outside`: a root that may not mount drops first, and needs user namespaces like anybody else.
"""

from __future__ import annotations

import functools
import itertools
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from r1pipe.errors import UserError

Kind = Literal["auto", "bubblewrap", "namespaces", "rlimits"]
Drop = Literal["no", "inside", "outside"]
Step = tuple[str, ...]

NOBODY = 65534  # the uid seen inside a user namespace
SHM = 16 * 2**20  # bytes of /dev/shm
FLAGS = ("-s", "-S", "-P", "-B")  # no site-packages, no surprises; the environment is ours
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONUTF8": "1",
    "PYTHONHASHSEED": "0",  # the same program prints its sets in the same order
    "MALLOC_ARENA_MAX": "2",  # threads map no 64 MiB each
}
SETPRIV = "/usr/bin/setpriv"
DEVICES = ("null", "zero", "full", "random", "urandom")
_numbers = itertools.count()


@dataclass(frozen=True)
class Backend:
    """One way. `drop`: where programs get a uid of their own. `tool`: bwrap or unshare."""

    kind: str
    drop: Drop
    tool: str = ""

    @property
    def namespaces(self) -> bool:
        return self.kind != "rlimits"

    @property
    def counts_processes(self) -> bool:
        """Does the kernel's limit on processes bind, and count those of one sandbox only? A user namespace has a
        count of its own since Linux 5.14; the supervisor counts in any case."""
        kernel = tuple(map(int, re.findall(r"\d+", platform.release())[:2]))
        return self.drop != "no" or (self.namespaces and kernel >= (5, 14))

    def version(self) -> str:
        if not self.tool:
            return ""
        said = subprocess.run([self.tool, "--version"], capture_output=True, text=True, check=False).stdout
        return (re.findall(r"\d[\d.]*", said) or ["?"])[0]

    def prepare(self, boot: Callable[[str], str], disk: int) -> tuple[list[str], dict[str, Any], dict[str, Any]]:
        """The command to start, what Popen needs besides, and what `enter` needs. `boot`: stage -> Python text."""
        python = [interpreter(), *FLAGS, "-c", boot("run")]
        uid, popen = "", {}
        if self.drop != "no":
            uid = str(fresh_uid())
        if self.drop == "outside":
            popen = {"user": int(uid), "group": int(uid), "extra_groups": []}
        elif self.drop == "inside":
            python = [SETPRIV, f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--inh-caps=-all", *python]
        if not self.namespaces:
            return python, popen, {}
        steps = layout(disk)
        if self.kind == "bubblewrap":
            return [*_bwrap(self.tool, steps, self.drop == "inside"), *python], popen, {}
        users = [] if self.drop == "inside" else ["--user", "--map-root-user"]
        outside = [
            self.tool, *users, "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child",
            interpreter(), *FLAGS, "-c", boot("enter"),
        ]  # fmt: skip
        return outside, popen, {"steps": steps, "uid": NOBODY if users else None, "command": python}


def interpreter() -> str:
    """The Python that programs run in: this one, without its virtual environment."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


@functools.cache
def layout(disk: int) -> list[Step]:
    """How the root folder inside is built: what Python needs of this machine, read-only, and two small tmpfs. Nothing
    else: no /home, /root, /work, nothing of /etc but the loader's cache."""
    steps: list[Step] = [("folder", "/dev"), ("folder", "/etc"), ("bind", "/usr", "/usr"), ("proc", "/proc")]
    for path in ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"):
        if os.path.islink(path):
            steps.append(("link", os.readlink(path), path))
        elif os.path.isdir(path):
            steps.append(("bind", path, path))
    if os.path.exists("/etc/ld.so.cache"):
        steps.append(("bind", "/etc/ld.so.cache", "/etc/ld.so.cache"))
    steps.append(("tmpfs", str(disk), "/tmp"))
    prefix = os.path.realpath(sys.base_prefix)
    for path in dict.fromkeys([interpreter(), f"{prefix}/lib", f"{prefix}/lib64"]):
        if os.path.exists(path) and not path.startswith("/usr/"):
            steps += [("folder", str(parent)) for parent in reversed(Path(path).parents) if str(parent) != "/"]
            steps.append(("bind", path, path))
    steps += [("device", f"/dev/{name}", f"/dev/{name}") for name in DEVICES]
    steps += [("link", "/proc/self/fd", "/dev/fd")]
    steps += [("link", f"/proc/self/fd/{i}", f"/dev/{name}") for i, name in enumerate(("stdin", "stdout", "stderr"))]
    steps.append(("tmpfs", str(SHM), "/dev/shm"))
    return list(dict.fromkeys(steps))


def _bwrap(tool: str, steps: list[Step], as_root: bool) -> list[str]:
    options = {"bind": "--ro-bind", "device": "--dev-bind", "link": "--symlink", "proc": "--proc"}
    command = [
        tool, "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
        "--die-with-parent", "--as-pid-1",
    ]  # fmt: skip
    for what, *args in steps:
        if what == "folder":
            command += ["--perms", "0755", "--dir", *args]
        elif what == "tmpfs":
            command += ["--perms", "1777", "--size", args[0], "--tmpfs", args[1]]
        else:
            command += [options[what], *args]
    command += ["--chdir", "/tmp", "--remount-ro", "/"]
    if as_root:
        return [*command, "--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--"]
    return [*command, "--unshare-user", "--uid", str(NOBODY), "--gid", str(NOBODY), "--"]


def _uids() -> tuple[int, int]:
    """(first, number) of the uids that root may use here, in their longest row; a container has few, perhaps one."""
    lines = [[int(n) for n in line.split()] for line in Path("/proc/self/uid_map").read_text().splitlines()]
    start, _, length = max(lines, key=lambda line: line[2])
    return start, min(length, 2**31 - start)


def fresh_uid() -> int:
    """A uid that nobody has: from the top of those that root may use, another one for each sandbox, so that the
    kernel's count of processes is of one sandbox."""
    start, length = _uids()
    return start + length - 1000 - (os.getpid() * 4099 + next(_numbers)) % min(2**20, length // 2)


# What a way in is tried with: it must work, and be closed.
TRIAL = """
import os, socket
found = []
if os.getuid() == 0: found.append("runs as root")
for path in ("/etc/shadow", "/etc/passwd", "/home", "/var", "/boot"):
    if os.path.exists(path): found.append(path + " can be seen")
for path in ("/", "/usr", "/dev", "/etc"):
    if os.access(path, os.W_OK): found.append(path + " can be written")
if len([p for p in os.listdir("/proc") if p.isdigit()]) != 2: found.append("other processes can be seen")
if os.listdir("/sys/class/net") if os.path.exists("/sys") else False: found.append("the network can be seen")
open("/tmp/x", "w").write("x")
print("; ".join(found) or "closed")
"""


def candidates(kind: str) -> list[Backend]:
    """The forms of a way on this machine, best first."""
    tool = {"bubblewrap": shutil.which("bwrap"), "namespaces": shutil.which("unshare"), "rlimits": ""}[kind]
    if tool is None or sys.platform != "linux":
        return []
    drops: list[Drop] = ["no"]
    if os.geteuid() == 0 and _uids()[1] >= 10_000:
        drops = ["outside", "no"] if kind == "rlimits" else ["inside", "outside"]
    return [Backend(kind, drop, tool) for drop in drops]


@functools.cache
def attempt(kind: str) -> tuple[Backend | None, str]:
    """The first form of a way that works here, and the words for it; or None, and what was found."""
    from r1pipe.sandbox.execute import Job, Limits, run

    package = {"bubblewrap": "bwrap", "namespaces": "unshare", "rlimits": "python"}[kind]
    said = f"{package} is not installed" if sys.platform == "linux" else f"not on {sys.platform}"
    for backend in candidates(kind):
        if backend.drop == "inside" and not os.path.exists(SETPRIV):
            said = f"{SETPRIV} (util-linux) is not installed"
            continue
        trial = TRIAL if backend.namespaces else "print('closed')"
        outcome = run(backend, Job(trial), Limits(time_s=10.0))
        if outcome.end == "exit" and outcome.stdout == b"closed\n":
            return backend, _words(backend)
        lines = [line for line in (outcome.stdout.decode() + outcome.stderr).split("\n") if line.strip()]
        said = f"{package} {backend.version()} fails: ".lstrip() + (lines[-1][:200] if lines else outcome.end)
    return None, said


def _words(backend: Backend) -> str:
    who = "a uid of its own" if backend.drop != "no" else f"uid {NOBODY}"
    if backend.namespaces:
        tool = f"{Path(backend.tool).name} {backend.version()}"
        return f"{tool}: each program in namespaces of its own, as {who}, no network, read-only root"
    who = "a uid of their own" if backend.drop != "no" else "root" if os.geteuid() == 0 else "the user who runs r1pipe"
    return f"limits only, NO isolation: programs run as {who}, and reach all that it may read, write and kill"


def find(kind: Kind = "auto") -> Backend:
    """The back-end of that name, tried out; `auto`: bubblewrap, else namespaces, never `rlimits`. Raises UserError
    with what was found and what to install."""
    tried = {}
    for name in ("bubblewrap", "namespaces") if kind == "auto" else (kind,):
        backend, tried[name] = attempt(name)
        if backend is not None:
            return backend
    found = "; ".join(f"{name}: {words}" for name, words in tried.items())
    raise UserError(f"programs cannot be isolated on this machine ({found})", hint=_hint(found))


def _hint(found: str) -> str:
    """The next step for what was found."""
    ways = []
    if "bwrap is not installed" in found:
        ways.append("apt-get install bubblewrap")
    restricted = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
    if restricted.is_file() and restricted.read_text().strip() == "1":
        ways.append(
            "allow bwrap its user namespaces (Ubuntu's AppArmor forbids them): an AppArmor profile for /usr/bin/bwrap "
            "with `userns,`, or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
        )
    for name, on in (("kernel/unprivileged_userns_clone", 1), ("user/max_user_namespaces", 10_000)):
        path = Path("/proc/sys") / name
        if path.is_file() and path.read_text().strip() == "0":
            ways.append(f"user namespaces are switched off: sysctl -w {name.replace('/', '.')}={on}")
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        ways.append(
            "in a container: docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined "
            "--security-opt systempaths=unconfined (and --cap-add SYS_ADMIN where the host allows no user namespaces)"
        )
    return "; or ".join([*ways, "`sandbox: rlimits` in the reward's options runs programs WITHOUT isolation"])


def probe() -> tuple[str, str]:
    """For `r1pipe doctor`: the name of the back-end that `auto` takes, or "none", and the words for it."""
    for name in ("bubblewrap", "namespaces"):
        backend, words = attempt(name)
        if backend is not None:
            return name, words
    found = "; ".join(f"{name}: {attempt(name)[1]}" for name in ("bubblewrap", "namespaces"))
    return "none", f"{found} → {_hint(found)}"
