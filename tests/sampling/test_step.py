"""The rejection-sampling stage end to end: scripted replies, a random tiny model where it matters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from r1pipe.chat import Tags
from r1pipe.errors import UserError
from r1pipe.sampling import reviews
from r1pipe.stage import POLICY, Input
from stages import rejection_sampling
from tests.sampling import steps
from tests.training.tiny import make_policy

MIXED = Tags().wrap("First 我们 add the two numbers 然后 we have it.", "3")


def run(folder: Path, *, ctx: Any = None, **more: Any) -> tuple[Any, dict[str, Any]]:
    ctx = ctx or steps.context(folder)
    config = steps.config(**{"data": [steps.problems(folder)], **more})
    return ctx, rejection_sampling.run(ctx, config)


def dropped(ctx: Any) -> dict[str, float]:
    start = "samples/dropped/"
    return {name.removeprefix(start): n for name, n in ctx.counts.items() if name.startswith(start)}


def test_keeps_counts_and_shows(tmp_path: Path) -> None:
    replies = [steps.right(3), MIXED, "no idea", steps.right(3, "so\n```\nprint(3)\n```"), "word " * 100]
    general = {"source": "generated:general", "rows": 24}
    ctx, metrics = run(tmp_path, replies=replies, general=[general], sampling={"n": 24, "max_tokens": 64})
    made, judged = steps.rows(ctx), steps.samples(ctx)
    assert metrics["kept_rows"] + metrics["general"] == len(made) and metrics["general"] == 24
    (kept,) = [r for r in made if r["source"].startswith("sampled:")]  # one prompt asks for 3, and the cap is 1
    assert kept["messages"][-1] == {"role": "assistant", "content": steps.right(3)} and metrics["kept_rows"] == 1
    assert ctx.counts["samples/sampled"] == len(judged) == 288
    assert ctx.counts["samples/kept"] + sum(dropped(ctx).values()) == 288
    (asked,) = [p["id"] for p in prompts(ctx) if p["gold"] == "3"]
    reasons = {s["reason"] for s in judged if s["prompt"] == asked}
    assert reasons == {None, "duplicate", "language", "accuracy", "code_block", "truncated"}
    (mine,) = [s for s in judged if s["reason"] is None]
    assert mine["id"] == kept["id"] and mine["verdicts"]["accuracy"] == {"score": 1.0, "status": "scored"}
    card = (ctx.outputs["samples"] / "README.md").read_text()
    assert "Of 288 samples 1 were kept (0.3%)." in card and "| accuracy |" in card and "Pass rates" in card


def prompts(ctx: Any) -> list[dict[str, Any]]:
    return steps.lines(ctx.outputs["verdicts"] / "prompts.jsonl")


def test_pass_rates_are_written_and_prompts_that_nobody_solves_told(tmp_path: Path) -> None:
    """known-failures g11: ten rows, two with a gold that no sample ever matches."""
    rows = [{"prompt": f"{i} plus two?", "gold": "3" if i < 8 else "wrong", "kind": "exact"} for i in range(10)]
    source = tmp_path / "p.jsonl"
    source.write_text("".join(json.dumps(r) + "\n" for r in rows))
    ctx, metrics = run(tmp_path, data=[{"source": str(source)}], replies=[steps.right(3)], sampling={"n": 4})
    rates = {p["messages"][0]["content"]: p["pass_rate"] for p in prompts(ctx)}
    assert sorted(rates.values()) == [0.0] * 2 + [1.0] * 8 and rates["9 plus two?"] == 0.0
    assert ctx.counts["prompts/pass_rate_0"] == 2 and metrics["pass_rate"] == 0.8
    assert any("2 of 10 prompts have no right sample" in w for w in ctx.warnings)
    assert {r["pass_rate"] for r in steps.rows(ctx)} == {1.0}
    assert "2 prompts: too hard for this policy" in (ctx.outputs["samples"] / "README.md").read_text()


def test_nothing_kept_stops_the_step(tmp_path: Path) -> None:
    """known-failures f8."""
    with pytest.raises(UserError, match=r"0 kept of 24 samples: 24 accuracy"):
        run(tmp_path, replies=["no idea"])


def test_truncated_samples_are_no_answers(tmp_path: Path) -> None:
    """known-failures f9."""
    with pytest.raises(UserError, match="0 kept of 24 samples: 24 truncated"):
        run(tmp_path, replies=[steps.right(3)], sampling={"n": 2, "max_tokens": 3})


def test_identical_samples_are_told(tmp_path: Path) -> None:
    """known-failures f2."""
    options = {"rewards": {"format": {}}, "replies": [steps.right(3)]}
    ctx, _ = run(tmp_path, **options)
    assert ctx.counts["prompts/identical_samples"] == 12
    assert any("all samples of 12 of 12 prompts are the same text at temperature 1" in w for w in ctx.warnings)
    ctx, _ = run(tmp_path / "greedy", **options, sampling={"n": 2, "temperature": 0.0})
    assert not any("the same text" in w for w in ctx.warnings)
    ctx, _ = run(tmp_path / "one", **options, sampling={"n": 1})
    assert "prompts/identical_samples" not in ctx.counts


def test_a_prompt_that_comes_twice_is_sampled_once(tmp_path: Path) -> None:
    source = tmp_path / "p.jsonl"
    row = {"prompt": "1 plus 2?", "gold": "3", "kind": "number"}
    source.write_text("".join(json.dumps(r) + "\n" for r in (row, row, row | {"gold": "4"})))
    ctx, metrics = run(tmp_path, data=[{"source": str(source)}], replies=[steps.right(3)], rewards={"format": {}})
    assert ctx.counts["prompts/duplicate"] == 2 and ctx.counts["samples/sampled"] == 2
    assert ctx.counts["prompts/conflicting_golds"] == 1 and metrics["kept_rows"] == 1


def test_a_sample_does_not_depend_on_the_other_prompts(tmp_path: Path) -> None:
    """Order, filtering, shards: the texts of a prompt are the same."""
    options = {"replies": [steps.right(i, f"thought number {i} is here") for i in range(50)],
               "rewards": {"format": {}}}  # fmt: skip
    ctx, _ = run(tmp_path, **options)
    fewer = tmp_path / "fewer.jsonl"
    lines = (tmp_path / "problems.jsonl").read_text().splitlines(keepends=True)
    fewer.write_text("".join(lines[:3] + lines[4:]))
    other, _ = run(tmp_path / "other", data=[{"source": str(fewer)}], shard_size=3, **options)
    assert texts(other).items() < texts(ctx).items() and len(texts(other)) == 22


def texts(ctx: Any) -> dict[tuple[str, int], str]:
    return {(s["prompt"], s["index"]): s["text"] for s in steps.samples(ctx)}


def attempt(root: Path, name: str) -> Any:
    """A context in a real run folder."""
    return steps.context(root / "run" / "sampling" / name)


def test_an_interrupted_attempt_with_fewer_prompts_goes_on(tmp_path: Path) -> None:
    """known-failures f6, as the command line meets it: another fingerprint, another folder, no sample made twice."""
    options = {"rewards": {"format": {}}}
    run(tmp_path, ctx=attempt(tmp_path, "aaaaaaaa"), **options)
    lines = (tmp_path / "problems.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "problems.jsonl").write_text("".join(lines[5:] + lines[:3]))
    data = [{"source": str(tmp_path / "problems.jsonl")}]
    ctx = attempt(tmp_path, "bbbbbbbb")
    rejection_sampling.run(ctx, steps.config(data=data, filters={"repetition": 0.9}, **options))
    assert ctx.facts["samples_made"] == 0 and ctx.facts["samples_from_earlier_attempts"] == 20
    assert ctx.facts["engine/engine"] == "not started: every sample was there"
    forced = attempt(tmp_path, "bbbbbbbb-2")
    rejection_sampling.run(forced, steps.config(data=data, filters={"repetition": 0.9}, **options))
    assert forced.facts["samples_made"] == 20, "--force means: again"


def test_changed_settings_start_afresh_or_refuse(tmp_path: Path) -> None:
    options = {"rewards": {"format": {}}}
    run(tmp_path, ctx=attempt(tmp_path, "aaaaaaaa"), **options)
    hotter = {"sampling": {"n": 2, "max_tokens": 64, "temperature": 0.5}, **options}
    with pytest.raises(UserError, match=r"24 samples in .*sampling\.temperature 1\.0 → 0\.5"):
        run(tmp_path, ctx=attempt(tmp_path, "bbbbbbbb"), on_changed="refuse", **hotter)
    ctx, _ = run(tmp_path, ctx=attempt(tmp_path, "bbbbbbbb"), **hotter)
    assert ctx.facts["samples_made"] == 24 and ctx.counts["samples/left_alone"] == 24
    (tmp_path / "run/sampling/bbbbbbbb/manifest.json").write_text("{}")
    ctx, _ = run(tmp_path, ctx=attempt(tmp_path, "cccccccc"), on_changed="refuse", **options, per_prompt=2)
    assert ctx.facts["samples_made"] == 0, "only the filters have changed: nothing is refused, nothing made again"
    for name in ("aaaaaaaa", "cccccccc"):
        (tmp_path / f"run/sampling/{name}/manifest.json").write_text("{}")
    warm = {"sampling": {"n": 2, "max_tokens": 64, "temperature": 0.7}, **options}
    run(tmp_path, ctx=attempt(tmp_path, "dddddddd"), on_changed="refuse", **warm)  # finished ones are no loss


def test_general_prompts_are_answered_by_the_policy(tmp_path: Path) -> None:
    source = tmp_path / "general.jsonl"
    asked = ["Hello!", "How do I boil an egg?", "Thanks!", "How do I boil an egg?"]
    source.write_text("".join(json.dumps({"prompt": q, "kind": "general"}) + "\n" for q in asked))
    reply = Tags().wrap("They ask for help with something.", "Boil water first.")
    ctx, metrics = run(
        tmp_path, replies=[reply], regenerate={"data": [{"source": str(source)}], "n": 3}, sampling={"n": 2},
    )  # fmt: skip
    made = {r["messages"][0]["content"]: r["messages"][-1]["content"] for r in steps.rows(ctx)}
    assert made["How do I boil an egg?"] == reply
    assert made["Hello!"] == made["Thanks!"] == "<answer>Boil water first.</answer>"
    assert ctx.counts["prompts/trivial"] == 2 and ctx.counts["prompts/duplicate"] == 1
    assert metrics["kept_rows"] == 3 and ctx.counts["samples/sampled"] == 24 + 9
    assert "3 regenerated" in (ctx.outputs["samples"] / "README.md").read_text()


def test_the_mix_is_kept(tmp_path: Path) -> None:
    general = {"source": "generated:general", "rows": 24, "kind": "general"}
    options = {"rewards": {"format": {}}, "per_prompt": 2, "replies": [steps.right(i, f"as {i}") for i in range(99)]}
    ctx, metrics = run(tmp_path, general=[general], mix={"number": 0.75, "general": 0.25}, **options)
    kinds = [r["kind"] for r in steps.rows(ctx)]
    assert kinds.count("number") == metrics["kept_rows"] > 15
    assert kinds.count("general") == metrics["general"] == kinds.count("number") // 3
    assert ctx.counts["general/dropped/over_mix"] == 24 - metrics["general"]
    assert sum(dropped(ctx).values()) + metrics["kept_rows"] == 24


def test_the_right_language_by_a_rewriter(tmp_path: Path) -> None:
    """Right samples that mix languages are rewritten, judged again, and only the good ones kept."""
    good, half = "First we add the two numbers and we have it.", "Still 不是 one 语言 at all 啊."
    rewriter = {"engine": {"kind": "scripted", "options": {"replies": [f"<think>hm</think>\n```\n{good}\n```", half]}}}
    other = MIXED.replace("First", "Now")
    ctx, metrics = run(tmp_path, replies=[MIXED, other, "no idea"], rewriter=rewriter, sampling={"n": 24})
    assert (ctx.counts["rewrites/asked"], ctx.counts["rewrites/kept"]) == (2, 1)
    assert ctx.counts["rewrites/dropped/language"] == 1
    (row,) = steps.rows(ctx)
    assert row["messages"][-1]["content"] == f"<think>\n{good}\n</think>\n<answer>3</answer>"
    (sample,) = [s for s in steps.samples(ctx) if s["reason"] is None]
    assert sample["rewritten_from"] in (MIXED, other) and sample["verdicts"]["language"]["score"] == 1.0
    assert metrics["kept_rows"] == 1 and ctx.facts["rewriter/engine"] == "scripted"


def test_reviews_are_applied(tmp_path: Path) -> None:
    ctx, _ = run(tmp_path, replies=[steps.right(3), steps.right(4), MIXED], sampling={"n": 8}, per_prompt=2)
    rows = steps.rows(ctx)
    kept = [r["id"] for r in rows]
    wrong = next(s["id"] for s in steps.samples(ctx) if s["reason"] == "accuracy")
    said = [
        {"id": kept[0], "action": "reject"}, {"id": kept[1], "action": "edit", "text": steps.right(4, "Three, four.")},
        {"id": wrong, "action": "accept"}, {"id": "f" * 16, "action": "reject"},
        {"id": kept[0], "action": "accept"}, {"id": kept[0], "action": "reject"},
    ]  # fmt: skip
    log = tmp_path / "reviews.jsonl"
    log.write_text("".join(json.dumps(d) + "\n" for d in said) + '{"id": "torn')
    ctx, _ = run(tmp_path, replies=[steps.right(3), steps.right(4), MIXED], sampling={"n": 8}, per_prompt=2,
                 reviews={"source": str(log)})  # fmt: skip
    made = {r["id"]: r for r in steps.rows(ctx)}
    assert kept[0] not in made and wrong in made and kept[1] not in made
    assert steps.right(4, "Three, four.") in [r["messages"][-1]["content"] for r in made.values()]
    assert ctx.facts["samples_made"] == 0
    assert {n: v for n, v in ctx.counts.items() if n.startswith("review/")} == {
        "review/accept": 1, "review/edit": 1, "review/reject": 1, "review/without_sample": 1,
    }  # fmt: skip
    assert dropped(ctx)["rejected"] >= 1  # and those that say the same


@pytest.mark.parametrize("line", ['{"id": "a"}', '{"id": "a", "action": "edit"}', '{"action": "accept"}'])
def test_reviews_that_are_none(tmp_path: Path, line: str) -> None:
    (tmp_path / "r.jsonl").write_text(line + "\n")
    with pytest.raises(UserError, match="line 1 is no decision"):
        reviews.read(tmp_path / "r.jsonl")


def test_progress_says_prompts_kept_and_speed(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = []
    run(tmp_path, ctx=steps.context(tmp_path, emit=events.append), rewards={"format": {}})
    shown = [e for e in events if e["event"] == "progress"]
    assert (shown[0]["step"], shown[0]["total"]) == (0, 12)
    assert shown[-1]["step"] == 12 and shown[-1]["metrics"]["kept"] == 1.0
    assert shown[-1]["metrics"]["tokens_per_s"] > 0
    assert [e["name"] for e in events if e["event"] == "phase"] == ["data", "loading", "sampling", "writing"]


def test_a_fault_of_a_verifier_is_raised_where_people_see_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from r1pipe.rewards import Composer

    def broken(self: Any, texts: Any, rows: Any, progress: Any = None) -> Any:
        raise UserError("the judge refuses")

    monkeypatch.setattr(Composer, "score_whole", broken)
    with pytest.raises(UserError, match="the judge refuses"):
        run(tmp_path)


def test_a_verifier_that_failed_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that was down: the step fails, is run again, and makes no sample anew."""
    from r1pipe.rewards import Composer, Verdict

    real = Composer.verdicts

    def down(self: Any, name: str, texts: list[str], rows: Any) -> Any:
        return (
            [Verdict(None, "error", "not reached")] * len(texts) if name == "format" else real(self, name, texts, rows)
        )

    options = {"rewards": {"format": {}}}
    monkeypatch.setattr(Composer, "verdicts", down)
    with pytest.raises(UserError, match="0 kept of 24 samples: 24 format_error"):
        run(tmp_path, **options)
    monkeypatch.setattr(Composer, "verdicts", real)
    ctx, metrics = run(tmp_path, **options)
    assert ctx.facts["samples_made"] == 0 and metrics["kept_rows"] == 12
    assert not any("error" in name for name in ctx.counts)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"data": []}, "there are no prompts"),
        ({"num_processes": 2}, "one process"),
        ({"mix": {"number": 0.7, "general": 0.7}}, "add up to 1"),
        ({"rewards": {"helpful": {}}}, "is a reward model"),
        ({"filters": {"minimum": {"acuracy": 1.0}}}, "there is no such reward"),
        ({"rewards": {"accuracy": {}, "judge": {"options": {"url": "http://x", "model": "m"}}}}, "which score passes"),
        ({"rewards": {"accuracy": {"weight": 0.0}}, "filters": {"minimum": {}}}, "none of them says"),
        ({"rewriter": {"engine": {"kind": "vllm"}}}, "a local engine needs one"),
        ({"rewriter": {"engine": {"kind": "server"}, "prompt": "hm"}}, "is not in it"),
    ],
)
def test_faults_show_at_load(settings: dict, said: str) -> None:
    with pytest.raises(ValidationError) as error:
        steps.config(**{"data": [{"source": "x"}], **settings})
    assert said in str(error.value)


