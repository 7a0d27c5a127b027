"""Whole and torn checkpoints, shards, and samples that are kept."""

from __future__ import annotations

from pathlib import Path

from r1pipe.chat import Tags
from r1pipe.rewards import Verdict
from r1pipe.training import checkpoint, keep, shards


def make(folder: Path, step: int, mark: bool = True) -> Path:
    path = folder / f"checkpoint-{step}"
    path.mkdir(parents=True)
    (path / "model.safetensors").write_bytes(b"x" * 100)
    if mark:
        checkpoint.mark(path)
    return path


def test_newest_whole_checkpoint_wins(tmp_path: Path) -> None:
    make(tmp_path, 9)
    make(tmp_path, 10)
    torn = make(tmp_path, 11, mark=False)
    assert checkpoint.last_complete(tmp_path, delete=False) == tmp_path / "checkpoint-10"  # by number, not by name
    assert torn.exists()
    assert checkpoint.last_complete(tmp_path) == tmp_path / "checkpoint-10"
    assert not torn.exists()


def test_damage_is_seen(tmp_path: Path) -> None:
    path = make(tmp_path, 1)
    assert checkpoint.is_complete(path)
    (path / "model.safetensors").write_bytes(b"y" * 100)  # the same size
    assert not checkpoint.is_complete(path)
    path = make(tmp_path, 2)
    (path / "model.safetensors").unlink()
    assert not checkpoint.is_complete(path)
    path = make(tmp_path, 3)
    (path / checkpoint.MARKER).write_text("{")
    assert not checkpoint.is_complete(path)
    assert checkpoint.last_complete(tmp_path) is None
    assert checkpoint.last_complete(tmp_path / "nothing") is None


def test_only_missing_shards_are_made(tmp_path: Path) -> None:
    done: list[int] = []

    def work(index: int, piece: list) -> dict:
        if index == 2 and len(done) == 2:
            raise KeyboardInterrupt  # a kill in the third shard
        done.append(index)
        return {"sum": sum(piece)}

    pieces = shards.split(range(10), 4)
    try:
        shards.run(tmp_path, pieces, "key", work)
    except KeyboardInterrupt:
        done.append(-1)
    results, reused = shards.run(tmp_path, pieces, "key", work)
    assert done == [0, 1, -1, 2] and reused == 2
    assert [r["sum"] for r in results] == [6, 22, 17]
    _, reused = shards.run(tmp_path, pieces, "other settings", work)
    assert reused == 0
    _, reused = shards.run(tmp_path, [pieces[1], *pieces[1:]], "other settings", work)  # another first prompt
    assert reused == 2
    (tmp_path / "shard-00001.json").write_text('{"key": ')
    _, reused = shards.run(tmp_path, pieces, "other settings", work)
    assert reused == 1


def test_reasons_to_drop() -> None:
    good = Tags().wrap("twenty and three make twenty-three", "23")
    right = {"accuracy": Verdict(1.0, "scored"), "language": Verdict(0.97, "scored"), "helpful": None}
    filters = keep.Filters()
    reason = keep.reason_to_drop

    assert reason(good, "stop", right, filters, Tags()) is None
    assert reason(good, "length", right, filters, Tags()) == "truncated"
    assert reason("", "skipped", {}, filters, Tags()) == "skipped"
    assert reason(good, "stop", {"accuracy": Verdict(0.0, "scored")}, filters, Tags()) == "accuracy"
    assert reason(good, "stop", {"language": Verdict(0.9, "scored")}, filters, Tags()) == "language"
    assert reason(good, "stop", {"accuracy": Verdict(None, "error")}, filters, Tags()) == "accuracy_error"
    assert reason(Tags().wrap("so\n```\ncode\n```", "1"), "stop", {}, filters, Tags()) == "code_block"
    assert reason(Tags().wrap("we add one and one. " * 30, "2"), "stop", {}, filters, Tags()) == "repetition"
    short = keep.Filters(longest_paragraph=10)
    assert reason(good, "stop", right, short, Tags()) == "long_paragraph"
    assert keep.repetition("") == 0.0 and keep.repetition("先算一先算一先算一先算一") > 0.5


def test_best_is_distinct_and_capped() -> None:
    samples = [{"text": t} for t in "aabc"]
    assert [s["text"] for s in keep.best(samples, 2)] == ["a", "b"]
