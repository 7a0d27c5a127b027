"""The sandbox under attack: what a program can see, reach, use up and leave behind, in each way to isolate."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r1pipe import sandbox
from r1pipe.errors import UserError
from r1pipe.sandbox import Job, Limits, backends, cases, compare, execute, runner

WAYS = [kind for kind in ("bubblewrap", "namespaces") if backends.attempt(kind)[0] is not None]
needs_sandbox = pytest.mark.skipif(not WAYS, reason=f"no sandbox here: {backends.probe()[1]}")


@pytest.fixture(params=WAYS or [pytest.param("none", marks=pytest.mark.skip(reason=backends.probe()[1]))])
def way(request):
    return sandbox.find(request.param)


@pytest.fixture
def first():
    """The way that `auto` takes: for what does not depend on the way."""
    if not WAYS:
        pytest.skip(backends.probe()[1])
    return sandbox.find()


def run(way, program, stdin=b"", **limits):
    """The outcome, after a check that no descriptor is left open."""
    before = len(os.listdir("/proc/self/fd"))
    outcome = sandbox.run(way, Job(program, stdin), Limits(**limits))
    assert len(os.listdir("/proc/self/fd")) == before
    return outcome


def printed(way, program, stdin=b"", **limits):
    outcome = run(way, program, stdin, **limits)
    assert (outcome.end, outcome.code) == ("exit", 0), outcome
    return outcome.stdout.decode()


def named(name):
    """Processes, zombies too, that have called themselves so."""
    found = []
    for comm in Path("/proc").glob("[0-9]*/comm"):
        try:
            if comm.read_text().strip() == name:
                found.append(comm.parent.name)
        except OSError:
            continue
    return found


def calls_itself():
    """A name, and the line of a program that takes it; its forks have it too."""
    name = uuid.uuid4().hex[:12]
    return name, f"open('/proc/self/comm', 'w').write('{name}')\n"


def test_bubblewrap_is_used_where_it_is_installed():
    if shutil.which("bwrap"):
        assert sandbox.probe()[0] == "bubblewrap"
        assert sandbox.find().kind == "bubblewrap"


def test_runs_like_a_script(way):
    program = (
        "import sys, os\n"
        "if __name__ == '__main__':\n"
        "    print(input(), sys.stdin.read(), sys.argv, __file__, os.getcwd(), sys.flags.utf8_mode)\n"
        "    exit()\n"
    )
    assert printed(way, program, "é\nb".encode()) == "é b ['/tmp/main.py'] /tmp/main.py /tmp 1\n"


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("import sys; sys.exit(3)", 3), ("import os; os._exit(4)", 4), ("quit(5)", 5), ("1/0", 1),
        ("import os; os.kill(os.getpid(), 9)", -9), ("import os; os.abort()", -6), ("raise SystemExit", 0),
        ("input()", 1),
    ],
)  # fmt: skip
def test_exit_codes(first, program, code):
    outcome = run(first, program)
    assert (outcome.end, outcome.code) == ("exit", code)


@pytest.mark.parametrize(
    "program", ["def f(:", "print(1)\0", "x = '\udc80'", "(" * 50_000, "-" * 500_000 + "1", "﻿x = ="]
)
def test_what_does_not_compile(first, program):
    assert run(first, program).end == "program"


DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(60)
    os._exit(0)
print(7)
"""
SEES = """
import os
seen = [p for p in ("/etc/shadow", "/etc/passwd", "/etc/hosts", "/home", "/work", "/var", "/sys", "/opt", "/boot",
                    "/run", {home!r}, {repository!r}, "/proc/1/environ", "/proc/1/mem") if os.access(p, os.R_OK)]
print(seen, os.getuid() != 0, sorted(os.environ), [p for p in os.listdir("/proc") if p.isdigit()] == ["1", "2"])
"""


def test_sees_nothing_of_this_machine(way, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "secret")
    home = os.path.expanduser("~") + "/.ssh"
    said = printed(way, SEES.format(home=home, repository=str(Path(__file__).parents[1])))
    names = {"HOME", "LANG", "MALLOC_ARENA_MAX", "PATH", "PWD", "PYTHONHASHSEED", "PYTHONUTF8"}
    assert said.startswith("[] True [") and said.endswith(" True\n")
    assert set(eval(said[len("[] True ") : -len(" True\n")])) <= names  # noqa: S307 (a list of strings, our own text)


