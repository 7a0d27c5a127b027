"""The schemas that people's datasets have, one entry each; the first that fits a record converts it.

A schema says by column names, and where names do not tell by values, whether it knows a record, and converts it into
the fields of a row. A record that cannot be used raises `Drop(reason)`; reasons are counted. A new schema is a
function in one of these modules and an entry in SCHEMAS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from r1pipe.chat import Tags
from r1pipe.data.adapters import dialogues, preferences, problems
from r1pipe.data.adapters.golds import GOLDS, gsm8k_gold
from r1pipe.data.rows import Row, What, is_ours
from r1pipe.data.values import Drop, Record, parsed, text

__all__ = ["GOLDS", "SCHEMAS", "Drop", "Schema", "expected", "gsm8k_gold", "main_use", "recognise", "text"]

_PROMPT = ("messages", "prompt")
_ANSWER = ("response", "completion")
_PAIR = (("chosen",), ("rejected",))
_PAIRS: tuple[What, ...] = ("pairs", "prompts", "traces")
_TRACES: tuple[What, ...] = ("traces", "prompts")
_PROBLEMS: tuple[What, ...] = ("prompts", "traces")


def _always(record: Record) -> bool:
    return True


@dataclass(frozen=True)
class Schema:
    """`uses`: what it can become, the main use first; `needs`: groups of columns, one of each must be there; `sees`
    looks at the values; `combines`: as pairs, rows of one prompt are put together (`best_against_worst`)."""

    name: str
    uses: tuple[What, ...]
    needs: tuple[tuple[str, ...], ...]
    convert: Callable[[Record, What, Tags], list[Row]]
    sees: Callable[[Record], bool] = _always
    combines: bool = False

    def fits(self, columns: frozenset[str], what: What | None) -> bool:
        return (what is None or what in self.uses) and all(columns.intersection(group) for group in self.needs)


def _gsm8k(record: Record) -> bool:
    return "####" in (text(record.get("answer")) or "")


def _worked(record: Record) -> bool:
    return text(record.get("solution")) is not None


def _texts(record: Record) -> bool:
    return not preferences.is_transcripts(record)


def _has_context(record: Record) -> bool:
    return isinstance(parsed(record.get("context")), list | str)


def _ours(record: Record, what: What, tags: Tags) -> list[Row]:
    """Rows of ours, as `write_rows` and `r1pipe data prepare` write them."""
    if what == "pairs":
        return preferences.pairs(record, what, tags)
    return preferences.labels(record, what, tags) if what == "labels" else dialogues.messages(record, what, tags)


SCHEMAS: tuple[Schema, ...] = (
    Schema("r1pipe", ("prompts", "traces", "pairs", "labels"), (("id",), ("messages",), ("kind",)), _ours, is_ours),
    Schema("pku-saferlhf", ("labels", "pairs", "prompts", "traces"),
           (("prompt",), ("response_0",), ("response_1",),
            ("is_response_0_safe", "better_response_id", "safer_response_id")), preferences.pku_saferlhf),
    Schema("safety-qa", ("labels",), (("prompt",), _ANSWER, ("is_safe",)), preferences.safety),
    Schema("labels", ("labels",), (_PROMPT, _ANSWER, ("label",)), preferences.labels),
    Schema("helpsteer3", _PAIRS, (("context",), ("response1",), ("response2",), ("overall_preference",)),
           preferences.helpsteer3, _has_context),
    Schema("helpsteer2-preference", _PAIRS, (("prompt",), ("response_1",), ("response_2",), ("preference_strength",)),
           preferences.helpsteer2_preference),
    Schema("ultrafeedback-raw", _PAIRS, (("instruction",), ("completions",)), preferences.ultrafeedback_raw),
    Schema("hh-rlhf", _PAIRS, _PAIR, preferences.hh_rlhf, preferences.is_transcripts),
    Schema("hh-rlhf-prompt", _PAIRS, (("prompt",), *_PAIR), preferences.hh_prompt, preferences.has_transcript_prompt),
    Schema("ultrafeedback", _PAIRS, (*_PAIR, ("score_chosen", "chosen-rating", "chosen_rating", "chosen_score")),
           preferences.pairs),
    Schema("pairs", _PAIRS, _PAIR, preferences.pairs, _texts),
    Schema("helpsteer", _PAIRS, (_PROMPT, _ANSWER, ("helpfulness",)), preferences.scored, combines=True),
    Schema("scored-responses", _PAIRS, (_PROMPT, _ANSWER, preferences.SCORES), preferences.scored, combines=True),
    Schema("openr1-math", _TRACES, (problems.QUESTIONS, ("generations",)), problems.openr1),
    Schema("countdown", ("prompts",), (("nums", "numbers"),), problems.countdown, problems.is_countdown),
    Schema("dapo", ("prompts",), (("prompt",), ("reward_model",)), problems.dapo, problems.is_dapo),
    Schema("numinamath-1.5", _PROBLEMS, (("problem",), ("problem_is_valid", "solution_is_valid", "question_type")),
           problems.numina15),
    Schema("numinamath", _PROBLEMS, (("problem",), ("solution",), ("messages",)), problems.problem, _worked),
    Schema("math", _PROBLEMS, (("problem",), ("solution",), ("level",), ("type", "subject")), problems.problem),
    Schema("gsm8k", _PROBLEMS, (("question",), ("answer",)), problems.problem, _gsm8k),
    Schema("deepscaler", _PROBLEMS, (("problem",), ("answer",), ("solution",)), problems.problem),
    Schema("sharegpt", _TRACES, (("conversations", "conversation"),), dialogues.sharegpt),
    Schema("mixture-of-thoughts", _TRACES, (("messages",), ("num_tokens",), ("source",)),
           dialogues.mixture_of_thoughts),
    Schema("messages", _TRACES, (("messages",),), dialogues.messages),
    Schema("alpaca", _TRACES, (("instruction",), ("output",)), dialogues.alpaca),
    Schema("prompt-completion", _TRACES, (("prompt",), _ANSWER), dialogues.completion),
    Schema("multiple-choice", ("prompts",), (problems.QUESTIONS, ("choices",)), problems.choices),
    Schema("problem-answer", _PROBLEMS, (problems.QUESTIONS, GOLDS), problems.problem),
    Schema("prompt", ("prompts",), (("prompt",),), dialogues.prompt),
    Schema("question", ("prompts",), (problems.QUESTIONS,), problems.question),
)  # fmt: skip


def candidates(columns: frozenset[str], what: What | None) -> list[Schema]:
    """The schemas whose columns are there, in order; `what` None is any use."""
    return [s for s in SCHEMAS if s.fits(columns, what)]


def recognise(record: Record) -> Schema | None:
    """The schema of a record for its main use, by the columns that hold something, else by all of its columns."""
    filled = frozenset(k for k, v in record.items() if v is not None)
    for columns in (filled, frozenset(record)):
        for schema in candidates(columns, None):
            if schema.sees(record):
                return schema
    return None


def main_use(schema: Schema, record: Record) -> What:
    """What a record is most likely for. Messages that end with a question are prompts."""
    if schema.name == "r1pipe" and "chosen" in record:
        return "pairs"
    if schema.name == "r1pipe" and "label" in record:
        return "labels"
    turns = parsed(record.get("messages"))
    if schema.name in ("r1pipe", "messages") and isinstance(turns, list) and turns and isinstance(turns[-1], dict):
        return "traces" if turns[-1].get("role") == "assistant" else "prompts"
    return schema.uses[0]


def expected(what: What) -> str:
    """The columns known for a use, for messages."""
    return "; ".join(" + ".join("|".join(g) for g in s.needs) for s in SCHEMAS if what in s.uses)
