"""Changes of a company's ticket policy."""

from __future__ import annotations

import datetime
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from chassis.auth.identity import Call, company_id
from chassis.db.database import Connection, Database
from chassis.refusals import invalid_request
from chassis.writes.commands import CommandRunner
from svc_tickets.policy import queries as q
from svc_tickets.policy import rules

NewThreshold = Callable[[Connection, int, int, int, datetime.datetime], Awaitable[None]]


def check_threshold(hours: int) -> None:
    if not 1 <= hours <= rules.STALE_AFTER_HOURS_MAX:
        raise invalid_request(
            f"stale_after_hours must be from 1 to {rules.STALE_AFTER_HOURS_MAX}.", "stale_after_hours"
        )


async def update(
    database: Database, commands: CommandRunner, call: Call, changes: Mapping[str, Any], new_threshold: NewThreshold
) -> q.Policy:
    """Stores changes to the columns of `queries.Policy`, audited if they change anything; returns the whole policy.

    The same changes again have no effect, so they need no key. new_threshold: called in the transaction if the hours
    change, with the company's id, the old and the new hours, and its present instant. Raises
    Refusal 400 if the hours are out of bounds.
    """
    check_threshold(changes.get("stale_after_hours", 1))
    company = company_id(call)
    async with database.transaction() as connection:
        before = await q.policy_for_update(connection, company)
        after = before._replace(**changes)
        if after != before:
            await q.save_policy(connection, company, after)
            if after.stale_after_hours != before.stale_after_hours:
                now = await commands.clocks.now(call, connection)
                await new_threshold(connection, company, before.stale_after_hours, after.stale_after_hours, now)
            await commands.audit.add(
                connection,
                call,
                company,
                "ticket_policy.updated",
                "ticket_policy",
                company,
                before._asdict(),
                after._asdict(),
            )
    return after
