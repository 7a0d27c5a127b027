"""Rewards: verifiers that say whether a completion is right, and their composition into one TRL reward.

from r1pipe.rewards import Composer, accuracy
accuracy.verify("<think>…</think><answer>42</answer>", {"gold": "42", "kind": "number"}).score  # 1.0
"""

from r1pipe.rewards import accuracy, format, language
from r1pipe.rewards.compose import Composer, summary, text_of
from r1pipe.rewards.preference import HarmlessReward, HelpfulReward
from r1pipe.rewards.registry import REGISTRY, validate, versions
from r1pipe.rewards.verdict import Context, Row, Verdict, Verifier

__all__ = [
    "REGISTRY",
    "Composer",
    "Context",
    "HarmlessReward",
    "HelpfulReward",
    "Row",
    "Verdict",
    "Verifier",
    "accuracy",
    "format",
    "language",
    "summary",
    "text_of",
    "validate",
    "versions",
]