def test_writes_nowhere_but_in_its_own_folders(way):
    program = (
        "import os\n"
        "for p in ('/x', '/etc/x', '/usr/x', '/usr/bin/x', '/dev/x', '/proc/sys/kernel/hostname', os.__file__):\n"
        "    try: open(p, 'a').write('x'); print('wrote', p)\n"
        "    except OSError: pass\n"
        "open('/tmp/r1x', 'w').write('x'); open('/dev/shm/x', 'w').write('x'); open('/dev/null', 'w').write('x')\n"
        "print(sorted(os.listdir('/tmp')))\n"
    )
    for _ in range(2):  # and the next program finds nothing of it
        assert printed(way, program) == "['main.py', 'r1x']\n"
    assert not os.path.exists("/tmp/r1x")


def test_no_network(way):
    server = __import__("socket").create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    program = (
        "import socket\n"
        f"try: socket.create_connection(('127.0.0.1', {port}), 2); print('connected')\n"
        "except OSError as e: print('refused')\n"
        "for kind in (2, 10, 16, 17, 38, 40):\n"
        "    try: socket.socket(kind, socket.SOCK_DGRAM); print('opened', kind)\n"
        "    except OSError: pass\n"
        "a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1))\n"
        "import urllib.request\n"
        f"try: urllib.request.urlopen('http://localhost:{port}', timeout=2)\n"
        "except OSError: print('no page')\n"
    )
    with server:
        assert printed(way, program) == "refused\nb'x'\nno page\n"


def test_system_calls_that_are_refused(way):
    program = (
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "for name, *args in (('unshare', 0x10000000), ('ptrace', 16, 1, 0, 0), ('shmget', 0, 1 << 30, 0o1600),\n"
        "                    ('mount', b'x', b'/tmp', b'tmpfs', 0, None), ('memfd_create', b'x', 0)):\n"
        "    print(name, getattr(libc, name)(*args) == -1)\n"
        "import resource\n"
        "try: resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0)); print('limited')\n"
        "except OSError: pass\n"
    )
    said = printed(way, program)
    assert "False" not in said and "limited" not in said


def test_parent_and_others_survive(way):
    program = (
        "import os, signal\n"
        "for pid in (1, os.getppid(), -1):\n"
        "    for s in (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP):\n"
        "        try: os.kill(pid, s)\n"
        "        except OSError: pass\n"
        f"for pid in ({os.getpid()}, {os.getppid()}):\n"
        "    try: os.kill(pid, signal.SIGKILL)\n"
        "    except OSError: pass\n"
        "print(7)\n"
    )
    assert printed(way, program) == "7\n"


@pytest.mark.parametrize(
    "program",
    [
        "import subprocess\nsubprocess.Popen(['sleep', '60'])\nprint(7)",
        DAEMON,
        "import os, time\nos.system('sleep 60 &')\nprint(7, flush=True)\nos._exit(0)",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\nprint(7)",
    ],
)
def test_what_the_program_leaves_running_ends_with_it(first, program):
    name, takes = calls_itself()
    started = time.monotonic()
    assert printed(first, takes + program) == "7\n"
    assert time.monotonic() - started < 5
    assert not named(name) and not named("sleep 60")


@pytest.mark.parametrize(
    ("program", "ends"),
    [
        ("while True: pass", {"time"}),
        ("import time\ntime.sleep(60)", {"time"}),
        ("import os\nos.close(1); os.close(2)\nwhile True: pass", {"time"}),
        ("import signal\nfor s in range(1, 65):\n  try: signal.signal(s, signal.SIG_IGN)\n"
         "  except (OSError, ValueError): pass\nwhile True: signal.pause()", {"time"}),
        ("import os\nfor _ in range(3): os.fork()\nwhile True: pass", {"time"}),
        ("import os\nwhile True:\n  try: os.fork()\n  except OSError: pass", {"time", "processes"}),
        ("import threading, time\nwhile True:\n  try: threading.Thread(target=time.sleep, args=(9,)).start()\n"
         "  except RuntimeError: pass", {"time", "processes"}),
        ("import os\nos.kill(os.getpid(), 19)", {"time"}),
        ("import os, time\nif os.fork(): os._exit(0) if os.fork() else time.sleep(60)\ntime.sleep(60)", {"exit"}),
    ],
)  # fmt: skip
def test_time_and_processes(first, program, ends):
    name, takes = calls_itself()
    started = time.monotonic()
    assert run(first, takes + program, time_s=0.7).end in ends
    assert time.monotonic() - started < 20  # machines are loaded; the limit is a second
    assert not named(name)


