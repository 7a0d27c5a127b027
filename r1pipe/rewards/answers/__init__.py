"""Rewards for answers that are no mathematics: `choice`, `exact`, `number_list`, `json`; each in a module of its own.

Kinds of row of the same names; `accuracy` hands them on. Gold answers are read strictly: what cannot be used is an
error of the row, never a score.
"""

from r1pipe.rewards.answers import choice, exact, json_value, number_list
from r1pipe.rewards.answers.choice import Choice
from r1pipe.rewards.answers.choice import Options as ChoiceOptions
from r1pipe.rewards.answers.exact import Exact
from r1pipe.rewards.answers.exact import Options as ExactOptions
from r1pipe.rewards.answers.json_value import Json
from r1pipe.rewards.answers.json_value import Options as JsonOptions
from r1pipe.rewards.answers.number_list import NumberList
from r1pipe.rewards.answers.number_list import Options as NumberListOptions

VERSION = ".".join((choice.VERSION, exact.VERSION, json_value.VERSION, number_list.VERSION))

__all__ = [
    "VERSION",
    "Choice",
    "ChoiceOptions",
    "Exact",
    "ExactOptions",
    "Json",
    "JsonOptions",
    "NumberList",
    "NumberListOptions",
    "choice",
    "exact",
    "json_value",
    "number_list",
]
