"""Finds keys, tokens and passwords where they were typed into settings.

Settings are written into requests, manifests, trackers, reports and cards, and those are shared: a key in them is
refused, not redacted, since a profile that holds it is shared too. What needs a key reads it from the environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from r1pipe.errors import UserError

HINT = (
    "keep it in the environment: engine.options.key_env (or rewards.judge.options.key_env) names the variable, and "
    "the hub and the trackers read HF_TOKEN, WANDB_API_KEY, ... themselves; and make a new one if this file was shared"
)
# Settings that hold one, whatever it looks like. `eos_token`, `pad_token`, `max_tokens` and the like are none.
_NAME = re.compile(
    r"(?:^|.*[_-])(?:api[_-]?key|secret(?:[_-]\w+)?|password|passwd|passphrase|authorization|credentials?|bearer"
    r"|(?:auth|access|hub|hf|api|bearer|refresh)[_-]?token)|token",
    re.IGNORECASE,
)
# What the keys of well-known services look like, and addresses that carry one.
_VALUE = re.compile(
    r"\bhf_[A-Za-z0-9]{20,}|\bsk-[A-Za-z0-9_-]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bxox[abprs]-[\w-]{10,}|\bAIza[\w-]{30,}|\bglpat-[\w-]{16,}"
    r"|\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,}|\bBearer\s+[\w.~+/-]{16,}|-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|://[^/\s@]{1,200}@|[?&](?:api[_-]?key|key|token|access[_-]?token|sig|signature|password)=",
    re.IGNORECASE,
)


def refuse(settings: Any, where: str = "") -> None:
    """Raises UserError for the first key in settings (nested dicts and lists), without showing it."""
    for place in _found(settings, where):
        raise UserError(f"{place} holds a key, token or password", hint=HINT)


def _found(value: Any, place: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inside in value.items():
            here = f"{place}.{name}" if place else str(name)
            if isinstance(inside, str) and inside and _NAME.fullmatch(str(name)):
                yield here
            else:
                yield from _found(inside, here)
    elif isinstance(value, list | tuple):
        for n, inside in enumerate(value):
            yield from _found(inside, f"{place}[{n}]")
    elif isinstance(value, str) and _VALUE.search(value):
        yield place
