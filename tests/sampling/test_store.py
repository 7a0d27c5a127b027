"""Shards: what a kill leaves is usable, and a sample is known by its prompt, the settings and its index."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from r1pipe.sampling.prompts import Prompt, key_of
from r1pipe.sampling.store import Log, Store, foreign

RULES = "rules"
SETTINGS = {"model": "m", "sampling": {"temperature": 1.0}}


def prompt(number: int, n: int = 2) -> Prompt:
    conversation = [{"role": "user", "content": f"{number} + 1 = ?"}]
    row = {"id": f"{number:016x}", "messages": conversation, "kind": "number", "source": "s"}
    return Prompt(row, key_of(conversation), conversation, n, 1)


def text(p: Prompt, index: int) -> dict[str, Any]:
    return {"key": p.key, "index": index, "text": f"{p.row['id']}/{index}", "tokens": 3, "finish": "stop"}


def verdict(p: Prompt, index: int) -> dict[str, Any]:
    return {"key": p.key, "index": index, "reason": None, "right": True, "verdicts": {}}


def store(root: Path, prompts: list[Prompt], settings: dict[str, Any] = SETTINGS, **more: Any) -> Store:
    return Store(root, prompts, settings=settings, rules=RULES, **{"shard_size": 2, **more})


def fill(made: Store) -> int:
    """Makes what is missing; how many samples that was."""
    new = 0
    for shard in made.shards:
        if shard.marker() is not None:
            continue
        shard.open(made.earlier)
        for p in shard.prompts:
            todo = [i for i in range(p.n) if i not in shard.have(p)]
            new += len(todo)
            shard.add_texts([text(p, i) for i in todo])
            shard.add_verdicts([verdict(p, i) for i in range(p.n) if (p.key, i) not in shard.verdicts])
        shard.finish()
    return new


def made(of: Store) -> list[str]:
    return [s["text"] for _, samples in of.samples() for s in samples]


def test_a_torn_tail_is_cut_before_the_first_line(tmp_path: Path) -> None:
    """known-failures f4: two lines, the second cut in half; two resumes, no broken line."""
    path = tmp_path / "log.jsonl"
    first = Log(path)
    first.append([{"n": 1}])
    first.close()
    for number in (2, 3):
        with path.open("ab") as handle:
            handle.write(b'{"n": 9, "to')
        log = Log(path)
        assert [row["n"] for row in log.read()] == list(range(1, number)) and log.torn == 1
        log.append([{"n": number}])
        log.close()
    log = Log(path)
    assert [row["n"] for row in log.read()] == [1, 2, 3] and log.torn == 0
    assert path.read_bytes() == b'{"n":1}\n{"n":2}\n{"n":3}\n'


def test_a_file_that_is_one_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"text": "' + b"x" * 200_000)
    log = Log(path)
    assert list(log.read()) == []
    log.append([{"n": 1}])
    log.close()
    assert path.read_bytes() == b'{"n":1}\n'


def test_no_text_can_hold_a_line_end(tmp_path: Path) -> None:
    """known-failures f5, and what no UTF-8 file can hold."""
    texts = ["a\u2028b\u0085c\nd\re", "\ud800", "算", "\x00\x1b[31m"]
    log = Log(tmp_path / "log.jsonl")
    log.append({"text": t} for t in texts)
    log.close()
    assert [row["text"] for row in Log(tmp_path / "log.jsonl").read()] == texts
    assert (tmp_path / "log.jsonl").read_bytes().count(b"\n") == 4


def test_only_what_is_missing_is_made(tmp_path: Path) -> None:
    prompts = [prompt(i) for i in range(5)]
    assert fill(store(tmp_path, prompts)) == 10
    again = store(tmp_path, prompts)
    assert [s.marker() is not None for s in again.shards] == [True, True, True] and fill(again) == 0
    log = again.folder / "shard-00001.texts.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:3]))
    assert [s.marker() is not None for s in store(tmp_path, prompts).shards] == [True, False, True]
    assert fill(store(tmp_path, prompts)) == 1
    assert made(store(tmp_path, prompts)) == [f"{i:016x}/{j}" for i in range(5) for j in range(2)]


def test_prompts_left_out_added_and_reordered(tmp_path: Path) -> None:
    """known-failures f6: run, then remove a prompt, resume: no duplicates, no holes, nothing made again."""
    prompts = [prompt(i) for i in range(5)]
    fill(store(tmp_path, prompts))
    fewer = [prompts[4], prompts[0], prompts[3], prompts[1]]
    assert fill(store(tmp_path, fewer)) == 0
    assert made(store(tmp_path, fewer)) == [f"{p.row['id']}/{j}" for p in fewer for j in range(2)]
    more = [prompt(9), *prompts]
    assert fill(store(tmp_path, more)) == 2
    assert fill(store(tmp_path, [prompt(i, n=3) for i in range(5)])) == 5  # one more sample of each


def test_an_earlier_attempt_is_taken_over(tmp_path: Path) -> None:
    prompts = [prompt(i) for i in range(5)]
    fill(store(tmp_path / "one", prompts[:3]))
    (other,) = (tmp_path / "one").iterdir()
    with (other / "shard-00000.texts.jsonl").open("ab") as handle:
        handle.write(b'{"key": "torn')
    new = store(tmp_path / "two", prompts, others=[other, tmp_path / "nothing"])
    assert fill(new) == 4
    assert (new.folder / "shard-00000.texts.jsonl").read_bytes().count(b"\n") == 4, "it stands on its own"


def test_what_a_finished_step_kept_is_taken_over(tmp_path: Path) -> None:
    """Its work may be gone (`r1pipe prune`): every sample is in its output, rewritten ones as they were before."""
    prompts = [prompt(i) for i in range(2)]
    rows = [text(p, i) | {"reason": None, "verdicts": {}} for p in prompts for i in range(2)]
    rows[1] |= {"text": "rewritten", "rewritten_from": rows[1]["text"]}
    rows[2]["reason"] = "failed"
    (tmp_path / "out").mkdir()
    log = Log(tmp_path / "out" / "samples.jsonl")
    log.append(rows)
    log.close()
    (tmp_path / "out" / "settings.json").write_text(json.dumps(SETTINGS))
    new = store(tmp_path / "work", prompts, others=[tmp_path / "out"])
    assert fill(new) == 1, "the one that failed"
    assert made(new) == [f"{i:016x}/{j}" for i in range(2) for j in range(2)]
    other = store(tmp_path / "other", prompts, {"model": "another"}, others=[tmp_path / "out"])
    assert fill(other) == 4


def test_other_settings_are_other_samples(tmp_path: Path) -> None:
    prompts = [prompt(i) for i in range(3)]
    fill(store(tmp_path, prompts))
    hotter = {"model": "m", "sampling": {"temperature": 0.7}}
    assert foreign(tmp_path, SETTINGS) == []
    ((path, n, differences),) = foreign(tmp_path, hotter)
    assert n == 6 and differences == ["sampling.temperature 1.0 → 0.7"] and path.parent == tmp_path
    assert fill(store(tmp_path, prompts, hotter)) == 6
    assert fill(store(tmp_path, prompts)) == 0, "what was there is there still"


def test_what_failed_is_tried_again(tmp_path: Path) -> None:
    prompts = [prompt(0)]
    first = store(tmp_path, prompts)
    shard = first.shards[0]
    shard.open(first.earlier)
    shard.add_texts([text(prompts[0], 0)])
    shard.add_verdicts([verdict(prompts[0], 0)])
    shard.failed[(prompts[0].key, 1)] = {"index": 1, "text": "", "finish": "skipped", "reason": "failed"}
    assert shard.whole
    shard.finish()
    assert [s["reason"] for _, samples in first.samples() for s in samples] == [None, "failed"]
    assert shard.marker() is None and fill(store(tmp_path, prompts)) == 1
