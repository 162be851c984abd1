"""The back office of inspections: schedule, change, start, complete, and record the result of each row."""

from __future__ import annotations

import json
from typing import Any

import grpc
import pytest

from chassis.auth.identity import ADMINISTRATOR, INTEGRATION, OPERATOR, SERVICE, STAFF, Identity
from chassis.db.database import Database
from chassis.refusals import Refusal
from makeready.catalog.v1 import inspection_commands_pb2 as pb
from makeready.catalog.v1 import inspections_pb2
from makeready.events.v1.events_pb2 import CompanyReference, InspectionRowFailed, References, StaffReference
from svc_catalog import consumers
from testkit.clocks import today

from ..published import audited, events, public

RPCS = [rpc.name for rpc in pb.DESCRIPTOR.services_by_name["InspectionCommandsService"].methods]
SCHEDULE = {"title": "Fire", "scheduled_date": "2031-03-07"}
ROWS = ["Door", "Alarm", "Extinguisher"]


class Place:
    """A company with two properties, a unit and an asset in each, and a member of staff in the replica."""

    def __init__(self, company: Any, other_property: int, ids: dict[str, int]) -> None:
        self.company = company
        self.other_property = other_property
        self.property_id, self.unit_id, self.asset_id = ids["property_id"], ids["unit_id"], ids["asset_id"]
        self.other_unit, self.other_asset = ids["other_unit"], ids["other_asset"]
        self.staff_id = company.id * 10

    async def schedule(self, *rows: str, **values: Any) -> dict[str, Any]:
        values = {"property_id": self.property_id, "row": rows} | SCHEDULE | values
        answer = await self.company.command(pb, "ScheduleInspection", **values)
        inspection: dict[str, Any] = json.loads(answer.document.json)
        return inspection

    async def does(self, rpc: str, **values: Any) -> dict[str, Any]:
        answer = await self.company.command(pb, rpc, **values)
        inspection: dict[str, Any] = json.loads(answer.document.json)
        return inspection

    async def rows(self, inspection_id: int) -> list[Any]:
        return list((await self.company.command(pb, "ListInspectionRows", inspection_id=inspection_id)).rows)

    async def got(self, inspection_id: int) -> bytes:
        request = inspections_pb2.GetInspectionRequest(inspection_id=inspection_id)
        answer = await self.company.catalog("GetInspection", request, self.company.caller)
        document: bytes = answer.document.json
        return document


@pytest.fixture
async def place(company: Any, database: Database) -> Place:
    await company.put("properties", *({"external_id": p, "name": f"{p} Court", "address": "A"} for p in ("P1", "P2")))
    await company.put("units", *({"external_id": f"U-{p}", "property": p, "name": f"{p}-1"} for p in ("P1", "P2")))
    asset = {"name": "Boiler", "category": "HVAC", "make": "M", "model": "M"}
    await company.put("assets", *(asset | {"external_id": f"A-{p}", "property": p} for p in ("P1", "P2")))
    async with database.transaction() as connection:
        person = StaffReference(id=company.id * 10, version=1, company_id=company.id, name="Ada")
        house = CompanyReference(id=company.id, version=1, name="C", active=True, timezone="Pacific/Kiritimati")
        await consumers.put_references(connection, [References(staff=[person], companies=[house])])
    first, second = [property_["entity_id"] for property_ in await company.list("properties")]
    unit, other_unit = [unit["entity_id"] for unit in await company.list("units")]
    boiler, other_boiler = [asset["entity_id"] for asset in await company.list("assets")]
    ids = {"property_id": first, "unit_id": unit, "asset_id": boiler}
    return Place(company, second, ids | {"other_unit": other_unit, "other_asset": other_boiler})


async def causes(company: Any, database: Database) -> list[InspectionRowFailed]:
    published = [event for _, event in await events(database, company.id)]
    return [event.inspection_row_failed for event in published if event.HasField("inspection_row_failed")]


