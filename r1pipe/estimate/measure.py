"""Asks the probe (a child process with torch) and turns its answer into rates."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from r1pipe.config import Profile
from r1pipe.errors import UserError
from r1pipe.estimate.clock import Rates
from r1pipe.estimate.models import Base
from r1pipe.estimate.work import Estimator, Load
from r1pipe.resources import configs_dir

MOST_ROWS, MOST_LENGTH, MOST_SEQUENCES, MOST_NEW = 128, 1024, 256, 128  # a probe takes seconds
PROMPTS = 32
TIMEOUT = 300
TOO_LARGE = 2e9  # parameters: random weights in float32 would take the memory of a small machine


def rates(profile: Profile, step: str, estimator: Estimator) -> Rates:
    """Rates of this machine on the model of `step` (the one whose batch is measured). Raises UserError."""
    base = estimator.base(step)
    if base is None:
        raise UserError(f"--probe: no pretrained model stands above step {step}", hint="leave --probe out")
    if base.shape.parameters > TOO_LARGE:
        raise UserError(
            f"--probe: {base.name} has {base.shape.parameters / 1e9:.1f}B parameters, too many for a probe of seconds",
            hint="leave --probe out (the time is then unmeasured), or run with --set STEP.steps=5 and look",
        )
    request = _request(profile, step, base, estimator)
    with tempfile.TemporaryDirectory(prefix="r1pipe-probe-") as folder:
        path = Path(folder) / "request.json"
        path.write_text(json.dumps(request), encoding="utf-8")
        try:
            said = subprocess.run(
                [sys.executable, "-P", "-m", "r1pipe.estimate.probe", str(path)],
                capture_output=True, text=True, timeout=TIMEOUT, check=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise UserError(f"--probe took more than {TIMEOUT} s", hint="leave --probe out") from None
        except subprocess.CalledProcessError as error:
            last = (error.stderr.strip().split("\n") or [""])[-1][:300]
            raise UserError(f"--probe failed: {last}", hint="leave --probe out, or look at r1pipe doctor") from None
    found = json.loads(said.stdout.strip().split("\n")[-1])
    if found["random_weights"]:  # random weights never stop: their length says nothing
        found["completion"] = None
    return Rates.of(found | {"parameters": base.shape.parameters, "flops": _a_token(request, base, found)})


def _request(profile: Profile, step: str, base: Base, estimator: Estimator) -> dict[str, Any]:
    config: Any = profile.steps[step]
    trainer = config.trainer
    work = estimator.work(step)
    train = next(load for load in work.loads if load.kind == "train")
    prompts: list[Any] = []
    decodes = [load for load in work.loads if load.kind == "decode" and load.what == "rollouts"]
    sequences, limit = 64, 64
    if decodes:
        sequences, limit = int(decodes[0].at_once), int(trainer.get("max_completion_length") or 256)
    spec = config.data[0]
    if spec.source.startswith("generated:"):
        from r1pipe.data.load import load

        count = max(1, min(PROMPTS, sequences // int(trainer.get("num_generations") or 1)))
        some = load(spec.model_copy(update={"rows": count}), "prompts", seed=config.seed)
        prompts = [row["messages"] for row in some]
    folder = base.folder or configs_dir() / "models" / base.name.replace("/", "--")
    return {
        "folder": str(folder),
        "threads": config.threads,
        "chat": config.chat.model_dump(mode="json"),
        "prompts": prompts,
        "rows": min(int(trainer.get("per_device_train_batch_size") or 8), MOST_ROWS),
        "length": max(8, min(round(2 * train.context), MOST_LENGTH)),
        "sequences": min(sequences, MOST_SEQUENCES),
        "completion": min(limit, MOST_NEW),
        "checkpointing": train.recompute,
        "bf16": estimator.small(config, "GRPOConfig"),
    }


def _a_token(request: dict[str, Any], base: Base, found: dict[str, Any]) -> dict[str, float]:
    """FLOPs a token of what the probe measured, by kind."""
    length, prompt, made = request["length"], found["prompt"], found["completion"] or request["completion"]
    loads = {
        "train": Load("train", "", base.shape, 1, length / 2, recompute=request["checkpointing"]),
        "forward": Load("forward", "", base.shape, 1, length / 2),
        "prefill": Load("prefill", "", base.shape, 1, prompt / 2),
        "decode": Load("decode", "", base.shape, 1, prompt + made / 2),
    }
    return {name: load.hardware_flops for name, load in loads.items()}


def step_to_measure(profile: Profile, steps: list[str]) -> str:
    """A GRPO step where there is one (it generates and trains), else one that trains."""
    ranked = sorted(
        (s for s in steps if hasattr(profile.steps[s], "trainer") and profile.steps[s].stage != "reward-models"),
        key=lambda s: profile.steps[s].stage not in ("reasoning-grpo", "alignment-grpo"),
    )
    if not ranked:
        raise UserError("--probe: no step of this pipeline trains a policy", hint="leave --probe out")
    return ranked[0]
