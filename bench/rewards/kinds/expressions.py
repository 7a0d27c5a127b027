"""The same value by other operations: unevaluated arithmetic, radicals, exact with its rounding, functions, conics."""

from __future__ import annotations

import random
from fractions import Fraction
from math import comb, gcd

from bench.rewards.kinds.base import (
    Answer,
    Case,
    Kind,
    decimal,
    frac,
    nonzero,
    plain,
    poly,
    region,
    rounded,
    signed_sum,
    term,
)

_SQUAREFREE = [2, 3, 5, 6, 7, 10, 11, 13, 14, 15]


def arithmetic(rng: random.Random) -> Case:
    """A number, and how it came about."""
    shape, a, b, c = rng.randrange(7), rng.randrange(3, 40), rng.randrange(2, 13), rng.randrange(2, 20)

    def written(p: int) -> tuple[str, Fraction]:
        match shape:
            case 0:
                return rf"\frac{{{p} \cdot {2 * b}}}{{2}}", Fraction(p * b)
            case 1:
                return rf"2^{{{b}}} - {p}", Fraction(2**b - p)
            case 2:
                return rf"{p}^2 + {b}^2 - {c}", Fraction(p * p + b * b - c)
            case 3:
                return rf"\sum_{{k=1}}^{{{p}}} k", Fraction(p * (p + 1), 2)
            case 4:
                return rf"\binom{{{p + 2}}}{{2}} \cdot {c}", Fraction(comb(p + 2, 2) * c)
            case 5:
                return rf"\frac{{1}}{{{p}}} + \frac{{1}}{{{p + c}}}", Fraction(1, p) + Fraction(1, p + c)
            case _:
                return rf"{c} - \left|-{p}\right| \cdot {b}", Fraction(c - p * b)

    def forms(p: int) -> list[Answer | str]:
        text, value = written(p)
        return [text, text, f"{text} = {frac(value)}", frac(value), rf"N = {text}"]

    gold = frac(written(a)[1])
    return Case(gold, forms(a), forms(a + rng.choice([1, 2])))


def radicals(rng: random.Random) -> Case:
    n, a, b, shape = rng.choice(_SQUAREFREE), rng.randrange(2, 13), rng.randrange(2, 9), rng.randrange(8)
    r = rf"\sqrt{{{n}}}"
    if shape == 0:
        right = [rf"{n}{r}", rf"{n}^{{3/2}}", rf"{n}^{{\frac{{3}}{{2}}}}", rf"\sqrt{{{n**3}}}", rf"{n}^{{1.5}}"]
        wrong = [rf"{n}^{{2/3}}", rf"{n}^{{3}}", rf"{n + 1}{r}"]
    elif shape == 1:
        right = [r, rf"\sqrt[4]{{{n * n}}}", rf"{n}^{{\frac{{1}}{{2}}}}", rf"{n}^{{0.5}}", rf"\frac{{{n}}}{{{r}}}"]
        wrong = [rf"\sqrt[4]{{{n}}}", rf"{n}^{{\frac{{1}}{{4}}}}", rf"\frac{{1}}{{{r}}}"]
    elif shape == 2:
        d = b if gcd(b, n) == 1 else n + 1
        right = [
            rf"\frac{{\sqrt{{{n * d}}}}}{{{d}}}",
            rf"\sqrt{{\frac{{{n}}}{{{d}}}}}",
            rf"\frac{{{r}}}{{\sqrt{{{d}}}}}",
        ]
        wrong = [rf"\sqrt{{\frac{{{d}}}{{{n}}}}}", rf"\frac{{{r}}}{{{d}}}", rf"\frac{{\sqrt{{{n * d}}}}}{{{n}}}"]
    elif shape == 3:
        right = [rf"{a * a + n}+{2 * a}{r}", rf"({a}+{r})^2", rf"\left({r}+{a}\right)^2", rf"{2 * a}{r}+{a * a + n}"]
        wrong = [rf"{a * a + n}", rf"({a}-{r})^2", rf"{a * a + n}+{a}{r}"]
    elif shape == 4:
        right = [
            rf"{a}{r}",
            rf"\sqrt{{{(a + b) ** 2 * n}}}-\sqrt{{{b * b * n}}}",
            rf"{a + b}{r} - {b}{r}",
            rf"{a} {r}",
        ]
        wrong = [rf"\sqrt{{{(a + b) ** 2 * n - b * b * n}}}", rf"{a + b}{r} - {b + 1}{r}", rf"{a + b}{r}"]
    elif shape == 5:
        m = a * a + rng.randrange(1, 2 * a)  # between two squares
        s, t = rf"\sqrt{{{m}}}", rf"\sqrt{{{m + 1}}}"
        right = [f"{t}+{s}", f"{s}+{t}", rf"\frac{{1}}{{{t}-{s}}}"]
        wrong = [f"{t}-{s}", rf"\sqrt{{{2 * m + 1}}}", rf"\frac{{1}}{{{t}+{s}}}"]
    elif shape == 6:
        right = [str(a * a), rf"{a**3}^{{2/3}}", rf"\sqrt[3]{{{a**6}}}", rf"\left({a**3}\right)^{{\frac{{2}}{{3}}}}"]
        wrong = [rf"{a**3}^{{3/2}}", rf"{a**3}^{{1/3}}", rf"\sqrt[3]{{{a**5}}}"]
    else:  # a complex quotient
        z = signed_sum([str(a), term(b, "i")])
        right = [z, rf"\frac{{{a * a + b * b}}}{{{a}-{b}i}}", rf"{a} + \sqrt{{{-b * b}}}", f"{a}+{b}i"]
        wrong = [rf"\frac{{{a * a + b * b}}}{{{a}+{b}i}}", f"{a}-{b}i", rf"{a} - \sqrt{{{b * b}}}"]
    return Case(right[0], right, wrong)


