"""Exact constants: surds, multiples of pi, complex numbers, logarithms, angle functions, powers, factorials."""

from __future__ import annotations

import random
from fractions import Fraction
from math import comb, factorial, isqrt

from bench.rewards.kinds.base import (
    Answer,
    Case,
    Kind,
    decimal,
    frac,
    fraction,
    nonzero,
    plain,
    rounded,
    shuffled,
    signed_sum,
    term,
)

_SQUAREFREE = [2, 3, 5, 6, 7, 10, 11, 13, 14, 15, 17, 19, 21, 22, 23, 26, 29, 30, 31, 33]


def _root(n: int) -> str:
    return rf"\sqrt{{{n}}}"


def _pi(v: Fraction) -> str:
    r"""`\frac{2\pi}{3}`."""
    top = r"\pi" if v.numerator == 1 else rf"{v.numerator}\pi"
    return top if v.denominator == 1 else rf"\frac{{{top}}}{{{v.denominator}}}"


def _surd_value(a: int, n: int, places: int) -> str:
    """a * sqrt(n), rounded."""
    return rounded(Fraction(isqrt(a * a * n * 10**30), 10**15), places)


def root(rng: random.Random) -> Case:
    n, shape = rng.choice(_SQUAREFREE), rng.randrange(6)
    a = rng.randrange(2, 20)
    if shape == 0:  # 2 sqrt 2

        def one(k: int, m: int) -> list[Answer | str]:
            return [
                rf"{k}{_root(m)}",
                _root(k * k * m),
                rf"{k} \cdot {_root(m)}",
                rf"\frac{{{k * m}}}{{{_root(m)}}}",
                rf"{k} \cdot {m}^{{1/2}}",
                plain(f"{k}√{m}"),
                rf"{k}\sqrt{m}" if m < 10 else rf"{k}\,{_root(m)}",
            ]

        near = rng.choice([(a + 1, n), (a, n + 1 if n + 1 in _SQUAREFREE else n * a * a), (a * n, n)])
        gold = rng.choice([rf"{a}{_root(n)}", rf"{a}{_root(n)}", _root(a * a * n)])
        return Case(gold, one(a, n), [*one(*near), str(a * n), _surd_value(a, n, 3)])
    if shape == 1:  # sqrt(2)/3, rationalised or not
        d = rng.randrange(2, 16)
        right = [rf"\frac{{{_root(n)}}}{{{d}}}", rf"\frac{{{n}}}{{{d}{_root(n)}}}", rf"\frac{{1}}{{{d}}}{_root(n)}"]
        right.append(rf"\sqrt{{\frac{{{n}}}{{{d * d}}}}}")
        wrong = [rf"\frac{{{_root(n)}}}{{{d + 1}}}", rf"\frac{{{d}}}{{{_root(n)}}}", rf"\sqrt{{\frac{{{n}}}{{{d}}}}}"]
        return Case(right[0], right, wrong)
    b, c = nonzero(rng, -12, 12), nonzero(rng, -9, 9)
    if shape in (2, 3):  # a + b sqrt n
        r = _root(n)
        terms = [str(b), term(c, r)]
        d = rng.choice([2, 3, 4])
        right = [
            signed_sum(terms),
            signed_sum(terms[::-1]),
            rf"\frac{{{signed_sum([str(b * d), term(c * d, r)])}}}{{{d}}}",
        ]
        norm = b * b - c * c * n  # rationalising the other way
        if norm:
            right.append(rf"\frac{{{norm}}}{{{signed_sum([str(b), term(-c, r)])}}}")
        pairs = [(b, -c), (-b, c), (b + 1, c), (b, c * n), (c, b)]
        p, q = rng.choice([x for x in pairs if x != (b, c)])
        return Case(right[0], right, [signed_sum([term(p, ""), term(q, r)]), signed_sum([term(q, r), term(p, "")])])
    if shape == 4:  # sqrt(m) + sqrt(k) = sqrt(m + k + 2 sqrt(mk))
        m, k = rng.sample(_SQUAREFREE, 2)
        right = [f"{_root(m)}+{_root(k)}", f"{_root(k)}+{_root(m)}", rf"\sqrt{{{m + k}+2{_root(m * k)}}}"]
        wrong = [
            _root(m + k),
            f"{_root(m)}-{_root(k)}",
            rf"\sqrt{{{m + k}+{_root(m * k)}}}",
            f"{_root(m)}+{_root(k + 1)}",
        ]
        return Case(right[0], right, wrong)
    m = rng.choice([2, 3, 4, 5, 6, 7, 9, 10])  # a cube root
    right = [
        rf"{a}\sqrt[3]{{{m}}}",
        rf"\sqrt[3]{{{a**3 * m}}}",
        rf"{a} \cdot {m}^{{1/3}}",
        rf"{a} \cdot {m}^{{\frac{{1}}{{3}}}}",
    ]
    wrong = [rf"{a}\sqrt{{{m}}}", rf"{a + 1}\sqrt[3]{{{m}}}", rf"\sqrt[3]{{{a * m}}}"]
    return Case(right[0], right, wrong)


