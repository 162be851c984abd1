"""Strict JSON and field rules."""

from __future__ import annotations

import datetime
import json
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis.records import bodies
from chassis.records.bodies import PastInstant, RecordId, Text
from chassis.refusals import Refusal
from chassis.schedule.instants import printed

ONE_EACH: dict[str, Any] = {"unit_id": 5, "title": "Tap", "level": "Low"}


class Body(msgspec.Struct, kw_only=True):
    refused_keys: ClassVar[dict[str, str]] = {"status": "status can't be set."}

    unit_id: RecordId
    title: Annotated[str, Text(longest=5, over=422, blank=False)]
    level: Literal["Low", "High"]
    on: datetime.date | None = None
    at: datetime.datetime | None = None
    size: float | None = None
    many: int | None = None
    fine: bool | None = None
    names: list[str] | None = None


def refusal(**changes: Any) -> Refusal:
    with pytest.raises(Refusal) as refused:
        bodies.check(Body, ONE_EACH | changes)
    return refused.value


def test_a_whole_body_becomes_its_struct() -> None:
    body = bodies.check(Body, ONE_EACH | {"on": "2026-02-28", "at": "2026-02-28T01:00:00+01:00", "names": ["a"]})
    assert body.on == datetime.date(2026, 2, 28)
    assert body.at == datetime.datetime(2026, 2, 28, tzinfo=datetime.UTC)
    assert body.names == ["a"]


@pytest.mark.parametrize(
    ("field", "value", "status"),
    [
        ("title", "sixsix", 422),
        ("title", " \t", 400),
        ("title", ["x"], 400),
        ("level", "Middle", 422),
        ("level", 3, 400),
        ("on", "20260228", 400),
        ("on", "2026-02-30", 400),
        ("on", "2026-W09-6", 400),
        ("on", 5, 400),
        ("at", "2026-02-28T00:00:00", 400),
        ("at", "2026-02-28", 400),
        ("at", "2026-W09-6T00:00:00Z", 400),
        ("at", "20260228T000000Z", 400),
        ("at", "2026-02-28 00:00:00Z", 400),
        ("at", "9999-12-31T23:59:59-12:00", 400),
        ("at", "9999-12-31T23:59:59.999999Z", 400),
        ("at", "0001-01-01T00:00:00Z", 400),
        ("at", "0001-12-31T23:59:59+14:00", 400),
        ("size", "1", 400),
        ("size", True, 400),
        ("size", 10**400, 400),
        ("many", 1.5, 400),
        ("many", float("inf"), 400),
        ("many", "1.0", 400),
        ("many", True, 400),
        ("fine", 1, 400),
        ("names", "a", 400),
        ("names", [1], 400),
        ("extra", 1, 400),
        ("status", None, 422),
    ],
)
def test_a_wrong_value_is_refused_by_field(field: str, value: Any, status: int) -> None:
    refused = refusal(**{field: value})
    assert refused.status == status
    assert refused.code == "invalid_request" and refused.message.endswith(".")
    assert refused.field.split("[")[0] in (field, "")


@pytest.mark.parametrize("value", [0, -1, 2**63, 10**40])
def test_an_id_that_no_record_can_have_matches_none(value: int) -> None:
    assert bodies.check(Body, ONE_EACH | {"unit_id": value}).unit_id == 0


def test_a_number_of_any_length_is_json() -> None:
    body = bodies.parse(b'{"unit_id": 1' + b"0" * 9999 + b', "title": "Tap", "level": "Low"}')
    assert bodies.check(Body, body).unit_id == 0
    assert bodies.canonical(body)


@pytest.mark.parametrize("text", ["2026-02-28T00:00:00Z", "2026-02-28t00:00:00z", "2026-02-28T01:00:00+01:00"])
def test_an_instant_is_read_in_either_case(text: str) -> None:
    assert bodies.date_time(text) == datetime.datetime(2026, 2, 28, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"),
        ("2016-12-31t23:59:60.25z", "2017-01-01T00:00:00.25Z"),
        ("1990-12-31T15:59:60-08:00", "1991-01-01T00:00:00Z"),
        ("2015-07-01T01:59:60+02:00", "2015-07-01T00:00:00Z"),
        ("2016-12-31T23:59:60", None),
        ("2016-12-31T23:59:61Z", None),
        ("2016-12-30T23:59:60Z", None),
        ("2016-12-31T23:58:60Z", None),
        ("2016-12-31T23:59:60+01:00", None),
        ("9999-12-31T23:59:60Z", None),
    ],
)
def test_a_leap_second_is_the_second_after_it(text: str, value: str | None) -> None:
    assert bodies.date_time(text) == (None if value is None else datetime.datetime.fromisoformat(value))


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("1.0", 1), ("1.000", 1), ("1e0", 1), ("10E-1", 1), ("0.1e1", 1), ("1E2", 100), ("-0.0", 0), ("0e0", 0),
        ("9223372036854775807.0", 2**63 - 1), ("9007199254740993.0", 2**53 + 1), ("1e300", 0), ("-1.0", 0),
        ("9" * 5000 + ".0", 0),
    ],
)  # fmt: skip
def test_an_integer_is_one_however_it_is_written(literal: str, value: int) -> None:
    """JSON Schema, and so the OpenAPI document, says that 1.0 is an integer."""
    raw = b'{"unit_id": %b, "title": "Tap", "level": "Low"}'
    body, canonical = bodies.decode(Body, raw % literal.encode())
    assert (body.unit_id, type(body.unit_id)) == (value, int)
    if value:
        assert canonical == bodies.decode(Body, raw % b"%d" % value)[1]