async def test_an_inspection_is_planned_with_the_propertys_next_number(place: Place, database: Database) -> None:
    company = place.company
    await company.put("inspections", {"external_id": "I", "property": "P1", "inspection_number": 41})
    planned = await place.schedule(*ROWS, unit_id=place.unit_id, assignee_id=place.staff_id, external_id="I2")
    assert (planned["inspection_number"], planned["status"], planned["result"], planned["source"]) == (
        42,
        "Scheduled",
        None,
        "staff",
    )
    assert (planned["property"]["name"], planned["unit"]["name"], planned["assignee"]["name"]) == (
        "P1 Court",
        "P1-1",
        "Ada",
    )
    assert json.loads(await place.got(planned["entity_id"])) == planned
    assert [(row.position, row.label, row.HasField("result")) for row in await place.rows(planned["entity_id"])] == [
        (number, label, False) for number, label in enumerate(ROWS, start=1)
    ]
    elsewhere = await place.schedule(property_id=place.other_property)
    assert elsewhere["inspection_number"] == 1
    assert [entry[1] for entry in await audited(database, company.id)] == ["inspection.scheduled"] * 2
    # A later import with the same external_id finds this inspection.
    assert await company.put("inspections", {"external_id": "I2", "property": "P1", "title": "Fire"}) == ["unchanged"]


async def test_an_update_changes_what_it_names(place: Place, database: Database) -> None:
    planned = await place.schedule(unit_id=place.unit_id, assignee_id=place.staff_id, inspection_type="General")
    about = {"inspection_id": planned["entity_id"]}
    moved = await place.does("UpdateInspection", **about, scheduled_date="2031-04-01", clear=["unit_id", "assignee_id"])
    assert moved == planned | {"scheduled_date": "2031-04-01", "unit": None, "assignee": None}
    entry = (await audited(database, place.company.id))[-1]
    assert entry[1:4] == ("inspection.updated", "inspection", planned["entity_id"])
    assert entry[4].keys() == entry[5].keys() == {"scheduled_date", "unit", "assignee"}
    again = await place.does("UpdateInspection", **about, scheduled_date="2031-04-01")
    assert again == moved and len(await audited(database, place.company.id)) == 2
    # What has changed since the person looked stays, unless it has become what they want.
    stale = {"from_assignee_id": place.staff_id, "from_scheduled_date": planned["scheduled_date"]}
    assert await place.does("UpdateInspection", **about, **stale, scheduled_date="2031-04-01") == moved
    for change, field in (
        ({"scheduled_date": "2031-05-01"}, "from_scheduled_date"),
        ({"assignee_id": place.staff_id, "from_assignee_id": place.staff_id + 1}, "from_assignee_id"),
    ):
        with pytest.raises(Refusal) as refused:
            await place.does("UpdateInspection", **{**about, **stale, **change})
        assert (refused.value.status, refused.value.field) == (422, field)
    seen = {"from_assignee_id": 0, "from_scheduled_date": "2031-04-01"}
    moved = await place.does(
        "UpdateInspection", **about, **seen, assignee_id=place.staff_id, scheduled_date="2031-05-02"
    )
    assert moved["scheduled_date"] == "2031-05-02"


