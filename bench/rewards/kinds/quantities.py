"""Numbers that mean something: percent, money, units, angles, clock times, ratios, bases, remainders."""

from __future__ import annotations

import random
from fractions import Fraction
from math import gcd

from bench.rewards.kinds.base import Answer, Case, Kind, decimal, frac, nonzero, plain, region


def percent(rng: random.Random) -> Case:
    value = rng.choice([Fraction(rng.randrange(1, 200)), Fraction(rng.randrange(1, 1000), 10)])
    near = rng.choice([value + 1, value / 10, value * 10, abs(100 - value) or value + 2, value + Fraction(1, 10)])
    near = near if near != value else value + 3

    def forms(v: Fraction, sign_only: bool = False) -> list[Answer | str]:
        p, share = decimal(v), v / 100
        signed: list[Answer | str] = [rf"{p}\%", rf"{p}\%", rf"{p} \%", plain(f"{p}%"), plain(f"{p} percent")]
        signed += [rf"{p}\text{{ percent}}", rf"{p}\,\%"]
        return signed if sign_only else [*signed, str(decimal(share)), frac(share)]

    if rng.random() < 0.3:  # gold without the sign: 28 and 28 % may be a matter of taste, 0.28 and 28 % not
        gold = rng.choice([str(decimal(value / 100)), frac(value / 100)])
        return Case(gold, forms(value, sign_only=True), forms(near, sign_only=True))
    return Case(rf"{decimal(value)}\%", forms(value), forms(near))


def _foreign_money(rng: random.Random) -> Case:
    sign, name = rng.choice([("€", "euros"), ("£", "pounds")])
    n = rng.randrange(100, 100_000)

    def forms(cents: int) -> list[Answer | str]:
        amount = f"{cents // 100}.{cents % 100:02d}"
        return [
            f"{sign}{amount}",
            plain(f"{sign}{amount}"),
            plain(f"{amount} {name}"),
            rf"{amount}\text{{ {name}}}",
            amount,
        ]

    return Case(
        f"{sign}{n // 100}.{n % 100:02d}", forms(n), [*forms(n + 10), *forms(n + 1000), rf"\${n // 100}.{n % 100:02d}"]
    )


def money(rng: random.Random) -> Case:
    if rng.random() < 0.12:
        return _foreign_money(rng)
    cents = rng.choice([100 * rng.randrange(1, 2000), rng.randrange(1, 200_000), 5 * rng.randrange(1, 4000)])
    value = Fraction(cents, 100)

    def full(v: Fraction, separator: str = "") -> str:
        return f"{int(v * 100) // 100:{separator}}.{int(v * 100) % 100:02d}"

    def written(v: Fraction) -> str:
        return str(v) if v.denominator == 1 else full(v)

    def forms(v: Fraction) -> list[Answer | str]:
        w, f = written(v), full(v, ",")
        forms: list[Answer | str] = [rf"\${w}", rf"\${f}", f, w, rf"{w}\text{{ dollars}}", plain(f"${f}")]
        forms += [plain(f"${w}"), region(f"The total is ${f}."), region(f"She pays {w} dollars in all.")]
        return forms

    cents_form = rf"{cents}\text{{ cents}}"
    gold = rng.choice([written(value), written(value), rf"\${written(value)}"])
    wrong = forms(value + Fraction(rng.choice([1, 10, 100, 1000]), 100)) + forms(value * 10)
    right = forms(value)
    if gold.startswith(r"\$"):
        wrong.append(rf"{written(value)}\text{{ cents}}")
        right.append(cents_form)
    return Case(gold, right, wrong)


