"""The dataset of a sampling step, every sample that it was chosen from, and the pass rate of each prompt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from r1pipe.errors import UserError
from r1pipe.sampling import card, choose, reviews
from r1pipe.sampling.prompts import Prompt
from r1pipe.sampling.settings import SamplingStep
from r1pipe.sampling.store import SAMPLES, SETTINGS, Log, Store
from r1pipe.stage import StageContext
from r1pipe.store import write_json

Row = dict[str, Any]
Settled = tuple[Prompt, list[Row], list[Row]]  # its samples as they were judged, and with their last reasons
PROMPTS = "prompts.jsonl"
MANY = 0.05  # share of the prompts from which a fault of theirs is worth a warning
ALIKE = 0.5


class Writer:
    """Goes through the samples prompt by prompt: what is kept, what is not and why, what it comes to."""

    def __init__(
        self,
        ctx: StageContext,
        step: SamplingStep,
        store: Store,
        rewritten: dict[Any, Row],
        general: list[Row],
        reviewed: dict[str, reviews.Decision],
    ) -> None:
        """`rewritten`: (key, index) of a sample → its rewrite. `reviewed`: id of a row → decision."""
        self.ctx = ctx
        self.step = step
        self.store = store
        self.rewritten = rewritten
        self.general = general
        self.reviewed = reviewed
        self.facts = card.Facts()
        self.rows = Counter({"sampled": 0, "regenerated": 0, "general": 0})
        self.counts: Counter[str] = Counter()
        self.tokens = self.right = 0
        self.too_long = ""

    def write(self, dataset: Path, evidence: Path) -> dict[str, Any]:
        """Writes into the folders of the two outputs; the metrics. Raises UserError where nothing is kept."""
        from r1pipe.data.load import write_rows

        over = self._over_mix()
        samples, prompts = Log(evidence / SAMPLES), Log(evidence / PROMPTS)

        def rows() -> Iterator[Row]:
            for prompt, judged, settled in self._settled():
                kept = []
                for sample in settled:
                    row = sample.pop("row", None)
                    if row is not None and row["id"] in over:
                        sample["reason"] = "over_mix"
                    elif row is not None:
                        kept.append(row)
                rate = choose.pass_rate(judged)
                self._count(prompt, judged, settled, kept, rate)
                samples.append(_public(prompt, s) for s in settled)
                prompts.append([_asked(prompt, judged, kept, rate)])
                yield from (row if rate is None else row | {"pass_rate": round(rate, 4)} for row in kept)
            for row in self.general:
                self.rows["general"] += row["id"] not in over
                if row["id"] not in over:
                    yield row

        write_rows(dataset / "data.jsonl", rows())
        samples.close()
        prompts.close()
        write_json(evidence / SETTINGS, self.store.settings)
        metrics = self._told()
        (dataset / "README.md").write_text(self._card(), encoding="utf-8", errors="backslashreplace")
        return metrics

    def _settled(self) -> Iterator[Settled]:
        for prompt, judged in self.store.samples():
            found = [self._rewrite(prompt, sample) for sample in judged]
            yield prompt, found, choose.settle(prompt, found, self.reviewed, self.step.chat.tags)

    def _rewrite(self, prompt: Prompt, sample: Row) -> Row:
        made = self.rewritten.get((prompt.key, sample["index"]))
        if made is None:
            return sample
        taken = {name: made[name] for name in ("text", "reason", "right", "verdicts")}
        return sample | taken | {"rewritten_from": sample["text"]}

    def _over_mix(self) -> set[str]:
        """Rows that the mix has no room for."""
        if self.step.mix is None:
            return set()
        there = [
            (sample["row"]["id"], prompt.row["kind"])
            for prompt, _, settled in self._settled()
            for sample in settled
            if "row" in sample
        ] + [(row["id"], row["kind"]) for row in self.general]
        over, said = choose.over_mix(there, self.step.mix, self.ctx.seed)
        for text in said:
            self.ctx.warn(text)
        return over

    def _count(
        self, prompt: Prompt, judged: list[Row], settled: list[Row], kept: list[Row], rate: float | None
    ) -> None:
        facts, counts = self.facts, self.counts
        facts.sampled += len(settled)
        facts.kept += len(kept)
        facts.dropped.update(s["reason"] for s in settled if s["reason"] is not None)
        facts.rates.append((prompt.row, rate, len(kept)))
        if kept:
            facts.tokens.setdefault(prompt.row["kind"], []).extend(s["tokens"] for s in settled if not s["reason"])
        facts.examples += kept[: 3 - len(facts.examples)]
        self.rows["regenerated" if prompt.regenerated else "sampled"] += len(kept)
        self.tokens += sum(s["tokens"] for s in settled)
        self.right += round((rate or 0.0) * len(judged))
        counts["nothing_kept"] += not kept
        counts["pass_rate_0"] += rate == 0
        counts["identical_samples"] += choose.identical(judged)
        counts.update(f"review/{s['review']}" for s in settled if "review" in s)
        if any(s["reason"] == "skipped" for s in judged):
            counts["skipped"] += 1
            self.too_long = max(self.too_long, judged[0].get("why", ""), key=len)

    def _told(self) -> dict[str, Any]:
        """Counts, warnings and metrics."""
        ctx, facts, counts = self.ctx, self.facts, self.counts
        ctx.count("samples/sampled", facts.sampled)
        ctx.count("samples/kept", facts.kept)
        for reason, n in sorted(facts.dropped.items()):
            ctx.count(f"samples/dropped/{reason}", n)
        if over := len(self.general) - self.rows["general"]:
            ctx.count("general/dropped/over_mix", over)
        for name in ("nothing_kept", "pass_rate_0"):
            ctx.count(f"prompts/{name}", counts[name])
        for name in ("skipped", "identical_samples"):
            if counts[name]:
                ctx.count(f"prompts/{name}", counts[name])
        for action in reviews.ACTIONS:
            if n := counts[f"review/{action}"]:
                ctx.count(f"review/{action}", n)
        self._warn()
        if not facts.kept:
            why = ", ".join(f"{n} {reason}" for reason, n in facts.dropped.most_common())
            raise UserError(
                f"0 kept of {facts.sampled} samples: {why}",
                hint="r1pipe samples RUN --dropped shows them; a better policy, easier prompts or milder filters",
            )
        kept_tokens = [n for found in facts.tokens.values() for n in found]
        ctx.fact("sampled_tokens", self.tokens)
        ctx.describe("samples", rows=sum(self.rows.values()))
        return {
            "kept_rows": facts.kept,
            "general": self.rows["general"],
            "kept_rate": facts.kept / facts.sampled,
            "pass_rate": self.right / facts.sampled,
            "prompts_without": counts["nothing_kept"],
            "tokens": self.tokens,
            "mean_tokens": sum(kept_tokens) / len(kept_tokens),
        }

    def _warn(self) -> None:
        ctx, counts, asked = self.ctx, self.counts, len(self.facts.rates)
        if counts["skipped"]:
            ctx.warn(f"{counts['skipped']} of {asked} prompts were skipped ({self.too_long})")
        if counts["pass_rate_0"] >= MANY * asked:
            ctx.warn(
                f"{counts['pass_rate_0']} of {asked} prompts have no right sample: they are too hard, or their gold "
                "answers are wrong (README.md and prompts.jsonl list them)"
            )
        several = sum(n > 1 for n in (p.n for shard in self.store.shards for p in shard.prompts))
        if self.step.sampling.temperature > 0 and several and counts["identical_samples"] >= ALIKE * several:
            ctx.warn(
                f"all samples of {counts['identical_samples']} of {several} prompts are the same text at temperature "
                f"{self.step.sampling.temperature:g}: the engine may ignore seeds, or the policy has no choice left"
            )
        if missing := len(self.reviewed) - sum(counts[f"review/{action}"] for action in reviews.ACTIONS):
            ctx.count("review/without_sample", missing)
            ctx.warn(f"{missing} of {len(self.reviewed)} reviews are of samples that were not made this time")

    def _card(self) -> str:
        step = self.step
        settings = {
            "policy": f"{self.ctx.inputs['model'].producer}, {self.ctx.inputs['model'].digest[:12]}",
            "samples a prompt": step.sampling.n,
            "temperature, top_p, max_tokens": f"{step.sampling.temperature:g}, {step.sampling.top_p:g}, "
            f"{step.sampling.max_tokens}",
            "must pass": ", ".join(step.rewards),
            "most a prompt": step.per_prompt,
            "mix": step.mix or "all rows",
            "seed": step.seed,
        }
        return card.write(f"Samples of step {self.ctx.step}", self.facts, self.rows, settings)


def _public(prompt: Prompt, sample: Row) -> Row:
    """A line of samples.jsonl."""
    return {"id": sample["id"], "prompt": prompt.row["id"]} | sample


def _asked(prompt: Prompt, judged: list[Row], kept: list[Row], rate: float | None) -> Row:
    """A line of prompts.jsonl: the row of the prompt, which can be a source of prompts again."""
    return prompt.row | {
        "key": prompt.key,
        "pass_rate": None if rate is None else round(rate, 4),
        "sampled": len(judged),
        "passed": sum(s["reason"] is None for s in judged),
        "kept": len(kept),
    }
