"""Imports of vendors (spec 2.8): names and businesses, changes and refusals."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from makeready.catalog.v1 import vendors_pb2
from svc_catalog.vendors.tables import business, vendor
from testkit.examples import examples
from testkit.stored_documents import written_columns

V = {"external_id": "V1", "name": "Ace Plumbing"}
FULL = {
    "external_id": "V-1",
    "name": "Ace 漏水 🚿",
    "legal_name": "Ace Plumbing & Heating Inc.",
    "website": "https://ace.example",
    "avg_rating": "4.5",
    "rating_count": "12",
    "is_active": "no",
    "property_visibility": "selected_properties",
    "onboarded_at": "2019-05-04",
    "retired_at": "2024-01-31T10:00:00+02:00",
    "last_compliance_state": "expiring",
}


async def stored(database: Database, company_id: int) -> dict[str, Any]:
    """The company's stored vendors by external_id, without what follows a write in the background."""
    rows = await database.rows(Statement(select(*written_columns(vendor))))
    return {row["external_id"]: dict(row) for row in rows if row["company_id"] == company_id}


# Names and businesses


async def test_the_name_is_the_nickname_else_the_legal_name(company: Any, database: Database) -> None:
    rows = [V | {"legal_name": "Ace Inc."}, {"external_id": "V2", "name": "Ace Inc."}]
    assert await company.put("vendors", *rows) == ["created"] * 2
    assert [vendor["name"] for vendor in await company.list("vendors")] == ["Ace Plumbing", "Ace Inc."]
    nicknames = {key: row["nickname"] for key, row in (await stored(database, company.id)).items()}
    assert nicknames == {"V1": "Ace Plumbing", "V2": None}


async def test_vendors_of_one_legal_entity_share_its_business(company: Any) -> None:
    rows = [V | {"legal_name": "Ace Inc."}, V | {"external_id": "V2", "name": "Ace East", "legal_name": "Ace Inc."}]
    await company.put("vendors", *rows, V | {"external_id": "V3"})
    first, second, third = (vendor["business"] for vendor in await company.list("vendors"))
    assert first == second and third["id"] != first["id"]


async def test_another_companys_import_of_the_same_entity_changes_nothing_here(company: Any, other: Any) -> None:
    await company.put("vendors", V | {"website": "https://ours.example"})
    mine = await company.list("vendors")
    assert await other.put("vendors", V | {"website": "https://theirs.example"}) == ["created"]
    (theirs,) = await other.list("vendors")
    assert theirs["business"]["id"] != mine[0]["business"]["id"]
    assert await company.list("vendors") == mine
    with pytest.raises(Refusal) as refused:
        request = vendors_pb2.GetVendorRequest(vendor_id=mine[0]["entity_id"])
        await other.catalog("GetVendor", request, other.caller)
    assert refused.value.status == 404


async def test_a_renamed_vendor_keeps_its_business_until_a_row_names_another(company: Any) -> None:
    await company.put("vendors", V)
    (before,) = await company.list("vendors")
    assert await company.put("vendors", V | {"name": "The plumbers"}) == ["changed"]
    (renamed,) = await company.list("vendors")
    assert (renamed["name"], renamed["business"]) == ("The plumbers", before["business"])
    assert await company.put("vendors", V | {"name": "The plumbers", "legal_name": "Ace Inc."}) == ["changed"]
    assert (await company.list("vendors"))[0]["business"]["legal_name"] == "Ace Inc."
    # A blank legal_name means the name.
    assert await company.put("vendors", V | {"legal_name": ""}) == ["changed"]
    assert (await company.list("vendors"))[0] == before


async def test_a_website_changes_for_all_vendors_of_the_business(company: Any) -> None:
    shared = {"legal_name": "Ace Inc.", "website": "https://one.example"}
    await company.put("vendors", V | shared, V | shared | {"external_id": "V2"})
    moved = shared | {"website": "https://two.example"}
    assert await company.put("vendors", V | moved) == ["changed"]
    assert {vendor["business"]["website"] for vendor in await company.list("vendors")} == {"https://two.example"}
    assert await company.put("vendors", V | moved, V | moved | {"external_id": "V2"}) == ["unchanged"] * 2


async def test_a_blank_website_clears_it_where_no_other_vendor_names_the_business(company: Any) -> None:
    shared = {"legal_name": "Ace Inc.", "website": "https://one.example"}
    await company.put("vendors", V | shared)
    assert await company.put("vendors", V | shared | {"website": ""}) == ["changed"]
    assert (await company.list("vendors"))[0]["business"]["website"] is None
    await company.put("vendors", V | shared, V | shared | {"external_id": "V2"})
    assert await company.put("vendors", V | shared | {"website": ""}) == ["unchanged"]
    assert {vendor["business"]["website"] for vendor in await company.list("vendors")} == {"https://one.example"}


async def test_rows_that_contradict_each_other_on_a_website_are_rejected(company: Any) -> None:
    rows = [
        V | {"legal_name": "Ace Inc.", "website": "https://one.example"},
        V | {"external_id": "V2", "legal_name": "Ace Inc.", "website": "https://two.example"},
        V | {"external_id": "V3", "legal_name": "Ace Inc.", "website": ""},
        V | {"external_id": "V4", "name": "Bee", "website": "https://two.example"},
    ]
    assert await company.put("vendors", *rows) == ["created", "rejected website", "created", "created"]
    assert [vendor["business"]["website"] for vendor in await company.list("vendors")] == [
        "https://one.example",
        "https://one.example",
        "https://two.example",
    ]


