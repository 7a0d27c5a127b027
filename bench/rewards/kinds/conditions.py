"""Conditions and collections in less usual dress: absolute values, set builders, systems, arrays, unit vectors."""

from __future__ import annotations

import random
from fractions import Fraction

from bench.rewards.kinds.base import Answer, Case, Kind, frac, nonzero, plain, signed_sum, term


def inequality(rng: random.Random) -> Case:
    x, shape = rng.choice("xxtm"), rng.randrange(4)
    c, r = nonzero(rng, -15, 15), rng.randrange(1, 20)
    closed = rng.random() < 0.5
    less, strict = (r"\leq", "<") if closed else ("<", r"\leq")
    if shape < 2:  # around a point

        def around(p: int, q: int, sign: str) -> list[str]:
            a, b = p - q, p + q
            is_closed = sign == r"\leq"
            opening, closing = "[]" if is_closed else "()"
            shifted = signed_sum([x, term(-p, "")])
            more, slanted = (r"\geq", r"\leqslant ") if is_closed else (">", "<")
            return [
                f"{opening}{a}, {b}{closing}",
                rf"|{shifted}| {sign} {q}",
                f"{a} {sign} {x} {sign} {b}",
                rf"\{{{x} \in \mathbb{{R}} : {a} {sign} {x} {sign} {b}\}}",
                rf"{x} {more} {a} \text{{ and }} {x} {sign} {b}",
                rf"{x} \in \left{opening}{a}, {b}\right{closing}",
                f"{a} {slanted}{x} {slanted}{b}",
            ]

        right = around(c, r, less)
        wrong = [*around(c, r, strict), *around(c, r + 1, less), *around(c + 1, r, less)]
        return Case(right[rng.choice([0, 0, 1, 2])], right, wrong)
    a, b, d = c, c + r, c + r + rng.randrange(1, 15)
    if shape == 2:  # a ray and an interval
        right = [
            rf"(-\infty, {a}) \cup ({b}, {d})",
            rf"({b},{d})\cup(-\infty,{a})",
            rf"{x} < {a} \text{{ or }} {b} < {x} < {d}",
            rf"{x} \in (-\infty, {a}) \cup ({b}, {d})",
        ]
        wrong = [
            rf"(-\infty, {a}) \cup ({b}, {d + 1})",
            rf"(-\infty, {a}] \cup ({b}, {d})",
            rf"(-\infty, {b}) \cup ({b}, {d})",
            rf"{x} < {a} \text{{ or }} {b} \leq {x} < {d}",
        ]
        return Case(right[rng.choice([0, 0, 2])], right, wrong)
    right = [
        rf"[{a}, {b}] \cup \{{{d}\}}",
        rf"\{{{d}\}} \cup [{a}, {b}]",
        rf"{a} \leq {x} \leq {b} \text{{ or }} {x} = {d}",
    ]
    wrong = [f"[{a}, {b}]", f"[{a}, {d}]", rf"[{a}, {b}] \cup \{{{d + 1}\}}", rf"[{a}, {b}) \cup \{{{d}\}}"]
    return Case(right[0], right, wrong)


def system(rng: random.Random) -> Case:
    """The solution of a system: named values are in any order, a pair is not."""
    p, q = rng.sample([Fraction(k) for k in range(-20, 40)] + [Fraction(k, 2) for k in range(-9, 30, 2)], 2)

    def forms(u: Fraction, v: Fraction) -> list[Answer | str]:
        a, b = frac(u), frac(v)
        forms: list[Answer | str] = [
            f"({a}, {b})",
            f"x = {a}, y = {b}",
            f"y = {b}, x = {a}",
            rf"x = {a} \text{{ and }} y = {b}",
            rf"\begin{{cases}} x = {a} \\ y = {b} \end{{cases}}",
            rf"x = {a}, \quad y = {b}",
            rf"(x, y) = ({a}, {b})",
            rf"x={a},\ y={b}",
        ]
        return forms if "\\" in a + b else [*forms, plain(f"x = {a}, y = {b}"), plain(f"x = {a} and y = {b}")]

    near = rng.choice([(q, p), (p + 1, q), (p, -q if q else q + 1)])
    gold = forms(p, q)
    return Case(str(gold[rng.choice([0, 0, 1])]), gold, [*forms(*near), f"x = {frac(p)}"])


