"""Answers of several parts: intervals, unions, sets, tuples, vectors, matrices, plus-minus, lists, sequences."""

from __future__ import annotations

import random
from fractions import Fraction

from bench.rewards.kinds.base import (
    Answer,
    Case,
    Kind,
    bracket,
    decimal,
    frac,
    fraction,
    nonzero,
    plain,
    region,
    shuffled,
    signed_sum,
    term,
)


def _point(rng: random.Random) -> Fraction:
    return rng.choice(
        [Fraction(nonzero(rng, -20, 20)), Fraction(rng.randrange(0, 30)), fraction(rng, 20, 9), -fraction(rng, 9, 7)]
    )


def _points(rng: random.Random, count: int) -> list[Fraction]:
    found: set[Fraction] = set()
    while len(found) < count:
        found.add(_point(rng))
    return sorted(found)


def _spell(rng: random.Random, v: Fraction) -> str:
    """A number as an end point may be written."""
    return rng.choice([frac(v), frac(v), decimal(v) or frac(v)])


def interval(rng: random.Random) -> Case:
    x = rng.choice("xxxtyap")
    low, high = _points(rng, 2)
    if rng.random() < 0.5:  # a ray
        closed, up = rng.random() < 0.5, rng.random() < 0.5

        def ray(v: Fraction, c: bool, u: bool) -> list[Answer | str]:
            p = _spell(rng, v)
            text = f"{'[' if c else '('}{p},\\infty)" if u else f"(-\\infty,{p}{']' if c else ')'}"
            sign, back = (
                (r"\geq" if c else ">", r"\leq" if c else "<") if u else (r"\leq" if c else "<", r"\geq" if c else ">")
            )
            spaced = text.replace(",", ", ")
            forms: list[Answer | str] = [text, spaced, bracket(spaced), rf"{x} {sign} {p}", rf"{p} {back} {x}"]
            forms += [rf"{x} \in {text}", rf"{x} {sign.replace('eq', 'e')} {p}", rf"\{{{x} \mid {x} {sign} {p}\}}"]
            return forms + [plain(f"{x} {'≥' if u else '≤'} {p}")] * (c and "\\" not in p)

        right = ray(low, closed, up)
        wrong = [*ray(low, not closed, up), *ray(low, closed, not up), *ray(low + 1, closed, up)]
        return Case(str(right[rng.choice([0, 0, 1, 3])]), right, wrong)
    left, right_closed = rng.random() < 0.5, rng.random() < 0.5

    def between(p: Fraction, q: Fraction, c: bool, d: bool) -> list[Answer | str]:
        a, b = _spell(rng, p), _spell(rng, q)
        text = f"{'[' if c else '('}{a},{b}{']' if d else ')'}"
        spaced = text.replace(",", ", ")
        less = {True: r"\leq", False: "<"}
        more = {True: r"\geq", False: ">"}
        chain = f"{a} {less[c]} {x} {less[d]} {b}"
        forms: list[Answer | str] = [
            text,
            spaced,
            bracket(spaced),
            chain,
            chain.replace(r"\leq", r"\le"),
            rf"{x} \in {text}",
        ]
        return [*forms, f"{b} {more[d]} {x} {more[c]} {a}"]

    gold = between(low, high, left, right_closed)
    near = rng.choice(
        [
            (low, high, not left, right_closed),
            (low, high, left, not right_closed),
            (low, high, not left, not right_closed),
            (low, high + 1, left, right_closed),
            (low - 1, high, left, right_closed),
        ]
    )
    return Case(str(gold[rng.choice([0, 0, 1, 3])]), between(low, high, left, right_closed), between(*near))


