"""By what residents are found: the words of names, phone numbers however they are written, beginnings of addresses."""

from __future__ import annotations

import re

import pytest

from chassis.lists.words import near_words
from chassis.refusals import Refusal
from svc_occupancy.search import terms


def finds(query: str, party_terms: list[str]) -> bool:
    """What PostgreSQL makes of a tsquery of these terms: groups of alternatives, all of which must match."""
    groups = [re.findall(r"'((?:[^']|'')*)'(:\*)?", group) for group in query.split(" & ")]
    return bool(query) and all(
        any(
            term.startswith(text.replace("''", "'")) if prefix else term == text.replace("''", "'")
            for text, prefix in group
            for term in party_terms
        )
        for group in groups
    )


def is_found(text: str, *party: str | None, close: bool = False) -> bool:
    search = terms.search_of(7, text)
    near = {name: near_words(name) for name in search.names} if close else {}
    return finds(search.query(7, near=near), terms.terms_of(7, *party))


@pytest.mark.parametrize(
    "stored", ["+1 (503) 555-0142", "503.555.0142", "5035550142 x12", "555-0142", "1 503 555 0142"]
)
@pytest.mark.parametrize(
    "typed", ["+1 (503) 555-0142", "(503) 555-0142", "5035550142", "555-0142", "503 555 0142 ext. 7", "+1.503.555.0142"]
)
def test_a_phone_number_is_found_however_either_side_is_written(stored: str, typed: str) -> None:
    assert is_found(typed, None, None, None, stored)


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("020 7946 0958", "+44 20 7946 0958"),
        ("+44 20 7946 0958", "020 7946 0958"),
        ("٠٢٠ ٧٩٤٦ ٠٩٥٨", "020 7946 0958"),
    ],
)
def test_a_phone_number_of_another_country_is_found_with_its_code_or_with_its_zero(typed: str, stored: str) -> None:
    assert is_found(typed, None, None, None, stored)


def test_fewer_digits_than_a_local_number_and_other_digits_find_nobody() -> None:
    phone = (None, None, None, "+1 (503) 555-0142")
    assert not is_found("0142", *phone) and not is_found("503 555", *phone) and not is_found("555-0143", *phone)
    assert not is_found("+1 604 555-0142", *phone)


def test_an_address_is_found_by_its_beginning_in_any_case() -> None:
    party = ("Ana", "Ortiz", "Ana.O'Neil+x@Example.com", None)
    for typed in ("ana.o'neil+x@example.com", "ANA.O'NEIL+X@exam", "ortiz ana.o'neil+x@"):
        assert is_found(typed, *party), typed
    assert not is_found("neil+x@example.com", *party) and not is_found("@example.com", *party)
    # An address that somebody else has is no name.
    assert not is_found("ana@example.com", *party)


@pytest.mark.parametrize(
    ("typed", "first", "last"),
    [
        ("mar lop", "María", "López"),
        ("LÓPEZ", "Maria", "Lopez"),
        ("obrien", "Sean", "O’Brien"),
        ("o'brien", "Sean", "O'Brien"),
        ("nguyen", "Thi", "Nguyễn"),
        ("小明", "王小明", None),
        ("王", "王小明", None),
        ("สม", "สมชาย", "ใจดี"),
        ("анн", "Анна", "Кузнецова"),
    ],
)
def test_a_name_is_found_by_the_beginnings_of_its_words_in_any_script(
    typed: str, first: str | None, last: str | None
) -> None:
    assert is_found(typed, first, last, None, None)
    assert not is_found(f"{typed} qq", first, last, None, None)


@pytest.mark.parametrize("typed", ["Alvrez", "Alvarezz", "Avlarez", "Alvarsz", "maria alvrez", "Кузнцова", "zlvarez"])
def test_one_wrong_letter_of_a_name_is_forgiven_where_no_name_is_spelled_so(typed: str) -> None:
    party = ("Кузнецова", None, None, None) if typed.startswith("К") else ("Maria", "Alvarez", None, None)
    assert not is_found(typed, *party) and is_found(typed, *party, close=True)


def test_short_words_numbers_and_two_errors_are_taken_as_they_are() -> None:
    assert near_words("lee") == near_words("b204") == near_words("王小明王") == near_words("x" * 21) == []
    assert not is_found("Alvrz", "Maria", "Alvarez", None, None, close=True)


@pytest.mark.parametrize("typed", ["", "  ", "a", "a b", "#", "@", "x@", "12", "555 01", "\0", "!!", "a@b.c"])
def test_what_says_too_little_searches_for_nobody(typed: str) -> None:
    assert terms.search_of(7, typed).query(7) == ""


def test_a_search_is_of_one_company_and_has_an_end() -> None:
    assert not finds(terms.search_of(8, "ortiz").query(8), terms.terms_of(7, "Ana", "Ortiz", None, None))
    # A line of an address would be a term of its own.
    assert all(term.startswith("7/") for term in terms.terms_of(7, "A\n8/nbob", "B", "a\n8/nbob@x.y", "1\n8/p555"))
    with pytest.raises(Refusal) as refused:
        terms.search_of(7, "x" * 201)
    assert (refused.value.status, refused.value.field) == (400, "words")


def test_only_a_number_or_an_address_tells_whose_it_is() -> None:
    assert [terms.search_of(7, text).by_contacts for text in ("ana", "555-0142", "ana@example.com")] == [
        False, True, True,
    ]  # fmt: skip
