"""How svc-tickets renders a ticket: the public record (spec 2.3), an event's change, the history and the comments."""

from __future__ import annotations

import datetime
from typing import Annotated, Literal, NamedTuple

import msgspec

from chassis.records.bodies import SENSITIVE
from chassis.records.shapes import Link, Nested, Renderer, Shape, encode
from makeready.tickets.v1 import ticket_commands_pb2, tickets_pb2
from svc_tickets import schema
from svc_tickets.tickets import tables as t
from svc_tickets.tickets.rules import fields


class Named(msgspec.Struct, frozen=True, gc=False):
    """Another record, named inside one that belongs to it."""

    id: int
    """The other record's id."""
    name: str
    """The other record's name."""
    external_id: str | None


class Assignee(msgspec.Struct, frozen=True, gc=False):
    """The member of staff who has the work."""

    id: int
    """The person's id."""
    name: Annotated[str, SENSITIVE]
    """The person's name."""


class Ticket(msgspec.Struct, frozen=True, gc=False):
    """A maintenance ticket."""

    schema_version: Literal[1]
    entity_type: Literal["ticket"]
    entity_id: int
    ticket_number: int | None
    """The number that staff and residents see. It is unique within one property only, so filter by property, too."""
    title: Annotated[str, SENSITIVE]
    """The problem, in one line."""
    description: Annotated[str | None, SENSITIVE]
    """The full report."""
    category: fields.Category
    """The trade that the ticket is for."""
    subcategory: str | None
    """A narrower kind of work, in the company's own words."""
    priority: fields.Priority
    """How urgent it is."""
    status: fields.Status
    """The ticket's status. Every status can follow every other one, Completed and Cancelled included."""
    property: Named
    """The property that the ticket belongs to."""
    unit: Named | None
    """The unit that the ticket is tied to; null for work elsewhere on the property."""
    unit_number: str | None
    """The unit number as it was typed when the ticket was opened; it may match no unit on record."""
    room: str | None
    """The room where the work is, for example Kitchen."""
    room_instance: str | None
    """Distinguishes rooms of the same kind, for example 2 for the second bathroom."""
    permission_to_enter: bool
    """Whether the resident allows staff to enter when the home is empty."""
    preferred_access_time: Annotated[str | None, SENSITIVE]
    """When the resident would like the visit, in their own words."""
    assignee: Assignee | None
    """The member of staff to whom the ticket is assigned; null if none is."""
    assigned_vendor: Named | None
    """The vendor to whom the ticket is assigned; null if none is."""
    photo_url: str | None
    """The address of a photo of the problem."""
    created_at: str
    """When the ticket was opened."""
    updated_at: str
    """When the ticket last changed; `updated_since` compares this."""
    completed_at: str | None
    """When it was completed; null unless status is Completed, and for a completed ticket that came in a file without
    the instant."""
    cancelled_at: str | None
    """When it was cancelled; null unless status is Cancelled, and for a cancelled ticket that came in a file without
    the instant."""
    cancellation_reason_code: fields.CancellationReason | None
    """Why it was cancelled; null unless status is Cancelled."""
    external_id: str | None
    source: fields.Source
    """How the ticket was opened: over this API, by staff, by a resident in the portal, from an inspection, or by an
    import."""
    url: str


TICKET = Shape(
    Ticket,
    t.ticket,
    property=Nested(Named, schema.property_),
    unit=Nested(Named, schema.unit, optional=True),
    assignee=Nested(Assignee, schema.staff, optional=True),
    assigned_vendor=Nested(Named, schema.vendor, optional=True),
    url=Link("/tickets/{entity_id}"),
    version=t.ticket.c.version,
)
TicketRenderer = Renderer[Ticket]


class TicketComment(msgspec.Struct, frozen=True, gc=False):
    """A comment on a ticket. It is part of no ticket's record; people see it with the ticket."""

    schema_version: Literal[1]
    entity_type: Literal["ticket_comment"]
    entity_id: int
    ticket_id: int
    """The ticket's id."""
    text: Annotated[str, SENSITIVE]
    """What is said."""
    author: fields.Author
    """Whose words they are."""
    created_at: str


class Change(msgspec.Struct, frozen=True, gc=False):
    """An event's `change` (spec 6.2). `from` is a word of Python's, hence the other name here."""

    field: str
    from_: str | None = msgspec.field(name="from")
    to: str | None


def change(field: str, before: str | None, after: str | None) -> bytes:
    return encode(Change(field, before, after))


class HistoryRow(NamedTuple):
    """An entry of a ticket's history; all columns are null for a ticket without entries."""

    version: int | None
    occurred_at: datetime.datetime
    from_status: str
    to_status: str
    cancellation_reason_code: str | None
    note: str | None
    api_key_id: int | None
    administrator_id: int | None
    actor: str | None
    request_id: str


class CommentRow(NamedTuple):
    """A comment or a photo of a ticket; all columns are null for a ticket without any."""

    id: int | None
    created_at: datetime.datetime
    kind: str
    body: str
    author: str | None
    actor: str | None
    api_key_id: int | None


def _actor_of(row: HistoryRow | CommentRow) -> str:
    """The actor of a back-office change, else the API key; empty for an import."""
    if row.actor is not None:
        return row.actor
    return "" if row.api_key_id is None else f"caller:{row.api_key_id}"


def history_entry(row: HistoryRow) -> tickets_pb2.TicketChange:
    entry = tickets_pb2.TicketChange(
        version=row.version or 0,
        from_status=row.from_status,
        to_status=row.to_status,
        cancellation_reason_code=row.cancellation_reason_code or "",
        note=row.note or "",
        api_key_id=row.api_key_id or 0,
        administrator_id=row.administrator_id or 0,
        request_id=row.request_id,
        actor=_actor_of(row),
    )
    entry.occurred_at.FromDatetime(row.occurred_at)
    return entry


def comment(row: CommentRow) -> ticket_commands_pb2.TicketComment:
    comment_message = ticket_commands_pb2.TicketComment(
        comment_id=row.id or 0, kind=row.kind, body=row.body, author=row.author or "", actor=_actor_of(row)
    )
    comment_message.created_at.FromDatetime(row.created_at)
    return comment_message
