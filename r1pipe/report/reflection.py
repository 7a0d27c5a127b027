"""Words of a model that looks back at its own work: wait, hmm, let me check, 等等, 检查 …

A count of words, not of thoughts: a model can write "wait" and change nothing. The paper shows the rise of such words
as its "aha moment" (v2, figure on reflective words).
"""

from __future__ import annotations

import re
from collections import Counter

_CHECK = r"(?:check|verify|see|think|reconsider|recheck|re-check|double[- ]check|re-?examine|re-?evaluate|try again)"
_WORDS = {
    "wait": r"\bwait\b",
    "hmm": r"\bhmm+\b",
    "let me check": rf"\blet(?: me|['’]s| us) (?:just |now |quickly )?{_CHECK}\b",
    "double-check": r"\bdouble[- ]check(?:ing)?\b",
    "actually": r"\bactually\b",
    "alternatively": r"\balternatively\b",
    "on second thought": r"\bon second thoughts?\b",
    "mistake": r"\bmistakes?\b",
    "等等": r"等等|等一下|且慢",
    "不对": r"不对|不是这样|算错|弄错",
    "检查": r"检查|验算|验证|核对",
    "重新": r"重新(?:算|想|考虑|看|计算|检查)|再(?:算|想|看|检查)一(?:遍|下)|再想想",
}
_PATTERN = re.compile("|".join(f"(?P<w{i}>{p})" for i, p in enumerate(_WORDS.values())), re.IGNORECASE)
_NAMES = list(_WORDS)


def count(text: str) -> Counter[str]:
    """How often each word stands in a text; words that overlap count once."""
    return Counter(_NAMES[int(str(m.lastgroup)[1:])] for m in _PATTERN.finditer(text))
