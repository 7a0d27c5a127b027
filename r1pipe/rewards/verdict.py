"""What a verifier says about one completion."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from r1pipe.chat import Tags

Row = dict[str, Any]
Status = Literal["scored", "unverifiable", "timeout", "error"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """`score` is None only for what is our fault (bad gold, crashed worker, exception in a verifier); what is the
    completion's fault (no answer, not parsable, a limit reached while it is checked) scores 0.0 with its status,
    or a policy would learn to hide behind it. A scored verdict with a `detail` says what the user must know."""

    score: float | None
    status: Status
    detail: str = ""


class Verifier(Protocol):
    """Scores a batch: one verdict per completion, in order. `rows[i]` is the prompt row of `completions[i]`."""

    def __call__(self, completions: list[str], rows: list[Row]) -> list[Verdict]: ...


@dataclass(frozen=True)
class Context:
    """What every verifier is built with: the tags that the prompt asks for, and whether the generation prompt
    already opened the thinking (the opening tag is then put back before scoring)."""

    tags: Tags = field(default_factory=lambda: Tags())
    prefilled: bool = False

    def whole(self, completion: str) -> str:
        """The completion with the prefilled opening tag in front again."""
        return self.tags.think_open + completion if self.prefilled else completion


NO_THINKING_END = Verdict(0.0, "unverifiable", "the thinking was not closed")
