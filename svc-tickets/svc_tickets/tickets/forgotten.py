"""Removes the texts of tickets that say something of a person who was forgotten, however often the event arrives."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from asyncpg import Record

from chassis.auth.identity import SERVICE, Call, Identity
from chassis.db.database import Connection, Database
from chassis.schedule import instants
from chassis.schedule.clocks import CompanyClocks
from chassis.writes.audit import Audit
from makeready.events.v1 import events_pb2 as pb
from svc_tickets.tickets.queries import texts as queries
from svc_tickets.tickets.rules import texts

PRODUCER = "svc-occupancy"


class ForgottenPeople:
    """Removes texts in the consumer's transaction."""

    def __init__(self, audit: Audit, clocks: CompanyClocks) -> None:
        self._audit, self._clocks = audit, clocks

    async def remove(self, connection: Connection, event: pb.Event) -> None:
        """No public event fires: neither a ticket's status nor anything else that events report changes."""
        forgotten, company_id = event.person_forgotten, event.company_id
        # The administrator removed them. The audit log takes the actor of a call from its issuer.
        call = Call(Identity(SERVICE, forgotten.actor or PRODUCER), event.request_id)
        # In the order of ids, as all who lock several tickets.
        for ticket_id, marked in texts.marked(forgotten.ticket_texts).items():
            ticket = await queries.locked(connection, company_id, forgotten.unit_id, ticket_id)
            if ticket is None:
                continue
            values = texts.removal(dict(ticket), marked.fields)
            comments = await queries.remove_comments(connection, company_id, ticket_id, sorted(marked.comment_ids))
            if not (values or comments):
                continue
            # Also for comments alone: the search compares versions, so it forgets their words even if this process ends
            # before it has made the ticket's row anew.
            at = instants.after(self._clocks.ahead_by(ticket["clock_offset"])(), ticket["updated_at"])
            await queries.save(connection, company_id, ticket, values, at)
            after = {"texts_removed": texts.in_words(values, len(comments))}
            await self._audit.add(connection, call, company_id, queries.REMOVED_ACTION, "ticket", ticket_id, {}, after)
        await queries.remove_undone(connection, company_id, forgotten.unit_id)


async def removed_texts(
    database: Database, company_id: int, entries: Sequence[Record]
) -> Mapping[int, Collection[str]]:
    """The texts that entries of the audit log quote and that were removed from their tickets since: see `Removed`."""
    quoting = [entry for entry in entries if entry["subject"] == "ticket" and _quotes(entry)]
    if not quoting:
        return {}
    removals = await queries.removals(database, company_id, list({entry["subject_id"] for entry in quoting}))
    return {
        entry["id"]: texts.FIELDS.keys()
        for entry in quoting
        if texts.is_removed(entry["recorded_at"], removals.get(entry["subject_id"]))
    }


def _quotes(entry: Record) -> bool:
    return any(f'"{name}"' in entry[side] for name in texts.FIELDS for side in ("before", "after"))
