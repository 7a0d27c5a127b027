"""Lists of words for duplicates and decontamination. English and Chinese; in other languages every word has content.

CRITICAL words make another question of the same sentence, as numbers and operators do (least and most, plus and
minus, two and three). FILLER words do not: they may differ between near duplicates. STOCK words are what problems of
all kinds are phrased with; an n-gram of nothing else says nothing about where a problem comes from (known-failures
f10).
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NUMBERS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion half third
quarter fifth sixth once twice double triple first second fourth seventh eighth ninth tenth last
"""

CRITICAL = _words(_NUMBERS) | _words(
    """
plus minus times divided multiplied multiply divide add subtract added subtracted sum difference product quotient
remainder ratio square squared cube cubed root power factorial least most minimum maximum minimal maximal smallest
largest biggest greatest lowest highest fewest less more fewer greater smaller larger longer shorter taller older
younger faster slower before after earlier later above below over under not no never none without except neither nor
odd even prime composite positive negative increasing decreasing ascending descending inside outside left right up
down north south east west odd even and or only same different true false all any every some both either per percent
area perimeter volume length width height radius diameter mean median mode average who whose whom when where why
"""
)

FILLER = _words(
    """
a an the of in on at to for from by with as is are was were be been being it its this that these those there here
what which how do does did can could will would shall should may might must let lets
find determine compute calculate evaluate give given suppose assume please answer question problem exercise solve
show say tell write express value values result total following below then so thus hence now also if we you your our
i he she they them his her their my me us such have has had having get gets got
"""
)

STOCK = (
    FILLER
    | _words("zero one two three first second last once twice half")
    | _words(
        """
how many much number numbers integer integers digit digits positive negative nonnegative whole real natural rational
complex prime primes odd even distinct different same consecutive exactly all any every each some both either only at
most least less than greater more fewer equal equals or and not no between inclusive up possible ways way sum product
difference ratio remainder divided divisible multiple multiples factor factors divisor divisors square cube root
smallest largest greatest minimum maximum function functions equation equations expression polynomial solution
solutions set sets pair pairs triple triples ordered sequence term terms point points line lines segment side sides
length area perimeter volume angle angles degrees triangle circle rectangle square radius diameter plane graph
probability random randomly chosen common fraction simplest form decimal nearest rounded written relatively coprime
form where when respectively let denote satisfy satisfies satisfying condition conditions true false form final
put boxed within step steps reason reasoning think carefully solve explain work simplify units mathematical math
english language following options option choices choice correct statement statements text passage sentence
list write code program output input return string array example examples instruction instructions response
"""
    )
    | CRITICAL
) - _words(
    "four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen "
    "twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion"
)

# Chinese characters, by the same rules.
CRITICAL_HAN = frozenset(
    "〇零一二两三四五六七八九十百千万亿半倍加减乘除和差积商余大小多少高低长短前后上下左右内外不无非未最正负奇偶质合增减东南西北"
)
STOCK_HAN = frozenset(
    "的了是在有和与或及为使得其中这个那些每各共几多少个数整正负自然实有理无奇偶质素合不大小于等至最值求计算设已知若则满足条件"
    "方程函数解答案问题请给出写所有可能种法长度面积周角形三边点线直圆半径内外上下之间求和差积商余除以加减乘一二两位数字组集元素如果"
    "那么时且且下列选项正确的是多少什么怎样"
)
