"""The statements of reports: tickets with what happened to them, and the names of groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from asyncpg import Record
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.db.database import Connection
from chassis.db.statements import Statement, param, sql
from chassis.reports.facts import RecordFacts
from chassis.reports.keeping import FactSource
from chassis.schedule.instants import zone_of
from svc_tickets import schema
from svc_tickets.reports import facts
from svc_tickets.tickets import tables as t

_IDS = ARRAY(sa.BigInteger)
_ticket, _comment = t.ticket.c, t.ticket_comment.c
_last_comment = (
    sa.select(sa.func.max(_comment.id))
    .where(_comment.company_id == _ticket.company_id, _comment.ticket_id == _ticket.id)
    .scalar_subquery()
)
# A comment does not change the ticket's version.
_STATE = sa.func.concat_ws(sa.literal_column("' '"), _ticket.version, _last_comment)
RECORDS = sa.select(_ticket.company_id, _ticket.id, _STATE.label("state"))
# The audit log alone says when a vendor got the ticket.
READ = Statement(
    sql(
        """
SELECT ticket.id, concat_ws(' ', ticket.version, spoken.last_comment) AS state,
    ticket.property_id, ticket.category, ticket.priority, ticket.source, ticket.resident_asked, ticket.status,
    ticket.assignee_id, ticket.vendor_id, ticket.created_at, ticket.completed_at, ticket.cancelled_at,
    coalesce(history.changed_at, '{}') AS changed_at,
    coalesce(history.from_statuses, '{}') AS from_statuses,
    coalesce(history.to_statuses, '{}') AS to_statuses,
    spoken.responded_at, assignment.assigned_at, answer.vendor_responded_at
FROM ticket
CROSS JOIN LATERAL (
    SELECT array_agg(occurred_at ORDER BY version) AS changed_at,
        array_agg(from_status ORDER BY version) AS from_statuses,
        array_agg(to_status ORDER BY version) AS to_statuses
    FROM ticket_status_change AS change
    WHERE change.company_id = ticket.company_id AND change.ticket_id = ticket.id
) AS history
CROSS JOIN LATERAL (
    SELECT max(comment.id) AS last_comment,
        min(comment.created_at) FILTER (WHERE comment.author IN ('staff', 'vendor')) AS responded_at
    FROM ticket_comment AS comment
    WHERE comment.company_id = ticket.company_id AND comment.ticket_id = ticket.id
) AS spoken
LEFT JOIN LATERAL (
    SELECT max(entry.recorded_at) AS assigned_at
    FROM audit AS entry
    WHERE entry.company_id = ticket.company_id AND entry.subject = 'ticket' AND entry.subject_id = ticket.id
        AND entry.after ->> 'vendor_id' = ticket.vendor_id::text
) AS assignment ON ticket.vendor_id IS NOT NULL
LEFT JOIN LATERAL (
    SELECT min(comment.created_at) AS vendor_responded_at
    FROM ticket_comment AS comment
    WHERE comment.company_id = ticket.company_id AND comment.ticket_id = ticket.id AND comment.author = 'vendor'
        AND comment.created_at >= coalesce(assignment.assigned_at, ticket.created_at)
) AS answer ON ticket.vendor_id IS NOT NULL
WHERE ticket.company_id = :company_id AND ticket.id = ANY (:ids)
""",
        company_id=sa.BigInteger,
        ids=_IDS,
    )
)


def facts_of(row: Record, timezone: str) -> list[RecordFacts]:
    """The facts of a row of `READ`."""
    return facts.facts_of(facts.TicketHistory(*row), zone_of(timezone))


SOURCE = FactSource(
    kind="ticket",
    company=schema.company,
    records=RECORDS,
    read=READ,
    facts_of=facts_of,
    definitions=facts.DEFINITIONS,
)


def _names(table: sa.Table) -> Statement:
    of_company = table.c.company_id == param("company_id", sa.BigInteger)
    return Statement(
        sa.select(table.c.id, table.c.name).where(of_company, table.c.id == sa.func.any(param("ids", _IDS)))
    )


_NAMES = {
    "assignee": _names(schema.staff),
    "vendor": _names(schema.vendor),
    "property": _names(schema.property_),
}


async def names(connection: Connection, company_id: int, dimension: str, ids: Sequence[int]) -> Mapping[int, str]:
    """The names of the company's assignees, vendors or properties, by id."""
    rows = await connection.rows(_NAMES[dimension], company_id=company_id, ids=list(ids))
    return {row["id"]: row["name"] for row in rows}
