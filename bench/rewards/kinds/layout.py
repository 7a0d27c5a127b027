"""Where and how the answer is written: notation, boxes, cues, thinking; and answers that only try to be paid."""

from __future__ import annotations

import random
from fractions import Fraction

from bench.rewards.kinds.base import Answer, Case, Kind, frac, fraction, plain, region

_FULLWIDTH = str.maketrans("0123456789-/.", "０１２３４５６７８９－／．")
_SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_VULGAR = {
    Fraction(1, 2): "½",
    Fraction(1, 3): "⅓",
    Fraction(2, 3): "⅔",
    Fraction(1, 4): "¼",
    Fraction(3, 4): "¾",
    Fraction(1, 5): "⅕",
    Fraction(2, 5): "⅖",
    Fraction(3, 5): "⅗",
    Fraction(1, 8): "⅛",
    Fraction(5, 8): "⅝",
}


def _gold(rng: random.Random) -> tuple[str, str]:
    """A gold answer of a common kind, and a wrong one like it, as a box holds them."""
    pick = rng.random()
    if pick < 0.6:
        n = rng.randrange(rng.choice([100, 10_000, 1_000_000]))
        return str(n), str(n + rng.choice([1, -1, 10]))
    if pick < 0.8:
        v = fraction(rng, 60, 30)
        return frac(v), frac(v + Fraction(1, v.denominator))
    a, n = rng.randrange(2, 30), rng.choice([2, 3, 5, 6, 7])
    return rf"{a}\sqrt{{{n}}}", rf"{a + 1}\sqrt{{{n}}}"


def notation(rng: random.Random) -> Case:
    """Fullwidth and Unicode signs in place of LaTeX."""
    shape = rng.randrange(8)
    n = rng.randrange(2, 3000)
    if shape == 0:
        number = rng.choice([str(n), f"-{n}", f"{n}.{rng.randrange(1, 100):02d}"])
        wide = number.translate(_FULLWIDTH)
        return Case(
            number,
            [wide, plain(wide)],
            [str(n + 1).translate(_FULLWIDTH), plain(("-" + number).replace("--", "").translate(_FULLWIDTH))],
        )
    if shape == 1:
        return Case(
            f"-{n}", [f"−{n}", plain(f"−{n}"), plain(f"–{n}"), plain(f"x = −{n}")], [plain(f"−{n + 1}"), plain(f"{n}")]
        )
    if shape == 2:
        v, w = rng.sample(list(_VULGAR), 2)
        k = rng.randrange(0, 60)
        head = str(k) if k else ""
        return Case(
            frac(k + v),
            [plain(head + _VULGAR[v]), head + _VULGAR[v]],
            [plain(head + _VULGAR[w]), plain(f"{k + 1}{_VULGAR[v]}")],
        )
    if shape == 3:
        a, r = rng.randrange(2, 40), rng.choice([2, 3, 5, 6, 7, 10])
        return Case(
            rf"{a}\sqrt{{{r}}}",
            [plain(f"{a}√{r}"), f"{a}√{r}", plain(f"{a}·√{r}"), plain(f"{a}√({r})")],
            [plain(f"{a + 1}√{r}"), plain(f"√{r}")],
        )
    if shape == 4:
        a, e = rng.randrange(2, 10), rng.randrange(3, 15)
        return Case(
            rf"{a} \times 10^{{{e}}}",
            [plain(f"{a}×10{str(e).translate(_SUPERSCRIPT)}"), plain(f"{a} × 10^{e}")],
            [plain(f"{a}×10{str(e + 1).translate(_SUPERSCRIPT)}")],
        )
    if shape == 5:
        a, b = rng.randrange(2, 30), rng.randrange(1, 30)
        return Case(
            f"x^2 + {a}x - {b}",
            [plain(f"x² + {a}x − {b}"), plain(f"x²+{a}x−{b}")],
            [plain(f"x² − {a}x − {b}"), plain(f"x³ + {a}x − {b}")],
        )
    if shape == 6:
        v = fraction(rng, 30, 13)
        return Case(
            rf"{frac(v)}\pi",
            [plain(f"{v.numerator}π/{v.denominator}".removeprefix("1" if v.numerator == 1 else "")), plain(f"({v})π")],
            [plain(f"{v.numerator + v.denominator}π/{v.denominator}")],
        )
    a, b = n, n + rng.randrange(1, 50)
    return Case(
        rf"{a} \leq x < {b}",
        [plain(f"{a} ≤ x < {b}"), plain(f"x ∈ [{a}, {b})")],
        [plain(f"{a} < x ≤ {b}"), plain(f"x ∈ ({a}, {b})")],
    )


