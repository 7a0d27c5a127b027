"""Preflight: do the rewards and the data fit, and does the policy give GRPO a signal? Before any step of RL.

`check_rewards` puts the gold answer of each row through the rewards (it must score 1) and a broken one (0).
`check_samples` looks at samples of the policy: groups without a signal, truncated and unparsable completions, the
rate of each reward under the real chat template. `advice` turns the numbers into what to change. No torch here: the
samples come from outside.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Hashable, Sequence
from typing import Any

from r1pipe.errors import UserError
from r1pipe.generate.base import Sample
from r1pipe.rewards import correctness
from r1pipe.rewards.compose import Composer, Scores, summary
from r1pipe.rewards.verdict import Row, Verdict

EXAMPLES = 3
REASONING = "The answer follows from the question."
FLAT = 1e-6  # totals of a group that differ by less give no advantage
Report = dict[str, Any]


def check_rewards(composer: Composer, rows: Sequence[Row], *, most: int, seed: int = 0) -> Report:
    """Gold and broken answers of at most `most` rows, by the part that says right or wrong.

    {"rows", "golds": {"checked", "wrong", "examples"}, "broken": {...}, "unjudged": rows that nothing says right or
    wrong about, "form": {reward: score of a completion in the form that the prompt asks for}}.
    """
    chosen = list(rows)
    random.Random(seed).shuffle(chosen)
    chosen = chosen[:most]
    report: Report = {"rows": len(chosen), "unjudged": 0}
    for kind in ("golds", "broken"):
        report[kind] = {"checked": 0, "wrong": 0, "unanswered": 0, "examples": []}
    judged: dict[str, list[Row]] = {}
    for row in chosen:
        part = next((n for n, e in composer.entries.items() if e.correctness and composer.applies(n, row)), None)
        if part is None:
            report["unjudged"] += 1
        else:
            judged.setdefault(part, []).append(row)
    for part, members in judged.items():
        module = composer.entries[part].load()
        for kind, function, expected in (("golds", "right_answer", 1.0), ("broken", "wrong_answer", 0.0)):
            answer = getattr(module, function, lambda row: None)
            pairs = [(row, text) for row in members if (text := answer(_flat(row))) is not None]
            report[kind]["unanswered"] += len(members) - len(pairs)
            texts = [composer.context.tags.wrap(REASONING, text) for _, text in pairs]
            verdicts = composer.verdicts(part, texts, [_flat(row) for row, _ in pairs]) if pairs else []
            report[kind]["checked"] += len(pairs)
            if kind == "golds":  # a gold equals itself even where nothing else can be compared with it
                bad = correctness.check_golds([row for row, _ in pairs])
                verdicts = [Verdict(None, "error", b) if b else v for b, v in zip(bad, verdicts, strict=True)]
            for (row, text), verdict in zip(pairs, verdicts, strict=True):
                if verdict.score is None or abs(verdict.score - expected) > FLAT:
                    report[kind]["wrong"] += 1
                    if len(report[kind]["examples"]) < EXAMPLES:
                        report[kind]["examples"].append(_example(row, text, verdict))
    report["form"] = _form(composer, chosen)
    return report


def _flat(row: Row) -> Row:
    return {**row, **(row.get("extra") or {})}


def _example(row: Row, answer: str, verdict: Verdict) -> Report:
    asked = row["messages"][-1]["content"] if row.get("messages") else ""
    return {
        "id": row.get("id"),
        "question": asked[:120],
        "gold": str(row.get("gold"))[:80],
        "answer": answer[:80],
        "score": verdict.score,
        "detail": f"{verdict.status} {verdict.detail}".strip(),
    }


def _form(composer: Composer, rows: Sequence[Row]) -> Report:
    """The format rewards of a completion as the prompt asks for it, through the prefilled tag if there is one."""
    tags = composer.context.tags
    text = tags.wrap(REASONING, "42")
    if composer.context.prefilled:
        text = text.removeprefix(tags.think_open)
    whole = composer.context.whole(text)
    names = [n for n, e in composer.entries.items() if e.module == "format"]
    return {name: composer.verdicts(name, [whole], [dict(rows[0]) if rows else {}])[0].score for name in names}


def check_samples(composer: Composer, rows: Sequence[Row], groups: Sequence[Sequence[Sample]]) -> Report:
    """`look` at samples of a sampler, one group a row, scored as at the end of training."""
    flat = [(index, row, sample) for index, row in enumerate(rows) for sample in groups[index]]
    scored = composer.score_whole([sample.text for _, _, sample in flat], [row for _, row, _ in flat])
    return look(composer, [index for index, _, _ in flat], [sample for _, _, sample in flat], scored)


def look(
    composer: Composer,
    groups: Sequence[Hashable],
    samples: Sequence[Sample],
    scored: Sequence[Scores],
    progress: float | None = None,
) -> Report:
    """What samples of the policy say; `groups[i]` is the group of `samples[i]`, whose texts are whole.

    {"groups", "samples", "no_signal": share of groups whose totals are all equal, "all_right", "all_wrong",
    "truncated", "skipped", "open_thinking": shares of samples, "unparsable": share of those with an answer to be
    right, "no_reward", "means": {reward: mean, reward/status: share}, "mean_tokens"}.
    """
    totals = [composer.total(parts, progress) for parts in scored]
    correct = [n for n, e in composer.entries.items() if e.correctness]
    verdicts = [next((v for n in correct if (v := parts[n]) is not None), None) for parts in scored]
    members: dict[Hashable, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)
    flat, right, wrong = 0, 0, 0
    for places in members.values():
        known = [t for i in places if (t := totals[i]) is not None]
        flat += not known or max(known) - min(known) < FLAT
        scores = [v.score for i in places if (v := verdicts[i]) is not None]
        right += bool(scores) and all(s is not None and s >= 1 - FLAT for s in scores)
        wrong += bool(scores) and all(s is not None and s <= FLAT for s in scores)
    judged = [v for v in verdicts if v is not None]
    closing = composer.context.tags.think_close

    def share(count: int, of: int = len(samples)) -> float:
        return count / max(of, 1)

    return {
        "groups": len(members),
        "samples": len(samples),
        "no_signal": share(flat, len(members)),
        "all_right": share(right, len(members)),
        "all_wrong": share(wrong, len(members)),
        "truncated": share(sum(s.finish == "length" for s in samples)),
        "skipped": share(sum(s.finish == "skipped" for s in samples)),
        "open_thinking": share(sum(closing not in s.text for s in samples)),
        "unparsable": share(sum(v.status == "unverifiable" for v in judged), len(judged)),
        "no_reward": share(sum(t is None for t in totals)),
        "means": summary(scored, totals),
        "mean_tokens": statistics.fmean([s.tokens for s in samples]) if samples else 0.0,
    }


def advice(report: Report, *, max_tokens: int | None = None) -> list[str]:
    """What to change, worst first; empty where nothing stands out."""
    said = []
    for name, score in report.get("form", {}).items():
        if score is not None and score < 1:
            said.append(
                f'the reward "{name}" gives {score:g} to a completion in the form that chat.tags ask for: they do not '
                "fit"
            )
    golds, broken = report["golds"], report["broken"]
    if golds["wrong"]:
        first = golds["examples"][0]
        said.append(
            f"{golds['wrong']} of {golds['checked']} gold answers do not score 1 (such as {first['gold']!r}: "
            f"{first['detail']}): drop or mend those rows"
        )
    if broken["wrong"]:
        first = broken["examples"][0]
        said.append(
            f"{broken['wrong']} of {broken['checked']} broken answers do not score 0 (such as {first['answer']!r} for "
            f"{first['gold']!r}): the kind of these rows may be wrong"
        )
    if samples := report.get("samples"):
        said += _advice_on_samples(samples, max_tokens)
    return said


def _advice_on_samples(s: Report, max_tokens: int | None) -> list[str]:
    said = []
    if s["open_thinking"] > 0.9:
        said.append(
            "almost no completion closes its thinking: set chat.system_prompt, run the SFT step first, or check that "
            "the template and chat.tags agree"
        )
    if s["truncated"] > 0.2:
        limit = f" ({max_tokens})" if max_tokens else ""
        said.append(
            f"{s['truncated']:.0%} of the completions are cut at trainer.max_completion_length{limit}: raise it, or "
            "they are paid as if they had no answer"
        )
    if s["no_signal"] > 0.5:
        if s["all_wrong"] >= s["all_right"]:
            way = "the prompts are too hard: easier ones, more SFT, or more num_generations"
        else:
            way = "the prompts are too easy: harder ones, or filter them by pass rate"
        said.append(
            f"{s['no_signal']:.0%} of the groups give no signal (all completions are paid alike; {s['all_right']:.0%} "
            f"all right, {s['all_wrong']:.0%} all wrong): {way}"
        )
    if s["unparsable"] > 0.3:
        said.append(
            f"{s['unparsable']:.0%} of the completions have no answer that can be read: ask for it in the system "
            "prompt (<answer> or \\boxed{}), or train on examples first"
        )
    if s["no_reward"] > 0:
        said.append(
            f"{s['no_reward']:.1%} of the completions get no reward at all: a verifier failed, or none applies"
        )
    if s["skipped"] > 0:
        said.append(f"{s['skipped']:.1%} of the prompts do not fit the model's context")
    for name, mean in s["means"].items():
        if name.endswith("/timeout") and mean > 0.01:
            said.append(f"{mean:.1%} of the completions time out in {name.removesuffix('/timeout')}")
    return said


def refuse(report: Report, most_bad_golds: float) -> None:
    """Raises UserError where training would reward the wrong thing."""
    golds, broken = report["golds"], report["broken"]
    for name, score in report["form"].items():
        if score == 0:
            raise UserError(
                f'preflight: the reward "{name}" gives 0 to a completion in the form that chat.tags ask for',
                hint="let chat.tags and the reward's options agree; preflight.enabled: false trains all the same",
            )
    for tried, what, meant in ((golds, "gold", 1), (broken, "broken", 0)):
        if tried["checked"] and tried["wrong"] / tried["checked"] > most_bad_golds:
            first = tried["examples"][0]
            raise UserError(
                f"preflight: {tried['wrong']} of {tried['checked']} {what} answers do not score {meant}; first: "
                f"question {first['question']!r}, gold {first['gold']!r}, answer {first['answer']!r}, "
                f"score {first['score']} ({first['detail']})",
                hint="mend the rows or their kind; preflight.most_bad_golds allows more, preflight.enabled: false "
                "trains all the same",
            )
