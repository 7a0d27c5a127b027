"""Whole and torn checkpoints."""

from __future__ import annotations

from pathlib import Path

from r1pipe.training import checkpoint


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
