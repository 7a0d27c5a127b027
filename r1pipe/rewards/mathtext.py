r"""One spelling for what looks the same: Unicode and fullwidth characters become ASCII and LaTeX. No sympy here."""

from __future__ import annotations

import re
import unicodedata

_SYMBOLS = {
    "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ", "∙": r"\cdot ", "∗": "*", "✕": r"\times ", "÷": r"\div ",
    "π": r"\pi ", "∞": r"\infty ", "≤": r"\le ", "⩽": r"\le ", "≦": r"\le ", "≥": r"\ge ", "⩾": r"\ge ",
    "≧": r"\ge ", "≠": r"\ne ", "≈": r"\approx ", "≡": r"\equiv ", "∪": r"\cup ", "∩": r"\cap ", "∖": r"\setminus ",
    "±": r"\pm ", "∓": r"\mp ", "∅": r"\emptyset ", "⌀": r"\emptyset ", "Ø": r"\emptyset ", "∈": r"\in ",
    "ℝ": r"\mathbb{R}", "ℤ": r"\mathbb{Z}", "ℕ": r"\mathbb{N}", "ℚ": r"\mathbb{Q}", "ℂ": r"\mathbb{C}",
    "⟨": r"\langle ", "⟩": r"\rangle ", "〈": r"\langle ", "〉": r"\rangle ", "⌊": r"\lfloor ", "⌋": r"\rfloor ",
    "⌈": r"\lceil ", "⌉": r"\rceil ", "∠": r"\angle ", "∴": "", "△": r"\triangle ", "º": "°", "˚": "°", "℃": "°C",
    "℉": "°F", "′": "'", "’": "'", "‘": "'", "“": '"', "”": '"', "…": r"\ldots ", "⋯": r"\cdots ", "∣": "|",
    "、": ", ", "。": ".", "【": "[", "】": "]", "「": '"', "」": '"', "∶": ":", "∛": r"\cbrt ", "∜": r"\qdrt ",
    "α": r"\alpha ", "β": r"\beta ", "γ": r"\gamma ", "δ": r"\delta ", "ε": r"\epsilon ", "θ": r"\theta ",
    "λ": r"\lambda ", "μ": r"\mu ", "µ": r"\mu ", "ρ": r"\rho ", "σ": r"\sigma ", "τ": r"\tau ",
    "φ": r"\phi ", "ϕ": r"\phi ", "ω": r"\omega ", "Δ": r"\Delta ", "∆": r"\Delta ", "Ω": r"\Omega ",
    "∑": r"\sum ", "∏": r"\prod ", "∫": r"\int ",
}  # fmt: skip
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2212\ufe63\uff0d"
_SLASHES = "\u2044\u2215\u29f8"
_THIN = "\u2009\u202f\u2007\u2006\u2008\u200a"  # spaces that group digits
_INVISIBLE = "\u200b\u200c\u200d\u2060\u2061\u2062\u2063\u2064\ufeff\u00ad\u200e\u200f\u202a\u202b\u202c\u202d\u202e"
_TABLE: dict[int, str | None] = {
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},
    **{ord(c): text for c, text in _SYMBOLS.items()},
    **dict.fromkeys(map(ord, _DASHES), "-"),
    **dict.fromkeys(map(ord, _SLASHES), "/"),
    **dict.fromkeys(map(ord, _THIN), r"\,"),
    **dict.fromkeys(map(ord, _INVISIBLE), None),
    0xA0: " ", 0x3000: " ",
}  # fmt: skip
_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿⁱˣ"
_LOWERED = "₀₁₂₃₄₅₆₇₈₉₊₋₍₎ₙᵢₓ"
_PLAIN = "0123456789+-()nix"
_RAISE, _LOWER = str.maketrans(_RAISED, _PLAIN), str.maketrans(_LOWERED, _PLAIN)


def spell(text: str) -> str:
    r"""`½`, `x²`, `√2`, `≤`, `４２` as `\frac{1}{2}`, `x^{2}`, `\sqrt{2}`, `\le`, `42`; no invisible characters."""
    if text.isascii():
        return text
    text = re.sub(
        f"(?<![{_RAISED}])([{_RAISED[:10]}]{{1,9}})[{_SLASHES}/]([{_LOWERED[:10]}]{{1,9}})",
        lambda m: rf"\frac{{{m[1].translate(_RAISE)}}}{{{m[2].translate(_LOWER)}}}",
        text,
    )
    text = re.sub(f"[{_RAISED}]+", lambda m: "^{" + m[0].translate(_RAISE) + "}", text)
    text = re.sub(f"[{_LOWERED}]+", lambda m: "_{" + m[0].translate(_LOWER) + "}", text)
    text = re.sub(r"√\s*(\d+(?:\.\d+)?|[A-Za-zπ](?![A-Za-z]))", r"\\sqrt{\1}", text).replace("√", r"\sqrt ")
    text = text.translate(_TABLE)
    return text if text.isascii() else "".join(map(_ascii, text))


def _ascii(char: str) -> str:
    """Compatibility characters (mathematical letters, vulgar fractions) as what they stand for."""
    if char.isascii() or "\u3040" <= char <= "\u9fff":
        return char
    plain = unicodedata.normalize("NFKC", char)
    if unicodedata.category(char) == "No" and (match := re.fullmatch(r"(\d+)[\u2044/](\d+)", plain)):
        return rf"\frac{{{match[1]}}}{{{match[2]}}}"
    if unicodedata.category(char) == "Nd":
        return str(unicodedata.digit(char))
    return plain


def latex(text: str) -> str:
    """What the parser of math-verify would read wrongly: `\\mathrm{e}`, words for "or", a trailing full stop."""
    text = spell(text).strip().rstrip(".")
    text = re.sub(r"\\(?:mathrm|text|operatorname)\s*\{\s*([ei])\s*\}", r"\1", text)
    return re.sub(r"\\(?:text|mathrm)\s*\{\s*(?:and|or)\s*\}|\s+(?:and|or)\s+", ", ", text)