def exact_and_rounded(rng: random.Random) -> Case:
    """An exact value with its decimal behind it; the decimal alone is not the value."""
    shape, a, n = rng.randrange(3), rng.randrange(2, 40), rng.choice(_SQUAREFREE)
    third = Fraction(rng.randrange(1, 60), rng.choice([3, 7, 9, 11, 13]))
    while decimal(third) is not None:
        third += Fraction(1, 3)

    def value(k: int) -> tuple[str, str]:
        if shape == 0:
            return frac(third + k - a), rounded(third + k - a, 3)
        if shape == 1:
            return rf"{k}\sqrt{{{n}}}", f"{k * n**0.5:.2f}"
        return rf"{k}\pi", f"{k * 3.14159265358979:.2f}"

    def forms(k: int) -> list[Answer | str]:
        exact, about = value(k)
        forms: list[Answer | str] = [rf"{exact} \approx {about}", rf"x = {exact} \approx {about}", exact]
        return [
            *forms,
            region(rf"The answer is ${exact}$ (about {about})."),
            region(rf"\boxed{{{exact}}} $\approx {about}$"),
        ]

    exact, about = value(a)
    return Case(exact, forms(a), [*forms(a + 1), about, rf"\approx {about}", plain(about)])


def functions(rng: random.Random) -> Case:
    """Functions of x or n as calculus and sequences write them."""
    x, n, k, shape = rng.choice("xxt"), rng.choice("nnm"), rng.randrange(2, 13), rng.randrange(13)
    j = k + 1
    if shape == 0:
        right = [
            f"2{x}+{k}",
            rf"\frac{{dy}}{{d{x}}} = 2{x}+{k}",
            f"{k}+2{x}",
            f"f'({x}) = 2{x}+{k}",
            f"2\\left({x}+\\frac{{{k}}}{{2}}\\right)",
        ]
        wrong = [f"2{x}-{k}", f"f'({x}) = 2{x}+{j}", f"2({x}+{k})"]
    elif shape == 1:
        right = [
            rf"\frac{{{x}^{{{j}}}}}{{{j}}} + C",
            rf"\frac{{1}}{{{j}}}{x}^{{{j}}} + C",
            rf"C + \frac{{{x}^{{{j}}}}}{{{j}}}",
        ]
        wrong = [rf"\frac{{{x}^{{{j}}}}}{{{k}}} + C", rf"{j}{x}^{{{j}}} + C", rf"\frac{{{x}^{{{k}}}}}{{{j}}} + C"]
    elif shape == 2:
        right = [rf"{k}\sqrt{{{x}}}", rf"{k}{x}^{{1/2}}", rf"{k}{x}^{{\frac{{1}}{{2}}}}", rf"{k} \cdot \sqrt{{{x}}}"]
        wrong = [rf"{k}{x}", rf"\sqrt{{{k}{x}}}", rf"{j}\sqrt{{{x}}}"]
    elif shape == 3:
        right = [rf"\frac{{{k}}}{{{x}^2}}", rf"{k}{x}^{{-2}}", rf"{k} \cdot \frac{{1}}{{{x}^2}}", f"{k}/{x}^2"]
        wrong = [rf"\frac{{{k}}}{{{x}}}", rf"{k}{x}^2", rf"\frac{{1}}{{{k}{x}^2}}"]
    elif shape == 4:
        right = [rf"{k}\tan {x}", rf"\frac{{{k}\sin {x}}}{{\cos {x}}}", rf"{k} \cdot \frac{{\sin {x}}}{{\cos {x}}}"]
        wrong = [rf"\frac{{{k}\cos {x}}}{{\sin {x}}}", rf"{k}\sin {x}", rf"\tan {k}{x}"]
    elif shape == 5:
        right = [rf"{k}\sec^2 {x}", rf"\frac{{{k}}}{{\cos^2 {x}}}", rf"{k}(1+\tan^2 {x})", rf"{k}+{k}\tan^2 {x}"]
        wrong = [rf"{k}\sec {x}", rf"\frac{{{k}}}{{\sin^2 {x}}}", rf"{k}+\tan^2 {x}"]
    elif shape == 6:
        right = [rf"e^{{{x}+{k}}}", rf"e^{{{k}}}e^{{{x}}}", rf"e^{{{k}}} \cdot e^{x}", rf"\exp({x}+{k})"]
        wrong = [rf"e^{{{k}{x}}}", rf"e^{x}+e^{{{k}}}", rf"e^{{{x}+{j}}}"]
    elif shape == 7:
        right = [rf"\ln({x}^2+{k})", rf"\ln({k}+{x}^2)", rf"\ln\left({x}^2+{k}\right)", rf"\log_e({x}^2+{k})"]
        wrong = [rf"2\ln {x}+{k}", rf"\ln({x}^2-{k})", rf"\ln({x}+{k})"]
    elif shape == 8:
        right = [
            rf"\frac{{(-1)^{n}}}{{{k}^{n}}}",
            rf"\left(-\frac{{1}}{{{k}}}\right)^{n}",
            rf"(-1)^{n} \cdot {k}^{{-{n}}}",
        ]
        wrong = [rf"-\frac{{1}}{{{k}^{n}}}", rf"\left(\frac{{1}}{{{k}}}\right)^{n}", rf"(-{k})^{n}"]
    elif shape == 9:
        right = [
            rf"\frac{{{k}^{n}-1}}{{2}}",
            rf"\frac{{1}}{{2}}({k}^{n}-1)",
            rf"\frac{{{k}^{n}}}{{2}}-\frac{{1}}{{2}}",
        ]
        wrong = [rf"{k}^{n}-\frac{{1}}{{2}}", rf"\frac{{{k}^{n}+1}}{{2}}", rf"\frac{{{k}^{{{n}-1}}-1}}{{2}}"]
    elif shape == 10:
        right = [
            rf"\frac{{{k}}}{{{n}({n}+{k})}}",
            rf"\frac{{1}}{{{n}}}-\frac{{1}}{{{n}+{k}}}",
            rf"\frac{{{k}}}{{{n}^2+{k}{n}}}",
        ]
        wrong = [
            rf"\frac{{1}}{{{n}({n}+{k})}}",
            rf"\frac{{1}}{{{n}}}+\frac{{1}}{{{n}+{k}}}",
            rf"\frac{{{k}}}{{{n}^2+{k}}}",
        ]
    elif shape == 11:
        right = [rf"|{x}-{k}|", rf"|{k}-{x}|", rf"\left|{x}-{k}\right|", rf"\lvert {x}-{k} \rvert"]
        wrong = [f"{x}-{k}", rf"|{x}+{k}|", rf"|{x}|-{k}"]
    else:
        right = [rf"\log_{{{k}}} {x}", rf"\frac{{\ln {x}}}{{\ln {k}}}", rf"\log_{{{k}}}({x})"]
        wrong = [rf"\ln {x}", rf"\frac{{\ln {k}}}{{\ln {x}}}", rf"\log_{{{j}}} {x}"]
    return Case(right[0], right, wrong)


