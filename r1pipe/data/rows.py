"""Rows: plain JSON-able dicts. Their identity, their digest, and how they are written and read.

A prompt row ends with a user turn, an SFT row ("traces") with an assistant turn; a pair row adds `chosen` and
`rejected`, a label row `response` and `label`:
    {"id": "6d0c…", "messages": [{"role": "user", "content": "2+2?"}], "gold": "4", "kind": "math",
     "language": "en", "level": None, "reference": None, "source": "problems.jsonl"}
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from r1pipe.digest import canonical, rows_digest, text_digest
from r1pipe.errors import UserError

Row = dict[str, Any]
What = Literal["prompts", "traces", "pairs", "labels"]

# Line ends to everyone who uses str.splitlines: written as escapes, so that a line is a row for them too.
_BREAKS = {ord(c): f"\\u{ord(c):04x}" for c in "\u0085\u2028\u2029"}


def row_id(messages: list[dict[str, str]]) -> str:
    """16 hex characters of the content of a conversation."""
    return text_digest(canonical([[m["role"], m["content"]] for m in messages]))[:16]


def datasets_digest(rows: Iterable[Row]) -> str:
    """sha256 over the canonical rows, in order; equal to the digest of the file that `write_rows` makes."""
    return rows_digest(canonical(row) for row in rows)[0]


def write_rows(path: str | Path, rows: Iterable[Row]) -> None:
    """One canonical JSON object a line, UTF-8; written beside and renamed, so it is there whole or not at all."""
    path = Path(path)
    part = path.with_name(path.name + ".part")
    with part.open("w", encoding="utf-8", errors="surrogatepass", newline="\n") as handle:
        for row in rows:
            handle.write(canonical(row).translate(_BREAKS) + "\n")
        handle.flush()
        os.fsync(handle.fileno())
    part.replace(path)


def read_rows(path: str | Path) -> list[Row]:
    """Rows of a file that `write_rows` made. Raises UserError, naming the line, for anything else."""
    path = Path(path)
    rows: list[Row] = []
    try:
        with path.open("rb") as handle:  # binary: a line ends at \n alone
            for line in handle:
                rows.append(json.loads(line.decode("utf-8", "surrogatepass")))
    except FileNotFoundError:
        raise UserError(f"there is no dataset at {path}", hint="run the step that makes it") from None
    except ValueError as error:
        message = f"{path} line {len(rows) + 1} is not JSON: {error}"
        raise UserError(message, hint="run the step that makes it again") from None
    return rows


def guess_language(text: str) -> str:
    """ "zh", "ja", "ko", "ru" or "en" by script, for rows that do not say: the rarest script that names a language
    decides (kana before Han); Latin text counts as English."""
    letters = [c for c in text if c.isalpha()]
    if not letters:
        return "en"

    def share(low: str, high: str) -> float:
        return sum(low <= c <= high for c in letters) / len(letters)

    if share("\u3041", "\u30ff") > 0.05:
        return "ja"
    if share("\uac00", "\ud7af") > 0.2:
        return "ko"
    if share("\u4e00", "\u9fff") > 0.2:
        return "zh"
    return "ru" if share("\u0400", "\u052f") > 0.5 else "en"