def test_many_forks(way):
    """A bounded stand-in for a fork bomb: 2^9 processes are asked for, 32 allowed."""
    name, takes = calls_itself()
    program = takes + (
        "import os, time\nfor _ in range(9):\n  try: os.fork()\n  except OSError: print('no', flush=True)\n"
        "time.sleep(0.3)"
    )
    outcome = run(way, program, processes=32)
    assert "no" in outcome.stdout.decode() or outcome.end == "processes"
    assert not named(name)


@pytest.mark.parametrize(
    "program",
    [
        "x = bytearray(40 * 2**30)",
        "x = b'1' * (300 * 2**20)\nimport time\ntime.sleep(5)",
        "x = b'1' * (300 * 2**20)",  # gone before anybody looks
        "import os, time\nfor _ in range(6):\n  if not os.fork():\n    x = b'1' * 2**26\n    break\ntime.sleep(9)",
        "import mmap\nm = mmap.mmap(-1, 400 * 2**20)\nfor i in range(0, len(m), 4096): m[i] = 1",
        "import os, time, ctypes\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\nx = b'1' * (300 * 2**20)\ntime.sleep(5)",
    ],
)  # fmt: skip
def test_memory(first, program):
    outcome = run(first, program + "\nprint(7)", memory_mb=200, time_s=20)
    assert outcome.end == "memory" or (outcome.code == 1 and "MemoryError" in outcome.stderr), outcome


def test_memory_that_forks_share_counts_once(first):
    program = (
        "import os, time\nx = b'1' * (80 * 2**20)\n"
        "pids = [os.fork() or (time.sleep(0.3), os._exit(0)) for _ in range(6)]\n"
        "for p in pids: os.waitpid(p, 0)\nprint(7)"
    )
    assert printed(first, program, memory_mb=200) == "7\n"


@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm"])
def test_disk(first, folder):
    program = (
        f"n = 0\ntry:\n  for i in range(60):\n    open(f'{folder}/{{i}}', 'wb').write(b'x' * 4 * 2**20); n += 4\n"
        "except OSError: print(n <= 64)"
    )
    assert printed(first, program) == "True\n"
    one = (
        "try:\n  with open('/tmp/x', 'wb') as f:\n    while True: f.write(b'x' * 2**20)\nexcept OSError: print('full')"
    )
    assert printed(first, one) == "full\n"


def test_many_small_files(first):
    assert run(first, "i = 0\nwhile True: open(f'/tmp/{i}', 'w').close(); i += 1", time_s=20).end == "disk"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_output(first, stream):
    program = f"import sys\nwhile True: sys.{stream}.write('x' * 1000)"
    started = time.monotonic()
    outcome = run(first, program, output_kb=64, time_s=20)
    assert outcome.end == "output" and len(outcome.stdout) <= 64 * 1024
    assert time.monotonic() - started < 10
    assert run(first, f"import sys\nsys.{stream}.write('x' * 60_000)", output_kb=64).end == "exit"


def test_streams(first):
    big = b"x" * 3_000_000
    assert printed(first, "print(7)", big) == "7\n"  # larger than a pipe, and never read
    assert printed(first, "import sys\nprint(len(sys.stdin.read()))", big) == "3000000\n"
    assert printed(first, "import sys\nprint(len(sys.stdin.read()))") == "0\n"
    assert printed(first, "print(open('/dev/stdin').read(), open(0).read())", b"ab") == "ab ab\n"
    assert run(first, "import sys\nsys.stdout.buffer.write(b'\\xff\\xfe')").stdout == b"\xff\xfe"
    assert printed(first, "import os\nprint(7, flush=True)\nos.close(1)") == "7\n"


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import threading, sys\nsys.setrecursionlimit(10**6)\nthreading.stack_size(2**27)\n"
         "def f(n): return n and 1 + f(n - 1)\n"
         "t = threading.Thread(target=lambda: print(f(50_000)))\nt.start(); t.join()", "50000"),
        ("from multiprocessing import Pool\ndef f(x): return x * x\nif __name__ == '__main__':\n"
         "  with Pool(3) as p: print(p.map(f, range(4)))", "[0, 1, 4, 9]"),
        ("import asyncio\nasync def f(): await asyncio.sleep(0.01); print(5)\nasyncio.run(f())", "5"),
        ("from concurrent.futures import ThreadPoolExecutor as P\nwith P(30) as p: print(sum(p.map(abs, range(99))))",
         "4851"),
        ("import dataclasses, pickle\n@dataclasses.dataclass\nclass A:\n  x: int\n"
         "print(pickle.loads(pickle.dumps(A(3))))", "A(x=3)"),
        ("import atexit\natexit.register(print, 'bye')\nprint('hi')", "hi\nbye"),
        ("print({'a', 'b', 'c', 'd', 'e'} == {'e', 'd', 'c', 'b', 'a'}, hash('a'))", None),
        ("import math, decimal, fractions, heapq, bisect, itertools, functools, collections, re, string, random, "
         "json, statistics, datetime, zoneinfo\nprint(7)", "7"),
    ],
)  # fmt: skip
def test_programs_that_are_allowed(first, program, said):
    once = printed(first, program)
    assert once == printed(first, program)
    if said is not None:
        assert once == said + "\n"


