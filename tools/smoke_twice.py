"""Runs the smoke pipeline twice, in two empty folders, and compares the digest of every artifact."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def run(folder: Path) -> dict[str, dict[str, str]]:
    began = time.monotonic()
    command = [sys.executable, "-m", "r1pipe", "pipeline", "full", "--profile", "smoke", "--json"]
    done = subprocess.run(
        [*command, "--runs-dir", str(folder)], stdout=subprocess.PIPE, text=True, check=False, cwd=folder
    )
    if done.returncode:
        sys.exit(f"the smoke pipeline ended with code {done.returncode}")
    report = json.loads(done.stdout)
    print(f"smoke: {', '.join(report['ran'])} in {time.monotonic() - began:.0f} s", flush=True)
    return {step: about["outputs"] for step, about in report["steps"].items()}


def main() -> int:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        first, second = run(Path(one)), run(Path(two))
    differ = 0
    for step, outputs in first.items():
        for name, digest in outputs.items():
            same = second.get(step, {}).get(name) == digest
            differ += not same
            print(f"  {'equal ' if same else 'DIFFER'} {step}.{name} {digest[:16]}")
    print("two smoke runs: " + (f"{differ} artifacts differ" if differ else "equal digests"))
    return bool(differ)


if __name__ == "__main__":
    sys.exit(main())