def pi_multiple(rng: random.Random) -> Case:
    if rng.random() < 0.25:  # 4 pi + 2 sqrt 3
        a, b, n = rng.randrange(1, 20), nonzero(rng, -9, 9), rng.choice(_SQUAREFREE)
        terms = [term(a, r"\pi"), term(b, _root(n))]
        wrong = [term(a, r"\pi"), term(-b, _root(n))]
        right = [signed_sum(terms), signed_sum(terms[::-1])]
        return Case(right[0], right, [signed_sum(wrong), signed_sum([term(a + 1, r"\pi"), terms[1]])])
    v = rng.choice(
        [Fraction(rng.randrange(2, 400)), Fraction(rng.randrange(2, 40)), fraction(rng, 60, 25), fraction(rng, 60, 25)]
    )

    def forms(w: Fraction) -> list[Answer | str]:
        if w.denominator == 1:
            return [_pi(w), _pi(w), rf"{w} \pi", rf"\pi \cdot {w}", plain(f"{w}π"), rf"\frac{{{2 * w}\pi}}{{2}}"]
        return [
            _pi(w),
            rf"{frac(w)}\pi",
            rf"\frac\pi{w.denominator}"
            if w.numerator == 1 and w.denominator < 10
            else _pi(w).replace("frac", "tfrac"),
            rf"\frac{{{w.numerator}}}{{{w.denominator}}} \pi",
            plain(f"{'' if w.numerator == 1 else w.numerator}π/{w.denominator}"),
        ]

    near = rng.choice([v + 1, 2 * v, 1 / v if v != 1 else v + 2, v * v if v != 1 else v + 3])
    approximate = rounded(v * Fraction(314159265358979, 10**14), 2)
    return Case(str(forms(v)[0]), forms(v), [*forms(near), frac(v), approximate])


def complex_number(rng: random.Random) -> Case:
    a, b = nonzero(rng, -12, 12), nonzero(rng, -12, 12)

    def forms(x: int, y: int, i: str = "i") -> list[Answer | str]:
        d = rng.choice([2, 3])
        real, imaginary = term(x, ""), term(y, i)
        both = signed_sum([real, imaginary])
        scaled = signed_sum([term(d * x, ""), term(d * y, i)])
        return [both, signed_sum([imaginary, real]), f"z = {both}", rf"\frac{{{scaled}}}{{{d}}}"]

    c = nonzero(rng, -4, 4)  # a product of two: (p + qi)(1 + ci)
    norm = 1 + c * c
    right = [*forms(a, b), *forms(a, b, r"\mathrm{i}")[:1]]
    if (a + b * c) % norm == 0 and (b - a * c) % norm == 0:
        p, q = (a + b * c) // norm, (b - a * c) // norm
        if p and q:
            right += [rf"({signed_sum([str(p), term(q, 'i')])})({signed_sum(['1', term(c, 'i')])})"] * 3
    near = [x for x in [(a, -b), (-a, b), (b, a), (a + 1, b), (a, b + 1)] if x != (a, b) and x[1]]
    return Case(signed_sum([str(a), term(b, "i")]), right, forms(*rng.choice(near)))


