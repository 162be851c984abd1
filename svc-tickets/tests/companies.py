"""Companies of a test's own, for sweeps that touch all of a company's records."""

from __future__ import annotations

import datetime
import itertools
import json
import secrets
from dataclasses import dataclass
from typing import Any

from chassis.auth.identity import INTEGRATION, OPERATOR, STAFF, Identity
from chassis.db.database import Database
from chassis.schedule import instants
from makeready.common.v1.documents_pb2 import IMPORT_OUTCOME_REJECTED, ImportRow
from makeready.common.v1.sweeps_pb2 import RunScheduledSweepsRequest
from makeready.events.v1 import events_pb2
from makeready.tickets.v1 import tickets_pb2 as pb
from svc_tickets import tables as t
from svc_tickets.replicas.consumer import put_references
from testkit.outboxes import OutboxRows
from testkit.services import RunningService

_ids = itertools.count(70_000)


@dataclass(frozen=True, slots=True)
class Company:
    """One property with one unit; property and unit have the company's id too."""

    id: int

    @property
    def operator(self) -> Identity:
        return Identity(OPERATOR, "operator", self.id)

    @property
    def staff(self) -> Identity:
        return Identity(STAFF, "gateway", self.id, staff_id=self.id)

    @property
    def caller(self) -> Identity:
        return Identity(INTEGRATION, "gateway", self.id, 1, "write", 3)


async def tell(database: Database, company_id: int, version: int, timezone: str, *, active: bool = True) -> None:
    reference = events_pb2.CompanyReference(
        id=company_id, version=version, name=f"Company {company_id}", active=active, timezone=timezone
    )
    async with database.transaction() as connection:
        await put_references(connection, [events_pb2.References(companies=[reference])])


async def new_company(database: Database, timezone: str = "UTC", *, arrived: bool = True) -> Company:
    """known: whether the company's replica row has arrived."""
    company_id = next(_ids)
    if arrived:
        await tell(database, company_id, 1, timezone)
    references = events_pb2.References(
        properties=[
            events_pb2.PropertyReference(id=company_id, version=1, company_id=company_id, name="Elm", external_id="P")
        ],
        units=[
            events_pb2.UnitReference(
                id=company_id, version=1, company_id=company_id, property_id=company_id, name="1A", external_id="U"
            )
        ],
        assets=[
            events_pb2.AssetReference(
                id=company_id, version=1, company_id=company_id, property_id=company_id, name="Lift", external_id="A"
            )
        ],
        staff=[events_pb2.StaffReference(id=company_id, version=1, company_id=company_id, name="Ada", external_id="S")],
    )
    async with database.transaction() as connection:
        await put_references(connection, [references])
    return Company(company_id)


async def import_tickets(client: Any, company: Company, *rows: dict[str, Any], events: bool = False) -> None:
    """Fills each row except for its external_id, property, title and category."""
    whole = [
        {"external_id": secrets.token_hex(6), "property": "P", "title": "Lift stuck", "category": "Elevator"} | row
        for row in rows
    ]
    sent = [ImportRow(line=n, json=json.dumps(row).encode()) for n, row in enumerate(whole, start=1)]
    request = pb.ImportTicketsRequest(rows=sent, events=events)
    answer = await client("ImportTickets", request, company.operator)
    assert not [result for result in answer.results if result.outcome == IMPORT_OUTCOME_REJECTED], answer


async def import_filed(
    client: Any, database: Database, company: Company, at: datetime.datetime, *rows: dict[str, Any]
) -> None:
    """Imports tickets that were filed at this instant, with events. It may lie in the future, which an import refuses:
    the rows are filed now and moved there, so no real sweep finds them due at any moment."""
    now = instants.now()
    stamps = {"created_at": instants.printed(now), "updated_at": instants.printed(now)}
    await import_tickets(client, company, *(stamps | row for row in rows), events=True)
    moved = ", ".join(f"{name} = {name} + $3" for name in ("created_at", "updated_at", "quiet_since", "stale_due_at"))
    async with database.connection() as connection:
        await connection.raw.execute(
            f"UPDATE ticket SET {moved} WHERE company_id = $1 AND created_at = $2", company.id, now, at - now
        )


async def sweep(service: RunningService, now: Any) -> dict[str, int]:
    """Runs the sweeps as of `now` in all companies."""
    async with service.channel() as channel:
        request = RunScheduledSweepsRequest(yes_for_all_companies=True)
        request.now.FromDatetime(now)
        answer = await service.call(channel, request, Identity(OPERATOR, "operator"))
        return dict(answer.done)


_OUTBOX = OutboxRows(t.outbox)


async def fired(database: Database, company: Company, event: str) -> list[events_pb2.Event]:
    """The company's events with that key, oldest first."""
    rows = await _OUTBOX.containing(database, events_pb2.Event(company_id=company.id))
    subject = f"events.svc-tickets.public.{event}"
    messages = [events_pb2.Event.FromString(row["message"]) for row in rows if row["subject"] == subject]
    return [message for message in messages if message.company_id == company.id]
