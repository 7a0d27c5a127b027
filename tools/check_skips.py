"""Prints every skipped test with its reason, and fails on one that is not expected to be skipped.

python tools/check_skips.py PYTEST_OUTPUT
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

# part of a reason → why that may be
ALLOWED = {
    "vllm is not installed": "tests/vllm run in an environment of their own (make test-vllm)",
    "needs root, and a system Python": "one test of the sandbox; Debian 12 has both",
    "could not import 'wandb'": "a tracker that pulls in a lot; TensorBoard's test runs",
    "could not import 'trackio'": "as wandb",
    "needs CUDA": "no GPU in CI",
    "root reads everything": "CI runs as root; an unreadable file is one for everybody else",
    "copies a file as it is": "config copy of a broken profile is no fault",
}


def main() -> int:
    text = re.sub(r"\x1b\[[0-9;]*m", "", Path(sys.argv[1]).read_text())
    skipped = re.findall(r"^SKIPPED \[(\d+)\] (.*)$", text, re.MULTILINE)
    bad = [reason for _, reason in skipped if not any(part in reason for part in ALLOWED)]
    print(f"skipped: {sum(int(n) for n, _ in skipped)}")
    for n, reason in skipped:
        print(f"  {n} x {reason}")
    for reason in bad:
        print(f"not in the list of allowed skips (tools/check_skips.py): {reason}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
