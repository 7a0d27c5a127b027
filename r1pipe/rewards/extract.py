"""Where the answer of a completion stands: region, boxes, and the plain text of an unboxed answer.

Policies: the region is what follows the last closing think tag, inside the last answer block where there is one
(an answer block left open counts: the format reward sees to the tag). In it the last box wins, but boxes that
follow each other with nothing than "or", "and" or a comma between are one list (no paying for a hedge). A box left
open is no answer. Without a box, the text after the last cue ("answer is", "=", ...) of the last line.
"""

from __future__ import annotations

import re
from typing import Literal

from r1pipe.chat import Tags

_BOX = re.compile(r"\\(?:boxed|fbox|framebox)\s*\{")
_BETWEEN = re.compile(r"(?:[\s,;$]|\\[,;!]|\band\b|\bor\b|\\text\s*\{\s*(?:and|or)\s*\}|或|和|与|、|，)*")
# `Final Answer: **73**`, `答案是 42。`, `#### 72`
_CUE = re.compile(
    r"(?:(?:\banswer\b|\bresult\b|答案|结果|得数)\s*(?:is|are|equals|为|是|等于)?\s*[:=]?|####)\s*",
    re.IGNORECASE,
)
_VERB = re.compile(r"(?:\bis\b|\bare\b|\bequals?\b|\bgives\b|=|是|等于|为|得到?)\s*", re.IGNORECASE)
_NEGATION = re.compile(r"\bnot\b|n['’]t\b|\bnever\b|不是|不等于|并非|≠|\\neq?\b", re.IGNORECASE)

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


def _closing(text: str, start: int) -> int | None:
    """Index after the brace that closes the group opened just before `start`."""
    depth = 1
    for match in re.finditer(r"\\[{}\\]|[{}]", text[start:]):
        if match[0] == "{":
            depth += 1
        elif match[0] == "}":
            depth -= 1
            if depth == 0:
                return start + match.end()
    return None


def last_boxed(text: str) -> str | None:
    """Content of the last box, the innermost of nested ones; None without a box or with the last one open."""
    found = boxes(text)
    return unbox(found[-1][2]) if found else None


def unbox(content: str) -> str:
    """`\\boxed{7}` -> `7`, where the box is all that there is."""
    content = content.strip()
    while (inner := boxes(content)) and len(inner) == 1 and inner[0][:2] == (0, len(content)):
        content = inner[0][2].strip()
    return content


def boxed_answer(text: str) -> str | None:
    """The boxed answer: the last box, joined with those directly before it; "" where a box is left open; None
    where there is no box at all."""
    found = boxes(text)
    if found is None:
        return ""
    if not found:
        return None
    run = [found[-1]]
    for box in reversed(found[:-1]):
        between = text[box[1] : run[0][0]]
        if not _BETWEEN.fullmatch(between):
            break
        run.insert(0, box)
    contents = list(dict.fromkeys(unbox(content) for _, _, content in run))
    return ", ".join(contents)


def plain_candidates(text: str) -> list[str]:
    """What an unboxed text may state as its answer, best first: the whole, after the last cue, after the last verb
    of the last line. Empty where the last line negates."""
    text = re.sub(r"\*\*(.+?)\*\*|__(.+?)__", lambda m: m[1] or m[2], text, flags=re.DOTALL).strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return []
    if len(lines) == 1 and _single(text):
        return [text, strip_end(text.rpartition("=")[2])] if "=" in text else [text]
    if _NEGATION.search(lines[-1]) and not re.search(r"\$|\\", lines[-1]):
        return []
    candidates = [text]
    for pattern, where in ((_CUE, text), (_VERB, lines[-1])):
        matches = list(pattern.finditer(where))
        if matches and (tail := where[matches[-1].end() :].strip().splitlines()):
            candidates.append(strip_end(tail[0]))
    candidates.append(strip_end(lines[-1]))
    return list(dict.fromkeys(c for c in candidates if c))


def _single(text: str) -> bool:
    """No words outside of LaTeX: an expression, not a sentence."""
    bare = re.sub(r"\\[A-Za-z]+|\$", "", text)
    return not re.search(r"\s|[\u3400-\u9fff]", bare.strip())


def strip_end(text: str) -> str:
    """Without the punctuation that ends a sentence."""
    return text.strip().rstrip(".。!！;；,，").strip()
