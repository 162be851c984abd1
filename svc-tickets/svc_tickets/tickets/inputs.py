"""Request bodies and import rows of tickets (spec 4.2)."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from chassis.records.bodies import SENSITIVE, LongText, PastInstant, PersonalText, RecordId, Text
from svc_tickets.tickets.rules import fields

ShortText = Annotated[str, Text(longest=200)]
PhotoUrl = Annotated[str, Text(longest=2000, blank=False)]


class TicketCreate(msgspec.Struct, kw_only=True):
    """A ticket to open. Its status is always Open."""

    refused_keys: ClassVar[dict[str, str]] = {
        "status": "status can't be set when a ticket is created; it is always Open then, so leave it out."
    }

    unit_id: RecordId
    """The unit that the ticket is for; it must be visible to the key."""
    title: Annotated[str, Text(longest=fields.TITLE_POINTS_MAX, over=422, blank=False), SENSITIVE]
    """The problem, in one line."""
    category: fields.Category
    """The trade that the ticket is for."""
    asset_id: RecordId | None = None
    """The asset that the ticket is about; it must be on the unit's property."""
    description: PersonalText | None = None
    """The full report; empty if left out."""
    priority: fields.Priority | None = None
    """How urgent it is; Medium if left out."""


class StatusChange(msgspec.Struct, kw_only=True):
    """The new status of a ticket, and the fields that belong to it."""

    unknown_keys_status: ClassVar[int] = 422

    status: fields.Status
    """The ticket's new status; every status can follow every other one."""
    note: PersonalText | None = None
    """The work done, in 5 or more words. Required with status Completed, refused with any other."""
    cancellation_reason_code: fields.CancellationReason | None = None
    """Why the ticket is cancelled. Required with status Cancelled, refused with any other."""
    cancellation_notes: PersonalText | None = None
    """The reason in 5 or more words. Required with cancellation_reason_code see_notes, refused with any other."""


class PhotoCreate(msgspec.Struct, kw_only=True):
    """A photo to add to a ticket."""

    photo_url: PhotoUrl
    """The photo's address: an absolute http or https URL of at most 2,000 characters. The photo is not fetched, so it
    must stay there for as long as the ticket is to show it."""


class TicketRow(msgspec.Struct, kw_only=True):
    """A ticket's row in an import. property, unit, asset, assignee (a member of staff) and assigned_vendor are the
    external_id of those records."""

    external_id: Annotated[str, Text(longest=200, blank=False)]
    property: ShortText
    title: Annotated[str, Text(longest=fields.TITLE_POINTS_MAX, blank=False)]
    category: fields.Category
    unit: ShortText | None = None
    asset: ShortText | None = None
    description: LongText | None = None
    subcategory: ShortText | None = None
    priority: fields.Priority | None = None
    status: fields.Status | None = None
    unit_number: ShortText | None = None
    room: ShortText | None = None
    room_instance: ShortText | None = None
    permission_to_enter: bool | None = None
    preferred_access_time: ShortText | None = None
    assignee: ShortText | None = None
    assigned_vendor: ShortText | None = None
    photo_url: Annotated[str, Text(longest=2000)] | None = None
    created_at: PastInstant | None = None
    updated_at: PastInstant | None = None
    completed_at: PastInstant | None = None
    cancelled_at: PastInstant | None = None
    cancellation_reason_code: fields.CancellationReason | None = None
    source: fields.Source | None = None


class TicketOpening(msgspec.Struct, kw_only=True):
    """A ticket to open; as in `TicketCreate`, but of a property, with a unit or without."""

    property_id: RecordId
    title: Annotated[str, Text(longest=fields.TITLE_POINTS_MAX, over=422, blank=False)]
    category: fields.Category
    unit_id: RecordId | None = None
    asset_id: RecordId | None = None
    subcategory: ShortText | None = None
    priority: fields.Priority | None = None
    description: LongText | None = None
    room: ShortText | None = None
    room_instance: ShortText | None = None
    permission_to_enter: bool | None = None
    preferred_access_time: ShortText | None = None
    photo_url: PhotoUrl | None = None


# The texts of a ticket that people may leave empty.
CLEARABLE_TEXTS = ("description", "subcategory", "room", "room_instance", "preferred_access_time")


class Assignment(msgspec.Struct, kw_only=True):
    """Who has the work: a member of staff, a vendor, both or nobody."""

    assignee_id: RecordId | None = None
    """The member of staff; nobody if left out."""
    vendor_id: RecordId | None = None
    """The vendor; none if left out. A vendor on hold gets no new work."""


class Comment(msgspec.Struct, kw_only=True):
    """A comment to add."""

    body: Annotated[str, Text(blank=False)]


class CommentCreate(msgspec.Struct, kw_only=True):
    """A comment to add to a ticket."""

    text: Annotated[str, Text(blank=False), SENSITIVE]
    """What is said."""
    author: fields.Author | None = None
    """Whose words they are; those of staff if left out."""


class Photo(msgspec.Struct, kw_only=True):
    """A photo to add."""

    photo_url: PhotoUrl