@pytest.fixture
def policy(tmp_path: Path) -> Iterator[Path]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)  # threads that wait for each other on a busy machine cost more than they give
    yield make_policy(tmp_path / "policy")
    torch.set_num_threads(before)


def test_a_batch_that_lacks_a_sample_is_made_whole(policy: Path, tmp_path: Path) -> None:
    """The real sampler, killed inside a shard: the rest sees the neighbours that it had, so texts are the same."""

    def config() -> rejection_sampling.Config:
        made = steps.config(
            data=[{"source": "generated:arithmetic", "rows": 24}], rewards={"language": {}}, shard_size=10,
            filters={"minimum": {"language": 0.0}, "truncated": True, "repetition": 1.0, "garbled": True},
            sampling={"n": 2, "max_tokens": 16},
        )  # fmt: skip
        return made.model_copy(update={"engine": type(made.engine)(kind="transformers", batch_size=8)})

    def context(folder: Path) -> Any:
        ctx = steps.context(folder)
        ctx.inputs["model"] = Input(POLICY, policy, "d" * 16, "reasoning-grpo")
        return ctx

    whole = context(tmp_path / "whole")
    assert rejection_sampling.check(whole, config())["shards"] == 3
    rejection_sampling.run(whole, config())
    rejection_sampling.run(context(tmp_path / "again"), config())
    folder = next((tmp_path / "again/work/samples").iterdir())
    for number, left in ((1, 5), (2, 0)):
        log = folder / f"shard-{number:05d}.texts.jsonl"
        log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:left]) + b'{"key": "to')
    again = context(tmp_path / "again")
    rejection_sampling.run(again, config())
    assert (again.facts["samples_reused"], again.facts["samples_made"]) == (25, 23)
    assert steps.digest(again) == steps.digest(whole)
