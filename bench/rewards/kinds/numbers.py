"""Plain numbers: integers, decimals, fractions, mixed numbers, repeating decimals, thousands, powers of ten."""

from __future__ import annotations

import random
from fractions import Fraction

from bench.rewards.kinds.base import Answer, Case, Kind, decimal, frac, fraction, plain, region, rounded


def integer(rng: random.Random) -> Case:
    n = rng.choice([rng.randrange(101), rng.randrange(100, 10_000), rng.randrange(10_000, 1_000_000)])
    m = rng.choice([k for k in (n + 1, n - 1, n + 10, 10 * n, 2 * n, -n, int(str(n)[::-1])) if k != n])
    shift = rng.randrange(3, 90)

    def forms(k: int) -> list[Answer | str]:
        other: list[Answer | str] = [f"{k}.0", rf"\frac{{{2 * k}}}{{2}}", f"x = {k}", rf"{k - shift} + {shift} = {k}"]
        other += [plain(f"{k}"), region(f"So we get {k - shift} + {shift} = {k}."), region(f"There are {k} of them.")]
        if k > 1 and (p := next((p for p in (2, 3, 5, 7, 11, 13) if k % p == 0 and k > p), None)):
            other.append(rf"{p} \cdot {k // p}")
        return [str(k)] * (2 * len(other)) + other

    return Case(str(n), forms(n), forms(m))


def big_integer(rng: random.Random) -> Case:
    n = rng.randrange(10**14, 10 ** rng.randrange(15, 40))
    digits = str(n)
    at = next((i for i in range(3, len(digits) - 1) if digits[i] != digits[i + 1]), 0)
    swapped = digits[:at] + digits[at + 1] + digits[at] + digits[at + 2 :] if at else str(n + 9)
    near = rng.choice([str(n + 1), str(n - 1), swapped, digits[:-1], digits + "0"])

    def forms(text: str) -> list[Answer | str]:
        grouped = f"{int(text):,}"
        return [text, text, grouped, grouped.replace(",", "{,}"), grouped.replace(",", r"\,"), plain(grouped)]

    return Case(digits, forms(digits), forms(near))


def negative(rng: random.Random) -> Case:
    n = rng.randrange(1, rng.choice([20, 500, 100_000]))

    def forms(k: int) -> list[Answer | str]:
        return [
            f"-{k}",
            f"-{k}",
            f"(-{k})",
            f"- {k}",
            f"x = -{k}",
            plain(f"−{k}"),
            f"-{k}.0",
            f"-\\frac{{{3 * k}}}{{3}}",
        ]

    return Case(f"-{n}", forms(n), [*forms(n + 1), str(n), plain(str(n)), f"x = {n}", f"-{n}0"])


def decimal_number(rng: random.Random) -> Case:
    places = rng.choice([1, 1, 2, 2, 2, 3, 4])
    whole = rng.choice([0, 0, rng.randrange(10), rng.randrange(10, 1000)])
    value = Fraction(whole * 10**places + rng.choice([k for k in range(1, 10**places) if k % 10]), 10**places)
    if rng.random() < 0.2:
        value = -value
    near = [value * 10, value / 10, -value, value + Fraction(1, 10**places), value - Fraction(2, 10**places)]

    def forms(v: Fraction) -> list[Answer | str]:
        text = decimal(v) or ""
        other: list[Answer | str] = [text + "0", frac(v), frac(v, r"\dfrac"), plain(f"{v.numerator}/{v.denominator}")]
        if 0 < v < 1:
            other.append(text.removeprefix("0"))
        return [text, text, plain(text), f"x = {text}", *other]

    wrong = forms(rng.choice([v for v in near if v]))
    return Case(decimal(value) or "", forms(value), wrong + ([rounded(value, places - 1)] if places > 1 else []))


def _gold_fraction(rng: random.Random, v: Fraction) -> str:
    slash = f"{v.numerator}/{v.denominator}"
    return rng.choice([frac(v), frac(v), frac(v), frac(v, r"\dfrac"), slash, slash])


