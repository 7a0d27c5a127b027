"""Records of any schema into rows, with a reason for every record that becomes none."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from r1pipe.chat import Tags
from r1pipe.data import adapters, languages
from r1pipe.data.adapters.preferences import best_against_worst
from r1pipe.data.rows import Row, What, is_ours, row_id
from r1pipe.data.values import Drop, Record, number, parsed, text
from r1pipe.digest import canonical
from r1pipe.errors import UserError, nearest
from r1pipe.settings import DataSpec

# Columns that only some rewards read; they travel in the row's `extra`.
EXTRAS = (
    "nums", "numbers", "target", "use", "choices", "tests", "time_limit_s", "verification_info",
    "instruction_id_list", "kwargs",
)  # fmt: skip
# Kinds of row that a reward judges by something else than a gold answer, or not for being right.
WITHOUT_GOLD = frozenset({"general", "safety", "instructions", "countdown", "code", "science"})
# Fields that data.columns may name.
FIELDS = (
    "messages", "prompt", "completion", "response", "question", "problem", "system", "reasoning", "instruction",
    "input", "output", *adapters.GOLDS, "chosen", "rejected", "score", "label", "kind", "language", "level",
    "reference", "pass_rate", "id", *EXTRAS,
)  # fmt: skip
_SURROGATE = re.compile("[\ud800-\udfff]")
EXCERPT = 200  # characters of a dropped record that are kept to look at


@dataclass(frozen=True, slots=True)
class Dropped:
    """A record or row that was left out: its number in the source, its id where it had become a row, why, and what
    shows it."""

    reason: str
    record: int | None = None
    id: str | None = None
    text: str = ""
    detail: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def row(cls, row: Row, reason: str, **detail: Any) -> Dropped:
        return cls(reason, row.get("record"), row["id"], asked(row)[:EXCERPT], detail)


@dataclass
class Converted:
    """Rows (each with `record`, its number in the source, until `finished`), and what was seen on the way."""

    rows: list[Row] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    schemas: Counter[str] = field(default_factory=Counter)
    gold_from: Counter[str] = field(default_factory=Counter)
    columns: set[str] = field(default_factory=set)
    records: int = 0

    def reasons(self) -> dict[str, int]:
        return dict(sorted(Counter(d.reason for d in self.dropped).items()))


def asked(row: Row) -> str:
    """The text of the last question of a row."""
    return next((m["content"] for m in reversed(row["messages"]) if m["role"] == "user"), "")


def kind_of(extra: Record) -> str | None:
    """The kind that the extra columns of a row speak of; None where they speak of none."""
    if "instruction_id_list" in extra:
        return "instructions"
    if "tests" in extra or "verification_info" in extra:
        return "code"
    if "target" in extra and ("nums" in extra or "numbers" in extra):
        return "countdown"
    return "choice" if "choices" in extra else None


class Converter:
    """Converts the records of one source for one use."""

    def __init__(self, spec: DataSpec, what: What, tags: Tags, *, need_gold: bool = True) -> None:
        _check_columns(spec)
        self.spec, self.what, self.tags, self.need_gold = spec, what, tags, need_gold
        self.found = Converted()
        self._by_columns: dict[frozenset[str], list[adapters.Schema]] = {}
        self._last: adapters.Schema | None = None
        self._name = source_name(spec)

    def convert(self, records: Iterable[Record]) -> Converted:
        """All rows. Raises UserError where no record fits a schema."""
        found = self.found
        scored: list[Row] = []
        for record in records:
            found.records += 1
            record = self.mapped(record)
            found.columns.update(map(str, record))
            schema = self._schema(record)
            if schema is None:
                self._drop(record, "unknown_schema")
                continue
            found.schemas[schema.name] += 1
            rows = scored if schema.combines and self.what == "pairs" else found.rows
            try:
                rows += [self._finish(row, record) for row in schema.convert(record, self.what, self.tags)]
            except Drop as drop:
                self._drop(record, str(drop))
        if scored:
            pairs, left = best_against_worst(scored)
            found.rows += pairs
            found.rows.sort(key=lambda row: row["record"])
            found.dropped += [Dropped.row(row, reason) for row, reason in left]
        self._check_recognised()
        if self.need_gold and self.what == "prompts":
            self._leave_out_bare()
        return found

    def mapped(self, record: Record) -> Record:
        """The record with lower-case column names, and the fields that data.columns names."""
        if any(k != k.lower().strip() for k in record if isinstance(k, str)):
            lower = {k.lower().strip(): v for k, v in record.items()}
            record = {**lower, **record}
        if not self.spec.columns:
            return record
        return {**record, **{f: _look_up(record, column) for f, column in self.spec.columns.items()}}

    def _schema(self, record: Record) -> adapters.Schema | None:
        """The first schema whose columns hold something in the record; else of the columns that are there; else the
        one of the record before, so that a row without an answer is that and no unknown shape."""
        filled = frozenset(k for k, v in record.items() if v is not None)
        mapped = frozenset(self.spec.columns)
        for columns in (*([mapped & filled, mapped] if mapped else []), filled, frozenset(record)):
            for schema in self._candidates(columns):
                if schema.sees(record):
                    self._last = schema
                    return schema
        last = self._last
        return last if last is not None and filled.intersection(set().union(*last.needs)) else None

    def _candidates(self, columns: frozenset[str]) -> list[adapters.Schema]:
        found = self._by_columns.get(columns)
        if found is None:
            found = self._by_columns[columns] = adapters.candidates(columns, self.what)
        return found

    def _drop(self, record: Record, reason: str) -> None:
        shown = next((t for c in _SHOWN if (t := text(record.get(c)))), "")
        self.found.dropped.append(Dropped(reason, self.found.records, text=shown[:EXCERPT]))

    def _check_recognised(self) -> None:
        found = self.found
        for field_name, column in self.spec.columns.items():
            if found.records and not any(c == column.split(".")[0] for c in found.columns):
                known = sorted(set(found.columns) - set(self.spec.columns))
                raise UserError(
                    f'{self.spec.source} has no column "{column}"{nearest(column, known)} for {field_name}; '
                    f"found: {', '.join(known)}",
                    hint=f"correct data.columns.{field_name}",
                )
        if found.schemas or not found.records:
            return
        raise UserError(
            f"{self.spec.source} has columns {', '.join(sorted(found.columns))}, which are no known schema for "
            f"{self.what}",
            hint="map them with data.columns (--columns), as in {gold: your_column}; known: "
            + adapters.expected(self.what),
        )

    def _leave_out_bare(self) -> None:
        """In a source of problems with answers, a row with a question alone lacks its answer; in one whose answers
        are marked with ####, a row without the mark says none."""
        found = self.found
        marked = found.schemas["gsm8k"] > 0
        bad = {
            r["record"] for r in found.rows if r.get("bare") and (marked or (r["gold"] is None and found.gold_from))
        }
        if bad:
            found.dropped += [Dropped.row(row, "no_gold") for row in found.rows if row["record"] in bad]
            found.rows = [row for row in found.rows if row["record"] not in bad]

    def _finish(self, row: Row, record: Record) -> Row:
        """The fields that every row has, with what the record says of itself."""
        messages, gold = row["messages"], row.get("gold")
        said = [m["content"] for m in messages]
        said += [row[name] for name in ("chosen", "rejected", "response") if name in row]
        if any(not t.isascii() and _SURROGATE.search(t) for t in said):
            raise Drop("broken_text")  # half a surrogate pair: no tokenizer takes it
        extra = {n: v for n in EXTRAS if n in record and (v := _extra(record[n])) is not None}
        if is_ours(record) and isinstance(record.get("extra"), dict):
            extra |= record["extra"]
        if "extra" in row:  # what the schema made of them
            extra = {k: v for k, v in extra.items() if k != "numbers"} | row["extra"]
        # A source with a column for answers is one of problems: without an answer it is of no use to a reward.
        problems = gold is not None or any(name in record for name in adapters.GOLDS)
        kind = text(record.get("kind")) or self.spec.kind or row.get("kind") or kind_of(extra)
        kind = kind or ("math" if problems else "general")
        if self.what == "prompts" and self.need_gold and gold is None and kind not in WITHOUT_GOLD:
            raise Drop("no_gold")
        if gold is not None and row.get("gold_from"):
            self.found.gold_from[row["gold_from"]] += 1
        question = next((m["content"] for m in reversed(messages) if m["role"] == "user"), "")
        reference = row.get("reference") or text(record.get("reference"))
        pass_rate = number(record.get("pass_rate"))
        return {
            **{k: row[k] for k in ("chosen", "rejected", "response", "label", "score", "unverified") if k in row},
            # By content: steps are paired and splits compared by it. Rows that were ours keep what they have.
            "id": record["id"] if is_ours(record) else row_id(messages),
            "messages": messages,
            "gold": gold,
            "kind": kind,
            "language": languages.code(text(record.get("language"))) or languages.guess(question),
            "level": level(record.get("level")),
            "reference": reference,
            "source": self._name,
            "record": self.found.records,
            **({"extra": extra} if extra else {}),
            **({"pass_rate": pass_rate} if pass_rate is not None else {}),
            **({"lookalike": record["lookalike"]} if isinstance(record.get("lookalike"), bool) else {}),
            **({"bare": True} if row.get("bare") else {}),
        }