def logarithm(rng: random.Random) -> Case:
    shape = rng.randrange(4)
    b, x = rng.choice([2, 3, 5, 6, 7, 10]), rng.choice([11, 13, 17, 19, 23, 29, 31, 37, 41, 43])
    if shape == 0:
        k = rng.choice([2, 3])
        right = [
            rf"\log_{{{b}}} {x}",
            rf"\frac{{\ln {x}}}{{\ln {b}}}",
            rf"\log_{{{b**k}}} {x**k}",
            rf"\frac{{1}}{{\log_{{{x}}} {b}}}",
        ]
        return Case(right[0], right, [rf"\log_{{{x}}} {b}", rf"\frac{{\ln {b}}}{{\ln {x}}}", rf"\log_{{{b}}} {x + 1}"])
    if shape == 1:
        k = rng.randrange(2, 6)
        right = [
            rf"{k}\ln {x}",
            rf"\ln {x**k}",
            rf"\ln({x**k})",
            rf"\ln {x} + {k - 1}\ln {x}" if k > 2 else rf"\ln {x} + \ln {x}",
        ]
        return Case(right[0], right, [rf"\ln {k * x}", rf"{k + 1}\ln {x}", rf"(\ln {x})^{{{k}}}"])
    if shape == 2:
        a = rng.randrange(2, 12)
        right = [rf"\ln {a * x}", rf"\ln {a} + \ln {x}", rf"\ln {x} + \ln {a}", rf"\ln({a} \cdot {x})"]
        return Case(
            right[rng.randrange(2)], right, [rf"\ln {a} \cdot \ln {x}", rf"\ln {a + x}", rf"\ln {x} - \ln {a}"]
        )
    k = rng.randrange(2, 9)
    right = [
        rf"{k} - \frac{{1}}{{e^{{{k}}}}}",
        rf"{k} - e^{{-{k}}}",
        rf"{k} - \frac{{1}}{{\mathrm{{e}}^{{{k}}}}}",
        rf"-e^{{-{k}}} + {k}",
    ]
    right.append(rf"\frac{{{k} e^{{{k}}} - 1}}{{e^{{{k}}}}}")
    wrong = [rf"{k} - e^{{{k}}}", rf"{k} + \frac{{1}}{{e^{{{k}}}}}", rf"{k} - \frac{{1}}{{e^{{{k + 1}}}}}"]
    return Case(right[0], right, wrong)


# angle in degrees -> sine; the cosine of the complement
_SINES = {
    15: r"\frac{\sqrt{6}-\sqrt{2}}{4}",
    18: r"\frac{\sqrt{5}-1}{4}",
    30: r"\frac{1}{2}",
    45: r"\frac{\sqrt{2}}{2}",
    54: r"\frac{\sqrt{5}+1}{4}",
    60: r"\frac{\sqrt{3}}{2}",
    75: r"\frac{\sqrt{6}+\sqrt{2}}{4}",
}


_TRIPLES = [(3, 4, 5), (5, 12, 13), (8, 15, 17), (7, 24, 25), (20, 21, 29), (9, 40, 41), (12, 35, 37), (11, 60, 61)]


def trigonometry(rng: random.Random) -> Case:
    if rng.random() < 0.45:
        a, k = rng.choice(list(_SINES)), rng.randrange(1, 13)
        factor = "" if k == 1 else str(k)
        other = rng.choice([x for x in _SINES if x != a])
        v, w = Fraction(a, 180), Fraction(90 - a, 180)
        right = [rf"{factor}\sin {a}^\circ", rf"{factor}\cos {90 - a}^\circ", rf"{factor}\sin {_pi(v)}"]
        gold = _SINES[a] if k == 1 else frac(Fraction(k, 2)) if a == 30 else rf"{k} \cdot {_SINES[a]}"
        right += [rf"{factor}\cos\left({_pi(w)}\right)", gold, gold]
        wrong = [rf"{factor}\sin {other}^\circ", rf"{factor}\cos {90 - other}^\circ", rf"{k + 1}\sin {a}^\circ"]
        return Case(gold, right, wrong)
    p, q = rng.randrange(1, 12), rng.randrange(12, 25)
    f, g = frac(Fraction(p, q)), frac(Fraction(q, p))
    if rng.random() < 0.5:
        right = [
            rf"\arctan {f}",
            rf"\tan^{{-1}} {f}",
            rf"\arctan\left({f}\right)",
            rf"\frac{{\pi}}{{2}} - \arctan {g}",
        ]
        wrong = [rf"\arctan {g}", rf"\arcsin {f}", rf"-\arctan {f}", rf"\frac{{1}}{{\tan {f}}}"]
        return Case(right[0], right, wrong)
    a, b, c = rng.choice(_TRIPLES)
    a, b = rng.sample([a, b], 2)
    right = [rf"\arcsin \frac{{{a}}}{{{c}}}", rf"\arccos \frac{{{b}}}{{{c}}}", rf"\arctan \frac{{{a}}}{{{b}}}"]
    right.append(rf"\sin^{{-1}}\left(\frac{{{a}}}{{{c}}}\right)")
    wrong = [rf"\arcsin \frac{{{b}}}{{{c}}}", rf"\arccos \frac{{{a}}}{{{c}}}", rf"\arctan \frac{{{b}}}{{{a}}}"]
    return Case(rng.choice(right), right, wrong)


