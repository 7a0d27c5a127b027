"""The rows of a set: the one way from what a profile or a suite describes to problems.

Sources that are rows already (problem and answer, messages, generated, ...) go through `r1pipe.data.load`, as in
training. A set that says `choices`, `kinds`, `tests` or `between` is made from raw records here:

choices  a multiple choice: {"Question": ..., "Correct Answer": ..., "Incorrect Answer 1": ...} (GPQA). The order of a
         problem's choices follows from its question alone: the same in every run, seed and step.
kinds    safety or general by a column: {"prompt": ..., "label": "unsafe"} (XSTest). Safe prompts are look-alikes.
tests    programs: {"question_content": ..., "public_test_cases": "[...]", "private_test_cases": "...", "metadata":
         '{"func_name": ...}', "starter_code": ...} (LiveCodeBench; its private tests are a pickled text, which is
         read by an unpickler that knows no names at all).
between  a window of dates.

Every record that becomes no problem is counted as evaluation/<set>/dropped/<reason>.
"""

from __future__ import annotations

import base64
import io
import json
import pickle
import random
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from r1pipe.data import adapters, files, hub
from r1pipe.data.load import is_local, load
from r1pipe.data.rows import guess_language, row_id
from r1pipe.errors import UserError, nearest
from r1pipe.settings import DataSpec, EvalSet
from r1pipe.stage import StageContext

Row = dict[str, Any]

# The rows of a set never depend on a step's seed: steps are compared problem by problem.
DATA_SEED = 0
LETTERS = "ABCDEFGHIJ"
QUESTIONS = ("question", "problem", "prompt", "Question", "question_content")
CHOICES = "{question}\n\n{choices}\n\nAnswer with the letter of the right choice."
PROGRAM = "{question}\n\n{format}"
LCB_SECONDS = 6.0  # a test, as in its own runner
MOST_TESTS = 256 * 2**20  # bytes of the tests of a problem, unpacked


def rows_of(part: EvalSet, ctx: StageContext) -> list[Row]:
    """The problems of a set, each once, in an order that only the source decides."""
    raw = bool(part.choices or part.kinds or part.tests or part.between)
    loaded = _made(part, ctx) if raw else load(part.data, "prompts", seed=DATA_SEED, ctx=ctx)
    rows = list({row["id"]: row for row in loaded}.values())
    if len(rows) < len(loaded):
        ctx.count("evaluation/duplicates", len(loaded) - len(rows))
    if part.prompt is not None and not raw:
        rows = [_put(row, part.prompt) for row in rows]
    return rows


def _put(row: Row, template: str) -> Row:
    """The row with its question put as the template says; its id stays that of the problem."""
    *before, last = row["messages"]
    return {**row, "messages": [*before, {**last, "content": _fill(template, question=last["content"])}]}


def _fill(template: str, **parts: str) -> str:
    """`{name}` replaced; other braces (LaTeX) stay as they are."""
    for name, text in parts.items():
        before, found, after = template.partition("{" + name + "}")
        if found:  # what was filled in is not looked at again
            return _fill(before, **parts) + text + _fill(after, **parts)
    return template


def _made(part: EvalSet, ctx: StageContext) -> list[Row]:
    for key in ("clean", "weight"):
        if getattr(part.data, key, None) is not None:
            raise UserError(f"set {part.name}: data.{key} has no use with choices, kinds, tests or between")
    dropped: Counter[str] = Counter()
    made = []
    for record in records(part.data, dropped):
        try:
            made.append(_row(part, record))
        except adapters.Drop as drop:
            dropped[str(drop)] += 1
    made = _usable(made, dropped)
    for reason, n in sorted(dropped.items()):
        ctx.count(f"evaluation/{part.name}/dropped/{reason}", n)
    if not made:
        why = ", ".join(f"{n} {reason}" for reason, n in sorted(dropped.items())) or "the source is empty"
        raise UserError(f"set {part.name}: no problems in {part.data.source} (split {part.data.split}): {why}")
    random.Random(f"{DATA_SEED}/{part.data.source}/{part.data.split}").shuffle(made)
    if part.data.rows is not None and len(made) < part.data.rows:
        ctx.count("data/missing_rows", part.data.rows - len(made))
    return made[: part.data.rows]


def _usable(rows: list[Row], dropped: Counter[str]) -> list[Row]:
    from r1pipe.rewards import correctness

    reasons = correctness.check_golds(rows)
    dropped["gold_unusable"] += sum(r is not None for r in reasons)
    dropped += Counter()  # without zeros
    return [row for row, reason in zip(rows, reasons, strict=True) if reason is None]


def records(spec: DataSpec, dropped: Counter[str]) -> Iterator[dict[str, Any]]:
    """The records of a source as they are: local files, files of a hub repository, or a hub dataset."""
    paths: Iterable[Path] = ()
    if is_local(spec.source):
        paths = files.find(spec.source, spec.split)
    elif set(spec.args) == {"data_files"}:
        paths = _download(spec)
    else:
        yield from hub.read(spec)
    for path in paths:
        yield from files.read(path, lambda reason: dropped.update([reason]))


