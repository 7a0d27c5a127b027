"""What a step does, as numbers: which tokens go through which model how often, and what a process holds meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil
from typing import Any, Literal

from r1pipe.config import Profile
from r1pipe.estimate import launch, memory, models, rows
from r1pipe.estimate.device import Device
from r1pipe.estimate.memory import Training
from r1pipe.estimate.shape import Shape
from r1pipe.settings import DataSpec, EvalConfig, StepConfig
from r1pipe.training import fields

Kind = Literal["train", "forward", "prefill", "decode"]
COMPLETION_SHARE = 0.5  # of the limit: how long completions are, where nothing says it
KEPT_SHARE = 0.5  # of the samples of rejection sampling that pass, where nothing says it
KEPT_CHECKPOINTS = 2  # save_total_limit of a step


@dataclass
class Load:
    """Tokens of one kind through one model."""

    kind: Kind
    what: str
    shape: Shape
    tokens: float  # with padding: what the device computes
    context: float  # tokens that one of them attends to, on average
    sequences: float = 0.0  # decode: how many there are
    at_once: float = 1.0  # decode: how many go together, in one process
    engine: str = ""  # decode and prefill: vllm, transformers, quick
    lora: bool = False
    recompute: bool = False  # gradient checkpointing makes the forward pass twice
    width: int = 2  # bytes of a weight that a decoding step reads
    processes: int = 1  # that share the work

    @property
    def flops(self) -> float:
        """Of the model, as papers count them (a recomputed forward pass is no model's work)."""
        linear = 2.0 * self.shape.active
        attention = 2.0 * self.shape.layers * (self.shape.queries + self.shape.values) * self.context
        once = (linear + attention) * self.tokens
        if self.kind != "train":
            return once
        return once * (2.0 if self.lora else 3.0)

    @property
    def hardware_flops(self) -> float:
        again = (2.0 * self.shape.active * self.tokens) if self.kind == "train" and self.recompute else 0.0
        return self.flops + again


@dataclass
class Phase:
    """A moment of a step in which memory may be largest: bytes of one process by part."""

    name: str
    parts: dict[str, float]
    note: str = ""
    share: float | None = None  # of the device's memory that vLLM takes, whatever it needs

    def total(self, device: Device) -> float:
        return sum(self.parts.values()) + (self.share or 0.0) * device.memory


@dataclass
class Work:
    """A step, before anything is run."""

    step: str
    stage: str
    model: str = ""
    parameters: int = 0
    trained: int = 0
    processes: int = 1
    sharding: str = ""
    updates: int = 0  # optimizer steps
    loads: list[Load] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)
    disk: dict[str, float] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)  # what cannot work whatever the device's size
    notes: list[str] = field(default_factory=list)

    @property
    def tokens(self) -> dict[str, float]:
        """Tokens trained on and generated."""
        trained = sum(load.tokens for load in self.loads if load.kind == "train")
        made = sum(load.tokens for load in self.loads if load.kind == "decode")
        return {"trained": trained, "generated": made}

    @property
    def flops(self) -> float:
        return sum(load.flops for load in self.loads)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


@dataclass
class Facts:
    """What is known of the models' completions: from sealed steps of the run, or a probe; else assumed."""

    completion: dict[str, float] = field(default_factory=dict)  # step -> mean tokens of its policy's completions
    any_completion: float | None = None  # of the base, where a probe measured it

    def tokens(self, step: str, limit: float) -> tuple[float, bool]:
        """(mean tokens of a completion, is it assumed?)."""
        known = self.completion.get(step, self.any_completion)
        return (min(known, limit), False) if known else (limit * COMPLETION_SHARE, True)