# (what is written, the same in another unit, factor): 5 km = 5000 m
_SAME: list[tuple[str, str, Fraction]] = [
    (r"\text{ km}", r"\text{ m}", Fraction(1000)),
    (r"\text{ m}", r"\text{ cm}", Fraction(100)),
    (r"\text{ cm}", r"\text{ mm}", Fraction(10)),
    (r"\text{ kg}", r"\text{ g}", Fraction(1000)),
    (r"\text{ g}", r"\text{ mg}", Fraction(1000)),
    (r"\text{ hours}", r"\text{ minutes}", Fraction(60)),
    (r"\text{ minutes}", r"\text{ seconds}", Fraction(60)),
    (r"\text{ L}", r"\text{ mL}", Fraction(1000)),
    (r"\text{ m}^2", r"\text{ cm}^2", Fraction(10_000)),
    (r"\text{ km/h}", r"\text{ m/s}", Fraction(5, 18)),
]
_FULL = {
    "km": "kilometers",
    "m": "meters",
    "cm": "centimeters",
    "mm": "millimeters",
    "kg": "kilograms",
    "g": "grams",
    "hours": "h",
    "minutes": "min",
    "seconds": "s",
    "L": "liters",
    "mL": "milliliters",
}
_NOUNS = ["apples", "students", "marbles", "books", "tickets", "pages", "miles", "chairs", "stamps", "cookies"]


def _duration(rng: random.Random) -> Case:
    h, m = rng.randrange(1, 12), rng.choice([5, 10, 15, 20, 30, 30, 40, 45, 50])

    def forms(minutes: int) -> list[Answer | str]:
        hours, rest = divmod(minutes, 60)
        forms: list[Answer | str] = [
            rf"{hours}\text{{ hours }} {rest}\text{{ minutes}}",
            rf"{minutes}\text{{ minutes}}",
        ]
        forms += [rf"\text{{{hours} hours {rest} minutes}}", plain(f"{hours} hours and {rest} minutes")]
        forms += [plain(f"{hours} h {rest} min"), plain(f"{minutes} minutes")]
        return forms + ([rf"{t}\text{{ hours}}"] if (t := decimal(Fraction(minutes, 60))) else [])

    wrong = [
        *forms(60 * h + m + rng.choice([1, 60, -5])),
        rf"{h}{m:02d}\text{{ minutes}}",
        f"{h}.{m:02d} \\text{{ hours}}",
    ]
    return Case(str(forms(60 * h + m)[0]), forms(60 * h + m), wrong)


def _temperature(rng: random.Random) -> Case:
    t = rng.randrange(-20, 120)

    def forms(degrees: int) -> list[Answer | str]:
        return [
            rf"{degrees}^\circ\text{{C}}",
            rf"{degrees}^{{\circ}}\mathrm{{C}}",
            rf"{degrees}^\circ C",
            plain(f"{degrees}°C"),
            plain(f"{degrees} °C"),
            rf"{degrees}\text{{ degrees Celsius}}",
            plain(f"{degrees} degrees Celsius"),
        ]

    return Case(
        rf"{t}^\circ\text{{C}}", forms(t), [*forms(t + 1), *forms(t + 10), rf"{t}^\circ\text{{F}}", plain(f"{t}°F")]
    )


def unit(rng: random.Random) -> Case:
    if (shape := rng.random()) < 0.18:
        return _duration(rng) if shape < 0.12 else _temperature(rng)
    if rng.random() < 0.35:  # the question names the unit, the gold does not
        n, noun = rng.randrange(2, 2000), rng.choice(_NOUNS)

        def counted(k: int) -> list[Answer | str]:
            return [
                rf"{k}\text{{ {noun}}}",
                plain(f"{k} {noun}"),
                region(f"There are {k} {noun} left."),
                rf"{k} \text{{ {noun}}}",
                region(f"**Answer:** {k} {noun}"),
            ]

        return Case(str(n), counted(n), counted(n + rng.choice([1, 10, -1])))
    big, small, factor = rng.choice(_SAME)
    value = Fraction(rng.randrange(1, 400), rng.choice([1, 1, 2, 5, 10]))
    if factor == Fraction(5, 18):
        value = Fraction(18 * rng.randrange(1, 30))
    name = big.removeprefix(r"\text{ ").partition("}")
    exponent = name[2]

    def same(v: Fraction) -> list[Answer | str]:
        t = decimal(v)
        forms: list[Answer | str] = [
            f"{t}{big}",
            rf"{t}\,\text{{{name[0]}}}{exponent}",
            rf"{t}~\mathrm{{{name[0]}}}{exponent}",
        ]
        forms.append(rf"{t}\ \text{{{name[0]}}}{exponent}")
        if not exponent:
            forms.append(plain(f"{t} {name[0]}"))
            if name[0] in _FULL:
                forms += [plain(f"{t} {_FULL[name[0]]}"), rf"{t}\text{{ {_FULL[name[0]]}}}"]
        return forms

    converted = [f"{decimal(value * factor)}{small}"] * 3
    mistaken = [f"{decimal(value)}{small}"] * 3 + [f"{decimal(value * factor * 10)}{small}"] * 2
    if exponent:
        mistaken += [f"{decimal(value)}{big.replace('^2', '^3')}"] * 2
    return Case(f"{decimal(value)}{big}", [*same(value), *converted], [*same(value + 1), *mistaken])


