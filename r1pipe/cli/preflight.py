"""`r1pipe preflight`: the rewards and the data of a profile's RL steps, before any GPU time."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from r1pipe.cli import options as o
from r1pipe.cli import terminal
from r1pipe.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console

    from r1pipe.config import Profile
    from r1pipe.plan import Planner
    from r1pipe.rewards import Composer
    from r1pipe.training.settings import GRPOStep

Report = dict[str, Any]


def preflight(
    profile: o.Profile = "tiny",
    step: Annotated[str | None, typer.Option("--step", help="One RL step; else every one.")] = None,
    prompts: Annotated[
        int, typer.Option("--prompts", min=0, help="Prompts sampled from the policy where it is there; 0: none.")
    ] = 16,
    run: o.Run = None,
    runs_dir: o.RunsDir = Path("runs"),
    set_: o.Set = None,
    json: o.Json = False,
    allow_code: o.AllowCode = False,
    debug: o.Debug = False,
) -> int:
    """Gold answers must score 1, broken ones 0; samples of the policy must give a signal. Says what to change.

    The policy of a step is its sealed input in the run; a step whose input has not been made yet is checked without
    samples.
    """
    from r1pipe.cli.run import _load, _store
    from r1pipe.plan import Planner
    from r1pipe.training.settings import GRPOStep

    loaded = _load(profile, set_, allow_code)
    steps = {name: c for name, c in loaded.steps.items() if isinstance(c, GRPOStep)}
    if step is not None:
        name = loaded.resolve(step)
        if name not in steps:
            raise UserError(f"{name} is no RL step", hint=f"RL steps of {loaded.name}: {', '.join(steps) or 'none'}")
        steps = {name: steps[name]}
    if not steps:
        raise UserError(f"profile {loaded.name} has no RL step: there is nothing to check")
    store = _store(runs_dir, run, loaded, "full")
    planner = Planner(loaded, store)
    reports = {name: _check(loaded, planner, name, config, prompts) for name, config in steps.items()}
    if json:
        import json as js

        sys.stdout.write(js.dumps({"profile": loaded.name, "steps": reports}, ensure_ascii=False, indent=2) + "\n")
    else:
        out = terminal.console()
        for name, report in reports.items():
            _show(out, name, report)
    return 1 if any(report["fails"] for report in reports.values()) else 0


class _Counts:
    """What the loader counts."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def count(self, name: str, n: float = 1) -> None:
        self.counts[name] += int(n)


def _check(profile: Profile, planner: Planner, name: str, config: GRPOStep, prompts: int) -> Report:
    from r1pipe.data.load import load
    from r1pipe.rewards import Composer
    from r1pipe.training import preflight as checks

    warnings: list[str] = []
    inputs, missing = _inputs(profile, planner, name)
    models = {port: path for port, path in inputs.items() if port != "model"}
    parts = {n: p for n, p in config.rewards.items() if n in models or not _needs_model(n, p)}
    left_out = [n for n in config.rewards if n not in parts]
    counts = _Counts()
    specs = [*config.data, *getattr(config, "general", [])]
    rows = [
        row for spec in specs for row in load(spec, "prompts", seed=config.seed, ctx=counts, tags=config.chat.tags)
    ]
    policy = inputs.get("model")
    composer = Composer(
        parts,
        tags=config.chat.tags,
        prefilled=policy is not None and _prefilled(policy, config),
        models=models,
        warn=warnings.append,
    )
    try:
        composer.check_rows([{**row, **(row.get("extra") or {})} for row in rows])
        report = checks.check_rewards(composer, rows, most=config.preflight.golds, seed=config.seed)
        report |= {"dropped": dict(counts.counts), "prefilled_think": composer.context.prefilled}
        report["left_out"] = {n: f"no model yet ({missing.get(n, 'no input')})" for n in left_out}
        if policy is None:
            report["not_sampled"] = missing.get("model", "the step has no input")
        elif prompts:
            report["samples"] = _sample(composer, config, rows, policy, prompts)
        report["advice"] = checks.advice(report, max_tokens=_max_tokens(config)) + warnings
        report["fails"] = None
        try:
            checks.refuse(report, config.preflight.most_bad_golds)
        except UserError as error:
            report["fails"] = error.message
        return report
    finally:
        composer.close()


