"""The loop that fills the shards: the engine makes samples, a thread beside it judges them, both are written down.

Nothing waits for anything else: the engine is fed across shards, judging a sample never stops it (but for `AHEAD`
batches that wait to be judged), and a shard gets its marker when its last sample is judged.
"""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from r1pipe.chat import Tags
from r1pipe.generate.base import Ask, Sample, Sampler
from r1pipe.sampling import filters as keep
from r1pipe.sampling.prompts import Prompt
from r1pipe.sampling.store import Row, Shard, Store
from r1pipe.settings import SamplingConfig
from r1pipe.stage import StageContext

AHEAD = 64  # batches of samples that may wait to be judged
TOGETHER = 256  # samples judged in one call: verifiers share their workers
SHOWN_S = 0.5  # between two lines of progress


@dataclass
class Rules:
    """What judges a sample: the rewards of the step, then its filters."""

    composer: Any
    least: dict[str, float]
    filters: keep.Filters
    tags: Tags

    def judge(self, prompts: Sequence[Prompt], texts: Sequence[Row]) -> list[Row]:
        """A row a sample: key, index, reason (None: kept) and the verdicts of the rewards that apply."""
        made = [i for i, row in enumerate(texts) if row["finish"] != "skipped"]
        scored = self.composer.score_whole([texts[i]["text"] for i in made], [prompts[i].row for i in made])
        found = [
            {"key": row["key"], "index": row["index"], "reason": "skipped", "right": None, "verdicts": {}}
            for row in texts
        ]
        for place, parts in zip(made, scored, strict=True):
            known = {name: verdict for name, verdict in parts.items() if verdict is not None}
            row = texts[place]
            found[place] |= {
                "reason": keep.reason_to_drop(row["text"], row["finish"], known, self.least, self.filters, self.tags),
                "right": self._right(known),
                "verdicts": {
                    name: {"score": v.score, "status": v.status} | ({"detail": v.detail} if v.detail else {})
                    for name, v in known.items()
                },
            }
        return found

    def close(self, ctx: StageContext) -> None:
        """Ends what the verifiers started; what they say of themselves goes to the manifest."""
        for name, said in self.composer.facts().items():
            ctx.fact(f"reward/{name}", said)
        self.composer.close()

    def _right(self, known: dict[str, Any]) -> bool | None:
        """Is the answer right? None where nothing that applies says so."""
        said = [
            v.score is not None and v.score >= self.least[name]
            for name, v in known.items()
            if name in self.least and self.composer.entries[name].correctness
        ]
        return all(said) if said else None


@dataclass
class Tally:
    """What has been done, for the live view and the manifest."""

    prompts: int
    samples: int
    found: int = 0  # samples that were there already
    taken: int = 0  # of those: taken over from an earlier attempt
    made: int = 0
    tokens: int = 0  # of those made
    failed: int = 0  # requests that failed
    torn: int = 0  # lines that a kill had cut
    told: tuple[int, int] = (0, 0)  # samples whose verdict was there already: all, kept
    judged: tuple[int, int] = (0, 0)  # by the judge's thread: all, kept
    why: str = ""  # the last request that failed

    @property
    def done(self) -> int:
        return self.told[0] + self.judged[0] + self.failed

    @property
    def kept(self) -> int:
        return self.told[1] + self.judged[1]


Item = tuple[Shard, Prompt | None, Row]  # without a prompt: look whether the shard is whole


