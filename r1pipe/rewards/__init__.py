"""Rewards: verifiers that say whether a completion is right, and their composition into one TRL reward.

    from r1pipe.rewards import accuracy, trl_reward
    accuracy.verify("<think>…</think><answer>0.5</answer>", {"gold": "1/2"}).score  # 1.0
    GRPOTrainer(..., reward_funcs=[trl_reward("accuracy", "format")])  # reads the column gold, answer or solution

`Composer` takes weights, gates, schedules and options, as the `rewards:` of a profile do.
"""

from typing import Any

from r1pipe.rewards import accuracy, correctness, format, language
from r1pipe.rewards.compose import Composer, summary, text_of
from r1pipe.rewards.preference import HarmlessReward, HelpfulReward
from r1pipe.rewards.registry import REGISTRY, validate, versions
from r1pipe.rewards.verdict import Context, Row, Verdict, Verifier
from r1pipe.settings import RewardPart

__all__ = [
    "REGISTRY",
    "Composer",
    "Context",
    "HarmlessReward",
    "HelpfulReward",
    "RewardPart",
    "Row",
    "Verdict",
    "Verifier",
    "accuracy",
    "correctness",
    "format",
    "language",
    "summary",
    "text_of",
    "trl_reward",
    "validate",
    "versions",
]


def trl_reward(*names: str, **options: dict[str, Any]) -> Any:
    """One reward function for TRL's trainers: the sum of the named rewards, each logged on its own.

    `options` by reward: `trl_reward("accuracy", "language", language={"target": "en"})`. Warnings go to Python's.
    Raises UserError for unknown names and options, and at the first batch for a missing column.
    """
    import warnings

    parts = {name: RewardPart(options=options.get(name, {})) for name in dict.fromkeys([*names, *options])}
    return Composer(parts, warn=lambda text: warnings.warn(text, stacklevel=2)).as_trl_reward()
