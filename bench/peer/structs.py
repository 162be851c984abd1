"""The bodies of requests and responses of the peers by hand, as structs of msgspec (spec 2.3, 4.2)."""

from __future__ import annotations

import datetime
from typing import Annotated, Any, TypeVar

import msgspec

from peer import settings
from peer.refusals import ApiError
from peer.words import CancellationReason, Category, Priority, Status

LongText = Annotated[str, msgspec.Meta(max_length=20_000)]
Body = TypeVar("Body")


class Named(msgspec.Struct):
    id: int
    name: str
    external_id: str | None


class Assignee(msgspec.Struct):
    id: int
    name: str


class Ticket(msgspec.Struct):
    schema_version: int
    entity_type: str
    entity_id: int
    ticket_number: int | None
    title: str
    description: str | None
    category: str
    subcategory: str | None
    priority: str
    status: str
    property: Named
    unit: Named | None
    unit_number: str | None
    room: str | None
    room_instance: str | None
    permission_to_enter: bool
    preferred_access_time: str | None
    assignee: Assignee | None
    assigned_vendor: Named | None
    photo_url: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime
    completed_at: datetime.datetime | None
    cancelled_at: datetime.datetime | None
    cancellation_reason_code: str | None
    external_id: str | None
    source: str
    url: str


class Page(msgspec.Struct):
    data: list[Ticket]
    next_cursor: str | None
    limit: int


class Creation(msgspec.Struct, forbid_unknown_fields=True):
    unit_id: int
    title: Annotated[str, msgspec.Meta(min_length=1, max_length=150)]
    category: Category
    asset_id: int | None = None
    description: LongText = ""
    priority: Priority = "Medium"


class StatusChange(msgspec.Struct, forbid_unknown_fields=True):
    status: Status
    note: LongText | None = None
    cancellation_reason_code: CancellationReason | None = None
    cancellation_notes: LongText | None = None


class Filters(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The query of GET /tickets; unknown keys are refused."""

    limit: Annotated[int, msgspec.Meta(ge=1)] = 50
    cursor: str | None = None
    property_id: int | None = None
    unit_id: int | None = None
    status: Status | None = None
    updated_since: Annotated[datetime.datetime, msgspec.Meta(tz=True)] | None = None
    ticket_number: int | None = None


encode = msgspec.json.Encoder().encode
creation = msgspec.json.Decoder(Creation).decode
status_change = msgspec.json.Decoder(StatusChange).decode


def invalid(error: msgspec.MsgspecError, *, unknown: int = 400) -> ApiError:
    """The refusal of a body or a query. unknown: its status if the error is a field that there is not."""
    text = str(error)
    if "limit`" in text:
        return ApiError(400, "invalid_limit", "limit must be a positive integer.")
    status = unknown if text.startswith("Object contains unknown field") else 400
    if text.startswith("Invalid enum value") or text.endswith("length <= 150 - at `$.title`"):
        status = 422
    return ApiError(status, "invalid_request", f"{text}.")


def ticket(row: Any) -> Ticket:
    """A row of `statements.TICKET`."""
    (
        entity_id, number, title, description, category, subcategory, priority, status,
        property_id, property_name, property_external_id,
        unit_id, unit_name, unit_external_id, unit_number,
        room, room_instance, permission_to_enter, preferred_access_time,
        assignee_id, assignee_name, vendor_id, vendor_name, vendor_external_id,
        photo_url, created_at, updated_at, completed_at, cancelled_at, reason, external_id, source,
    ) = row[:32]  # fmt: skip
    return Ticket(
        1, "ticket", entity_id, number, title, description, category, subcategory, priority, status,
        Named(property_id, property_name, property_external_id),
        None if unit_id is None else Named(unit_id, unit_name, unit_external_id), unit_number,
        room, room_instance, permission_to_enter, preferred_access_time,
        None if assignee_id is None else Assignee(assignee_id, assignee_name),
        None if vendor_id is None else Named(vendor_id, vendor_name, vendor_external_id),
        photo_url, created_at, updated_at, completed_at, cancelled_at, reason, external_id, source,
        f"{settings.LINKS_URL}/tickets/{entity_id}",
    )  # fmt: skip
