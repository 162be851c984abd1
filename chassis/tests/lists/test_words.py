"""Words in any script: what a search finds in a record's texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis.lists.words import LETTERS_MAX, QUERY_WORDS_MAX, folded, query_words, tsquery, words_of


def finds(search: str, *texts: str) -> bool:
    stored, searched = words_of(*texts), query_words(search)
    return bool(searched) and all(any(stored_word.startswith(word) for stored_word in stored) for word in searched)


@pytest.mark.parametrize(
    ("search", "text"),
    [
        ("alder 20", "Alder Court 204"),
        ("COURT alder", "Alder Court 204"),
        ("residence du vieux", "Résidence du Vieux-Port"),
        ("Résidence", "RESIDENCE"),
        ("nguyen", "Nguyễn Thị Hồng Hạnh"),
        ("hauptstrasse", "Hauptstraße 4"),
        ("wh-102", "Water heater WH-102"),
        ("wh102", "Water heater WH-102"),
        ("102", "Water heater WH-102"),
        ("桜コ", "桜コート Sakura Court"),
        ("コート", "桜コート Sakura Court"),
        ("ト", "桜コート"),
        ("ｻｸﾗ", "サクラ荘"),
        ("301号", "301号室"),
        ("天花板", "卫生间天花板漏水,墙面起泡"),
        ("בכיור", "דליפה מתחת לכיור בכיור"),
        ("المكيف", "المكيف لا يعمل"),
        ("ห้องน้ำ", "น้ำรั่วในห้องน้ำชั้นสอง"),
        ("서울", "서울타워 301호"),
        ("кв", "Дом 4, кв. 17"),
    ],
)
def test_a_search_finds_the_text(search: str, text: str) -> None:
    assert finds(search, text)


@pytest.mark.parametrize(
    ("search", "text"),
    [("lder", "Alder Court"), ("alder 3", "Alder Court 204"), ("板花", "天花板"), ("", "Alder"), ("--", "Alder -- 4")],
)
def test_a_search_does_not_find_the_text(search: str, text: str) -> None:
    assert not finds(search, text)


@given(st.text(max_size=120))
def test_a_record_is_found_by_its_own_words(text: str) -> None:
    words = query_words(text)
    assert len(words) <= QUERY_WORDS_MAX and (not words or finds(text, text))
    for word in (*words, *words_of(text)):
        assert 0 < len(word) <= LETTERS_MAX and not set(word) & set(" '\\&|!:*()<>\x00")


def test_a_text_of_ascii_alone_has_the_words_that_it_has_beside_another_letter() -> None:
    for sign in map(chr, range(128)):
        text = f"A{sign}b c{sign} {sign}D"
        assert query_words(f"{text} я") == [*query_words(text), "я"], sign


def test_a_query_wants_all_words_or_their_beginnings() -> None:
    assert tsquery(["alder", "20"], "7u.") == "'7u.alder':* & '7u.20':*"
    assert tsquery(["alder"], whole=True) == "'alder'"
    assert folded("ＣＡＦÉ") == "cafe"
