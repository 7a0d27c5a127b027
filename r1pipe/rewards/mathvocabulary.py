"""The words of mathematics that `mathlex` knows: LaTeX commands, functions, names, plain words."""

from __future__ import annotations


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


FUNCTIONS = _set(
    "sin cos tan cot sec csc sinh cosh tanh arcsin arccos arctan arccot ln log lg exp max min gcd lcm abs floor ceil "
    "Re Im sgn"
)
ALIASES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "arctg": "arctan", "tg": "tan", "ctg": "cot"}
OPERATORS = {  # LaTeX command -> operator
    "le": "<=", "leq": "<=", "leqslant": "<=", "leqq": "<=", "ge": ">=", "geq": ">=", "geqslant": ">=", "geqq": ">=",
    "lt": "<", "gt": ">", "ne": "!=", "neq": "!=", "approx": "~", "simeq": "~", "equiv": "==", "cup": "cup",
    "bigcup": "cup", "cap": "cap", "setminus": "\\", "backslash": "\\", "in": "in", "pm": "pm", "mp": "mp",
    "cdot": "*", "times": "*", "ast": "*", "div": "/", "bmod": "mod", "mod": "mod", "land": "and", "wedge": "and",
    "lor": "or", "vee": "or", "lbrace": r"\{", "rbrace": r"\}", "langle": "langle", "rangle": "rangle", "vert": "|",
    "lvert": "|", "rvert": "|", "mid": "|", "colon": ":", "lbrack": "[", "rbrack": "]", "degree": "°", "circ": "circ",
    "to": "->", "rightarrow": "->", "Rightarrow": "=>", "implies": "=>", "iff": "=>", "prime": "'", "%": "%",
    "{": r"\{", "}": r"\}", "|": "norm", "\\": "row", "$": "", "pmod": "pmod",
}  # fmt: skip
IGNORED = _set(
    "left right big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr middle displaystyle textstyle "
    "scriptstyle limits nolimits rm bf it quad qquad thinspace enspace hfill mathrm mathbf mathit mathsf text "
    "boldsymbol underline bm pmb large Large huge ensuremath textnormal textsf therefore , ; : ! > [ ] ( )"
)
COMMANDS = _set(
    "frac dfrac tfrac cfrac sqrt cbrt qdrt binom dbinom tbinom choose over infty pi sum prod lfloor rfloor lceil "
    "rceil mathbb emptyset varnothing ldots cdots dots dotsc dotsb vdots ddots vec overline bar hat tilde "
    "overrightarrow widehat dot angle triangle imath jmath"
)
GREEK = _set(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi rho sigma tau phi chi psi omega Gamma "
    "Delta Theta Lambda Xi Pi Sigma Phi Psi Omega ell hbar"
)
VARIANTS = {"varepsilon": "epsilon", "vartheta": "theta", "varphi": "phi", "varrho": "rho"}
WORDS = {  # plain word -> operator
    "or": "or", "and": "and", "mod": "mod", "degrees": "°", "degree": "°", "deg": "°", "percent": "%", "或": "or",
    "或者": "or", "和": "and", "与": "and", "及": "and", "且": "and", "度": "°", "cup": "cup",
}  # fmt: skip

# `abc`, `cxy` are products, `the` is not; nor are longer runs, but for capitals (points) and neighbours (`abcd`)
NEIGHBOURS = [frozenset(f) for f in ("abcd", "mnpqrst", "uvwxyz", "ijklmn", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")]
NO_PRODUCTS = _set(
    "the for all any not but are was has had let one two six ten yes odd set per day men cat dog red can you our its "
    "may she her his him who why how did get got see say way new now old out off use via box cup car bus egg pen tin "
    "bag sum end max min mod gcd lcm sin cos tan log exp abs dne inf sun mon tue wed thu fri sat jan feb mar apr jun "
    "jul aug sep oct nov dec top"
)
