"""The changes of every kind: a copy that follows them equals the lists, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from chassis.db.database import Database
from makeready.catalog.v1 import (
    inspection_commands_pb2,
    meter_commands_pb2,
    meters_pb2,
    place_commands_pb2,
    vendor_commands_pb2,
)
from makeready.events.v1 import events_pb2
from svc_catalog import consumers
from testkit.patience import eventually

from .conftest import NOUNS


class Item(msgspec.Struct, forbid_unknown_fields=True):
    """A change as callers receive it."""

    schema_version: int
    entity_type: str
    entity_id: int
    gone: bool
    record: msgspec.Raw


class Copy:
    """A caller's copy of a company: the bytes of each record, by kind and id."""

    def __init__(self, company: Any) -> None:
        self.company = company
        self.positions = dict.fromkeys(NOUNS, b"")
        self.records: dict[tuple[str, int], bytes] = {}
        self.heard: set[tuple[str, int]] = set()
        """What has changed since `heard` was emptied."""

    async def read(self, limit: int = 3) -> None:
        """Reads all that waits."""
        for kind in NOUNS:
            more = True
            while more:
                feed = await self.company.changes(kind, self.positions[kind], limit)
                assert len(feed.documents) <= limit
                for document in feed.documents:
                    self._take(kind, document)
                self.positions[kind], more = feed.position, feed.more

    def _take(self, kind: str, document: bytes) -> None:
        item = msgspec.json.decode(document, type=Item)
        assert item.schema_version == 1
        key, record = (kind, item.entity_id), bytes(item.record)
        self.heard.add(key)
        if item.gone:
            assert record == b"null"
            self.records.pop(key, None)
        else:
            named = json.loads(record)
            assert (named["entity_type"], named["entity_id"]) == (item.entity_type, item.entity_id)
            self.records[key] = record

    async def truth(self) -> dict[tuple[str, int], bytes]:
        """All records as the lists have them."""
        records: dict[tuple[str, int], bytes] = {}
        for kind in NOUNS:
            for record in await self._list(kind, records):
                records[kind, json.loads(record)["entity_id"]] = record
        return records

    async def _list(self, kind: str, records_so_far: Any) -> list[bytes]:
        if kind != "readings":
            return _records((await self.company.page(kind)).data)
        records: list[bytes] = []
        for meter_id in [entity_id for its_kind, entity_id in records_so_far if its_kind == "meters"]:
            request = meters_pb2.ListReadingsRequest(meter_id=meter_id, limit=200)
            records += _records((await self.company.catalog("ListReadings", request, self.company.caller)).page.data)
        return records

    async def hears(self, database: Database, *expected: tuple[str, int]) -> None:
        """Reads all until now: it has heard of these, and of no others, and equals the lists."""
        await _at_rest(database, self.company.id)
        await self.read()
        assert self.heard == set(expected)
        assert self.records == await self.truth()
        self.heard.clear()


async def _at_rest(database: Database, company_id: int) -> None:
    """Waits until no record of the company waits to be moved, and all transactions that moved some are below the
    horizon."""
    async with database.connection() as connection:
        raw = connection.raw

        async def nothing_is_marked() -> bool:
            return not await raw.fetchval("SELECT count(*) FROM changes_to_touch WHERE company_id = $1", company_id)

        await eventually(nothing_is_marked, "records still wait to be moved")
        ended = await raw.fetchval("SELECT pg_snapshot_xmax(pg_current_snapshot())")

        async def all_have_ended() -> bool:
            return bool(await raw.fetchval("SELECT pg_snapshot_xmin(pg_current_snapshot())") >= ended)

        await eventually(all_have_ended, "a transaction stays open")


def _records(page: bytes) -> list[bytes]:
    return [bytes(record) for record in msgspec.json.decode(page, type=list[msgspec.Raw])]


