"""Makes problems with reasoning-gym; started by `gym.py` with PYTHONHASHSEED=0: `python -m r1pipe.data.gymworker OUT`.

Reads a request from stdin: {"task", "args", "level", "size", "seed"}. Writes {"entries": [...]} to OUT, or, where the
request is at fault, {"problem", "hint"?, "near"?: [name, known]}. Only generators are used, never `score_answer`.
"""

from __future__ import annotations

import dataclasses
import json
import random
import sys
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

# A style of answer without LaTeX: the text is compared, since as numbers 2/4 and 1/2 are the same.
DEFAULTS: dict[str, dict[str, Any]] = {"fraction_simplification": {"styles": ("plain",)}}


class Refused(Exception):
    """The request cannot be met; says why."""

    def __init__(self, problem: str, **more: Any) -> None:
        super().__init__(problem)
        self.more = more


def make(request: dict[str, Any]) -> list[dict[str, Any]]:
    """The problems of a request."""
    from reasoning_gym.factory import DATASETS

    task, size = request["task"], request["size"]
    if task not in DATASETS:
        raise Refused(f"the installed reasoning-gym has no task {task}", hint='pip install "reasoning-gym==0.1.25"')
    try:
        dataset = DATASETS[task][0](config=_config(request))
        entries = []
        for index in range(size):
            _seed_globals(f"{request['seed']}/{index}")
            entries.append(_entry(task, dataset[index]))
        return entries
    except (AssertionError, ValueError, TypeError, IndexError) as error:
        raise Refused(f"it cannot be made with these arguments: {error or type(error).__name__}") from error


def _config(request: dict[str, Any]) -> Any:
    from reasoning_gym.factory import DATASETS

    task, level = request["task"], request["level"]
    config_class = DATASETS[task][1]
    free = sorted({f.name for f in dataclasses.fields(config_class)} - {"seed", "size"})
    args = {**DEFAULTS.get(task, {}), **{k: _tuples(v) for k, v in request["args"].items()}}
    for key in args:
        if key not in free:
            raise Refused(f'data.args has "{key}"', near=[key, [*free, "level"]],
                          hint=f"its arguments: {', '.join(free)}, level")  # fmt: skip
    given = {**args, "size": request["size"], "seed": request["seed"]}
    config = config_class(**given) if level is None else dataclasses.replace(_at_level(task, level), **given)
    if hasattr(config, "validate"):
        config.validate()
    return config


def _at_level(task: str, level: Any) -> Any:
    from reasoning_gym.factory import CURRICULA

    if task not in CURRICULA:
        raise Refused("it has no levels", hint="set its own arguments in data.args")
    curriculum = CURRICULA[task]()
    most = max((len(a.levels) for a in curriculum.attributes.values()), default=1) - 1
    if not isinstance(level, int) or isinstance(level, bool) or not 0 <= level <= most:
        raise Refused(f"it has no level {level!r}: they go from 0 to {most}", hint="correct data.args.level")
    curriculum.set_global_level(level)  # an attribute with fewer levels stays at its last
    return curriculum.generate_configuration()


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value


def _seed_globals(seed: str) -> None:
    """Some tasks draw from the global generators."""
    import numpy

    random.seed(seed)
    numpy.random.seed(random.getrandbits(32))
    random.seed(seed)


def _entry(task: str, entry: dict[str, Any]) -> dict[str, Any]:
    metadata = entry["metadata"]
    found: dict[str, Any] = {"question": str(entry["question"]).strip(), "answer": _answer(task, str(entry["answer"]))}
    if task in ("countdown", "puzzle24"):
        found["nums"] = [int(n) for n in metadata["numbers"]]
        found["target"] = int(metadata.get("target", 24))
    if metadata.get("answer_cot"):
        found["worked"] = str(metadata["answer_cot"])
    return found


def _answer(task: str, answer: str) -> str:
    if task == "power_function":  # it asks for 3 significant figures, and gives all
        with localcontext() as context:
            context.prec = 3
            return str(+Decimal(answer))
    return answer


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """What is made of a request, or why nothing is."""
    try:
        return {"entries": make(request)}
    except Refused as refused:
        return {"problem": str(refused), **refused.more}


def main() -> None:
    out = Path(sys.argv[1])
    part = out.with_suffix(".part")
    part.write_text(json.dumps(answer(json.loads(sys.stdin.read()))), encoding="utf-8")
    part.replace(out)


if __name__ == "__main__":
    main()
