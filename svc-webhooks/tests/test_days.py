"""How long an event is retained."""

import datetime
import uuid

from hypothesis import given
from hypothesis import strategies as st

from svc_webhooks.days import day_of, expires_at, first_day_kept

instants = st.datetimes(datetime.datetime(2000, 1, 1), datetime.datetime(2100, 1, 1), timezones=st.just(datetime.UTC))


def made(instant: datetime.datetime) -> uuid.UUID:
    return uuid.UUID(int=int(instant.timestamp() * 1000) << 80)


def test_an_event_goes_at_the_midnight_after_thirty_full_days() -> None:
    late = datetime.datetime(2026, 3, 1, 23, 59, 59, 999000, datetime.UTC)
    assert expires_at(made(late)) == datetime.datetime(2026, 4, 1, tzinfo=datetime.UTC)
    assert expires_at(made(late.replace(hour=0, minute=0))) == expires_at(made(late))


@given(instants)
def test_everything_is_kept_from_30_to_31_days(instant: datetime.datetime) -> None:
    event_id = made(instant)
    kept = expires_at(event_id) - instant
    assert datetime.timedelta(days=30) < kept <= datetime.timedelta(days=31, milliseconds=1)


@given(instants, st.one_of(instants, st.integers(-2, 2)))
def test_the_reported_counts_are_the_deleted_rows(instant: datetime.datetime, now: datetime.datetime | int) -> None:
    event_id = made(instant)
    if isinstance(now, int):  # close to the limit, in microseconds
        now = expires_at(event_id) + datetime.timedelta(microseconds=now)
    assert (expires_at(event_id) <= now) == (day_of(event_id) < first_day_kept(now))
