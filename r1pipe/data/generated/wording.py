"""The words of the generated data: questions, worked sentences, responses, in English (en) and Chinese (zh).

Kept apart from the problems, because the same problem may be worded in many ways. Sentences are short: on a
CPU, time is tokens.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

LANGUAGES = ("en", "zh")
OTHER = {"en": "zh", "zh": "en"}

_NAMES = {
    "en": ["Tom", "Anna", "Ben", "Mary", "Sam", "Lily", "Jack", "Emma"],
    "zh": ["小明", "小红", "小华", "小李", "小王", "小美", "小刚", "小兰"],
}
_OBJECTS = {
    "en": ["apples", "books", "coins", "cards", "stamps", "pens", "shells", "balls", "eggs", "stickers"],
    "zh": ["个苹果", "本书", "枚硬币", "张卡片", "张邮票", "支笔", "个贝壳", "个球", "个鸡蛋", "张贴纸"],
}
_HAS = {"en": ["{who} has {n} {what}.", "{who} starts with {n} {what}."], "zh": ["{who}有{n}{what}。"]}
_GAIN = {
    "en": [
        "Then {n} more are found.",
        "A friend brings {n} more.",
        "{who} buys {n} more.",
        "{who} gets {n} more.",
    ],
    "zh": ["又找到{n}{m}。", "朋友送来{n}{m}。", "又买了{n}{m}。", "又得到{n}{m}。"],
}
_LOSS = {
    "en": ["{who} gives away {n}.", "{who} loses {n}.", "Then {n} are sold.", "A friend takes {n}."],
    "zh": ["送出{n}{m}。", "丢了{n}{m}。", "卖掉{n}{m}。", "朋友拿走{n}{m}。"],
}
_ASK = {
    "en": ["How many {what} are left?", "How many {what} now?"],
    "zh": ["现在有多少{what}？", "还剩多少{what}？"],
}
_PLAIN = {
    "en": ["What is {e}?", "Compute {e}.", "Work out {e}.", "Find {e}."],
    "zh": ["{e}等于多少？", "计算{e}。", "请算出{e}。", "{e}是多少？"],
}
_PLUS = {"en": (" plus ", " minus "), "zh": ("加", "减")}
_FIRST = {"en": ["First, ", "Start: "], "zh": ["先算", "首先"]}
_NEXT = {"en": ["Then ", "Next, ", "Now "], "zh": ["再算", "然后", "接着"]}
_MAKES = {"en": [" makes ", " is ", " gives "], "zh": ["等于", "得到", "是"]}
_STOP = {"en": ".", "zh": "。"}
_FINAL = {
    "en": ["The answer is {n}.", "So the answer is {n}.", "Answer: {n}."],
    "zh": ["答案是{n}。", "所以答案是{n}。", "答案：{n}。"],
}


def question(rng: random.Random, problem: Sequence[int], language: str, story: float) -> str:
    """The problem in words: a little story with probability `story`, else plain (words or signs)."""
    if rng.random() < story:
        return _story(rng, problem, language)
    if rng.random() < 0.5:
        plus, minus = _PLUS[language]
    else:
        plus, minus = " + ", " - "
    chain = str(problem[0]) + "".join((plus if n > 0 else minus) + str(abs(n)) for n in problem[1:])
    return rng.choice(_PLAIN[language]).format(e=chain)


def _story(rng: random.Random, problem: Sequence[int], language: str) -> str:
    who, what = rng.choice(_NAMES[language]), rng.choice(_OBJECTS[language])
    words = {"who": who, "what": what, "m": what[0]}
    parts = [rng.choice(_HAS[language]).format(n=problem[0], **words)]
    for n in problem[1:]:
        parts.append(rng.choice(_GAIN[language] if n > 0 else _LOSS[language]).format(n=abs(n), **words))
    parts.append(rng.choice(_ASK[language]).format(**words))
    return ("" if language == "zh" else " ").join(parts)


def step(rng: random.Random, index: int, total: int, operand: int, result: int, language: str) -> str:
    """One worked sentence, `First, 23 plus 15 makes 38.`; index 0 opens, a later one goes on, -1 has no opening."""
    opening = "" if index < 0 else rng.choice((_FIRST if index == 0 else _NEXT)[language])
    sign = _PLUS[language][0 if operand > 0 else 1]
    return f"{opening}{total}{sign}{abs(operand)}{rng.choice(_MAKES[language])}{result}{_STOP[language]}"


def join(sentences: Sequence[str]) -> str:
    """Sentences in one line; none of the two languages needs more than a blank between sentences."""
    return " ".join(sentences)


def final(rng: random.Random, answer: int, language: str) -> str:
    """A closing sentence without tags, as base text has it."""
    return rng.choice(_FINAL[language]).format(n=answer)


def response(thinking: str, answer: str) -> str:
    """The format of the recipe; the tags are ordinary tokens of the tokenizer."""
    return f"<think>\n{thinking}\n</think>\n<answer>{answer}</answer>"


def damage(rng: random.Random, text: str) -> str:
    """Breaks the format in one of the ways models do: a tag missing, doubled, or no tags at all."""
    tag = rng.choice(("<think>\n", "\n</think>", "<answer>", "</answer>", "double", "bare"))
    if tag == "double":
        return text.replace("</think>", "</think>\n</think>")
    if tag == "bare":
        for part in ("<think>\n", "</think>\n", "<answer>", "</answer>"):
            text = text.replace(part, "")
        return text
    return text.replace(tag, "", 1)


def chat(user: str, assistant: str) -> str:
    """A one-turn conversation as the chat template of the embedded model renders it."""
    return f"<|im_start|>user\n{user}<|im_end|>\n<|im_start|>assistant\n{assistant}<|im_end|>\n"  # ends the document
