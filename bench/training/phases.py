"""Where the time of a GRPO update goes: `python -m bench.training.phases [--updates 20] [--rollouts trl]`.

Runs our reasoning-grpo step on the embedded model after a cold start, with clocks around the methods of the trainer;
what one calls is taken off what it cost. One run: read shares, not hundredths.
"""

from __future__ import annotations

import argparse
import functools
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from bench.ratios import machine, machine_line
from bench.training.run import Clock, _models, _stage

METHODS = {
    "_generate_single_turn": "rollouts",
    "_calculate_rewards": "rewards",
    "_get_per_token_logps_and_entropies": "log-probabilities",
    "_prepare_inputs": "padding and the rest of a batch",
    "compute_loss": "loss",
    "training_step": "backward",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--rollouts", choices=("auto", "quick", "trl"), default="auto")
    options = parser.parse_args()
    clock, spent = Clock(), defaultdict(float)
    with tempfile.TemporaryDirectory() as scratch, clock.watching():
        root = Path(scratch)
        model = _models(root, ["reasoning-grpo"])["reasoning-grpo"]
        _watch(spent)
        _stage(
            "reasoning-grpo", root / "grpo", model, steps=options.updates, reference_refresh=None,
            rollouts=options.rollouts,
        )  # fmt: skip
    spent["optimizer, logs, checkpoints"] = clock.seconds - sum(spent.values())
    print(f"{machine_line(machine('trl'))}\n")
    print(f"| phase | s an update | share |\n|---|---:|---:|\n| all | {clock.seconds / options.updates:.3f} | 100 % |")
    for name, seconds in sorted(spent.items(), key=lambda item: -item[1]):
        print(f"| {name} | {seconds / options.updates:.3f} | {seconds / clock.seconds:.0%} |")


def _watch(spent: dict[str, float]) -> None:
    """Clocks around the trainer's methods, each without what the others took inside it."""
    import torch

    from r1pipe.training.rollout import QuickGRPOTrainer

    inside: list[float] = []

    def clocked(method: Any, name: str) -> Any:
        @functools.wraps(method)
        def wrapper(*given: Any, **more: Any) -> Any:
            inside.append(0.0)
            began = time.monotonic()
            try:
                return method(*given, **more)
            finally:
                took = time.monotonic() - began
                own = took - inside.pop()
                with_gradient = name == "log-probabilities" and torch.is_grad_enabled()
                spent["forward" if with_gradient else name] += own
                if inside:
                    inside[-1] += took

        return wrapper

    for method, name in METHODS.items():
        # on the class that the step uses, and where a class below it has its own
        for cls in QuickGRPOTrainer.__mro__:
            if method in vars(cls) and cls.__module__.startswith(("r1pipe", "trl")):
                setattr(cls, method, clocked(vars(cls)[method], name))
    sys.stderr.write("clocks are set\n")


if __name__ == "__main__":
    main()
