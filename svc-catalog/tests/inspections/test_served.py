"""Which inspections are served (spec 2.9), with every filter; a page reads no other inspections."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from makeready.catalog.v1 import inspections_pb2 as pb
from svc_catalog.inspections import queries, rules
from svc_catalog.inspections.tables import inspection
from testkit.plans import page_plan, rows_looked_at

I = {"external_id": "I1", "property": "P1"}  # noqa: E741 - beside P, U and A of the other kinds


async def fetch(company: Any, inspection_id: int) -> Any:
    request = pb.GetInspectionRequest(inspection_id=inspection_id)
    return (await company.catalog("GetInspection", request, company.caller)).document


KINDS = [("operations", None), *itertools.product(("consulting_walk", "acceptance_walk"), (None, "Audit 2026"))]


@pytest.mark.parametrize(("kind", "engagement"), KINDS)
async def test_operations_and_standalone_acceptance_walks_are_served_and_no_other(
    company: Any, elm: Any, database: Database, kind: str, engagement: str | None
) -> None:
    row = I | {"kind": kind, "engagement": engagement}
    assert await company.put("inspections", row, I | {"external_id": "I2"}) == ["created"] * 2
    expected = ["I1", "I2"] if (kind, engagement) in (("operations", None), ("acceptance_walk", None)) else ["I2"]
    assert [served["external_id"] for served in await company.list("inspections")] == expected
    rows = await database.rows(Statement(select(inspection.c.id, inspection.c.external_id, inspection.c.company_id)))
    (inspection_id,) = (row["id"] for row in rows if (row["company_id"], row["external_id"]) == (company.id, "I1"))
    if "I1" in expected:
        assert json.loads((await fetch(company, inspection_id)).json)["external_id"] == "I1"
    else:
        with pytest.raises(Refusal) as refused:
            await fetch(company, inspection_id)
        with pytest.raises(Refusal) as unknown:
            await fetch(company, 2**62)
        assert vars(refused.value) == vars(unknown.value)


_inspections = st.lists(
    st.tuples(
        st.sampled_from(KINDS),
        st.sampled_from(rules.STORED_STATUSES),
        st.sampled_from([("P1", None), ("P1", "U1"), ("P1", "U2"), ("P2", None), ("P2", "U3")]),
    ),
    max_size=12,
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ours=_inspections, theirs=_inspections, limit=st.integers(1, 7))
async def test_every_filter_shows_what_the_rule_says_of_the_companys_own(
    new_company: Any, ours: list[Any], theirs: list[Any], limit: int
) -> None:
    mine, other = new_company(), new_company()
    rows = [
        {
            "external_id": f"I{number}",
            "kind": kind,
            "engagement": engagement,
            "status": status,
            "property": place,
            "unit": unit,
        }
        for number, ((kind, engagement), status, (place, unit)) in enumerate(ours)
    ]
    for company in (mine, other):
        await company.put("properties", *({"external_id": p, "name": p, "address": "A"} for p in ("P1", "P2")))
        places = {"U1": "P1", "U2": "P1", "U3": "P2"}
        await company.put("units", *({"external_id": u, "property": p, "name": u} for u, p in places.items()))
        if company is other:
            their_rows = [
                {"kind": k, "engagement": e, "status": s, "property": p, "unit": u} for (k, e), s, (p, u) in theirs
            ]
            await company.put("inspections", *(row | {"external_id": f"T{n}"} for n, row in enumerate(their_rows)))
        else:
            assert await company.put("inspections", *rows) == ["created"] * len(rows)
    of_mine = {kind: await mine.by_external_id(kind) for kind in ("properties", "units")}
    of_other = {kind: await other.by_external_id(kind) for kind in ("properties", "units")}
    properties = {None: None, **{record["entity_id"]: name for name, record in of_mine["properties"].items()}}
    properties |= {of_other["properties"]["P1"]["entity_id"]: "nobody's"}
    units = {None: None, **{record["entity_id"]: name for name, record in of_mine["units"].items()}}
    units |= {of_other["units"]["U1"]["entity_id"]: "nobody's"}
    for property_id, unit_id, status in itertools.product(properties, units, (None, 1, 2, 3)):
        filters = {"property_id": property_id, "unit_id": unit_id, "status": status}
        given_ones = {name: value for name, value in filters.items() if value is not None}
        expected = [
            row["external_id"]
            for row in rows
            if rules.is_served(str(row["kind"]), row["engagement"])
            and properties[property_id] in (None, row["property"])
            and units[unit_id] in (None, row["unit"])
            and (status is None or rules.published_status(str(row["status"])) == rules.INSPECTION_STATUSES[status - 1])
        ]
        assert await walked(mine, limit, **given_ones) == expected


async def walked(company: Any, limit: int, **filters: Any) -> list[str]:
    """The external ids of all pages."""
    seen: list[str] = []
    after: int | None = 0
    while after is not None:
        page = await company.page("inspections", after, limit, **filters)
        page_records = json.loads(page.data)
        assert len(page_records) <= limit
        seen += [record["external_id"] for record in page_records]
        after = page.next_after_id if page.HasField("next_after_id") else None
    return seen


# Plans


@pytest.fixture(scope="module")
async def crowd(alone: Any) -> tuple[int, int]:
    """A company with 60 served inspections behind 20,000 that are not served, between those of a large company.

    Returns its id and that of its only property, which is also its only unit's id.
    """
    small, big = 7_300_000_000_001, 7_300_000_000_002
    async with alone.database.connection() as connection:
        places = {}
        for company_id, many in ((big, 4000), (small, 1)):
            ids = "SELECT nextval('location_id') AS id FROM generate_series(1, $2)"
            places[company_id] = await connection.raw.fetchval(
                f"WITH ids AS ({ids}), houses AS (INSERT INTO property (id, company_id, name, address, created_at,"
                " source) SELECT id, $1, 'x', 'y', now(), 'import' FROM ids), units AS (INSERT INTO unit (id,"
                " company_id, property_id, name, created_at, source) SELECT id, $1, id, 'x', now(), 'import' FROM ids),"
                # Different from the gateway's ids: other tests in this database may use the small ones.
                " staff AS (INSERT INTO staff (id, company_id) SELECT $1 * 100000 + id, $1 FROM ids)"
                " SELECT max(id) FROM ids",
                company_id,
                many,
            )
        for company_id, many, kind in (
            (big, 4000, "operations"),
            (small, 20_000, "consulting_walk"),
            (small, 60, "acceptance_walk"),
            (big, 4000, "operations"),
        ):
            await connection.raw.execute(
                "INSERT INTO inspection (company_id, property_id, unit_id, status, is_compliance_inspection, kind,"
                " created_at, source) SELECT $1, $2, $2, ($5::text[])[1 + i % 4], false, $4, now(), 'import'"
                " FROM generate_series(1, $3) i",
                company_id,
                places[company_id],
                many,
                kind,
                list(rules.STORED_STATUSES),
            )
        await connection.raw.execute("ANALYZE")
    return small, places[small]


PLANS = {
    "all": ("inspection_page", []),
    "of a property": ("inspection_page_of_property", ["property_id"]),
    "of a unit": ("inspection_page_of_unit", ["unit_id"]),
    "by status": ("inspection_page_of_status", ["status"]),
    "of a property by status": ("inspection_page_of_property_and_status", ["property_id", "status"]),
}


@pytest.mark.parametrize("kind", PLANS)
async def test_a_page_is_read_from_its_index_and_looks_at_nothing_that_is_not_served(
    alone: Any, crowd: tuple[int, int], kind: str
) -> None:
    index, names = PLANS[kind]
    company_id, place = crowd
    given_ones = {"property_id": place, "unit_id": place, "status": "Completed"}
    plan = await page_plan(
        alone.database,
        queries.INSPECTIONS_PAGE,
        company_id,
        50,
        **{name: given_ones[name] for name in names},
    )
    (scan,) = (node for node in plan if node.get("Relation Name") == "inspection")
    assert scan.get("Index Name") == index
    assert max(map(rows_looked_at, plan)) <= 60, json.dumps(plan[0], indent=1)
    assert not [node for node in plan if node["Node Type"] in ("Sort", "Hash Join")], json.dumps(plan[0], indent=1)
