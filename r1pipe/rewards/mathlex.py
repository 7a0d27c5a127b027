r"""Tokens of an answer in LaTeX or plain notation: numbers, names, functions, operators, words.

What is no mathematics (a word of four letters or more, an unknown command) raises `Unreadable`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from r1pipe.rewards import mathtext, mathunits, numbers

MAX_TOKENS = 2_000

Kind = Literal["num", "name", "fn", "cmd", "op", "text"]


class Unreadable(Exception):
    """Not in the notation that is read here."""


class TooHard(Exception):
    """In that notation, but larger, deeper or longer than is worth reading."""


@dataclass(frozen=True, slots=True)
class Token:
    """`space`: white space stands before it."""

    kind: Kind
    text: str
    value: Fraction = Fraction(0)
    space: bool = False


FUNCTIONS = frozenset(
    """sin cos tan cot sec csc sinh cosh tanh arcsin arccos arctan arccot asin acos atan ln log lg exp max min gcd lcm
    abs floor ceil Re Im sgn""".split()
)
_OPERATORS = {
    "le": "<=", "leq": "<=", "leqslant": "<=", "leqq": "<=", "ge": ">=", "geq": ">=", "geqslant": ">=", "geqq": ">=",
    "lt": "<", "gt": ">", "ne": "!=", "neq": "!=", "approx": "~", "simeq": "~", "equiv": "==", "cup": "cup",
    "bigcup": "cup", "cap": "cap", "setminus": "\\", "backslash": "\\", "in": "in", "pm": "pm", "mp": "mp",
    "cdot": "*", "times": "*", "ast": "*", "div": "/", "bmod": "mod", "mod": "mod", "land": "and", "wedge": "and",
    "lor": "or", "vee": "or", "lbrace": r"\{", "rbrace": r"\}", "langle": "langle", "rangle": "rangle", "vert": "|",
    "lvert": "|", "rvert": "|", "mid": "|", "colon": ":", "lbrack": "[", "rbrack": "]", "degree": "°", "circ": "circ",
    "to": "->", "rightarrow": "->", "Rightarrow": "=>", "implies": "=>", "iff": "=>", "prime": "'", "%": "%",
    "{": r"\{", "}": r"\}", "|": "norm", "\\": "row", "$": "", "lor_": "or", "pmod": "pmod", "And": "and", "Or": "or",
}  # fmt: skip
_IGNORED = frozenset(
    """left right big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr middle displaystyle textstyle
    scriptstyle limits nolimits rm bf it quad qquad thinspace enspace hfill mathrm mathbf mathit mathsf text boldsymbol
    ,  ; : ! > [ ] ( )""".split()
)
_COMMANDS = frozenset(
    """frac dfrac tfrac cfrac sqrt cbrt qdrt binom dbinom tbinom choose over infty pi sum prod lfloor rfloor lceil rceil
    mathbb emptyset varnothing ldots cdots dots dotsc dotsb vdots ddots vec overline bar hat tilde overrightarrow
    widehat dot angle triangle log_ forall exists""".split()
)
_GREEK = frozenset(
    """alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho varrho sigma tau
    phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega ell hbar""".split()
)
_SAME = {"varepsilon": "epsilon", "vartheta": "theta", "varphi": "phi", "varrho": "rho"}
_ALIASES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "lg": "lg", "arctg": "arctan", "tg": "tan"}
_WORDS = {
    "or": "or", "and": "and", "mod": "mod", "degrees": "°", "degree": "°", "deg": "°", "percent": "%", "或": "or",
    "或者": "or", "和": "and", "与": "and", "及": "and", "且": "and", "度": "°", "cup": "cup", "U": "cup",
}  # fmt: skip
# `abc`, `cxy` are products, `the` is not; nor are longer runs, but for capitals (points) and neighbours (`abcd`)
_FAMILIES = [frozenset(f) for f in ("abcd", "mnpqrst", "uvwxyz", "ijklmn", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")]
_THREE = frozenset(
    """the for all any not but are was has had let one two six ten yes odd set per day men cat dog red can you our its may
    she her his him who why how did get got see say way new now old out off use via box cup car bus egg pen tin bag sum
    end max min mod gcd lcm sin cos tan log exp abs dne inf sun mon tue wed thu fri sat jan feb mar apr jun jul aug sep
    oct nov dec top""".split()
)
_TOKEN = re.compile(
    r"""(?P<space>[\s~]+)
    |(?P<rep>\d*\.\d*\\(?:overline|bar|dot|overset)\s*\{?\d+\}?(?:\d*\\dot\s*\{?\d\}?)?)
    |(?P<num>(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)
    |\\begin\s*\{(?P<begin>[a-z]+\*?)\}(?:\{[lcr|]*\})?
    |\\end\s*\{(?P<end>[a-z]+\*?)\}
    |\\(?:text|textbf|textit|textrm|textup|mathrm|mathbf|mathit|mathsf|mbox|emph|boldsymbol|operatorname)\*?
      \s*\{(?P<words>[^{}]*)\}
    |\\(?P<command>[A-Za-z]+|.)
    |(?P<letters>[A-Za-z]+)
    |(?P<op>\*\*|<=|>=|!=|<>|->|=>|==|.)""",
    re.VERBOSE | re.DOTALL,
)
_SCIENTIFIC = re.compile(r"(\d)[eE]([+-]?\d{1,5})(?![\d.])")
_ALL_SCIENTIFIC = re.compile(
    r"[^A-Za-z\\]*\d[eE][+-]?\d[^A-Za-z\\]*(?:\d[eE][+-]?\d[^A-Za-z\\]*)*"
)  # `4 - 6e+4` is not
_JOINED = re.compile(
    rf"([A-Za-z]?)({'|'.join(sorted(FUNCTIONS - {'Re', 'Im', 'abs', 'max', 'min'}, key=len, reverse=True))}|sqrt)"
    r"([A-Za-z]?)"
)


def tokens(text: str) -> list[Token]:
    """The tokens of a whole answer. Raises Unreadable, TooHard."""
    text = mathtext.spell(text)
    text = re.sub(r"(?<=\d)(?:\\[,!; ]\s?|\{,\}|,\\!)(?=\d{3}(?!\d))", "", text)
    text = re.sub(r"\s*\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![A-Za-z]))", "°", text)
    text = _SCIENTIFIC.sub(r"\1 \\cdot 10^{\2}", text) if _ALL_SCIENTIFIC.fullmatch(text) else text
    text = text.replace("...", r"\ldots ")
    lexer = _Lexer(", " in text)
    for match in _TOKEN.finditer(text):
        lexer.take(match)
    return lexer.found


class _Lexer:
    def __init__(self, spaced: bool) -> None:
        self.found: list[Token] = []
        self.depth = 0  # brackets in which a comma separates
        self.spaced = spaced
        self.space = False

    def add(self, kind: Kind, text: str, value: Fraction = Fraction(0)) -> None:
        if len(self.found) >= MAX_TOKENS:
            raise TooHard("too many tokens")
        self.found.append(Token(kind, text, value, self.space))
        self.space = False

    def take(self, match: re.Match[str]) -> None:
        kind, text = match.lastgroup, match[0]
        if kind == "space":
            self.space = True
        elif kind == "num":
            self.number(text)
        elif kind == "rep":
            self.repeating(text)
        elif kind in ("begin", "end"):
            self.add("op", f"{kind} {match[kind].rstrip('*')}")
        elif kind == "words":
            self.words(match["words"])
        elif kind == "command":
            self.command(match["command"])
        elif kind == "letters":
            self.letters(text)
        else:
            self.operator(text)

    def number(self, text: str) -> None:
        groups = text.partition(".")[0].split(",")
        if len(groups) > 1 and self.depth and not self.spaced and not any(g.startswith("0") for g in groups[1:]):
            for index, group in enumerate(groups):  # a list within brackets
                if index:
                    self.add("op", ",")
                self.number(group + ("." + text.partition(".")[2] if index == len(groups) - 1 and "." in text else ""))
            return
        try:
            self.add("num", text, numbers.decimal(text))
        except ValueError:
            raise TooHard("too many digits") from None

    def repeating(self, text: str) -> None:
        quantity = numbers.parse(text)
        if quantity is None:
            raise Unreadable(text)
        self.add("num", text, quantity.value)

    def operator(self, text: str) -> None:
        if text in "([":
            self.depth += 1
        elif text in ")]":
            self.depth -= 1
        if text in _WORDS:
            text = _WORDS[text]
        elif not text.isascii() and text != "°":
            if self.found and self.found[-1].kind == "text" and "\u3040" <= text <= "\u9fff":
                self.found[-1] = Token("text", self.found[-1].text + text)
            else:
                self.add("text", text)
            return
        text = {"**": "^", "<>": "!=", "≠": "!="}.get(text, text)
        if text not in '$"' and not (text == "." and self.space):
            self.add("op", text)

    def command(self, name: str) -> None:
        if name in _OPERATORS:
            text = _OPERATORS[name]
            if text == r"\{":
                self.depth += 1
            elif text == r"\}":
                self.depth -= 1
            if text:
                self.add("op", text)
        elif name in FUNCTIONS or name in _ALIASES:
            self.add("fn", _ALIASES.get(name, name))
        elif name in _GREEK:
            self.add("name", "\\" + _SAME.get(name, name))
        elif name in _COMMANDS:
            self.add("cmd", name)
        elif name in _IGNORED or name.isspace():
            self.space = True
        else:
            raise Unreadable(f"\\{name}")

    def words(self, content: str) -> None:
        words = content.strip(" ,.$~")
        if words.lower() in _WORDS:
            self.add("op", _WORDS[words.lower()])
        elif not words:
            if "," in content:
                self.add("op", ",")
            self.space = True
        elif words in mathunits.UNITS and self.ends():  # \text{m}, \text{km}
            self.add("text", words)
        elif words in FUNCTIONS or words in _ALIASES:
            self.add("fn", _ALIASES.get(words, words))
        elif not re.search(r"[A-Za-z]{2}|[^\x00-\x7f]", words):  # \text{13}, \mathrm{e}
            for match in _TOKEN.finditer(words):
                self.take(match)
        else:
            self.add("text", words)

    def ends(self) -> bool:
        """Can what was read so far be an expression, so that a unit may follow?"""
        return bool(self.found) and (self.found[-1].kind != "op" or self.found[-1].text in (")", "]", "}", "!", "/"))

    def letters(self, run: str) -> None:
        before = self.found[-1] if self.found else None
        if run in FUNCTIONS or run in _ALIASES:
            self.add("fn", _ALIASES.get(run, run))
        elif run in ("sqrt", "cbrt", "pi", "infty", "binom"):
            self.add("cmd", run)
        elif run.lower() in ("inf", "infinity"):
            self.add("cmd", "infty")
        elif run.lower() in _WORDS and run != "u":
            if run == "U" and not (before and before.text in (")", "]", r"\}")):
                self.add("name", run)
            else:
                self.add("op", _WORDS[run.lower()] if run != "U" else "cup")
        elif len(run) == 1:
            self.add("name", run)
        elif run in mathunits.UNITS and self.ends():
            self.add("text", run)
        elif len(run) == 2 or (len(run) == 3 and run.lower() not in _THREE) or (len(run) == 4 and _neighbours(run)):
            for letter in run:
                self.add("name", letter)
        elif (joined := _JOINED.fullmatch(run)) and (before is None or before.kind != "name"):
            if joined[1]:
                self.add("name", joined[1])
            self.letters(joined[2])
            if joined[3]:
                self.add("name", joined[3])
        else:
            raise Unreadable(run)


def _neighbours(run: str) -> bool:
    return any(set(run) <= family for family in _FAMILIES)