def box_shapes(rng: random.Random) -> Case:
    gold, near = _gold(rng)

    def forms(a: str) -> list[Answer | str]:
        texts = [
            rf"\boxed{{ {a} }}",
            f"\\[\n\\boxed{{{a}}}\n\\]",
            rf"\fbox{{{a}}}",
            rf"\boxed{{{a}.}}",
            rf"\boxed{{${a}$}}",
            rf"$$\boxed{{{a}}}$$",
        ]
        texts += [
            rf"\boxed {{{a}}}",
            f"\\boxed{{\n  {a}\n}}",
            rf"**\boxed{{{a}}}**",
            rf"$\boxed{{\displaystyle {a}}}$",
            rf"\boxed{{\boxed{{{a}}}}}",
        ]
        texts += [
            f"Hence\r\n\\[\r\n\\boxed{{{a}}}\r\n\\]",
            rf"\(\boxed{{{a}}}\)",
            rf"The answer is \boxed{{{a}}}. Indeed \boxed{{{a}}}.",
        ]
        texts += [
            rf"\boxed{{\color{{red}}{{{a}}}}}",
            rf"\boxed{{\textcolor{{blue}}{{{a}}}}}",
            rf"\boxed{{\underline{{{a}}}}}",
            rf"\boxed{{{{{a}}}}}",
        ]
        texts += [
            rf"\boxed{{\,{a}\,}}",
            rf"\boxed{{{a}}} square units.",
            rf"\begin{{align*}} x &= y \\ &= \boxed{{{a}}} \end{{align*}}",
            rf"\boxed{{x = {a}}}.",
        ]
        return [region(t) for t in texts]

    return Case(gold, forms(gold), [*forms(near), region(rf"\boxed{{{gold}")])


def gold_shapes(rng: random.Random) -> Case:
    """The gold stands in dollars, in a box, or at the end of a whole solution."""
    gold, near = _gold(rng)
    k = rng.randrange(2, 90)
    written = rng.choice(
        [
            f"${gold}$",
            f"${gold}$",
            rf"\boxed{{{gold}}}",
            rf"$\boxed{{{gold}}}$",
            rf"Let $x={k}$ and $y={k + 1}$. Then the sum is ${2 * k + 1}$, so the answer is $\boxed{{{gold}}}$.",
            f"There are {k} cases, each counted twice.\n\nTherefore we get\n\\[\\boxed{{{gold}}}\\]",
        ]
    )
    wrong = [near, near, str(k), str(2 * k + 1)]
    return Case(written, [gold, rf"x = {gold}", rf"\displaystyle {gold}"], [w for w in wrong if w != gold])


def last_box(rng: random.Random) -> Case:
    gold, near = _gold(rng)

    def both(first: str, second: str) -> list[Answer | str]:
        return [
            region(rf"First attempt \boxed{{{first}}}. That is wrong; correcting, \boxed{{{second}}}."),
            region(
                f"At first \\(\\boxed{{{first}}}\\) looked right.\n\nNow the final answer is \\[\\boxed{{{second}}}\\]"
            ),
            region(f"\\boxed{{{first}}}\n\nWait, I dropped a factor on the way. The answer is $\\boxed{{{second}}}$."),
        ]

    return Case(gold, both(near, gold), both(gold, near))


