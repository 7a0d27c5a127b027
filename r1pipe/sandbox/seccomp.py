"""A system-call filter for the programs: what a solution never needs, and what the other limits cannot see.

Refused: sockets but those of one machine's processes (no network, no vsock, no netlink), new namespaces and mounts,
other processes' memory and limits, signals to everybody, kernel interfaces with a history of holes (bpf, io_uring,
keys, userfaultfd, ...), and memory that no limit counts (memfd, System V segments and queues). The rest is allowed.
The numbers are those of the kernel's system-call tables for the two machines below; elsewhere there is no filter,
and the code reward's `facts` say so.
"""

from __future__ import annotations

import errno
import platform
import struct

_SINCE_5_1 = {  # the same numbers on every machine
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_getfd": 438, "mount_setattr": 442,
    "memfd_secret": 447,
}  # fmt: skip
_X86_64 = {
    "shmget": 29, "semget": 64, "msgget": 68, "ptrace": 101, "syslog": 103, "personality": 135, "pivot_root": 155,
    "chroot": 161, "acct": 163, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169,
    "init_module": 175, "delete_module": 176, "quotactl": 179, "kexec_load": 246, "add_key": 248, "request_key": 249,
    "keyctl": 250, "unshare": 272, "perf_event_open": 298, "name_to_handle_at": 303, "open_by_handle_at": 304,
    "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "finit_module": 313,
    "memfd_create": 319, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
}  # fmt: skip
_AARCH64 = {
    "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51, "quotactl": 60, "acct": 89, "personality": 92,
    "unshare": 97, "kexec_load": 104, "init_module": 105, "delete_module": 106, "syslog": 116, "ptrace": 117,
    "reboot": 142, "msgget": 186, "semget": 190, "shmget": 194, "add_key": 217, "request_key": 218, "keyctl": 219,
    "swapon": 224, "swapoff": 225, "perf_event_open": 241, "name_to_handle_at": 264, "open_by_handle_at": 265,
    "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "finit_module": 273,
    "memfd_create": 279, "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294,
}  # fmt: skip
# machine -> (audit architecture, refused, clone, socket, prlimit64, kill)
_MACHINES = {
    "x86_64": (0xC000003E, _X86_64, 56, 41, 302, 62),
    "aarch64": (0xC00000B7, _AARCH64, 220, 198, 261, 129),
}
_CLONE3 = 435
_NEW_NAMESPACES = 0x7E020000  # the CLONE_NEW* flags
_AF_UNIX = 1
_EVERYBODY = 0xFFFFFFFF  # kill(-1, ...): without namespaces that is all that the user runs

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _FIRST = 0, 4, 16  # offsets in struct seccomp_data; the low half of the first argument
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000


def program(machine: str | None = None) -> bytes | None:
    """The filter as an array of `struct sock_filter`; None where the machine is not known."""
    known = _MACHINES.get(machine or platform.machine())
    if known is None:
        return None
    arch, refused, clone, socket, prlimit, kill = known
    deny = _ERRNO | errno.EPERM
    code = [
        (_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, arch), (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER), (_AT_LEAST, 0, 1, 0x40000000), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),  # x32
        (_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),  # libc falls back to clone, whose flags show
    ]  # fmt: skip
    for number in sorted({**refused, **_SINCE_5_1}.values()):
        code += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, deny)]
    code += [
        (_EQUAL, 0, 4, clone), (_LOAD, 0, 0, _FIRST), (_ANY_BIT, 0, 1, _NEW_NAMESPACES),
        (_RETURN, 0, 0, deny), (_RETURN, 0, 0, _ALLOW),
        (_EQUAL, 0, 4, socket), (_LOAD, 0, 0, _FIRST), (_EQUAL, 1, 0, _AF_UNIX),
        (_RETURN, 0, 0, deny), (_RETURN, 0, 0, _ALLOW),
        (_EQUAL, 0, 4, kill), (_LOAD, 0, 0, _FIRST), (_EQUAL, 0, 1, _EVERYBODY),
        (_RETURN, 0, 0, deny), (_RETURN, 0, 0, _ALLOW),
        (_EQUAL, 0, 4, prlimit), (_LOAD, 0, 0, _FIRST), (_EQUAL, 1, 0, 0),
        (_RETURN, 0, 0, deny), (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _ALLOW),
    ]  # fmt: skip
    return b"".join(struct.pack("<HBBI", *line) for line in code)
