"""`r1pipe chat RUN`: talk to the model of a step. Thinking is dimmed, the answer plain.

What earlier turns thought is not sent again, as with DeepSeek-R1: only their answers are.
"""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from r1pipe.cli import options as o
from r1pipe.cli import runs, terminal
from r1pipe.errors import UserError, nearest

if TYPE_CHECKING:
    from rich.console import Console

    from r1pipe.chat import ChatConfig
    from r1pipe.generate.base import Sampler
    from r1pipe.store import Store

HELP = "/reset forgets the conversation, /step NAME changes the model, /quit leaves"


def chat(
    run: Annotated[str, typer.Argument(help="Name or path of a run.")],
    step: Annotated[str | None, typer.Option("--step", help="Whose model; without it the last policy.")] = None,
    temperature: Annotated[float, typer.Option("--temperature", "-t", min=0, help="0 is greedy.")] = 0.6,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", min=1, help="Most new tokens a turn; else as in the evaluation.")
    ] = None,
    prompt: Annotated[str | None, typer.Option("--prompt", help="One turn, then leave; for scripts.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the sampling.")] = 0,
    runs_dir: o.RunsDir = Path("runs"),
    json: o.Json = False,
    debug: o.Debug = False,
) -> int:
    """Talk to the model of any step."""
    if json and prompt is None:
        raise UserError("--json answers one turn", hint='add --prompt "12 + 30 = ?"')
    session = Session(runs.open_run(run, runs_dir), temperature, max_tokens, seed)
    out = terminal.console()
    with contextlib.nullcontext() if json else _waiting(out, "loading the model"):
        session.open(step)
    if prompt is not None:
        with contextlib.nullcontext() if json else _waiting(out, "thinking"):
            turn = session.say(prompt)
        if json:
            import json as js

            sys.stdout.write(js.dumps({"run": session.store.run} | turn, ensure_ascii=False) + "\n")
        else:
            _show(out, turn)
        return 0
    return _loop(out, session)


class Session:
    """A conversation with the policy of one step of a run."""

    def __init__(self, store: Store, temperature: float, max_tokens: int | None, seed: int) -> None:
        self.store = store
        self.temperature = temperature
        self.max_tokens = max_tokens
        self.seed = seed
        self.step = ""
        self.history: list[dict[str, str]] = []
        self._sampler: Sampler | None = None
        self._chat: ChatConfig | None = None
        self._limit = 512

    def open(self, step: str | None) -> None:
        """Loads the policy of `step`. Raises UserError where there is none, or where its files were changed."""
        from r1pipe import manifest as mf
        from r1pipe.chat import ChatConfig
        from r1pipe.generate.factory import make
        from r1pipe.settings import EngineConfig
        from r1pipe.stage import POLICY

        policies = {
            name: (attempt, manifest, output)
            for name, (attempt, manifest) in runs.sealed_steps(self.store).items()
            for output, artifact in manifest.outputs.items()
            if artifact.kind == POLICY
        }
        if not policies:
            raise UserError(f"{self.store.root} holds no finished model", hint="r1pipe status")
        name = step or list(policies)[-1]
        if name not in policies:
            raise UserError(f'no finished model of a step "{name}" in {self.store.root}{nearest(name, policies)}')
        attempt, manifest, output = policies[name]
        faults = mf.faults(manifest.outputs[output], attempt.output(output), deep=False)
        if faults:
            raise UserError(f"the model of {name} is not what was sealed: {faults[0]}", hint="r1pipe verify")
        _hush()
        config = ChatConfig.model_validate(manifest.config.get("chat") or {})
        sampler = make(EngineConfig.model_validate({"kind": "transformers"}), attempt.output(output), config)
        self.close()
        self._sampler, self._chat, self.step, self.history = sampler, config, name, []
        self._limit = int((manifest.config.get("evaluation") or {}).get("max_tokens") or 512)

    def say(self, text: str) -> dict[str, Any]:
        """One turn: {step, prompt, text, thinking, answer, tokens, finish, seconds}."""
        from r1pipe.settings import SamplingConfig

        assert self._sampler is not None and self._chat is not None
        began = time.monotonic()
        sampling = SamplingConfig(
            n=1, temperature=self.temperature, top_p=0.95 if self.temperature else 1.0,
            max_tokens=self.max_tokens or self._limit,
        )  # fmt: skip
        text = text.encode("utf-8", "replace").decode()  # bytes that were not UTF-8
        messages = [*self.history, {"role": "user", "content": text}]
        sample = self._sampler.generate([messages], sampling, seed=self.seed + len(self.history))[0][0]
        if sample.finish == "skipped":
            raise UserError(
                "the conversation is longer than the model's context",
                hint="/reset forgets it; or ask something shorter",
            )
        parts = self._chat.tags.split(sample.text)
        thinking, answer = parts.thinking, parts.final.removeprefix(self._chat.tags.answer_open).strip()
        if not parts.closed and sample.text.lstrip().startswith(self._chat.tags.think_open):
            thinking, answer = sample.text.lstrip().removeprefix(self._chat.tags.think_open).strip(), ""
        self.history = [*messages, {"role": "assistant", "content": answer}]
        return {
            "step": self.step, "prompt": text, "text": sample.text, "thinking": thinking, "answer": answer,
            "tokens": sample.tokens, "finish": sample.finish, "seconds": round(time.monotonic() - began, 2),
        }  # fmt: skip

    def close(self) -> None:
        if self._sampler is not None:
            self._sampler.close()


def _hush() -> None:
    """The libraries' chatter and bars are not part of a conversation."""
    import warnings

    import transformers

    warnings.simplefilter("ignore")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def _loop(out: Console, session: Session) -> int:
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  arrow keys and history for input()
    out.print(f"[bold]{terminal.safe(session.store.run)}[/], model of [bold]{terminal.safe(session.step)}[/]. {HELP}.")
    while True:
        try:
            text = input("> ").strip()
        except (EOFError, KeyboardInterrupt):
            out.print()
            return 0
        try:
            if text in ("/quit", "/exit"):
                return 0
            if text == "/reset":
                session.history = []
                out.print("[dim]a new conversation[/]")
            elif text.startswith("/step"):
                with _waiting(out, "loading the model"):
                    session.open(text.removeprefix("/step").strip() or None)
                out.print(f"[dim]model of {terminal.safe(session.step)}, a new conversation[/]")
            elif text.startswith("/"):
                out.print(f"[dim]{HELP}[/]")
            elif text:
                with _waiting(out, "thinking"):
                    turn = session.say(text)
                _show(out, turn)
        except UserError as error:
            out.print(f"[red]{terminal.safe(str(error))}[/]", soft_wrap=True)
        except KeyboardInterrupt:
            out.print("[dim]stopped[/]")


def _waiting(out: Console, what: str) -> Any:
    return out.status(f"[dim]{what}[/]") if out.is_terminal else contextlib.nullcontext()


def _show(out: Console, turn: dict[str, Any]) -> None:
    if turn["thinking"]:
        out.print(f"[dim]{terminal.safe(turn['thinking'])}[/]", soft_wrap=True)
    if turn["answer"]:
        out.print(f"[bold]{terminal.safe(turn['answer'])}[/]", soft_wrap=True)
    cut = ", cut at the limit (--max-tokens)" if turn["finish"] == "length" else ""
    out.print(f"[dim]{turn['tokens']} tokens in {terminal.duration(turn['seconds'])}{cut}[/]")
