"""What `r1pipe evaluate RUN` came to, for the report: a table a suite."""

from __future__ import annotations

from typing import Any

from r1pipe.cli import evaluationtable
from r1pipe.errors import UserError
from r1pipe.evaluate.results import Cache
from r1pipe.report.collect import Run


def tables(run: Run) -> list[dict[str, Any]]:
    """{"suite", "head", "rows", "faults"} of each suite that was run on steps of this run."""
    cache = Cache(run.store.root)
    found = []
    for suite in cache.suites():
        lines: list[tuple[str, dict[str, Any]]] = []
        faults = []
        for model, about in suite["models"].items():
            for name, where in about["sets"].items():
                try:
                    result = cache.result(where["folder"])
                except UserError as error:
                    faults.append(error.message)
                    continue
                lines += [(f"{model} {name} {mode}", numbers) for mode, numbers in result.metrics.items()]
        made = evaluationtable.details(lines) if lines else []
        found.append(
            {
                "suite": suite["suite"],
                "head": [(head.split("\n"), justify) for head, justify, _ in made],
                "rows": [[(cells[i][0], justify) for _, justify, cells in made] for i in range(len(lines))],
                "faults": faults,
            }
        )
    return found
