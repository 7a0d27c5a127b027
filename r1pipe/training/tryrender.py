"""A chat template of a model that somebody brings, tried out in a process of its own before it is used here.

transformers renders templates in Jinja's sandbox: no attribute of Python is reached. But the sandbox bounds neither
time nor memory (`{% for %}` in `{% for %}`, `"a" * 10**10`), so the first rendering is in a child with limits.
"""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from typing import Any

from r1pipe.errors import StepFailed

SECONDS, PATIENCE = 5, 120  # of CPU time; of wall-clock time, on a machine that is busy
MEMORY, OUTPUT = 2 * 2**30, 1_000_000  # OUTPUT: characters that one conversation may become
OUT_OF_MEMORY = 3
Conversation = list[dict[str, str]]


class Unusable(Exception):
    """The template cannot be used for anything; the text says why."""


def render(template: str, special: dict[str, Any], asked: list[tuple[Conversation, bool]]) -> list[str | None]:
    """Each (conversation, add the generation prompt) rendered; None where the template refuses it.

    Raises Unusable for a syntax error, an endless loop, a huge output, or where it refuses all of them.
    """
    request = {"template": template, "special": special, "asked": asked, "seconds": SECONDS}
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", __name__],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        raise Unusable(f"it does not end within {PATIENCE} seconds") from None
    if done.returncode == OUT_OF_MEMORY:
        raise Unusable(f"it needs more than {MEMORY // 2**30} GiB of memory")
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        raise Unusable(f"it does not end within {SECONDS} seconds")
    if done.returncode:
        raise StepFailed(f"the trial of the chat template failed: {done.stderr[-300:]}")
    return _texts(json.loads(done.stdout))


def _texts(said: dict[str, Any]) -> list[str | None]:
    if "unusable" in said:
        raise Unusable(said["unusable"])
    if all(text is None for text, _ in said["rendered"]):
        raise Unusable(said["rendered"][0][1])
    return [text for text, _ in said["rendered"]]


def _child() -> int:
    """Reads a request, writes what came out; `OUT_OF_MEMORY` where it did not fit."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    import transformers.utils.chat_template_utils  # noqa: F401 - before the clock runs

    request = json.load(sys.stdin)
    used = resource.getrusage(resource.RUSAGE_SELF)
    last = int(used.ru_utime + used.ru_stime) + 1 + request["seconds"]
    resource.setrlimit(resource.RLIMIT_CPU, (last, last + 1))
    try:
        sys.stdout.write(json.dumps(answer(request)))
    except MemoryError:
        return OUT_OF_MEMORY
    return 0


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """{"rendered": (text, "") or (None, why not) for each that is asked}, or {"unusable": why}. Sets no limits."""
    from jinja2.exceptions import TemplateSyntaxError
    from transformers.utils.chat_template_utils import render_jinja_template

    rendered: list[tuple[str | None, str]] = []
    for conversation, generation in request["asked"]:
        try:
            text = render_jinja_template(
                conversations=[conversation],
                chat_template=request["template"],
                add_generation_prompt=generation,
                **request["special"],
            )[0][0]
        except TemplateSyntaxError as error:
            return {"unusable": f"line {error.lineno}: {error.message}"}
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a template does, its last word is a sentence
            rendered.append((None, f"{error}"[:300] or type(error).__name__))
            continue
        if len(text) > OUTPUT:
            return {"unusable": f"it writes {len(text):,} characters for {len(conversation)} short turns"}
        rendered.append((text, ""))
    return {"rendered": rendered}


if __name__ == "__main__":
    raise SystemExit(_child())
