"""Events in svc-catalog's outbox and entries in its audit log, of one company, oldest first."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import select

from chassis.db.database import Database
from chassis.db.statements import Statement
from makeready.events.v1.events_pb2 import Event
from svc_catalog import schema

_OUTBOX = Statement(select(schema.outbox.c.subject, schema.outbox.c.message).order_by(schema.outbox.c.event_id))
_AUDIT = Statement(select(schema.audit).order_by(schema.audit.c.id))


async def events(database: Database, company_id: int) -> list[tuple[str, Event]]:
    """Each event with its subject, without the producer."""
    rows = [(row["subject"], Event.FromString(row["message"])) for row in await database.rows(_OUTBOX)]
    return [(subject.split(".", 2)[2], event) for subject, event in rows if event.company_id == company_id]


async def public(database: Database, company_id: int) -> list[tuple[str, dict[str, Any], Any]]:
    """The key, data and change of each public event."""
    published = [event.public for _, event in await events(database, company_id) if event.HasField("public")]
    return [(event.event, json.loads(event.data), json.loads(event.change or b"null")) for event in published]


async def audited(database: Database, company_id: int) -> list[tuple[str, str, str, int, Any, Any, str]]:
    """The actor, action, subject, subject's id, before, after and request of each entry."""
    rows = [row for row in await database.rows(_AUDIT) if row["company_id"] == company_id]
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