def conic(rng: random.Random) -> Case:
    """Lines, planes and conics in the forms that have names."""
    shape, a, b = rng.randrange(5), rng.randrange(2, 9), rng.randrange(2, 9)
    h, k = nonzero(rng, -9, 9), nonzero(rng, -9, 9)
    shifted = [signed_sum([v, term(-s, "")]) for v, s in (("x", h), ("y", k))]
    if shape == 0:
        b = b if a != b else b + 1

        def ellipse(p: int, q: int) -> list[str]:
            return [
                rf"\frac{{x^2}}{{{p * p}}}+\frac{{y^2}}{{{q * q}}}=1",
                rf"\frac{{y^2}}{{{q * q}}}+\frac{{x^2}}{{{p * p}}}=1",
                f"{q * q}x^2+{p * p}y^2={p * p * q * q}",
                rf"\left(\frac{{x}}{{{p}}}\right)^2+\left(\frac{{y}}{{{q}}}\right)^2=1",
            ]

        right, wrong = ellipse(a, b), [*ellipse(b, a), rf"\frac{{x^2}}{{{a * a}}}-\frac{{y^2}}{{{b * b}}}=1"]
    elif shape == 1:  # through (h, k) with slope a

        def line(slope: int) -> list[str]:
            return [
                f"y = {poly([k - slope * h, slope], 'x')}",
                f"{shifted[1]} = {slope}({shifted[0]})",
                f"{poly([k - slope * h, slope], 'x')} - y = 0",
            ]

        right, wrong = line(a), line(a + 1)
    elif shape == 2:  # intercepts

        def intercepts(p: int, q: int) -> list[str]:
            return [rf"\frac{{x}}{{{p}}}+\frac{{y}}{{{q}}}=1", f"{q}x+{p}y={p * q}", f"{q}x+{p}y-{p * q}=0"]

        right, wrong = intercepts(a, b), intercepts(a, b + 1)
    elif shape == 3:  # a plane

        def plane(p: int, q: int, r: int, s: int, m: int) -> str:
            return f"{signed_sum([term(m * p, 'x'), term(m * q, 'y'), term(m * r, 'z')])} = {m * s}"

        right = [plane(a, h, b, k, m) for m in (1, 2, -1)]
        right.append(f"{signed_sum([term(a, 'x'), term(h, 'y'), term(b, 'z'), term(-k, '')])} = 0")
        wrong = [plane(a, -h, b, k, 1), plane(a, h, b, k + 1, 1), plane(a, h, b + 1, k, 2)]
    else:  # a parabola by its vertex

        def vertex(p: int, q: int) -> list[str]:
            return [
                f"y = {poly([a * p * p + q, -2 * a * p, a], 'x')}",
                signed_sum([f"y = {a}({signed_sum(['x', term(-p, '')])})^2", term(q, "")]),
            ]

        right, wrong = vertex(h, k), [*vertex(-h, k), *vertex(h, k + 1)]
    return Case(rng.choice([right[0], right[0], right[1]]), right, wrong)