def test_from_threads(first):
    found = []

    def one(i):
        found.append(sandbox.run(first, Job(f"print({i})"), Limits()).stdout == f"{i}\n".encode())

    threads = [threading.Thread(target=one, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 8


def test_no_zombie_and_no_folder_is_left(first):
    before = set(Path("/tmp").glob("r1pipe-*"))
    others = {child.pid for child in psutil.Process().children()}  # workers that other tests left running
    for program in ("print(1)", "while True: pass"):
        run(first, program, time_s=0.3)
    assert {child.pid for child in psutil.Process().children()} == others
    assert set(Path("/tmp").glob("r1pipe-*")) == before


def test_ends_with_a_killed_parent(way):
    name, takes = calls_itself()
    code = (
        f"from r1pipe.sandbox import *\nrun(find({way.kind!r}), Job({takes + 'import time; time.sleep(60)'!r}), "
        "Limits(time_s=60))"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    until = time.monotonic() + 30
    while not named(name) and time.monotonic() < until:
        time.sleep(0.05)
    assert named(name)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    while named(name) and time.monotonic() < until:
        time.sleep(0.05)
    assert not named(name)


def test_a_sandbox_that_does_not_start_is_not_the_programs_fault():
    broken = backends.Backend("bubblewrap", "no", "/bin/false")
    assert run(broken, "print(1)").end == "failed"
    assert run(backends.Backend("bubblewrap", "no", "/nowhere/bwrap"), "print(1)").end == "failed"


def test_what_to_install_is_said(monkeypatch):
    monkeypatch.setattr(backends.shutil, "which", lambda name: None)
    backends.attempt.cache_clear()
    try:
        assert sandbox.probe()[0] == "none"
        with pytest.raises(UserError) as raised:
            sandbox.find("auto")
    finally:
        backends.attempt.cache_clear()
    assert "bwrap is not installed" in raised.value.message
    assert "apt-get install bubblewrap" in raised.value.hint and "rlimits" in raised.value.hint


def test_rlimits():
    """No isolation, but limits, and nothing of a well-behaved program is left. Nothing dangerous here."""
    way = sandbox.find("rlimits")
    assert not way.namespaces
    assert printed(way, "print(input())", b"7\n") == "7\n"
    name, takes = calls_itself()
    assert printed(way, takes + DAEMON) == "7\n"
    assert not named(name)
    assert run(way, takes + "import time\ntime.sleep(60)", time_s=0.5).end == "time"
    assert run(way, "x = b'1' * (300 * 2**20)", memory_mb=200).end == "memory"
    forks = "import os, time\nfor _ in range(60):\n  if os.fork() == 0: time.sleep(60)\ntime.sleep(9)"
    outcome = run(way, takes + forks, processes=20)
    assert outcome.end == "processes"
    assert not named(name)
    assert "Operation not permitted" in run(way, "import os\nos.kill(-1, 0)").stderr
    assert "Operation not permitted" in run(way, "import socket\nsocket.socket()").stderr
    assert not list(Path("/tmp").glob("r1pipe-*/main.py"))


def other_python():
    """A Python that other users can start; this one may stand in root's home."""
    path = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if path and os.geteuid() == 0:
        said = subprocess.run([path, "-c", "import sys; print(sys.version_info >= (3, 11))"], capture_output=True)
        return path if said.stdout == b"True\n" else None
    return None


@pytest.fixture
def readable():
    """A copy of the sandbox that every user can import; the checkout may be in a private folder."""
    package = Path(sandbox.__file__).parents[1]
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        shutil.copytree(package / "sandbox", f"{folder}/r1pipe/sandbox", ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("__init__.py", "errors.py"):
            shutil.copy(package / name, f"{folder}/r1pipe/{name}")
        subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
        yield folder


@needs_sandbox
@pytest.mark.skipif(other_python() is None, reason="needs root, and a system Python of 3.11 or later")
@pytest.mark.parametrize("user", [54321, 0])
def test_as_a_user_and_as_a_root_that_may_not_mount(user, readable):
    code = (
        "from r1pipe.sandbox import *\nfrom r1pipe.sandbox import backends\n"
        "ways = [b for k in ('bubblewrap', 'namespaces') for b in backends.candidates(k) if b.drop != 'inside']\n"
        "bomb = 'import os, time\\nfor _ in range(9):\\n  try: os.fork()\\n  except OSError: print(0)\\n'\n"
        "bomb += 'time.sleep(0.3)'\n"
        "for b in ways:\n"
        "    print(b.kind, b.drop, run(b, Job(backends.TRIAL), Limits()).stdout,"
        " b'0' in run(b, Job(bomb), Limits(processes=20)).stdout)\n"
    )
    command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", other_python(), "-B", "-c", code]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={"PYTHONPATH": readable}, cwd="/", check=False
    )
    drop = "outside" if user == 0 else "no"
    assert done.stdout.splitlines() == [f"{kind} {drop} b'closed\\n' True" for kind in WAYS], done.stderr


# Values and text


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.complex_numbers(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text() | st.integers() | st.booleans(), inner, max_size=4)
        | st.sets(st.integers() | st.text() | st.floats(allow_nan=False), max_size=4)
    ),
    max_leaves=12,
)


@given(plain)
@settings(max_examples=100, deadline=None)
def test_a_value_equals_itself_and_its_literal(value):
    assert compare.value(runner.encode(value).encode(), value, 0.0)
    assert compare.value(runner.encode(compare.literal(repr(value))).encode(), value, 0.0)


@pytest.mark.parametrize(
    ("got", "expected", "same"),
    [
        (1, True, False), (True, 1, False), (3.0, 3, True), (3, 3.0, True), (3.0000001, 3, False),
        (3.0000001, 3.0, True),
        ((1, 2), [1, 2], False), ([1, 2], (1, 2), False), ([(1, 2)], [(1, 2)], True), ([], (), False),
        ("1", 1, False),
        ({1, 2}, [1, 2], False), ({2, 1}, {1, 2}, True), (frozenset({1}), {1}, True), ({0.1 + 0.2}, {0.3}, True),
        ({1: "a", 2: "b"}, {2: "b", 1: "a"}, True), ({1: 2}, {True: 2}, False), ({"a": 1}, {"a": 1, "b": 2}, False),
        (float("nan"), 0.5, False), (0.5, float("nan"), False), (float("nan"), float("nan"), True),
        (float("inf"), 1e300, False), (float("inf"), float("inf"), True), (float("-inf"), float("inf"), False),
        (10**400, 1.0, False), (10**400, 10**400, True), (10**400 + 1, 10**400, False), (None, 0, False),
        (0, None, False),
        ("é\u2028\ud800", "é\u2028\ud800", True), (b"a", "a", False), ([0.1 + 0.2], [0.3], True), (1j, 1j, True),
        (1e-9, 0.0, True), ([1], 1, False), (-0.0, 0, True),
    ],
)  # fmt: skip
def test_values(got, expected, same):
    assert compare.value(runner.encode(got).encode(), expected, 1e-6) is same


def test_encode_reads_what_is_there_not_what_it_says():
    class Liar(int):
        def __eq__(self, other):
            return True

        def __hash__(self):
            return 7

        def __format__(self, spec):
            return "7"

        def __repr__(self):
            return "7"

    class Text(str):
        def __str__(self):
            return "right"

    class Items(list):
        def __iter__(self):
            return iter([7])

    assert compare.value(runner.encode(Liar(5)).encode(), 5, 0.0)
    assert compare.value(runner.encode(Text("wrong")).encode(), "wrong", 0.0)
    assert compare.value(runner.encode(Items([1])).encode(), [1], 0.0)
    with pytest.raises(TypeError, match="not plain data"):
        runner.encode([object()])


@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda t: t.encode(errors="replace")), plain)
@settings(max_examples=100, deadline=None)
def test_invented_values_never_raise(data, expected):
    assert compare.value(data, expected, 1e-6) in (True, False)
    assert compare.text(data, repr(expected), 1e-6) in (True, False)