async def test_a_failed_row_publishes_once_all_that_its_ticket_needs(place: Place, database: Database) -> None:
    planned = await place.schedule(*ROWS, unit_id=place.unit_id)
    inspection_id = planned["entity_id"]
    door = (await place.rows(inspection_id))[0]
    about = {"inspection_id": inspection_id, "row_id": door.row_id}
    details = {"note": "It sticks.", "category": "Doors/Windows", "priority": "High", "asset_id": place.asset_id}
    answer = await place.company.command(pb, "FailInspectionRow", **about, **details, photo_url="https://p.example/1")
    assert (answer.row.result, answer.row.note, answer.row.category) == ("failed", "It sticks.", "Doors/Windows")
    listed = (await place.rows(inspection_id))[0]
    assert listed.inspected_by and listed.HasField("inspected_at") and listed.HasField("failed_at")
    for only_listed in ("inspected_by", "inspected_at", "failed_at"):
        listed.ClearField(only_listed)
    assert answer.row == listed
    (cause,) = await causes(place.company, database)
    assert [(reference.id, reference.name) for reference in cause.places.properties] == [
        (place.property_id, "P1 Court")
    ]
    assert [(reference.id, reference.name) for reference in cause.places.units] == [(place.unit_id, "P1-1")]
    assert [(reference.id, reference.name) for reference in cause.places.assets] == [(place.asset_id, "Boiler")]
    cause.ClearField("places")
    assert cause == InspectionRowFailed(
        inspection_id=inspection_id,
        row_id=door.row_id,
        property_id=place.property_id,
        unit_id=place.unit_id,
        asset_id=place.asset_id,
        title="Failed inspection: Door",
        description=f"Failed in inspection #{planned['inspection_number']} Fire: Door.\n\nIt sticks.",
        category="Doors/Windows",
        priority="High",
        photo_url="https://p.example/1",
        actor="operator",
    )
    # Failing it again, with another note or after it had passed, opens no second ticket.
    await place.company.command(pb, "FailInspectionRow", **about, note="It is gone.")
    passed = await place.company.command(pb, "PassInspectionRow", **about)
    assert not passed.row.HasField("note")
    await place.company.command(pb, "FailInspectionRow", **about)
    assert len(await causes(place.company, database)) == 1
    actions = [entry[1] for entry in await audited(database, place.company.id)]
    failed = "inspection.row_failed"
    assert actions == ["inspection.scheduled", "inspection.started", failed, failed, "inspection.row_passed", failed]
    assert await public(database, place.company.id) == []


async def test_a_failed_row_alone_has_defaults_for_its_ticket(place: Place, database: Database) -> None:
    inspection_id = (await place.schedule("Door"))["entity_id"]
    (door,) = await place.rows(inspection_id)
    await place.company.command(pb, "FailInspectionRow", inspection_id=inspection_id, row_id=door.row_id)
    (cause,) = await causes(place.company, database)
    assert (cause.category, cause.priority) == ("General", "Medium")
    assert not any(cause.HasField(name) for name in ("unit_id", "asset_id", "photo_url"))
    assert not cause.places.units and not cause.places.assets


async def test_an_inspection_goes_from_scheduled_to_completed(place: Place, database: Database) -> None:
    inspection_id = (await place.schedule(*ROWS))["entity_id"]
    about = {"inspection_id": inspection_id}
    assert (await place.does("StartInspection", **about))["status"] == "In Progress"
    await place.does("StartInspection", **about)
    for row in await place.rows(inspection_id):
        with pytest.raises(Refusal) as refused:
            await place.does("CompleteInspection", **about)
        assert refused.value.status == 422
        await place.company.command(pb, "PassInspectionRow", **about, row_id=row.row_id)
    await place.company.command(pb, "FailInspectionRow", **about, row_id=row.row_id)
    # In the company's timezone, UTC+14, the date is ahead of UTC's for 14 hours a day.
    day = today("Pacific/Kiritimati")
    done = await place.does("CompleteInspection", **about)
    assert (done["status"], done["result"], done["completed_date"]) == ("Completed", "failed", str(day))
    assert json.loads(await place.got(inspection_id)) == done
    actions = [entry[1] for entry in await audited(database, place.company.id)]
    assert actions.count("inspection.started") == actions.count("inspection.completed") == 1
    # A completed inspection stays completed; completing it again changes nothing.
    assert await place.does("CompleteInspection", **about) == done
    for rpc, values in (
        ("StartInspection", {}),
        ("CompleteInspection", {"completed_date": "2031-01-01"}),
        ("PassInspectionRow", {"row_id": row.row_id}),
        ("FailInspectionRow", {"row_id": row.row_id}),
    ):
        with pytest.raises(Refusal) as refused:
            await place.company.command(pb, rpc, **about, **values)
        assert refused.value.status == 422
    assert len(await audited(database, place.company.id)) == len(actions)


