r"""An answer without what does not matter: `\dfrac{1}{2}` is `\frac{1}{2}`, `\text{yes}.` is `yes`, `$5$` is `5`."""

from __future__ import annotations

import re

from r1pipe.rewards import mathtext
from r1pipe.rewards.shortcache import short_cache

_WRAPPED = re.compile(
    r"\\(?:text|textbf|textit|textrm|textup|mathrm|mathbf|mathit|mathsf|mbox|emph|boldsymbol)\s*\{([^{}]*)\}"
)


@short_cache(16_384)
def clean(text: str) -> str:
    r"""One spelling for what looks the same: ASCII digits and signs, `\dfrac` as `\frac`, no `\text`, no spacing
    commands, no maths delimiters, no bold, no trailing full stop."""
    text = undelimit(re.sub(r"\s+", " ", mathtext.spell(text)).strip())
    if text.isdigit():
        return text
    if "**" in text:
        text = re.sub(r"\*\*(?! )(.+?)(?<! )\*\*", r"\1", text)
    if "\\" in text or "{,}" in text:
        text = undelimit(_clean_latex(text))
    text = re.sub(r"\s+", " ", text).strip()
    return text if text.endswith("..") else text.removesuffix(".").strip()


def _clean_latex(text: str) -> str:
    text = re.sub(r"(?<=\d)(?:\\[,!; ]\s?|\{,\}|,\\!)(?=\d{3}(?!\d))", ",", text)
    text = re.sub(
        r"\\(?:left|right|displaystyle|textstyle|limits|bigl?|bigr|Bigl?|Bigr)(?![A-Za-z])|\\[,!;:]", " ", text
    )
    text = re.sub(r"\\q?quad(?![A-Za-z])|\\ |~", " ", text).replace("\\$", "$").replace("\\%", "%")
    text = re.sub(r"\s+", " ", text)  # again: the patterns below are slow on runs of spaces
    if "frac" in text:
        text = re.sub(r"\\[dtc]frac(?![A-Za-z])", r"\\frac", text)
        text = re.sub(r"\\frac ?(\d) ?(\d)(?!\d)", r"\\frac{\1}{\2}", text)
        text = re.sub(r"\\frac ?(\d) ?\{", r"\\frac{\1}{", text)
        text = re.sub(r"\\frac ?\{ ?([^{}]*?) ?\} ?(\d)", r"\\frac{\1}{\2}", text)
        text = re.sub(r"\\frac ?\{ ?([^{}]*?) ?\} ?\{ ?([^{}]*?) ?\}", r"\\frac{\1}{\2}", text)
    for _ in range(3):
        if not _WRAPPED.search(text):
            break
        text = _WRAPPED.sub(_unwrap, text)
    return re.sub(r"\s?\^ ?(?:\{ ?\\circ ?\}|\\circ(?![A-Za-z]))|\\degree(?![A-Za-z])", "°", text)


def _unwrap(match: re.Match[str]) -> str:
    before = match.string[match.start() - 1] if match.start() else ""
    return " " + match[1] if before.isalnum() else match[1]


def undelimit(text: str) -> str:
    r"""Without the `$...$`, `\(...\)` or `\[...\]` around it."""
    for opening, closing in (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"), ("$", "$")):
        inner = text[len(opening) : -len(closing)]
        around = len(text) > len(opening) + len(closing) and text.startswith(opening) and text.endswith(closing)
        plain = inner.replace("\\$", "")
        if around and opening not in plain and closing not in plain:
            return inner.strip()
    return text
