"""The parts of a sampling step in order: its prompts, what judges, the samples, the rewrites."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from r1pipe.chat import ChatConfig
from r1pipe.digest import value_digest
from r1pipe.errors import UserError
from r1pipe.sampling import filters, rewrite
from r1pipe.sampling.collect import Collector, Rules, Tally
from r1pipe.sampling.prompts import Prompt, conflicting, distinct
from r1pipe.sampling.settings import SamplingStep, identity, rewriting
from r1pipe.sampling.store import Store, foreign
from r1pipe.stage import StageContext
from r1pipe.store import Attempt
from r1pipe.store import Store as Run

Row = dict[str, Any]
SAMPLES = "samples"  # folder of the store, below an attempt's work
REWRITES = "rewrites"
VERDICTS = "verdicts"  # output with every sample of a finished step


def prompts(ctx: StageContext, step: SamplingStep) -> list[Prompt]:
    """Every prompt once. What comes again is counted."""
    from r1pipe.data.load import load_all

    rows = load_all(step.data, "prompts", seed=ctx.seed, ctx=ctx)
    found = distinct(rows, step.chat, step.sampling.n, step.per_prompt)
    again = step.regenerate
    if again is not None:
        more = load_all(again.data, "prompts", seed=ctx.seed, ctx=ctx)
        rows += more
        known = {p.key for p in found}
        asked = distinct(more, step.chat, again.n, again.per_prompt, again.trivial, regenerated=True)
        found += [p for p in asked if p.key not in known]
        ctx.count("prompts/trivial", sum(p.plain for p in found))
    if len(found) < len(rows):
        ctx.count("prompts/duplicate", len(rows) - len(found))
    if conflicts := conflicting(rows, step.chat):
        ctx.count("prompts/conflicting_golds", conflicts)
        ctx.warn(f"{conflicts} prompts come with more than one gold answer; the first of each is used")
    return found


def rules(ctx: StageContext, step: SamplingStep) -> tuple[Rules, str]:
    """What judges a sample, and its digest."""
    from r1pipe.rewards import Composer, versions

    # The sampler puts a prefilled opening tag back itself, so the verifiers see whole completions.
    composer = Composer(step.rewards, tags=step.chat.tags, prefilled=False, warn=ctx.warn)
    dumped = step.model_dump(mode="json", include={"rewards", "filters"})
    digest = value_digest([dumped, versions(step.rewards), step.chat.tags.model_dump()])[:8]
    return Rules(composer, filters.needed(step.rewards, step.filters), step.filters, step.chat.tags), digest


def sample(ctx: StageContext, step: SamplingStep, wanted: list[Prompt], judged: tuple[Rules, str]) -> Store:
    """Fills the store of the step's samples."""
    from r1pipe.generate import make

    source = ctx.inputs["model"]
    settings = identity(source.digest, step)
    others = earlier(ctx)
    _look_around(ctx, step, settings, others)
    store = Store(
        ctx.work / SAMPLES, wanted, settings=settings, rules=judged[1], shard_size=step.shard_size,
        others=[f for a in others for f in (*folders(a.work / SAMPLES), *([a.output(VERDICTS)] * a.sealed))],
    )  # fmt: skip
    collector = Collector(ctx, store, judged[0])
    started = time.monotonic()
    facts = collector.run(lambda: make(step.engine, source.path, step.chat), step.sampling)
    _told(ctx, "", collector.tally, time.monotonic() - started)
    for name, value in facts.items():
        ctx.fact(f"engine/{name}", value)
    ctx.fact("shards", len(store.shards))
    return store


def earlier(ctx: StageContext) -> list[Attempt]:
    """The other attempts of this step whose samples may be taken over: those with other fingerprints. One that is
    made again in a new folder (--force) is to be made again."""
    mine = Attempt(ctx.work.parent)
    try:
        known = Run(mine.path.parents[2], mine.path.parents[1].name).all_attempts(ctx.step)
    except (UserError, IndexError):  # a context made by hand: this is no run folder
        return []
    if mine.path not in [a.path for a in known] or mine.number > 1:
        return []
    return [a for a in known if a.path.name.partition("-")[0] != mine.path.name.partition("-")[0]]


def folders(root: Path) -> list[Path]:
    return sorted(p for p in root.iterdir() if p.is_dir()) if root.is_dir() else []


def _look_around(ctx: StageContext, step: SamplingStep, settings: Row, others: list[Attempt]) -> None:
    """Samples of other settings in attempts that were never finished: left alone and told, or refused."""
    roots = [ctx.work / SAMPLES, *(a.work / SAMPLES for a in others if not a.sealed)]
    for path, n, differences in (found for root in roots for found in foreign(root, settings)):
        what = f"{n} samples in {path} were made with other settings ({'; '.join(differences[:3])})"
        if step.on_changed == "refuse":
            raise UserError(
                f"step {ctx.step}: {what}",
                hint="put the settings back to use them, or set on_changed: restart to leave them and start afresh",
            )
        ctx.count("samples/left_alone", n)
        ctx.warn(f"{what}: they are left alone, and new ones are made")


def _told(ctx: StageContext, what: str, tally: Tally, seconds: float) -> None:
    """What was made, found and lost, for the manifest."""
    ctx.fact(f"{what}samples_made", tally.made)
    ctx.fact(f"{what}samples_reused", tally.found)
    if tally.taken:
        ctx.fact(f"{what}samples_from_earlier_attempts", tally.taken)
    if tally.torn:
        ctx.count(f"{what}samples/torn_lines", tally.torn)
    if tally.failed:
        ctx.count(f"{what}samples/failed", tally.failed)
        ctx.warn(f"{tally.failed} of {tally.samples} {what or 'sampling '}requests failed; the last: {tally.why}")
    ctx.fact(f"{what}sample_seconds", round(seconds, 1))


def rewrites(ctx: StageContext, step: SamplingStep, store: Store, judged: tuple[Rules, str]) -> dict[Any, Row]:
    """(key, index) of a sample → its rewrite that passed."""
    from r1pipe.generate import make

    if step.rewriter is None:
        return {}
    wanted = rewrite.asks(store.samples(), step.rewriter, step.chat.tags)
    ctx.count("rewrites/asked", len(wanted))
    if not wanted:
        return {}
    rewriter, tags = step.rewriter, step.chat.tags
    made = Store(
        ctx.work / REWRITES, wanted, settings=rewriting(step), rules=judged[1], shard_size=step.shard_size,
        others=[folder for a in earlier(ctx) for folder in folders(a.work / REWRITES)],
    )  # fmt: skip
    collector = Collector(
        ctx, made, judged[0], phase="rewriting", text_of=lambda p, text: rewrite.assemble(p, text, tags)
    )
    folder, dtype = (rewriter.model.path, rewriter.model.dtype) if rewriter.model else (None, "auto")
    started = time.monotonic()
    facts = collector.run(lambda: make(rewriter.engine, folder, ChatConfig(), dtype=dtype), rewriter.sampling)
    _told(ctx, "rewrites/", collector.tally, time.monotonic() - started)
    for name, value in facts.items():
        ctx.fact(f"rewriter/{name}", value)
    found = {}
    for prompt, (row,) in made.samples():
        if row["reason"] is None:
            found[prompt.origin] = row
        else:
            ctx.count(f"rewrites/dropped/{row['reason']}")
    ctx.count("rewrites/kept", len(found))
    return found