async def test_all_passed_is_passed_and_looking_at_a_row_starts_it(place: Place) -> None:
    inspection_id = (await place.schedule("Door"))["entity_id"]
    (door,) = await place.rows(inspection_id)
    await place.company.command(pb, "PassInspectionRow", inspection_id=inspection_id, row_id=door.row_id)
    assert json.loads(await place.got(inspection_id))["status"] == "In Progress"
    done = await place.does("CompleteInspection", inspection_id=inspection_id, completed_date="2026-02-28")
    assert (done["result"], done["completed_date"]) == ("passed", "2026-02-28")


async def test_the_same_key_does_it_once(place: Place, database: Database) -> None:
    inspection_id = (await place.schedule("Door"))["entity_id"]
    (door,) = await place.rows(inspection_id)
    about = {"inspection_id": inspection_id, "row_id": door.row_id, "idempotency_key": "k"}
    first = await place.company.command(pb, "FailInspectionRow", **about)
    entries = len(await audited(database, place.company.id))
    assert await place.company.command(pb, "FailInspectionRow", **about) == first
    with pytest.raises(Refusal) as refused:
        await place.company.command(pb, "FailInspectionRow", **about, note="Else")
    assert refused.value.code == "idempotency_mismatch"
    assert len(await audited(database, place.company.id)) == entries
    assert len(await causes(place.company, database)) == 1


@pytest.mark.parametrize(
    ("values", "status"),
    [
        ({"title": ""}, 400),
        ({"title": "t" * 201}, 400),
        ({"scheduled_date": ""}, 400),
        ({"scheduled_date": "tomorrow"}, 400),
        ({"row": ["Door", " "]}, 400),
        ({"row": ["r" * 151]}, 400),
        ({"row": ["r"] * 501}, 400),
        ({"property_id": 0}, 404),
        ({"property_id": 2**62}, 404),
        ({"unit_id": 2**62}, 404),
        ({"assignee_id": -1}, 404),
    ],
)
async def test_what_cannot_be_planned_is_refused(
    place: Place, database: Database, values: dict[str, Any], status: int
) -> None:
    with pytest.raises(Refusal) as refused:
        await place.schedule(**({"row": []} | values))
    assert refused.value.status == status
    assert await audited(database, place.company.id) == []
    assert (await place.schedule())["inspection_number"] == 1


async def test_what_lies_in_another_property_is_refused(place: Place) -> None:
    with pytest.raises(Refusal) as refused:
        await place.schedule(unit_id=place.other_unit)
    assert refused.value.status == 422
    inspection_id = (await place.schedule("Door"))["entity_id"]
    (door,) = await place.rows(inspection_id)
    for rpc, values in (
        ("UpdateInspection", {"unit_id": place.other_unit}),
        ("FailInspectionRow", {"row_id": door.row_id, "asset_id": place.other_asset}),
    ):
        with pytest.raises(Refusal) as refused:
            await place.company.command(pb, rpc, inspection_id=inspection_id, **values)
        assert refused.value.status == 422
    with pytest.raises(Refusal) as refused:
        await place.company.command(
            pb, "FailInspectionRow", inspection_id=inspection_id, row_id=door.row_id, asset_id=9
        )
    assert refused.value.status == 404


@pytest.mark.parametrize(
    ("values", "status"), [({"category": "Doors"}, 422), ({"priority": "high"}, 422), ({"note": "n" * 10_001}, 400)]
)
async def test_what_no_ticket_could_say_is_refused(
    place: Place, database: Database, values: dict[str, Any], status: int
) -> None:
    inspection_id = (await place.schedule("Door"))["entity_id"]
    (door,) = await place.rows(inspection_id)
    with pytest.raises(Refusal) as refused:
        await place.company.command(pb, "FailInspectionRow", inspection_id=inspection_id, row_id=door.row_id, **values)
    assert refused.value.status == status
    assert await causes(place.company, database) == []


