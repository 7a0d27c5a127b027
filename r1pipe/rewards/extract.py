"""Where the answer of a completion stands: region, boxes, and the plain text of an unboxed answer.

Policies: the region is what follows the last closing think tag, inside the last answer block where there is one
(an answer block left open counts: the format reward sees to the tag). In it the last box wins, but boxes that
follow each other with nothing than "or", "and", a comma or `x =` between are one list (no paying for a hedge). A box
left open or denied is no answer. Without a box, what follows the last cue ("answer is", "####"), else the last verb
or "=" of the last line, else that line; not where it is denied or asked.
"""

from __future__ import annotations

import re
from typing import Literal

from r1pipe.chat import Tags
from r1pipe.rewards import mathtext

MAX_NESTED = 10  # boxes around a box

_BOX = re.compile(r"\\(?:boxed|fbox|framebox)\s*\{")
_BETWEEN = re.compile(
    r"(?:[\s,;$]|\\[,;!]|\\q?quad\b|\band\b|\bor\b|\\text\s*\{\s*(?:and|or)\s*\}|或|和|与|、|，|(?<![A-Za-z\\])[A-Za-z](?:_\w)?\s*=)*"
)
# `Final Answer: **73**`, `答案是 42。`, `#### 72`
_CUE = re.compile(
    r"(?:(?:\b(?:final )?answer\b|答案|结果|得数|结论)(?:\s*(?:to|of|for)\b[^.:=\n$\\]{0,60}?(?=\bis\b|:|=))?\s*"
    r"(?:should be|would be|must be|is|are|was|equals|应为|应该是|为|是|等于)?\s*(?:therefore|thus|then)?\s*[:=]?"
    r"|\b(?:result|solution|conclusion)\s*(?:is|are|:|=)"
    r"|####|(?:故|应|答案)?选(?:择|项)?\s*:?|\b(?:choose|pick|select)\b)\s*",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"(?:\bis\b|\bare\b|\bit['’]s\b|\bequals?\b|\bequal to\b|\bgives?\b|\bgets?\b|\bgot\b|\bhave\b|\bhas\b|\bbe\b"
    r"|\bfinds?\b|\bobtain\b|=|(?<!\d):|:(?!\d)|是|等于|为|得到?|有|共)\s*",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"(?:(?:(?:so|thus|therefore|hence|then|finally|and|ok|okay|well)\b|因此|所以|故|即|综上)[\s,:，：]*)+",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"(?:[,;]|[.。!！](?=\s|$)|\s-)\s*(?=[A-Za-z\u4e00-\u9fff]{2,}\s|$)|\s*\((?=[A-Za-z]{2}|[a-z]\.)"
    r"|\s+(?:because|since|which|as|so|where|when|by|in total|altogether|rather than|instead of|(?:and |but )?not)\b",
    re.IGNORECASE,
)
_FORMULA = re.compile(
    r"\$\$(.{1,1000}?)\$\$|\\\[(.{1,1000}?)\\\]|\\\((.{1,1000}?)\\\)|(?<![\\$])\$([^$\n]{1,1000}?)(?<!\\)\$(?![\d$])",
    re.DOTALL,
)
_MARKUP = re.compile(r"`|</?(?:b|i|u|p|em|br|div|span|code|strong) ?/?>")
_FALSE = re.compile(r"(?:too\b|wrong|incorrect|false|impossible|错|不对|不正确)", re.IGNORECASE)
_BULLET = re.compile(
    r"^\s*(?:#{1,6}(?!#)\s*(?=[^\d\s#])|>\s+(?=[A-Za-z\u4e00-\u9fff]{2})|[*-]\s+(?=[A-Za-z\u4e00-\u9fff]{2}))"
)
_NEGATION = re.compile(r"\bnot\b|\bcannot\b|n['’]t\b|\bnever\b|不是|不等于|并非|≠|\\neq?\b", re.IGNORECASE)

_FENCE = re.compile(r"[ \t]{0,8}(`{3,}|~{3,})[ \t]*([^`\s]*)[^`]*")
_PYTHON = frozenset({"python", "py", "python3", "py3"})


def extract(text: str, how: Literal["boxed", "answer", "gsm8k", "code"]) -> str | None:
    """What a text gives as its answer: in its last box, its answer block, after `####`, its last block of Python."""
    match how:
        case "boxed":
            return last_boxed(text)
        case "answer":
            return Tags().split(text).answer
        case "gsm8k":
            from r1pipe.data.adapters import gsm8k_gold

            return gsm8k_gold(text)
        case "code":
            return code_block(text)


