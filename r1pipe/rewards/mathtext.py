r"""Text of an answer before computer algebra reads it: one spelling where the parser knows only one. No sympy here."""

from __future__ import annotations

import re

_SYMBOLS = {
    "×": r"\times ", "·": r"\cdot ", "÷": r"\div ", "π": r"\pi ", "∞": r"\infty ", "≤": r"\leq ", "≥": r"\geq ",
    "≠": r"\neq ", "∪": r"\cup ", "∩": r"\cap ", "±": r"\pm ", "∅": r"\emptyset ", "θ": r"\theta ", "∈": r"\in ",
    "−": "-", "–": "-", "⁄": "/", "，": ", ", "（": "(", "）": ")", "＝": "=",
}  # fmt: skip
_TABLE = {ord(k): v for k, v in _SYMBOLS.items()} | {code: chr(code - 0xFEE0) for code in range(0xFF10, 0xFF1A)}
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_DOTS = re.compile(r"\\[lcd]?dots(?:[bcmo])?(?![A-Za-z])|…|\.\.\.")


def spell(text: str) -> str:
    """LaTeX that the parser reads as it was meant."""
    text = text.strip().rstrip(".。").translate(_TABLE)
    text = re.sub(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+", lambda m: "^{" + m[0].translate(_SUPERSCRIPTS) + "}", text)
    text = re.sub(r"√\s*(\d+|[A-Za-z]|\([^()]*\))", r"\\sqrt{\1}", text)
    text = re.sub(r"\\varnothing(?![A-Za-z])|\\\{\s*\\\}", r"\\emptyset ", text)
    text = re.sub(r"\\(?:mathrm|text|operatorname)\s*\{\s*([ei])\s*\}", r"\1", text)
    text = re.sub(r"\\(?:text|mathrm)\s*\{\s*(?:and|or)\s*\}|\s+(?:and|or)\s+|或|和", ", ", text)
    text = re.sub(r"(\d)e([+-]?\d+)", r"\1 \\times 10^{\2}", text)
    text = re.sub(r",\s*,", ",", text)
    text = re.sub(r"(?<![\\\d])\b(\d+)\s+(\d+)/(\d+)\b", r"\1\\frac{\2}{\3}", text)
    return text


def elided(text: str) -> bool:
    """Does the text leave items out (`1, 2, ..., n`)?"""
    return bool(_DOTS.search(text))


def items(text: str) -> list[str]:
    """A list split at its commas."""
    return [re.sub(r"\s+", " ", item).strip() for item in text.strip(" {}\\").split(",")]


def degrees(text: str) -> str:
    """`30^\\circ` -> `30°`."""
    return re.sub(r"\s*\^\s*\{?\s*\\circ\s*\}?|\\degree\b", "°", text)


def radians(text: str) -> str:
    """`45^\\circ` -> `\\frac{45 \\pi}{180}`; "" where it is no number of degrees."""
    match = re.fullmatch(r"\s*(-?\d+(?:\.\d+)?)°\s*", degrees(text))
    return rf"\frac{{{match[1]} \pi}}{{180}}" if match else ""