def _fractions(rng: random.Random, v: Fraction) -> list[Answer | str]:
    n, d, k = v.numerator, v.denominator, rng.choice([2, 3, 5, 10])
    forms: list[Answer | str] = [frac(v), frac(v), frac(v), frac(v, r"\dfrac"), frac(v, r"\tfrac"), f"{n}/{d}"]
    forms += [rf"\frac{{{n * k}}}{{{d * k}}}", plain(f"{n}/{d}"), rf"x = {frac(v)}", rf"\displaystyle{frac(v)}"]
    forms += [rf"\left({frac(v)}\right)", rf"\frac{{{n}}}{{{d}}}"]
    if abs(n) < 10 and d < 10:
        forms.append(("-" if n < 0 else "") + rf"\frac{abs(n)}{d}")
    if n < 0:
        forms.append(rf"\frac{{{-n}}}{{-{d}}}")
    if text := decimal(v):
        forms += [text, plain(text)]
    if abs(n) > d:
        forms.append(("-" if n < 0 else "") + rf"{abs(n) // d}\frac{{{abs(n) % d}}}{{{d}}}")
    return forms


def simple_fraction(rng: random.Random) -> Case:
    v = fraction(rng, rng.choice([10, 30, 200]), rng.choice([10, 20, 120])) * rng.choice([1, 1, 1, -1])
    near = [1 / v, -v, v + Fraction(1, v.denominator), Fraction(v.numerator, v.denominator + 1), 1 - v]
    near = [w for w in near if w != v and w.denominator > 1]
    wrong = _fractions(rng, rng.choice(near))
    if decimal(v) is None:
        wrong += [rounded(v, 2), rounded(v, 4)]
    return Case(_gold_fraction(rng, v), _fractions(rng, v), wrong)


def mixed(rng: random.Random) -> Case:
    common = Fraction(*rng.choice([(1, 2), (1, 3), (2, 3), (3, 4), (4, 5), (5, 8)]))
    part = rng.choice([common, common, Fraction(rng.randrange(1, 12), rng.randrange(12, 25))])
    whole, sign = rng.randrange(2, 30), rng.choice([1, 1, 1, -1])

    def forms(w: int) -> list[Answer | str]:
        n, d, minus, v = part.numerator, part.denominator, "-" if sign < 0 else "", sign * (w + part)
        forms: list[Answer | str] = [plain(f"{minus}{w} {n}/{d}"), rf"{minus}{w}\frac{{{n}}}{{{d}}}"]
        forms += [rf"{minus}{w}\,\dfrac{{{n}}}{{{d}}}", rf"{minus}{w} \frac{{{n}}}{{{d}}}", frac(v), plain(str(v))]
        return forms + ([text] if (text := decimal(v)) else [])

    v = sign * (whole + part)
    product, split = frac(sign * whole * part), frac(sign * whole + part if sign < 0 else whole - part)
    gold = rng.choice([str(forms(whole)[1]), frac(v), str(v)])
    return Case(gold, forms(whole), [*forms(whole + 1), product, product, split, str(whole), frac(part)])


