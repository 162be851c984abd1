"""Imports of inspections: references of a row, numbers, changes and refusals."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import select

from chassis.db.database import Database
from chassis.db.statements import Statement
from makeready.events.v1.events_pb2 import Event
from svc_catalog import schema
from svc_catalog.inspections.tables import inspection, inspection_number
from testkit.stored_documents import written_columns

I = {"external_id": "I1", "property": "P1"}  # noqa: E741 - beside P, U and A of the other kinds
FULL = I | {
    "unit": "U1",
    "title": "Sprinklers",
    "inspection_type": "Fire Alarm",
    "inspection_number": "14",
    "status": "Completed",
    "result": "failed",
    "scheduled_date": "2026-02-27",
    "completed_date": "2026-02-28",
    "is_compliance_inspection": "yes",
    "compliance_type": "NFPA 25",
    "kind": "acceptance_walk",
    "created_at": "2026-02-01",
}


@pytest.fixture(autouse=True)
async def houses(company: Any) -> AsyncIterator[None]:
    """Two properties with a unit each."""
    await company.put("properties", *({"external_id": p, "name": p, "address": "A"} for p in ("P1", "P2")))
    units = {"U1": "P1", "U2": "P2"}
    await company.put("units", *({"external_id": u, "property": p, "name": u} for u, p in units.items()))
    yield


async def stored(database: Database, company_id: int) -> dict[str, Any]:
    """The company's stored inspections by external_id, without what follows a write in the background."""
    rows = await database.rows(Statement(select(*written_columns(inspection))))
    return {row["external_id"]: dict(row) for row in rows if row["company_id"] == company_id}


async def numbers(company: Any) -> dict[str, int | None]:
    return {
        name: inspection["inspection_number"]
        for name, inspection in (await company.by_external_id("inspections")).items()
    }


async def test_a_row_is_created_then_unchanged_then_changed(company: Any, database: Database) -> None:
    assert await company.put("inspections", FULL) == ["created"]
    before = await stored(database, company.id)
    assert await company.put("inspections", FULL) == ["unchanged"]
    assert await company.put("inspections", I) == ["unchanged"]
    assert await stored(database, company.id) == before
    assert await company.put("inspections", FULL | {"result": "passed"}) == ["changed"]
    (was,), (now,) = before.values(), (await stored(database, company.id)).values()
    assert {name for name in was if was[name] != now[name]} == {"version", "changed_xid", "result"}
    assert now["version"] == 2


async def test_a_blank_cell_clears_a_field(company: Any) -> None:
    await company.put("inspections", FULL)
    (before,) = await company.list("inspections")
    blank = {name: "" for name in FULL if name not in I}
    assert await company.put("inspections", I | blank) == ["changed"]
    (inspection,) = await company.list("inspections")
    cleared = ["title", "inspection_type", "result", "unit", "scheduled_date", "completed_date", "compliance_type"]
    assert [inspection[name] for name in cleared] == [None] * len(cleared)
    assert (inspection["status"], inspection["is_compliance_inspection"]) == ("Scheduled", False)
    # A blank clears neither the number nor created_at.
    assert (inspection["inspection_number"], inspection["created_at"]) == (14, before["created_at"])


async def test_an_inspection_enters_and_leaves_what_is_served(company: Any) -> None:
    seen = []
    for kind, engagement in (("operations", ""), ("consulting_walk", "Audit"), ("acceptance_walk", "")):
        assert await company.put("inspections", I | {"kind": kind, "engagement": engagement}) != ["rejected kind"]
        seen.append([served["external_id"] for served in await company.list("inspections")])
    assert seen == [["I1"], [], ["I1"]]


async def test_an_engagement_without_a_walk_is_rejected(company: Any) -> None:
    """Otherwise the API would serve a consultant's walk if the file omits its kind."""
    assert await company.put("inspections", I | {"engagement": "Audit"}) == ["rejected kind"]
    assert await company.put("inspections", I | {"engagement": "Audit", "kind": "consulting_walk"}) == ["created"]
    assert await company.put("inspections", I | {"kind": ""}) == ["rejected kind"]
    assert await company.put("inspections", I | {"kind": "", "engagement": ""}) == ["changed"]


# Numbers


async def test_each_property_numbers_its_inspections_from_one_in_the_order_of_the_file(company: Any) -> None:
    rows = [{"external_id": f"I{n}", "property": f"P{1 + n % 2}"} for n in range(5)]
    await company.put("inspections", *rows)
    assert await numbers(company) == {"I0": 1, "I1": 1, "I2": 2, "I3": 2, "I4": 3}
    await company.put("inspections", *rows, {"external_id": "I5", "property": "P2"})
    assert (await numbers(company))["I5"] == 3


async def test_numbers_go_on_above_those_that_a_file_gives(company: Any) -> None:
    rows = [I | {"inspection_number": 40}, {"external_id": "I2", "property": "P1"}]
    assert await company.put("inspections", *rows) == ["created"] * 2
    lower = {"external_id": "I3", "property": "P1", "inspection_number": 7}
    assert await company.put("inspections", lower, {"external_id": "I4", "property": "P1"}) == ["created"] * 2
    assert await numbers(company) == {"I1": 40, "I2": 41, "I3": 7, "I4": 42}
    assert await company.put("inspections", *rows, lower) == ["unchanged"] * 3


async def test_a_number_that_is_taken_is_rejected(company: Any) -> None:
    first = await company.put("inspections", I | {"inspection_number": 3}, I | {"external_id": "I2"})
    assert first == ["created", "created"]
    taken = [
        {"external_id": "I3", "property": "P1", "inspection_number": 3},
        {"external_id": "I4", "property": "P1", "inspection_number": 4},
        {"external_id": "I5", "property": "P2", "inspection_number": 3},
        {"external_id": "I6", "property": "P2", "inspection_number": 3},
        I | {"inspection_number": 3},
    ]
    assert await company.put("inspections", *taken) == [
        "rejected inspection_number",
        "rejected inspection_number",
        "created",
        "rejected inspection_number",
        "unchanged",
    ]


