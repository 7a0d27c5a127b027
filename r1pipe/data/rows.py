"""Rows: plain JSON-able dicts. Their identity, their digest, and how they are written and read.

A prompt row ends with a user turn, an SFT row ("traces") with an assistant turn; a pair row adds `chosen` and
`rejected`, a label row `response` and `label`:
    {"id": "6d0c…", "messages": [{"role": "user", "content": "2+2?"}], "gold": "4", "kind": "math",
     "language": "en", "level": None, "reference": None, "source": "problems.jsonl"}
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any, Literal

from r1pipe.data.languages import guess as guess_language
from r1pipe.digest import canonical, rows_digest, text_digest
from r1pipe.errors import UserError

__all__ = [
    "Row", "What", "datasets_digest", "guess_language", "is_ours", "read_rows", "row_id", "write_rows",
]  # fmt: skip

Row = dict[str, Any]
What = Literal["prompts", "traces", "pairs", "labels"]

_ID = re.compile(r"[0-9a-f]{16}")
# Line ends to everyone who uses str.splitlines: written as escapes, so that a line is a row for them too.
_BREAKS = {ord(c): f"\\u{ord(c):04x}" for c in "\u0085\u2028\u2029"}


def row_id(messages: list[dict[str, str]]) -> str:
    """16 hex characters of the content of a conversation."""
    # What canonical([[role, content], ...]) writes, five times as fast: it is asked for every row of a dataset.
    turns = (f"[{encode_basestring(m['role'])},{encode_basestring(m['content'])}]" for m in messages)
    return text_digest(f"[{','.join(turns)}]")[:16]


def is_ours(record: dict[str, Any]) -> bool:
    """Is this one of our rows, come back from a file?"""
    own = record.get("id")
    return isinstance(own, str) and bool(_ID.fullmatch(own)) and {"messages", "kind", "gold"} <= record.keys()


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
