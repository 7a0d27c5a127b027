"""Values of expression trees to any number of digits, real and complex (mpmath: no computer algebra, no strings)."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from r1pipe.rewards import mathbudget
from r1pipe.rewards.mathexact import MAX_TERMS, Undefined
from r1pipe.rewards.mathlex import TooHard, Unreadable
from r1pipe.rewards.mathtree import Node, num, size, substitute

MAX_MAGNITUDE = 30_000  # binary, of every number on the way

_local = threading.local()


def _context() -> Any:
    """mpmath keeps its precision in a context: one a thread."""
    if not hasattr(_local, "context"):
        from mpmath.ctx_mp import MPContext

        _local.context = MPContext()
    return _local.context


class Evaluator:
    """Values at one point. `magnitude` is the largest binary exponent that was met, by size; `real`: what is complex
    on the way is undefined."""

    def __init__(
        self,
        precision: int,
        at: Mapping[str, Fraction] | None = None,
        *,
        log_base: int | None = None,
        real: bool = False,
    ) -> None:
        self.mp, self.real = _context(), real
        self.mp.prec = precision
        self.at = {name: self._number(value) for name, value in (at or {}).items()}
        self.log_base = log_base
        self.magnitude = 0
        self.price = 1 + (precision / 400) ** 1.6

    def value(self, node: Node) -> Any:
        """Raises Undefined, TooHard, Unreadable."""
        value = self._value(node)
        mathbudget.spend(int((3 if node.op in _CHEAP else 40) * self.price))
        if self.real and value.imag != 0:
            raise Undefined("not real here")
        if value != 0:
            magnitude = abs(int(self.mp.mag(value)))
            if magnitude > MAX_MAGNITUDE:
                raise TooHard("too large a number")
            self.magnitude = max(self.magnitude, magnitude)
        return value

    def _number(self, value: Fraction) -> Any:
        top = self.mp.mpf(value.numerator)
        return top if value.denominator == 1 else top / value.denominator

    def _value(self, node: Node) -> Any:
        mp = self.mp
        match node.op:
            case "num":
                return self._number(node.value)
            case "sym":
                return self.at[node.name]
            case "pi":
                return +mp.pi
            case "e":
                return +mp.e
            case "i":
                return mp.mpc(0, 1)
            case "sum" | "prod":
                return self._iterated(node)
            case "inf":
                raise Unreadable("infinity within an expression")
        args = [self.value(a) for a in node.args]
        match node.op:
            case "add":
                total = mp.mpf(0)
                for a in args:
                    total += a
                return total
            case "mul":
                product = mp.mpf(1)
                for a in args:
                    product *= a
                return product
            case "inv":
                return 1 / self._nonzero(args[0])
            case "pow":
                return self._pow(node.args[1], args[0], args[1])
            case "root":
                return self._root(args[0], node.args[1])
            case "deg":
                return args[0] * mp.pi / 180
            case "ln":
                return mp.log(self._nonzero(args[0]))
            case "log":
                base = args[1] if len(args) == 2 else mp.mpf(self.log_base) if self.log_base else +mp.e
                return mp.log(self._nonzero(args[0])) / self._nonzero(mp.log(self._nonzero(base)))
            case "abs":
                return abs(args[0])
            case "fact" | "binom":
                return self._combinations(node.op, args)
            case "max" | "min" if all(map(_real, args)):
                return (max if node.op == "max" else min)(a.real for a in args)
            case "floor" | "ceil" if _real(args[0]):
                return mp.floor(args[0].real) if node.op == "floor" else mp.ceil(args[0].real)
            case "sgn" if _real(args[0]):
                return mp.sign(args[0].real)
            case "Re":
                return mp.mpf(args[0].real)
            case "Im":
                return mp.mpf(args[0].imag)
        if node.op in _FUNCTIONS:
            if abs(args[0]) > 1 << 40:
                raise TooHard(f"{node.op} of a large number")
            if node.op == "tan" and abs(mp.cos(args[0])) < mp.mpf(2) ** (-mp.prec // 2):
                raise Undefined("a pole of tan")
            if node.op == "arctan" and args[0] in (1j, -1j):
                raise Undefined("a pole of arctan")
            return getattr(mp, _FUNCTIONS[node.op])(args[0])
        raise Unreadable(node.op)

    def _nonzero(self, value: Any) -> Any:
        if value == 0:
            raise Undefined("division by zero")
        return value

    def _pow(self, exponent: Node, base: Any, power: Any) -> Any:
        if base == 0:
            if power.real <= 0:
                raise Undefined("0 to a power that is not positive")
            return base
        if exponent.op == "num" and exponent.value.denominator == 1:
            if abs(exponent.value) > 1 << 40:
                raise TooHard("a large power")
            return base ** int(exponent.value)
        if abs(power) * max(1, abs(int(self.mp.mag(base)))) > MAX_MAGNITUDE * 2:
            raise TooHard("a large power")
        if exponent.op == "num" and exponent.value.denominator % 2 and _real(base) and base.real < 0:
            return (-base.real) ** power * (-1) ** exponent.value.numerator
        return base**power

    def _root(self, value: Any, degree: Node) -> Any:
        if degree.op != "num" or degree.value == 0 or abs(degree.value) > 1 << 20:
            raise Unreadable("a root of this degree")
        if value == 0:
            return value
        if degree.value == 2:
            return self.mp.sqrt(value)
        return self._pow(num(1 / degree.value), value, self._number(1 / degree.value))

    def _combinations(self, op: str, args: list[Any]) -> Any:
        whole = []
        for a in args:
            if not _real(a) or a.real != int(a.real) or not 0 <= a.real < 10_000:
                raise Undefined(f"{op} of this number")
            whole.append(int(a.real))
        mathbudget.spend(2_000)
        return self.mp.factorial(whole[0]) if op == "fact" else self.mp.binomial(*whole)

    def _iterated(self, node: Node) -> Any:
        body, low, high = node.args
        ends = [self.value(low), self.value(high)]
        if not all(_real(e) and e.real == int(e.real) for e in ends) or ends[1].real - ends[0].real > MAX_TERMS:
            raise TooHard("a long sum")
        mathbudget.spend(20 * size(body) * max(0, int(ends[1].real - ends[0].real)))
        total = self.mp.mpf(0 if node.op == "sum" else 1)
        for k in range(int(ends[0].real), int(ends[1].real) + 1):
            term = self.value(substitute(body, node.name, num(k)))
            total = total + term if node.op == "sum" else total * term
        return total


def _real(value: Any) -> bool:
    return value.imag == 0


_CHEAP = frozenset({"num", "sym", "pi", "e", "i", "add", "mul", "inv", "abs"})
_FUNCTIONS = {
    "sin": "sin", "cos": "cos", "tan": "tan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "arcsin": "asin",
    "arccos": "acos", "arctan": "atan",
}  # fmt: skip