def test_hostile_values_end():
    for data in (
        b"[" * 100_000,
        b'["l",' * 50_000,
        b'["i","' + b"f" * 1_000_000 + b'"]',
        b'["f","x"]',
        b'["d",[1]]',
        b"",
    ):
        for expected in (1, [1], {1: 2}, {1}, 1.0, "x", None, ((1,),)):
            assert compare.value(data, expected, 1e-6) is False


@pytest.mark.parametrize(
    ("got", "expected", "same"),
    [
        ("1\n2\n", "1\r\n2\r\n", True), ("1\r\n2", "1\n2\n\n", True), ("1  \n2\t\n\n\n", "1\n2", True),
        ("\n\n1", "1", True),
        ("1", "1\n2\n3", False), ("1\n2", "1", False), ("1\n\n2", "1\n2", False), ("", "", True), ("", "0", False),
        ("0.333333", "0.333333333", True), ("1000000", "1000001", False), ("0.5", "0.6", False), ("3.0", "3", False),
        ("3", "3.0", True), ("nan", "0.5", False), ("inf", "1e300", False), ("1e999", "1e300", False),
        ("nan", "nan", True),
        ("1e-3", "0.001", True), ("1000000.5", "1000001.0", True), ("1000002.5", "1000001.0", False),
        ("1_0.0", "10.0", False),
        ("１.0", "1.0", False), ("a b", "a  b", False), ("a  b", "a b", True), (" x\nxx", " x\nxx", True),
        ("x\nxx", " x\nxx", False),
        ("yes", "YES", False), ("1 2.0000001", "1 2.0", True), ("x=0.5", "x=0.50", False), ("é", "é", True),
        ("1" * 5000 + ".0", "1.0", False),
        ("0.1 0.2", "0.1", False), ("  1", "1", True),
    ],
)  # fmt: skip
def test_text(got, expected, same):
    assert compare.text(got.encode(), expected, 1e-6) is same