class Estimator:
    """Makes the `Work` of each step of a profile, for one kind of device."""

    def __init__(self, profile: Profile, device: Device, *, params: str | None = None, facts: Facts | None = None):
        self.profile = profile
        self.device = device
        self.params = params
        self.facts = facts or Facts()
        self._bases: dict[tuple[str, str | None], models.Base] = {}
        self._counters: dict[Any, rows.Count] = {}
        self._rows: dict[str, rows.Rows] = {}

    def like(self, profile: Profile, device: Device) -> Estimator:
        """For another profile or device, with what was looked up already."""
        other = Estimator(profile, device, params=self.params, facts=self.facts)
        other._bases, other._counters, other._rows = self._bases, self._counters, self._rows
        return other

    def work(self, step: str) -> Work:
        config = self.profile.steps[step]
        out = Work(step, config.stage, processes=config.num_processes)
        base = self.base(step)
        if base is None:
            out.note("no pretrained model stands above this step: not estimated")
            return out
        out.model, out.parameters = base.name, base.shape.parameters
        for text in base.shape.notes:
            out.note(text)
        make = {
            "base-model": self._base_model, "sft": self._sft, "reasoning-grpo": self._grpo,
            "alignment-grpo": self._grpo, "rejection-sampling": self._sampling, "reward-models": self._reward_models,
        }.get(config.stage)  # fmt: skip
        if make is None:
            out.note(f"stage {config.stage} is not one that the plan knows: not estimated")
            return out
        make(step, config, base, out)
        if config.stage != "reward-models" and config.stage != "rejection-sampling":
            self._evaluate(step, config, base, out)
        return out

    def base(self, step: str) -> models.Base | None:
        model = models.base_of(self.profile, step)
        if model is None:
            return None
        key = (model.path, model.revision)
        if key not in self._bases:
            self._bases[key] = models.find(model, self.params)
        return self._bases[key]

    # ---- stages

    def _base_model(self, step: str, config: StepConfig, base: models.Base, out: Work) -> None:
        out.disk["model"] = base.shape.parameters * base.dtype_bytes

    def _sft(self, step: str, config: Any, base: models.Base, out: Work) -> None:
        found = self.rows(config.data, "traces", config, base)
        if "samples" in config.inputs:
            found = self._with_samples(step, config, found, base, out)
        out.notes += found.notes
        trainer, shape = config.trainer, base.shape
        per, accumulation = _batch(trainer, "SFTConfig")
        limit = trainer["max_length"]
        if trainer.get("packing"):
            length = float(limit)
            passes = ceil(found.count * (found.prompt + found.answer) / limit)
        else:
            length, passes = found.padded(per, limit), ceil(found.count)
        out.updates = _updates(trainer, "SFTConfig", passes, per * accumulation * config.num_processes)
        done = out.updates * per * accumulation * config.num_processes
        t = self._training(config, base, rows_=per, length=limit, cls="SFTConfig")
        self._train(out, config, t, base, done * length, length, "train")
        self._check_context(out, limit, shape)
        self._policy_disk(out, config, t, base)

    def _with_samples(self, step: str, config: Any, found: rows.Rows, base: models.Base, out: Work) -> rows.Rows:
        """Rows of a rejection-sampling step above, and its `general` traces."""
        source, _ = self.profile.sources(step)["samples"]
        above: Any = self.profile.steps[source]
        prompts = self.rows(above.data, "prompts", above, base)
        general = self.rows(above.general, "traces", above, base) if above.general else rows.Rows()
        kept = prompts.count * min(above.per_prompt, above.sampling.n * KEPT_SHARE)
        answer, assumed = self.facts.tokens(source, above.sampling.max_tokens)
        out.note(
            f"{kept:,.0f} rows from {source} ({KEPT_SHARE:.0%} of the samples pass: assumed)"
            + (f", {answer:.0f} tokens each (half of the limit: assumed)" if assumed else "")
        )
        lengths = found.lengths + general.lengths + [(p, round(answer)) for p, _ in prompts.lengths]
        return rows.Rows(found.count + kept + general.count, lengths, found.notes + prompts.notes + general.notes)

    def _grpo(self, step: str, config: Any, base: models.Base, out: Work) -> None:
        trainer, shape = config.trainer, base.shape
        batch = config.batch()
        specs = [*config.data, *getattr(config, "general", [])]
        found = self.rows(specs, "prompts", config, base)
        out.notes += found.notes
        limit = _value(trainer, "GRPOConfig", "max_completion_length")
        out.updates = config.total_steps(round(self.rows(config.data, "prompts", config, base).count))
        mean, assumed = self.facts.tokens(step, limit)
        if assumed:
            out.note(f"completions of {mean:.0f} tokens on average (half of the limit {limit}): assumed")
        prompt = found.prompt
        completions = batch.generations(out.updates) * batch.completions
        # a batch is padded to its longest prompt and completion; among many, one is near the limit
        longest = min(limit, mean * (1 + 0.35 * _spread(batch.per_device)))
        padded = found.padded(batch.per_device) + longest
        engine = self._rollouts(config)
        shared = {"processes": config.num_processes}
        each = batch.completions / config.num_processes
        width = 2 if self.small(config, "GRPOConfig") or engine == "vllm" else 4
        groups = completions / batch.num_generations
        asked = groups * prompt
        out.loads += [
            Load("prefill", "rollouts: prompts", shape, asked, prompt / 2, engine=engine, width=width, **shared),
            Load("decode", "rollouts", shape, completions * mean, prompt + mean / 2, completions, each, engine,
                 width=width, **shared),
        ]  # fmt: skip
        scored = completions * padded
        if _value(trainer, "GRPOConfig", "beta"):
            out.loads.append(Load("forward", "reference", shape, scored, padded / 2, **shared))
        if engine == "vllm" or batch.accumulation % batch.micro_steps:
            out.loads.append(Load("forward", "log-probabilities of the policy", shape, scored, padded / 2, **shared))
        judges = self._judges(step, config)
        judged = completions * _general_share(config)
        for name, judge, _ in judges:
            length = prompt + mean
            out.loads.append(Load("forward", f"reward {name}", judge, judged * length, length / 2, **shared))
        t = self._training(config, base, rows_=batch.per_device, length=found.longest_prompt + limit, cls="GRPOConfig")
        t = _with(t, loss_tokens=batch.per_device * limit) if t.triton else t
        self._check_context(out, found.longest_prompt + limit, shape)
        trained = completions * padded * batch.num_iterations
        beside = self._beside(config, t, base, judges)
        self._train(out, config, t, base, trained, padded, "train", beside)
        self._rollout_phase(out, config, t, base, beside, each, found.longest_prompt + limit, engine)
        self._policy_disk(out, config, t, base)
        if config.reference_refresh and t.lora is None:
            out.disk["reference copies"] = shape.parameters * t.weight_bytes * 2

    def _sampling(self, step: str, config: Any, base: models.Base, out: Work) -> None:
        found = self.rows(config.data, "prompts", config, base)
        out.notes += found.notes
        total = found.count * config.sampling.n
        mean, assumed = self.facts.tokens(step, config.sampling.max_tokens)
        if assumed:
            out.note(f"samples of {mean:.0f} tokens on average (half of the limit): assumed")
        self._generate(out, config, base, "samples", found.count, total, found.prompt, mean,
                       found.longest_prompt + config.sampling.max_tokens)  # fmt: skip
        out.disk["samples"] = total * (mean + found.prompt) * rows.CHARACTERS

    def _reward_models(self, step: str, config: Any, base: models.Base, out: Work) -> None:
        disk = 0.0
        for name, cls, what in (("helpful", "RewardConfig", "pairs"), ("harmless", "TrainingArguments", "labels")):
            section = getattr(config, name)
            trainer = config.keys(name)
            found = self.rows(section.data, what, config, base)  # type: ignore[arg-type]
            out.notes += found.notes
            per, accumulation = _batch(trainer, cls)
            limit = trainer.get("max_length") or 1024
            length = found.padded(per, limit)
            updates = _updates(trainer, cls, ceil(found.count), per * accumulation * config.num_processes)
            out.updates += updates
            copies = 2 if what == "pairs" else 1
            done = updates * per * accumulation * config.num_processes * copies
            longest = min(limit, max((p + a for p, a in found.lengths), default=limit))
            t = self._training(config, base, rows_=per * copies, length=longest, cls=cls, trainer=trainer, head=True)
            self._train(out, config, t, base, done * length, length, name)
            heldout = self.rows(section.heldout, what, config, base)  # type: ignore[arg-type]
            out.loads.append(
                Load("forward", f"{name}: held out", base.shape, heldout.count * copies * length, length / 2)
            )
            disk += base.shape.classifier * t.weight_bytes
            out.disk["checkpoints"] = max(out.disk.get("checkpoints", 0.0), _checkpoints(config.keys(name), t))
        out.disk["models"] = disk

    # ---- parts of a step

    def _evaluate(self, step: str, config: StepConfig, base: models.Base, out: Work) -> None:
        evaluation: EvalConfig = config.evaluation
        if not config.evaluate or not evaluation.sets:
            return
        for part in evaluation.sets:
            found = self.rows([part.data], "prompts", config, base)
            samples = found.count * sum(part.n if mode == "sample" else 1 for mode in part.modes)
            mean, assumed = self.facts.tokens(step, evaluation.max_tokens)
            if assumed:
                out.note(f"evaluation: {mean:.0f} tokens a sample (half of the limit): assumed")
            self._generate(out, config, base, f"evaluation: {part.name}", found.count * len(part.modes), samples,
                           found.prompt, mean, found.longest_prompt + evaluation.max_tokens)  # fmt: skip

    def _generate(self, out: Work, config: StepConfig, base: models.Base, what: str, prompts: float, samples: float,
                  prompt: float, mean: float, longest: float) -> None:  # fmt: skip
        """Generation by `engine:` in one process."""
        engine = config.engine.kind
        if engine == "auto":
            engine = "vllm" if self.device.gpu else "transformers"
        if engine in ("server", "scripted"):
            out.note(f"engine {engine}: what it needs is not ours to plan")
            return
        ways = int(config.engine.options.get("tensor_parallel_size", 1)) if engine == "vllm" else 1
        width = 2 if engine == "vllm" or base.dtype_bytes == 2 else base.dtype_bytes
        at_once = min(samples, 256 if engine == "vllm" else config.engine.batch_size)
        out.loads += [
            Load("prefill", f"{what}: prompts", base.shape, prompts * prompt, prompt / 2, engine=engine, width=width,
                 processes=ways),
            Load("decode", what, base.shape, samples * mean, prompt + mean / 2, samples, at_once, engine, width=width,
                 processes=ways),
        ]  # fmt: skip
        weights = memory.weights_bytes(base.shape, width) / ways
        one = memory.cache_bytes(base.shape, 1, round(longest), width) / ways
        out.processes = max(out.processes, ways)
        if engine == "vllm":
            share = float(config.engine.options.get("gpu_memory_utilization", 0.9))
            self._vllm(out, what, share, weights, one, {})
        else:
            room = min(at_once * one, 0.3 * self.device.memory)
            out.phases.append(Phase(what, {"weights": weights, "key-value cache": max(room, one)}))

    def _vllm(self, out: Work, what: str, share: float, weights: float, one: float, beside: dict[str, float]) -> None:
        """vLLM takes its share whole: does it hold the weights and at least one sequence?"""
        room = share * self.device.memory - weights - 1.5e9  # graphs and activations of the engine
        if room < one:
            least = (weights + 1.5e9 + one) / self.device.memory
            out.faults.append(
                f"{what}: vLLM's share of {share:.2f} is {share * self.device.memory / 1e9:.0f} GB, and its weights "
                f"with one sequence need {(weights + 1.5e9 + one) / 1e9:.1f} GB (a share of {least:.2f})"
            )
        note = (
            f"vLLM {share:.2f} of the device: weights {weights / 1e9:.1f} GB, room for {max(0, room / one):,.0f} long"
        )
        out.phases.append(Phase(what, dict(beside), f"{note} sequences", share))

    def _rollouts(self, config: Any) -> str:
        if config.trainer.get("use_vllm"):
            return "vllm"
        quick = config.rollouts == "quick" or (config.rollouts == "auto" and not self.device.gpu)
        return "quick" if quick else "transformers"

    def _rollout_phase(self, out: Work, config: Any, t: Training, base: models.Base, beside: dict[str, float],
                       each: float, longest: int, engine: str) -> None:  # fmt: skip
        """GRPO while it samples: no activations and no gradients, but the sampler."""
        trainer, shape = config.trainer, base.shape
        held = {**memory.training(t).fixed, **beside}
        if engine != "vllm":
            width = 2 if self.small(config, "GRPOConfig") else 4
            held["key-value cache"] = memory.cache_bytes(shape, round(each), longest, width)
            if t.sharding.weights:
                held["gathered weights"] = memory.weights_bytes(shape, width)
            out.phases.append(Phase("rollouts", held, f"{each:,.0f} completions together"))
            return
        if _value(trainer, "GRPOConfig", "vllm_mode") == "server":
            out.note("rollouts by a vLLM server: its device is not in this plan's memory, time or price")
            return
        ways = int(trainer.get("vllm_tensor_parallel_size") or 1)
        share = float(_value(trainer, "GRPOConfig", "vllm_gpu_memory_utilization"))
        weights = memory.weights_bytes(shape, 2) / ways
        one = memory.cache_bytes(shape, 1, longest, 2) / ways
        self._vllm(out, "rollouts", share, weights, one, held)
        if not trainer.get("vllm_enable_sleep_mode"):  # awake, it keeps its share while the step trains
            for phase in out.phases:
                if phase.name == "train":
                    phase.share = share

    def _training(self, config: Any, base: models.Base, *, rows_: int, length: int, cls: str,
                  trainer: dict[str, Any] | None = None, head: bool = False) -> Training:  # fmt: skip
        trainer = config.trainer if trainer is None else trainer
        shape = base.shape
        wanted = str(config.model_options.get("dtype", "float32"))
        width = base.dtype_bytes if wanted == "auto" else 2 if "16" in wanted else 4
        quantization = getattr(config, "quantization", None) or {}
        bits = 4 if quantization.get("load_in_4bit") else 8 if quantization.get("load_in_8bit") else None
        _, accumulation = _batch(trainer, cls)
        checkpointing = trainer.get("gradient_checkpointing")
        if checkpointing is None:
            checkpointing = cls != "TrainingArguments"  # TRL's default is True
        return Training(
            shape, rows_, length, weight_bytes=width, autocast=width == 4 and self.small(config, cls, trainer),
            quantized_bits=bits, lora=memory.lora_of(config.lora, shape, head=head),
            optimizer=str(trainer.get("optim", "adamw_torch_fused")), checkpointing=bool(checkpointing),
            accumulates=accumulation > 1, sharding=launch.sharding(config), classifier=head, triton=self.device.gpu,
        )  # fmt: skip

    def small(self, config: Any, cls: str, trainer: dict[str, Any] | None = None) -> bool:
        """Does the trainer compute in 16 bits?"""
        trainer = config.trainer if trainer is None else trainer
        if trainer.get("use_cpu") or not self.device.gpu:
            return False
        bf16 = trainer.get("bf16")
        if bf16 is None:
            bf16 = cls != "TrainingArguments" and not trainer.get("fp16")  # TRL's default is True
        return bool(bf16 or trainer.get("fp16"))

    def _train(self, out: Work, config: Any, t: Training, base: models.Base, tokens: float, length: float, name: str,
               beside: dict[str, float] | None = None) -> None:  # fmt: skip
        known = memory.optimizer_bytes(t.optimizer, 4)[1]
        if not known:
            out.note(f"optimizer {t.optimizer}: counted as AdamW")
        out.trained = max(out.trained, t.trained)
        out.sharding = t.sharding.name
        parts = memory.training(t)
        out.phases.append(Phase(name, {**parts.table(), **(beside or {})}))
        out.loads.append(
            Load("train", name, base.shape, tokens, length / 2, lora=t.lora is not None, recompute=t.checkpointing,
                 processes=config.num_processes)
        )  # fmt: skip

    def _judges(self, step: str, config: StepConfig) -> list[tuple[str, Shape, int]]:
        """Reward models that this step loads: (name, shape, bytes of a weight)."""
        found = []
        for port, (source, _) in self.profile.sources(step).items():
            above: Any = self.profile.steps[source]
            if above.stage != "reward-models":
                continue
            base = self.base(source)
            if base is not None:
                dtype = str(above.model_options.get("dtype", "float32"))
                found.append((port, base.shape, 2 if "16" in dtype else 4))
        return found

    def _beside(self, config: Any, t: Training, base: models.Base,
                judges: list[tuple[str, Shape, int]]) -> dict[str, float]:  # fmt: skip
        """Models that stand beside the trained one."""
        beside: dict[str, float] = {}
        if _value(config.trainer, "GRPOConfig", "beta"):
            if t.lora is None:  # TRL loads it in the policy's dtype, and shards it as the policy
                share = t.sharding.share("weights")
                width = 2 if t.sharding.deepspeed and t.autocast else t.weight_bytes
                beside["reference"] = base.shape.parameters * width * share
            elif config.reference_refresh:
                beside["reference"] = t.trained * 4  # an adapter of its own
        if judges:
            beside["reward models"] = sum(shape.classifier * width for _, shape, width in judges)
        return beside

    def _policy_disk(self, out: Work, config: Any, t: Training, base: models.Base) -> None:
        merged = 2 if t.quantized_bits else t.weight_bytes
        out.disk["model"] = base.shape.parameters * merged
        out.disk["checkpoints"] = _checkpoints(config.trainer, t)

    def _check_context(self, out: Work, length: int, shape: Shape) -> None:
        if shape.context and length > shape.context:
            out.note(f"{length:,} tokens are more than the model's context of {shape.context:,}")

    def rows(self, specs: list[DataSpec], what: Any, config: StepConfig, base: models.Base) -> rows.Rows:
        if base.folder not in self._counters:
            self._counters[base.folder] = rows.counter(base.folder)
        key = f"{what}|{base.folder}|{config.chat.model_dump_json()}|" + "|".join(s.model_dump_json() for s in specs)
        if key not in self._rows:
            self._rows[key] = rows.of(specs, what, config.chat, self._counters[base.folder])
        found = self._rows[key]
        return rows.Rows(found.count, list(found.lengths), list(found.notes))


