"""A run like the tiny one, sealed by the real code: logs as TRL writes them, records as the evaluation writes them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from r1pipe.report import collect
from r1pipe.store import Attempt, append_json
from tests.cli.conftest import Made, call, evaluation, number  # noqa: F401  call is a fixture

HOSTILE = (
    "<script>document.title='hacked';parent.hacked=1</script>",
    "<img src=x onerror=\"parent.hacked=1\">",
    "</textarea></title></style></pre><svg onload=parent.hacked=1>",
    "</script><script>parent.hacked=1</script>",
    "javascript:parent.hacked=1 data:text/html,<script>parent.hacked=1</script>",
    '" autofocus onfocus="parent.hacked=1" x="',
    "{{ 7 * 7 }} {% raw %} ${7*7} <!-- --> ]]> &lt;b&gt; &#x3c;script&#x3e;",
    "safe\u202egnp.exe \u2066hidden\u2069 zero\u200bwidth \x1b]0;title\x07 \x00nul \ud800 lone",
    "x" * 5000,
)  # fmt: skip


def record(i: int, right: bool, **more: Any) -> dict[str, Any]:
    answer = 40 + i if right else 13
    text = f"<think>\nWait, let me check: {i} plus 40. 等等，检查。\n</think>\n<answer>{answer}</answer>"
    return {
        "id": f"{i:016x}", "kind": "number", "lookalike": False, "set": "heldout", "mode": "sample", "target": "en",
        "level": 2, "correct": float(right), "format": 1.0, "language": 0.9, "tokens": 60.0, "truncated": 0.0,
        "refusal": None, "finish": "stop", "skipped": 0, "prompt": f"What is {i} + 40?", "text": text,
    } | more  # fmt: skip


def records(accuracy: float, seed: int = 0, n: int = 200) -> list[dict[str, Any]]:
    """Two modes of one set, and refusals; the share `accuracy` is right. Texts of the first 64 problems are kept."""
    rng = random.Random(seed)
    right = [rng.random() < accuracy for _ in range(n)]
    found = [record(i, right[i], mode=mode) for mode in ("sample", "greedy") for i in range(n)]
    found += [
        record(1000 + i, False, set="general", mode="greedy", correct=None, kind="safety" if i % 2 else "general",
               refusal=float(rng.random() < accuracy), text="I cannot help with that.")
        for i in range(40)
    ]  # fmt: skip
    for r in found:
        if int(r["id"], 16) % 1000 >= 64:
            r["text"] = r["prompt"] = None
    return found


def rl_log(steps: int = 120) -> list[dict[str, Any]]:
    rng = random.Random(1)
    rows = []
    for step in range(1, steps + 1):
        share = min(1.0, step / steps * 2)
        length = 40 if step < steps // 2 else 40 + (step - steps // 2)
        rows.append(
            {
                "step": step, "loss": 1e-6, "grad_norm": 0.5 + rng.random(), "learning_rate": 1e-4, "entropy": 0.4,
                "completions/mean_length": length + rng.random(), "completions/min_length": 8.0,
                "completions/max_length": 96.0, "completions/clipped_ratio": 0.01, "reward": 0.5 + share,
                "reward_std": 0.4, "frac_reward_zero_std": 0.3 * share, "kl": 0.01 * share, "num_tokens": step * 500.0,
                "reward/accuracy": 0.5 + 0.4 * share + 0.02 * rng.random(), "reward/format": 0.95,
                "reward/language": 0.7 + 0.2 * share, "reward/total": 1.0, "reward/accuracy/error": 0.0,
            }
        )  # fmt: skip
    return rows


def sft_log(steps: int = 40) -> list[dict[str, Any]]:
    return [
        {"step": s, "loss": 2.0 / s, "grad_norm": 0.4, "learning_rate": 1e-3, "mean_token_accuracy": 1 - 0.5 / s,
         "entropy": 0.3} for s in range(1, steps + 1)
    ]  # fmt: skip


def write_log(attempt: Attempt, rows: list[dict[str, Any]], name: str = "log.jsonl") -> None:
    path = attempt.work / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def keep_completions(attempt: Attempt, texts: dict[int, list[str]]) -> None:
    """As TRL keeps them with log_completions."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = attempt.work / "checkpoints" / "completions"
    folder.mkdir(parents=True, exist_ok=True)
    for step, completions in texts.items():
        rows = [
            {"step": step, "prompt": [{"role": "user", "content": "1+1?"}],
             "completion": [{"role": "assistant", "content": text}], "reward_accuracy": 1.0, "advantage": 0.0}
            for text in completions
        ]  # fmt: skip
        pq.write_table(pa.Table.from_pylist(rows), folder / f"completions_{step:05}.parquet")


