"""A cache for functions of texts that keeps short ones only: long ones seldom come twice, and would fill memory."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

MAX_LENGTH = 300

P = ParamSpec("P")
R = TypeVar("R")


def short_cache(size: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        cached = functools.lru_cache(maxsize=size)(function)

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if all(len(a) <= MAX_LENGTH for a in args if isinstance(a, str)):
                return cached(*args, **kwargs)  # type: ignore[arg-type]
            return function(*args, **kwargs)

        return call

    return decorate
