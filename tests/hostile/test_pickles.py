"""A pickle runs what it likes when it is read. Weights in one are refused; our own optimizer state is read without."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from r1pipe import digest as dg
from r1pipe import fingerprint
from r1pipe import manifest as mf
from r1pipe.errors import UserError
from r1pipe.settings import ModelConfig
from r1pipe.stage import POLICY
from r1pipe.training import checkpoint, hub, sft
from tests.training import tiny
from tests.training.test_sft import Killed, config


class Payload:
    """Makes a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return os.mknod, (str(self.mark),)


NAMES = ["pytorch_model.bin", "model.pt", "model.pth", "weights.pkl", "model.ckpt"]


def test_the_payload_works(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(Payload(tmp_path / "ran")))
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", NAMES)
def test_weights_in_a_pickle_are_refused(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "qwen3"}')
    (folder / name).write_bytes(pickle.dumps(Payload(tmp_path / "ran")))
    with pytest.raises(UserError, match="pickle"):
        fingerprint.model_digest(ModelConfig(path=str(folder)))
    with pytest.raises(UserError, match="pickle"):
        hub.weights(folder)
    with pytest.raises(UserError, match="pickle"):
        mf.describe(POLICY, folder, "x", "x", {})
    assert not (tmp_path / "ran").exists()
    assert folder / name not in dg.checkpoint_files(folder)


def test_a_pickle_beside_safetensors_is_never_read(tmp_path: Path) -> None:
    """transformers prefers safetensors; ours asks for nothing else."""
    from r1pipe.training import model

    folder = tiny.make_policy(tmp_path / "model")
    for name in NAMES:
        (folder / name).write_bytes(pickle.dumps(Payload(tmp_path / "ran")))
    (folder / "model.safetensors").unlink()
    with pytest.raises((OSError, UserError)):
        model.load_policy(folder, {})
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["optimizer.pt", "scheduler.pt", "rng_state.pth"])
def test_trainer_state_that_was_exchanged_never_runs(name: str, tmp_path: Path) -> None:
    """The digest finds it, and the checkpoint is not used. Were the digest forged too, the step fails, and still
    nothing runs: the state is read weights-only."""
    import torch

    policy = tiny.make_policy(tmp_path / "policy")
    rows = tiny.traces(40)
    killed = tiny.context(tmp_path / "step", model=policy)

    def progress(step: int, total: int, **values: object) -> None:
        if step == 3:
            raise Killed

    killed.progress = progress  # type: ignore[method-assign]
    with pytest.raises(Killed):
        sft.train(killed, config(), rows, overlong="drop")
    folder = next((tmp_path / "step" / "work").rglob("checkpoint-2"))
    assert checkpoint.is_complete(folder)
    torch.save({"state": Payload(tmp_path / "ran")}, folder / name)
    assert not checkpoint.is_complete(folder)
    checkpoint.mark(folder)  # forged
    again = tiny.context(tmp_path / "step", model=policy, resume=True)
    with pytest.raises(Exception, match=r"(?i)weights.?only"):
        sft.train(again, config(), rows, overlong="drop")
    assert not (tmp_path / "ran").exists()


def test_a_profile_cannot_ask_for_pickles() -> None:
    from r1pipe.training.model import init_kwargs

    assert init_kwargs({"use_safetensors": False})["use_safetensors"] is True
