"""Expressions and equations: polynomials, rational functions, several variables, identities, lines and circles."""

from __future__ import annotations

import random
import re
from fractions import Fraction
from math import gcd

from bench.rewards.kinds.base import (
    Case,
    Kind,
    multiply,
    nonzero,
    poly,
    poly_terms,
    power,
    shuffled,
    signed_sum,
    term,
)


def _factor(root: int, symbol: str) -> str:
    return rf"({signed_sum([symbol, term(-root, '')])})" if root else symbol


def polynomial(rng: random.Random) -> Case:
    x = rng.choice("xxxxtnaykm")
    roots = sorted(nonzero(rng, -9, 9) for _ in range(rng.choice([2, 2, 2, 3])))
    lead = rng.choice([1, 1, 1, 2, 3, -1, 5])
    coefficients = [lead]
    for r in roots:
        coefficients = multiply(coefficients, [-r, 1])
    factors = [_factor(r, x) for r in roots]
    if len(roots) == 2 and roots[0] == roots[1]:
        factors = [factors[0] + "^2"]
    front = "" if lead == 1 else "-" if lead == -1 else str(lead)
    expanded = poly(coefficients, x)
    right = [front + "".join(factors), front + "".join(shuffled(rng, factors)), expanded, expanded]
    right += [signed_sum(shuffled(rng, poly_terms(coefficients, x))), f"f({x}) = {expanded}"]
    right.append(
        rf"{front}{factors[0]} \cdot {''.join(factors[1:])}" if len(factors) > 1 else rf"\left({expanded}\right)"
    )
    right.append("".join([front, *factors]).replace("(", r"\left(").replace(")", r"\right)"))
    right.append(re.sub(r"\^(\d)", r"^{\1}", expanded))
    changed, at = coefficients[:], rng.randrange(len(coefficients))
    changed[at] += rng.choice([1, -1, 2])
    flipped = [c if i != at else -c for i, c in enumerate(coefficients)]
    wrong = [poly(changed, x), front + "".join(_factor(r if i else -r, x) for i, r in enumerate(roots))]
    if coefficients[at]:
        wrong.append(poly(flipped, x))
    if factors[0].endswith("^2"):
        wrong.append(front + factors[0][:-2])  # the square is missing
    return Case(rng.choice([right[0], expanded]), right, wrong)


def rational(rng: random.Random) -> Case:
    x, a, b, c = rng.choice("xxxtns"), nonzero(rng, -9, 9), nonzero(rng, -9, 9), rng.randrange(1, 6)
    while c * b == a:  # the quotient would be constant
        a = nonzero(rng, -9, 9)
    top, bottom = poly([a, c], x), poly([b, 1], x)  # (cx + a)/(x + b) = c + (a - cb)/(x + b)
    k = rng.randrange(2, 6)
    right = [
        rf"\frac{{{top}}}{{{bottom}}}",
        rf"\frac{{{poly([k * a, k * c], x)}}}{{{poly([k * b, k], x)}}}",
        f"({top})/({bottom})",
    ]
    right += [rf"\frac{{{poly([-a, -c], x)}}}{{{poly([-b, -1], x)}}}", rf"\dfrac{{{top}}}{{{bottom}}}"]
    rest = a - c * b
    right.append(rf"{c} {'-' if rest < 0 else '+'} \frac{{{abs(rest)}}}{{{bottom}}}")
    wrong = [
        rf"\frac{{{bottom}}}{{{top}}}",
        rf"\frac{{{poly([a + 1, c], x)}}}{{{bottom}}}",
        rf"\frac{{{top}}}{{{poly([b + 1, 1], x)}}}",
    ]
    return Case(right[0], right, wrong)