def _with(t: Training, **changes: Any) -> Training:
    import dataclasses

    return dataclasses.replace(t, **changes)


def _value(trainer: dict[str, Any], cls: str, key: str) -> Any:
    """A trainer's setting, or the library's own default."""
    found = trainer.get(key)
    return fields.default(cls, key) if found is None else found


def _batch(trainer: dict[str, Any], cls: str) -> tuple[int, int]:
    """(sequences of one pass, passes of an optimizer step)."""
    return (
        int(_value(trainer, cls, "per_device_train_batch_size")),
        int(_value(trainer, cls, "gradient_accumulation_steps")),
    )


def _updates(trainer: dict[str, Any], cls: str, sequences: int, together: int) -> int:
    """Optimizer steps."""
    most = trainer.get("max_steps")
    if most and most > 0:
        return int(most)
    return max(1, ceil(ceil(sequences / together) * float(_value(trainer, cls, "num_train_epochs"))))


def _checkpoints(trainer: dict[str, Any], t: Training) -> float:
    """Bytes of the trainer's own checkpoints: weights (or the adapter) and the optimizer, as many as are kept and one
    more while it is written."""
    kept = int(trainer.get("save_total_limit") or KEPT_CHECKPOINTS) + 1
    state, _ = memory.optimizer_bytes(t.optimizer, 4 if t.lora is not None else t.weight_bytes)
    width = 4 if t.lora is not None else t.weight_bytes
    master = 4.0 if t.sharding.deepspeed and t.autocast else 0.0
    return kept * t.trained * (width + state + master)


def _spread(together: int) -> float:
    """How many standard deviations the longest of `together` lies above the mean, about."""
    return 0.0 if together < 2 else (2.0 * _log(together)) ** 0.5


def _log(value: float) -> float:
    from math import log

    return log(value)


def _general_share(config: Any) -> float:
    """Share of the completions that reward models judge."""
    if not getattr(config, "general", None):
        return 0.0
    return float(config.general_share_of_steps * config.general_fraction)
