"""The child process of a user's reward function (custom.py). Everything that the function imports stays here."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any


def prepare(argument: dict[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Imports the function; returns what answers a batch: {"scores": [...], "metrics": {...}}."""
    module, _, name = argument["target"].partition(":")
    function: Any = importlib.import_module(module)
    for attribute in name.split("."):
        function = getattr(function, attribute)
    if inspect.isclass(function):
        function = function()
    if not callable(function):
        raise TypeError(f"{argument['target']} is {type(function).__name__}, not a function")

    def answer(task: dict[str, Any]) -> dict[str, Any]:
        metrics: dict[str, float] = {}
        given = {
            "prompts": task["prompts"],
            "completions": task["completions"],
            "completion_ids": task.get("completion_ids"),
            "trainer_state": None,
            "log_metric": lambda key, value: metrics.__setitem__(str(key), float(value)),
            "log_extra": lambda key, values: None,
            **task["columns"],
            **argument["args"],
        }
        scores = function(**_taken(function, given))
        if inspect.isawaitable(scores):
            scores = _wait(scores)
        return {"scores": [None if s is None else float(s) for s in scores], "metrics": metrics}

    return answer


def _taken(function: Any, given: dict[str, Any]) -> dict[str, Any]:
    """What the function has parameters for; all of it where it takes **kwargs."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return given
    names = {p.name for p in parameters}
    return {key: value for key, value in given.items() if key in names}


def _wait(awaitable: Any) -> Any:
    import asyncio

    async def run() -> Any:
        return await awaitable

    return asyncio.run(run())
