"""The states of an inspection: every status with every command, and the outcome of its rows."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest
from google.protobuf.descriptor import EnumDescriptor
from hypothesis import given
from hypothesis import strategies as st

from chassis.refusals import Refusal
from makeready.common.v1 import maintenance_pb2, options_pb2
from svc_catalog.inspection_templates.rules import LABEL_POINTS_MAX, ROWS_MAX
from svc_catalog.inspections import rules

RESULTS = st.lists(st.sampled_from([None, "passed", "failed"]), max_size=12)
DAY = datetime.date(2026, 3, 1)
NOW = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("status", "after"),
    [("Scheduled", "In Progress"), ("In Progress", "In Progress"), ("Completed", None), ("Finalized", None)],
)
def test_what_is_completed_stays_so(status: str, after: str | None) -> None:
    if after is None:
        with pytest.raises(Refusal) as refused:
            rules.started(status)
        assert refused.value.status == 422
    else:
        assert rules.started(status) == after


def test_the_walk_knows_every_status() -> None:
    assert set(rules.STORED_STATUSES) == {"Scheduled", "In Progress", "Completed", "Finalized"}


@given(st.sampled_from(rules.STORED_STATUSES), RESULTS)
def test_it_completes_where_it_is_open_and_every_row_is_looked_at(status: str, results: list[str | None]) -> None:
    may = status in ("Scheduled", "In Progress") and all(result is not None for result in results)
    try:
        rules.check_completes(status, results)
    except Refusal as refused:
        assert (not may, refused.status) == (True, 422)
    else:
        assert may
        assert rules.outcome(results) == ("failed" if results.count("failed") else "passed")


def test_completing_again_changes_nothing_unless_the_date_differs() -> None:
    assert rules.is_same_completion("Completed", DAY, None)
    assert rules.is_same_completion("Completed", DAY, DAY)
    assert not rules.is_same_completion("Completed", DAY, DAY + datetime.timedelta(days=1))
    assert not rules.is_same_completion("In Progress", None, None)
    assert not rules.is_same_completion("Finalized", None, None)


@pytest.mark.parametrize("seen", [None, "none", "passed", "failed"])
@pytest.mark.parametrize("now", [None, "passed", "failed"])
@pytest.mark.parametrize("recorded", ["passed", "failed"])
def test_a_result_of_somebody_else_is_not_overwritten_unseen(
    seen: str | None, now: str | None, recorded: rules.InspectionResult
) -> None:
    moved = seen is not None and now is not None and now != seen
    if moved and not now == recorded == "passed":
        with pytest.raises(Refusal) as refused:
            rules.check_seen(seen, now, recorded)
        assert (refused.value.status, f"row {now}" in refused.value.message) == (422, True)
    else:
        rules.check_seen(seen, now, recorded)


def test_what_a_row_says_is_removed_only_before_anything_was_found() -> None:
    rules.check_removable(None, None)
    for result, failed_at in (("passed", None), ("failed", NOW), ("passed", NOW), (None, NOW)):
        with pytest.raises(Refusal) as refused:
            rules.check_removable(result, failed_at)
        assert (refused.value.status, refused.value.field) == (422, "row_id")
    rules.check_has_room(ROWS_MAX - 1)
    with pytest.raises(Refusal):
        rules.check_has_room(ROWS_MAX)


@pytest.mark.parametrize("status", rules.STORED_STATUSES)
@pytest.mark.parametrize("kind", rules.STORED_KINDS)
@pytest.mark.parametrize("engagement", [None, "E"])
def test_only_what_is_open_and_served_becomes_stale(status: str, kind: str, engagement: str | None) -> None:
    served = rules.is_served(kind, engagement)
    is_open = rules.published_status(status) != "Completed"
    assert rules.may_become_stale(status, kind, engagement) == (served and is_open)


@pytest.mark.parametrize(
    ("number", "title", "first"),
    [
        (12, "Fire", "Failed in inspection #12 Fire: Door."),
        (12, None, "Failed in inspection #12: Door."),
        (None, "Fire", "Failed in inspection Fire: Door."),
        (None, None, "Failed in an inspection: Door."),
    ],
)
def test_the_ticket_says_where_the_row_failed_and_what_was_noted(
    number: int | None, title: str | None, first: str
) -> None:
    assert rules.ticket_description(number, title, "Door", None) == first
    assert rules.ticket_description(number, title, "Door", "It sticks.") == f"{first}\n\nIt sticks."


def labels(enum: EnumDescriptor) -> tuple[str, ...]:
    """The labels of an enum's values in the public API."""
    return tuple(value.GetOptions().Extensions[options_pb2.label] for value in enum.values if value.number)


def test_the_categories_and_priorities_are_those_of_tickets() -> None:
    """The public contract defines them, because another context owns them."""
    document = json.loads((Path(__file__).parents[3] / "openapi" / "released.json").read_text())
    schemas = document["components"]["schemas"]
    assert tuple(schemas["TicketCategory"]["enum"]) == rules.TICKET_CATEGORIES
    assert tuple(schemas["TicketPriority"]["enum"]) == rules.TICKET_PRIORITIES
    enums = maintenance_pb2.DESCRIPTOR.enum_types_by_name
    assert labels(enums["TicketCategory"]) == rules.TICKET_CATEGORIES
    assert labels(enums["TicketPriority"]) == rules.TICKET_PRIORITIES
    title, longest = schemas["TicketCreate"]["properties"]["title"], 20_000
    assert title["maxLength"] >= LABEL_POINTS_MAX
    described = rules.ticket_description(2**31, "t" * 200, "l" * LABEL_POINTS_MAX, "n" * rules.NOTE_POINTS_MAX)
    assert len(described) <= longest


NO_PHOTOS = (
    "",
    "p.png",
    "//p.example/1",
    "ftp://p.example/1",
    "javascript:alert(1)",
    "https://",
    "https://p .example/1",
)


@pytest.mark.parametrize("photo_url", [*NO_PHOTOS, "https://[p.example/1", "https://p.example/\n1"])
def test_a_photo_is_an_address_of_the_web(photo_url: str) -> None:
    with pytest.raises(Refusal) as refused:
        rules.check_photo_url(photo_url)
    assert refused.value.status == 400
    rules.check_photo_url(None)
    rules.check_photo_url("https://p.example/1?a=b#c")
