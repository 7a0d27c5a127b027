r"""The prose of a chain of thought: the text in which the words of the language reward are counted.

Left out: code (fenced, an open fence too, and inline), LaTeX, tags of HTML and of the format, addresses, names with
digits or underscores, units behind a number, function names. Text hides in none of them:

- letters of another script than Latin and Greek count wherever they stand (a tag, a formula, a fence);
- Latin text counts in a formula or in inline code where RUN words or more follow each other, in a `\text{}` of as
  many words, and in all of them where short `\text{}`s have more words than RUN and than the rest of the text;
- a code block is prose where PROSE of its words stand in comments and in lines that read as sentences; those count;
- names with digits or underscores count where they are more than NAMES of all words;
- only known tags are left out, and their names only; entities are resolved; characters that nobody sees are dropped,
  so letters kept apart by them are one word; letters spelled out one by one are a word;
- look-alikes by compatibility (full-width or mathematical letters) become the letters they stand for.

Every step takes linear time, whatever the text is.
"""

from __future__ import annotations

import html
import re
import unicodedata
from dataclasses import dataclass, field

from r1pipe.rewards.words.scripts import FOREIGN, words

RUN = 4  # so many words in a row are text, not mathematics
LINE = 3  # and so many in a line of a code block
PROSE = 0.75
NAMES = 1 / 3
_CHUNK = 512  # normalising takes quadratic time in a run of combining marks
_SPAN = 5000  # the longest formula

_INVISIBLE = re.compile(
    "[\u00ad\u0334-\u0338\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]"
)
_APART = r"[ .\-·*|]"
# Where none of it occurs, all of the text is prose.
_SPECIAL = re.compile(rf"[`~$\\<_]|://|[A-Za-z]\d|(?<![^\W_])(?:[^\W\d_]{_APART}){{5}}")
_OPENING = re.compile(r"```|~~~|`|\$\$?|\\\[|\\\(|\\begin\{([A-Za-z]{1,20}\*?)\}")
_CLOSING = {"\\[": "\\]", "\\(": "\\)"}

_TEXT = re.compile(r"\\(?:text[a-z]{0,8}|mbox|hbox|mathrm|mathit|mathbf|operatorname)\s?\{([^{}]*)\}")
_COMMAND = re.compile(r"\\[A-Za-z]++\*?(?:\{[a-z]{1,20}\*?\}(?=[\s\\]|$))?")
_SENTENCE = re.compile(rf"(?<![^\W_])[^\W\d_]++(?:[ ,.;:!?'’\n-]{{1,3}}[^\W\d_]++){{{RUN - 1},}}")
_COMMENT = re.compile(r"(?://|#|--)\s(.*)|/\*(.*?)(?:\*/|$)|^\s*\*\s(.*)|\"\"\"(.*?)(?:\"\"\"|$)")
_CODE_MARK = re.compile(
    r"[{}\[\];_\\]|[A-Za-z]\s?[-=*/+<>]{1,2}\s?[A-Za-z]|==|:=|->|\w[(]|[A-Za-z]\.[A-Za-z]|"
    r"^\s*(?:import|from|return|def|class|for|while|if|elif|else|switch|case|try|with|select|insert|update|print)\b",
    re.IGNORECASE,
)

_TAG = re.compile(
    r"</?([A-Za-z][A-Za-z0-9]{0,20})"
    r"((?:\s+[A-Za-z:-]{1,30}\s?=\s?(?:\"[^\"<>]{0,300}\"|'[^'<>]{0,300}'|[^\s<>\"']{1,99}))*)"
    r"\s{0,9}/?>"
)
_TAGS = """
think answer thinking thought reasoning reflection solution final step summary output input question problem
result code scratchpad response explanation analysis a abbr b big blockquote body br center cite dd del details
div dl dt em font h1 h2 h3 h4 h5 h6 head hr html i img ins kbd li mark math ol p pre q s samp script small span
strike strong style sub sup svg table tbody td tfoot th thead tr tt u ul var
"""
_KNOWN_TAGS = frozenset(_TAGS.split())
_ADDRESS = re.compile(r"(?:https?|ftp)://[^\s<>]{1,2000}")
_SPELLED = re.compile(rf"(?<![^\W_])[^\W\d_]({_APART})[^\W\d_](?:\1[^\W\d_]){{4,}}(?![^\W_])")
_NAME = re.compile(r"(?<![A-Za-zÀ-ɏ0-9_])[A-Za-z]++(?:\d[A-Za-z0-9]*(?:_[A-Za-z0-9]+)*|(?:_[A-Za-z0-9]+)+)")
_UNIT = re.compile(r"(?<=\d)\s?(?:[kcdmμ]?m|[kmμ]?g|km/h|m/s|[hs]|min|m?[lL]|[kM]?[JWNV]|Hz|Pa)(?![A-Za-z])")
_FUNCTION = re.compile(r"(?<![A-Za-z])(?:sin|cos|tan|cot|sec|csc|log|ln|exp|max|min|lim|mod|gcd|lcm|det)(?![A-Za-z])")


def prose(text: str) -> str:
    """The text in which words are counted."""
    text = _visible(text)
    if _SPECIAL.search(text):
        text = _Spans(text).prose()
        text = _ADDRESS.sub(lambda m: _blank(FOREIGN.findall(m[0])), text)
        text = _TAG.sub(_tag, text)
        text = _COMMAND.sub(" ", text)
        text = _SPELLED.sub(lambda m: m[0].replace(m[1], ""), text)
        text = _names(text)
    return _FUNCTION.sub(" ", _UNIT.sub(" ", text))