def several_variables(rng: random.Random) -> Case:
    shape = rng.randrange(4)
    x, y, z = rng.sample(list("abcnpqxyz"), 3)  # no m: 3cm is a length
    if shape == 0:  # a product: the order of its factors is free
        k, exponents = rng.choice([1, 2, 3, 4, 5, 6, 12]), [2, rng.randrange(1, 4), rng.randrange(1, 4)]
        front = "" if k == 1 else str(k)

        def product(e: list[int], order: list[str]) -> str:
            return front + "".join(power(v, e[[x, y, z].index(v)]) for v in order)

        names = [x, y, z]
        near = [exponents[0] + 1, *exponents[1:]]
        right = [
            product(exponents, names),
            product(exponents, shuffled(rng, names)),
            product(exponents, shuffled(rng, names)),
        ]
        right.append(front + r" \cdot ".join(power(v, exponents[i]) for i, v in enumerate(names)))
        wrong = [product(near, names), f"{k + 1}{''.join(power(v, exponents[i]) for i, v in enumerate(names))}"]
        wrong.append(signed_sum([front + power(x, exponents[0]), power(y, exponents[1]), power(z, exponents[2])]))
        return Case(right[0], right, wrong)
    a, b, c, d = (nonzero(rng, -6, 6) for _ in range(4))
    if shape == 1:  # (ax + by)(cx + dy)
        factors = [f"({signed_sum([term(a, x), term(b, y)])})", f"({signed_sum([term(c, x), term(d, y)])})"]

        def square(p: int, q: int, r: int) -> list[str]:
            return [t for t in (term(p, f"{x}^2"), term(q, x + y), term(r, f"{y}^2")) if t]

        terms = square(a * c, a * d + b * c, b * d)
        right = ["".join(factors), "".join(factors[::-1]), signed_sum(terms), signed_sum(shuffled(rng, terms))]
        wrong = [signed_sum(square(a * c, a * d + b * c + 1, b * d)), signed_sum(square(a * c, a * d + b * c, -b * d))]
        return Case(rng.choice([right[0], right[2]]), right, wrong)
    if shape == 2:  # a linear form over a number
        k = rng.randrange(2, 9)
        right = [
            rf"\frac{{{signed_sum([term(a, x), term(b, y)])}}}{{{k}}}",
            signed_sum([term(Fraction(a, k), x), term(Fraction(b, k), y)]),
        ]
        right += [
            rf"\frac{{{signed_sum([term(b, y), term(a, x)])}}}{{{k}}}",
            rf"\frac{{1}}{{{k}}}({signed_sum([term(a, x), term(b, y)])})",
        ]
        wrong = [
            rf"\frac{{{signed_sum([term(a, x), term(-b, y)])}}}{{{k}}}",
            rf"\frac{{{signed_sum([term(a, x), term(b, y)])}}}{{{k + 1}}}",
        ]
        wrong.append(signed_sum([term(Fraction(a, k), x), term(b, y)]))
        return Case(right[0], right, wrong)
    right = [
        rf"\sqrt{{{x}^2+{y}^2}}",
        rf"\sqrt{{{y}^2+{x}^2}}",
        f"({x}^2+{y}^2)^{{1/2}}",
        rf"({x}^2+{y}^2)^{{\frac{{1}}{{2}}}}",
    ]
    right = [term(abs(a), r) if abs(a) > 1 else r for r in right]
    wrong = [f"{x}+{y}", rf"\sqrt{{{x}^2-{y}^2}}", f"{x}^2+{y}^2"]
    return Case(right[0], right, [term(abs(a), f"({w})") for w in wrong] if abs(a) > 1 else wrong)


def identity(rng: random.Random) -> Case:
    """Expressions that are equal for every value, not only by expanding."""
    x, k, shape = rng.choice("xxt"), rng.randrange(2, 12), rng.randrange(6)
    n = rng.choice("nnkm")
    if shape == 0:
        right = [rf"{k}\sin^2 {x}", rf"{k}-{k}\cos^2 {x}", rf"{k}(1-\cos^2 {x})", rf"{k}\sin^2({x})"]
        wrong = [rf"{k}\cos^2 {x}", rf"{k}\sin {x}", rf"{k}-\cos^2 {x}"]
    elif shape == 1:
        right = [rf"{k}\sin 2{x}", rf"{2 * k}\sin {x} \cos {x}", rf"{k}\sin(2{x})", rf"{2 * k}\cos {x} \sin {x}"]
        wrong = [rf"{2 * k}\sin {x}", rf"{k}\sin {x} \cos {x}", rf"{k}\cos 2{x}"]
    elif shape == 2:
        right = [
            rf"{k}\cos 2{x}",
            rf"{2 * k}\cos^2 {x}-{k}",
            rf"{k}-{2 * k}\sin^2 {x}",
            rf"{k}(\cos^2 {x} - \sin^2 {x})",
        ]
        wrong = [rf"{2 * k}\cos {x}", rf"{k}-\sin^2 {x}", rf"{2 * k}\cos^2 {x}+{k}"]
    elif shape == 3:
        b = rng.choice([2, 3, 5])
        right = [rf"{b}^{{{n}+{k}}}", rf"{b**k} \cdot {b}^{{{n}}}", rf"{b}^{{{k}}} \cdot {b}^{n}", rf"{b}^{{{k}+{n}}}"]
        wrong = [rf"{b}^{{{n}+{k + 1}}}", rf"{b}^{{{n}}}+{b**k}", rf"{b}^{{{k}{n}}}"]
    elif shape == 4:
        right = [
            rf"\frac{{{n}({n}+{k})}}{{2}}",
            rf"\frac{{{n}^2+{k}{n}}}{{2}}",
            rf"\frac{{1}}{{2}}{n}({n}+{k})",
            rf"\frac{{{n}^2}}{{2}}+\frac{{{k}{n}}}{{2}}",
        ]
        wrong = [rf"\frac{{{n}({n}-{k})}}{{2}}", rf"\frac{{{n}({n}+{k + 1})}}{{2}}", rf"\frac{{{n}^2+{k}}}{{2}}"]
    else:
        right = [
            rf"{x}e^{{{k}{x}}}+e^{{{k}{x}}}",
            rf"({x}+1)e^{{{k}{x}}}",
            rf"e^{{{k}{x}}}({x}+1)",
            rf"e^{{{k}{x}}}(1+{x})",
        ]
        wrong = [rf"({x}-1)e^{{{k}{x}}}", rf"({x}+1)e^{{{k + 1}{x}}}", rf"{x}e^{{{k}{x}}}+1"]
    return Case(right[0], right, wrong)