def union(rng: random.Random) -> Case:
    x = rng.choice("xxt")
    a, b = _points(rng, 2)
    p, q = frac(a), frac(b)
    if rng.random() < 0.4:  # all but a point
        right = [
            rf"(-\infty,{p})\cup({p},\infty)",
            rf"(-\infty, {p}) \cup ({p}, +\infty)",
            rf"{x} \neq {p}",
            rf"{x} \ne {p}",
        ]
        right += [
            rf"\mathbb{{R}} \setminus \{{{p}\}}",
            rf"({p},\infty)\cup(-\infty,{p})",
            rf"{x} < {p} \text{{ or }} {x} > {p}",
        ]
        wrong = [
            r"(-\infty,\infty)",
            rf"{x} \neq {q}",
            rf"(-\infty,{p}]\cup({p},\infty)",
            rf"({p},\infty)",
            rf"(-\infty,{q})\cup({q},\infty)",
        ]
        wrong += [r"\mathbb{R}", rf"\mathbb{{R}} \setminus \{{{q}\}}"]
        return Case(right[0], right, wrong)
    closed = rng.random() < 0.5

    def outside(u: str, v: str, c: bool) -> list[str]:
        lower, upper = f"(-\\infty,{u}{']' if c else ')'}", f"{'[' if c else '('}{v},\\infty)"
        less, more = (r"\leq", r"\geq") if c else ("<", ">")
        return [
            rf"{lower}\cup{upper}",
            rf"{upper} \cup {lower}",
            rf"{x} {less} {u} \text{{ or }} {x} {more} {v}",
            rf"{bracket(lower)} \cup {bracket(upper)}",
            rf"{x} \in {lower} \cup {upper}",
        ]

    right = outside(p, q, closed)
    wrong = [
        *outside(p, q, not closed),
        *outside(p, frac(b + 1), closed),
        f"({p},{q})",
        right[0].partition(r"\cup")[0],
    ]
    return Case(right[rng.choice([0, 0, 2])], right, wrong)


def _items(rng: random.Random) -> list[str]:
    """Distinct numbers as a list holds them."""
    count = rng.choice([2, 2, 3, 3, 4])
    values = _points(rng, count) if rng.random() < 0.4 else [Fraction(n) for n in rng.sample(range(-30, 100), count)]
    return [frac(v) for v in sorted(values)]


def _altered(rng: random.Random, items: list[str]) -> list[list[str]]:
    """Near misses: one left out, one added, one changed."""
    extra = next(str(n) for n in rng.sample(range(100, 400), 8) if str(n) not in items)
    at = rng.randrange(len(items))
    return [items[:at] + items[at + 1 :], [*items, extra], [*items[:at], extra, *items[at + 1 :]]]


def number_set(rng: random.Random) -> Case:
    items = _items(rng)
    again = items[:]
    again.insert(rng.randrange(len(items)), rng.choice(items))

    def forms(of: list[str]) -> list[Answer | str]:
        text = ", ".join(shuffled(rng, of))
        return [
            rf"\{{{text}\}}",
            rf"\left\{{{text}\right\}}",
            rf"\{{{', '.join(of)}\}}",
            text,
            rf"\lbrace {text} \rbrace",
        ]

    wrong = [form for near in _altered(rng, items) for form in forms(near)]
    return Case(rf"\{{{','.join(items)}\}}", [*forms(items), *forms(items), rf"\{{{', '.join(again)}\}}"], wrong)


def tuples(rng: random.Random) -> Case:
    count = rng.choice([2, 2, 2, 3])
    values = [rng.choice([Fraction(nonzero(rng, -30, 60)), fraction(rng, 20, 9)]) for _ in range(count)]
    values = values if len(set(values)) == count else [Fraction(k) for k in rng.sample(range(1, 60), count)]
    names = list("xyz" if rng.random() < 0.6 else "abc")

    def forms(of: list[Fraction]) -> list[Answer | str]:
        text = ", ".join(_spell(rng, v) for v in of)
        named = [f"{n} = {_spell(rng, v)}" for n, v in zip(names, of, strict=False)]
        return [
            f"({text})",
            f"({text})",
            rf"\left({text}\right)",
            ", ".join(named),
            rf"({','.join(names[:count])}) = ({text})",
        ]

    near = rng.choice(
        [values[::-1], [values[0] + 1, *values[1:]], [*values[:-1], -values[-1]], [*values, Fraction(1)]]
    )
    if rng.random() < 0.25:  # several points: their order is free, the order inside is not
        other = [v + k for v, k in zip(values, (1, 3, 4), strict=False)]
        pair = [f"({', '.join(map(frac, v))})" for v in (values, other)]
        swapped = f"({', '.join(map(frac, values[::-1]))})"
        wrong = [f"{swapped}, {pair[1]}", pair[0], f"{pair[0]}, ({', '.join(map(frac, [other[0] + 1, *other[1:]]))})"]
        return Case(
            ",".join(pair), [", ".join(pair), ", ".join(pair[::-1]), rf"{pair[1]} \text{{ and }} {pair[0]}"], wrong
        )
    longer = [f"({', '.join(map(frac, near))})"]
    return Case(f"({', '.join(map(frac, values))})", forms(values), forms(near) if len(near) == count else longer)


