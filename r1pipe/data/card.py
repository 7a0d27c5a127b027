"""The README.md of a prepared folder."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from r1pipe.data.rows import Row

TEXT = 1500  # characters of an example
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def card(name: str, manifest: Mapping[str, Any], rows: Sequence[Row]) -> str:
    """What it is, where it comes from, what was left out, and three rows."""
    source = manifest["source"]
    revision = f" at revision {source['revision']}" if source.get("revision") else ""
    parts = [
        f"# {name}",
        "",
        f"{manifest['rows']} rows ({manifest['use']}) of `{source['source']}` (split {source['split']}){revision}, "
        f"made by `r1pipe data prepare`. The licence is that of the source.",
        "",
        f"In a profile: `data: [{{source: path/to/{name}}}]`. Digest of the rows: `{manifest['digest']}`.",
        "",
        *_table(("records read", manifest["records"]),
                *((f"left out: {reason}", n) for reason, n in manifest["dropped"].items()),
                *([("not drawn", manifest["not_drawn"])] if manifest["not_drawn"] else []),
                ("rows", manifest["rows"])),
        "",
        "`dropped.jsonl` has every record that was left out, with what shows it. `manifest.json` has settings, "
        "versions and digests.",
        "",
    ]  # fmt: skip
    for title, key in (("Schema", "schemas"), ("Gold answers from", "gold_from"), ("Kinds", "kinds"),
                       ("Languages", "languages"), ("Levels", "levels")):  # fmt: skip
        if manifest[key]:
            parts.append(f"{title}: " + ", ".join(f"{k} {n}" for k, n in manifest[key].items()) + ".  ")
    parts += ["", "| characters | rows | least | median | mean | 95 % | most |", "|---|---|---|---|---|---|---|"]
    for part, s in manifest["chars"].items():
        parts.append(f"| {part} | {s['n']} | {s['min']} | {s['median']:g} | {s['mean']} | {s['p95']} | {s['max']} |")
    if manifest["against"]:
        sets = ", ".join(f"`{a['source']}` ({a['split']})" for a in manifest["against"])
        parts += ["", f"Decontaminated against {sets}: n-grams of {manifest['clean']['ngram']} words, "
                  f"{manifest['dropped'].get('contaminated', 0)} rows left out."]  # fmt: skip
    parts += ["", "## Examples"]
    for index in sorted({0, len(rows) // 2, len(rows) - 1}):
        parts += ["", *_example(rows[index])]
    return "\n".join(parts) + "\n"


def _table(*lines: tuple[str, int]) -> list[str]:
    return ["| | rows |", "|---|---|", *(f"| {name} | {n} |" for name, n in lines)]


def _example(row: Row) -> list[str]:
    said = [(m["role"], m["content"]) for m in row["messages"]]
    said += [(name, str(row[name])) for name in ("chosen", "rejected", "response", "label", "reference", "gold")
             if row.get(name) is not None]  # fmt: skip
    lines = [f"`{row['id']}` ({row['kind']}, {row['language']})"]
    for name, text in said:
        text = _CONTROLS.sub("", text)
        text = text if len(text) <= TEXT else text[:TEXT] + "…"
        lines += ["", f"**{name}**", "", *(f"    {line}" for line in text.splitlines() or [""])]
    return lines
