"""Generated data: problems, requests, noisy traces, preference pairs and labels, made from a seed.

`make("arithmetic", "prompts", split="heldout", rows=1000, seed=0)` returns plain rows; GENERATORS lists what
there is. No file is read and nothing is downloaded.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any

from r1pipe.data.generated import arithmetic, general

GENERATORS: dict[str, dict[str, Callable[..., list[dict[str, Any]]]]] = {
    "arithmetic": {"prompts": arithmetic.prompts, "traces": arithmetic.traces},
    "general": {
        "prompts": general.prompts,
        "traces": general.traces,
        "pairs": general.pairs,
        "labels": general.labels,
    },
}
VERSIONS = {"arithmetic": arithmetic.VERSION, "general": general.VERSION}


def _nearest(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.0)
    return f"did you mean {near[0]!r}? known: {', '.join(known)}"


def make(name: str, what: str, **args: Any) -> list[dict[str, Any]]:
    """Rows of generator `name` (arithmetic, general), sort `what` (prompts, traces, pairs, labels).

    Raises UserError for an unknown name, sort or argument (with the nearest), or a missing argument.
    """
    from r1pipe.errors import UserError

    if name not in GENERATORS:
        raise UserError(f"unknown data generator {name!r}", hint=_nearest(name, list(GENERATORS)))
    if what not in GENERATORS[name]:
        raise UserError(f"generator {name!r} makes no {what!r}", hint=_nearest(what, list(GENERATORS[name])))
    function = GENERATORS[name][what]
    parameters = inspect.signature(function).parameters
    for arg in args:
        if arg not in parameters:
            raise UserError(f"{name}.{what} takes no argument {arg!r}", hint=_nearest(arg, list(parameters)))
    missing = [k for k, p in parameters.items() if p.default is inspect.Parameter.empty and k not in args]
    if missing:
        raise UserError(f"{name}.{what} needs {', '.join(missing)}", hint=f"its arguments: {', '.join(parameters)}")
    return function(**args)
