"""Families for real: a tiny model of the family's own architecture learns one answer by SFT, then samples it and stops
at the end of its turn; GRPO's rollouts of it are paid in full. Slow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from r1pipe.generate.base import Ask
from r1pipe.generate.transformers_engine import TransformersSampler
from r1pipe.settings import SamplingConfig
from r1pipe.training import sft
from r1pipe.training.settings import TrainerStep
from stages import base_model, reasoning_grpo
from tests.templates import families
from tests.templates.families import BY_NAME
from tests.templates.test_families import ROW, chat, format_score
from tests.training import tiny

pytestmark = pytest.mark.slow
ASKED = [ROW["messages"][0]]


def architecture(name: str) -> Any:
    import transformers

    return getattr(transformers, f"{name}Config")


@pytest.mark.parametrize(
    ("name", "kind", "template"),
    [
        ("gemma", "Gemma", "model"),
        ("mistral", "Mistral", "model"),
        ("llama3", "Llama", "model"),
        ("phi3", "Phi3", "model"),
        ("qwen3-thinking", "Qwen3", "model"),
        ("deepseek-r1-distill-kept", "Qwen2", "model"),
        ("deepseek-r1-distill", "Qwen2", "builtin:r1"),
    ],
)
def test_what_is_trained_is_sampled_and_paid(name: str, kind: str, template: str, tmp_path: Path) -> None:
    source = families.folder(tmp_path / "source", BY_NAME[name], architecture(kind))
    said = chat(template)
    base = tiny.context(tmp_path / "base")
    base_model.run(
        base, base_model.Config(stage="base-model", base_model={"path": str(source)}, chat=said.model_dump())
    )
    config = TrainerStep(
        stage="sft",
        chat=said.model_dump(),
        trainer={"max_length": 512, "max_steps": 60, "per_device_train_batch_size": 2, "learning_rate": 1.0e-2,
                 "lr_scheduler_type": "constant", "gradient_checkpointing": False, "save_steps": 60},
    )  # fmt: skip
    trained = tiny.context(tmp_path / "sft", model=base.outputs["model"])
    metrics = sft.train(trained, config, [ROW, ROW], overlong="drop")
    assert metrics["train/loss"] < 0.1

    sampler = TransformersSampler(trained.outputs["model"], said, dtype="float32")
    asks = [[Ask("0", ASKED, (1,))]]
    (made,) = sampler.stream(asks, SamplingConfig(temperature=0.0, max_tokens=120))
    ((_, sample),) = made
    assert sample.finish == "stop" and sample.tokens < 120  # the end of the turn was learned, and it stops
    assert sample.text.strip().startswith("<think>") and format_score(sample.text) == 1
    assert sampler.facts["prefilled_think"] == (template == "model" and bool(BY_NAME[name].prefix))

    (tmp_path / "p.jsonl").write_text(_line())
    grpo = reasoning_grpo.Config(
        stage="reasoning-grpo", chat=said.model_dump(), steps=1, preflight={"enabled": False},
        data=[{"source": str(tmp_path / "p.jsonl"), "kind": "number"}] ,
        trainer={**tiny.GRPO, "max_completion_length": 120, "temperature": 0.1},
    )  # fmt: skip
    last = tiny.context(tmp_path / "grpo", model=trained.outputs["model"])
    got = reasoning_grpo.run(last, grpo)
    assert got["train/format"] > 0.9 and got["train/accuracy"] > 0.9 and got.get("train/cut", 0) == 0
    assert last.facts["prefilled_think"] == sampler.facts["prefilled_think"]
    assert last.facts["kl_first_step"] == pytest.approx(0, abs=1e-3)


def _line() -> str:
    rows = [{**ROW, "id": f"{n:016x}", "messages": ASKED} for n in range(2)]
    return "".join(json.dumps(row) + "\n" for row in rows)
