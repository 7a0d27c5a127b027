"""Code reward: the share of the tests that the program of the answer passes, each test in a sandbox of its own.

The program is the last fenced block of Python in the answer region (`extract.code_block`); without a fence, the whole
region. Python only, its standard library only. Every test counts, whether it ran or not: a program that ends early
gains nothing. A test is passed when the program ends by itself, in time, with exit code 0, and what it printed or
returned is what was expected (`r1pipe/sandbox/compare.py` says how that is compared, `cases.py` how tests are
written). What is expected never enters the sandbox.

Policies: processes that the program leaves running are killed and cost nothing. A program that has spent
`sample_limit_s` on tests it did not pass fails the rest unrun. More than `max_tests` tests: evenly chosen ones, the
same for every completion. Sets print in the same order each time (a fixed hash seed).

Whose fault: no program, one that does not compile: 0.0, unverifiable. No test passed and a limit reached: 0.0,
timeout. Tests that are missing or malformed, a sandbox that does not start, a test that was not reached before
`batch_limit_s`: None. Without bubblewrap or namespaces there is no reward but an error, unless `sandbox: rlimits`
asks for programs to be run with limits alone, where they can read and write what the user can.

Not covered: holes of the kernel; side channels; a program that computes its answer by looking at the clock or at the
machine. Memory that the kernel holds for a process (sockets, page tables) is bounded by the other limits only.
`r1pipe/sandbox/README.md` says more.
"""

from __future__ import annotations

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from pydantic import Field

from r1pipe.chat import Tags
from r1pipe.rewards import extract
from r1pipe.rewards.verdict import NO_THINKING_END, Context, Row, Verdict
from r1pipe.sandbox import Kind, Limits, Outcome, cases, find, seccomp
from r1pipe.sandbox import run as run_job
from r1pipe.settings import Strict

VERSION = "1"
COLUMNS = ("tests", "verification_info", "time_limit_s")
MAX_PROGRAM = 200_000  # characters; longer programs are not run


class Options(Strict):
    """Options of the `code` part."""

    sandbox: Kind = Field(
        "auto",
        description="auto (bubblewrap, else namespaces), or one of them; rlimits runs programs WITHOUT isolation.",
    )
    require_think: bool = Field(True, description="No answer without a closing think tag.")
    time_limit_s: float = Field(5.0, gt=0, le=600, description="Seconds a test, where the row has no time_limit_s.")
    sample_limit_s: float = Field(30.0, gt=0, description="Seconds a program may spend on tests it does not pass.")
    batch_limit_s: float = Field(600.0, gt=0, description="Seconds a batch; tests not begun by then are our fault.")
    memory_mb: int = Field(1024, ge=32, description="Memory of a program and all that it starts.")
    processes: int = Field(64, ge=1, description="Processes and threads of a program.")
    output_kb: int = Field(1024, ge=1, description="Output of a test, stdout and stderr together.")
    workers: int | None = Field(None, ge=1, description="Tests that run at once (null: one a core of this rank).")
    tolerance: float = Field(1e-6, ge=0, description="Of decimals: absolute, and relative to what is expected.")
    max_tests: int = Field(100, ge=1, description="Tests of a row that are run.")


@dataclass(frozen=True)
class Result:
    """One test of a program: passed or not, and why not."""

    passed: bool
    end: str  # as Outcome.end; "unrun": the sample's time was used up, or the batch's ("late")
    detail: str = ""


@dataclass(eq=False)
class _Sample:
    """A program and its tests, and what has come of them so far."""

    program: str
    tests: list[cases.Case]
    limits: Limits
    results: dict[int, Result] = field(default_factory=dict)
    lost_s: float = 0.0  # spent on tests that were not passed
    broken: Result | None = None  # the program does not compile

    def verdict(self, detail: str) -> Verdict:
        results = list(self.results.values())
        ours = next((r for r in results if r.end in ("failed", "call", "late")), None)
        if ours is not None:
            return Verdict(None, "error", ours.detail)
        passed = sum(r.passed for r in results)
        if self.broken is not None:
            return Verdict(0.0, "unverifiable", self.broken.detail)
        limit = next((r for r in results if r.end not in ("exit", "unrun")), None)
        if not passed and limit is not None:
            return Verdict(0.0, "timeout", limit.detail)
        return Verdict(passed / len(self.tests), "scored", detail)


