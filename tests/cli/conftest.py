"""Runs made by hand, sealed by the real `r1pipe.manifest`, and the command line in process."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from r1pipe import digest as dg
from r1pipe import manifest as mf
from r1pipe.cli import app
from r1pipe.store import Attempt, Store, write_json
from tests.engine.conftest import profile, toy_stage  # noqa: F401  fixtures

Sealed = tuple[Attempt, mf.Manifest]


class Made:
    """Builds a run step by step: base → sft → rl (policies), samples (rows)."""

    def __init__(self, runs_dir: Path, run: str = "tiny-full") -> None:
        self.store = Store(runs_dir, run)
        self.store.root.mkdir(parents=True)
        write_json(self.store.run_file, {"run": run, "profile": "tiny", "path": "tiny", "pipeline": "full"})
        self.sealed: dict[str, Sealed] = {}

    def step(
        self,
        step: str,
        *,
        kind: str = "policy",
        inputs: dict[str, str] | None = None,
        evaluation: dict[str, Any] | None = None,
        records: list[dict[str, Any]] | None = None,
        model: Path | None = None,
        config: dict[str, Any] | None = None,
        **more: Any,
    ) -> Sealed:
        read = {port: self.sealed[name] for port, name in (inputs or {}).items()}
        links = {
            port: mf.InputRecord(
                kind=a.kind, uri=a.uri, digest=a.digest, producer=a.producer,
                manifest_digest=dg.file_digest(attempt.manifest),
            )
            for port, (attempt, manifest) in read.items()
            for a in [next(iter(manifest.outputs.values()))]
        }  # fmt: skip
        parts = {"stage": step, "inputs": {p: r.digest for p, r in links.items()}}
        fingerprint = dg.value_digest(parts)
        attempt = self.store.attempt(step, fingerprint)
        name = "model" if kind == "policy" else "rows"
        folder = attempt.output(name)
        folder.mkdir(parents=True)
        self._fill(folder, kind, step, model)
        attempt.log.write_text("what the libraries said\n")
        producer = f"{step}/{attempt.path.name}"
        outputs = {name: mf.describe(kind, folder, f"{producer}/out/{name}", producer, {})}
        if records is not None:
            folder = attempt.output("evaluation")
            folder.mkdir()
            (folder / mf.DATA_FILE).write_text("".join(json.dumps(r) + "\n" for r in records))
            outputs["evaluation"] = mf.describe("dataset", folder, f"{producer}/out/evaluation", producer, {})
        meta = outputs[name].meta
        minute = len(self.sealed)
        manifest = mf.Manifest(
            run=self.store.run, step=step, stage=step, stage_version="1", fingerprint=fingerprint,
            fingerprint_of=parts, config=config or {"evaluation": {"temperature": 1.0}}, inputs=links, outputs=outputs,
            metrics=more.pop("metrics", {}), evaluation=evaluation or {}, environment={},
            chat_template_digest=meta.get("chat_template_digest"), tokenizer_digest=meta.get("tokenizer_digest"),
            seed=42, seconds=20.0, timing={"run": 15.0, "evaluate": 4.0, "seal": 0.25, "startup": 9.0},
            started=f"2026-01-01T00:{minute:02}:00+00:00", finished=f"2026-01-01T00:{minute:02}:30+00:00", **more,
        )  # fmt: skip
        mf.seal(attempt, manifest)
        self.sealed[step] = (attempt, manifest)
        return attempt, manifest

    @staticmethod
    def _fill(folder: Path, kind: str, step: str, model: Path | None) -> None:
        if model is not None:
            for path in dg.checkpoint_files(model):
                shutil.copy(path, folder)
        elif kind == "policy":
            (folder / "config.json").write_text('{"model_type": "qwen3"}')
            (folder / "tokenizer.json").write_text("{}")
            (folder / "chat_template.jinja").write_text("{{ messages }}")
            save_file({"w": np.full(8, len(step), dtype=np.float32)}, folder / "model.safetensors")
        else:
            (folder / mf.DATA_FILE).write_text("".join(f'{{"id": "{step}{i}"}}\n' for i in range(3)))

    @property
    def manifests(self) -> dict[str, mf.Manifest]:
        return {step: manifest for step, (_, manifest) in self.sealed.items()}


def number(value: float, width: float = 0.02) -> dict[str, Any]:
    return {"value": value, "low": value - width, "high": value + width, "n": 100}


def evaluation(accuracy: float) -> dict[str, Any]:
    """The evaluation of a step, as r1pipe.evaluate writes it."""
    common = {"format": number(0.99), "language": number(0.9), "tokens": number(60.0), "truncated": number(0.01)}
    rest = {"problems": 100, "samples": 1, "skipped": 0, "status": {"scored": 100}}
    return {
        "heldout": {
            "sample": {"accuracy": number(accuracy), **common, **rest},
            "greedy": {"accuracy": number(accuracy + 0.05), **common, **rest},
        },
        "range": {"greedy": {"accuracy": number(accuracy - 0.1), **common, **rest}},
        "general": {"greedy": {"refusal_unsafe": number(0.97), "refusal_safe": number(0.03), **common, **rest}},
    }


def records(accuracy: float, rows: int = 100) -> list[dict[str, Any]]:
    return [
        {"id": f"{i:016x}", "kind": "number", "lookalike": False, "set": name, "mode": mode,
         "correct": float(i < accuracy * rows), "format": 1.0, "language": 0.9, "tokens": 60.0, "truncated": 0.0,
         "refusal": None}
        for name, mode in (("heldout", "sample"), ("heldout", "greedy"), ("range", "greedy"))
        for i in range(rows)
    ]  # fmt: skip


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """base → sft → rl, sealed, with evaluations; rows made from rl."""
    run = Made(tmp_path / "runs")
    run.step("base", evaluation=evaluation(0.2), records=records(0.2))
    run.step("sft", inputs={"model": "base"}, evaluation=evaluation(0.5), records=records(0.5))
    run.step("rl", inputs={"model": "sft"}, evaluation=evaluation(0.8), records=records(0.8))
    run.step("samples", kind="dataset", inputs={"model": "rl"}, metrics={"kept": 16, "kept_rate": 0.5})
    run.step("resft", inputs={"model": "base", "rows": "samples"}, evaluation=evaluation(0.85), records=records(0.85))
    return run


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """The command line in process: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("R1PIPE_RUNS_DIR", str(tmp_path / "runs"))

    def run(*arguments: str) -> tuple[int, str, str]:
        code = app.dispatch(list(arguments))
        said = capsys.readouterr()
        return code, said.out, said.err

    return run