class Collector:
    """Fills the shards of a store."""

    def __init__(
        self,
        ctx: StageContext,
        store: Store,
        rules: Rules,
        *,
        phase: str = "sampling",
        text_of: Callable[[Prompt, str], str] = lambda prompt, text: text,
    ) -> None:
        """`text_of`: the sample that an answer of the engine makes (a rewritten CoT is put into its completion)."""
        self.ctx = ctx
        self.store = store
        self.rules = rules
        self.phase = phase
        self.text_of = text_of
        self._place = {p.key: (shard, p) for shard in store.shards for p in shard.prompts}
        self.tally = Tally(len(self._place), sum(p.n for _, p in self._place.values()))
        self._started = time.monotonic()
        self._shown = 0.0

    def run(self, make: Callable[[], Sampler], sampling: SamplingConfig) -> dict[str, Any]:
        """Makes what is missing and judges what was not; the facts of the engine. `make` builds it, where needed."""
        judge = Judge(self.rules, self._judged)
        groups = self._groups(judge)
        try:
            first = next(groups, None)  # an engine that has nothing to do is not started
            facts = {"engine": "not started: every sample was there"} if first is None else self._sample(
                make, itertools.chain([first], groups), sampling, judge
            )  # fmt: skip
            judge.finish()
            self._show(force=True)
            return facts
        finally:
            judge.stop()
            self.store.close()

    def _sample(
        self, make: Callable[[], Sampler], groups: Iterable[list[Ask]], sampling: SamplingConfig, judge: Judge
    ) -> dict[str, Any]:
        self.ctx.phase("loading")
        sampler = make()
        try:
            self.ctx.phase(self.phase)
            self._started = time.monotonic()
            self._show(force=True)
            for made in sampler.stream(groups, sampling):
                self._made(made, judge)
        finally:
            sampler.close()
        return dict(sampler.facts)

    def _groups(self, judge: Judge) -> Iterator[list[Ask]]:
        """The prompts of each shard that lacks samples. What is there but not judged goes to the judge."""
        for shard in self.store.shards:
            if (said := shard.marker()) is not None:
                self._found(said["samples"], said["samples"], said["kept"])
                continue
            self.tally.taken += shard.open(self.store.earlier)
            self.tally.torn += shard.torn
            self._found(
                len(shard.texts), len(shard.verdicts), sum(row["reason"] is None for row in shard.verdicts.values())
            )
            if shard.whole:
                shard.finish()
                continue
            todo = [p.ask(self.ctx.seed, shard.have(p)) for p in shard.prompts]
            lacks = any(ask.missing for ask in todo)
            judge.put(
                [(shard, self._place[name[0]][1], row) for name, row in shard.texts.items()
                 if name not in shard.verdicts]
            )  # fmt: skip
            if lacks:
                yield todo

    def _found(self, texts: int, verdicts: int, kept: int) -> None:
        self.tally.found += texts
        self.tally.told = (self.tally.told[0] + verdicts, self.tally.told[1] + kept)

    def _made(self, made: list[tuple[Ask, Sample]], judge: Judge) -> None:
        """Writes samples down, and hands them to the judge."""
        new: dict[int, list[Row]] = {}
        items: list[Item] = []
        for ask, sample in made:
            shard, prompt = self._place[ask.key]
            row = self._row(ask, prompt, sample)
            if sample.again:  # not written: another run tries it again
                shard.failed[(ask.key, sample.index)] = row | {"reason": "failed", "verdicts": {}, "right": None}
                self.tally.failed += 1
                self.tally.why = sample.why
                items.append((shard, None, row))
            else:
                new.setdefault(shard.number, []).append(row)
                items.append((shard, prompt, row))
            self.tally.made += 1
            self.tally.tokens += sample.tokens
        for number, rows in new.items():
            self.store.shards[number].add_texts(rows)
        judge.put(items)
        self._show()

    def _row(self, ask: Ask, prompt: Prompt, sample: Sample) -> Row:
        row: Row = {
            "key": ask.key,
            "index": sample.index,
            "seed": ask.seeds[sample.index],
            "text": self.text_of(prompt, sample.text) if sample.finish != "skipped" else "",
            "tokens": sample.tokens,
            "finish": sample.finish,
        }
        return row | {"why": sample.why} if sample.why else row

    def _judged(self, rows: list[Row]) -> None:
        """In the judge's thread, the only one that counts here."""
        kept = sum(row["reason"] is None for row in rows)
        self.tally.judged = (self.tally.judged[0] + len(rows), self.tally.judged[1] + kept)

    def _show(self, force: bool = False) -> None:
        now = time.monotonic()
        if not force and now - self._shown < SHOWN_S:
            return
        self._shown = now
        tally = self.tally
        metrics = {"kept": tally.kept / tally.done} if tally.done else {}
        if tally.made:
            metrics["tokens_per_s"] = tally.tokens / max(now - self._started, 1e-6)
        self.ctx.progress(tally.done * tally.prompts // max(1, tally.samples), tally.prompts, **metrics)


class Judge(threading.Thread):
    """Judges samples as they come, in a thread of its own, and marks the shards that are whole. What goes wrong in it
    is raised where it is fed."""

    def __init__(self, rules: Rules, told: Callable[[list[Row]], None]) -> None:
        super().__init__(daemon=True, name="r1pipe-judge")
        self.rules = rules
        self.told = told
        self.waiting: queue.Queue[list[Item] | None] = queue.Queue(AHEAD)
        self.error: BaseException | None = None
        self.start()

    def put(self, items: list[Item]) -> None:
        """Waits where the judge is far behind."""
        for at in range(0, len(items), TOGETHER):
            self._put(items[at : at + TOGETHER])

    def _put(self, items: list[Item] | None) -> None:
        while True:
            if self.error is not None:
                raise self.error
            try:
                return self.waiting.put(items, timeout=0.2)
            except queue.Full:
                continue

    def finish(self) -> None:
        """Until everything that was put is judged."""
        self._put(None)
        self.join()
        if self.error is not None:
            raise self.error

    def stop(self) -> None:
        """Ends it without judging what waits."""
        if self.is_alive():
            self.error = self.error or RuntimeError("stopped")
            self.join()

    def run(self) -> None:
        try:
            ended = False
            while not ended:
                items, ended = self._next()
                self._judge(items)
        except BaseException as error:  # noqa: BLE001 (raised in the thread that feeds it)
            self.error = error

    def _next(self) -> tuple[list[Item], bool]:
        """What waits, up to `TOGETHER` samples (verifiers work better on many); and whether that was all."""
        items: list[Item] = []
        while len(items) < TOGETHER and self.error is None:
            try:
                more = self.waiting.get(timeout=0.2) if not items else self.waiting.get_nowait()
            except queue.Empty:
                if items:
                    break
                continue
            if more is None:
                return items, True
            items += more
        return items, self.error is not None

    def _judge(self, items: list[Item]) -> None:
        given = [(shard, prompt, row) for shard, prompt, row in items if prompt is not None]
        by_shard: dict[int, tuple[Shard, list[Row]]] = {shard.number: (shard, []) for shard, _, _ in items}
        if given:
            rows = self.rules.judge([p for _, p, _ in given], [row for _, _, row in given])
            for (shard, _, _), row in zip(given, rows, strict=True):
                by_shard[shard.number][1].append(row)
            self.told(rows)
        for shard, rows in by_shard.values():
            shard.add_verdicts(rows)
            if shard.whole:
                shard.finish()
