"""Which words find which texts, and what cursors and keys say."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis.refusals import Refusal
from svc_tickets.search import rules
from svc_tickets.tickets.rules import fields


def finds(text: str, words: str) -> bool:
    stored = rules.words_of([text])
    return all(
        any(
            stored_word.startswith(word.text) if word.is_beginning else stored_word == word.text
            for stored_word in stored
        )
        for word in rules.sought(words)
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("No hot water since this morning", "hot wat"),
        ("Nguyễn Thị Hồng Hạnh", "nguyen HONG"),
        ("Serrure à changer après la perte d'une clé", "serrure cle apres"),
        ("Straße überflutet", "strasse uber"),
        ("卫生间天花板漏水,墙面起泡", "天花板"),
        ("卫生间天花板漏水,墙面起泡", "水"),
        ("浴室のドアが閉まらない", "ドア"),
        ("ก๊อกน้ำรั่วในห้องครัว", "น้ำรั่ว"),
        ("المكيف لا يعمل", "المكيّف"),
        ("تسرّب الماء", "تسرب"),
        ("דליפה מתחת לכיור במטבח", "דליפה כיור".replace("כיור", "לכיור")),
        ("화장실 누수", "누수"),
        ("शौचालय में पानी", "पानी"),
        ("WH-102 is cold", "wh 102"),
        ("Ｗａｔｅｒ", "water"),
        ("水漏れ in 301", "漏れ 301"),
    ],
)
def test_words_find_a_text_in_any_script(text: str, words: str) -> None:
    assert finds(text, words)


@pytest.mark.parametrize(
    ("text", "words"),
    [("No hot water", "cold"), ("天花板漏水", "花天"), ("WH-102", "103"), ("hot", "hotter"), ("น้ำรั่ว", "น้ำไหล")],
)
def test_other_words_do_not(text: str, words: str) -> None:
    assert not finds(text, words)


@given(st.text(st.characters(max_codepoint=127)))
def test_the_quick_way_for_english_finds_the_same_words(text: str) -> None:
    assert rules.words_of([f"{text} ß"]) == rules.words_of([text]) | {"ss"}


@pytest.mark.parametrize("text", ["?!", " - ", "x" * 201, "😀"])
def test_words_without_letters_or_too_long_are_refused(text: str) -> None:
    with pytest.raises(Refusal) as refused:
        rules.sought(text)
    assert refused.value.field == "words"


def test_a_query_is_quoted_and_of_its_company() -> None:
    text = rules.all_of(7, [[("s", "Open"), ("s", "On Hold")], [("x", "a'b\\c")]], [rules.Sought("o", True)], {})
    assert text == r"('7/sOpen'|'7/sOn Hold')&('7/xa''b\\c')&'7/wo':*"


def test_keys_order_open_tickets_before_closed_ones() -> None:
    early, late = (datetime.datetime(2026, month, 1, tzinfo=datetime.UTC) for month in (1, 6))
    urgent = [
        rules.urgency_key(priority, "Open", at) for priority in reversed(fields.PRIORITIES) for at in (early, late)
    ]
    closed = [rules.urgency_key("Emergency", status, at) for at in (late, early) for status in ("Completed",)]
    assert [*urgent, *closed] == sorted([*urgent, *closed])
    waiting = [
        rules.waiting_key(quiet_since, priority, early)
        for priority in ("Emergency", "High")
        for quiet_since in (early, late)
    ]
    assert rules.waiting_key(late, "Low", early) == waiting[-1]  # below an emergency, age alone decides
    others = [rules.waiting_key(None, "Emergency", late), rules.waiting_key(None, "Emergency", early)]
    assert [*waiting, *others] == sorted([*waiting, *others])
    assert max(*urgent, *closed, *others) < rules.LARGEST


@pytest.mark.parametrize("text", ["", "1", "1.", ".1", "1.2.3", "x.1", "1.-1", f"{2**63}.1", "1." + "9" * 19])
def test_a_cursor_of_nobody_is_refused(text: str) -> None:
    with pytest.raises(Refusal) as refused:
        rules.read_cursor(text)
    assert refused.value.code == "invalid_cursor"


def test_a_cursor_is_read_as_written() -> None:
    cursor = rules.Cursor(-5, 7)
    assert rules.read_cursor(str(cursor)) == cursor
