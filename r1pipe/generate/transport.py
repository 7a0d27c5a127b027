"""One JSON request to an OpenAI-compatible server, with the standard library alone.

Asked again: no connection, a timeout, an answer that is cut or no JSON, 408, 425, 429 and 5xx; the waits double, with
jitter, and Retry-After is honoured. Everything else is final. Redirects are refused: urllib would turn the POST into
a GET and send the key along to wherever the answer points.
"""

from __future__ import annotations

import contextlib
import email.utils
import http.client
import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

AGAIN = frozenset({408, 425, 429})  # and every 5xx
MOST_BYTES = 16 * 2**20  # of an answer
SAID = 300  # characters of an error's body that are kept

_jitter = random.Random()  # its own: the global one belongs to the trainer


class RequestFailed(Exception):
    """A request that failed for good. `status` is the HTTP status of a final refusal; None after the last retry."""

    def __init__(self, said: str, status: int | None = None) -> None:
        super().__init__(said)
        self.status = status


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any) -> None:
        return None


def request(
    url: str,
    body: dict[str, Any] | None,
    *,
    timeout_s: float,
    attempts: int,
    backoff_s: float,
    headers: Mapping[str, str] | None = None,
    deadline: float | None = None,
    before: Callable[[int], None] = lambda attempt: None,
    wait: Callable[[float], object] = time.sleep,
) -> Any:
    """The JSON answer; a GET without a body. Raises RequestFailed.

    `deadline` (time.monotonic) bounds all attempts together. `before` is told the number of each attempt, from 0, and
    may raise; `wait` sleeps between them.
    """
    said, delay = "", 0.0
    for attempt in range(attempts):
        if attempt:
            delay = max(delay, backoff_s * 2 ** (attempt - 1) * _jitter.uniform(0.75, 1.25))
            if deadline is not None and time.monotonic() + delay > deadline:
                break
            wait(delay)
        before(attempt)
        limit = timeout_s if deadline is None else min(timeout_s, deadline - time.monotonic())
        if limit <= 0:
            break
        delay = 0.0
        try:
            return _once(url, body, headers or {}, limit)
        except urllib.error.HTTPError as error:
            said = _what(error)
            if error.code not in AGAIN and error.code < 500:
                raise RequestFailed(said, error.code) from None
            delay = _retry_after(error.headers.get("Retry-After"))
        except TimeoutError:
            said = f"no answer within {limit:.3g} s"
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
            reason = getattr(error, "reason", error)
            said = f"no answer within {limit:.3g} s" if isinstance(reason, TimeoutError) else f"{reason or error!r}"
    raise RequestFailed(said or "no time was left to ask")


def _once(url: str, body: dict[str, Any] | None, headers: Mapping[str, str], limit: float) -> Any:
    until = time.monotonic() + limit
    asked = urllib.request.Request(
        url,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json", **headers},
    )
    with urllib.request.build_opener(_NoRedirect).open(asked, timeout=limit) as response:
        parts, size = [], 0
        while part := response.read1(65_536):  # urllib's timeout bounds each read, not their sum
            parts.append(part)
            size += len(part)
            if size > MOST_BYTES:
                raise ValueError(f"an answer of over {MOST_BYTES >> 20} MiB")
            if time.monotonic() > until:
                raise TimeoutError
    return json.loads(b"".join(parts))


def _what(error: urllib.error.HTTPError) -> str:
    """Status and the beginning of the body, or where a redirect points to."""
    text = error.headers.get("Location") or ""
    with contextlib.suppress(OSError, http.client.HTTPException), error:
        text = text or error.read(4 * SAID).decode(errors="replace")
    return f"{error.code} {text[:SAID]}".strip()


def _retry_after(value: str | None) -> float:
    """Seconds of a Retry-After header: a number, or a date. 0.0 where there is none."""
    if not value:
        return 0.0
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        seconds = float(value) if value.strip().isdigit() else _until(value)
        return max(0.0, seconds)
    return 0.0


def _until(date: str) -> float:
    return email.utils.parsedate_to_datetime(date).timestamp() - time.time()
