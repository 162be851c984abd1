"""Counts the words of a note, in all scripts. Pure.

Text between blanks is a word if it contains a letter or a digit; punctuation and signs alone do not count. In scripts
without blanks between words a whole sentence would be one word. There each Chinese or Japanese character counts as a
word, as in word processors. In South-East Asian scripts every three letters count as a word, and so does the rest of a
run; vowel signs and tones do not count. Three letters are a short word of those languages, so the count errs in the
writer's favour.
"""

from __future__ import annotations

import re
import unicodedata

_CHARACTERS = re.compile(
    "["
    "\u3005-\u3007\u3021-\u3029\u303b"  # marks of repetition, the ideographic zero, Hangzhou numerals
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d"  # kana
    "\u3105-\u312f\u31a0-\u31bf"  # Bopomofo
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "\ua000-\ua48c"  # Yi
    "][\u3099-\u309c\uff9e\uff9f]*"  # with the marks of voiced kana
)
_UNSPACED = re.compile(
    "["
    "\u0e00-\u0eff"  # Thai, Lao
    "\u0f00-\u0fff"  # Tibetan
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Burmese
    "\u1780-\u17ff"  # Khmer
    "\u1950-\u19df\u1a20-\u1aaf\uaa80-\uaadf"  # Tai scripts
    "]+"
)
LETTERS_A_WORD = 3
# An invisible blank between words of those scripts.
_ZERO_WIDTH_SPACE = "\u200b"


def words(text: str) -> int:
    """The number of words in the text."""
    # Each step is one pass over the text, so the time is linear whatever the text contains.
    text = _CHARACTERS.sub(" x ", text.replace(_ZERO_WIDTH_SPACE, " "))
    text = _UNSPACED.sub(lambda run: _as_words(run[0]), text)
    return sum(1 for run in text.split() if any(map(str.isalnum, run)))


def _as_words(run: str) -> str:
    """A run of an unspaced script as that many one-letter words."""
    letters = sum(1 for sign in run if unicodedata.category(sign) == "Lo")
    digits = any(unicodedata.category(sign) == "Nd" for sign in run)
    return " x" * (-(-letters // LETTERS_A_WORD) + digits) + " "