def _needs_model(name: str, part: Any) -> bool:
    from r1pipe.rewards import registry

    return registry.of(name, part).model


def _inputs(profile: Profile, planner: Planner, name: str) -> tuple[dict[str, Path], dict[str, str]]:
    """The folder of each input that is sealed, and of the others why not."""
    found: dict[str, Path] = {}
    missing: dict[str, str] = {}
    for port, (source, output) in profile.sources(name).items():
        decision = planner.decide(source)
        if decision.manifest is None or decision.attempt is None:
            missing[port] = f"step {source} has not been run"
        else:
            found[port] = decision.attempt.output(output)
    return found, missing


def _prefilled(policy: Path, config: GRPOStep) -> bool:
    from r1pipe.chat import prefilled_think
    from r1pipe.training.model import load_tokenizer

    return prefilled_think(load_tokenizer(policy), config.chat.tags)


def _max_tokens(config: GRPOStep) -> int:
    from r1pipe.training.fields import default

    return config.trainer.get("max_completion_length") or default("GRPOConfig", "max_completion_length")


def _sample(composer: Composer, config: GRPOStep, rows: list[dict[str, Any]], policy: Path, prompts: int) -> Report:
    import random

    from r1pipe.generate import make
    from r1pipe.settings import SamplingConfig
    from r1pipe.training import preflight as checks
    from r1pipe.training.common import quiet

    quiet()
    chosen = list({row["id"]: row for row in rows}.values())
    random.Random(config.seed).shuffle(chosen)
    chosen = chosen[:prompts]
    sampling = SamplingConfig(
        n=config.batch().num_generations,
        temperature=config.trainer.get("temperature", 1.0),
        max_tokens=_max_tokens(config),
    )
    sampler = make(config.engine, policy, config.chat)
    try:
        groups = sampler.generate(
            [config.chat.conversation(row["messages"]) for row in chosen], sampling, seed=config.seed
        )
    finally:
        sampler.close()
    return checks.check_samples(composer, chosen, groups)


def _show(out: Console, name: str, report: Report) -> None:
    fancy = terminal.fancy(out)
    good, bad = ("✓", "✗") if fancy else ("ok", "x")

    def line(ok: bool, text: str) -> None:
        mark = f"[green]{good}[/]" if ok else f"[red]{bad}[/]"
        out.print(f"  {mark} {text}", soft_wrap=True)

    out.print(f"[bold]{name}[/]: {report['rows']} rows looked at")
    for key, what, meant in (("golds", "gold", "1"), ("broken", "broken", "0")):
        part = report[key]
        if part["checked"]:
            line(
                not part["wrong"],
                f"{part['checked'] - part['wrong']} of {part['checked']} {what} answers score {meant}",
            )
        if part["unanswered"]:
            out.print(f"    {part['unanswered']} rows have no {what} answer to try")
    if report["unjudged"]:
        out.print(f"    {report['unjudged']} rows have nothing to be right or wrong (general, safety)")
    for reward, score in report["form"].items():
        line(score == 1, f"{reward} gives {score:g} to a completion in the asked-for form")
    if report["prefilled_think"]:
        out.print("    the template opens the thinking itself: the tag is put back before scoring")
    for reward, why in report["left_out"].items():
        out.print(f"    {reward} left out: {terminal.safe(why)}", soft_wrap=True)
    for reason, n in report["dropped"].items():
        out.print(f"    {n} {reason}")
    if "samples" in report:
        s = report["samples"]
        means = ", ".join(f"{k} {v:.2f}" for k, v in s["means"].items() if "/" not in k)
        line(
            s["no_signal"] <= 0.5,
            f"{s['samples']} samples of {s['groups']} prompts: {s['no_signal']:.0%} of the groups without a signal, "
            f"{s['truncated']:.0%} truncated, {s['unparsable']:.0%} unparsable",
        )
        out.print(f"    mean {s['mean_tokens']:.0f} tokens; {means}", soft_wrap=True)
    else:
        out.print(f"    no samples: {terminal.safe(report.get('not_sampled', 'not asked for'))}", soft_wrap=True)
    for said in report["advice"]:
        out.print(f"  [yellow]![/] {terminal.safe(said)}", soft_wrap=True)
    if report["fails"]:
        out.print(f"  [bold red]training would be refused:[/] {terminal.safe(report['fails'])}", soft_wrap=True)