def arrays(rng: random.Random) -> Case:
    """Matrices as arrays, with a factor in front; vectors by unit vectors."""
    if rng.random() < 0.4:
        v = [nonzero(rng, -9, 12) for _ in range(3)]

        def units(w: list[int]) -> list[str]:
            bold = signed_sum([term(k, rf"\mathbf{{{e}}}") for k, e in zip(w, "ijk", strict=True)])
            hats = signed_sum([term(k, rf"\hat{{{e}}}") for k, e in zip(w, "ijk", strict=True)])
            angled = ", ".join(map(str, w))
            return [
                rf"\langle {angled} \rangle",
                bold,
                hats.replace(r"\hat{i}", r"\hat{\imath}") if w[0] % 2 else hats,
                rf"\vec{{v}} = \langle {angled} \rangle",
            ]

        near = rng.choice([[-v[0], *v[1:]], [v[0], v[1], v[2] + 1 or 1], [v[1], v[0] + 1, v[2]]])
        return Case(units(v)[rng.choice([0, 0, 1])], units(v), units(near) if near != v else units([v[0] + 1, *v[1:]]))
    rows = [[rng.randrange(-9, 12) for _ in range(2)] for _ in range(2)]
    d = rng.randrange(2, 7)

    def spelled(m: list[list[int]]) -> list[str]:
        body = r" \\ ".join(" & ".join(frac(Fraction(v, d)) for v in row) for row in m)
        whole = r" \\ ".join(" & ".join(map(str, row)) for row in m)
        return [
            rf"\begin{{pmatrix}} {body} \end{{pmatrix}}",
            rf"\left(\begin{{array}}{{cc}} {body} \end{{array}}\right)",
            rf"\left[\begin{{array}}{{rr}} {body} \end{{array}}\right]",
            rf"\frac{{1}}{{{d}}}\begin{{pmatrix}} {whole} \end{{pmatrix}}",
            rf"A = \begin{{bmatrix}} {body} \end{{bmatrix}}",
        ]

    changed = [row[:] for row in rows]
    changed[rng.randrange(2)][rng.randrange(2)] += 1
    others = [m for m in (changed, [list(column) for column in zip(*rows, strict=True)]) if m != rows]
    return Case(spelled(rows)[rng.choice([0, 0, 3])], spelled(rows), [form for m in others for form in spelled(m)])


def signed_set(rng: random.Random) -> Case:
    """Sets whose members come in pairs of signs."""
    a, b = sorted(rng.sample(range(1, 40), 2))
    zero = rng.random() < 0.4

    def forms(p: int, q: int, z: bool) -> list[Answer | str]:
        members = [-q, -p, *([0] if z else []), p, q]
        text, short = ", ".join(map(str, members)), ", ".join([*(["0"] if z else []), rf"\pm {p}", rf"\pm {q}"])
        return [rf"\{{{text}\}}", rf"\{{{short}\}}", text, short, rf"x = {short}", rf"x \in \{{{text}\}}", plain(text)]

    right = forms(a, b, zero)
    wrong = [*forms(a, b, not zero), *forms(a, b + 1, zero), rf"\{{{a}, {b}\}}", rf"\pm {a}"]
    return Case(str(right[rng.choice([0, 0, 1, 3])]), right, wrong)


KINDS: dict[str, tuple[int, Kind]] = {
    "inequality": (4, inequality),
    "system": (4, system),
    "array": (2, arrays),
    "signed set": (2, signed_set),
}