def powers(rng: random.Random) -> Case:
    if rng.random() < 0.2:  # 1/8 = 2^{-3}
        b, n = rng.choice([2, 3, 4, 5, 6, 7, 10]), rng.randrange(2, 7)
        same = [
            f"{b}^{{-{n}}}",
            rf"\frac{{1}}{{{b}^{n}}}",
            rf"\frac{{1}}{{{b**n}}}",
            rf"\left(\frac{{1}}{{{b}}}\right)^{{{n}}}",
        ]
        near = [f"{b}^{{-{n + 1}}}", f"{b}^{n}", f"-{b}^{{{n}}}", rf"\frac{{1}}{{{b**n + 1}}}"]
        return Case(rng.choice([same[2], decimal(Fraction(1, b**n)) or same[2]]), same, near)
    b, n = rng.choice([2, 3, 5, 6, 7, 10, 11, 12]), rng.randrange(3, 200)

    def forms(e: int) -> list[Answer | str]:
        forms: list[Answer | str] = [
            f"{b}^{{{e}}}",
            rf"{b} \cdot {b}^{{{e - 1}}}",
            rf"\frac{{{b}^{{{e + 2}}}}}{{{b * b}}}",
        ]
        if e % 2 == 0:
            forms.append(f"{b * b}^{{{e // 2}}}")
        if b == 12:
            forms.append(rf"2^{{{2 * e}}} \cdot 3^{{{e}}}")
        return forms + ([str(b**e)] * 2 if b**e < 10**25 else [])

    wrong = [*forms(n + 1), *forms(n - 1), rf"{b} \cdot {n}"] + ([f"{n}^{{{b}}}"] if n**b != b**n else [])
    wrong += [str(b**n + 1), str(b**n - 1)] if b**n < 10**25 else [rf"{b}^{{{n}}} + 1", rf"{b}^{{{n}}} - 1"]
    return Case(f"{b}^{{{n}}}", forms(n), wrong)


