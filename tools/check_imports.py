"""The layers: `r1pipe` never imports `stages`, stages never import each other, and nothing that `--help`, `plan` or
`status` loads imports torch."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEAVY = {"torch", "transformers", "trl", "peft", "datasets", "accelerate", "vllm", "sympy", "math_verify"}
# what a user waits for without wanting a model
LIGHT = (
    "import r1pipe.cli.app, r1pipe.cli.run, r1pipe.cli.status, r1pipe.cli.verify, r1pipe.cli.configs, "
    "r1pipe.cli.prune, r1pipe.cli.live, r1pipe.cli.tables, r1pipe.plan, r1pipe.runner, r1pipe.config, "
    "r1pipe.cli.evaluate, r1pipe.cli.score, r1pipe.cli.preflight, r1pipe.cli.report, r1pipe.cli.compare, "
    "r1pipe.cli.plan, r1pipe.cli.samples, r1pipe.cli.data\n"
    "r1pipe.config.load('tiny')"
)


def imported(path: Path) -> set[str]:
    """Every module that a file imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def main() -> int:
    faults = []
    for path in sorted((ROOT / "r1pipe").rglob("*.py")):
        bad = sorted(n for n in imported(path) if n.split(".")[0] == "stages")
        faults += [f"{path.relative_to(ROOT)} imports {name}: the engine knows no stage" for name in bad]
    modules = {p.stem for p in (ROOT / "stages").glob("*.py")} - {"__init__"}
    for path in sorted((ROOT / "stages").glob("*.py")):
        others = {f"stages.{m}" for m in modules - {path.stem}}
        faults += [f"{path.relative_to(ROOT)} imports {n}: stages know no other" for n in imported(path) & others]
    code = f"import sys\n{LIGHT}\nprint(*sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode:
        faults.append(f"the light commands do not import: {done.stderr.strip().splitlines()[-1]}")
    elif done.stdout.strip():
        faults.append(f"the light commands load {done.stdout.strip()}")
    for fault in faults:
        print(f"import rule: {fault}")
    print(f"import rules: {'broken' if faults else 'kept'}")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
