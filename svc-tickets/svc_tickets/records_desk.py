"""What requests of the back office hold, and what it is told of comments."""

from __future__ import annotations

from typing import Annotated

import msgspec
from asyncpg import Record

from chassis.records.bodies import LongText, RecordId, Text
from makeready.tickets.v1 import ticket_commands_pb2 as pb
from svc_tickets import rules
from svc_tickets.records import ShortText, actor_of

PhotoUrl = Annotated[str, Text(longest=2000, blank=False)]


class TicketOpening(msgspec.Struct, kw_only=True):
    """A ticket to open; as in `records.TicketCreate`, but of a property, with a unit or without."""

    property_id: RecordId
    title: Annotated[str, Text(longest=rules.TITLE_POINTS_MAX, over=422, blank=False)]
    category: rules.Category
    unit_id: RecordId | None = None
    asset_id: RecordId | None = None
    subcategory: ShortText | None = None
    priority: rules.Priority | None = None
    description: LongText | None = None
    room: ShortText | None = None
    room_instance: ShortText | None = None
    permission_to_enter: bool | None = None
    preferred_access_time: ShortText | None = None
    photo_url: PhotoUrl | None = None


class Assignment(msgspec.Struct, kw_only=True):
    """Who is to have a ticket; what is not given stays."""

    assignee_id: RecordId | None = None
    vendor_id: RecordId | None = None


class Comment(msgspec.Struct, kw_only=True):
    """A comment to add."""

    body: Annotated[str, Text(blank=False)]


class Photo(msgspec.Struct, kw_only=True):
    """A photo to add."""

    photo_url: PhotoUrl


def told(row: Record) -> pb.TicketComment:
    """From a row of `queries_desk.comments`."""
    comment = pb.TicketComment(
        comment_id=row["id"], kind=row["kind"], body=row["body"], author=row["author"] or "", actor=actor_of(row)
    )
    comment.created_at.FromDatetime(row["created_at"])
    return comment
