"""The public shapes: a ticket (spec 2.3), the body that opens one (spec 4.2), a ticket's row in an import."""

from __future__ import annotations

import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from asyncpg import Record

from chassis.records.bodies import LongText, RecordId, Text
from chassis.schedule.instants import printed
from makeready.tickets.v1 import tickets_pb2 as pb
from svc_tickets import rules

encode = msgspec.json.Encoder().encode


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
    name: str
    """The person's name."""


class Ticket(msgspec.Struct, frozen=True, gc=False):
    """A maintenance ticket."""

    schema_version: Literal[1]
    entity_type: Literal["ticket"]
    entity_id: int
    ticket_number: int | None
    """The number that staff and residents see. Unique within one property only, so it finds a ticket together with
    the property."""
    title: str
    """What is the matter, in one line."""
    description: str | None
    """Everything that was reported."""
    category: rules.Category
    """The trade that the ticket is for."""
    subcategory: str | None
    """A narrower kind of work, in the company's own words."""
    priority: rules.Priority
    """How urgent it is."""
    status: rules.Status
    """Where the ticket stands. Every status can follow every other one, also after Completed and Cancelled."""
    property: Named
    """The property that the ticket belongs to."""
    unit: Named | None
    """The unit that the ticket is tied to; null for work elsewhere on the property."""
    unit_number: str | None
    """The unit number that was typed in when the ticket was opened; it may name no unit that is on record."""
    room: str | None
    """The room where the work is, for example Kitchen."""
    room_instance: str | None
    """Tells rooms of the same kind apart, for example 2 for the second bathroom."""
    permission_to_enter: bool
    """Whether the resident allows staff to enter while nobody is at home."""
    preferred_access_time: str | None
    """When the resident would like the visit, in their own words."""
    assignee: Assignee | None
    """The member of staff who has the ticket; null while nobody has."""
    assigned_vendor: Named | None
    """The vendor who has the ticket; null while none has."""
    photo_url: str | None
    """Where a photo of the matter is."""
    created_at: str
    """When the ticket was opened."""
    updated_at: str
    """When the ticket last changed; what `updated_since` looks at."""
    completed_at: str | None
    """When it was completed; null unless status is Completed."""
    cancelled_at: str | None
    """When it was cancelled; null unless status is Cancelled."""
    cancellation_reason_code: rules.CancellationReason | None
    """Why it was cancelled; null unless status is Cancelled."""
    external_id: str | None
    source: rules.Source
    """How the ticket was opened: over this API, by staff, by a resident in the portal, from an inspection, or by an
    import."""
    url: str


class TicketLinks:
    """Renders rows of `queries.TICKET_COLUMNS` with links that start at the given address."""

    def __init__(self, links_url: str) -> None:
        self._prefix = f"{links_url}/tickets/"

    def ticket(self, row: Record | tuple[Any, ...]) -> Ticket:
        # The names are the columns of queries.TICKET_COLUMNS, in their order.
        (
            entity_id,
            _version,
            ticket_number,
            title,
            description,
            category,
            subcategory,
            priority,
            status,
            unit_number,
            room,
            room_instance,
            permission_to_enter,
            preferred_access_time,
            photo_url,
            created_at,
            updated_at,
            completed_at,
            cancelled_at,
            cancellation_reason_code,
            external_id,
            source,
            property_id,
            property_name,
            property_external_id,
            unit_id,
            unit_name,
            unit_external_id,
            assignee_id,
            assignee_name,
            vendor_id,
            vendor_name,
            vendor_external_id,
        ) = row
        created = printed(created_at)
        return Ticket(
            1,
            "ticket",
            entity_id,
            ticket_number,
            title,
            description,
            category,
            subcategory,
            priority,
            status,
            Named(property_id, property_name, property_external_id),
            None if unit_id is None else Named(unit_id, unit_name, unit_external_id),
            unit_number,
            room,
            room_instance,
            permission_to_enter,
            preferred_access_time,
            None if assignee_id is None else Assignee(assignee_id, assignee_name),
            None if vendor_id is None else Named(vendor_id, vendor_name, vendor_external_id),
            photo_url,
            created,
            created if updated_at == created_at else printed(updated_at),
            printed(completed_at),
            printed(cancelled_at),
            cancellation_reason_code,
            external_id,
            source,
            f"{self._prefix}{entity_id}",
        )


