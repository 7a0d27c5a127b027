"""Completions around an answer: reasoning that reads like mathematics, then the answer as models state it."""

from __future__ import annotations

import random

from bench.rewards.kinds.base import Answer

_SENTENCES = [
    "Let me start by writing down what is given, so that I do not lose track of the conditions.",
    "We have ${v} = {a}$ and ${w} = {b}$, which means that ${v} + {w} = {ab}$.",
    "Substituting gives $ {a}{v} - {b} = {c} $, and this looks simple enough.",
    "Hmm, wait. Let me check that step again, because I may have dropped a sign.",
    "If we square both sides we get ${v}^2 = {aa}$, but squaring can add solutions that do not fit.",
    "So far the first condition leaves {a} cases, of which {b} are excluded by the second one.",
    "Alternatively, one could count the complement: there are {c} of those in total.",
    "The ratio of the two lengths is $\\frac{{{a}}}{{{b}}}$, as the triangles are similar.",
    "By the theorem of Pythagoras, the diagonal is $\\sqrt{{{a}^2 + {b}^2}}$.",
    "I recall that $\\sum_{{k=1}}^{{{a}}} k = \\frac{{{a} \\cdot {a1}}}{{2}}$, which may be useful here.",
    "Let's test a small case, say ${v} = {s}$: then the expression is ${s} \\cdot {t} = {st}$, as expected.",
    "The function $f({v}) = {v}^2 - {a}{v} + {b}$ has its minimum where the derivative $2{v} - {a}$ vanishes.",
    "That is a contradiction, so the assumption must be wrong and we are left with the other case.",
    "Okay, now the second part. Here we need the same argument, only with ${w}$ in place of ${v}$.",
    "Now {a} leaves the remainder {r} when it is divided by {t}, so that case is out.",
    "Adding the two equations, the terms in ${w}$ cancel and ${s}{v} = {c}$ remains.",
    "I want to be careful with the boundary: is the value {a} itself allowed or not?",
    "The number of ways to choose {s} things from {a} is $\\binom{{{a}}}{{{s}}}$, but order does not matter here.",
    "Dividing by {t} on both sides keeps the inequality, because {t} is positive.",
    "This agrees with the estimate from before, about {c} or a little more.",
    "Actually, hold on: the problem says at least {s}, not exactly {s}. Let me redo this.",
    "Each step multiplies the amount by $1 + \\frac{{{s}}}{{100}}$, and there are {t} steps.",
    "Then {a} + {b} = {ab}, and {ab} - {s} is what is left over.",
    "By symmetry both halves contribute the same, so it is enough to look at one of them.",
    "We can write it as $({v} - {s})({v} - {t}) = 0$ and read off the candidates.",
    "Let me verify with numbers: {s} times {t} is {st}, good.",
    "The area is base times height over two, which would be $\\frac{{1}}{{2}} \\cdot {a} \\cdot {b}$ here.",
    "Everything fits together now, and the remaining check is only arithmetic.",
    "In other words, $|{v} - {a}| < {b}$ has to hold for every such ${v}$.",
    "The slope of that line is $-\\frac{{{s}}}{{{t}}}$, hence the normal has the slope $\\frac{{{t}}}{{{s}}}$.",
]
_CHINESE = [
    "首先写出已知条件，设 ${v} = {a}$，则 ${w} = {b}$。",
    "两边同时平方，得到 ${v}^2 = {aa}$，注意检验增根。",
    "因为 {s} 乘以 {t} 等于 {st}，所以这一步没有问题。",
    "等一下，让我再检查一遍符号。",
    "由对称性可知，只需要考虑其中一种情形。",
    "代入原式，可得 ${a}{v} - {b} = {c}$。",
    "因此还剩下 {a} 种情况需要讨论。",
]
# `{a}` is the answer
_BOXED = [
    (8, "</think>\n<answer>\n\\boxed{{{a}}}\n</answer>"),
    (6, "</think>\n<answer>\\boxed{{{a}}}</answer>"),
    (3, "</think>\n<answer>\n$\\boxed{{{a}}}$\n</answer>"),
    (5, "</think>\n<answer>\nThe answer is $\\boxed{{{a}}}$.\n</answer>"),
    (4, "</think>\n<answer>\n{summary}\n\nTherefore, the final answer is \\boxed{{{a}}}.\n</answer>"),
    (3, "</think>\n<answer>\n\\[\n\\boxed{{{a}}}\n\\]\n</answer>"),
    (6, "</think>\n\n{summary}\n\n**Final Answer**\n\\boxed{{{a}}}"),
    (5, "</think>\n\n{summary}\n\nThus, the answer is \\(\\boxed{{{a}}}\\)."),
    (4, "</think>\n\n{summary}\n\n\\[\n\\boxed{{{a}}}\n\\]"),
    (3, "</think>\n\n\\boxed{{{a}}}"),
]
_UNBOXED = [
    (3, "</think>\n<answer>${a}$</answer>"),
    (2, "</think>\n<answer>\nThe answer is ${a}$.\n</answer>"),
    (2, "</think>\n<answer>{a}</answer>"),
    (1, "</think>\n<answer>\n**Answer:** ${a}$\n</answer>"),
    (1, "</think>\n\n{summary}\n\nThe final answer is ${a}$."),
]
_PLAIN = [
    (4, "</think>\n<answer>{a}</answer>"),
    (3, "</think>\n<answer>\n{a}\n</answer>"),
    (2, "</think>\n<answer>The answer is {a}{dot}</answer>"),
    (1, "</think>\n<answer>\n**Answer:** {a}\n</answer>"),
    (2, "</think>\n\n{a}"),
    (2, "</think>\n\n{summary}\n\n**Final Answer:** {a}"),
]
_IN_CHINESE = [
    (2, "</think>\n<answer>\n答案是 \\boxed{{{a}}}。\n</answer>"),
    (1, "</think>\n\n因此，最终答案为 $\\boxed{{{a}}}$。"),
]


