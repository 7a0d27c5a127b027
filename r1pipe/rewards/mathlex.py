r"""Tokens of an answer in LaTeX or plain notation: numbers, names, functions, operators, words.

What is no mathematics (a word of four letters or more, an unknown command) raises `Unreadable`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from r1pipe.rewards import mathtext, mathunits, numbers
from r1pipe.rewards.mathvocabulary import (
    ALIASES,
    COMMANDS,
    FUNCTIONS,
    GREEK,
    IGNORED,
    NEIGHBOURS,
    NO_PRODUCTS,
    OPERATORS,
    VARIANTS,
    WORDS,
)

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


_TOKEN = re.compile(
    r"""(?P<space>[\s~]+)
    |(?P<rep>\d*\.\d*\\(?:overline|bar|dot)\s*\{?\d+\}?(?:\d*\\dot\s*\{?\d\}?)?)
    |(?P<num>(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)
    |\\begin\s*\{(?P<begin>[a-z]+\*?)\}(?:\{[lcr|]*\})?
    |\\end\s*\{(?P<end>[a-z]+\*?)\}
    |\\(?P<style>text|textbf|textit|textrm|textup|mathrm|mathbf|mathit|mathsf|mbox|emph|boldsymbol|operatorname)\*?
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
            bold = match["style"] in ("mathbf", "boldsymbol", "textbf") and match["words"] in ("i", "j", "k")
            if bold:
                self.add("name", f"unit {match['words']}")
            else:
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
        if text in WORDS:
            text = WORDS[text]
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
        if name in OPERATORS:
            text = OPERATORS[name]
            if text == r"\{":
                self.depth += 1
            elif text == r"\}":
                self.depth -= 1
            if text:
                self.add("op", text)
        elif name in FUNCTIONS or name in ALIASES:
            self.add("fn", ALIASES.get(name, name))
        elif name in GREEK or name in VARIANTS:
            self.add("name", "\\" + VARIANTS.get(name, name))
        elif name in COMMANDS:
            self.add("cmd", name)
        elif name in IGNORED or name.isspace():
            self.space = True
        else:
            raise Unreadable(f"\\{name}")

    def words(self, content: str) -> None:
        words = content.strip(" ,.$~")
        if words.lower() in WORDS:
            self.add("op", WORDS[words.lower()])
        elif not words:
            if "," in content:
                self.add("op", ",")
            self.space = True
        elif words in mathunits.UNITS and self.ends():  # \text{m}, \text{km}
            self.add("text", words)
        elif words in FUNCTIONS or words in ALIASES:
            self.add("fn", ALIASES.get(words, words))
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
        if run in FUNCTIONS or run in ALIASES:
            self.add("fn", ALIASES.get(run, run))
        elif run in ("sqrt", "cbrt", "pi", "infty", "binom"):
            self.add("cmd", run)
        elif run.lower() in ("inf", "infinity"):
            self.add("cmd", "infty")
        elif run.lower() in WORDS:
            self.add("op", WORDS[run.lower()])
        elif run == "U" and before and before.text in (")", "]", r"\}"):  # (1,2) U (3,4)
            self.add("op", "cup")
        elif len(run) == 1:
            self.add("name", run)
        elif run in mathunits.UNITS and self.ends():
            self.add("text", run)
        elif (joined := _JOINED.fullmatch(run)) and (before is None or before.kind != "name"):  # xsinx
            if joined[1]:
                self.add("name", joined[1])
            self.letters(joined[2])
            if joined[3]:
                self.add("name", joined[3])
        elif _is_product(run):
            for letter in run:
                self.add("name", letter)
        else:
            raise Unreadable(run)


def _is_product(run: str) -> bool:
    if len(run) == 3:
        return run.lower() not in NO_PRODUCTS
    return len(run) == 2 or (len(run) == 4 and any(set(run) <= family for family in NEIGHBOURS))