class TicketCreate(msgspec.Struct, kw_only=True):
    """A ticket to open. Its status is always Open."""

    refused_keys: ClassVar[dict[str, str]] = {
        "status": "status can't be set when a ticket is created; it is always Open then, so leave it out."
    }

    unit_id: RecordId
    """The unit that the ticket is for; it must be visible to the key."""
    title: Annotated[str, Text(longest=rules.TITLE_POINTS_MAX, over=422, blank=False)]
    """What is the matter, in one line."""
    category: rules.Category
    """The trade that the ticket is for."""
    asset_id: RecordId | None = None
    """The asset that the ticket is about; it must be on the unit's property."""
    description: LongText | None = None
    """Everything there is to tell. Left out: empty."""
    priority: rules.Priority | None = None
    """How urgent it is. Left out: Medium."""


class StatusChange(msgspec.Struct, kw_only=True):
    """The status that a ticket is to have, and what belongs to it."""

    unknown_keys_status: ClassVar[int] = 422

    status: rules.Status
    """The status that the ticket is to have; every status can follow every other one."""
    note: LongText | None = None
    """What was done, in 5 or more words. Needed with status Completed, refused with any other."""
    cancellation_reason_code: rules.CancellationReason | None = None
    """Why the ticket is cancelled. Needed with status Cancelled, refused with any other."""
    cancellation_notes: LongText | None = None
    """Why, in 5 or more words of one's own. Needed with cancellation_reason_code see_notes, refused with any other."""


ShortText = Annotated[str, Text(longest=200)]


class TicketRow(msgspec.Struct, kw_only=True):
    """A ticket's row in an import. property, unit, asset, assignee (a member of staff) and assigned_vendor are the
    external_id of those records."""

    external_id: Annotated[str, Text(longest=200, blank=False)]
    property: ShortText
    title: Annotated[str, Text(longest=rules.TITLE_POINTS_MAX, blank=False)]
    category: rules.Category
    unit: ShortText | None = None
    asset: ShortText | None = None
    description: LongText | None = None
    subcategory: ShortText | None = None
    priority: rules.Priority | None = None
    status: rules.Status | None = None
    unit_number: ShortText | None = None
    room: ShortText | None = None
    room_instance: ShortText | None = None
    permission_to_enter: bool | None = None
    preferred_access_time: ShortText | None = None
    assignee: ShortText | None = None
    assigned_vendor: ShortText | None = None
    photo_url: Annotated[str, Text(longest=2000)] | None = None
    created_at: datetime.datetime | None = None
    updated_at: datetime.datetime | None = None
    completed_at: datetime.datetime | None = None
    cancelled_at: datetime.datetime | None = None
    cancellation_reason_code: rules.CancellationReason | None = None
    source: rules.Source | None = None


class Change(msgspec.Struct, frozen=True, gc=False):
    """An event's `change` (spec 6.2). `from` is a word of Python's, hence the other name here."""

    field: str
    from_: str | None = msgspec.field(name="from")
    to: str | None


def change(field: str, before: str | None, after: str | None) -> bytes:
    return encode(Change(field, before, after))


def actor_of(row: Record) -> str:
    """Who did it, from a row that has `actor` where somebody in the back office did."""
    if row["actor"] is not None:
        return str(row["actor"])
    return "" if row["api_key_id"] is None else f"caller:{row['api_key_id']}"


def told(row: Record) -> pb.TicketChange:
    """An entry of a ticket's history, from a row of `queries_changes.history`."""
    entry = pb.TicketChange(
        version=row["version"],
        from_status=row["from_status"],
        to_status=row["to_status"],
        cancellation_reason_code=row["cancellation_reason_code"] or "",
        note=row["note"] or "",
        api_key_id=row["api_key_id"] or 0,
        administrator_id=row["administrator_id"] or 0,
        request_id=row["request_id"],
        actor=actor_of(row),
    )
    entry.occurred_at.FromDatetime(row["occurred_at"])
    return entry