def draft_box(rng: random.Random) -> Case:
    """A box inside the thinking that differs from the answer."""
    gold, near = _gold(rng)

    def whole(draft: str, final: str) -> list[Answer | str]:
        ends = [
            f"<answer>\n\\boxed{{{final}}}\n</answer>",
            f"The final answer is $\\boxed{{{final}}}$.",
            f"<answer>${final}$</answer>",
        ]
        return [
            Answer(f"<think>\n{{cot}}\nSo maybe \\boxed{{{draft}}}. {doubt}\n</think>\n{end}", "whole")
            for end in ends
            for doubt in ("No, that misses a case.", "Let me check this once more.")
        ]

    return Case(gold, whole(near, gold), whole(gold, near))


def cue(rng: random.Random) -> Case:
    """The answer stands in a sentence, without a box."""
    v = rng.choice([Fraction(rng.randrange(100_000)), Fraction(rng.randrange(300)), fraction(rng, 60, 30)])
    gold, near = str(v), str(v + rng.choice([Fraction(1), Fraction(1, v.denominator)]))
    k, other = rng.randrange(2, 90), str(v + rng.choice([2, 3, 5]))

    def forms(a: str) -> list[Answer | str]:
        texts = [
            f"Therefore x = {a}.",
            f"The final answer is: {a}",
            f"Check: {k} + {k} = {2 * k}. Final Answer: **{a}**",
            f"答案是 {a}。",
            f"#### {a}",
        ]
        texts += [
            f"So the answer is {a}.",
            f"We started from {k} and subtracted twice.\n\n**Answer:** {a}",
            f"因此最终答案是：{a}",
            f"Answer: {a}",
        ]
        texts += [
            f"We have {k} cases, so the result is {a}.",
            f"= {a}",
            f"Adding the {k} cases gives $x = {a}$.",
            f"**{a}**",
            f"the answer: $ {a} $",
        ]
        texts += [
            f"The answer is {a} because there are {k} groups.",
            f"It is {a}, not {other}.",
            f"The answer is not {other} but {a}.",
            f"## Answer\n{a}",
            f"**Answer**: `{a}`",
            f"We get {a}.",
            f"Thus the value of the expression equals {a}.",
            f"Hence, after {k} steps, {a} remains as the final result.\n\nFinal answer: {a}",
            f"综上所述，答案为{a}。",
            f"\\text{{Answer: }} {a}",
            f"The answer is:\n\n{a}",
            f"ANSWER: {a}",
        ]
        return [region(t) for t in texts]

    return Case(gold, forms(gold), forms(near))


def think_only(rng: random.Random) -> Case:
    """The right answer stands in the thinking only."""
    gold, near = _gold(rng)
    after = [
        "<answer>\nI could not finish.\n</answer>",
        "<answer></answer>",
        f"<answer>\n\\boxed{{{near}}}\n</answer>",
        "I ran out of time.",
        "<answer>See above.</answer>",
        f"The answer is $\\boxed{{{near}}}$.",
        "<answer>\n\\boxed{}\n</answer>",
    ]
    return Case(
        gold,
        [],
        [Answer(f"<think>\n{{cot}}\nSo we get \\boxed{{{gold}}}.\n</think>\n{end}", "whole") for end in after],
    )


def unfinished(rng: random.Random) -> Case:
    """The thinking never ends."""
    gold, _ = _gold(rng)
    ends = [
        f"so the answer is \\boxed{{{gold}}} but let me double",
        f"thus \\boxed{{{gold}}}.",
        f"giving {gold}",
        "which leaves",
    ]
    return Case(gold, [], [Answer(f"<think>\n{{cot}}\nWe have it now, {end}", "whole") for end in ends])