def _download(spec: DataSpec) -> list[Path]:
    """Files of a dataset's repository, for one that would need a script of its own to be read."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    hub.pinned(spec)
    names = spec.args["data_files"]
    try:
        return [
            Path(hf_hub_download(spec.source, name, repo_type="dataset", revision=spec.revision))
            for name in ([names] if isinstance(names, str) else names)
        ]
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as error:
        first = str(error).strip().split("\n")[0][:300]
        raise UserError(
            f"cannot get {names} of {spec.source}: {first}",
            hint="check the id, the revision and the network; or download the files and give their folder as source",
        ) from error


def _row(part: EvalSet, record: dict[str, Any]) -> Row:
    for column, (low, high) in part.between.items():
        if not low <= str(_column(part, record, column)) <= high:
            raise adapters.Drop("outside_window")
    question = _question(part, record)
    row: Row = {
        "id": row_id([{"role": "user", "content": question}]),
        "gold": None,
        "kind": part.data.kind or "general",
        "language": guess_language(question),
        "level": None,
        "reference": None,
        "source": Path(part.data.source).name if is_local(part.data.source) else part.data.source,
    }
    asked = {"question": question}
    template = part.prompt or "{question}"
    if part.choices:
        asked["choices"] = _choose(part, record, row)
        template = part.prompt or CHOICES
    if part.tests:
        asked["format"] = _program(record, row)
        template = part.prompt or PROGRAM
    if part.kinds:
        value = str(_column(part, record, part.kinds.column)).strip()
        if value not in part.kinds.values:
            raise adapters.Drop("unknown_kind")
        row["kind"] = part.kinds.values[value]
        row["lookalike"] = row["kind"] == "general"
    return {**row, "messages": [{"role": "user", "content": _fill(template, **asked)}]}


def _column(part: EvalSet, record: dict[str, Any], column: str) -> Any:
    if column not in record:
        raise UserError(
            f'set {part.name}: {part.data.source} has no column "{column}"{nearest(column, record)}',
            hint="correct the set's columns",
        )
    return record[column]


def _question(part: EvalSet, record: dict[str, Any]) -> str:
    named = part.data.columns.get("question") or part.data.columns.get("prompt")
    column = named or next((c for c in QUESTIONS if c in record), None)
    if column is None:
        raise UserError(
            f"set {part.name}: no column with the question in {part.data.source} (found: {', '.join(record)})",
            hint="data.columns: {question: YOUR_COLUMN}",
        )
    found = adapters.text(_column(part, record, column))
    if not found:
        raise adapters.Drop("no_question")
    return found


def _choose(part: EvalSet, record: dict[str, Any], row: Row) -> str:
    """Puts the shuffled choices and the right letter into the row; the choices as lines."""
    texts = [adapters.text(_column(part, record, column)) for column in part.choices]
    given = [t for t in texts if t]
    if len(given) < len(texts) or len(set(given)) < len(given):
        raise adapters.Drop("choices_missing_or_equal")
    order = list(range(len(given)))
    random.Random(f"choices/{row['id']}").shuffle(order)
    shown = {LETTERS[place]: given[index] for place, index in enumerate(order)}
    row |= {"kind": "choice", "gold": LETTERS[order.index(0)], "extra": {"choices": shown}}
    return "\n".join(f"{letter}) {text}" for letter, text in shown.items())


def _program(record: dict[str, Any], row: Row) -> str:
    """Puts the tests into the row; how the program is to be written."""
    try:
        tests = _tests(record)
    except (ValueError, TypeError, KeyError, zlib.error, pickle.UnpicklingError, EOFError, RecursionError):
        raise adapters.Drop("tests_unreadable") from None
    if not tests:
        raise adapters.Drop("no_tests")
    row |= {"kind": "code", "extra": {"tests": tests, "time_limit_s": LCB_SECONDS}}
    starter = adapters.text(record.get("starter_code"))
    if starter:
        return (
            "Write the solution in Python, as a completion of this code:\n"
            f"```python\n{starter}\n```\nGive the whole program in one ```python block."
        )
    return (
        "Write a Python program that reads the input from standard input and prints the answer to standard output. "
        "Give the whole program in one ```python block."
    )


def _tests(record: dict[str, Any]) -> list[dict[str, Any]]:
    """LiveCodeBench's public and private tests, as the sandbox reads them."""
    function = json.loads(record.get("metadata") or "{}").get("func_name")
    found = []
    for test in [*json.loads(record.get("public_test_cases") or "[]"), *_private(record.get("private_test_cases"))]:
        if test.get("testtype") == "functional":
            if not function:
                raise ValueError("a functional test without the name of the function")
            kind: dict[str, Any] = {"type": "function_call", "fn_name": function}
        else:
            kind = {"type": "stdin_stdout"}
        found.append({**kind, "input": test["input"], "output": test["output"]})
    return found


class _OnlyData(pickle.Unpickler):
    """Knows no names: numbers, texts and lists come out, nothing can be called."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} is no data")


def _private(value: Any) -> list[Any]:
    if not value:
        return []
    try:
        found = json.loads(value)
    except ValueError:
        inflate = zlib.decompressobj()
        data = inflate.decompress(base64.b64decode(value), MOST_TESTS)
        if inflate.unconsumed_tail:
            raise adapters.Drop("tests_too_large") from None
        text = _OnlyData(io.BytesIO(data)).load()
        found = json.loads(text) if isinstance(text, str | bytes) else text
    if not isinstance(found, list):
        raise ValueError("the private tests are no list")
    return found