_SHOWN = ("question", "problem", "prompt", "instruction", "chosen", "messages", "conversations")


def _check_columns(spec: DataSpec) -> None:
    for name in spec.columns:
        if name not in FIELDS:
            raise UserError(f'data.columns has "{name}"{nearest(name, FIELDS)}', hint=f"fields: {', '.join(FIELDS)}")


def _look_up(record: Record, column: str) -> Any:
    """A column by its name, or a value inside of one: `reward_model.ground_truth`."""
    if column in record or "." not in column:
        return record.get(column)
    value: Any = record
    for part in column.split("."):
        value = parsed(value)
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _extra(value: Any) -> Any:
    """A value for a reward: lists also from their JSON text; nothing where it is empty or cannot be written as JSON
    (NaN, bytes)."""
    value = parsed(value)
    try:
        canonical(value)
    except (TypeError, ValueError):
        return None
    return None if value in (None, "", []) else value


def level(value: Any) -> int | None:
    """`5`, `"5"`, `5.0`, `Level 5` -> 5; None for anything else."""
    found = re.fullmatch(r"(?:level\s*)?(\d{1,4})(?:\.0+)?", (text(value) or "").lower())
    return int(found[1]) if found else None


def source_name(spec: DataSpec) -> str:
    from r1pipe.data.sources import is_local

    return Path(spec.source).name if is_local(spec.source) else spec.source


def finished(rows: Iterable[Row]) -> list[Row]:
    """Rows without what only the loader needs."""
    return [{k: v for k, v in row.items() if k not in ("record", "unverified", "bare")} for row in rows]