def _fill(template: str, rng: random.Random) -> str:
    a, b, c = rng.randrange(2, 60), rng.randrange(2, 60), rng.randrange(20, 900)
    s, t = rng.randrange(2, 10), rng.randrange(2, 13)
    v, w = rng.sample("xyznkm", 2)
    return template.format(a=a, b=b, c=c, s=s, t=t, v=v, w=w, ab=a + b, aa=a * a, a1=a + 1, st=s * t, r=a % t)


def reasoning(rng: random.Random, sentences: list[str] | None = None) -> str:
    """50 to 300 words."""
    length, words, paragraphs = rng.randrange(50, 280), 0, [""]
    while words < length:
        text = _fill(rng.choice(sentences or _SENTENCES), rng)
        words += max(len(text.split()), len(text) // 6)
        paragraphs[-1] += text + " "
        if rng.random() < 0.25:
            paragraphs.append("")
    return "\n\n".join(p.strip() for p in paragraphs if p)


def _pick(rng: random.Random, templates: list[tuple[int, str]]) -> str:
    return rng.choices([t for _, t in templates], [w for w, _ in templates])[0]


def completion(answer: Answer, rng: random.Random) -> str:
    """A whole completion that states the answer."""
    if answer.how == "whole":
        return answer.text.replace("{cot}", reasoning(rng))
    if answer.how == "math" and rng.random() < 0.05:
        end = _pick(rng, _IN_CHINESE).format(a=answer.text)
        return f"<think>\n{reasoning(rng, _CHINESE)}\n{end}"
    thinking = f"<think>\n{reasoning(rng)}\n"
    if answer.how == "region":
        tagged = rng.random() < 0.7
        return thinking + (f"</think>\n<answer>\n{answer.text}\n</answer>" if tagged else f"</think>\n\n{answer.text}")
    templates = _PLAIN if answer.how == "plain" else _BOXED if rng.random() < 0.78 else _UNBOXED
    summary = " ".join(_fill(rng.choice(_SENTENCES), rng) for _ in range(rng.randrange(1, 4)))
    dot = "" if answer.text.endswith(".") else "."
    return thinking + _pick(rng, templates).format(a=answer.text, summary=summary, dot=dot)