def probability(rng: random.Random) -> Case:
    """Counts over counts."""
    n = rng.randrange(5, 14)
    k = rng.randrange(2, n - 1)
    v = Fraction(comb(n, k), 2**n)
    right: list[Answer | str] = [
        frac(v),
        rf"\frac{{\binom{{{n}}}{{{k}}}}}{{2^{{{n}}}}}",
        rf"\frac{{{comb(n, k)}}}{{{2**n}}}",
        plain(str(v)),
    ]
    right += [rf"P = {frac(v)}", rf"\binom{{{n}}}{{{k}}}\left(\frac{{1}}{{2}}\right)^{{{n}}}", decimal(v) or frac(v)]
    right.append(rf"\frac{{{n}!}}{{{k}!{n - k}! \cdot {2**n}}}")
    wrong = [
        frac(1 - v),
        rounded(v, 2),
        rf"\frac{{\binom{{{n}}}{{{k}}}}}{{2^{{{n + 1}}}}}",
        rf"\frac{{{comb(n, k) + 1}}}{{{2**n}}}",
        frac(v * 2),
    ]
    if 1 - v == v:
        wrong = wrong[1:]
    return Case(frac(v), right, wrong)


KINDS: dict[str, tuple[int, Kind]] = {
    "arithmetic": (6, arithmetic),
    "radicals": (4, radicals),
    "exact and rounded": (4, exact_and_rounded),
    "functions": (5, functions),
    "conic": (3, conic),
    "probability": (4, probability),
}