def build(
    runs_dir: Path, run: str = "tiny-full", *, gain: float = 0.3, seed: int = 0, steps: int = 120, whole: bool = True
) -> Made:
    """base → sft → reasoning-grpo → rejection-sampling → rejection-sft (from base) → alignment-grpo; unless `whole`
    without reward-models."""
    made = Made(runs_dir, run)
    config = {"evaluation": {"temperature": 1.0}, "seed": 42 + seed}
    ends = {
        "base": (None, 0.2), "sft": ("base", 0.5), "reasoning-grpo": ("sft", 0.5 + gain),
    }  # fmt: skip
    for step, (up, accuracy) in ends.items():
        attempt, _ = made.step(
            step, inputs={"model": up} if up else None, evaluation=evaluation(accuracy), config=config,
            records=records(accuracy, seed),
            warnings=["at the end 31% of the completions were cut"] if step == "reasoning-grpo" else [],
        )  # fmt: skip
        if step == "sft":
            write_log(attempt, sft_log())
        if step == "reasoning-grpo":
            write_log(attempt, rl_log(steps))
            keep_completions(attempt, {s: ["Hmm, wait. 2", "检查一下。2"] for s in range(1, steps + 1, 10)})
    made.step(
        "rejection-sampling", kind="dataset", inputs={"model": "reasoning-grpo"}, metrics={"kept_rate": 0.1}, tokens=9,
        counts={"samples/sampled": 96.0, "samples/kept": 9.0, "samples/dropped/accuracy": 80.0,
                "samples/dropped/language": 7.0},
    )  # fmt: skip
    inputs = {"model": "base", "rows": "rejection-sampling"}
    made.step("rejection-sft", inputs=inputs, evaluation=evaluation(0.78), records=records(0.78, seed), config=config)
    if whole:
        made.step("reward-models", kind="dataset", inputs={"model": "base"})
    attempt, _ = made.step(
        "alignment-grpo", inputs={"model": "rejection-sft"}, evaluation=evaluation(0.5 + gain), config=config,
        records=records(0.5 + gain, seed),
    )  # fmt: skip
    write_log(attempt, rl_log(steps))
    return made


@pytest.fixture
def demo(tmp_path: Path) -> Made:
    return build(tmp_path / "runs")


@pytest.fixture
def partial(tmp_path: Path) -> Made:
    """The same without reward-models."""
    return build(tmp_path / "runs", whole=False)


@pytest.fixture
def hostile(tmp_path: Path) -> Made:
    """A run whose model, warnings, counters and settings are against the reader."""
    made = Made(tmp_path / "runs")
    texts = [
        record(i, False, text=text, prompt=text, mode="greedy", level="<b>", set=f"<b>{i}")
        for i, text in enumerate(HOSTILE)
    ]  # fmt: skip
    common = {
        "evaluation": {"<b>0": {"greedy": {"accuracy": number(0.5)}}}, "records": texts, "warnings": list(HOSTILE),
        "counts": {f"<b>{i}/{text[:50]}": 1.0 for i, text in enumerate(HOSTILE)},
        "facts": {"x": HOSTILE[0]},
    }  # fmt: skip
    for r in texts:  # a lone surrogate cannot be sealed as UTF-8: json escapes it
        assert json.loads(json.dumps(r)) == r
    common["warnings"] = [w.encode("utf-8", "replace").decode() for w in HOSTILE]
    common["counts"] = {k.encode("utf-8", "replace").decode(): v for k, v in common["counts"].items()}  # type: ignore
    made.step("base", **common)  # type: ignore[arg-type]
    made.step("sft", inputs={"model": "base"}, **common)  # type: ignore[arg-type]
    attempt, _ = made.step("rl", inputs={"model": "sft"}, **common)  # type: ignore[arg-type]
    write_log(attempt, [row | {f"reward/{HOSTILE[0]}": 1.0} for row in rl_log(30)])
    keep_completions(attempt, {1: [t for t in HOSTILE if "\ud800" not in t]})
    bad = made.store.attempt("alignment-grpo", "f" * 64)
    bad.path.mkdir(parents=True)
    append_json(bad.attempts_log, {"event": "started", "time": "2026-01-02T00:00:00+00:00"})
    append_json(bad.attempts_log, {"event": "failed", "time": "2026-01-02T00:01:00+00:00", "error": HOSTILE[1]})
    return made


def load(made: Made) -> collect.Run:
    return collect.load(made.store)