@pytest.mark.parametrize("literal", ["1.5", "1e-1", "1E400", "-1e400", "0.5"])
def test_any_other_number_is_none(literal: str) -> None:
    with pytest.raises(Refusal, match="unit_id must be an integer"):
        bodies.decode(Body, b'{"unit_id": %b, "title": "Tap", "level": "Low"}' % literal.encode())


def test_what_a_caller_sent_is_never_repeated() -> None:
    assert "Zwölf" not in refusal(level="Zwölf").message
    assert "Zwölf" not in refusal(Zwölf=1).message


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), inner)
        ),
        max_leaves=20,
    )
)
def test_the_same_json_is_canonical_however_it_is_spelled(value: object) -> None:
    body = {"b": value, "a": 1}
    spelled = json.dumps(body, indent=3, ensure_ascii=True).encode()
    assert bodies.canonical(bodies.parse(spelled)) == bodies.canonical(dict(reversed(body.items())))


@given(st.binary(max_size=200))
def test_any_bytes_parse_or_are_refused(raw: bytes) -> None:
    try:
        assert isinstance(bodies.parse(raw), dict)
    except Refusal as refused:
        assert refused.status == 400


@given(st.text())
def test_no_text_gets_through_that_postgresql_can_not_store(text: str) -> None:
    raw = json.dumps({"t": text}).encode()
    try:
        stored = bodies.parse(raw)["t"]
    except Refusal:
        assert "\0" in text or any("\ud800" <= c <= "\udfff" for c in text)
    else:
        assert stored == text and "\0" not in text
        text.encode()


def test_a_backslash_before_u0000_is_only_text() -> None:
    assert bodies.parse(rb'{"t": "\\u0000"}') == {"t": "\\u0000"}
    assert bodies.parse(rb'{"t": "\u0000"}', ("t",)) == {"t": "\0"}
    for elsewhere in (rb'{"t": "\u0000", "u": "\u0000"}', rb'{"u": {"t": "\u0000"}, "t": ""}'):
        with pytest.raises(Refusal):
            bodies.parse(elsewhere, ("t",))


@pytest.mark.parametrize(
    "unseen",
    [
        "",
        " ",
        "\t\n",
        "\x07",
        "\x1b\x7f\x85",
        "\u200b",
        "\u200b \u2060\ufeff",
        "\u00ad\u202e",
        "\u3164",
        "\u2800\ufe0f",
    ],
)
def test_a_text_of_which_nothing_can_be_seen_is_blank(unseen: str) -> None:
    assert bodies.is_blank(unseen)
    assert not bodies.is_blank(unseen + "a")
    assert not bodies.is_blank("\U0001f6bf" + unseen)


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("many", "12", 12),
        ("size", "1.5", 1.5),
        ("fine", "Yes", True),
        ("fine", "0", False),
        ("on", "2026-01-31", datetime.date(2026, 1, 31)),
        ("at", "2026-01-31", datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC)),
        ("many", "", None),
    ],
)
def test_a_row_of_a_file_is_read_from_text(field: str, text: str, value: Any) -> None:
    assert getattr(bodies.check_row(Body, ONE_EACH | {field: text}), field) == value


@pytest.mark.parametrize(("field", "text"), [("many", "1.5"), ("many", "\u0663"), ("fine", "maybe"), ("on", "60409")])
def test_text_that_stands_for_nothing_is_refused_by_field(field: str, text: str) -> None:
    with pytest.raises(Refusal) as refused:
        bodies.check_row(Body, ONE_EACH | {field: text})
    assert refused.value.field == field


class Event(msgspec.Struct, kw_only=True):
    """Something that has happened, and something that is planned."""

    name: str
    happened_at: PastInstant | None = None
    noted_at: PastInstant | None = None
    planned_at: datetime.datetime | None = None


NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)


def at(seconds: float) -> str:
    return (NOON + datetime.timedelta(seconds=seconds)).isoformat()


@pytest.mark.parametrize("check", [bodies.check, bodies.check_row])
def test_an_instant_of_the_past_lies_less_than_five_minutes_ahead_of_the_clock(check: Any) -> None:
    clock: Any = {"clock": lambda: NOON}
    for seconds in (-(10**9), 0, 299.999999):
        event = check(Event, {"name": "x", "happened_at": at(seconds)}, **clock)
        assert event.happened_at == NOON + datetime.timedelta(seconds=seconds)
    for name in ("happened_at", "noted_at"):
        for seconds in (300, 10**9):
            with pytest.raises(Refusal) as refused:
                check(Event, {"name": "x", name: at(seconds), "planned_at": at(seconds)}, **clock)
            assert (refused.value.status, refused.value.field) == (400, name)
            value = printed(NOON + datetime.timedelta(seconds=seconds))
            message = f"{name} {value} lies in the future: it is 2026-03-01T12:00:00.000000Z now."
            assert refused.value.message == message
    assert check(Event, {"name": "x", "planned_at": at(10**9)}, **clock).planned_at > NOON
    with pytest.raises(Refusal, match="lies in the future"):
        check(Event, {"name": "x", "happened_at": "2999-01-01T00:00:00Z"})  # by the real clock


def test_the_field_of_a_part_is_named_with_its_place() -> None:
    with pytest.raises(Refusal, match=r"^parts\[2\]\.noted_at 2026"):
        bodies.check(Event, {"name": "x", "noted_at": at(300)}, "parts[2]", lambda: NOON)


def test_the_fields_of_the_past_are_found_in_a_struct() -> None:
    assert bodies.past_fields(Event) == ("happened_at", "noted_at") and bodies.past_fields(Body) == ()
