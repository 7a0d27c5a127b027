"""Text as a page may show it: what acts without being seen is made visible. Escaping itself is jinja2's and ours
in `svg`; no string of a run reaches a page without it."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

# Controls that HTML forbids or hides; marks that reorder or hide what a reader sees; lone surrogates (no UTF-8).
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
LONGEST = 2000  # characters of a model's text that a page shows


def visible(text: str) -> str:
    """`text` with every character that acts unseen written out: ␛ for ESC, ⟦U+202E⟧ for a right-to-left override."""
    return _UNSEEN.sub(_name, text.replace("\r\n", "\n"))


def _name(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(0x2400 + code) if code < 0x20 else f"⟦U+{code:04X}⟧"


def safe(value: object) -> Markup:
    """Anything as escaped text; Markup of ours stays as it is."""
    return value if isinstance(value, Markup) else escape(visible(str(value)))


def cut(text: str, most: int = LONGEST) -> tuple[str, int]:
    """The first `most` characters, and how many were left out."""
    return (text, 0) if len(text) <= most else (text[:most], len(text) - most)