@pytest.mark.parametrize("rpc", [rpc for rpc in RPCS if rpc != "ScheduleInspection"])
async def test_what_is_not_there_or_another_companys_or_a_consultants_is_not_found(
    place: Place, other: Any, database: Database, rpc: str
) -> None:
    company = place.company
    mine = (await place.schedule("Door"))["entity_id"]
    (door,) = await place.rows(mine)
    walk = {"external_id": "W", "property": "P1", "kind": "consulting_walk", "engagement": "E"}
    await company.put("inspections", walk)
    async with database.connection() as connection:
        hidden = await connection.raw.fetchval(
            "SELECT id FROM inspection WHERE company_id = $1 AND external_id = 'W'", company.id
        )
    row: dict[str, Any] = {"row_id": door.row_id} if "Row" in rpc and rpc.startswith(("Pass", "Fail", "Rem")) else {}
    named: dict[str, Any] = {"label": "Roof"} if rpc == "AddInspectionRow" else {}
    for who, inspection_id in ((other, mine), (company, hidden), (company, 2**62), (company, 0)):
        with pytest.raises(Refusal) as refused:
            await who.command(pb, rpc, inspection_id=inspection_id, **row, **named)
        assert (refused.value.status, refused.value.code) == (404, "not_found")
        assert "company" in refused.value.message
    if row:
        with pytest.raises(Refusal) as refused:
            await company.command(pb, rpc, inspection_id=mine, row_id=2**62)
        assert refused.value.status == 404


async def test_a_legacy_inspection_is_completed_already(place: Place) -> None:
    await place.company.put("inspections", {"external_id": "L", "property": "P1", "status": "Finalized"})
    (legacy,) = await place.company.list("inspections")
    for rpc in ("StartInspection", "CompleteInspection"):
        with pytest.raises(Refusal) as refused:
            await place.company.command(pb, rpc, inspection_id=legacy["entity_id"])
        assert refused.value.status == 422
    changed = await place.does("UpdateInspection", inspection_id=legacy["entity_id"], title="Found in a drawer")
    assert (changed["title"], changed["status"], changed["inspection_number"]) == (
        "Found in a drawer",
        "Completed",
        None,
    )


async def test_two_who_walk_at_once_do_not_overwrite_each_other(place: Place, database: Database) -> None:
    inspection_id = (await place.schedule("Door"))["entity_id"]
    (door,) = await place.rows(inspection_id)
    about = {"inspection_id": inspection_id, "row_id": door.row_id}
    await place.company.command(pb, "FailInspectionRow", **about, note="It sticks.", seen_result="none")
    entries = len(await audited(database, place.company.id))
    for rpc, note in (("PassInspectionRow", {}), ("FailInspectionRow", {"note": "Else"})):
        with pytest.raises(Refusal) as refused:
            await place.company.command(pb, rpc, **about, **note, seen_result="none")
        assert (refused.value.status, refused.value.field) == (422, "seen_result")
    (row,) = await place.rows(inspection_id)
    assert row.note == "It sticks." and len(await audited(database, place.company.id)) == entries
    await place.company.command(pb, "PassInspectionRow", **about, seen_result="failed")
    with pytest.raises(Refusal):
        await place.company.command(pb, "PassInspectionRow", **about, seen_result="maybe")