async def test_a_legacy_final_one_is_numbered_when_it_is_completed_anew(company: Any) -> None:
    await company.put("inspections", I | {"status": "Finalized"})
    assert await numbers(company) == {"I1": None}
    assert await company.put("inspections", I | {"status": "Finalized"}) == ["unchanged"]
    await company.put("inspections", I | {"status": "Completed"})
    assert await numbers(company) == {"I1": 1}


async def test_an_inspection_moves_with_its_unit_and_a_new_number(company: Any) -> None:
    await company.put("inspections", I | {"unit": "U1"}, *({"external_id": f"O{n}", "property": "P2"} for n in "12"))
    moved = I | {"property": "P2"}
    assert await company.put("inspections", moved) == ["rejected unit"]
    assert await company.put("inspections", moved | {"unit": "U1"}) == ["rejected unit"]
    assert await company.put("inspections", moved | {"unit": "U2"}) == ["changed"]
    assert await numbers(company) == {"I1": 3, "O1": 1, "O2": 2}
    assert await company.put("inspections", moved | {"unit": "U2"}) == ["unchanged"]


async def test_batches_side_by_side_give_each_inspection_a_number_of_its_own(company: Any) -> None:
    rows = [{"external_id": f"I{n}", "property": f"P{1 + n % 2}"} for n in range(120)]
    outcomes = await asyncio.gather(*(company.put("inspections", *rows[n : n + 40]) for n in (0, 40, 80)))
    assert [len(set(batch_outcomes)) for batch_outcomes in outcomes] == [1, 1, 1]
    by_external_id = await company.by_external_id("inspections")
    numbers_given = sorted(
        (record["property"]["external_id"], record["inspection_number"]) for record in by_external_id.values()
    )
    assert numbers_given == sorted((place, number) for place in ("P1", "P2") for number in range(1, 61))


# Refusals

LONG = "x" * 201


@pytest.mark.parametrize(
    ("fault", "field"),
    [
        ({"external_id": ""}, "external_id"),
        ({"property": ""}, "property"),
        ({"property": "nobody"}, "property"),
        ({"unit": "nobody"}, "unit"),
        ({"unit": "U2"}, "unit"),
        ({"title": LONG}, "title"),
        ({"inspection_type": LONG}, "inspection_type"),
        ({"inspection_number": "0"}, "inspection_number"),
        ({"inspection_number": "-4"}, "inspection_number"),
        ({"inspection_number": "1000000001"}, "inspection_number"),
        ({"inspection_number": "2.5"}, "inspection_number"),
        ({"status": "completed"}, "status"),
        ({"status": "Cancelled"}, "status"),
        ({"result": "pass"}, "result"),
        ({"scheduled_date": "2026-02-30"}, "scheduled_date"),
        ({"scheduled_date": "2026-02-01T00:00:00Z"}, "scheduled_date"),
        ({"completed_date": "yesterday"}, "completed_date"),
        ({"is_compliance_inspection": "perhaps"}, "is_compliance_inspection"),
        ({"compliance_type": LONG}, "compliance_type"),
        ({"kind": "walk"}, "kind"),
        ({"kind": "consulting_walk", "engagement": " "}, "engagement"),
        ({"created_at": "2026-02-01 10:00"}, "created_at"),
        ({"updated_at": "2026-02-01"}, "updated_at"),
        ({"source": "import"}, "source"),
    ],
    ids=str,
)
async def test_a_bad_row_is_rejected_by_field_and_its_neighbours_kept(
    company: Any, fault: dict[str, Any], field: str
) -> None:
    rows = [I | {"external_id": "before"}, I | fault, I | {"external_id": "after"}]
    assert await company.put("inspections", *rows) == ["created", f"rejected {field}", "created"]
    # Rejected rows have taken no number.
    assert await numbers(company) == {"before": 1, "after": 2}


async def test_nothing_of_another_company_can_be_named(company: Any, other: Any) -> None:
    assert await other.put("inspections", I) == ["rejected property"]
    await other.put("properties", {"external_id": "P1", "name": "P1", "address": "A"})
    assert await other.put("inspections", I | {"unit": "U1"}) == ["rejected unit"]
    assert await other.put("inspections", I) == ["created"]
    assert await company.list("inspections") == []


async def test_a_dry_run_reports_the_same_and_writes_nothing(company: Any, database: Database) -> None:
    await company.put("inspections", I | {"external_id": "old"}, I | {"external_id": "same"})

    async def everything() -> list[Any]:
        return [
            [
                dict(row)
                for row in await database.rows(Statement(select(*written_columns(table))))
                if row["company_id"] == company.id
            ]
            for table in (inspection, inspection_number)
        ]

    rows = [
        I | {"external_id": "new"},
        I | {"external_id": "old", "title": "Other"},
        I | {"external_id": "same"},
        I | {"external_id": "bad", "result": "x"},
    ]
    before = await everything()
    dry = await company.put("inspections", *rows, dry_run=True)
    assert await everything() == before
    assert dry == await company.put("inspections", *rows) == ["created", "changed", "unchanged", "rejected result"]


async def test_no_context_has_a_replica_of_inspections(company: Any, database: Database) -> None:
    await company.put("inspections", I)
    rows = await database.rows(Statement(select(schema.outbox.c.message)))
    events = [event for row in rows if (event := Event.FromString(row["message"])).company_id == company.id]
    assert all(event.references.properties or event.references.units for event in events)