class Code:
    """Batch form of `verify`; the completions are whole. Raises UserError where programs cannot be isolated."""

    def __init__(self, options: Options, context: Context) -> None:
        self.options, self.context = options, context
        self.backend = find(options.sandbox)

    def __call__(self, completions: list[str], rows: list[Row]) -> list[Verdict]:
        samples: dict[tuple[str, str, float], _Sample] = {}
        found: list[_Sample | Verdict] = []
        for completion, row in zip(completions, rows, strict=True):
            found.append(self._sample(completion, row, samples))
        self.run(list(samples.values()))
        remark = "" if self.backend.namespaces else "programs run WITHOUT isolation (sandbox: rlimits)"
        return [item if isinstance(item, Verdict) else item.verdict(remark) for item in found]

    def facts(self) -> dict[str, Any]:
        """For the manifest: how programs were isolated."""
        return {
            "sandbox": self.backend.kind,
            "sandbox_isolates": self.backend.namespaces,
            "sandbox_filter": seccomp.program() is not None,
        }

    def _sample(self, completion: str, row: Row, samples: dict[tuple[str, str, float], _Sample]) -> _Sample | Verdict:
        """What is to be run, the same object for equal ones; or the verdict."""
        try:
            source = _source(row)
            tests = _read(source)
            time_s = _time_limit(row, self.options.time_limit_s)
        except ValueError as error:
            return Verdict(None, "error", str(error))
        region = extract.region(
            completion,
            self.context.tags,
            require_think=self.options.require_think,
            prefilled=self.context.prefilled,
        )
        if region is None:
            return NO_THINKING_END
        program = _program(region)
        if not program.strip():
            return Verdict(0.0, "unverifiable", "no program")
        if len(program) > MAX_PROGRAM:
            return Verdict(0.0, "unverifiable", f"the program is longer than {MAX_PROGRAM} characters")
        key = program, source, time_s
        if key not in samples:
            samples[key] = self.sample(program, tests, time_s)
        return samples[key]

    def sample(self, program: str, tests: list[cases.Case], time_s: float) -> _Sample:
        options = self.options
        limits = Limits(time_s, options.memory_mb, options.processes, options.output_kb)
        return _Sample(program, _chosen(tests, options.max_tests), limits)

    def run(self, samples: list[_Sample]) -> None:
        """Fills in the results: the first test of each sample, then the second of each, ..."""
        until = time.monotonic() + self.options.batch_limit_s
        lock = threading.Lock()

        def one(sample: _Sample, index: int) -> None:
            with lock:
                result = sample.broken
                if result is None and sample.lost_s >= self.options.sample_limit_s:
                    result = Result(False, "unrun", f"over {self.options.sample_limit_s:g} s on tests not passed")
            if result is None and time.monotonic() > until:
                result = Result(False, "late", f"the batch took over {self.options.batch_limit_s:g} s (batch_limit_s)")
            seconds = 0.0
            if result is None:
                result, seconds = self._test(sample, sample.tests[index])
            with lock:
                sample.results[index] = result
                sample.lost_s += 0.0 if result.passed else seconds
                if result.end == "program":
                    sample.broken = result

        most = max((len(sample.tests) for sample in samples), default=0)
        tasks = [(sample, i) for i in range(most) for sample in samples if i < len(sample.tests)]
        if not tasks:
            return
        with ThreadPoolExecutor(min(self.options.workers or _cores(), len(tasks)), thread_name_prefix="code") as pool:
            try:
                for future in [pool.submit(one, *task) for task in tasks]:
                    future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _test(self, sample: _Sample, test: cases.Case) -> tuple[Result, float]:
        """Runs one test. What is our fault is tried once more."""
        limits = sample.limits
        if test.prints:  # room for what is expected, and some more
            limits = Limits(
                limits.time_s, limits.memory_mb, limits.processes, max(limits.output_kb, len(test.expected) // 256 + 1)
            )
        outcome = run_job(self.backend, test.job(sample.program), limits)
        if outcome.end in ("failed", "lost"):
            outcome = run_job(self.backend, test.job(sample.program), limits)
        passed = test.passes(outcome, self.options.tolerance)
        return Result(passed, outcome.end, "" if passed else _why(outcome, limits)), outcome.seconds


def _cores() -> int:
    """The cores that this process may use, shared with the other ranks of this machine."""
    return max(1, len(os.sched_getaffinity(0)) // int(os.environ.get("LOCAL_WORLD_SIZE", 1)))


def _why(outcome: Outcome, limits: Limits) -> str:
    """A failed test in a few words."""
    last = outcome.stderr.rpartition("\n")[2][:200]
    match outcome.end:
        case "exit" if outcome.code == 0:
            return "another output than expected"
        case "exit":
            return f"exit code {outcome.code}: {last}" if outcome.code > 0 else f"killed by signal {-outcome.code}"
        case "program":
            return f"the program does not compile: {last}"
        case "call":
            return "the test's call does not compile"
        case "failed":
            return f"the sandbox does not start: {last}"
        case "lost":
            return "the program ended its supervisor"
        case "time":
            return f"over {limits.time_s:g} s"
        case "memory":
            return f"over {limits.memory_mb} MiB of memory"
        case "processes":
            return f"over {limits.processes} processes"
        case "output":
            return f"over {limits.output_kb} KiB of output"
        case _:
            return "too many files"


def _source(row: Row) -> str:
    """The tests of a row as one text. Raises ValueError."""
    tests = row.get("tests")
    if tests in (None, "", []):
        tests = row.get("verification_info")
    if tests is None:
        raise ValueError("the row has no tests")
    try:
        return tests if isinstance(tests, str) else json.dumps(tests)
    except (TypeError, ValueError, RecursionError):
        raise ValueError("the tests are not plain data") from None


@lru_cache(maxsize=1024)
def _read(source: str) -> list[cases.Case]:
    return cases.read(source)


def _time_limit(row: Row, default: float) -> float:
    value = row.get("time_limit_s")
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 600:
        raise ValueError(f"time_limit_s is {value!r}: expected seconds, above 0 and at most 600")
    return float(value)


def _chosen(tests: list[cases.Case], most: int) -> list[cases.Case]:
    """At most so many tests, evenly from first to last."""
    if len(tests) <= most:
        return tests
    return [tests[i * len(tests) // most] for i in range(most)]


def _program(region: str) -> str:
    """The program of an answer region. Whether a text without a fence is one, compiling it in the sandbox says."""
    block = extract.code_block(region)
    if block is not None:
        return block
    return "" if "```" in region or "~~~" in region else region


def verify(completion: str, row: Row, *, tags: Tags = Tags(), prefilled: bool = False, **options: Any) -> Verdict:
    """The verdict on one completion. `options`: the fields of Options."""
    context = Context(tags, prefilled)
    return Code(Options(**options), context)([context.whole(completion)], [row])[0]


def run_tests(
    program: str, tests: Any, *, time_limit_s: float | None = None, **options: Any
) -> tuple[float, list[Result]]:
    """The share of the tests that a program passes, and what became of each test. `tests` as in a row. Raises
    UserError where programs cannot be isolated, ValueError for malformed tests."""
    code = Code(Options(**options), Context())
    row = {"tests": tests, "time_limit_s": time_limit_s}
    sample = code.sample(program, _read(_source(row)), _time_limit(row, code.options.time_limit_s))
    code.run([sample])
    results = [sample.results[i] for i in range(len(sample.tests))]
    return sum(r.passed for r in results) / len(results), results


def check_gold(row: Row) -> str | None:
    """Why the tests of a row cannot be used; None where they can."""
    try:
        _read(_source(row))
        _time_limit(row, 1.0)
    except ValueError as error:
        return str(error)
    return None


def right_answer(row: Row) -> str | None:
    """The program of the row's `solution`, where it holds a fenced one."""
    block = extract.code_block(str(row.get("solution") or ""))
    return f"```python\n{block.strip()}\n```" if block and not check_gold(row) else None


def wrong_answer(row: Row) -> str | None:
    """A program that fails every test."""
    return None if check_gold(row) else "```python\nraise SystemExit(1)\n```"