def test_bytes_that_are_no_text():
    assert not compare.text(b"\xff\xfe", "7", 1e-6)
    assert not compare.text(b"\xff", "\ufffd", 1e-6)


@pytest.mark.parametrize("text", ["", "((", "f(1)", "a.b", "x", "[1, x]", "1 if 1 else 2", "...",
                                  "__import__('os')",
                                  "-" * 100_000 + "1", "(" * 1000, "1+" * 50_000 + "1",
                                  "{**{}}", "{[1]}", "-True", "'a' 1"])  # fmt: skip
def test_what_is_no_literal(text):
    with pytest.raises(ValueError):
        compare.literal(text)


@pytest.mark.parametrize(
    ("tests", "words"),
    [
        ([], "no tests"), (None, "no tests"), ("[", "neither"), ({"x": 1}, "no tests"), ([1], "test 1"),
        ([{}], "nothing"),
        ([{"stdin": "x"}], "stdin"), ([{"stdin": "", "stdout": 7}], "text"),
        ([{"stdin": "", "stdout": " \n"}], "any output"),
        ([{"call": "f()"}], "value"), ([{"call": "f()", "value": "(("}], "literal"),
        ([{"call": "", "value": "1"}], "call"),
        ([{"call": "f()", "value": "hello"}], "quotes"), ([{"type": "unit_test"}], "unknown type"),
        ([{"type": "function_call", "fn_name": "f()", "input": [], "output": 1}], "fn_name"),
        ([{"type": "function_call", "fn_name": "f", "input": "(", "output": 1}], "JSON"),
    ],
)  # fmt: skip
def test_tests_that_cannot_be_used(tests, words):
    with pytest.raises(ValueError, match=words):
        cases.read(tests)


def test_a_stopped_supervisor_does_not_hold_the_parent(monkeypatch):
    """Without namespaces a program can stop its supervisor."""
    monkeypatch.setattr(execute, "GRACE_S", 0.5)
    way = sandbox.find("rlimits")
    started = time.monotonic()
    program = "import os, time\nos.kill(os.getppid(), 19)\nwhile os.getppid() != 1: time.sleep(0.05)"
    assert run(way, program, time_s=0.5).end == "time"
    assert time.monotonic() - started < 20
