"""A company's ticket policy: what it asks for before a ticket is completed, and when one counts as stale."""

from __future__ import annotations

from typing import Any

from chassis.auth.identity import Call, company_id
from chassis.db.database import Database
from chassis.refusals import invalid_request
from chassis.writes.commands import CommandRunner
from svc_tickets import queries_policy as q
from svc_tickets import queries_quiet

HOURS_MAX = 8760


async def update(database: Database, commands: CommandRunner, call: Call, changes: dict[str, Any]) -> dict[str, Any]:
    """Stores the changes of `queries_policy.POLICY`, audited where they change anything; returns the whole policy.

    The same changes again change nothing, so they need no key. Raises Refusal 400 for a number of hours out of bounds.
    """
    if not 1 <= changes.get("stale_after_hours", 1) <= HOURS_MAX:
        raise invalid_request(f"stale_after_hours must be from 1 to {HOURS_MAX}.", "stale_after_hours")
    company = company_id(call)
    async with database.transaction() as connection:
        before = dict(await q.policy_for_update(connection, company))
        after = before | changes
        if after != before:
            await q.save_policy(connection, company, **after)
            if after["stale_after_hours"] != before["stale_after_hours"]:
                await queries_quiet.reckon_anew(connection, company, after["stale_after_hours"])
            await commands.audit.add(
                connection, call, company, "ticket_policy.updated", "ticket_policy", company, before, after
            )
    return after
