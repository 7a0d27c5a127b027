"""What every command uses to print: consoles, and text made safe for a terminal. rich is imported when it is used."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 120  # columns where stdout is not a terminal

# Escape sequences (colours, cursor moves, window titles, clipboard writes) go whole, not only their first byte.
_SEQUENCES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_].*?(?:\x07|\x1b\\|$)|[ -/]*[0-~])|\x9b[0-?]*[ -/]*[@-~]", re.DOTALL
)
# C0 and C1 controls, lone surrogates, marks that reorder what a reader sees, and what nobody sees (zero-width spaces,
# tags). The joiners \u200c and \u200d stay: Persian and emoji need them.
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def console() -> Console:
    """stdout; colour on a terminal only, NO_COLOR honoured."""
    return _console(stderr=False)


def err_console() -> Console:
    """stderr: errors, progress of commands whose stdout is data."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    import os

    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or os.environ.get("COLUMNS") else PIPE_WIDTH
    return Console(stderr=stderr, width=width, highlight=False, emoji=False)


def is_terminal() -> bool:
    """Can stdout be redrawn?"""
    import os

    return sys.stdout.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")


def fancy(out: Console) -> bool:
    """Can this console show ✓ and ▁▂▃?"""
    return (out.encoding or "").lower().startswith("utf")


def clean(text: str) -> str:
    """Text of a model, a log or a file without anything that acts on the terminal; newlines and tabs stay."""
    return _CONTROLS.sub("", _SEQUENCES.sub("", text.replace("\r\n", "\n")))


def safe(text: str) -> str:
    """`clean`, with rich's markup escaped: for use inside a markup string."""
    from rich.markup import escape

    return escape(clean(text))


def duration(seconds: float) -> str:
    """0.4s, 12s, 3:05, 1:02:03."""
    if seconds < 9.95:
        return f"{max(seconds, 0.0):.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}:{rest:02}"
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def size(count: float) -> str:
    """Bytes for a reader: 812 B, 3.1 MiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
