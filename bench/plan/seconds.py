"""Planned against real seconds of a finished run: `python -m bench.plan.seconds RUN [--runs-dir DIR]`.

Run it on the machine that made the run, with nothing else to do: the plan is made anew with `--probe`, as if nothing
had run, so completions have the length that the probe finds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from r1pipe.cli import runs


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run")
    parser.add_argument("--runs-dir", type=Path, default=Path("runs"))
    given = parser.parse_args()
    store = runs.open_run(given.run, given.runs_dir)
    about = runs.about(store)
    command = [sys.executable, "-P", "-m", "r1pipe", "plan", str(about["pipeline"]), "--profile", str(about["path"]),
               "--runs-dir", str(given.runs_dir / "none"), "--probe", "--json"]  # fmt: skip
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    planned = {step["step"]: step["seconds"] for step in json.loads(said.stdout)["steps"]}
    print("| step | real, s | planned, s | planned / real |")
    print("| --- | ---: | ---: | ---: |")
    real = expected = 0.0
    for step, (_, manifest) in runs.sealed_steps(store).items():
        real, expected = real + manifest.seconds, expected + planned[step]
        ratio = planned[step] / manifest.seconds
        print(f"| {step} | {manifest.seconds:.0f} | {planned[step]:.0f} | {ratio:.2f} |")
    print(f"| all | {real:.0f} | {expected:.0f} | {expected / real:.2f} |")


if __name__ == "__main__":
    main()