def _expansion(v: Fraction) -> tuple[str, str]:
    """Digits of a proper fraction behind the point: those before the period, and the period."""
    remainder, seen, digits = v.numerator % v.denominator, dict[int, int](), ""
    while remainder not in seen:
        seen[remainder] = len(digits)
        digits += str(remainder * 10 // v.denominator)
        remainder = remainder * 10 % v.denominator
    start = seen[remainder]
    return digits[:start], digits[start:]


def repeating(rng: random.Random) -> Case:
    bottom = rng.choice([3, 6, 7, 9, 11, 12, 13, 15, 18, 22, 27, 30, 33, 37, 41, 45, 55, 66, 99, 101, 111, 202, 271])
    v = Fraction(rng.randrange(1, 3 * bottom), bottom)
    while decimal(v) is not None:
        v = Fraction(rng.randrange(1, 3 * bottom), bottom)
    whole = v.numerator // v.denominator
    before, period = _expansion(v)

    def dotted(head: int, first: str, again: str) -> list[Answer | str]:
        forms: list[Answer | str] = [rf"{head}.{first}\overline{{{again}}}", rf"{head}.{first}\overline{{{again}}}"]
        forms.append(
            rf"{head}.{first}\bar{{{again}}}" if len(again) == 1 else rf"{head}.{first}\overline{{{again * 2}}}"
        )
        return forms + ([rf"{head}.{first}\dot{{{again}}}"] if len(again) == 1 else [])

    other = str((int(period) + 1) % 10 ** len(period)).rjust(len(period), "0")
    if set(other) <= {"0"} or set(other) == {"9"}:  # those are no repeating decimals
        other = "12" if period != "12" else "21"
    wrong = [*dotted(whole, before, other), *dotted(whole + 1, before, period), rounded(v, 3), rounded(v, 6)]
    wrong.append(frac(v + Fraction(1, v.denominator)))
    if rng.random() < 0.5:
        return Case(_gold_fraction(rng, v), dotted(whole, before, period), wrong)
    return Case(str(dotted(whole, before, period)[0]), [frac(v), plain(str(v)), *dotted(whole, before, period)], wrong)


def thousands(rng: random.Random) -> Case:
    n = rng.choice([rng.randrange(1000, 100_000), rng.randrange(1000, 100_000), rng.randrange(10**5, 10**9)])
    n = n if rng.random() < 0.5 else n // 100 * 100 or 1000

    def forms(k: int) -> list[Answer | str]:
        g = f"{k:,}"
        return [
            g,
            g,
            g.replace(",", "{,}"),
            g.replace(",", r"\,"),
            g.replace(",", r",\!"),
            plain(g),
            str(k),
            f"{g}.00",
            region(f"The profit is {g} dollars."),
            region(f"So there are {g} ways in total."),
        ]

    grouped = f"{n:,}"
    wrong = [*forms(n + 1), *forms(n + 1000), grouped.partition(",")[0], str(n // 10)]
    if n < 10**6:  # the point of 12.500 is no comma
        wrong.append(grouped.replace(",", "."))
    return Case(rng.choice([str(n), str(n), grouped, grouped.replace(",", "{,}")]), forms(n), wrong)


def scientific(rng: random.Random) -> Case:
    digits = rng.choice([k for k in range(11, 1000) if k % 10])
    exponent = rng.choice([k for k in range(-12, 13) if abs(k) > 2])

    def forms(d: int, e: int) -> list[str]:
        mantissa = Fraction(d, 10 ** (len(str(d)) - 1))
        m, written = decimal(mantissa), decimal(mantissa * Fraction(10) ** e) if abs(e) < 9 else None
        forms = [rf"{m} \times 10^{{{e}}}", rf"{m} \cdot 10^{{{e}}}", rf"{m}\times10^{{{e}}}", f"{m}e{e}"]
        return forms + ([written, written] if written else [])

    def answers(d: int, e: int) -> list[Answer | str]:
        m = decimal(Fraction(d, 10 ** (len(str(d)) - 1)))
        latex = [form for form in forms(d, e) if "e" not in form.replace(r"\times", "")]
        return [*latex, plain(f"{m}e{e}"), plain(f"{m} × 10^{e}")]

    last = digits + 1 if digits % 10 != 9 else digits - 1
    near = [(digits, exponent + 1), (digits, exponent - 1), (digits, -exponent), (last, exponent)]
    return Case(rng.choice(forms(digits, exponent)), answers(digits, exponent), answers(*rng.choice(near)))


KINDS: dict[str, tuple[int, Kind]] = {
    "integer": (60, integer),
    "big integer": (4, big_integer),
    "negative": (8, negative),
    "decimal": (10, decimal_number),
    "fraction": (26, simple_fraction),
    "mixed number": (3, mixed),
    "repeating decimal": (2, repeating),
    "thousands": (5, thousands),
    "scientific": (3, scientific),
}
