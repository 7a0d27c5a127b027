"""Chinese or Japanese: which of the two runs of Han and kana are written in.

Kana alone does not say it (a Japanese title in a Chinese sentence, `の` sprinkled over Chinese). The characters do:
those that the Japanese standard lacks (们, 计), old forms and particles that Japanese no longer uses (這, 嗎), those
that only the Japanese standard has (辺, 込), and hiragana, which Japanese grammar cannot do without. The standard
character sets are codecs of Python. Simplified and traditional Chinese are one language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from r1pipe.rewards.words.scripts import LETTERS_PER_WORD

FEW = 4

_CHINESE = frozenset("們這兩嗎呢吧啊麼很沒還對說妳她它哪給讓從會國學數來將處實點關與當應條邊圓總變證讀單圖體是")
_HIRAGANA = re.compile("[\u3041-\u3096]")
_KANA = re.compile("[\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff]")


def _encodes(char: str, codec: str) -> bool:
    try:
        char.encode(codec)
    except UnicodeEncodeError:
        return False
    return True


@cache
def _leaning(char: str) -> int:
    """1: Chinese, -1: Japanese, 0: both write it."""
    if char in _CHINESE or not _encodes(char, "shift_jis"):
        return 1
    return 0 if _encodes(char, "gb2312") or _encodes(char, "big5") else -1


def split(runs: Iterable[str], japanese_target: bool) -> tuple[float, float]:
    """Words of Chinese and of Japanese in runs of Han and kana.

    A run without a sign of either goes with the rest of the text. Where there is no rest it is Chinese, but a few
    characters are Japanese where that is the target.
    """
    chinese = japanese = undecided = 0.0
    letters = hiragana = 0
    for run in runs:
        soft = len(_HIRAGANA.findall(run))
        kana = len(_KANA.findall(run)) / LETTERS_PER_WORD["kana"]
        characters = _KANA.sub("", run)
        han = len(characters) / LETTERS_PER_WORD["han"]
        leaning = sum(map(_leaning, characters))
        letters, hiragana = letters + len(run), hiragana + soft
        japanese += kana
        if leaning > 0 if not kana else 2 * leaning > soft:
            chinese += han
        elif kana or leaning < 0:
            japanese += han
        else:
            undecided += han
    few = japanese_target and letters <= FEW
    if few or (hiragana > 0.2 * letters and japanese > 2 * chinese):
        return chinese, japanese + undecided
    return chinese + undecided, japanese
