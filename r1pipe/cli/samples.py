"""`r1pipe samples RUN`: the samples of a rejection-sampling step, kept and dropped, with their verdicts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from r1pipe.cli import options as o
from r1pipe.cli import runs, terminal
from r1pipe.errors import UserError, nearest

if TYPE_CHECKING:
    from rich.console import Console

    from r1pipe.chat import Tags
    from r1pipe.sampling.browse import Sampled

TEXT = 2000  # characters of a sample in the list; the review shows all
Row = dict[str, Any]


def samples(
    run: Annotated[str, typer.Argument(help="Name or path of a run.")],
    step: Annotated[str | None, typer.Option("--step", help="Which step, where several hold samples.")] = None,
    kept: Annotated[bool, typer.Option("--kept", help="Only those that became rows.")] = False,
    dropped: Annotated[bool, typer.Option("--dropped", help="Only those that did not.")] = False,
    reason: Annotated[
        str | None, typer.Option("--reason", help="Only those dropped for this reason (accuracy, truncated, ...).")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="Most samples shown; 0 is all.")] = 10,
    review: Annotated[
        bool, typer.Option("--review", help="Accept, edit ($EDITOR) or reject them one by one; goes on where it was.")
    ] = False,
    runs_dir: o.RunsDir = Path("runs"),
    json: o.Json = False,
    debug: o.Debug = False,
) -> int:
    """Browse kept and dropped samples with their verdicts; --review decides about them."""
    if kept and (dropped or reason):
        raise UserError("--kept goes with neither --dropped nor --reason")
    if review and json:
        raise UserError("--review asks a person, so it has no --json")
    from r1pipe.sampling import browse

    store = runs.open_run(run, runs_dir)
    found = browse.find(store, step)
    if reason is not None and not found.counts[reason]:
        known = [name for name in found.counts if name]
        raise UserError(
            f'no sample was dropped for "{reason}"{nearest(reason, known)}',
            hint=f"reasons: {', '.join(known) or 'none'}",
        )
    chosen = (
        (prompt, sample)
        for prompt, sample in found.samples()
        if (reason is None or sample["reason"] == reason)
        and not (kept and sample["reason"])
        and not (dropped and not sample["reason"])
    )
    if review:
        from r1pipe.cli import review as reviewing

        only = chosen if kept or dropped or reason else ((p, s) for p, s in chosen if not s["reason"])
        return reviewing.review(terminal.console(), store, found, only)
    shown = chosen if limit == 0 else islice(chosen, limit)
    if json:
        _print_json(store.run, found, shown)
    else:
        _show(terminal.console(), found, shown, limit, _matching(found, kept, dropped, reason))
    return 0


def _matching(found: Sampled, kept: bool, dropped: bool, reason: str | None) -> int:
    if reason is not None:
        return found.counts[reason]
    every = found.counts.total()
    return found.counts[""] if kept else every - found.counts[""] if dropped else every


def _print_json(run: str, found: Sampled, shown: Iterator[tuple[Row, Row]]) -> None:
    import json as js

    value = {
        "run": run, "step": found.step, "folder": str(found.attempt.path), "finished": found.finished,
        "sampled": found.counts.total(), "kept": found.counts[""],
        "dropped": {name: n for name, n in sorted(found.counts.items()) if name},
        "samples": [{**sample, "prompt": _prompt(prompt)} for prompt, sample in shown],
    }  # fmt: skip
    sys.stdout.write(js.dumps(value, indent=2) + "\n")  # ASCII: nothing in it acts on a terminal


def _prompt(row: Row) -> Row:
    names = ("id", "messages", "gold", "kind", "language", "level", "pass_rate")
    return {name: row[name] for name in names if name in row}


def _show(out: Console, found: Sampled, shown: Iterator[tuple[Row, Row]], limit: int, matching: int) -> None:
    header(out, found)
    tags = tags_of(found)
    for prompt, sample in shown:
        out.print()
        sample_lines(out, prompt, sample, tags, most=TEXT)
    if limit and matching > limit:
        out.print(f"\n[dim]{limit} of {matching}; --limit 0 shows all, --reason, --kept and --dropped choose[/]")


def header(out: Console, found: Sampled) -> None:
    """Which samples these are, and what was dropped for which reason."""
    state = "" if found.finished else ", not finished: the cap and the mix come later"
    where = f"{found.step}/{found.attempt.path.name}"
    total, kept = found.counts.total(), found.counts[""]
    share = f" ({kept / total:.1%})" if total else ""
    out.print(f"[bold]{terminal.safe(where)}[/]{state}: {total} samples, {kept} kept{share}", soft_wrap=True)
    dropped = ", ".join(f"{n} {name}" for name, n in found.counts.most_common() if name)
    if dropped:
        out.print(f"[dim]dropped: {terminal.safe(dropped)}[/]", soft_wrap=True)


def tags_of(found: Sampled) -> Tags:
    from r1pipe.chat import ChatConfig

    return ChatConfig.model_validate(found.config.get("chat") or {}).tags


def sample_lines(out: Console, prompt: Row, sample: Row, tags: Tags, *, most: int | None = None) -> None:
    """One sample: what became of it, its verdicts, the question, the thinking (dim) and the answer (bold)."""
    reason = sample["reason"]
    state = "[green]kept[/]" if not reason else f"[red]{terminal.safe(reason)}[/]"
    about = [str(prompt[name]) for name in ("kind", "language") if prompt.get(name)]
    about += [f"level {prompt['level']}"] if prompt.get("level") is not None else []
    about += [f"sample {sample['index']}", f"{sample['tokens']} tokens", sample["finish"], sample["id"]]
    about += [f"pass rate {prompt['pass_rate']:.0%}"] if prompt.get("pass_rate") is not None else []
    out.print(f"{state}  [dim]{terminal.safe(', '.join(about))}[/]", soft_wrap=True)
    if said := ", ".join(verdict(name, v) for name, v in sample["verdicts"].items()):
        out.print(f"[dim]{terminal.safe(said)}[/]", soft_wrap=True)
    for name, text in (("review", sample.get("review")), ("why", sample.get("why")), ("gold", prompt.get("gold"))):
        if text:
            out.print(f"[dim]{name}: {terminal.safe(str(text))}[/]", soft_wrap=True)
    asked = next((m["content"] for m in reversed(prompt["messages"]) if m["role"] == "user"), "")
    out.print(terminal.safe(_cut(asked, most)), soft_wrap=True)
    completion(out, sample.get("edited") or sample["text"], tags, most=most)


def completion(out: Console, text: str, tags: Tags, *, most: int | None = None) -> None:
    """The text as it is, its thinking dimmed."""
    head, closed, tail = _cut(text, most).rpartition(tags.think_close)
    if closed:
        out.print(f"[dim]{terminal.safe(head + closed)}[/]", soft_wrap=True, end="")
    out.print(f"[bold]{terminal.safe(tail)}[/]", soft_wrap=True)


def verdict(name: str, found: Row) -> str:
    """accuracy 0 (why)."""
    score, detail = found["score"], found.get("detail")
    said = found["status"] if score is None else f"{score:.4g}"
    return f"{name} {said}" + (f" ({detail[:120]})" if detail else "")


def _cut(text: str, most: int | None) -> str:
    if most is None or len(text) <= most:
        return text
    return f"{text[: most // 2]}\n… {len(text) - most} characters …\n{text[len(text) - most // 2 :]}"
