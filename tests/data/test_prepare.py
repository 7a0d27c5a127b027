"""The folder that `r1pipe data prepare` writes, and that it is a source."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from r1pipe.data import files, prepare
from r1pipe.data.load import golds_checked, load, read_rows, source_digest
from r1pipe.digest import file_digest, rows_digest
from r1pipe.errors import UserError
from r1pipe.settings import Cleaning, DataSpec
from tests.data.test_files import jsonl

RECORDS = (
    {"problem": "What is 2+2?", "answer": "4", "solution": "two and two"},
    {"problem": "what is 2 + 2", "answer": "4"},
    {"problem": "What is 7*8?", "answer": "56"},
    {"problem": "Prove it.", "answer": "proof"},
    {"problem": None, "answer": "1"},
    {"problem": "What is \u20282/3 of 9?", "answer": 6.0},
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return jsonl(tmp_path / "x.jsonl", *RECORDS)


def made(source: Path, out: Path, clean: Cleaning | None = None, **more: Any) -> dict[str, Any]:
    spec = DataSpec(source=str(source), clean=clean or Cleaning(), **more)
    return prepare.prepare(spec, None, out, seed=0)


def test_what_is_written(source: Path, tmp_path: Path) -> None:
    against = jsonl(tmp_path / "eval.jsonl", {"problem": "what is 7*8"})
    manifest = made(source, tmp_path / "out", Cleaning(decontaminate=[str(against)]))  # type: ignore[list-item]
    out = tmp_path / "out"
    assert sorted(p.name for p in out.iterdir()) == ["README.md", "data.jsonl", "dropped.jsonl", "manifest.json"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["eval.jsonl", "out", "x.jsonl"]
    assert json.loads((out / "manifest.json").read_text()) == manifest
    rows = read_rows(out / "data.jsonl")
    assert [r["gold"] for r in rows] == ["4", "6.0"] and rows[0]["reference"] == "two and two"
    assert set(rows[0]) == {"id", "messages", "gold", "kind", "language", "level", "reference", "source"}
    assert manifest["rows"] == 2 and manifest["records"] == 6 and manifest["use"] == "prompts"
    assert manifest["dropped"] == {"contaminated": 1, "duplicate": 1, "gold_unusable": 1, "no_question": 1}
    assert manifest["digest"] == rows_digest((out / "data.jsonl").read_text(encoding="utf-8").split("\n"))[0]
    assert manifest["sha256"] == file_digest(out / "data.jsonl")
    assert manifest["source"]["digest"] == file_digest(source)
    assert manifest["against"] == [{"source": str(against), "split": "test", "digest": file_digest(against)}]
    dropped = {d["reason"]: d for d in read_rows(out / "dropped.jsonl")}
    assert dropped["contaminated"]["detail"]["ngram"] == "what is 7 * 8" and dropped["contaminated"]["record"] == 3
    assert dropped["duplicate"]["detail"]["of"] == rows[0]["id"]
    assert dropped["no_question"] == {"reason": "no_question", "record": 5, "id": None, "text": ""}
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "| left out: contaminated | 1 |" in card and "What is 2+2?" in card and manifest["digest"] in card


def test_the_folder_is_a_source(source: Path, tmp_path: Path) -> None:
    made(source, tmp_path / "out")
    spec = DataSpec(source=str(tmp_path / "out"))
    back = {r["id"]: r for r in load(spec, "prompts", seed=0)}
    assert back == {r["id"]: {**r, "source": "out"} for r in read_rows(tmp_path / "out" / "data.jsonl")}
    assert source_digest(spec) == file_digest(tmp_path / "out" / "data.jsonl")
    assert golds_checked(spec)
    (tmp_path / "out" / "data.jsonl").open("a").write("\n")
    assert not golds_checked(spec)  # edited by hand: looked at again


def test_pairs_labels_and_traces_come_back(tmp_path: Path) -> None:
    for what in ("pairs", "labels", "traces"):
        spec = DataSpec(source="generated:general", rows=30)
        prepare.prepare(spec, what, tmp_path / what, seed=0)  # type: ignore[arg-type]
        rows = read_rows(tmp_path / what / "data.jsonl")
        again = load(DataSpec(source=str(tmp_path / what)), what, seed=0)  # type: ignore[arg-type]
        key = lambda r: json.dumps(r, sort_keys=True)  # noqa: E731
        assert sorted(again, key=key) == sorted(({**r, "source": what} for r in rows), key=key)


def test_columns_of_rewards_come_back(tmp_path: Path) -> None:
    source = jsonl(
        tmp_path / "x.jsonl",
        {"nums": [1, 2], "target": 3},
        {"question": "Which?", "choices": ["a", "b"], "answer": 1},
        {"problem": "x?", "answer": {"a": [1.5]}, "pass_rate": 0.25},
        {"prompt": "Write.", "instruction_id_list": ["length_constraints:number_words"], "kwargs": [{"num_words": 9}]},
    )
    made(source, tmp_path / "out")
    rows = read_rows(tmp_path / "out" / "data.jsonl")
    assert [r["kind"] for r in rows] == ["countdown", "choice", "json", "instructions"]
    back = {r["id"]: r for r in load(DataSpec(source=str(tmp_path / "out")), "prompts", seed=0)}
    assert back == {r["id"]: {**r, "source": "out"} for r in rows}
    assert rows[0]["extra"] == {"nums": [1, 2], "target": 3} and rows[2]["pass_rate"] == 0.25


def test_rows_are_drawn_by_the_seed(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "x.jsonl", *({"problem": f"{i} + 1?", "answer": i + 1} for i in range(50)))
    manifest = made(source, tmp_path / "a", rows=10)
    assert (manifest["rows"], manifest["not_drawn"], manifest["dropped"]) == (10, 40, {})
    golds = [int(r["gold"]) for r in read_rows(tmp_path / "a" / "data.jsonl")]
    assert golds == sorted(golds) and golds != list(range(1, 11))
    assert made(source, tmp_path / "b", rows=10)["digest"] == manifest["digest"]


def test_only_ours_is_replaced(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = made(source, out)
    jsonl(source, {"problem": "1+1?", "answer": 2})
    assert made(source, out)["digest"] != first["digest"]
    (out / "manifest.json").unlink()
    with pytest.raises(UserError, match="not of data prepare"):
        made(source, out)
    (out / "mine.txt").write_text("mine")
    spec = DataSpec(source=str(source), clean=Cleaning())
    prepare.prepare(spec, None, out, seed=0, force=True)
    assert files.prepared(out) and (out / "mine.txt").read_text() == "mine"
    with pytest.raises(UserError, match="is a file"):
        made(source, source)
    (tmp_path / "in").mkdir()
    jsonl(tmp_path / "in" / "data.jsonl", {"problem": "1+1?", "answer": 2})
    with pytest.raises(UserError, match="would overwrite the source"):
        prepare.prepare(DataSpec(source=str(tmp_path / "in")), None, tmp_path / "in", seed=0, force=True)


def test_a_failure_leaves_nothing(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jsonl(tmp_path / "bad.jsonl", {"problem": "Prove it.", "answer": "proof"})
    with pytest.raises(UserError, match=r"no rows for prompts are left of .*: 1 gold_unusable"):
        made(tmp_path / "bad.jsonl", tmp_path / "out")
    made(source, tmp_path / "old")
    before = {p.name: p.read_bytes() for p in (tmp_path / "old").iterdir()}

    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device", "x")

    monkeypatch.setattr(prepare, "write_json", full)
    for out in ("new", "old"):
        with pytest.raises(OSError, match="No space"):
            made(source, tmp_path / out)
    assert {p.name: p.read_bytes() for p in (tmp_path / "old").iterdir()} == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.jsonl", "old", "x.jsonl"]


def test_twenty_thousand_rows_in_seconds(tmp_path: Path) -> None:
    records = ({"problem": f"What is {i} plus {i * 7}, and why is that so?", "answer": i * 8} for i in range(20_000))
    source = jsonl(tmp_path / "x.jsonl", *records)
    started = time.process_time()
    assert made(source, tmp_path / "out", Cleaning(near_dup=0.8))["rows"] == 20_000
    assert time.process_time() - started < 20  # two on an idle machine