def combinatorial(rng: random.Random) -> Case:
    if rng.random() < 0.35:
        n = rng.randrange(4, 26)
        right = [
            f"{n}!",
            str(factorial(n)),
            rf"{n} \cdot {n - 1}!",
            rf"\frac{{{n + 1}!}}{{{n + 1}}}",
            f"{factorial(n):,}",
        ]
        wrong = [f"{n - 1}!", str(factorial(n) + 1), str(factorial(n - 1)), f"{n}"]
        return Case(rng.choice([right[0], right[1]]), right, wrong)
    n = rng.randrange(7, 60)
    k = rng.randrange(2, n // 2)
    value = comb(n, k)
    right = [
        rf"\binom{{{n}}}{{{k}}}",
        rf"\binom{{{n}}}{{{n - k}}}",
        rf"\frac{{{n}!}}{{{k}!\,{n - k}!}}",
        rf"\dbinom{{{n}}}{{{k}}}",
    ]
    right += [str(value)] * 3 + [rf"\binom{{{n - 1}}}{{{k}}} + \binom{{{n - 1}}}{{{k - 1}}}"]
    wrong = [rf"\binom{{{n}}}{{{k + 1}}}", rf"\binom{{{n + 1}}}{{{k}}}", rf"\frac{{{n}!}}{{{n - k}!}}", str(value + 1)]
    return Case(rng.choice([right[0], str(value)]), right, wrong)


def tiny(rng: random.Random) -> Case:
    shape = rng.randrange(4)
    if shape == 0:
        n = rng.randrange(60, 1500)
        return Case(
            rf"\frac{{1}}{{{n}!}}",
            [rf"\frac{{1}}{{{n}!}}", rf"\frac{{1}}{{{n} \cdot {n - 1}!}}", rf"\frac{{{n + 1}}}{{{n + 1}!}}"],
            [rf"\frac{{1}}{{{n + 1}!}}", rf"\frac{{1}}{{{n - 1}!}}", rf"\frac{{2}}{{{n}!}}", "0"],
        )
    if shape == 1:
        b, n = rng.choice([2, 3, 5, 7]), rng.randrange(40, 900)
        right = [
            rf"\frac{{1}}{{{b}^{{{n}}}}}",
            rf"{b}^{{-{n}}}",
            rf"\left(\frac{{1}}{{{b}}}\right)^{{{n}}}",
            rf"\frac{{{b}}}{{{b}^{{{n + 1}}}}}",
        ]
        wrong = [rf"\frac{{1}}{{{b}^{{{n - 1}}}}}", rf"{b}^{{-{n + 1}}}", rf"\frac{{{b}}}{{{b}^{{{n}}}}}", "0"]
        return Case(right[0], right, wrong)
    if shape == 2:
        d, e = rng.randrange(1, 10), rng.randrange(7, 15)
        zeros = "0" * (e - 1)
        right = [f"0.{zeros}{d}", rf"{d} \times 10^{{-{e}}}", rf"{d} \cdot 10^{{-{e}}}"]
        wrong = [f"0.{zeros}{d % 9 + 1}", f"0.0{zeros}{d}", rf"{d} \times 10^{{-{e - 1}}}", "0"]
        return Case(right[rng.randrange(2)], [*right, plain(f"{d}e-{e}")], wrong)
    n = rng.randrange(40, 1000)
    right = [
        rf"\frac{{2^{{{n}}}+1}}{{3\cdot 2^{{{n + 1}}}}}",
        rf"\frac{{1}}{{6}} + \frac{{1}}{{3 \cdot 2^{{{n + 1}}}}}",
        rf"\frac{{2^{{{n + 1}}}+2}}{{3\cdot 2^{{{n + 2}}}}}",
    ]
    wrong = [rf"\frac{{2^{{{n}}}-1}}{{3\cdot 2^{{{n + 1}}}}}", r"\frac{1}{6}", rf"\frac{{1}}{{3\cdot 2^{{{n + 1}}}}}"]
    return Case(right[0], right, wrong)


def limit_value(rng: random.Random) -> Case:
    """Infinity and sums that mix several constants."""
    if rng.random() < 0.15:
        return Case(r"\infty", [r"\infty", r"+\infty", plain("∞")], [r"-\infty", str(rng.randrange(10**6)), r"\pi"])
    a, b, c = rng.randrange(1, 15), nonzero(rng, -9, 9), nonzero(rng, -9, 9)
    s, t = rng.sample([r"\pi", r"\sqrt{2}", r"\sqrt{3}", "e", r"\ln 2", r"\ln 3"], 2)
    terms = [term(a, s), term(b, t), str(c)]
    wrong = [[terms[0], term(-b, t), terms[2]], [terms[0], terms[1], str(-c)], [term(a + 1, s), *terms[1:]]]
    right = [signed_sum(shuffled(rng, terms)) for _ in range(3)] + [signed_sum(terms)]
    return Case(signed_sum(terms), right, [signed_sum(w) for w in wrong])


KINDS: dict[str, tuple[int, Kind]] = {
    "root": (12, root),
    "pi": (6, pi_multiple),
    "complex": (4, complex_number),
    "logarithm": (4, logarithm),
    "trigonometry": (3, trigonometry),
    "power": (4, powers),
    "factorial, binomial": (4, combinatorial),
    "tiny": (2, tiny),
    "constants": (2, limit_value),
}