_rows = st.fixed_dictionaries(
    {"external_id": st.sampled_from("ABCD"), "name": st.sampled_from(["Ace", "Bee"])},
    optional={
        "legal_name": st.sampled_from(["Ace", "Bee", "Cee", ""]),
        "website": st.sampled_from(["https://one.example", "https://two.example", ""]),
        "is_active": st.booleans(),
        "retired_at": st.sampled_from(["2020-01-01", ""]),
        "onboarded_at": st.sampled_from(["2019-01-01", ""]),
    },
)


def _unique(row: dict[str, Any]) -> str:
    return str(row["external_id"])


@settings(max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_rows, max_size=4, unique_by=_unique), st.lists(_rows, min_size=1, max_size=4, unique_by=_unique))
async def test_whatever_was_there_the_same_rows_again_change_nothing(
    new_company: Any, earlier: list[dict[str, Any]], rows: list[dict[str, Any]]
) -> None:
    company = new_company()
    await company.put("vendors", *earlier)
    first = await company.put("vendors", *rows)
    after = await company.list("vendors")
    again = await company.put("vendors", *rows)
    assert again == [outcome if outcome.startswith("rejected") else "unchanged" for outcome in first]
    assert await company.list("vendors") == after


# Imports


async def test_a_row_is_created_then_unchanged_then_changed(company: Any, database: Database) -> None:
    assert await company.put("vendors", FULL) == ["created"]
    before = await stored(database, company.id)
    assert await company.put("vendors", FULL) == ["unchanged"]
    assert await stored(database, company.id) == before
    assert await company.put("vendors", FULL | {"rating_count": 13}) == ["changed"]
    (was,), (now,) = before.values(), (await stored(database, company.id)).values()
    assert {name for name in was if was[name] != now[name]} == {"version", "changed_xid", "rating_count"}
    assert now["version"] == 2


async def test_a_blank_cell_clears_a_field_and_a_missing_column_leaves_it(company: Any) -> None:
    await company.put("vendors", FULL)
    (before,) = await company.list("vendors")
    assert await company.put("vendors", {"external_id": "V-1", "name": FULL["name"]}) == ["unchanged"]
    blank = {name: "" for name in FULL if name not in ("external_id", "name")}
    assert await company.put("vendors", FULL | blank) == ["changed"]
    (vendor,) = await company.list("vendors")
    assert (vendor["avg_rating"], vendor["rating_count"], vendor["retired_at"]) == (None, 0, None)
    assert (vendor["is_active"], vendor["property_visibility"]) == (True, "all_properties")
    assert (vendor["last_compliance_state"], vendor["business"]["website"]) == ("unknown", None)
    # A blank does not clear onboarded_at.
    assert vendor["onboarded_at"] == before["onboarded_at"]


async def test_a_retired_vendor_is_inactive_unless_the_row_says_otherwise(company: Any) -> None:
    retired = V | {"retired_at": "2024-01-31"}
    assert await company.put("vendors", retired, retired | {"external_id": "V2", "is_active": True}) == ["created"] * 2
    assert [vendor["is_active"] for vendor in await company.list("vendors")] == [False, True]


LONG = "x" * 201


@pytest.mark.parametrize(
    ("fault", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "  "}, "name"),
        ({"name": LONG}, "name"),
        ({"external_id": ""}, "external_id"),
        ({"external_id": LONG}, "external_id"),
        ({"legal_name": LONG}, "legal_name"),
        ({"legal_name": " "}, "legal_name"),
        ({"website": "x" * 501}, "website"),
        ({"avg_rating": "-0.1"}, "avg_rating"),
        ({"avg_rating": "100.5"}, "avg_rating"),
        ({"avg_rating": "nan"}, "avg_rating"),
        ({"rating_count": "-1"}, "rating_count"),
        ({"rating_count": "1.5"}, "rating_count"),
        ({"rating_count": 2**31}, "rating_count"),
        ({"is_active": "maybe"}, "is_active"),
        ({"property_visibility": "none"}, "property_visibility"),
        ({"onboarded_at": "04.05.2019"}, "onboarded_at"),
        ({"retired_at": "2024-02-30"}, "retired_at"),
        ({"last_compliance_state": "Compliant"}, "last_compliance_state"),
        ({"business": "Ace"}, "business"),
        ({"created_at": "2019-01-01"}, "created_at"),
        ({"source": "import"}, "source"),
    ],
    ids=str,
)
async def test_a_bad_row_is_rejected_by_field_and_its_neighbours_kept(
    company: Any, database: Database, fault: dict[str, Any], field: str
) -> None:
    rows = [V | {"external_id": "before"}, V | fault, V | {"external_id": "after"}]
    assert await company.put("vendors", *rows) == ["created", f"rejected {field}", "created"]
    assert set(await stored(database, company.id)) == {"before", "after"}


async def test_a_dry_run_reports_the_same_and_writes_nothing(company: Any, database: Database) -> None:
    await company.put("vendors", V | {"external_id": "old"}, V | {"external_id": "same"})

    async def everything() -> list[Any]:
        return [
            [
                dict(row)
                for row in await database.rows(Statement(select(*written_columns(table))))
                if row["company_id"] == company.id
            ]
            for table in (vendor, business)
        ]

    rows = [
        V | {"external_id": "new", "legal_name": "New Inc."},
        V | {"external_id": "old", "website": "https://x.example"},
        V | {"external_id": "same", "name": "Other"},
        V | {"external_id": "bad", "is_active": "x"},
    ]
    before = await everything()
    dry = await company.put("vendors", *rows, dry_run=True)
    assert await everything() == before
    assert dry == await company.put("vendors", *rows) == ["created", "changed", "changed", "rejected is_active"]
