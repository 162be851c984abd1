"""The words and values by which a ticket is found, and the keys by which it is ordered. Pure.

Words are compared without case, without the marks on Latin, Greek, Cyrillic, Hebrew and Arabic letters, and in one form
of Unicode: "nguyen" finds "Nguyễn". Scripts that put no spaces between words (Chinese, Japanese, Thai, Lao, Khmer,
Burmese) are cut into pairs of letters.
"""

from __future__ import annotations

import datetime
import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from chassis.refusals import Refusal, invalid_request
from svc_tickets.tickets.rules.fields import EMERGENCY, PRIORITIES
from svc_tickets.tickets.rules.staleness import CLOSED

# The longest stretch of a ticket's texts that is searched, in characters, and the longest word.
TEXT_MAX, WORD_MAX = 100_000, 60
QUERY_MAX, QUERY_WORDS_MAX = 200, 12
SOON_HOURS = 24

# Marks that people leave out: combining accents, Hebrew points, Arabic vowels and the stretching of Arabic words.
_MARKS = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0640\u064b-\u065f\u0670]")
# Letters of scripts without spaces between words, in runs.
_UNSPACED = (
    "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
_RUN = re.compile(f"([{_UNSPACED}]+)")
_ASCII_WORD = re.compile("[0-9a-z]+")


def _plain(text: str) -> str:
    spread = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", _MARKS.sub("", spread)).casefold()


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """The words of a text, and the runs of letters without spaces, which are marked True."""
    letters: list[str] = []
    for sign in _plain(text) + " ":
        # A mark belongs to the letter before it: a vowel of Hindi, a tone of Thai.
        if sign.isalnum() or (letters and unicodedata.category(sign)[0] == "M"):
            letters.append(sign)
        elif letters:
            for place, part in enumerate(_RUN.split("".join(letters))):
                if part:
                    yield part, place % 2 == 1
            letters.clear()


def words_of(texts: Iterable[str | None]) -> set[str]:
    """What finds these texts: each word, each pair of letters of a run, and the run's last letter."""
    words: set[str] = set()
    for text in texts:
        if not text:
            continue
        if text.isascii():  # the same words as below, in a fifth of the time
            words.update(word[:WORD_MAX] for word in _ASCII_WORD.findall(text.lower()))
            continue
        for piece, is_run in _pieces(text):
            if is_run:
                words.update(piece[place : place + 2] for place in range(len(piece)))
            else:
                words.add(piece[:WORD_MAX])
    return words


def cut(texts: Iterable[str | None]) -> Iterator[str]:
    """The first TEXT_MAX characters of texts that follow one another."""
    room = TEXT_MAX
    for text in texts:
        if text and room > 0:
            yield text[:room]
            room -= len(text)


class Sought(NamedTuple):
    """One word of a search. is_beginning: words that begin with it fit too."""

    text: str
    is_beginning: bool


def sought(text: str) -> list[Sought]:
    """The words of a search, all of which must be in a ticket. Raises Refusal if there are too many, or none."""
    if len(text) > QUERY_MAX:
        raise invalid_request(f"words may have {QUERY_MAX} characters at most.", "words")
    words: list[Sought] = []
    for piece, is_run in _pieces(text):
        if not is_run or len(piece) == 1:
            words.append(Sought(piece[:WORD_MAX], True))
        else:
            words += [Sought(piece[place : place + 2], False) for place in range(len(piece) - 1)]
    if not words:
        raise invalid_request("words has no letter or digit.", "words")
    return list(dict.fromkeys(words))[:QUERY_WORDS_MAX]


# Terms: how a row of `ticket_search` spells words and values. Each begins with the company, so that other companies'
# tickets cost a search nothing.


def term(company_id: int, kind: str, value: object) -> str:
    """kind: "w" for a word, else a letter for each filter."""
    return f"{company_id}/{kind}{value}"


def value_terms(kind: str, value: object | None) -> list[tuple[str, object]]:
    """The terms of a value that a ticket may lack: of the value and of having one, or of having none."""
    return [(kind, value), (kind, "+")] if value is not None else [(kind, "-")]


def name_of(external_id: str) -> str:
    """How a term spells an external id, which may have any characters and any length."""
    return hashlib.blake2b(external_id.encode(), digest_size=12).hexdigest()


def all_of(
    company_id: int,
    groups: Sequence[Sequence[tuple[str, object]]],
    words: Sequence[Sought],
    near: Mapping[str, Sequence[str]],
) -> str:
    """The text of a tsquery: one term of each group, and each word. near: words that fit in place of one, by it."""
    parts = [
        "(" + "|".join(_quoted(term(company_id, *code_and_value)) for code_and_value in group) + ")" for group in groups
    ]
    for word in words:
        itself = _quoted(term(company_id, "w", word.text)) + (":*" if word.is_beginning else "")
        others = [_quoted(term(company_id, "w", other)) for other in near.get(word.text, ())]
        parts.append("(" + "|".join([itself, *others]) + ")" if others else itself)
    return "&".join(parts)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


# Keys: whole numbers, ascending, so that one kind of cursor serves every order.

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
# More microseconds than there are from 1970 to any instant of a ticket.
_AGE = 2**58
LARGEST = 2**62


def opened_key(at: datetime.datetime) -> int:
    """Microseconds since 1970."""
    return (at - _EPOCH) // _MICROSECOND


def urgency_key(priority: str, status: str, created_at: datetime.datetime) -> int:
    """Open tickets by priority, the highest first, of each the longest open first; then closed ones, newest first."""
    opened = opened_key(created_at)
    if status in CLOSED:
        return len(PRIORITIES) * _AGE + _AGE - opened
    return (len(PRIORITIES) - 1 - PRIORITIES.index(priority)) * _AGE + opened


def waiting_key(quiet_since: datetime.datetime | None, priority: str, created_at: datetime.datetime) -> int:
    """Tickets that can go stale, emergencies first, of each the longest quiet first; then all others, the newest
    first."""
    if quiet_since is None:
        return 3 * _AGE - opened_key(created_at)
    return opened_key(quiet_since) + (0 if priority == EMERGENCY else _AGE)


class Cursor(NamedTuple):
    """A place in a list: a row's key and id."""

    key: int
    id: int

    def __str__(self) -> str:
        return f"{self.key}.{self.id}"


_CURSOR = re.compile(r"(-?[0-9]{1,19})\.([0-9]{1,19})")


def read_cursor(text: str) -> Cursor:
    """Raises Refusal for a text that is no cursor."""
    match = _CURSOR.fullmatch(text)
    if match is not None:
        cursor = Cursor(int(match[1]), int(match[2]))
        if abs(cursor.key) <= LARGEST and cursor.id < 2**63:
            return cursor
    raise Refusal(400, "invalid_cursor", "The cursor was not issued by this list.")