def angle(rng: random.Random) -> Case:
    degrees = rng.choice(
        [
            rng.choice(
                [
                    15,
                    18,
                    20,
                    30,
                    36,
                    40,
                    45,
                    50,
                    60,
                    72,
                    75,
                    90,
                    105,
                    120,
                    135,
                    140,
                    144,
                    150,
                    165,
                    210,
                    225,
                    240,
                    270,
                    300,
                    315,
                    330,
                ]
            ),
            rng.randrange(1, 360),
        ]
    )
    near = rng.choice(
        [d for d in (180 - degrees, 90 - degrees, degrees + 10, degrees + 1, 2 * degrees) if 0 < d != degrees]
    )

    def radians(d: int) -> list[Answer | str]:
        v = Fraction(d, 180)
        top = r"\pi" if v.numerator == 1 else rf"{v.numerator}\pi"
        if v.denominator == 1:
            return [top]
        return [rf"\frac{{{top}}}{{{v.denominator}}}", rf"{frac(v)}\pi", rf"\dfrac{{{top}}}{{{v.denominator}}}"]

    def written(d: int) -> list[Answer | str]:
        return [rf"{d}^\circ", rf"{d}^{{\circ}}", rf"{d}\text{{ degrees}}", plain(f"{d}°"), plain(f"{d} degrees")]

    if rng.random() < 0.3:
        gold = str(radians(degrees)[0])
        return Case(
            gold, radians(degrees) + [rf"{degrees}^\circ"] * 2, [*radians(near), rf"{near}^\circ", str(degrees)]
        )
    right = [*written(degrees), *written(degrees), *radians(degrees), str(degrees)]
    return Case(rf"{degrees}^\circ", right, [*written(near), *written(near), *radians(near), str(near)])


def clock(rng: random.Random) -> Case:
    hour, minute = rng.randrange(1, 13), rng.randrange(60)
    half = rng.choice(["a.m.", "p.m."])
    other = "p.m." if half == "a.m." else "a.m."
    late = (hour % 12) + (12 if half == "p.m." else 0)

    def forms(h: int, m: int) -> list[Answer | str]:
        t = f"{h}:{m:02d}"
        return [rf"\text{{{t}}}", t, plain(t), region(f"The train arrives at {t}.")]

    def halves(h: int, m: int, name: str) -> list[Answer | str]:
        t, capital = f"{h}:{m:02d}", name.replace(".", "").upper()
        return [rf"{t}\text{{ {name}}}", rf"\text{{{t} {capital}}}", plain(f"{t} {capital}"), plain(f"{t} {name}")]

    moved = (minute + rng.choice([1, 5, 10, 30])) % 60
    if rng.random() < 0.5:
        wrong = [*forms(hour, moved), *forms(hour % 12 + 1, minute), *forms(hour, minute + (-1 if minute else 1))]
        return Case(f"{hour}:{minute:02d}", forms(hour, minute), wrong)
    right = [*halves(hour, minute, half), *halves(hour, minute, half), rf"\text{{{late:02d}:{minute:02d}}}"]
    right = right if late != hour else right[:-1]  # 9:45 for 9:45 a.m. names no half
    wrong = [*halves(hour, minute, other), *halves(hour, moved, half)]
    return Case(rf"{hour}:{minute:02d}\text{{ {half}}}", right, wrong)


