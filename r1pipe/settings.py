"""The building blocks of a profile, shared by all stages. Light: no torch, no trl.

One rule joins profile and steps: a key at the top of a profile (`seed`, `chat`, `trainer`, `engine`, ...) is the
default of the same key in every step whose stage has it; mappings are merged, the step wins.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from r1pipe.chat import ChatConfig


class Strict(BaseModel):
    """Frozen; unknown keys, NaN and infinities are an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=(), allow_inf_nan=False)


def walk(value: Any) -> Iterator[Any]:
    """Every settings object inside a settings object, itself first; what only evaluates is left out."""
    if isinstance(value, BaseModel):
        yield value
        for name in type(value).model_fields:
            if name != "evaluation":
                yield from walk(getattr(value, name))
    elif isinstance(value, dict):
        for item in value.values():
            yield from walk(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from walk(item)


class ModelConfig(Strict):
    """A pretrained model: a folder, `builtin:tiny-base`, or a hub id with its revision."""

    path: str = Field(description='"builtin:tiny-base", a folder, or a hub id such as "Qwen/Qwen2.5-0.5B".')
    revision: str | None = Field(None, description="Commit of a hub model; a branch is pinned at first use.")
    dtype: str = Field("auto", description='"auto", "float32", "bfloat16" or "float16".')
    trust_remote_code: bool = Field(False, description="Runs code that ships with the model. Off unless you mean it.")
    options: dict[str, Any] = Field({}, description="Passed to from_pretrained as is (attn_implementation, ...).")


class Cleaning(Strict):
    """What is left out of a source before it is used; all of it is counted. `r1pipe/data/README.md` has the rules."""

    dedup: bool = Field(True, description="Leave out exact duplicates of normalised text.")
    near_dup: float | None = Field(
        None, ge=0.5, le=1, description="Leave out questions that share this much of their words with an earlier one."
    )
    decontaminate: list[DataSpec] = Field(
        [], description="Evaluation sets (a source, or a full entry): rows that share an n-gram with one are left out."
    )
    ngram: int = Field(10, ge=4, le=50, description="Words of an n-gram for decontaminate.")
    languages: list[str] | None = Field(None, min_length=1, description="Keep rows of these languages (en, zh, ...).")
    min_chars: int | None = Field(None, ge=0, description="Least characters of the question.")
    max_chars: int | None = Field(None, ge=1, description="Most characters of all texts of a row.")
    pass_rate: tuple[float, float] | None = Field(
        None, description="Keep rows whose measured pass rate is in this band, ends included: [0.1, 0.9]."
    )
    pass_rates: str | None = Field(
        None, description="File of measured pass rates by row id (null: the rows' own column pass_rate)."
    )

    @field_validator("decontaminate", mode="before")
    @classmethod
    def _sources(cls, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            value = [value]
        return [{"source": v, "split": "test"} if isinstance(v, str) else v for v in value]

    @model_validator(mode="after")
    def _check(self) -> Cleaning:
        if self.pass_rate is not None and not 0 <= self.pass_rate[0] <= self.pass_rate[1] <= 1:
            raise ValueError("pass_rate: expected two shares that rise, such as [0.1, 0.9]")
        if self.pass_rates is not None and self.pass_rate is None:
            raise ValueError("pass_rates has no use without pass_rate, the band to keep")
        return self


class DataSpec(Strict):
    """Where rows come from."""

    source: str = Field(
        description="A .jsonl/.json/.csv/.parquet file or a folder of them, a folder of `data prepare`, a hub dataset "
        'id, "generated:arithmetic", or "reasoning-gym:TASK".'
    )
    split: str = Field("train", description="Split of the source.")
    rows: int | None = Field(
        None, ge=1, description="How many rows to take (null: all; generated sets need a number)."
    )
    weight: float | None = Field(
        None,
        gt=0,
        description="Share of this source in the list that it is in (all or none have one): as many rows as the "
        "weights allow without taking one twice, mixed by the seed.",
    )
    revision: str | None = Field(None, description="Commit of a hub dataset.")
    kind: str | None = Field(None, description="Kind given to rows that carry none (number, math, general, safety).")
    columns: dict[str, str] = Field(
        {}, description="Row field -> column of the source (messages, prompt, gold, ...); a.b looks into objects."
    )
    args: dict[str, Any] = Field(
        {}, description="Arguments of a generated set (levels, languages, noise), a gym task (level, ...), the hub."
    )
    clean: Cleaning | None = Field(None, description="What is left out (null: nothing; {}: exact duplicates).")


Cleaning.model_rebuild()


class EngineConfig(Strict):
    """What generates text."""

    kind: Literal["auto", "transformers", "vllm", "server", "scripted"] = Field(
        "auto", description="auto: vllm where it is installed and there is a GPU, else transformers."
    )
    batch_size: int = Field(256, ge=1, description="Sequences generated together (transformers).")
    url: str | None = Field(None, description="Address of an OpenAI-compatible server (kind: server).")
    options: dict[str, Any] = Field({}, description="Passed to vllm.LLM as is.")


class SamplingConfig(Strict):
    """How text is sampled."""

    n: int = Field(1, ge=1, description="Samples a prompt.")
    temperature: float = Field(1.0, ge=0, description="0 is greedy.")
    top_p: float = Field(1.0, gt=0, le=1)
    max_tokens: int = Field(512, ge=1, description="Most new tokens a sample.")


class KindsBy(Strict):
    """The kind of each row, from a column."""

    column: str
    values: dict[str, str] = Field(description="Value of the column -> kind; rows with another value are dropped.")


class EvalSet(Strict):
    """One set of an evaluation.

    `choices`, `kinds`, `tests` and `between` describe sources whose records are no rows yet; a set with one of them
    reads its question from `data.columns.question` (or a column question, problem or prompt).
    """

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$")
    data: DataSpec
    modes: list[Literal["sample", "greedy"]] = ["sample", "greedy"]
    n: int = Field(1, ge=1, description="Samples a prompt in mode sample; pass@1 is their mean.")
    temperature: float | None = Field(None, gt=0, description="In mode sample (null: the evaluation's).")
    top_p: float | None = Field(None, gt=0, le=1, description="In mode sample (null: the evaluation's).")
    max_tokens: int | None = Field(None, ge=1, description="Most new tokens (null: the evaluation's).")
    prompt: str | None = Field(
        None, description="How the question is put: {question}, {choices} and {format} are filled in."
    )
    choices: list[str] = Field(
        [], description="Columns with the choices, the right one first; shuffled, for a problem always the same way."
    )
    kinds: KindsBy | None = Field(None, description="Kind by a column (a safety set: which prompts are unsafe).")
    tests: Literal["livecodebench"] | None = Field(None, description="How the source writes the tests of a program.")
    between: dict[str, tuple[str, str]] = Field(
        {}, description="Column -> first and last value that is kept, compared as text (ISO dates)."
    )


class EvalConfig(Strict):
    """The evaluation that runs after each step that makes a policy."""

    sets: list[EvalSet] = []
    temperature: float = Field(1.0, gt=0)
    top_p: float = Field(1.0, gt=0, le=1)
    max_tokens: int = Field(512, ge=1)
    bootstrap: int = Field(2000, ge=100, le=1_000_000, description="Resamples for the intervals.")
    keep_samples: int = Field(64, ge=0, description="Problems a set and mode whose texts are kept.")
    require_think: bool = Field(
        True, description="A text that does not close its thinking has no answer; false judges it whole."
    )

    @field_validator("sets", mode="after")
    @classmethod
    def _names(cls, value: list[EvalSet]) -> list[EvalSet]:
        names = [part.name for part in value]
        if twice := sorted({n for n in names if names.count(n) > 1}):
            raise ValueError(f"two sets are named {', '.join(twice)}")
        return value


class MetricGate(Strict):
    """What happens when a number of a step falls too far.

    `metric` is `set/mode/name` of its evaluation (`heldout/greedy/accuracy`), or a metric of the step itself
    (`kept_rate`). `r1pipe/evaluate/gates.py` says what it is compared with and when it trips.
    """

    metric: str
    against: str | float = Field(
        "parent", description='"parent", "base", a step above this one, or a number; see evaluate/gates.py.'
    )
    drop: float = Field(0.0, ge=0, description="How far it may fall, in the metric's own unit (0.05: five points).")
    better: Literal["higher", "lower"] | None = Field(None, description="Which way is good (null: by the metric).")
    action: Literal["warn", "fail", "stop"] = Field(
        "warn", description="fail: the result is kept, the run ends with exit code 1. stop: it ends, exit code 0."
    )
    significant: bool = Field(
        True, description="It trips only where the 95 % interval of the change (or of the value) shows a fall."
    )


class Gate(Strict):
    """What a low score of one reward does to the rest of the row. Exactly one of `floor` and `cap`."""

    below: float = Field(description="The gate closes where the score is below this.")
    floor: float | None = Field(None, description="Closed: this is the row's whole reward (unsafe gets the floor).")
    cap: float | None = Field(None, description="Closed: the other rewards add at most this (wrong caps the rest).")

    @model_validator(mode="after")
    def _one(self) -> Gate:
        if (self.floor is None) == (self.cap is None):
            raise ValueError("give exactly one of floor and cap")
        return self


class RewardPart(Strict):
    """One reward of a composition."""

    use: str | None = Field(
        None,
        description="The verifier (null: the one of the part's name): a built-in one, an installed entry point of "
        'r1pipe.rewards, or "module:function" with --allow-code.',
    )
    weight: float = Field(1.0, description="Factor of the score; 0 only logs it.")
    schedule: list[tuple[float, float]] | None = Field(
        None,
        min_length=1,
        description="[share of the steps, factor of the weight] points, linear between them: [[0, 0], [0.5, 1]].",
    )
    start: float = Field(0.0, ge=0, lt=1, description="Share of the steps after which it applies at all.")
    role: Literal["primary", "auxiliary"] | None = Field(
        None,
        description="Auxiliary rewards help, they must not lead: over 40 % of the weight warns (null: by reward).",
    )
    kinds: list[str] | None = Field(None, description="Kinds of row it applies to (null: those of the reward).")
    gate: Gate | None = Field(None, description="What a low score does to the rest of the row.")
    options: dict[str, Any] = Field({}, description="Options of the verifier.")

    @field_validator("schedule", mode="after")
    @classmethod
    def _in_order(cls, value: list[tuple[float, float]] | None) -> list[tuple[float, float]] | None:
        shares = [share for share, _ in value or ()]
        if any(not 0 <= share <= 1 for share in shares) or sorted(set(shares)) != shares:
            raise ValueError("the shares of the steps must rise from 0 to 1")
        return value


class StepConfig(Strict):
    """What every step has. Stages subclass it."""

    stage: str
    inputs: dict[str, str] = Field({}, description="Input -> step that makes it, as `step` or `step.output`.")
    seed: int = Field(42, ge=0, lt=2**32)
    num_processes: int = Field(1, ge=1, le=4096, description="Processes started through accelerate launch.")
    accelerate: str | None = Field(None, description="An accelerate file: builtin:fsdp2, ... or a path.")
    threads: int | None = Field(None, ge=1, le=4096, description="torch threads a process (null: torch's own choice).")
    evaluate: bool = Field(True, description="Evaluate the policy that this step makes.")
    evaluation: EvalConfig = EvalConfig()
    gates: list[MetricGate] = Field([], description="What happens when a number falls against the right parent.")
    engine: EngineConfig = Field(
        EngineConfig(), description="What generates where no trainer does: evaluation, sampling."
    )
    chat: ChatConfig = ChatConfig()

    @model_validator(mode="after")
    def _check_gates(self) -> StepConfig:
        known = {f"{part.name}/{mode}" for part in self.evaluation.sets for mode in part.modes}
        for gate in self.gates:
            where, _, name = gate.metric.rpartition("/")
            if where.count("/") == 1 and (where not in known or not name):
                listed = ", ".join(sorted(known)) or "none"
                raise ValueError(f"gates: {gate.metric!r} is of no set and mode of the evaluation ({listed})")
        return self


class TrainStepConfig(StepConfig):
    """A step that trains with a TRL or transformers trainer.

    `trainer`, `lora` and `quantization` go verbatim to the trainer's config class, `peft.LoraConfig` and
    `transformers.BitsAndBytesConfig`; their keys are checked against the installed versions before anything loads.
    """

    data: list[DataSpec] = []
    trainer: dict[str, Any] = {}
    lora: dict[str, Any] | None = None
    quantization: dict[str, Any] | None = None
    model_options: dict[str, Any] = Field({}, description="Passed to from_pretrained as is.")

    @field_validator("lora", "quantization", mode="before")
    @classmethod
    def _off(cls, value: Any) -> Any:
        return None if value is False else value  # `lora: false` switches an inherited one off
