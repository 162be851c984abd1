"""Words of records and of searches, in any script, for `tsvector` columns without a dictionary.

Both sides are made here, so that they agree whatever the database's locale is. Case and accents do not count. A word
is found by its beginning. Scripts that write no spaces (Chinese, Japanese, Thai, …) are found by pairs of letters,
wherever in the text they stand.
"""

from __future__ import annotations

import functools
import itertools
import re
import types
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

WORDS_MAX = 120
"""Of one record; further ones are not found."""
QUERY_WORDS_MAX = 10
LETTERS_MAX = 60
_TEXT_MAX = 4000
_NONE: Mapping[str, Sequence[str]] = types.MappingProxyType({})

# Blocks of scripts that write no spaces between words: Thai, Lao, Myanmar, Khmer, Kana, Bopomofo, Han.
_SPACELESS = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x3005, 0x3007),
    (0x3040, 0x312F),
    (0x31A0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
_ACCENTS = range(0x0300, 0x0370)
# Latin, Cyrillic and Greek letters, without accents.
_ALPHABETS = ("abcdefghijklmnopqrstuvwxyz", "абвгдежзиклмнопрстуфхцчшщъыьэюяєіґ", "αβγδεζηθικλμνξοπρσςτυφχψω")
_NEAR_LEAST, _NEAR_MOST = 4, 20
_ASCII_RUN = re.compile("[0-9a-z]+")


def folded(text: str) -> str:
    """The text without differences of case, width and accents: "ＣＡＦÉ" is "cafe"."""
    cased = text[:_TEXT_MAX].casefold()
    if cased.isascii():
        return cased
    apart = unicodedata.normalize("NFKD", cased)
    bare = "".join(letter for letter in apart if ord(letter) not in _ACCENTS)
    return unicodedata.normalize("NFKC", bare).casefold()


def words_of(*texts: str | None) -> list[str]:
    """The words by which a record with these texts is found, without duplicates."""
    words: dict[str, None] = {}
    for text in texts:
        for chunk in folded(text or "").split():
            runs = list(_runs(chunk))
            for is_spaceless, run in runs:
                if is_spaceless:
                    words.update(dict.fromkeys((*_pairs(run), run[-1])))
                else:
                    words[run[:LETTERS_MAX]] = None
            if len(runs) > 1 and not any(is_spaceless for is_spaceless, _ in runs):
                words["".join(run for _, run in runs)[:LETTERS_MAX]] = None  # "WH-102" is found by "wh102" too
    return list(itertools.islice(words, WORDS_MAX))


def query_words(text: str) -> list[str]:
    """The words of a search, each the beginning of a word that a record must have; none if the text has no letters."""
    words: dict[str, None] = {}
    for is_spaceless, run in _runs(folded(text)):
        words.update(dict.fromkeys(_pairs(run) if is_spaceless and len(run) > 1 else [run[:LETTERS_MAX]]))
    return list(itertools.islice(words, QUERY_WORDS_MAX))


def tsquery(
    words: Iterable[str], prefix: str = "", *, whole: bool = False, near: Mapping[str, Sequence[str]] = _NONE
) -> str:
    """The words as the text of a `tsquery` that wants all of them. Each has the `prefix`, as stored. If `whole`,
    each must be the record's word, not its beginning. near: whole words that fit in place of one (`spelling`)."""

    def alternatives(word: str) -> str:
        itself = f"'{prefix}{word}'" + ("" if whole else ":*")
        others = [f"'{prefix}{other}'" for other in near.get(word, ())]
        return "(" + " | ".join([itself, *others]) + ")" if others else itself

    return " & ".join(map(alternatives, words))


def near_words(word: str) -> list[str]:
    """The words that one typing error makes of this one: a letter that is missing, superfluous or wrong, or two that
    have changed places. Few of them are words of any record, so they are looked up as they are. None for short words,
    where one letter makes another word, for words with digits, and in scripts without an alphabet here."""
    letters = next((letters for letters in _ALPHABETS if word[0] in letters), "") if word else ""
    if not _NEAR_LEAST <= len(word) <= _NEAR_MOST or not set(word) <= set(letters):
        return []
    cuts = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    near = {begin + end[1:] for begin, end in cuts if end}
    near |= {begin + end[1] + end[0] + end[2:] for begin, end in cuts if len(end) > 1}
    near |= {begin + letter + end[1:] for begin, end in cuts if end for letter in letters}
    near |= {begin + letter + end for begin, end in cuts for letter in letters}
    return sorted(near - {word})


def _runs(text: str) -> Iterable[tuple[bool, str]]:
    """The runs of letters and digits of a folded text, each with whether its script writes no spaces."""
    if text.isascii():  # most are: the words of a record take a fifth of the time
        yield from ((False, run) for run in _ASCII_RUN.findall(text))
        return
    for kind, run in itertools.groupby(text, _kind):
        if kind:
            yield kind == "spaceless", "".join(run)


@functools.lru_cache(4096)
def _kind(letter: str) -> str:
    if not letter.isalnum() and unicodedata.category(letter)[0] != "M":
        return ""
    code = ord(letter)
    return "spaceless" if any(first <= code <= last for first, last in _SPACELESS) else "spaced"


def _pairs(run: str) -> list[str]:
    return [run[place : place + 2] for place in range(len(run) - 1)]
