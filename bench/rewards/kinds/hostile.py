"""Answers that cost the verifier much time or memory, or that its parser cannot survive. None of them is right, but
for `equal tower`."""

from __future__ import annotations

import random

from bench.rewards.kinds.base import Answer, Case, Kind, region


def tower(rng: random.Random) -> Case:
    b = [rng.randrange(3, 99) for _ in range(5)]
    forms = [
        f"{b[0]}^{{{b[1]}^{{{b[2]}^{{{b[3]}}}}}}}",
        "**".join(map(str, b)),
        f"{b[0]}^{{10^{{{b[1]}}}}}",
        f"10^{{{10 ** rng.randrange(8, 12) + b[0]}}}",
    ]
    forms += [
        rf"\frac{{1}}{{{b[0]}^{{{b[1]}^{{{b[2]}}}}}}}",
        rf"{b[0]}^{{{b[1]}^{{{b[2]}}}}} - {b[3]}",
        rf"\sqrt{{{b[0]}^{{{b[1]}^{{{b[2]}}}}}}}",
    ]
    return Case(str(b[0]), [], forms)


def nested_tower(rng: random.Random) -> Case:
    a, k = rng.randrange(3, 12), rng.randrange(1, 50)
    tower = rf"{a}^{{\left({a}^{{\left({a}^{{\left({a}^{a}\right)}}\right)}} - {k}\right)}}"
    return Case(str(rng.randrange(2, 9)), [], [rf"\frac{{{tower} - 1}}{{{rng.randrange(2, 30)}}}"])


def equal_tower(rng: random.Random) -> Case:
    text = f"{rng.randrange(3, 99)}^{{{rng.randrange(3, 99)}^{{{rng.randrange(10, 99)}}}}}"
    return Case(text, [text], [])


def combinatorial(rng: random.Random) -> Case:
    n = rng.randrange(10**7, 10**9)
    forms = [
        rf"\binom{{{n}}}{{{n // 2}}}",
        f"{n}!",
        rf"\frac{{{n}!}}{{{n - 9}!}}",
        rf"{rng.randrange(300, 999)}!!!",
        f"({rng.randrange(30, 99)}!)!",
    ]
    return Case(str(rng.randrange(2, 99)), [], forms)


def long_sum(rng: random.Random) -> Case:
    n = rng.randrange(10**8, 10**10)
    forms = [
        rf"\sum_{{k=1}}^{{{n}}}\frac{{1}}{{k}}",
        rf"\prod_{{k=1}}^{{{n}}}\left(1+\frac{{1}}{{k^2}}\right)",
        rf"\sum_{{k=1}}^{{{n}}} \sin k",
    ]
    forms += [
        rf"\int_0^{{{n}}} e^{{-x^x}} \sin(x^5)\,dx",
        rf"\lim_{{n\to\infty}} \sum_{{k=1}}^{{n}} \frac{{\sin(k^2)}}{{k+{n}}}",
    ]
    return Case(str(rng.randrange(2, 99)), [], forms)


def expansion(rng: random.Random) -> Case:
    """Comparing needs an expansion that does not fit."""
    n = rng.randrange(400, 4000)
    k = rng.randrange(2, 9)
    return Case(
        rf"(x+1)^{{{n}}}+{k}",
        [],
        [
            rf"(x+1)^{{{n}}}+{k + 1}",
            rf"(x+y+z+w)^{{{n}}}",
            rf"(1+x)^{{{n}}}+\sin^{{{n}}}(x)+{k}",
            rf"\prod_{{k=1}}^{{{n}}}(x+k)",
        ],
    )


def huge_number(rng: random.Random) -> Case:
    n = rng.randrange(5000, 20_000)
    digits = "".join(rng.choices("123456789", k=n))
    e = rng.randrange(10**6, 10**12)
    forms = [
        digits,
        f"{digits[:20]}e{e}",
        rf"{digits[:3]} \times 10^{{{e}}}",
        rf"10^{{-{e}}}",
        f"0.{digits}",
        rf"{digits[: n // 2]}^{{{n}}}",
    ]
    return Case(str(rng.randrange(2, 99)), [], [*forms, rf"\frac{{{digits[:4000]}}}{{{digits[-4000:]}}}"])


def deep(rng: random.Random) -> Case:
    n, k = rng.randrange(150, 2500), rng.randrange(10, 99)
    forms = [
        "(" * n + str(k) + ")" * n,
        "{" * n + str(k) + "}" * n,
        r"\sqrt{" * n + str(k) + "}" * n,
        r"\frac{1}{1+" * n + str(k) + "}" * n,
    ]
    forms += [r"\left(" * n + str(k) + r"\right)" * n, "-" * n + str(k), r"\frac{" * n + str(k)]
    return Case(str(k + 1 if k % 2 else k + 2), [], forms)


def long_text(rng: random.Random) -> Case:
    n = rng.randrange(300, 1500)
    many = " ".join(rf"\boxed{{{k}}}" for k in range(n))
    items = ", ".join(str(rng.randrange(10**6)) for _ in range(n))
    product = "".join(f"(x-{rng.randrange(1, 99)})" for _ in range(n))
    total = "+".join(rf"\frac{{{rng.randrange(1, 99)}}}{{x+{rng.randrange(1, 999)}}}" for _ in range(n // 6))
    walls = "$" * n + str(n) + r"\[" * n + r"\begin{pmatrix}" * 40
    wrong: list[Answer | str] = [
        region(many),
        items,
        product,
        total,
        region(walls),
        rf"\{{{items}\}}",
        region("= " * n * 4),
        "1 " * n,
    ]
    return Case(str(n + 1), [], wrong)


def hard_equality(rng: random.Random) -> Case:
    """Small expressions on which simplification is slow."""
    a = rng.sample(range(2, 60), 6)
    roots = "+".join(rf"\sqrt{{{k}}}" for k in a)
    cubes = "+".join(rf"\sqrt[{i + 3}]{{{k}}}" for i, k in enumerate(a))
    trig = "+".join(rf"\sin^{{{k}}}({i + 2}x)\cos^{{{k + 1}}}(x^{{{i + 1}}})" for i, k in enumerate(a))
    gold = rng.choice([roots, cubes, trig])
    return Case(
        gold,
        [],
        [
            rf"\sqrt{{({roots})^2+10^{{-30}}}}",
            rf"\left({cubes}\right)^{{{a[0]}}}",
            rf"\frac{{{trig}}}{{{trig}+1}}",
            rf"\log_{{{roots}}}({cubes})",
        ],
    )


KINDS: dict[str, tuple[int, Kind]] = {
    "tower": (3, tower),
    "nested tower": (1, nested_tower),
    "equal tower": (1, equal_tower),
    "huge factorial": (1, combinatorial),
    "long sum": (1, long_sum),
    "expansion": (1, expansion),
    "huge number": (1, huge_number),
    "deep nesting": (1, deep),
    "long text": (1, long_text),
    "hard equality": (1, hard_equality),
}
