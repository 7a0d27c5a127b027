"""Answers that are words: choices in every shape, names, dates, yes and no, words around a number."""

from __future__ import annotations

import random

from bench.rewards.kinds.base import Answer, Case, Kind, plain, region

_OPTIONS = [
    "a polynomial in x",
    "the median",
    "the first statement only",
    "an odd number",
    "it doubles",
    "none of these",
    "parallel lines",
    "a right triangle",
    "the second group",
    "all real numbers",
    "two solutions",
]


def choice(rng: random.Random) -> Case:
    last = rng.choice("DEEF")
    letters = [chr(c) for c in range(ord("A"), ord(last) + 1)]
    letter = rng.choice(letters)
    value, text = (
        rng.choice([str(rng.randrange(2, 900)), rf"{rng.randrange(2, 60)}\sqrt{{{rng.choice([2, 3, 5])}}}"]),
        rng.choice(_OPTIONS),
    )
    n = rng.randrange(2, 900)

    def forms(x: str) -> list[Answer | str]:
        boxed: list[Answer | str] = [
            x,
            rf"\text{{{x}}}",
            f"({x})",
            rf"\textbf{{({x})}}",
            rf"\mathrm{{({x})}}",
            rf"\textbf{{({x})}}\ {value}",
        ]
        boxed += [
            rf"\textbf{{({x})}} {value}",
            rf"\text{{({x}) }} {value}",
            rf"\text{{{x}: {text}}}",
            f"{x}. {value}",
            f"{x}) {value}",
        ]
        boxed += [rf"\text{{{x}. {text}}}", x.lower(), rf"\mathbf{{{x}}}", rf"\text{{Option {x}}}", rf"({x})\ {value}"]
        said: list[Answer | str] = [
            plain(x),
            plain(f"({x})"),
            plain(f"{x}. {text}"),
            plain(f"{x}: {text}"),
            region(f"**{x}**"),
        ]
        said += [
            region(f"The answer is {x}."),
            region(f"The correct option is ({x})."),
            region(f"**Answer: {x}**"),
            region(f"选 {x}"),
        ]
        said += [
            region(f"Option {x} is correct."),
            region(f"The correct answer is **{x}. {text}**"),
            region(f"答案是 {x}。"),
        ]
        said += [region(f"Since the sum is {n}, the answer is ({x}) {n}."), region(f"({x}) {n}"), region(f"{x}) {n}")]

        said += [
            region(f"The answer is ({x}), since the other options are too small."),
            region(f"故选 {x}。"),
            region(f"答案选 {x}"),
        ]
        said += [
            region(f"{x}, because only {text} fits."),
            region(f"**Final Answer: ({x})**"),
            plain(f"Choice {x}"),
            plain(f"[{x}]"),
        ]
        said += [region(f"{x}. Because the others are too small."), region(f"The correct answer is {x}) {n}.")]
        return boxed + said

    other = rng.choice([x for x in letters if x != letter])
    listed = letters[: rng.randrange(2, len(letters) + 1)]
    hedges: list[Answer | str] = [
        region(" or ".join(listed)),
        rf"{letter} \text{{ or }} {other}",
        ", ".join(listed),
        f"{letter}, {other}",
    ]
    hedges += [region(f"Either {letter} or {other}."), region("Because every option fails, none."), f"{letter}{other}"]
    gold = rng.choice([letter, letter, letter, f"({letter})", rf"\text{{{letter}}}", rf"\textbf{{({letter})}}"])
    return Case(gold, forms(letter), forms(other) + hedges)


def choices(rng: random.Random) -> Case:
    """More than one letter."""
    letters = sorted(rng.sample("ABCDE", rng.choice([2, 2, 3])))

    def forms(of: list[str]) -> list[Answer | str]:
        order = rng.sample(of, len(of))
        commas, spelled = ", ".join(order), f"{', '.join(order[:-1])} and {order[-1]}"
        return [
            commas,
            rf"\text{{{commas}}}",
            ",".join(of),
            rf"\text{{{spelled}}}",
            plain(spelled),
            plain(commas),
            "".join(of),
            rf"\text{{{''.join(of)}}}",
            region(f"The correct statements are {spelled}."),
            rf"({'), ('.join(order)})",
        ]

    other = next(x for x in rng.sample("ABCDE", 5) if x not in letters)
    wrong = [*forms([*letters, other]), *forms(sorted([*letters[1:], other])), letters[0], rf"\text{{{letters[-1]}}}"]
    return Case(rng.choice([", ".join(letters), ",".join(letters), "".join(letters)]), forms(letters), wrong)


_WORDS = [
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
    [
        "January",
        "February",
        "March",
        "April",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ],
    ["even", "odd"],
    ["ellipse", "parabola", "hyperbola", "circle"],
    ["isosceles", "equilateral", "scalene", "right", "obtuse"],
    ["red", "blue", "green", "yellow", "purple", "orange"],
    ["increasing", "decreasing", "constant"],
    ["converges", "diverges"],
    [
        "Alice",
        "Ben",
        "Carla",
        "Dmitri",
        "Evelyn",
        "Farid",
        "Grace",
        "Henry",
        "Ines",
        "Jonas",
        "Keiko",
        "Liam",
        "Maria",
        "Nadia",
    ],
    ["triangle", "square", "pentagon", "hexagon", "octagon", "trapezoid", "rhombus"],
    ["rational", "irrational"],
    ["injective", "surjective", "bijective"],
    ["no solution", "infinitely many solutions", "exactly one solution"],
    ["carbon dioxide", "oxygen", "nitrogen", "hydrogen"],
    ["Paris", "London", "Berlin", "Madrid", "Cairo", "Lima"],
]


