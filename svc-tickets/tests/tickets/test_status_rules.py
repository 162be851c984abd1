"""The rules of a ticket's status (spec 3.1, 4.2) alone: the table of fields, words, and invariants of any sequence."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chassis.refusals import Refusal
from svc_tickets.tickets.rules import fields as ticket_fields
from svc_tickets.tickets.rules import status as status_rules
from svc_tickets.tickets.rules.status import TicketState
from svc_tickets.tickets.rules.words import words

from .changing import ANSWERS, TABLE

NOW = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
TICK = datetime.timedelta(microseconds=1)


def test_the_table_is_whole() -> None:
    assert len(TABLE) == 5 * 27 and len({fields for fields, _ in TABLE}) == len(TABLE)
    assert set(ANSWERS) == set(ticket_fields.STATUSES)


@pytest.mark.parametrize(("fields", "answer"), TABLE)
def test_fields_are_accepted_as_the_contract_says(fields: tuple[str, Any, Any, Any], answer: int) -> None:
    if answer == 200:
        target = status_rules.target_status(*fields)
        assert (target.status, target.cancellation_reason_code) == (fields[0], fields[2])
        assert target.comment == (fields[1] or fields[3])
        return
    with pytest.raises(Refusal) as refused:
        status_rules.target_status(*fields)
    refusal = refused.value
    assert (refusal.status, refusal.code) == (answer, "invalid_request")
    assert (
        refusal.field in ("note", "cancellation_reason_code", "cancellation_notes") and refusal.field in refusal.message
    )
    assert refusal.message.endswith(".") and ". " not in refusal.message
    # Following the message repairs the field that it names.
    sent = dict(zip(("note", "cancellation_reason_code", "cancellation_notes"), fields[1:], strict=True))
    if "leave it out" in refusal.message:
        assert sent[refusal.field] is not None
    elif "is required" in refusal.message:
        assert sent[refusal.field] is None
    else:
        assert words(str(sent[refusal.field])) < status_rules.NOTE_WORDS_MIN


def test_an_empty_text_was_sent_too() -> None:
    for fields in (("Open", "", None, None), ("Cancelled", "", "wrong_property", None), ("On Hold", None, None, "")):
        with pytest.raises(Refusal, match="leave it out"):
            status_rules.target_status(*fields)


@pytest.mark.parametrize("photo_required", [False, True])
@pytest.mark.parametrize("has_photo", [False, True])
@pytest.mark.parametrize("after", ticket_fields.STATUSES)
@pytest.mark.parametrize("before", ticket_fields.STATUSES)
def test_only_completion_asks_for_a_photo(before: str, after: str, has_photo: bool, photo_required: bool) -> None:
    target = status_rules.TargetStatus(after, "wrong_property" if after == "Cancelled" else None, None)

    def change() -> status_rules.Changed:
        return status_rules.change_status(
            state(before), None, NOW, target, NOW, photo_required=photo_required, has_photo=has_photo
        )

    if after == "Completed" and photo_required and not has_photo:
        with pytest.raises(Refusal) as refused:
            change()
        assert (refused.value.status, refused.value.field) == (422, "photo_url")
    else:
        assert change().state.status == after


def state(status: str, at: datetime.datetime = NOW) -> TicketState:
    return TicketState(
        status,
        at if status == "Completed" else None,
        at if status == "Cancelled" else None,
        "wrong_property" if status == "Cancelled" else None,
    )


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("   \n\t ", 0),
        ("done", 1),
        ("Replaced the kitchen tap washer", 5),
        ("Replaced the kitchen tap", 4),
        ("replaced\nthe\tkitchen\u00a0tap\u3000washer", 5),
        ("a b c d e", 5),
        ("1 2 3 4 5", 5),
        (". . . . .", 0),
        ("- - - done -", 1),
        ("🚿 🚿 🚿 🚿 🚿", 0),
        ("don't re-open: it's all-right", 4),
        ("Замінив прокладку крана на кухні", 5),
        ("تم استبدال حلقة الصنبور بالمطبخ", 5),
        ("रसोई के नल का वॉशर", 5),
        ("주방 수도꼭지 와셔를 교체하고 시험함", 5),
        ("Đã thay gioăng vòi nước", 5),
        ("u\u0308ber die o\u0308rtliche", 3),
        # Scripts without blanks between words: one character, or three letters, count as a word.
        ("已更换水龙头", 6),
        ("已修好。", 3),
        ("完成", 1 + 1),
        ("更换3个阀门", 6),
        ("水道の蛇口を交換しました", 12),
        ("シャワーヘッド", 7),
        ("ﾊﾟｯｷﾝ交換", 6),
        ("เปลี่ยนก๊อกน้ำแล้ว", 5),
        ("เสร็จ", 1 + 1),
        ("ປ່ຽນກ໊ອກນ້ຳແລ້ວ", 4),
        ("បានជួសជុលរួចរាល់ហើយ", 4),
        ("ရေပိုက်ကို အသစ်လဲပြီးပါပြီ", 5),
        ("ดี\u200bมาก", 2),
        ("\u0e31\u0e31\u0e31", 0),  # marks without a letter
    ],
)
def test_words_are_counted_alike_in_every_script(text: str, count: int) -> None:
    assert words(text) == count


WORD = st.text(st.characters(categories=["Lu", "Ll"], max_codepoint=0x24F), min_size=1, max_size=12)
PUNCTUATION = st.text(st.sampled_from(".,;:!?-–—…()[]*/#\"'_"), max_size=5)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


@given(st.lists(st.tuples(PUNCTUATION, WORD, PUNCTUATION)), st.sampled_from([" ", "\n", " \t ", "\u00a0", "\u3000"]))
def test_spaced_words_count_as_many_whatever_surrounds_them(parts: list[tuple[str, str, str]], blank: str) -> None:
    assert words(blank.join("".join(part) for part in parts)) == len(parts)
    assert words(f"{blank}…{blank}".join("".join(part) for part in parts)) == len(parts)


@given(TEXT, TEXT)
def test_texts_side_by_side_have_the_words_of_both(first: str, other: str) -> None:
    assert words(f"{first} {other}") == words(first) + words(other)
    assert words(first + other) >= max(words(first), words(other)) - 1


@given(TEXT)
@example("\ufada")
def test_words_hold_a_letter_or_digit_each(text: str) -> None:
    # Han characters of a later Unicode version than Python's count too: these blocks are theirs.
    han = (range(0xF900, 0xFB00), range(0x20000, 0x40000))
    assert words(text) <= sum(1 for sign in text if sign.isalnum() or any(ord(sign) in block for block in han))
    assert words(text) > 0 or not any(sign.isalpha() and sign.isascii() for sign in text)


INSTANTS = st.datetimes(datetime.datetime(2020, 1, 1), datetime.datetime(2030, 1, 1), timezones=st.just(datetime.UTC))
TEXTS = ("these are five whole words", "these are six other whole words")
WANTED = st.one_of(
    st.sampled_from(["Open", "In Progress", "On Hold"]).map(
        lambda status: status_rules.TargetStatus(status, None, None)
    ),
    st.sampled_from(TEXTS).map(lambda note: status_rules.TargetStatus("Completed", None, note)),
    st.sampled_from([code for code in ticket_fields.CANCELLATION_REASONS if code != "see_notes"]).map(
        lambda code: status_rules.TargetStatus("Cancelled", code, None)
    ),
    st.sampled_from(TEXTS).map(lambda notes: status_rules.TargetStatus("Cancelled", "see_notes", notes)),
)


@given(st.sampled_from(ticket_fields.STATUSES), INSTANTS, st.lists(st.tuples(WANTED, INSTANTS), max_size=30))
def test_no_sequence_of_changes_breaks_what_always_holds(
    first: str, updated_at: datetime.datetime, sequence: list[tuple[status_rules.TargetStatus, datetime.datetime]]
) -> None:
    now, notes = state(first, updated_at), None
    for target, clock in sequence:
        changed = status_rules.change_status(
            now, notes, updated_at, target, clock, photo_required=False, has_photo=False
        )
        after = changed.state
        assert after.status == target.status
        assert (after.completed_at is not None) == (after.status == "Completed")
        assert (after.cancelled_at is not None) == (after.status == "Cancelled")
        assert after.cancellation_reason_code == target.cancellation_reason_code
        is_silent = after.status == now.status != "Completed" and (
            (now.cancellation_reason_code, notes) == (target.cancellation_reason_code, target.comment)
        )
        assert (changed.at is None) == is_silent
        if changed.at is None:
            assert after == now
        else:
            # The instant rises although clocks go back, and equals the clock where that is later.
            assert changed.at == max(clock, updated_at + TICK)
            assert (after.completed_at or after.cancelled_at) in (None, changed.at), "that of the last closing"
            updated_at = changed.at
            notes = target.comment if after.status == "Cancelled" else None
        now = after


def test_a_cancellation_at_an_unknown_time_gets_the_time_of_the_next() -> None:
    """The file that brought the ticket did not know when it was cancelled."""
    imported = TicketState("Cancelled", None, None, "wrong_property")
    target = status_rules.TargetStatus("Cancelled", "wrong_property", None)
    changed = status_rules.change_status(imported, None, NOW, target, NOW, photo_required=False, has_photo=False)
    assert changed.at == changed.state.cancelled_at == NOW + TICK
