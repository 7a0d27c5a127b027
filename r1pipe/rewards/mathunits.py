r"""Units of measure and money: what `km/h`, `square meters`, `cm^2`, `\$`, `元` measure, and in which size."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from r1pipe.rewards.shortcache import short_cache


@dataclass(frozen=True, slots=True)
class Unit:
    """`kind`: base dimension -> power, sorted; `factor` to the base unit of that kind."""

    kind: tuple[tuple[str, int], ...]
    factor: Fraction


_METRIC = {  # base unit -> its kind, spellings without prefix, prefixes in use
    "length": (["m"], ["meter", "metre"], "k c m d n"),
    "mass": (["g"], ["gram", "gramme"], "k m c"),
    "volume": (["L", "l"], ["liter", "litre"], "m c d"),
    "time": (["s"], ["second"], "m n"),
    "energy": (["J"], ["joule"], "k M"),
    "power": (["W"], ["watt"], "k M m"),
    "force": (["N"], ["newton"], "k m"),
    "pressure": (["Pa"], ["pascal"], "k M h"),
    "voltage": (["V"], ["volt"], "k m"),
    "current": (["A"], ["ampere", "amp"], "m"),
    "resistance": (["Ω"], ["ohm"], "k M"),
    "frequency": (["Hz"], ["hertz"], "k M G"),
    "amount": (["mol"], ["mole"], "m"),
}
_PREFIXES = {
    "k": ("kilo", "1000"), "h": ("hecto", "100"), "d": ("deci", "1/10"), "c": ("centi", "1/100"),
    "m": ("milli", "1/1000"), "n": ("nano", "1/1000000000"), "M": ("mega", "1000000"), "G": ("giga", "1000000000"),
}  # fmt: skip
_OTHERS = {  # kind -> spellings -> factor
    "length": {
        "in inch inches": "0.0254", "ft foot feet": "0.3048", "yd yard yards": "0.9144",
        "mi mile miles": "1609.344", "μm micrometer micrometers micron microns": "1/1000000",
        "米 公尺": "1", "千米 公里": "1000", "厘米 公分": "1/100", "毫米": "1/1000", "分米": "1/10",
    },
    "mass": {
        "t ton tons tonne tonnes 吨": "1000000", "lb lbs pound pounds": "453.59237", "oz ounce ounces": "28.349523125",
        "克": "1", "千克 公斤": "1000", "毫克": "1/1000", "斤": "500",
    },
    "volume": {"升": "1", "毫升": "1/1000", "gal gallon gallons": "3.785411784", "cc": "1/1000"},
    "time": {
        "sec secs 秒": "1", "min mins minute minutes 分钟": "60", "h hr hrs hour hours 小时": "3600",
        "day days 天": "86400", "week weeks 周 星期": "604800",
    },
    "years": {"year years yr yrs 年": "1", "month months 个月": "1/12"},
    "angle": {"° deg degree degrees 度": "1"},
    "radians": {"rad rads radian radians 弧度": "1"},
    "dollars": {"$ dollar dollars USD US$": "1", "cent cents ¢": "1/100"},
    "euros": {"€ euro euros EUR": "1"},
    "pounds sterling": {"£ GBP": "1"},
    "yuan": {"元 块 块钱 人民币 yuan RMB CNY ¥": "1", "角": "1/10"},
    "rupees": {"₹ rupee rupees Rs": "1"},
    "celsius": {"°C celsius 摄氏度": "1"},
    "fahrenheit": {"°F fahrenheit 华氏度": "1"},
    "speed": {"mph": "0.44704", "kph kmh kmph": "5/18"},
}  # fmt: skip


def _table() -> dict[str, Unit]:
    found: dict[str, Unit] = {}
    for what, (symbols, words, prefixes) in _METRIC.items():
        for prefix, (long, factor) in {"": ("", "1"), **{p: _PREFIXES[p] for p in prefixes.split()}}.items():
            spellings = [prefix + s for s in symbols] + [long + w + end for w in words for end in ("", "s")]
            found |= {s: _base(what, Fraction(factor)) for s in spellings}
    for what, units in _OTHERS.items():
        for spellings_, factor in units.items():
            found |= {s: _base(what, Fraction(factor)) for s in spellings_.split()}
    return found


def _base(what: str, factor: Fraction) -> Unit:
    if what == "volume":  # a litre is a cubic decimetre
        return Unit((("length", 3),), factor / 1000)
    if what == "speed":
        return Unit((("length", 1), ("time", -1)), factor)
    return Unit(((what, 1),), factor)


UNITS = _table()
_FACTOR = re.compile(r"([A-Za-z°μΩ$€£¥₹¢\u4e00-\u9fff]+)(?:\^?\{?(-?[1-6])\}?)?")


@short_cache(4096)
def parse(text: str) -> Unit | None:
    """The unit that a text names as a whole; None where it names none that is known."""
    text = text.strip(" .\\~").replace("²", "^2").replace("³", "^3")
    if not text or len(text) > 40:
        return None
    for word, power in (("平方", 2), ("立方", 3)):
        if text.startswith(word):
            unit = parse(text.removeprefix(word))
            return _power(unit, power) if unit else None
    text = re.sub(r"(?:°|deg(?:ree)?s?) ?(C|F|[Cc]elsius|[Ff]ahrenheit)$", lambda m: "°" + m[1][0].upper(), text)
    text = re.sub(r"\s*(?:/|\bper\b)\s*", "/", text)
    kind: dict[str, int] = {}
    factor = Fraction(1)
    sign, raised = 1, 1
    for word in re.findall(r"/|[^\s/*·]+", text):
        if word == "/":
            sign = -1
        elif word.lower() in ("square", "sq", "sq.", "squared"):
            raised = 2
        elif word.lower() in ("cubic", "cu"):
            raised = 3
        else:
            match = _FACTOR.fullmatch(word)
            unit = _named(match[1]) if match else None
            if match is None or unit is None:
                return None
            unit = _power(unit, sign * raised * int(match[2] or 1))
            raised, factor = 1, factor * unit.factor
            for what, power in unit.kind:
                kind[what] = kind.get(what, 0) + power
    return Unit(tuple(sorted((w, p) for w, p in kind.items() if p)), factor)


def _named(word: str) -> Unit | None:
    return UNITS.get(word) or (UNITS.get(word.lower()) if len(word) > 2 else None)


def _power(unit: Unit, power: int) -> Unit:
    return Unit(tuple((what, p * power) for what, p in unit.kind), unit.factor**power)


def ratio(text: str, other: str) -> Fraction | None:
    """What a number before the one unit is multiplied by before the other; 0 where they measure different things;
    None where one of them is no known unit. `pounds` are money beside £, else a mass."""
    unit, second = parse(text), parse(other)
    if unit is None or second is None:
        return None
    if unit.kind != second.kind:
        return Fraction({"£", "GBP"} & {text, other} != set() and {"pound", "pounds"} & {text, other} != set())
    return unit.factor / second.factor
