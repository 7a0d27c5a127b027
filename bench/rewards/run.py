"""Compares the accuracy reward with math-verify in a loop and with TRL's, in speed and in agreement by kind.

python -m bench.rewards.run --rows 10000           # the table
python -m bench.rewards.run --rows 1000 --only ours --differences /tmp/differences.jsonl
python -m bench.rewards.run --rows 10000 --write   # and bench/rewards/RESULTS.md
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.rewards.contenders import CONTENDERS, Run, measure
from bench.rewards.generator import ORDINARY, Row, generate, with_hostile

RESULTS = Path(__file__).with_name("RESULTS.md")


def main() -> None:
    """Measures, then prints and writes what was asked for."""
    options = _options()
    ordinary = generate(options.rows, options.seed, options.kinds)
    mixed = with_hostile(ordinary, options.hostile_share, options.seed)
    runs: dict[str, tuple[Run, Run | None]] = {}
    for name in options.only:
        print(f"{name}: {len(ordinary)} rows", file=sys.stderr)
        plain = measure(name, [(r.gold, r.completion) for r in ordinary], options.limit)
        hostile = None
        if len(mixed) > len(ordinary):
            print(
                f"{name}: {plain.rate:.0f}/s; now {len(mixed) - len(ordinary)} hostile rows among them",
                file=sys.stderr,
            )
            hostile = measure(name, [(r.gold, r.completion) for r in mixed], options.limit)
        runs[name] = plain, hostile
    report = _report(options, ordinary, mixed, runs)
    if options.json:
        print(json.dumps(report, indent=1, ensure_ascii=False))
    else:
        for table in _tables(report):
            Console(width=max(Console().width, 130)).print(table)
    if options.write:
        RESULTS.write_text(_markdown(report), encoding="utf-8")
    if options.differences:
        _write_differences(options.differences, ordinary, mixed, runs)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench.rewards.run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10_000, help="ordinary rows")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hostile-share", type=float, default=0.01, help="of the second run; 0 leaves it out")
    parser.add_argument("--only", nargs="+", choices=CONTENDERS, default=list(CONTENDERS), help="contenders")
    parser.add_argument("--kinds", nargs="+", choices=ORDINARY, metavar="KIND", help="only these kinds of rows")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds for one run of one contender")
    parser.add_argument("--json", action="store_true", help="JSON on stdout in place of the tables")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    parser.add_argument(
        "--differences", type=Path, help="write every verdict that differs from the expected one, as JSON lines"
    )
    return parser.parse_args()


def _agreement(rows: list[Row], run: Run) -> dict[str, int]:
    """How the verdicts fall out; rows without a verdict (the run was stopped) are not counted."""
    seen = list(zip(rows, run.scores, strict=False))
    return {
        "rows": len(seen),
        "agree": sum(s == r.expected for r, s in seen),
        "paid wrongly": sum(s is not None and s > r.expected for r, s in seen),
        "missed": sum(s is not None and s < r.expected for r, s in seen),
        "no verdict": sum(s is None for _, s in seen),
    }


def _report(
    options: argparse.Namespace, ordinary: list[Row], mixed: list[Row], runs: dict[str, tuple[Run, Run | None]]
) -> dict[str, Any]:
    contenders = {}
    for name, (plain, hostile) in runs.items():
        entry: dict[str, Any] = {
            "about": CONTENDERS[name].about,
            "seconds": round(plain.seconds, 2),
            "verdicts_per_s": round(plain.rate, 1),
            "note": plain.note,
            "agreement": _agreement(ordinary, plain),
            "kinds": {
                k: _agreement(*_of_kind(k, ordinary, plain)) for k in ORDINARY if any(r.kind == k for r in ordinary)
            },
        }
        if hostile is not None:
            bad = [(r, s) for r, s in zip(mixed, hostile.scores, strict=False) if r.kind not in ORDINARY]
            entry["hostile"] = {
                "seconds": round(hostile.seconds, 2),
                "verdicts_per_s": round(hostile.rate, 1),
                "done": len(hostile.scores),
                "of": len(mixed),
                "note": hostile.note,
                "speed_kept": round(hostile.rate / plain.rate, 3) if plain.rate else None,
                "hostile_agree": sum(s == r.expected for r, s in bad),
                "hostile_rows": len(bad),
            }
        contenders[name] = entry
    pairs = {(r.gold, r.answer) for r in ordinary}
    return {
        "rows": len(ordinary),
        "seed": options.seed,
        "hostile_rows": len(mixed) - len(ordinary),
        "duplicates": round(1 - len(pairs) / len(ordinary), 4),
        "right_answers": round(sum(r.expected for r in ordinary) / len(ordinary), 3),
        "machine": f"{len(os.sched_getaffinity(0))} cores, {platform.machine()}, Python {platform.python_version()}",
        "versions": {name: version(name) for name in ("math-verify", "latex2sympy2-extended", "sympy", "trl")},
        "commit": _commit(),
        "limit_s": options.limit,
        "contenders": contenders,
    }


def _of_kind(kind: str, rows: list[Row], run: Run) -> tuple[list[Row], Run]:
    kept = [(r, s) for r, s in zip(rows, run.scores, strict=False) if r.kind == kind]
    return [r for r, _ in kept], Run(len(kept), scores=[s for _, s in kept])


def _commit() -> str:
    git = ["git", "-C", str(RESULTS.parent)]
    head = subprocess.run(
        [*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    changed = subprocess.run(
        [*git, "status", "--porcelain", ":/r1pipe/rewards"], capture_output=True, text=True, check=False
    ).stdout
    return (head or "unknown") + (" with changes in r1pipe/rewards" if changed.strip() else "")


def _percent(counts: dict[str, int]) -> str:
    return f"{100 * counts['agree'] / counts['rows']:.1f}" if counts["rows"] else "-"


def _speed_rows(report: dict[str, Any]) -> list[list[str]]:
    """One line a contender."""
    entries = report["contenders"]
    ours = max((e["verdicts_per_s"] for n, e in entries.items() if n == "ours"), default=0.0)
    rows = []
    for name, entry in entries.items():
        rate, counts, hostile = entry["verdicts_per_s"], entry["agreement"], entry.get("hostile")
        kept = "-"
        if hostile and hostile["note"]:
            kept = f"{hostile['note']} ({hostile['done']} of {hostile['of']} rows, {hostile['verdicts_per_s']:.0f}/s)"
        elif hostile:
            kept = f"{hostile['verdicts_per_s']:.0f}/s ({100 * hostile['speed_kept']:.0f} %)"
            kept += f", {hostile['hostile_agree']} of {hostile['hostile_rows']} right"
        speed = f"{rate:.0f}" + (f" ({entry['note']})" if entry["note"] else "")
        rows.append(
            [
                name,
                speed,
                f"{ours / rate:.1f}" if ours and rate else "-",
                _percent(counts),
                str(counts["paid wrongly"]),
                str(counts["missed"]),
                str(counts["no verdict"]),
                kept,
            ]
        )
    return rows


_SPEED_HEAD = ["", "verdicts/s", "ours is x times", "agree %", "paid wrongly", "missed", "none", "with hostile rows"]


def _kind_rows(report: dict[str, Any]) -> list[list[str]]:
    """One line a kind: the share of each contender that agrees."""
    entries = report["contenders"]
    first = next(iter(entries.values()))["kinds"]
    return [
        [kind, str(counts["rows"]), *(_percent(e["kinds"][kind]) for e in entries.values())]
        for kind, counts in first.items()
    ]


def _tables(report: dict[str, Any]) -> list[Table]:
    speed = Table(title=f"{report['rows']} ordinary rows, then the same with {report['hostile_rows']} hostile ones")
    for column in _SPEED_HEAD:
        speed.add_column(column, justify="left" if column in ("", "with hostile rows") else "right")
    for row in _speed_rows(report):
        speed.add_row(*row)
    kinds = Table(title="agreement with the expected verdict, %")
    for column in ["kind", "rows", *report["contenders"]]:
        kinds.add_column(column, justify="left" if column == "kind" else "right")
    for row in _kind_rows(report):
        kinds.add_row(*row)
    return [speed, kinds]


def _markdown(report: dict[str, Any]) -> str:
    def table(head: list[str], rows: list[list[str]]) -> str:
        return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *rows])

    versions = ", ".join(f"{name} {number}" for name, number in report["versions"].items())
    about = "\n".join(f"- `{name}`: {entry['about']}" for name, entry in report["contenders"].items())
    duplicates, right, rows = 100 * report["duplicates"], 100 * report["right_answers"], report["rows"]
    return f"""# Results

Written by `python -m bench.rewards.run --rows {rows} --seed {report["seed"]} --write`; [README.md](README.md)
says what is measured. {report["machine"]}; {versions}; commit {report["commit"]}.
{duplicates:.1f} % duplicates, {right:.0f} % right answers.

{about}

{table(_SPEED_HEAD, _speed_rows(report))}

Agreement with the expected verdict by kind, in per cent:

{table(["kind", "rows", *report["contenders"]], _kind_rows(report))}
"""


def _write_differences(
    path: Path, ordinary: list[Row], mixed: list[Row], runs: dict[str, tuple[Run, Run | None]]
) -> None:
    with path.open("w", encoding="utf-8") as file:
        for name, (plain, hostile) in runs.items():
            judged = list(zip(ordinary, plain.scores, strict=False))
            if hostile is not None:
                judged += [(r, s) for r, s in zip(mixed, hostile.scores, strict=False) if r.kind not in ORDINARY]
            for row, score in judged:
                if score != row.expected:
                    line = {
                        "contender": name,
                        "kind": row.kind,
                        "gold": row.gold,
                        "answer": row.answer,
                        "expected": row.expected,
                        "got": score,
                        "completion": row.completion,
                    }
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