async def test_a_cancelled_inspection_is_served_no_more_and_keeps_its_page(place: Place, database: Database) -> None:
    company = place.company
    planned = await place.schedule("Door", "Alarm", external_id="I9", unit_id=place.unit_id)
    about = {"inspection_id": planned["entity_id"]}
    door, alarm = await place.rows(planned["entity_id"])
    await company.command(pb, "FailInspectionRow", **about, row_id=door.row_id)
    ada = Identity(STAFF, "gateway", company.id, staff_id=place.staff_id)
    key = {"idempotency_key": "c", "reason": " The roof is replaced first. "}
    cancelled = await company.command(pb, "CancelInspection", ada, **about, **key)
    assert await company.command(pb, "CancelInspection", ada, **about, **key) == cancelled
    assert await company.command(pb, "CancelInspection", **about, reason="Else") == cancelled, "it is cancelled once"
    with pytest.raises(Refusal) as refused:
        await place.got(planned["entity_id"])
    assert refused.value.status == 404 and await company.list("inspections") == []
    entry = (await audited(database, company.id))[-1]
    assert entry[:4] == (f"staff:{place.staff_id}", "inspection.cancelled", "inspection", planned["entity_id"])
    cancellation = {"status": "Cancelled", "reason": "The roof is replaced first."}
    assert (entry[4], entry[5]) == ({"status": "In Progress"}, cancellation)
    assert len(await causes(company, database)) == 1, "the ticket of its failed row stays"
    # Whoever worked on it meanwhile is refused with the reason, not with 404.
    for rpc, values in (
        ("StartInspection", {}),
        ("CompleteInspection", {}),
        ("UpdateInspection", {"title": "Else"}),
        ("PassInspectionRow", {"row_id": alarm.row_id}),
        ("FailInspectionRow", {"row_id": alarm.row_id}),
        ("AddInspectionRow", {"label": "Roof"}),
        ("RemoveInspectionRow", {"row_id": alarm.row_id}),
    ):
        with pytest.raises(Refusal) as refused:
            await company.command(pb, rpc, **about, **values)
        assert (refused.value.status, refused.value.message) == (
            422,
            "The inspection is cancelled; schedule another one.",
        )
    assert [row.result for row in await place.rows(planned["entity_id"])] == ["failed", ""]
    # A file that comes again leaves it cancelled; one that says the kind takes the cancellation back.
    row = {"external_id": "I9", "property": "P1", "title": "Fire"}
    await company.put("inspections", row)
    assert await company.list("inspections") == []
    await company.put("inspections", row | {"kind": "operations"})
    (again,) = await company.list("inspections")
    assert again["entity_id"] == planned["entity_id"]
    await place.does("UpdateInspection", **about, title="Fire again")


async def test_a_completed_inspection_cannot_be_cancelled(place: Place) -> None:
    planned = await place.schedule()
    about = {"inspection_id": planned["entity_id"]}
    await place.does("CompleteInspection", **about)
    for rpc, values in (("CancelInspection", {}), ("AddInspectionRow", {"label": "Roof"})):
        with pytest.raises(Refusal) as refused:
            await place.company.command(pb, rpc, **about, **values)
        assert (refused.value.status, "completed" in refused.value.message) == (422, True)
    with pytest.raises(Refusal) as refused:
        await place.company.command(pb, "CancelInspection", inspection_id=1, reason="r" * 501)
    assert (refused.value.status, refused.value.field) == (400, "reason")


async def test_rows_are_added_and_those_without_a_result_removed(place: Place, database: Database) -> None:
    company, planned = place.company, await place.schedule(*ROWS)
    about = {"inspection_id": planned["entity_id"]}
    door, alarm, extinguisher = await place.rows(planned["entity_id"])
    await company.command(pb, "RemoveInspectionRow", **about, row_id=alarm.row_id, idempotency_key="r")
    await company.command(pb, "RemoveInspectionRow", **about, row_id=alarm.row_id, idempotency_key="r")
    added = (await company.command(pb, "AddInspectionRow", **about, label="Roof 屋根", idempotency_key="a")).row
    assert (await company.command(pb, "AddInspectionRow", **about, label="Roof 屋根", idempotency_key="a")).row == added
    rows = await place.rows(planned["entity_id"])
    assert [(row.row_id, row.position, row.label) for row in rows] == [
        (door.row_id, 1, "Door"),
        (extinguisher.row_id, 2, "Extinguisher"),
        (added.row_id, 3, "Roof 屋根"),
    ]
    entries = [(entry[1], entry[4], entry[5]) for entry in await audited(database, company.id)]
    assert entries[1:] == [
        ("inspection.row_removed", {"row_id": alarm.row_id, "label": "Alarm"}, {}),
        ("inspection.row_added", {}, {"row_id": added.row_id, "label": "Roof 屋根"}),
    ]
    # What was found stays: of a row that passed, and of one that failed and passed later.
    await company.command(pb, "PassInspectionRow", **about, row_id=door.row_id)
    await company.command(pb, "FailInspectionRow", **about, row_id=added.row_id)
    for row_id in (door.row_id, added.row_id):
        with pytest.raises(Refusal) as refused:
            await company.command(pb, "RemoveInspectionRow", **about, row_id=row_id)
        assert refused.value.status == 422
    with pytest.raises(Refusal) as refused:
        await company.command(pb, "RemoveInspectionRow", **about, row_id=alarm.row_id)
    assert refused.value.status == 404
    for label in ("", " ", "r" * 151):
        with pytest.raises(Refusal) as refused:
            await company.command(pb, "AddInspectionRow", **about, label=label)
        assert (refused.value.status, refused.value.field) == (400, "label")
    # The tickets of an inspection's rows are known by the row: a new one is never an old one's.
    assert len({door.row_id, alarm.row_id, extinguisher.row_id, added.row_id}) == 4


