"""The company's ticket policy: who may change it, its audit entry, and its immediate effects."""

from __future__ import annotations

import asyncio
import datetime
import itertools
import time
from typing import Any

import pytest

from chassis.auth.identity import ADMINISTRATOR, OPERATOR, Identity
from chassis.db.database import Database
from makeready.tickets.v1 import tickets_pb2 as pb

from ..tickets.changing import refusal_of
from ..tickets.commands import audited, entry, open_ticket, quiet_of

_companies = itertools.count(60_000)


@pytest.fixture
def company() -> int:
    """A company of the test's own, without records in svc-tickets."""
    return next(_companies)


def administrator_of(company_id: int) -> Identity:
    return Identity(ADMINISTRATOR, "gateway", company_id, administrator_id=5, stepped_up_at=int(time.time()))


async def update(client: Any, who: Identity, **fields: Any) -> tuple[bool, int]:
    kept = await client("UpdateTicketPolicy", pb.UpdateTicketPolicyRequest(**fields), who)
    return kept.photo_required_to_complete, kept.stale_after_hours


async def test_each_setting_changes_alone_and_is_audited_where_it_does(client: Any, company: int) -> None:
    person, operator = administrator_of(company), Identity(OPERATOR, "operator", company)
    assert await update(client, person) == (False, 72)
    assert await update(client, person, stale_after_hours=24) == (False, 24)
    assert await update(client, operator, photo_required_to_complete=True) == (True, 24)
    assert await update(client, person, photo_required_to_complete=True, stale_after_hours=24) == (True, 24)
    assert await audited(client, person, "ticket_policy", company) == [
        entry("administrator:5", "ticket_policy.updated", {"stale_after_hours": 72}, {"stale_after_hours": 24}),
        entry(
            "operator",
            "ticket_policy.updated",
            {"photo_required_to_complete": False},
            {"photo_required_to_complete": True},
        ),
    ]


async def test_the_policy_is_read_without_a_change(client: Any, company: int) -> None:
    person = administrator_of(company)

    async def policy(who: Identity) -> tuple[bool, int]:
        stored = await client("GetTicketPolicy", pb.GetTicketPolicyRequest(), who)
        return stored.photo_required_to_complete, stored.stale_after_hours

    assert await policy(person) == (False, 72)
    await update(client, person, stale_after_hours=5, photo_required_to_complete=True)
    assert await policy(person) == (True, 5)
    assert await policy(administrator_of(next(_companies))) == (False, 72)


async def test_two_who_set_a_first_policy_at_once_lose_nothing(client: Any, company: int) -> None:
    person = administrator_of(company)
    await asyncio.gather(
        update(client, person, stale_after_hours=5), update(client, person, photo_required_to_complete=True)
    )
    assert await update(client, person) == (True, 5)


@pytest.mark.parametrize("hours", [0, -1, 8761])
async def test_a_threshold_out_of_bounds_is_refused(client: Any, company: int, hours: int) -> None:
    refused = await refusal_of(update(client, administrator_of(company), stale_after_hours=hours))
    assert (refused.status, refused.field) == (400, "stale_after_hours") and "1 to 8760" in refused.message
    assert await audited(client, administrator_of(company), "ticket_policy", company) == []


@pytest.mark.usefixtures("places")
async def test_a_new_threshold_counts_for_the_tickets_that_are_open(
    client: Any, staff: Any, administrator: Any, database: Database
) -> None:
    ticket_id = (await open_ticket(client, staff, by="OPENER_RESIDENT"))["entity_id"]
    try:
        await update(client, administrator, stale_after_hours=5)
        quiet_since, due = await quiet_of(database, ticket_id)
        assert due == quiet_since + datetime.timedelta(hours=5)
    finally:
        await update(client, administrator, stale_after_hours=72)
    assert (await quiet_of(database, ticket_id))[1] == quiet_since + datetime.timedelta(hours=72)