def size(text: str) -> float:
    """How many words."""
    return sum(w.worth for w in words(text))


def _visible(text: str) -> str:
    """Entities resolved, compatibility forms folded, invisible characters dropped."""
    if "&" in text:
        text = html.unescape(text)
    if text.isascii():
        return text
    text = _INVISIBLE.sub("", text)
    chunks = (text[i : i + _CHUNK] for i in range(0, len(text), _CHUNK))
    return "".join(unicodedata.normalize("NFKC", chunk) for chunk in chunks)


def _blank(pieces: list[str]) -> str:
    """Pieces that are kept of something left out; the dots keep them from being read as one sentence."""
    return f" {' . '.join(pieces)} "


def _said(text: str) -> list[str]:
    """Runs of words, and letters of other scripts, in what is not prose."""
    runs: list[str] = []

    def take(match: re.Match[str]) -> str:
        found = [w.text for w in words(match[0])]
        # words, and neither products of a few letters nor `for i in x`
        if len(found) < RUN or sum(map(len, found)) < 3 * len(found):
            return match[0]
        runs.append(match[0])
        return " "

    rest = _SENTENCE.sub(take, text)
    return runs + FOREIGN.findall(rest)


@dataclass
class _Spans:
    """Code and formulas of a text."""

    text: str
    none_before: dict[str, int] = field(default_factory=dict)  # where an end has been looked for in vain
    short: list[str] = field(default_factory=list)  # words of short \text{}

    def prose(self) -> str:
        r"""The text with code and formulas replaced by what counts of them."""
        out: list[str] = []
        at = 0
        while match := _OPENING.search(self.text, at):
            opening, start = match[0], match.end()
            out.append(self.text[at : match.start()])
            end, at = self._end(match)
            if end < 0:
                out.append(" ")
                at = start
            elif opening in ("```", "~~~"):
                out.append(_code(self.text[start:end]))
            elif opening == "`":
                out.append(_blank(_said(self.text[start:end])))
            else:
                out.append(_blank(self._formula(self.text[start:end])))
        out.append(self.text[at:])
        rest = "".join(out)
        if sum(map(size, self.short)) > max(RUN, size(rest)):
            rest += _blank(self.short)
        return rest

    def _find(self, closing: str, start: int, limit: int) -> int:
        begin = max(start, self.none_before.get(closing, 0))
        end = self.text.find(closing, begin, start + limit)
        if end < 0:
            self.none_before[closing] = max(begin, start + limit - len(closing))
        return end

    def _end(self, match: re.Match[str]) -> tuple[int, int]:
        """Where the inside ends and where the text goes on; (-1, -1) where nothing was opened."""
        text, opening, start = self.text, match[0], match.end()
        if opening in ("```", "~~~"):  # an open fence goes on to the end
            end = text.find(opening, start)
            return (end, end + len(opening)) if end >= 0 else (len(text), len(text))
        if opening in ("`", "$"):  # in one line
            end = text.find(opening, start, start + 1000)
            inside = text[start:end]
            if end <= start or "\n" in inside:
                return -1, -1
            # "$5 and $7": a formula neither starts nor ends with a space, and no digit follows it
            if opening == "$" and (inside[0].isspace() or inside[-1].isspace() or text[end + 1 : end + 2].isdigit()):
                return -1, -1
            return end, end + 1
        closing = f"\\end{{{match[1]}}}" if match[1] else _CLOSING.get(opening, opening)
        end = self._find(closing, start, _SPAN)
        return (end, end + len(closing)) if end >= 0 else (-1, -1)

    def _formula(self, latex: str) -> list[str]:
        kept: list[str] = []

        def take(match: re.Match[str]) -> str:
            long = len(match[1].split()) >= RUN
            kept.extend([match[1]] if long else FOREIGN.findall(match[1]))
            self.short.extend([] if long else [FOREIGN.sub(" ", match[1])])
            return " \\ "

        rest = _COMMAND.sub(" \\\\ ", _TEXT.sub(take, latex))
        return kept + _said(_FUNCTION.sub("\\\\", rest))


def _code(block: str) -> str:
    """What counts of a code block: letters of other scripts, and its sentences where it is mostly prose."""
    info = re.match(r"[\w+#-]{0,20}[ \t]{0,9}\n", block)
    body = block[info.end() :] if info else block
    sentences: list[str] = []
    for line in body.split("\n"):
        sentences += ["".join(found) for found in _COMMENT.findall(line)]
        rest = _COMMENT.sub(" ", line)
        if not _CODE_MARK.search(rest) and size(rest) >= LINE:
            sentences.append(rest)
    said = sum(map(size, sentences))
    if said > RUN and said >= PROSE * size(body):
        return "\n" + "\n".join(sentences) + "\n"
    return _blank(FOREIGN.findall(body))


def _tag(match: re.Match[str]) -> str:
    """A known tag goes; what its attributes say stays where it is text."""
    if match[1].lower() not in _KNOWN_TAGS:
        return match[0]
    return _blank(_said(match[2]))


def _names(text: str) -> str:
    """Without names of variables, unless much of the text is made of them."""
    names = [name for name in _NAME.findall(text) if sum(c.isalpha() for c in name) >= 3]
    rest = _NAME.sub(" ", text)
    if len(names) > NAMES * (len(names) + size(rest)):
        return re.sub("[_0-9]+", " ", text)
    return rest