def ratio(rng: random.Random) -> Case:
    while True:
        parts = [rng.randrange(1, 30) for _ in range(rng.choice([2, 2, 2, 3]))]
        if gcd(*parts) == 1 and len(set(parts)) == len(parts):
            break

    def forms(p: list[int]) -> list[Answer | str]:
        k = rng.randrange(2, 6)
        forms: list[Answer | str] = [":".join(map(str, p)), " : ".join(map(str, p)), ":".join(str(k * x) for x in p)]
        forms += [rf"\text{{{':'.join(map(str, p))}}}", plain(" : ".join(map(str, p)))]
        return forms + ([rf"{p[0]} \text{{ to }} {p[1]}", plain(f"{p[0]} to {p[1]}")] if len(p) == 2 else [])

    near = rng.choice([parts[::-1], [*parts[:-1], parts[-1] + 1], [parts[0] + 1, *parts[1:]]])
    return Case(":".join(map(str, parts)), forms(parts), forms(near))


def _digits(n: int, base: int) -> str:
    text = ""
    while n:
        text, n = "0123456789ABCDEF"[n % base] + text, n // base
    return text


def base(rng: random.Random) -> Case:
    b = rng.choice([2, 2, 3, 4, 5, 6, 7, 8, 9, 16])
    n = rng.randrange(b, 3000)

    def forms(text: str, of: int) -> list[Answer | str]:
        forms: list[Answer | str] = [f"{text}_{{{of}}}", f"({text})_{{{of}}}", f"{text}_{{({of})}}"]
        return [*forms, rf"\text{{{text}}}_{{{of}}}", f"{text}_{of}" if of < 10 else f"{text}_{{{of}}}"]

    gold = f"{_digits(n, b)}_{{{b}}}" if b > 9 else f"{_digits(n, b)}_{b}"
    wrong = forms(_digits(n + rng.choice([1, b]), b), b)
    if b < 9:  # the same digits in the next base are another number
        wrong += forms(_digits(n, b), b + 1)
    return Case(gold, forms(_digits(n, b), b), wrong)


def modulo(rng: random.Random) -> Case:
    m, a, e = rng.randrange(3, 60), rng.randrange(2, 30), rng.randrange(3, 500)
    r = pow(a, e, m)
    other = (r + rng.randrange(1, m)) % m
    if rng.random() < 0.5:  # the remainder, or the power itself
        right = [str(r), rf"{a}^{{{e}}} \bmod {m}", rf"{r} \pmod{{{m}}}", rf"{a}^{{{e}}} \equiv {r} \pmod{{{m}}}"]
        wrong = [str(other), rf"{a}^{{{e}}} \bmod {m + 1}", rf"{other} \pmod{{{m}}}"]
        if pow(a, e, m + 1) == r:
            wrong.pop(1)
        return Case(str(r), right, wrong)
    k = nonzero(rng, -2, 3)
    right = [
        rf"x \equiv {r} \pmod{{{m}}}",
        rf"{r} \pmod{{{m}}}",
        rf"x \equiv {r + k * m} \pmod{{{m}}}",
        rf"x\equiv {r}\ (\text{{mod }} {m})",
        rf"{r} \pmod {{{m}}}",
    ]
    wrong = [rf"x \equiv {other} \pmod{{{m}}}", rf"{other} \pmod{{{m}}}", rf"x \equiv {r} \pmod{{{m + 1}}}"]
    gold = rng.choice([rf"x \equiv {r} \pmod{{{m}}}", rf"{r} \pmod{{{m}}}"])
    return Case(gold, right, wrong)


KINDS: dict[str, tuple[int, Kind]] = {
    "percent": (6, percent),
    "money": (6, money),
    "unit": (7, unit),
    "angle": (4, angle),
    "clock": (2, clock),
    "ratio": (3, ratio),
    "base": (3, base),
    "mod": (3, modulo),
}