def word(rng: random.Random) -> Case:
    family = rng.choice(_WORDS)
    right, near = rng.sample(family, 2)

    def forms(w: str) -> list[Answer | str]:
        forms: list[Answer | str] = [
            rf"\text{{{w}}}",
            rf"\text{{{w}}}",
            rf"\textbf{{{w}}}",
            plain(w),
            plain(w.capitalize()),
        ]
        forms += [
            rf"\text{{ {w.lower()} }}",
            rf"\mathrm{{{w.replace(' ', '~')}}}",
            region(f"**{w}**"),
            region(f"The answer is {w}."),
        ]
        forms += [region(f"The answer is **{w}**."), region(f"Final answer: {w}"), plain(w.upper())]
        return forms

    wrong = [
        *forms(near),
        plain(right[:2]),
        region(f"Either {right} or {near}."),
        rf"\text{{{right} or {near}}}",
    ]
    return Case(rng.choice([right, rf"\text{{{right}}}", rf"\text{{{right}}}"]), forms(right), wrong)


_MONTHS = [
    ("January", 31),
    ("February", 28),
    ("March", 31),
    ("April", 30),
    ("May", 31),
    ("June", 30),
    ("July", 31),
    ("August", 31),
    ("September", 30),
    ("October", 31),
    ("November", 30),
    ("December", 31),
]


def _ordinal(day: int) -> str:
    ending = "th" if day in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{ending}"


def date(rng: random.Random) -> Case:
    at = rng.randrange(12)
    day, year = rng.randrange(1, _MONTHS[at][1] + 1), rng.randrange(1900, 2031) if rng.random() < 0.5 else None

    def forms(m: int, d: int, y: int | None) -> list[Answer | str]:
        name = _MONTHS[m][0]
        texts = [f"{name} {d}", f"{d} {name}", f"{name} {_ordinal(d)}"]
        if y:
            texts = [f"{name} {d}, {y}", f"{d} {name} {y}", f"{name} {_ordinal(d)}, {y}", f"{y}-{m + 1:02d}-{d:02d}"]
            texts.append(f"{name[:3]} {d}, {y}")
        else:
            texts += [f"the {_ordinal(d)} of {name}", f"{name[:3]} {d}"]
        return [f for t in texts for f in (rf"\text{{{t}}}", plain(t), region(f"The date is {t}."))]

    near = rng.choice(
        [(at, day % 28 + 1, year), ((at + 1) % 12, min(day, 28), year)]
        + ([(at, day, year + 1), (at, day, year - 1)] if year else [])
    )
    gold = f"{_MONTHS[at][0]} {day}" + (f", {year}" if year else "")
    return Case(rng.choice([gold, rf"\text{{{gold}}}"]), forms(at, day, year), forms(*near))


def yes_no(rng: random.Random) -> Case:
    right, near = rng.sample(rng.choice([["Yes", "No"], ["True", "False"]]), 2)
    n = rng.randrange(2, 900)

    def forms(w: str) -> list[Answer | str]:
        forms: list[Answer | str] = [
            rf"\text{{{w}}}",
            rf"\text{{{w.lower()}}}",
            plain(w),
            plain(w.lower()),
            rf"\textbf{{{w}}}",
        ]
        forms += [region(f"**{w}**"), region(f"The answer is {w.lower()}."), region(f"{w}.")]
        if w in ("Yes", "No"):
            forms.append(region(f"{w}, because the case {n} can{'' if w == 'Yes' else 'not'} occur."))
        return forms

    return Case(
        rng.choice([right, rf"\text{{{right}}}"]),
        forms(right),
        [*forms(near), region(f"{right} or {near}, it depends.")],
    )


def text_around(rng: random.Random) -> Case:
    """A number with words in the box."""
    n, noun = (
        rng.randrange(2, 5000),
        rng.choice(["apples", "ways", "units", "points", "years", "integers", "pairs", "squares"]),
    )

    def forms(k: int) -> list[Answer | str]:
        return [
            rf"\text{{{k}}}",
            rf"\textbf{{{k}}}",
            rf"\mathrm{{{k}}}",
            rf"{k} \text{{ {noun}}}",
            rf"\text{{{k} {noun}}}",
            rf"\mathbf{{{k}}}",
            rf"\text{{Area}} = {k}",
            rf"N = {k}",
            rf"\textit{{{k}}}",
            rf"\text{{Answer: }} {k}",
            rf"{k} \,\text{{{noun}}}",
            rf"f({k % 9}) = {k}",
            rf"\text{{a total of }} {k}",
            rf"\left|S\right| = {k}",
            rf"\angle ABC = {k}",
        ]

    return Case(str(n), forms(n), forms(n + rng.choice([1, -1, 10, 100])))


KINDS: dict[str, tuple[int, Kind]] = {
    "choice": (12, choice),
    "several choices": (2, choices),
    "word": (3, word),
    "date": (2, date),
    "yes, no": (2, yes_no),
    "text around a number": (5, text_around),
}