def _matrix(rows: list[list[Fraction]], kind: str, rng: random.Random | None = None) -> str:
    spell = (lambda v: _spell(rng, v)) if rng else frac
    body = r" \\ ".join(" & ".join(spell(v) for v in row) for row in rows)
    return rf"\begin{{{kind}}} {body} \end{{{kind}}}"


def vector(rng: random.Random) -> Case:
    count = rng.choice([2, 3, 3])
    values = [
        rng.choice([Fraction(rng.randrange(-20, 30)), Fraction(rng.randrange(-9, 10)), fraction(rng, 9, 7)])
        for _ in range(count)
    ]
    if values == values[::-1]:
        values[0] += 1
    near = rng.choice(
        [values[::-1], [values[0] + 1, *values[1:]], [-v for v in values] if any(values) else [Fraction(1)] * count]
    )
    if rng.random() < 0.35:

        def angled(v: list[Fraction]) -> list[Answer | str]:
            text = ", ".join(_spell(rng, x) for x in v)
            return [rf"\langle {text} \rangle", rf"\left\langle {text} \right\rangle", f"({text})"]

        return Case(str(angled(values)[0]), angled(values), angled(near))

    def columns(v: list[Fraction]) -> list[Answer | str]:
        return [_matrix([[x] for x in v], k, rng) for k in ("pmatrix", "bmatrix", "pmatrix")]

    return Case(_matrix([[v] for v in values], "pmatrix"), columns(values), columns(near))


def matrix(rng: random.Random) -> Case:
    height, width = rng.choice([(2, 2), (2, 2), (2, 2), (3, 3), (2, 3)])
    rows = [
        [Fraction(rng.randrange(-9, 13), rng.choice([1, 1, 1, 1, 2, 4])) for _ in range(width)] for _ in range(height)
    ]
    turned = [list(column) for column in zip(*rows, strict=True)]
    changed = [row[:] for row in rows]
    changed[rng.randrange(height)][rng.randrange(width)] += rng.choice([1, -2])
    near = [m for m in (turned, changed, rows[::-1]) if m != rows]
    wrong = [_matrix(m, kind) for m in near for kind in ("pmatrix", "bmatrix")]
    right = [_matrix(rows, kind, rng) for kind in ("pmatrix", "bmatrix", "bmatrix")]
    right.append(_matrix(rows, "pmatrix").replace(" & ", "&").replace(r" \\ ", r"\\"))
    return Case(_matrix(rows, rng.choice(["pmatrix", "pmatrix", "bmatrix"])), right, wrong)


def plus_minus(rng: random.Random) -> Case:
    x = rng.choice("xxyt")
    if rng.random() < 0.5:  # both signs of one number
        v = rng.choice([Fraction(rng.randrange(1, 60)), fraction(rng, 20, 9)])
        root = rng.choice([None, None, rng.choice([2, 3, 5, 6, 7, 10, 11])])
        p = term(v, rf"\sqrt{{{root}}}") if root else frac(v)
        other = term(v + 1, rf"\sqrt{{{root}}}") if root else frac(v + 1)

        def forms(u: str) -> list[Answer | str]:
            return [
                rf"\pm {u}",
                rf"{x} = \pm {u}",
                rf"\{{-{u}, {u}\}}",
                f"{u}, -{u}",
                rf"{x} = {u} \text{{ or }} {x} = -{u}",
                rf"-{u} \text{{ and }} {u}",
                rf"\pm{u}",
            ]

        return Case(
            rng.choice([rf"\pm {p}", rf"\pm {p}", rf"x = \pm {p}"]),
            forms(p),
            [*forms(other), p, f"-{p}", rf"{x} = {p}"],
        )
    a, b, n = nonzero(rng, -9, 9), rng.randrange(1, 6), rng.choice([2, 3, 5, 6, 7, 10, 11, 13, 14, 15])

    def pair(c: int, d: int, m: int) -> list[Answer | str]:
        r = term(d, rf"\sqrt{{{m}}}")
        return [
            rf"{c} \pm {r}",
            rf"{x} = {c} \pm {r}",
            f"{c}+{r}, {c}-{r}",
            rf"\{{{c}-{r}, {c}+{r}\}}",
            rf"{x} = {c}+{r} \text{{ or }} {x} = {c}-{r}",
        ]

    near = rng.choice([(a + 1, b, n), (-a, b, n), (a, b + 1, n)])
    wrong = [
        *pair(*near),
        signed_sum([str(a), term(b, rf"\sqrt{{{n}}}")]),
        signed_sum([str(a), term(-b, rf"\sqrt{{{n}}}")]),
    ]
    return Case(str(pair(a, b, n)[0]), pair(a, b, n), wrong)


