"""People's lists of inspections: by place, assignee, day and result; a calendar; who looked at which row."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from chassis.auth.identity import ADMINISTRATOR, INTEGRATION, OPERATOR, SERVICE, STAFF, Identity
from chassis.refusals import Refusal
from makeready.catalog.v1 import inspection_commands_pb2 as commands_pb
from makeready.catalog.v1 import inspection_details_pb2 as pb
from makeready.catalog.v1 import inspections_pb2
from testkit.clocks import today

from .test_commands import Place, place

__all__ = ["place"]

RPCS = [rpc.name for rpc in pb.DESCRIPTOR.services_by_name["InspectionDetailsService"].methods]
COMPLETED, SCHEDULED = inspections_pb2.INSPECTION_STATUS_COMPLETED, inspections_pb2.INSPECTION_STATUS_SCHEDULED
# The company's day, which began 14 hours before UTC's.
TIMEZONE = "Pacific/Kiritimati"


def day(number: int) -> str:
    return str(today(TIMEZONE) + datetime.timedelta(days=number))


async def titles_of(company: Any, **filters: Any) -> list[str]:
    """The titles of all pages, in their order, two a page."""
    titles: list[str] = []
    after: str | None = None
    while True:
        answer = await company.command(pb, "SearchInspections", limit=2, after=after, **filters)
        titles += [inspection.title for inspection in answer.inspections]
        if not answer.HasField("next"):
            return titles
        assert len(answer.inspections) == 2
        after = answer.next


@pytest.fixture
async def walked(place: Place) -> Place:
    """Inspections A to F: late by a week and a day, of today, of next month, failed a year ago, without a day."""
    planned = {}
    for title, when, more in (
        ("A", day(-7), {"unit_id": place.unit_id, "assignee_id": place.staff_id}),
        ("B", day(-1), {"is_compliance_inspection": True, "compliance_type": "NFPA 72"}),
        ("C", day(0), {"assignee_id": place.staff_id}),
        ("D", day(30), {"property_id": place.other_property}),
        ("E", day(-365), {"external_id": "X-E"}),
    ):
        planned[title] = await place.schedule("Door", title=title, scheduled_date=when, **more)
    row = (await place.rows(planned["E"]["entity_id"]))[0]
    failed_id = {"inspection_id": planned["E"]["entity_id"]}
    await place.company.command(commands_pb, "FailInspectionRow", **failed_id, row_id=row.row_id, note="It sticks.")
    await place.company.command(commands_pb, "CompleteInspection", **failed_id, completed_date=day(-364))
    rows = [
        {"external_id": "F", "property": "P1", "title": "F", "status": "Finalized"},
        {"external_id": "W", "property": "P1", "title": "walk", "kind": "consulting_walk", "engagement": "G"},
    ]
    assert await place.company.put("inspections", *rows) == ["created"] * 2
    return place


async def test_filters_combine_either_way_round(walked: Place) -> None:
    company = walked.company
    assert await titles_of(company) == ["E", "A", "B", "C", "D", "F"]
    assert await titles_of(company, newest_first=True) == ["F", "D", "C", "B", "A", "E"]
    assert await titles_of(company, late=True) == ["A", "B"]
    assert await titles_of(company, late=True, status=[COMPLETED]) == []
    assert await titles_of(company, property_id=walked.other_property) == ["D"]
    assert await titles_of(company, unit_id=walked.unit_id) == ["A"]
    assert await titles_of(company, unit_id=walked.unit_id, property_id=walked.other_property) == []
    assert await titles_of(company, assignee_id=walked.staff_id) == ["A", "C"]
    assert await titles_of(company, assignee_id=walked.staff_id, property_id=walked.property_id) == ["A", "C"]
    assert await titles_of(company, assignee_id=walked.staff_id, unit_id=walked.unit_id) == ["A"]
    assert await titles_of(company, assignee_id=0, status=[SCHEDULED]) == ["B", "D"]
    assert await titles_of(company, status=[COMPLETED]) == ["E", "F"]
    assert await titles_of(company, result=[pb.INSPECTION_RESULT_FAILED]) == ["E"]
    assert await titles_of(company, from_date=day(-7), to_date=day(0)) == ["A", "B", "C"]
    assert await titles_of(company, from_date=day(1), newest_first=True) == ["D"]
    assert await titles_of(company, external_id="X-E") == ["E"]
    counts = await company.command(pb, "CountInspections")
    assert (counts.scheduled, counts.in_progress, counts.late, counts.this_week) == (4, 0, 2, 1)
    counts = await company.command(pb, "CountInspections", assignee_id=walked.staff_id)
    assert (counts.scheduled, counts.late) == (2, 1)


async def test_an_inspection_has_its_place_its_people_and_whether_it_is_late(walked: Place) -> None:
    company = walked.company
    late, compliance, today, *_ = (await company.command(pb, "SearchInspections", status=[SCHEDULED])).inspections
    assert (late.late, late.property_name, late.unit_name, late.assignee_name) == (True, "P1 Court", "P1-1", "Ada")
    assert (compliance.is_compliance_inspection, compliance.compliance_type) == (True, "NFPA 72")
    assert not today.late and not today.HasField("unit_id") and today.scheduled_date == day(0)
    got = await company.command(pb, "GetInspectionDetails", inspection_id=late.inspection_id)
    assert got.inspection == late and late.url == f"https://app.test/inspections/{late.inspection_id}"


async def test_cancelled_inspections_are_a_list_of_their_own(walked: Place) -> None:
    company = walked.company
    first, *_ = (await company.command(pb, "SearchInspections", late=True)).inspections
    boss = Identity(ADMINISTRATOR, "gateway", company.id, administrator_id=3)
    values = {"inspection_id": first.inspection_id, "reason": "Sold."}
    await company.command(commands_pb, "CancelInspection", boss, **values)
    assert await titles_of(company) == ["E", "B", "C", "D", "F"] and await titles_of(company, late=True) == ["B"]
    assert await titles_of(company, cancelled=True) == ["A"]
    assert await titles_of(company, cancelled=True, unit_id=walked.unit_id, status=[SCHEDULED]) == ["A"]
    assert await titles_of(company, cancelled=True, property_id=walked.other_property) == []
    assert await titles_of(company, cancelled=True, late=True) == []
    counts = await company.command(pb, "CountInspections")
    assert (counts.scheduled, counts.late) == (3, 1)
    days = await company.command(pb, "ListInspectionDays", from_date=day(-7), to_date=day(0))
    assert [calendar_day.date for calendar_day in days.days] == [day(-1), day(0)]
    got = (await company.command(pb, "GetInspectionDetails", inspection_id=first.inspection_id)).inspection
    assert (got.cancelled_by, got.cancel_reason, got.late) == ("administrator:3", "Sold.", False)
    assert got.HasField("cancelled_at") and got.title == "A"


async def test_a_calendar_has_the_first_inspections_of_each_day_and_their_count(walked: Place) -> None:
    for number in range(3):
        await walked.schedule(title=f"C{number}", scheduled_date=day(0))
    values = {"from_date": day(-7), "to_date": day(30), "limit": 2}
    answer = await walked.company.command(pb, "ListInspectionDays", **values)
    calendar = [
        (calendar_day.date, [each.title for each in calendar_day.inspections], calendar_day.count)
        for calendar_day in answer.days
    ]
    assert calendar == [(day(-7), ["A"], 1), (day(-1), ["B"], 1), (day(0), ["C", "C0"], 4), (day(30), ["D"], 1)]
    mine = await walked.company.command(pb, "ListInspectionDays", assignee_id=walked.staff_id, **values)
    assert [(calendar_day.date, calendar_day.count) for calendar_day in mine.days] == [(day(-7), 1), (day(0), 1)]
    with pytest.raises(Refusal):
        await walked.company.command(pb, "ListInspectionDays", from_date=day(0), to_date=day(62))


async def test_a_row_says_who_looked_at_it_last_and_when_it_first_failed(place: Place) -> None:
    company, planned = place.company, await place.schedule("Door", "Alarm", "Roof")
    rows = await place.rows(planned["entity_id"])
    ada = Identity(STAFF, "gateway", company.id, staff_id=place.staff_id)
    boss = Identity(ADMINISTRATOR, "gateway", company.id, administrator_id=3)
    inspection_id = {"inspection_id": planned["entity_id"]}
    await company.command(
        commands_pb, "FailInspectionRow", ada, **inspection_id, row_id=rows[0].row_id, note="It sticks."
    )
    await company.command(commands_pb, "PassInspectionRow", boss, **inspection_id, row_id=rows[0].row_id)
    await company.command(commands_pb, "FailInspectionRow", ada, **inspection_id, row_id=rows[1].row_id)
    door, alarm, roof = await place.rows(planned["entity_id"])
    assert (door.result, door.inspected_by) == ("passed", "administrator:3") and door.failed_at.seconds > 0
    assert (alarm.result, alarm.inspected_by) == ("failed", f"staff:{place.staff_id}")
    assert alarm.inspected_at.seconds > 0
    assert not roof.HasField("inspected_at") and not roof.HasField("failed_at") and not roof.HasField("inspected_by")


async def test_a_page_has_no_gap_and_no_double_while_inspections_come(place: Place) -> None:
    for title in "ABCD":
        await place.schedule(title=title)
    first = await place.company.command(pb, "SearchInspections", limit=2)
    await place.schedule(title="before", scheduled_date="2020-01-01")
    await place.schedule(title="after")
    second = await place.company.command(pb, "SearchInspections", limit=9, after=first.next)
    assert [inspection.title for inspection in (*first.inspections, *second.inspections)] == [
        "A",
        "B",
        "C",
        "D",
        "after",
    ]


@pytest.mark.parametrize(
    "values",
    [
        {"limit": 0},
        {"status": [9]},
        {"result": [3]},
        {"from_date": "tomorrow"},
        {"from_date": "2026-02-02", "to_date": "2026-02-01"},
        {"after": "2026-01-01"},
        {"external_id": "V", "late": True},
    ],
)
async def test_a_request_that_cannot_be_read_is_refused(company: Any, values: dict[str, Any]) -> None:
    with pytest.raises(Refusal) as refused:
        await company.command(pb, "SearchInspections", **values)
    assert refused.value.status == 400 and refused.value.field in values


async def test_no_company_sees_anothers(walked: Place, other: Any) -> None:
    for filters in ({}, {"property_id": walked.property_id}, {"unit_id": walked.unit_id}, {"external_id": "X-E"}):
        assert await titles_of(walked.company, **filters) and not await titles_of(other, **filters)
    assert not (await other.command(pb, "ListInspectionDays", from_date=day(-7), to_date=day(0))).days
    assert await other.command(pb, "CountInspections") == pb.CountInspectionsResponse()
    (theirs,) = (await walked.company.command(pb, "SearchInspections", limit=1)).inspections
    refusals = []
    for inspection_id in (theirs.inspection_id, 2**62):
        with pytest.raises(Refusal) as refused:
            await other.command(pb, "GetInspectionDetails", inspection_id=inspection_id)
        refusals.append(vars(refused.value))
    assert refusals[0] == refusals[1] and refusals[0]["status"] == 404


@pytest.mark.parametrize("kind", [INTEGRATION, SERVICE, OPERATOR, STAFF, ADMINISTRATOR])
@pytest.mark.parametrize("rpc", RPCS)
async def test_people_alone_may(company: Any, rpc: str, kind: str) -> None:
    may = kind in (OPERATOR, STAFF, ADMINISTRATOR)
    assert await company.status_for(pb, rpc, kind) in ({200, 400, 404} if may else {None})
