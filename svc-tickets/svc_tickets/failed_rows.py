"""The tickets that failed inspection rows open: one for each row, however often it is told."""

from __future__ import annotations

import datetime
from collections.abc import Callable

from chassis.auth.identity import SERVICE, Call, Identity
from chassis.db.database import Connection
from chassis.messaging.outbox import Outbox
from chassis.writes.audit import Audit
from makeready.events.v1 import events_pb2 as pb
from svc_tickets import queries_desk, records, rules_desk
from svc_tickets import queries_opening as q

PRODUCER = "svc-catalog"


class FailedRows:
    """Opens tickets in the consumer's transaction."""

    def __init__(
        self, outbox: Outbox, audit: Audit, links: records.TicketLinks, clock: Callable[[], datetime.datetime]
    ) -> None:
        self._outbox = outbox
        self._audit = audit
        self._links = links
        self._clock = clock

    async def open(self, connection: Connection, event: pb.Event) -> None:
        """The places that the event names are in the replicas by now."""
        row, company_id = event.inspection_row_failed, event.company_id
        key = {"inspection_id": row.inspection_id, "row_id": row.row_id}
        if await q.ticket_of_row(connection, company_id, **key) is not None:
            return
        title, category, priority = rules_desk.of_failed_row(row.title, row.category, row.priority)
        now = self._clock()
        opened = dict.fromkeys(q.OPENED) | {
            "title": title,
            "description": row.description,
            "category": category,
            "priority": priority,
            "permission_to_enter": False,
            "photo_url": row.photo_url or None,
            "source": "inspection",
        }
        place = {"property_id": row.property_id, "unit_id": row.unit_id, "asset_id": row.asset_id}
        number = await q.take_number(connection, row.property_id)
        ticket_id = await q.open_ticket_of_row(
            connection, company_id=company_id, ticket_number=number, now=now, **key, **opened, **place
        )
        actor = row.actor or PRODUCER
        if row.photo_url:
            await queries_desk.add_comment(
                connection,
                company_id=company_id,
                ticket_id=ticket_id,
                kind=rules_desk.PHOTO,
                body=row.photo_url,
                created_at=now,
                administrator_id=None,
                author=rules_desk.STAFF,
                actor=actor,
            )
        data = records.encode(self._links.ticket(await queries_desk.served(connection, company_id, ticket_id)))
        created = self._outbox.public(
            "ticket.created",
            company_id=company_id,
            entity_id=ticket_id,
            occurred_at=now,
            data=data,
            request_id=event.request_id,
        )
        await self._outbox.add(connection, created)
        # Who failed the row opened the ticket; the audit log names the actor of a call by its issuer.
        call = Call(Identity(SERVICE, actor), event.request_id)
        told = {"source": "inspection", "title": title, "property_id": row.property_id, **key}
        await self._audit.add(connection, call, company_id, "ticket.opened", "ticket", ticket_id, {}, told)
