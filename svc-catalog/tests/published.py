"""Events in svc-catalog's outbox and entries in its audit log, of one company, oldest first."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import BigInteger, select

from chassis.db.database import Database
from chassis.db.statements import Statement, param
from makeready.events.v1.events_pb2 import Event
from svc_catalog import schema
from testkit.outboxes import OutboxRows

_OUTBOX = OutboxRows(schema.outbox)
_AUDIT = Statement(
    select(schema.audit).where(schema.audit.c.company_id == param("company_id", BigInteger)).order_by(schema.audit.c.id)
)


async def events(database: Database, company_id: int) -> list[tuple[str, Event]]:
    """Each event with its subject, without the producer."""
    rows = await _OUTBOX.containing(database, Event(company_id=company_id))
    parsed = [(row["subject"], Event.FromString(row["message"])) for row in rows]
    return [(subject.split(".", 2)[2], event) for subject, event in parsed if event.company_id == company_id]


async def public(database: Database, company_id: int) -> list[tuple[str, dict[str, Any], Any]]:
    """The key, data and change of each public event."""
    published = [event.public for _, event in await events(database, company_id) if event.HasField("public")]
    return [(event.event, json.loads(event.data), json.loads(event.change or b"null")) for event in published]


async def audited(database: Database, company_id: int) -> list[tuple[str, str, str, int, Any, Any, str]]:
    """The actor, action, subject, subject's id, before, after and request of each entry."""
    rows = await database.rows(_AUDIT, company_id=company_id)
    return [
        (
            row["actor"],
            row["action"],
            row["subject"],
            row["subject_id"],
            json.loads(row["before"]),
            json.loads(row["after"]),
            row["request_id"],
        )
        for row in rows
    ]