PROPERTY = {"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}
UNITS = [
    {"external_id": f"U{number}", "property": "P1", "name": f"Unit {number}", **more}
    for number, more in enumerate(
        (
            {"building": "North", "floor": "1", "floorplan": "B2", "bedrooms": "2"},
            {"building": "North", "floor": "1", "floorplan": "B2"},
            {},
        ),
        start=1,
    )
]
ASSET = {"property": "P1", "name": "Boiler", "category": "HVAC", "make": "M", "model": "N"}
ASSETS = [
    ASSET | {"external_id": "A1", "location": "U1"},
    ASSET | {"external_id": "A2", "location": "Boiler room", "location_type": "mechanical_room"},
]
VENDORS = [
    {"external_id": "V1", "name": "Ace", "legal_name": "Ace Inc.", "website": "https://ace.example"},
    {"external_id": "V2", "name": "Ace North", "legal_name": "Ace Inc."},
    {"external_id": "V3", "name": "Bolt"},
]
_VENDORS = {row["name"]: row["external_id"] for row in VENDORS}
METER = {"property": "P1", "utility_type": "gas"}
METERS = [
    METER | {"external_id": "M1", "name": "Main"},
    METER | {"external_id": "M2", "name": "Of unit 1", "unit": "U1"},
]
READING = {"period_start": "2026-01-01T00:00:00Z", "period_end": "2026-02-01T00:00:00Z"}
READINGS = [
    READING | {"external_id": f"R{number}", "meter": meter, "consumption": f"{number}.5"}
    for number, meter in enumerate(("M1", "M2", "M1"), start=1)
]
INSPECTIONS = [
    {"external_id": "I1", "property": "P1", "unit": "U1", "title": "Roof", "scheduled_date": "2030-01-01"},
    {"external_id": "I2", "property": "P1", "title": "Alarm", "kind": "acceptance_walk"},
    {"external_id": "I3", "property": "P1", "kind": "consulting_walk", "engagement": "Audit"},
]
FILES = {
    "properties": [PROPERTY, {"external_id": "P2", "name": "Oak Court", "address": "2 Oak St"}],
    "units": UNITS,
    "assets": ASSETS,
    "vendors": VENDORS,
    "inspections": INSPECTIONS,
    "meters": METERS,
    "readings": READINGS,
}


async def staffed(database: Database, company_id: int, name: str, version: int) -> int:
    """Stores a member of the company's staff as the gateway's references do; returns its id."""
    reference = events_pb2.StaffReference(
        id=company_id * 1000, version=version, company_id=company_id, name=name, external_id="S1"
    )
    async with database.transaction() as connection:
        await consumers.put_references(connection, [events_pb2.References(staff=[reference])])
    return reference.id


async def occupied(database: Database, company_id: int, unit_id: int, version: int, **values: str) -> None:
    reference = events_pb2.UnitOccupancyReference(id=unit_id, version=version, company_id=company_id, **values)
    async with database.transaction() as connection:
        await consumers.put_references(connection, [events_pb2.References(unit_occupancies=[reference])])


async def test_a_copy_of_all_kinds_follows_every_change_and_nothing_else(
    company: Any, other: Any, database: Database
) -> None:
    await staffed(database, company.id, "Ada", 1)
    for kind, rows in FILES.items():
        assert await company.put(kind, *rows) == ["created"] * len(rows)
        await other.put(kind, *rows)
    copy = Copy(company)
    ids: dict[str, tuple[str, int]] = {}
    for key, record in (await copy.truth()).items():
        content = json.loads(record)
        # Vendors show no external_id.
        ids[content["external_id"] if "external_id" in content else _VENDORS[content["name"]]] = key
    assert len(ids) == sum(map(len, FILES.values())) - 1, "the consultant's walk is not served"

    async def put(kind: str, row: dict[str, Any], **changed: Any) -> None:
        assert await company.put(kind, row | changed) == ["changed"]

    desk = company.command

    of_p1 = [name for kind in ("units", "assets", "meters") for name in _names(kind)] + ["I1", "I2"]
    steps: list[tuple[str, Callable[[], Awaitable[Any]], str]] = [
        ("a property is renamed", lambda: put("properties", PROPERTY, name="Elms"), f"P1 {' '.join(of_p1)}"),
        ("its address changes", lambda: put("properties", PROPERTY | {"name": "Elms"}, address="3 Elm St"), "P1"),
        ("a unit is renamed", lambda: put("units", UNITS[0], name="Flat 1"), "U1 A1 M2 I1"),
        ("its number changes", lambda: put("units", UNITS[0] | {"name": "Flat 1"}, unit_number="1"), "U1"),
        # The other units of the property come along.
        ("a plan is measured anew", lambda: put("units", UNITS[0] | {"name": "Flat 1"}, bedrooms="3"), "U1 U2 U3"),
        ("a unit moves out of its building", lambda: put("units", UNITS[1], building="South", floor="1"), "U2"),
        (
            "a unit becomes vacant",
            lambda: occupied(database, company.id, ids["U1"][1], 1, unit_status="Vacant Ready"),
            "U1",
        ),
        (
            "and is published again as it is",
            lambda: occupied(database, company.id, ids["U1"][1], 2, unit_status="Vacant Ready"),
            "",
        ),
        ("an asset moves", lambda: put("assets", ASSETS[1], location="U3", location_type="unit"), "A2"),
        ("a unit without anything but it", lambda: put("units", UNITS[2], name="Flat 3"), "U3 A2"),
        ("a business has another website", lambda: put("vendors", VENDORS[0], website="https://a.example"), "V1 V2"),
        (
            "a vendor is put on hold",
            lambda: desk(vendor_commands_pb2, "HoldVendor", vendor_id=ids["V3"][1], reason="Late"),
            "V3",
        ),
        ("an inspection is assigned", lambda: put("inspections", INSPECTIONS[0], assignee="S1"), "I1"),
        ("the assignee is renamed", lambda: staffed(database, company.id, "Ada Byron", 2), "I1"),
        ("an inspection becomes a walk", lambda: put("inspections", INSPECTIONS[1], engagement="Audit"), "I2"),
        ("it comes back", lambda: put("inspections", INSPECTIONS[1], engagement=""), "I2"),
        (
            "an inspection is cancelled",
            lambda: desk(inspection_commands_pb2, "CancelInspection", inspection_id=ids["I1"][1], reason="Not needed"),
            "I1",
        ),
        ("a meter is renamed", lambda: put("meters", METERS[0], name="Mains"), "M1"),
        (
            "a reading is corrected",
            lambda: desk(
                meter_commands_pb2,
                "CorrectReading",
                meter_id=ids["M1"][1],
                reading_id=ids["R1"][1],
                consumption=7.25,
            ),
            "R1",
        ),
        ("a reading comes again with another cost", lambda: put("readings", READINGS[1], cost="12.5"), "R2"),
        (
            "a property is renamed at the desk",
            lambda: desk(place_commands_pb2, "UpdateProperty", property_id=ids["P2"][1], name="Oaks"),
            "P2",
        ),
    ]
    # All that there is, in the order of last change; not the walk, which nobody may see.
    await copy.hears(database, *ids.values())
    for change_name, change, expected in steps:
        await change()
        try:
            await copy.hears(database, *(ids[name] for name in expected.split()))
        except AssertionError as fault:
            fault.add_note(change_name)
            raise
    theirs = {key for key, _ in (await Copy(other).truth()).items()}
    assert not theirs & copy.records.keys()


def _names(kind: str) -> list[str]:
    return [row["external_id"] for row in FILES[kind]]


@pytest.mark.parametrize("kind", NOUNS)
async def test_a_snapshots_position_is_behind_all_that_has_changed(company: Any, database: Database, kind: str) -> None:
    for name, rows in FILES.items():
        await company.put(name, *rows)
    await _at_rest(database, company.id)
    copy = Copy(company)
    await copy.read(200)
    now = await company.changes(kind, from_now=True)
    assert not now.documents and not now.more
    after = await company.changes(kind, now.position)
    assert not after.documents and after.position
