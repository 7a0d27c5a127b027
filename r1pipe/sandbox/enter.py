"""Process 1 of the `namespaces` back-end, before the supervisor: builds the root folder that the program sees.

Runs in fresh mount, PID, network, IPC and UTS namespaces (unshare(1) made them), as root of them; replaces the root
with a small one, gives up every privilege, and starts the next command. Kernel 5.12 or later.
"""

from __future__ import annotations

import os
from typing import Any

_NOSUID, _NODEV, _NOEXEC, _BIND, _REC, _PRIVATE, _DETACH = 2, 4, 8, 4096, 16384, 1 << 18, 2
_READ_ONLY = 1 | 2 | 4  # MOUNT_ATTR_RDONLY, _NOSUID, _NODEV
_AT_FDCWD, _AT_RECURSIVE, _MOUNT_SETATTR, _NEWUSER = -100, 0x8000, 442, 0x10000000
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}


def main(steps: list[tuple[str, ...]], uid: int | None, command: list[str]) -> None:
    """`steps` as `backends.layout` gives them. `uid`: the uid seen inside, where a user namespace maps it; None where
    the command drops to one itself. Never returns."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)

    def call(name: str, *args: Any) -> None:
        values = [a.encode() if isinstance(a, str) else a for a in args]
        if getattr(libc, name)(*values) != 0:
            raise OSError(ctypes.get_errno(), f"{name}{args}: {os.strerror(ctypes.get_errno())}")

    def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
        call("mount", source, target, kind, ctypes.c_ulong(flags), data)

    def protect(path: str, flags: int) -> None:
        attributes = (ctypes.c_uint64 * 4)(_READ_ONLY)
        call("syscall", ctypes.c_long(_MOUNT_SETATTR), _AT_FDCWD, path, flags, attributes, ctypes.c_size_t(32))

    def pivot(new: str, old: str) -> None:
        call("syscall", ctypes.c_long(_PIVOT_ROOT[os.uname().machine]), new, old)
        os.chdir("/")

    os.umask(0o022)
    mount("none", "/", None, _REC | _PRIVATE)
    mount("tmpfs", "/tmp", "tmpfs", _NOSUID | _NODEV)
    for folder in ("/tmp/old", "/tmp/new"):
        os.mkdir(folder)
    pivot("/tmp", "/tmp/old")
    mount("tmpfs", "/new", "tmpfs", _NOSUID | _NODEV, "size=1m,mode=755")
    for what, *args in steps:
        target = "/new" + args[-1]
        if what == "folder":
            os.makedirs(target, exist_ok=True)
        elif what == "link":
            os.symlink(args[0], target)
        elif what == "tmpfs":
            os.makedirs(target, exist_ok=True)
            mount("tmpfs", target, "tmpfs", _NOSUID | _NODEV, f"size={args[0]},mode=1777")
        elif what == "proc":
            os.mkdir(target)
            mount("proc", target, "proc", _NOSUID | _NODEV | _NOEXEC)
        else:  # bind, device
            source = "/old" + args[0]
            if os.path.isdir(source):
                os.makedirs(target, exist_ok=True)
            else:
                open(target, "w").close()
            mount(source, target, None, _BIND | _REC)
            if what == "bind":
                protect(target, _AT_RECURSIVE)
    os.chdir("/new")
    pivot(".", ".")
    call("umount2", ".", _DETACH)
    for folder in ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"):
        if os.path.exists(folder):
            mount(folder, folder, None, _BIND | _REC)
            protect(folder, _AT_RECURSIVE)
    protect("/", 0)
    if uid is not None:
        group = os.getegid(), os.geteuid()
        call("unshare", _NEWUSER)
        for name, text in (
            ("setgroups", "deny"),
            ("gid_map", f"{uid} {group[0]} 1"),
            ("uid_map", f"{uid} {group[1]} 1"),
        ):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    os.execv(command[0], command)
