"""How many words a note has, fair to every way of writing. Pure.

What stands between blanks is a word where it holds a letter or a digit; punctuation and signs alone say nothing.
Scripts without blanks between words would make one word of a whole sentence. There each Chinese or Japanese character
counts as a word, as in word processors, and so do every three letters of a South-East Asian script, vowel signs and
tones aside, or what is left of a run: a short word of those languages, so that the count errs in the writer's favour.
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
# A blank that is not seen; it stands between words of those scripts.
_ZERO_WIDTH_SPACE = "\u200b"


def words(text: str) -> int:
    """How many words the text has."""
    # In order of length: every step is one walk over the text, whatever it holds.
    text = _CHARACTERS.sub(" x ", text.replace(_ZERO_WIDTH_SPACE, " "))
    text = _UNSPACED.sub(lambda run: _as_words(run[0]), text)
    return sum(1 for run in text.split() if any(map(str.isalnum, run)))


def _as_words(run: str) -> str:
    """A run of an unspaced script, as so many words of one letter."""
    letters = sum(1 for sign in run if unicodedata.category(sign) == "Lo")
    digits = any(unicodedata.category(sign) == "Nd" for sign in run)
    return " x" * (-(-letters // LETTERS_A_WORD) + digits) + " "
