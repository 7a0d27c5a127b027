"""The child of the kill test: one sampling step, slowly. `python -m tests.sampling.killed FOLDER SOURCE`."""

from __future__ import annotations

import sys
from pathlib import Path

from stages import rejection_sampling
from tests.sampling import steps


def config(source: str, seconds: float = 0.0) -> rejection_sampling.Config:
    """Four samples a prompt, in shards of twelve; one reply in three is right for a few prompts."""
    replies = [steps.right(i % 7, f"{steps.THOUGHT} I did it {i} times \u2028 and 算了{i}次.") for i in range(21)]
    return steps.config(
        data=[{"source": source}], replies=replies, options={"seconds": seconds}, shard_size=12, per_prompt=2,
        sampling={"n": 4, "max_tokens": 64}, filters={"minimum": {"accuracy": 0.0, "language": 0.0}},
    )  # fmt: skip


if __name__ == "__main__":
    ctx = steps.context(Path(sys.argv[1]), resume=True)
    rejection_sampling.run(ctx, config(sys.argv[2], seconds=0.004))
    (Path(sys.argv[1]) / "reused").write_text(str(ctx.facts["samples_reused"]))
