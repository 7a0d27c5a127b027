"""Starting and watching worker processes: one child a step, or a group through accelerate launch."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from r1pipe import process
from r1pipe.errors import UserError
from r1pipe.resources import configs_dir
from r1pipe.settings import StepConfig


class Child:
    """A worker process, and its group."""

    def __init__(self, popen: subprocess.Popen[str], stage: str, threads: int | None, waiting: bool) -> None:
        self.popen = popen
        self.stage = stage
        self.threads = threads
        self.waiting = waiting
        self.code: int | None = None

    @classmethod
    def start(
        cls,
        config: StepConfig,
        log: Path | None,
        *,
        requests: Sequence[Path] = (),
        waiting: bool = False,
        solo: bool = False,
    ) -> Child:
        """Starts `python -m r1pipe.worker` (through accelerate launch for several processes, unless `solo`)."""
        command = [sys.executable, "-P"]
        if waiting:
            command += ["-m", "r1pipe.worker", "--wait", config.stage]
        elif (config.num_processes == 1 and config.accelerate is None) or solo:
            command += ["-m", "r1pipe.worker", *map(str, requests)]
        else:
            command += ["-m", "accelerate.commands.launch", *launch_arguments(config)]
            command += ["--module", "r1pipe.worker", *map(str, requests)]
        out = log.open("ab") if log else subprocess.DEVNULL
        try:
            popen = subprocess.Popen(
                command,
                stdin=subprocess.PIPE if waiting else subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                text=True,
                env=environment(config),
                start_new_session=True,
            )
        finally:
            if log:
                out.close()  # type: ignore[union-attr]
        return cls(popen, config.stage, config.threads, waiting)

    def fits(self, config: StepConfig) -> bool:
        return (
            self.popen.poll() is None
            and self.stage == config.stage
            and self.threads == config.threads
            and config.num_processes == 1
            and config.accelerate is None
        )

    def assign(self, request: Path) -> bool:
        """Gives a worker that waits its work; False where it has died meanwhile."""
        assert self.popen.stdin is not None
        try:
            self.popen.stdin.write(f"{request}\n")
            self.popen.stdin.close()
        except BrokenPipeError:
            return False
        self.waiting = False
        return True

    def dismiss(self) -> None:
        """Ends a worker that waits; it has touched nothing."""
        self.popen.kill()
        self.popen.wait()

    def poll(self) -> bool:
        self.code = self.popen.poll()
        return self.code is not None

    def wait(self) -> int:
        self.code = self.popen.wait()
        return self.code

    def end(self) -> None:
        """Ends the worker and everything in its group."""
        process.end_group(self.popen.pid)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(timeout=5)


class Tail:
    """New whole lines of a JSONL file that another process appends to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.at = path.stat().st_size if path.is_file() else 0

    def new(self) -> Iterator[dict[str, Any]]:
        if not self.path.is_file() or self.path.stat().st_size <= self.at:
            return
        with self.path.open("rb") as handle:
            handle.seek(self.at)
            for raw in handle:
                if not raw.endswith(b"\n"):
                    break
                self.at += len(raw)
                with contextlib.suppress(ValueError):
                    yield json.loads(raw)


def accelerate_file(name: str) -> Path:
    """An accelerate file: `builtin:fsdp2`, or a path."""
    if name.startswith("builtin:"):
        path = configs_dir() / "accelerate" / f"{name.removeprefix('builtin:')}.yaml"
        if not path.is_file():
            known = sorted(f"builtin:{p.stem}" for p in path.parent.glob("*.yaml"))
            raise UserError(f'there is no accelerate file "{name}" (known: {", ".join(known)})')
        return path
    path = Path(name)
    if not path.is_file():
        raise UserError(f"there is no accelerate file {path.absolute()}")
    return path


def launch_arguments(config: StepConfig) -> list[str]:
    """Arguments of `accelerate launch` for a step."""
    use_cpu = bool(getattr(config, "trainer", {}).get("use_cpu"))
    name = config.accelerate or ("builtin:multi_cpu" if use_cpu else "builtin:multi_gpu")
    arguments = ["--config_file", str(accelerate_file(name)), "--num_processes", str(config.num_processes)]
    return [*arguments, "--main_process_port", "0"]


def environment(config: StepConfig) -> dict[str, str]:
    threads = str(config.threads) if config.threads else None
    return (
        os.environ
        | {
            "R1PIPE_RUNNER_PID": str(os.getpid()),
            "PYTHONSAFEPATH": "1",
            "PYTHONUNBUFFERED": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "PYTHONHASHSEED": "0",  # set order in libraries must not differ between two runs
            "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
        }
        | ({"OMP_NUM_THREADS": threads} if threads else {})
    )


def last_line(log: Path) -> str:
    """The last line of a log that says something."""
    if not log.is_file():
        return "no log"
    with log.open("rb") as handle:
        handle.seek(max(0, log.stat().st_size - 4000))
        lines = [line.strip() for line in handle.read().decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1][:300] if lines else "its log is empty"


def dead_rank(log: Path) -> str | None:
    """`rank 1 died (signal 9)`, from what the launcher writes when one process of a group ends."""
    if not log.is_file():
        return None
    text = log.read_text("utf-8", "replace")[-20000:]
    cause = text.rpartition("Root Cause")[2] if "Root Cause" in text else text
    found = re.search(r"rank\s*:\s*(\d+).*?exitcode\s*:\s*(-?\d+)", cause, re.DOTALL)
    if not found:
        return None
    rank, code = int(found[1]), int(found[2])
    said = re.findall(rf"r1pipe: rank {rank} failed: (.*)", text)
    how = said[-1] if said else (f"signal {-code}" if code < 0 else f"exit code {code}")
    return f"rank {rank} died ({how})"
