"""`r1pipe samples RUN --review`: a person accepts, edits or rejects samples one by one.

Each decision is a line in <step>/reviews.jsonl, on the disk before the next sample is shown. The sealed dataset stays
as it is; the line printed at the end runs the step again with the decisions as an input.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r1pipe import process
from r1pipe.cli import runs, terminal
from r1pipe.cli import samples as view
from r1pipe.errors import UserError
from r1pipe.sampling import reviews
from r1pipe.sampling.store import Log

if TYPE_CHECKING:
    from rich.console import Console

    from r1pipe.sampling.browse import Sampled
    from r1pipe.store import Store

Row = dict[str, Any]
KEYS = "a accept, e edit, r reject, s skip, u undo the last, q quit"


def review(out: Console, store: Store, found: Sampled, chosen: Iterable[tuple[Row, Row]]) -> int:
    """Asks about every chosen sample that nobody decided about yet."""
    path = store.step_dir(found.step) / reviews.FILE
    with process.run_lock(path.with_suffix(".lock"), f"the review of {found.step}"):
        view.header(out, found)
        Review(out, found, path).ask(chosen)
    decided = reviews.read(path) if path.is_file() else {}
    counts = Counter(d.action for d in decided.values())
    out.print(
        f"\n{counts['accept']} accepted, {counts['edit']} edited, {counts['reject']} rejected in "
        f"{terminal.safe(str(path))}",
        soft_wrap=True,
    )
    if decided:
        out.print("[dim]the dataset with these decisions, and what is made from it (no sample is made again):[/]")
        out.print(f"  {terminal.safe(_command(store, found, path))}", soft_wrap=True)
    return 0


class Review:
    """The loop over the samples, and the log."""

    def __init__(self, out: Console, found: Sampled, path: Path) -> None:
        self.out = out
        self.found = found
        self.log = Log(path)
        self.decided = set(reviews.read(path)) if path.is_file() else set()
        self.tags = view.tags_of(found)
        self.rules: Any = None

    def ask(self, chosen: Iterable[tuple[Row, Row]]) -> None:
        """One after the other; `undo` goes back to the one before."""
        waiting = self._undecided(chosen)
        shown: list[tuple[Row, Row]] = []
        at = 0
        try:
            while True:
                if at == len(shown):
                    if (following := next(waiting, None)) is None:
                        self.out.print("nothing is left to review" if shown else "nothing here to review")
                        return
                    shown.append(following)
                if (move := self._one(at, shown)) is None:
                    return
                at += move
        finally:
            self.log.close()

    def _undecided(self, chosen: Iterable[tuple[Row, Row]]) -> Iterator[tuple[Row, Row]]:
        """Equal samples of a prompt are one to a reader."""
        seen = set(self.decided)
        for prompt, sample in chosen:
            if sample["id"] not in seen:
                seen.add(sample["id"])
                yield prompt, sample

    def _one(self, at: int, shown: list[tuple[Row, Row]]) -> int | None:
        """Shows one and takes a decision; where to go from it, None to leave."""
        prompt, sample = shown[at]
        self.out.print(f"\n[bold]{at + 1}[/]  [dim]{KEYS}[/]", soft_wrap=True)
        view.sample_lines(self.out, prompt, sample, self.tags)
        while True:
            key = _key()
            if key == "q":
                return None
            if key == "s":
                return 1
            if key == "u" and at == 0:
                self.out.print("[dim]nothing to undo here[/]")
            elif key == "u":
                self._write(shown[at - 1][1], "undo")
                return -1
            elif key in ("a", "r"):
                self._write(sample, "accept" if key == "a" else "reject")
                return 1
            elif key == "e":
                if (text := self._edit(prompt, sample)) is not None:
                    self._write(sample, "edit", text=text)
                    return 1
                self.out.print("[dim]left as it was[/]")
            else:
                self.out.print(f"[dim]{KEYS}[/]")

    def _write(self, sample: Row, action: str, **more: str) -> None:
        from r1pipe.manifest import now

        row = {"id": sample["id"], "action": action, **more, "attempt": self.found.attempt.path.name, "time": now()}
        self.log.append([row])
        self.log.sync()

    def _edit(self, prompt: Row, sample: Row) -> str | None:
        """The edited completion, judged by the rewards of the step; None where it is given up or unchanged."""
        text = sample["text"]
        while True:
            text = _in_editor(text)
            if not text.strip() or text == sample["text"]:
                return None
            said = self._judge(prompt, sample, text)
            if said is None:
                self.out.print("[green]passes[/]")
                return text
            self.out.print(f"[yellow]does not pass: {terminal.safe(said)}[/]  [dim]e edit again, k keep, d discard[/]")
            key = ""
            while key not in ("e", "k", "d", "q"):
                key = _key()
            if key != "e":
                return text if key == "k" else None

    def _judge(self, prompt: Row, sample: Row, text: str) -> str | None:
        """Why an edited sample would be dropped; None where it passes."""
        from r1pipe.rewards import Composer
        from r1pipe.sampling import filters
        from r1pipe.sampling.collect import Rules
        from r1pipe.sampling.prompts import Prompt
        from r1pipe.settings import RewardPart

        if self.rules is None:
            config = self.found.config
            parts = {name: RewardPart.model_validate(part) for name, part in config["rewards"].items()}
            chosen = filters.Filters.model_validate(config["filters"])
            composer = Composer(parts, tags=self.tags)
            self.rules = Rules(composer, filters.needed(parts, chosen), chosen, self.tags)

        asked = Prompt(prompt, sample["key"], [], 1, 1)
        (verdict,) = self.rules.judge([asked], [{**sample, "text": text, "finish": "stop"}])
        if verdict["reason"] is None:
            return None
        details = ", ".join(view.verdict(name, v) for name, v in verdict["verdicts"].items())
        return f"{verdict['reason']} ({details})"


def _key() -> str:
    """A key from a terminal, the first letter of a line from anything else; "q" at the end of the input."""
    if not sys.stdin.isatty():
        line = sys.stdin.readline()
        return line.strip()[:1].lower() if line else "q"
    import termios
    import tty

    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)
    try:
        tty.setcbreak(file)
        key = os.read(file, 1).decode(errors="replace").lower()
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)
    return key or "q"


def _in_editor(text: str) -> str:
    """The text after the user's editor has been on it."""
    command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    if not command or shutil.which(command[0]) is None:
        raise UserError(
            f"there is no editor {' '.join(command)!r}", hint="export EDITOR=nano (or another), then review again"
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sample.txt"
        path.write_text(text, encoding="utf-8", errors="surrogatepass", newline="\n")
        done = subprocess.run([*command, str(path)], check=False)
        if done.returncode:
            return text  # left with an error (:cq): nothing is taken over
        after = path.read_bytes().decode("utf-8", "replace")
    return after if text.endswith("\n") else after.removesuffix("\n")  # editors end the last line


def _command(store: Store, found: Sampled, path: Path) -> str:
    """The command that makes the dataset anew with the decisions."""
    about = runs.about(store)
    profile = str(about.get("profile") or "PROFILE")
    words = ["r1pipe", "pipeline", str(about.get("pipeline") or "full")]
    words += ["--profile", _profile(profile, about.get("path"))]
    words += ["--run", store.run, "--runs-dir", str(store.runs_dir)]
    mine = f"{found.step}.reviews.source="
    given = [text for text in about.get("overrides", []) if not text.startswith(mine)]
    for override in [*given, f"{mine}{path.resolve()}"]:
        words += ["--set", override]
    return shlex.join(words)


def _profile(name: str, path: str | None) -> str:
    """The name of a shipped profile, the path of any other."""
    from r1pipe import config

    shipped = {p.stem: p for p in config.list_profiles()}
    return name if path is None or (name in shipped and shipped[name].resolve() == Path(path).resolve()) else path
