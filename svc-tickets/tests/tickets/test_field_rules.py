"""The rules of back-office changes of tickets."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis.refusals import Refusal
from svc_tickets.tickets.rules import fields, staleness

NOW = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
IDS = st.none() | st.integers(1, 5)


@pytest.mark.parametrize("url", ["https://photos.test/1.jpg", "http://[::1]:8000/a?b=c#d", "https://häuser.test/ü.png"])
def test_a_photo_has_an_absolute_web_address(url: str) -> None:
    fields.check_photo_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "photo.jpg",
        "//photos.test/1.jpg",
        "https://",
        "https:///1.jpg",
        "https://[::1/x",
        "ftp://photos.test/1",
        "javascript:alert(1)",
        "data:image/png;base64,AA",
        " https://photos.test/1",
        "https://photos.test/a b",
        "https://photos.test/a\nb",
        "https://photos.test/a\x00",
    ],
)
def test_any_other_address_of_a_photo_is_refused(url: str) -> None:
    with pytest.raises(Refusal) as refused:
        fields.check_photo_url(url)
    assert (refused.value.status, refused.value.field) == (400, "photo_url")


@given(st.text())
def test_whatever_stands_for_an_address_it_is_taken_or_refused(url: str) -> None:
    try:
        fields.check_photo_url(url)
    except Refusal:
        return
    assert url.lower().startswith(("http://", "https://")) and not any(map(str.isspace, url))


@given(before=IDS, after=IDS, on_hold=st.booleans())
def test_a_vendor_on_hold_keeps_what_it_has_and_gets_nothing_new(
    before: int | None, after: int | None, on_hold: bool
) -> None:
    refused = False
    try:
        fields.check_vendor(before, after, on_hold=on_hold)
    except Refusal as refusal:
        assert (refusal.status, refusal.field) == (422, "vendor_id")
        refused = True
    assert refused is (on_hold and after not in (None, before))


@given(
    of_resident=st.booleans(),
    status=st.sampled_from(fields.STATUSES),
    author=st.sampled_from(fields.AUTHORS),
    hours=st.integers(1, 8760),
)
def test_staff_and_vendors_break_the_silence_and_residents_do_not(
    of_resident: bool, status: str, author: str, hours: int
) -> None:
    columns = staleness.staleness_after(author, of_resident, status, NOW, hours)
    if author == "resident":
        assert columns is None
        return
    closed = status in ("Completed", "Cancelled")
    due = NOW + datetime.timedelta(hours=hours) if of_resident and not closed else None
    assert columns is not None
    assert columns._asdict() == {"quiet_since": NOW if of_resident else None, "stale_due_at": due}


@given(title=st.text(max_size=400), category=st.text(max_size=9), priority=st.text(max_size=9))
def test_whatever_a_failed_row_says_its_ticket_can_be_stored(title: str, category: str, priority: str) -> None:
    opened = fields.of_failed_row(title, category, priority)
    assert opened[0].strip() and len(opened[0]) <= fields.TITLE_POINTS_MAX
    assert opened[1] in fields.CATEGORIES and opened[2] in fields.PRIORITIES


@given(st.sampled_from(fields.CATEGORIES), st.sampled_from(fields.PRIORITIES))
def test_what_a_failed_row_says_in_our_words_is_kept(category: str, priority: str) -> None:
    assert fields.of_failed_row("Alarm is mute", category, priority) == ("Alarm is mute", category, priority)