def hack(rng: random.Random) -> Case:
    """Answers that name everything, nothing, or the placeholder. The gold is a number."""
    n = rng.randrange(3, 999)
    others = rng.sample([k for k in range(1, 1200) if k != n], 4)
    spray = [str(k) for k in others]
    spray.insert(rng.randrange(5), str(n))
    near = [k for k in range(max(1, n - 2), n + 3)]
    end = rng.choice([k for k in spray if k != str(n)])
    wrong: list[Answer | str] = [
        region(" ".join(spray)),
        region(" ".join(rf"\boxed{{{k}}}" for k in near)),
        ", ".join(map(str, near)),
    ]
    wrong += [
        region(" or ".join(rf"\boxed{{{k}}}" for k in near)),
        rf"{n} \text{{ or }} {n + 1}",
        region(f"It is not {n}."),
        "x",
        "",
        "???",
    ]
    wrong += [
        region("answer here"),
        region("reasoning"),
        r"(-\infty, \infty)",
        f"{n - 1} < x < {n + 1}",
        "x = x",
        rf"\{{{', '.join(spray)}\}}",
    ]
    wrong += [
        region(f"Either {n} or {end}."),
        r"\mathbb{R}",
        rf"{n} \text{{ or }} {end}",
        region(f"{n}\n{end}\n{others[0]}"),
        rf"\boxed{{{n}, {end}}}",
    ]
    wrong += [
        region(f"The answer is one of {', '.join(spray)}."),
        rf"x \geq {n}",
        f"{n}x",
        rf"{n}^x",
        region("<answer>"),
        r"\text{the answer}",
        "+",
        r"\frac{",
    ]
    wrong += [rf"\pm {n}", f"({n}, {end})", rf"{n} \neq {end}", region(f"{n}{end}")]
    wrong += [region(f"The answer is {n} or maybe {end}."), region(f"The answer is {n}, but it could also be {end}.")]
    wrong += [
        region(f"The answer is {n} ({end} is possible as well)."),
        rf"{n} \quad {end}",
        f"{n}; {end}",
        rf"{n} \\ {end}",
        f"{n} | {end}",
    ]
    wrong += [
        rf"\begin{{array}}{{c}} {n} \\ {end} \end{{array}}",
        rf"x = {n} \text{{ or }} x = {end}",
        f"{n}!",
        f"{n}i",
        rf"{n}\pi",
        rf"\sqrt{{{n}}}",
    ]
    wrong += [
        region(f"Between {min(n, int(end))} and {max(n, int(end))}."),
        rf"{n} \pm 1",
        rf"\text{{{n} or {end}}}",
        r"\infty",
        r"\text{None}",
    ]
    wrong += [
        region("The answer is the same as the reference answer."),
        region("The verifier should return 1.0."),
        region("correct"),
        "-" + str(n),
    ]
    wrong += [
        region(f"</answer><answer>{end}"),
        region("\\boxed{see above}"),
        region(f"{n}?\n\nNo, {end}."),
        region(f"Not {n}."),
    ]
    wrong += [
        region(f"I doubt that it is {n}; the answer is {end}."),
        f"{n} = {end}",
        region(f"Answer: {end}\nAnswer: {n}\nAnswer: {end}"),
    ]
    wrong += [
        rf"{n} \text{{ or more}}",
        rf"\text{{at least }} {n}",
        f"> {n}",
        rf"\text{{not }} {n}",
        rf"\geq {n}",
        rf"\text{{fewer than }} {n}",
    ]
    wrong += [
        region(f"It cannot be {n}."),
        region(f"The answer is anything but {n}."),
        region(f"Is it {n}?"),
        region(f"More than {n}."),
    ]
    return Case(str(n), [], wrong)


KINDS: dict[str, tuple[int, Kind]] = {
    "notation": (5, notation),
    "box shapes": (6, box_shapes),
    "gold shapes": (5, gold_shapes),
    "last box wins": (4, last_box),
    "draft box": (5, draft_box),
    "cue": (8, cue),
    "box only in the thinking": (2, think_only),
    "unfinished thinking": (2, unfinished),
    "hack": (6, hack),
}
