"""By what a party is found, and what a search means. Pure.

A term is COMPANY/KIND, and the word of a name, the e-mail address, or the digits of the phone number from the last one
to the first. All of them are found by their beginning: so a phone number is found by its last digits.
"""

from __future__ import annotations

import re
import types
import unicodedata
from collections.abc import Sequence
from typing import Literal, NamedTuple

from chassis.lists.spelling import Near
from chassis.lists.words import query_words, tsquery, words_of
from chassis.refusals import invalid_request

ResidentStatus = Literal["current", "future", "former"]

WORDS_POINTS_MAX = 200
LIMIT, LIMIT_MAX = 8, 50
# What names of one letter, and shorter numbers and addresses, would find says nothing.
NAME_LETTERS_LEAST, PHONE_DIGITS_LEAST, EMAIL_LETTERS_LEAST = 2, 7, 3

_NONE: Near = types.MappingProxyType({})
_EXTENSION = re.compile(r"\s*(?:[,;]|\bext\b|\bextension\b|x|#).*", re.IGNORECASE | re.DOTALL)
_PHONE = re.compile(r"[-\d\s+()./\u2010-\u2015]+")


def digits_of(phone: str) -> str:
    """A phone number's digits, without an extension and without zeros before it, which only a caller from the same
    country dials."""
    plain = _EXTENSION.sub("", unicodedata.normalize("NFKC", phone))
    return "".join(str(unicodedata.decimal(sign)) for sign in plain if sign.isdecimal()).lstrip("0")


def terms_of(
    company_id: int, first_name: str | None, last_name: str | None, email: str | None, phone: str | None
) -> list[str]:
    """The terms of one party."""
    terms = [("n", word) for word in words_of(first_name, last_name)]
    if email and email.strip():
        terms.append(("e", _folded(email)))
    if phone and (digits := digits_of(phone)):
        terms.append(("p", digits[::-1]))
    return [f"{company_id}/{kind}{text}" for kind, text in terms]


class Search(NamedTuple):
    """What a text searches for."""

    phone: str = ""
    """The text of a tsquery for a phone number; then there are no names and no addresses."""
    names: Sequence[str] = ()
    """The beginnings of words of a name."""
    addresses: Sequence[str] = ()
    """The beginnings of e-mail addresses."""

    @property
    def by_contacts(self) -> bool:
        """Whether what is found tells whose a phone number or an e-mail address is."""
        return bool(self.phone or self.addresses)

    def query(self, company_id: int, *, whole: bool = False, near: Near = _NONE) -> str:
        """The text of a tsquery; empty if nothing is searched for. whole: it wants whole words of names; near: words
        of names that may be meant."""
        names = tsquery(self.names, name_prefix(company_id), whole=whole, near=near)
        addresses = (_quoted(company_id, "e", address) + ":*" for address in self.addresses)
        return " & ".join(part for part in (self.phone, names, *addresses) if part)


def name_prefix(company_id: int) -> str:
    """How the terms of names begin."""
    return f"{company_id}/n"


def search_of(company_id: int, text: str) -> Search:
    """What a text searches for: a phone number if it has nothing else, else its words, all of which must be a party's.
    A word with an "@" is the beginning of an e-mail address. Raises Refusal 400 for a text that is too long."""
    if len(text) > WORDS_POINTS_MAX:
        raise invalid_request(f"words may have {WORDS_POINTS_MAX} characters at most.", "words")
    text = unicodedata.normalize("NFKC", text).replace("\0", " ").strip()
    if _PHONE.fullmatch(_EXTENSION.sub("", text)):
        return Search(phone=_by_phone(company_id, digits_of(text)))
    addresses = [_folded(part) for part in text.split() if "@" in part]
    names = query_words(" ".join(part for part in text.split() if "@" not in part))
    if any(len(address.partition("@")[0]) < EMAIL_LETTERS_LEAST for address in addresses):
        return Search()
    if not addresses and all(len(name) < NAME_LETTERS_LEAST and name.isascii() for name in names):
        return Search()
    return Search(names=names, addresses=addresses)


def _by_phone(company_id: int, digits: str) -> str:
    """Numbers that end in these digits, and shorter ones in which these end: one of both may lack the country or the
    area."""
    if len(digits) < PHONE_DIGITS_LEAST:
        return ""
    backwards = digits[::-1]
    shorter = (backwards[:length] for length in range(PHONE_DIGITS_LEAST, len(backwards)))
    longer = _quoted(company_id, "p", backwards) + ":*"
    return " | ".join([longer, *(_quoted(company_id, "p", number) for number in shorter)])


def _folded(email: str) -> str:
    return "".join(unicodedata.normalize("NFKC", email).split()).casefold()


def _quoted(company_id: int, kind: str, text: str) -> str:
    return f"'{company_id}/{kind}" + text.replace("\\", "\\\\").replace("'", "''") + "'"
