"""Records that are overdue or lapsed on import count as announced, unless the import fires events."""

from __future__ import annotations

import asyncio
import datetime
import time
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from chassis.auth.identity import OPERATOR, Identity
from chassis.db.database import Database
from chassis.schedule.sweeps import PERIOD_SECONDS
from makeready.catalog.v1 import vendor_commands_pb2
from makeready.common.v1 import sweeps_pb2
from makeready.events.v1.events_pb2 import CompanyReference, References
from svc_catalog import consumers

from .published import events, public

NOW = datetime.datetime.now(datetime.UTC)
TODAY = NOW.date()


def day(many: int) -> str:
    return str(TODAY + datetime.timedelta(days=many))


@pytest.fixture(autouse=True)
async def arrived(company: Any, elm: Any, database: Database) -> None:
    if (seconds_left := PERIOD_SECONDS - time.time() % PERIOD_SECONDS) < 60:  # the service sweeps by itself then
        await asyncio.sleep(seconds_left + 10)
    async with database.transaction() as connection:
        house = CompanyReference(id=company.id, version=1, name="C", active=True, timezone="UTC")
        await consumers.put_references(connection, [References(companies=[house])])


async def sweep(company: Any, days: int = 0) -> None:
    """Runs the sweeps as of so many days from now."""
    now = Timestamp()
    now.FromDatetime(NOW + datetime.timedelta(days=days))
    await company.catalog(
        "RunScheduledSweeps",
        sweeps_pb2.RunScheduledSweepsRequest(now=now, yes_for_all_companies=True),
        Identity(OPERATOR, "operator"),
    )


async def fired(company: Any, database: Database) -> list[tuple[str, str]]:
    """Each event, with the name or title of its record."""
    return [(key, data.get("name") or data["title"]) for key, data, _ in await public(database, company.id)]


def inspections(**titles: int | None) -> list[dict[str, Any]]:
    """A row for each title, scheduled so many days from now."""
    return [
        {"external_id": title, "property": "P1", "title": title, "scheduled_date": "" if many is None else day(many)}
        for title, many in titles.items()
    ]


def vendors(**names: int | None) -> list[dict[str, Any]]:
    """A row for each name, insured until so many days from now."""
    return [
        {"external_id": name, "name": name, "insurance_expires_on": "" if many is None else day(many)}
        for name, many in names.items()
    ]


async def test_an_overdue_inspection_of_a_file_with_events_is_announced(company: Any, database: Database) -> None:
    await company.put("inspections", *inspections(old=-9, planned=3, whenever=None))
    await company.put("inspections", *inspections(loud=-9), events=True)
    await sweep(company)
    assert await fired(company, database) == [("inspection.stale", "loud")]
    # An inspection that was not overdue on import fires later; importing the same file again changes nothing.
    assert await company.put("inspections", *inspections(old=-9, planned=3, loud=-9)) == ["unchanged"] * 3
    await sweep(company, 5)
    assert await fired(company, database) == [("inspection.stale", "loud"), ("inspection.stale", "planned")]


async def test_an_inspection_that_a_file_makes_overdue_counts_as_announced(company: Any, database: Database) -> None:
    await company.put("inspections", *inspections(one=3, two=3))
    await company.put("inspections", *inspections(one=-9))
    await company.put("inspections", *inspections(two=-9), events=True)
    await sweep(company)
    assert await fired(company, database) == [("inspection.stale", "two")]


async def test_overdue_records_are_still_announced_after_an_import_of_others(company: Any, database: Database) -> None:
    await company.put("inspections", *inspections(one=-9), events=True)
    assert await company.put("inspections", inspections(one=-9)[0] | {"compliance_type": "NFPA"}) == ["changed"]
    await sweep(company)
    assert await fired(company, database) == [("inspection.stale", "one")]


async def test_lapsed_vendors_are_on_hold_without_events_for_integrations(company: Any, database: Database) -> None:
    rows = vendors(lapsed=-1, insured=100, unknown=None)
    assert await company.put("vendors", *rows, {"external_id": "bare", "name": "bare"}) == ["created"] * 4
    await company.put("vendors", *vendors(loud=-1), events=True)
    references = [vendor for _, event in await events(database, company.id) for vendor in event.references.vendors]
    assert {vendor.name: vendor.on_hold for vendor in references} == {
        "lapsed": True,
        "insured": False,
        "unknown": False,
        "bare": False,
        "loud": False,
    }
    before = await company.by_name("vendors")
    assert {vendor["last_compliance_state"] for vendor in before.values()} == {"unknown"}
    await sweep(company)
    assert await fired(company, database) == [("vendor.hold", "loud")]
    after = await company.by_name("vendors")
    assert {name: vendor["last_compliance_state"] for name, vendor in after.items()} == {
        "lapsed": "noncompliant",
        "insured": "compliant",
        "unknown": "missing",
        "bare": "unknown",
        "loud": "noncompliant",
    }
    holds = await company.command(vendor_commands_pb2, "ListVendorHolds")
    assert [(hold.name, hold.reason) for hold in holds.holds] == [
        ("lapsed", "insurance_lapsed"),
        ("loud", "insurance_lapsed"),
    ]
    assert await company.put("vendors", *rows) == ["unchanged"] * 3


async def test_insurance_that_a_file_renews_ends_the_hold_and_a_file_without_it_says_nothing(
    company: Any, database: Database
) -> None:
    await company.put("vendors", *vendors(one=-1, two=-1))
    assert await company.put("vendors", {"external_id": "two", "name": "two"}) == ["unchanged"]
    assert await company.put("vendors", *vendors(one=100)) == ["changed"]
    holds = (await company.command(vendor_commands_pb2, "ListVendorHolds")).holds
    assert [hold.name for hold in holds] == ["two"]
    await sweep(company, 101)
    assert await fired(company, database) == [("vendor.hold", "one")]


async def test_a_file_does_not_overrule_the_snapshot_of_whose_insurance_is_tracked(company: Any) -> None:
    await company.put("vendors", *vendors(one=100))
    await sweep(company)
    assert await company.put("vendors", vendors(one=100)[0] | {"last_compliance_state": "missing"}) == ["changed"]
    await sweep(company)
    assert (await company.by_name("vendors"))["one"]["last_compliance_state"] == "compliant"