@pytest.mark.parametrize("kind", [INTEGRATION, SERVICE, OPERATOR, STAFF, ADMINISTRATOR])
@pytest.mark.parametrize("rpc", RPCS)
async def test_people_of_the_company_alone_may(company: Any, rpc: str, kind: str) -> None:
    issuer = {OPERATOR: "operator", SERVICE: "svc-tickets"}.get(kind, "gateway")
    who = Identity(kind, issuer, company.id, api_key_id=1, administrator_id=1, staff_id=1)
    try:
        await company.command(pb, rpc, who)
    except grpc.aio.AioRpcError as error:
        assert error.code() == grpc.StatusCode.PERMISSION_DENIED and kind in (INTEGRATION, SERVICE)
    except Refusal as refused:
        assert refused.status in (400, 404) and kind in (OPERATOR, STAFF, ADMINISTRATOR)
    else:
        pytest.fail("there was nothing to be found")


async def test_a_rows_photo_stays_whatever_its_result_and_its_ticket_gets_it(place: Place, database: Database) -> None:
    about = {"inspection_id": (await place.schedule(*ROWS[:2]))["entity_id"]}
    door, alarm = await place.rows(about["inspection_id"])

    async def photo(row: Any, url: str | None) -> Any:
        more = {} if url is None else {"photo_url": url}
        return await place.company.command(pb, "SetInspectionRowPhoto", **about, row_id=row.row_id, **more)

    first = await photo(door, "https://x.example/1.jpg")
    assert (first.row.photo_url, first.HasField("previous_photo_url")) == ("https://x.example/1.jpg", False)
    second = await photo(door, "https://x.example/2.jpg")
    assert (second.row.photo_url, second.previous_photo_url) == ("https://x.example/2.jpg", "https://x.example/1.jpg")
    assert not (await photo(door, None)).row.photo_url and not (await photo(door, None)).previous_photo_url
    await photo(door, "https://x.example/3.jpg")
    # A photo is no result: the inspection has not begun.
    assert json.loads(await place.got(about["inspection_id"]))["status"] == "Scheduled"
    passed = await place.company.command(pb, "PassInspectionRow", **about, row_id=door.row_id)
    assert passed.row.photo_url == "https://x.example/3.jpg"
    await photo(alarm, "https://x.example/4.jpg")
    failed = await place.company.command(pb, "FailInspectionRow", **about, row_id=alarm.row_id, note="Silent")
    assert failed.row.photo_url == "https://x.example/4.jpg"
    assert [cause.photo_url for cause in await causes(place.company, database)] == ["https://x.example/4.jpg"]
    for row, url, field in ((alarm, None, "photo_url"), (alarm, "https://x.example/5.jpg", "photo_url"),
                            (door, "ftp://x", "photo_url")):  # fmt: skip
        with pytest.raises(Refusal) as refused:
            await photo(row, url)
        assert refused.value.field == field
    await place.does("CompleteInspection", **about)
    with pytest.raises(Refusal) as refused:
        await photo(door, None)
    assert refused.value.status == 422 and [row.photo_url for row in await place.rows(about["inspection_id"])] == [
        "https://x.example/3.jpg", "https://x.example/4.jpg",
    ]  # fmt: skip
