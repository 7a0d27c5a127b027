"""Rewards on the shape of a completion: `repetition`, `overlong`, `cosine`, `concise`; each in a module of its own.

Helpers beside a reward for the answer: their scores may be negative, and are finite. `length.py` says how long a
completion is. What they read in a row, the composition puts there: `completion_ids`, `correct`, `group`.
"""

from r1pipe.rewards.shape import concise, cosine, overlong, repetition
from r1pipe.rewards.shape.concise import Concise
from r1pipe.rewards.shape.concise import Options as ConciseOptions
from r1pipe.rewards.shape.cosine import Cosine
from r1pipe.rewards.shape.cosine import Options as CosineOptions
from r1pipe.rewards.shape.overlong import Options as OverlongOptions
from r1pipe.rewards.shape.overlong import Overlong
from r1pipe.rewards.shape.repetition import Options as RepetitionOptions
from r1pipe.rewards.shape.repetition import Repetition

VERSION = ".".join((concise.VERSION, cosine.VERSION, overlong.VERSION, repetition.VERSION))

__all__ = [
    "VERSION",
    "Concise",
    "ConciseOptions",
    "Cosine",
    "CosineOptions",
    "Overlong",
    "OverlongOptions",
    "Repetition",
    "RepetitionOptions",
    "concise",
    "cosine",
    "overlong",
    "repetition",
]
