"""An interrupted import that runs again ends like one that ran once, except for ids and times."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from svc_catalog.inspections import rules
from svc_catalog.vendors import rules as vendors_rules
from testkit.examples import examples

pytestmark = pytest.mark.chaos

_PLACES = [("P1", None), ("P1", "U1"), ("P2", None), ("P2", "U2"), ("P2", "U1"), ("P3", None)]
_WALKS = [("operations", None), ("consulting_walk", "Audit"), ("acceptance_walk", None), (None, "Audit")]
_inspections = st.lists(
    st.builds(
        lambda place, walk, status, number: {
            "property": place[0],
            "unit": place[1],
            "kind": walk[0],
            "engagement": walk[1],
            "status": status,
            "inspection_number": number,
        },
        st.sampled_from(_PLACES),
        st.sampled_from(_WALKS),
        st.sampled_from(rules.STORED_STATUSES),
        st.sampled_from([None, None, None, 2, 5]),
    ),
    min_size=1,
    max_size=12,
)
_vendors = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["Ace", "Bee", ""])},
        optional={
            "legal_name": st.sampled_from(["Ace", "Bee", "Cee", ""]),
            "website": st.sampled_from(["https://one.example", "https://two.example", ""]),
            "retired_at": st.sampled_from(["2020-01-01", ""]),
            "last_compliance_state": st.sampled_from([*vendors_rules.COMPLIANCE_STATES, ""]),
        },
    ),
    min_size=1,
    max_size=12,
)
_cuts = {"size": st.integers(1, 5), "done": st.integers(0, 6)}


async def import_batches(company: Any, kind: str, rows: list[dict[str, Any]], size: int, batches: int) -> list[str]:
    """The outcomes of the rows in the first batches."""
    outcomes = []
    for first in range(0, min(len(rows), batches * size), size):
        outcomes += await company.put(kind, *rows[first : first + size])
    return outcomes


def without_ids_and_times(record: Any) -> Any:
    if not isinstance(record, dict):
        return record
    gone = {"id", "entity_id", "url", "created_at", "onboarded_at"}
    return {name: without_ids_and_times(value) for name, value in record.items() if name not in gone}


async def check(companies: list[Any], kind: str, rows: list[dict[str, Any]], size: int, done: int) -> None:
    """rows: those of a file, in order. size: of a batch. done: how many batches the first attempt completes."""
    file = [row | {"external_id": f"X{number}"} for number, row in enumerate(rows)]
    once, twice = companies
    whole = await import_batches(once, kind, file, size, len(file))
    await import_batches(twice, kind, file, size, done)
    again = await import_batches(twice, kind, file, size, len(file))
    rejected = [outcome.startswith("rejected") for outcome in whole]
    assert [outcome.startswith("rejected") for outcome in again] == rejected
    records = [[without_ids_and_times(record) for record in await company.list(kind)] for company in companies]
    assert records[0] == records[1]


@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=_inspections, **_cuts)
async def test_inspections(new_company: Any, rows: list[dict[str, Any]], size: int, done: int) -> None:
    companies = [new_company(), new_company()]
    for company in companies:
        await company.put("properties", *({"external_id": p, "name": p, "address": "A"} for p in ("P1", "P2")))
        units = {"U1": "P1", "U2": "P2"}
        await company.put("units", *({"external_id": u, "property": p, "name": u} for u, p in units.items()))
    await check(companies, "inspections", rows, size, done)


@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=_vendors, **_cuts)
async def test_vendors(new_company: Any, rows: list[dict[str, Any]], size: int, done: int) -> None:
    await check([new_company(), new_company()], "vendors", rows, size, done)