def code_block(text: str) -> str | None:
    """The last fenced block marked as Python, else the last without a language (often a block of output stands
    behind the program); None without one, and where the last fence is left open: the text was cut off."""
    blocks: dict[bool, str] = {}  # marked as Python? -> the last such block
    fence, language, lines = "", "", list[str]()
    for line in text.splitlines(keepends=True):
        match = _FENCE.fullmatch(line.rstrip())
        if not fence:
            if match:
                fence, language, lines = match[1], match[2].lower(), []
        elif match and match[1].startswith(fence) and not match[2]:
            if language in _PYTHON or not language:
                blocks[bool(language)] = "".join(lines)
            fence = ""
        else:
            lines.append(line)
    return None if fence else blocks.get(True, blocks.get(False))


def region(completion: str, tags: Tags, *, require_think: bool = True, prefilled: bool = False) -> str | None:
    """The text in which the answer is looked for; None where the thinking is unfinished.

    `completion` is whole. Without a closing tag there is no answer, unless `require_think` is off and the thinking
    was never opened either.
    """
    parts = tags.split(completion)
    if not parts.closed and (require_think or prefilled or tags.think_open in completion):
        return None
    if parts.answer is not None:
        return parts.answer
    return parts.after.rpartition(tags.answer_open)[2].strip()


def boxes(text: str) -> list[tuple[int, int, str]] | None:
    """Outermost boxes as (start, end, content); None when the last one is left open."""
    found: list[tuple[int, int, str]] = []
    position = 0
    while match := _BOX.search(text, position):
        end = _closing(text, match.end())
        if end is None:
            return None
        found.append((match.start(), end, text[match.end() : end - 1]))
        position = end
    return found


_BRACE = re.compile(r"\\[{}\\]|[{}]")


def _closing(text: str, start: int) -> int | None:
    """Index after the brace that closes the group opened just before `start`."""
    depth = 1
    for match in _BRACE.finditer(text, start):
        if match[0] == "{":
            depth += 1
        elif match[0] == "}":
            depth -= 1
            if depth == 0:
                return match.end()
    return None


_NOT_BEFORE = re.compile(
    r"(?:\bnot|n['’]t|\bnever|不是|不等于|并非|≠|\\neq?)(?:\s+(?:equal to|be|the|answer|is|simply|just))*[\s$:]*$",
    re.IGNORECASE,
)
_NOT_BEHIND = re.compile(
    r"[\s$.,)\]]*(?:(?:is|was)(?:\s+(?:not\b|wrong|incorrect|false)|n['’]t\b)|[（(]?(?:是)?(?:错|不对|不正确))",
    re.IGNORECASE,
)


def _denied(before: str, behind: str) -> bool:
    """`not \\boxed{5}`, `\\boxed{5} is wrong`."""
    return bool(_NOT_BEFORE.search(before) or _NOT_BEHIND.match(behind))


def last_boxed(text: str) -> str | None:
    """Content of the last box, the innermost of nested ones; None without a box or with the last one open."""
    found = boxes(text)
    return unbox(found[-1][2]) if found else None


def unbox(content: str) -> str:
    """`\\boxed{7}` -> `7`, where the box is all that there is."""
    content = content.strip()
    for _ in range(MAX_NESTED):
        match = _BOX.match(content)
        if not match or _closing(content, match.end()) != len(content):
            break
        content = content[match.end() : -1].strip()
    return content


def boxed_answer(text: str) -> str | None:
    """The boxed answer: the last box, joined with those directly before it; "" where a box is left open or denied;
    None where there is no box at all."""
    found = boxes(text)
    if found is None:
        return ""
    if not found:
        return None
    if _denied(text[max(0, found[-1][0] - 60) : found[-1][0]], text[found[-1][1] : found[-1][1] + 60]):
        return ""
    run = [found[-1]]
    for box in reversed(found[:-1]):
        between = text[box[1] : run[0][0]]
        if not _BETWEEN.fullmatch(between):
            break
        run.insert(0, box)
    return ", ".join(dict.fromkeys(unbox(content) for _, _, content in run))


