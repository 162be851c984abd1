"""A company with places to find, and the people who look for them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from chassis.auth.identity import ADMINISTRATOR, OPERATOR, STAFF, Identity
from chassis.db.database import Database
from makeready.catalog.v1 import meter_search_pb2, place_search_pb2

Ask = Callable[..., Awaitable[Any]]


def people(company_id: int) -> list[Identity]:
    return [
        Identity(OPERATOR, "operator", company_id),
        Identity(ADMINISTRATOR, "gateway", company_id, administrator_id=1),
        Identity(STAFF, "gateway", company_id, staff_id=1),
    ]


def asks(company: Any) -> Ask:
    """Calls an RPC of the lists for people, by default as staff of the company."""

    async def ask(rpc: str, who: Identity | None = None, **fields: Any) -> Any:
        contract = place_search_pb2 if hasattr(place_search_pb2, f"{rpc}Request") else meter_search_pb2
        request = getattr(contract, f"{rpc}Request")(**fields)
        return await company.catalog(rpc, request, who or people(company.id)[2])

    return ask


@pytest.fixture
def ask(company: Any) -> Ask:
    return asks(company)


async def set_statuses(database: Database, company_id: int, statuses: dict[str, str | None]) -> None:
    """Sets the replica of units' statuses, by the unit's external_id."""
    async with database.connection() as connection:
        for external_id, status in statuses.items():
            await connection.raw.execute(
                "UPDATE unit SET unit_status = $3 WHERE company_id = $1 AND external_id = $2",
                company_id,
                external_id,
                status,
            )
