"""Every sample of a step with its prompt and its verdicts: of a finished one from its output, of one that is under
way or has failed from its work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from r1pipe import manifest as mf
from r1pipe.data.rows import row_id
from r1pipe.errors import UserError, nearest
from r1pipe.sampling.run import SAMPLES, VERDICTS, folders
from r1pipe.sampling.store import SAMPLES as SAMPLES_FILE
from r1pipe.sampling.store import Log
from r1pipe.sampling.write import PROMPTS
from r1pipe.store import Attempt, Store, read_json

Row = dict[str, Any]
STAGE = "rejection-sampling"


@dataclass
class Sampled:
    """The samples of one attempt at a step. `config`: the settings of the step."""

    step: str
    attempt: Attempt
    config: Row
    counts: Counter[str] = field(default_factory=Counter)  # by reason; kept under ""

    @property
    def finished(self) -> bool:
        return self.attempt.sealed

    def samples(self) -> Iterator[tuple[Row, Row]]:
        """(row of the prompt, sample) in order. A sample that nobody judged yet has the reason "not judged"."""
        if self.finished:
            yield from _finished(self.attempt.output(VERDICTS))
        else:
            for folder in folders(self.attempt.work / SAMPLES):
                yield from _under_way(folder)

    def count(self) -> None:
        self.counts = Counter(sample["reason"] or "" for _, sample in self.samples())


def find(store: Store, step: str | None) -> Sampled:
    """The samples of a step: those of the result that was sealed last, else of an attempt that is not finished."""
    known = {name: found for name in store.steps() if (found := _of(store, name)) is not None}
    if not known:
        raise UserError(
            f"{store.root} holds no samples", hint="r1pipe run-stage rejection-sampling makes them; r1pipe status"
        )
    if step is None and len(known) > 1:
        raise UserError(f"several steps hold samples: {', '.join(known)}", hint="add --step NAME")
    name = step if step is not None else next(iter(known))
    if name not in known:
        raise UserError(f'step "{name}" of {store.root} holds no samples{nearest(name, known)}')
    found = known[name]
    found.count()
    return found


def _of(store: Store, step: str) -> Sampled | None:
    sealed, open_ = None, None
    for attempt in store.all_attempts(step):
        if attempt.sealed:
            manifest = mf.load(attempt)
            if manifest.stage == STAGE and (sealed is None or sealed[0] < manifest.finished):
                sealed = (manifest.finished, Sampled(step, attempt, manifest.config))
        elif folders(attempt.work / SAMPLES) and attempt.request.is_file():
            open_ = Sampled(step, attempt, read_json(attempt.request)["config"])
    return sealed[1] if sealed is not None else open_


def _finished(folder: Path) -> Iterator[tuple[Row, Row]]:
    if not (folder / SAMPLES_FILE).is_file():
        raise UserError(f"{folder} has no {SAMPLES_FILE}", hint="it was sealed by an older r1pipe: run the step again")
    prompts = Log(folder / PROMPTS).read()
    asked: Row = {}
    for sample in Log(folder / SAMPLES_FILE).read():
        while asked.get("key") != sample["key"]:  # both files are in the order of the prompts
            asked = next(prompts)
        yield asked, sample


def _under_way(folder: Path) -> Iterator[tuple[Row, Row]]:
    for path in sorted(folder.glob("shard-*.prompts.jsonl")):
        stem = path.name.removesuffix(".prompts.jsonl")
        texts = {(r["key"], r["index"]): r for r in Log(folder / f"{stem}.texts.jsonl").read()}
        told = {(r["key"], r["index"]): r for r in Log(folder / f"{stem}.verdicts.jsonl").read()}
        asked = {row["key"]: row for row in Log(path).read()}
        for name in sorted(texts, key=lambda n: (list(asked).index(n[0]) if n[0] in asked else 0, n[1])):
            if name[0] in asked:
                verdict = told.get(name, {"reason": "not judged", "verdicts": {}})
                messages = [*asked[name[0]]["messages"], {"role": "assistant", "content": texts[name]["text"]}]
                yield asked[name[0]], {**texts[name], **verdict, "id": row_id(messages)}
