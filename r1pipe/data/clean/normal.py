r"""One spelling for what is the same question: the tokens of a text, for exact and near duplicates and n-grams.

Case, spacing, sentence punctuation, maths delimiters, quotes and dashes of any form do not count. Numbers, operators
and brackets do, and no two numbers are ever run together: `1 2`, `12`, `x²` and `x2` stay apart.
"""

from __future__ import annotations

import re
import unicodedata

# Characters that are a word each.
HAN = "\u3005\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0e7f\U00020000-\U0003ffff"
_HAN = re.compile(f"[{HAN}]")
_TOKEN = re.compile(
    rf"\d+(?:[.,:]\d+)*|\\[A-Za-z]+|[{HAN}]|[^\W\d_{HAN}]+(?:'[^\W\d_{HAN}]+)*|[^\w\s.,;?\"、。，；？：“”‘’「」『』（）【】…·]|_"
)
_DIGITS = re.compile(r"\d+")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff]")
_TRANSLATE = str.maketrans(
    {
        **dict.fromkeys("\u2212\u2010\u2011\u2012\u2013\u2014\ufe63\uff0d", "-"),
        **dict.fromkeys("\u2018\u2019\u02bc\u2032", "'"),
        **dict.fromkeys("×·⋅∙", "*"),
        "÷": "/", "∕": "/", "≤": " \\le ", "≥": " \\ge ", "≠": " \\ne ", "π": " \\pi ", "√": " \\sqrt ",
    }
)  # fmt: skip
_TEXT = re.compile(r"\\(?:text|mathrm|textbf|mathbf|textit)\s*\{([^{}]*)\}")
_COMMAND = re.compile(r"\\(?:[A-Za-z]+|[^A-Za-z])")
_SPACING = ("left", "right", "displaystyle", "textstyle", "quad", "qquad", "big", "Big", "bigl", "bigr", "limits")
_COMMANDS = {
    **dict.fromkeys(_SPACING, " "),
    **dict.fromkeys(("dfrac", "tfrac", "cfrac"), r"\frac"),
    **dict.fromkeys(("leq", "leqslant"), r"\le"),
    **dict.fromkeys(("geq", "geqslant"), r"\ge"),
    "neq": r"\ne",
    "times": "*",
    "cdot": "*",
    "div": "/",
    **{mark: mark for mark in "{}%$|"},
}
_SINGLE = re.compile(r"\{\s*(\d+|[A-Za-z]|\\[A-Za-z]+)\s*\}")


def fold(text: str) -> str:
    """Lower case, one form of every character; raised and circled numbers keep what they are."""
    if not text.isascii():
        text = _INVISIBLE.sub("", text)
        raised = {c for c in set(text) if unicodedata.category(c) == "No"}
        if raised:
            text = "".join(f" {c} " if c in raised else unicodedata.normalize("NFKC", c) for c in text)
        text = unicodedata.normalize("NFC" if raised else "NFKC", text)
        text = text.translate(_TRANSLATE)
    if "$" in text:
        text = text.replace("$", " ")
    if "\\" in text:
        text = _COMMAND.sub(_command, _TEXT.sub(r" \1 ", text))
    if "{" in text:
        text = _SINGLE.sub(r" \1 ", text)
    return text.casefold()


def _command(match: re.Match[str]) -> str:
    """One name for a command; spacing and delimiters (`\\,`, `\\[`) are nothing."""
    name = match[0][1:]
    return _COMMANDS.get(name, match[0] if name.isalpha() else " ")


def tokens(text: str) -> list[str]:
    """Words, numbers, operators, LaTeX commands; Han, kana and Thai by the character."""
    found = _TOKEN.findall(fold(text))
    if "!" in found:
        return [t for i, t in enumerate(found) if t != "!" or _factorial(found, i)]
    return found


def digits(text: str) -> str:
    """The digits of a text alone: texts with the same tokens have the same, and it is ten times as fast to find."""
    return "".join(_DIGITS.findall(text if text.isascii() else fold(text)))


def _factorial(found: list[str], index: int) -> bool:
    """`5!`, `n!`, `)!`; the mark of an exclamation is none."""
    before = found[index - 1] if index else ""
    return before[:1].isdigit() or (len(before) == 1 and (before.isalpha() or before in ")]}!"))


def is_word(token: str) -> bool:
    """Letters, and not one ASCII letter alone, which is a variable."""
    return token[0].isalpha() and (len(token) > 1 or not token.isascii())


def is_han(token: str) -> bool:
    """A Chinese, Japanese or Thai character, which stands for half a word."""
    return len(token) == 1 and not token.isascii() and bool(_HAN.match(token))