def plain_candidates(text: str) -> list[str]:
    """What an unboxed text states as its answer: readings of one claim, best first. The claim is what follows the last
    cue ("answer is", "####"), else the last verb of the last line, else the last line. Empty where it is denied."""
    text = re.sub(r"[ \t\r]+", " ", mathtext.spell(text))  # the patterns are slow on runs of spaces
    text = _MARKUP.sub("", text)
    text = re.sub(r"\*\*(.+?)\*\*|__(.+?)__|==(.+?)==", lambda m: m[1] or m[2] or m[3], text, flags=re.DOTALL)
    text = re.sub(r"\\\[.{1,1000}?\\\]|\$\$.{1,1000}?\$\$", lambda m: m[0].replace("\n", " "), text, flags=re.DOTALL)
    lines = [_BULLET.sub("", line).strip() for line in text.splitlines() if line.strip(" #*>-`")]
    if not lines:
        return []
    if len(lines) == 1 and not _sentence(lines[0]):
        return [strip_end(lines[0], ".。;；,，") or lines[0]]
    claim = _claim("\n".join(lines), lines[-1])
    if claim is None:
        return []
    return list(dict.fromkeys(r for r in _readings(claim) if r))


def _claim(text: str, last: str) -> str | None:
    for pattern, where in ((_CUE, text), (_VERB, last)):
        for match in reversed(list(pattern.finditer(where))):
            tail = where[match.end() :].strip()
            if not re.search(r"\w|\\", tail) or (
                match[0].strip() in ("=", ":") and _within_formula(where, match.start())
            ):
                continue
            before = where[max(0, match.start() - 30) : match.start()]
            if denial := re.match(rf"[$ \\\\(\\[]*(?:{_NEGATION.pattern})", tail, re.IGNORECASE):
                rest = re.split(
                    r"\b(?:but|rather|instead)\b[\s,:]*(?:is\b|it is\b)?", tail[denial.end() :], maxsplit=1
                )
                return rest[1].strip() if len(rest) > 1 else None
            if (pattern is _VERB and _FALSE.match(tail)) or _NEGATION.search(re.split(r"[.,;!?。，；]", before)[-1]):
                return None
            return tail.splitlines()[0]
    return None if _NEGATION.search(last) else _LEAD.sub("", last, count=1) if _LEAD.match(last) else last


def _within_formula(text: str, at: int) -> bool:
    return any(m.start() <= at < m.end() for m in _FORMULA.finditer(text))


def _readings(claim: str) -> list[str]:
    """The claim, its one formula, and the claim up to where it goes on in words."""
    if _DENIED.match(claim.lstrip("$\\( ")) or claim.endswith("?"):
        return []
    short = _TAIL.split(claim, maxsplit=1)[0]
    if _HEDGE.search(claim, len(short)):
        return [strip_end(claim)]
    formulas = [next(g for g in m.groups() if g) for m in _FORMULA.finditer(claim)]
    return [strip_end(claim), *(f.strip() for f in formulas if len(formulas) == 1), strip_end(short)]


_HEDGE = re.compile(
    r"\b(?:or|maybe|perhaps|could|might|possibly|alternatively|also|either)\b|或|也可能", re.IGNORECASE
)
_DENIED = re.compile(
    r".*\b(?:is|was|are)\s+(?:not|wrong|incorrect|false)\b|.*\b(?:isn|wasn|aren)'t\b"
    r"|(?:more|less|greater|fewer|smaller|larger|bigger|other|rather) than\b|at (?:least|most)\b|between\b|except\b"
    r"|.*\b(?:or|and) (?:more|less|fewer|greater|smaller|higher|lower|above|below|up)\b"
    r"|(?:anything|everything|nothing|all) but\b|instead of\b|far from\b|not\b",
    re.IGNORECASE,
)


def _sentence(text: str) -> bool:
    """Are there words outside of LaTeX, rather than an expression alone?"""
    if "####" in text:
        return True
    bare = re.sub(r"\\[A-Za-z]+\s*\{[^{}]*\}|\\[A-Za-z]+|\b(?:and|or)\b", " ", text)
    return bool(re.search(r"[A-Za-z]{3,}|[A-Za-z]{2,}[,:;]?\s|\b[A-Z]?[a-z]+'[a-z]+ |[\u3400-\u9fff]", bare))


def strip_end(text: str, marks: str = ".。!！;；,，") -> str:
    """Without the punctuation that ends a sentence, and without quotation marks and emphasis around."""
    text = text.strip()
    text = text if text.endswith("..") else text.rstrip(marks).strip()
    while len(text) > 2 and text[0] == text[-1] and text[0] in "*_'\"" and text[0] not in text[1:-1]:
        text = text[1:-1].strip()
    return text