def find_all(rng: random.Random) -> Case:
    x = rng.choice("xxnkyp")
    items = _items(rng)
    if rng.random() < 0.2:
        items = [
            rf"{k}\sqrt{{{n}}}" for k, n in zip(rng.sample(range(2, 12), 2), rng.sample([2, 3, 5, 7], 2), strict=True)
        ]

    def forms(of: list[str]) -> list[Answer | str]:
        order = shuffled(rng, of)
        head = ", ".join(order[:-1])
        text = ", ".join(order)
        forms: list[Answer | str] = [
            text,
            ",".join(of),
            rf"{x} = {text}",
            ", ".join(f"{x}_{i + 1} = {item}" for i, item in enumerate(order)),
            rf"\text{{ or }} {x} = ".join([f"{x} = {order[0]}", *order[1:]]),
        ]
        if head:
            forms += [
                rf"{head} \text{{ and }} {order[-1]}",
                rf"{head}, \text{{ and }} {order[-1]}",
                f"{head}, and {order[-1]}",
            ]
            if "\\" not in text:
                forms += [plain(f"{head} and {order[-1]}"), region(f"The solutions are {head} and {order[-1]}.")]
        return forms

    gold = rng.choice(
        [
            ", ".join(items),
            ", ".join(items),
            rf"\text{{ or }} {x} = ".join([f"{x} = {items[0]}", *items[1:]]),
            rf"{', '.join(items[:-1])} \text{{ and }} {items[-1]}",
            rf"{', '.join(items[:-1])}, \text{{ and }} {items[-1]}",
            f"{x} = {', '.join(items)}",
        ]
    )
    return Case(gold, forms(items), [form for near in _altered(rng, items) for form in forms(near)])


def sequence(rng: random.Random) -> Case:
    a, d = rng.randrange(1, 12), rng.randrange(2, 9)

    def forms(first: int, step: int, last: str, count: int = 3) -> list[Answer | str]:
        head = [str(first + i * step) for i in range(count)]
        return [", ".join([*head, dots, last]) for dots in (r"\ldots", r"\dots", r"\cdots", "...")]

    last = signed_sum([term(d, "n"), term(a - d, "")])
    other = signed_sum([term(d, "n"), term(a, "")])
    back = signed_sum([term(a - d, ""), term(d, "n")])
    if rng.random() < 0.4:  # ends in a number
        k = rng.randrange(10, 60)
        last, other = str(a + k * d), str(a + (k + 1) * d)
        back = last
    wrong = [*forms(a, d, other), *forms(a, d + 1, last), *forms(a + 1, d, last)]
    return Case(str(forms(a, d, last)[rng.choice([0, 0, 1, 3])]), [*forms(a, d, last), *forms(a, d, back)], wrong)


def empty_or_all(rng: random.Random) -> Case:
    if rng.random() < 0.4:
        wrong = [
            r"[0,\infty)",
            r"\mathbb{R} \setminus \{0\}",
            r"\emptyset",
            r"\mathbb{Q}",
            rf"x > -{rng.randrange(10**6)}",
        ]
        right: list[Answer | str] = [
            r"(-\infty,\infty)",
            r"(-\infty, +\infty)",
            r"\mathbb{R}",
            r"x \in \mathbb{R}",
            r"\text{all real numbers}",
            plain("ℝ"),
        ]
        return Case(rng.choice([r"\mathbb{R}", r"(-\infty,\infty)", r"(-\infty, \infty)"]), right, wrong)
    return Case(
        r"\emptyset",
        [r"\varnothing", r"\{\}", r"\emptyset", r"x \in \emptyset", plain("∅")],
        ["0", r"\{0\}", r"\mathbb{R}", str(rng.randrange(1, 10**6)), rf"\{{{rng.randrange(10**6)}\}}"],
    )


KINDS: dict[str, tuple[int, Kind]] = {
    "interval": (6, interval),
    "union": (3, union),
    "set": (4, number_set),
    "tuple": (5, tuples),
    "vector": (2, vector),
    "matrix": (2, matrix),
    "plus-minus": (3, plus_minus),
    "find all": (5, find_all),
    "sequence": (1, sequence),
    "empty set, all reals": (1, empty_or_all),
}