def equation(rng: random.Random) -> Case:
    shape = rng.randrange(5)
    if shape < 3:  # a line
        while True:
            a, b, c = nonzero(rng, -9, 9), nonzero(rng, -9, 9), nonzero(rng, -20, 20)
            if gcd(a, b, c) == 1:
                break

        def line(p: int, q: int, r: int) -> list[str]:
            k = rng.choice([2, 3, -1, -2])
            slope, rest = Fraction(-p, q), Fraction(-r, q)
            explicit = signed_sum([term(slope, "x"), term(rest, "")])
            return [
                f"{signed_sum([term(p, 'x'), term(q, 'y'), term(r, '')])}=0",
                f"y = {explicit}",
                f"{explicit} = y",
                f"{signed_sum([term(k * p, 'x'), term(k * q, 'y'), term(k * r, '')])} = 0",
                f"{signed_sum([term(p, 'x'), term(q, 'y')])} = {-r}",
                f"{term(q, 'y')} = {signed_sum([term(-p, 'x'), term(-r, '')])}",
            ]

        near = rng.choice([(a, b, c + 1), (a, -b, c), (a + 1 or 2, b, c), (a, b, -c)])
        right = line(a, b, c)
        return Case(right[rng.choice([0, 0, 1, 4])], right, line(*near))
    if shape == 3:  # a circle, centre and radius or expanded
        h, k, r = nonzero(rng, -9, 9), nonzero(rng, -9, 9), rng.randrange(2, 15)

        def circle(p: int, q: int, s: int) -> list[str]:
            left = f"{_factor(p, 'x')}^2+{_factor(q, 'y')}^2"
            inner = signed_sum(["x^2", "y^2", term(-2 * p, "x"), term(-2 * q, "y"), term(p * p + q * q - s, "")])
            return [
                f"{left}={s}",
                f"{left} - {s} = 0",
                f"{inner} = 0",
                f"{_factor(q, 'y')}^2+{_factor(p, 'x')}^2 = {s}",
            ]

        near = rng.choice([(h, k, r), (-h, k, r * r), (h, -k, r * r), (h, k, r * r + 1)])
        right = circle(h, k, r * r)
        return Case(right[rng.choice([0, 0, 2])], right, circle(*near))
    a, b, c = nonzero(rng, -5, 5), nonzero(rng, -9, 9), nonzero(rng, -12, 12)  # a parabola, or a recurrence
    if rng.random() < 0.6:

        def parabola(p: int, q: int, r: int) -> list[str]:
            terms = poly_terms([r, q, p], "x")
            return [
                f"y = {signed_sum(terms)}",
                f"y = {signed_sum(shuffled(rng, terms))}",
                f"{signed_sum(terms)} - y = 0",
                f"f(x) = {signed_sum(terms)}",
            ]

        near = rng.choice([(a, b, c + 1), (a, -b, c), (-a, b, c)])
        right = parabola(a, b, c)
        if rng.random() < 0.7:
            return Case(right[0], right[:3], parabola(*near)[:3])
        bare = [text.removeprefix("y = ") for text in (right[0], parabola(*near)[0])]  # f(x) = 2x^2, or 2x^2
        return Case(right[3], [right[3], bare[0]], [parabola(*near)[3], bare[1]])
    k = rng.choice([2, 3, 4, 5])
    d = rng.randrange(1, 15)
    right = [
        rf"a_n = {k}a_{{n-1}} + {d}",
        rf"a_n = {d} + {k}a_{{n-1}}",
        rf"a_{{n}} = {k} a_{{n-1}} + {d}",
        rf"a_n - {k}a_{{n-1}} = {d}",
    ]
    wrong = [rf"a_n = {k}a_{{n-1}} + {d + 1}", rf"a_n = {k + 1}a_{{n-1}} + {d}", rf"a_n = {k}a_{{n-2}} + {d}"]
    return Case(right[0], right, wrong)


KINDS: dict[str, tuple[int, Kind]] = {
    "polynomial": (9, polynomial),
    "rational function": (3, rational),
    "several variables": (5, several_variables),
    "identity": (3, identity),
    "equation": (5, equation),
}
