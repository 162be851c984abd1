"""The bodies of requests and responses (spec 2.3, 4.2)."""

from __future__ import annotations

import datetime
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from peer.words import CancellationReason, Category, Priority, Status

LongText = Annotated[str, StringConstraints(max_length=20_000)]


class Out(BaseModel):
    model_config = ConfigDict(from_attributes=True, validate_by_name=True)


class NamedOut(Out):
    id: int
    name: str
    external_id: str | None


class AssigneeOut(Out):
    id: int
    name: str


class TicketOut(Out):
    schema_version: int = 1
    entity_type: str = "ticket"
    entity_id: int = Field(validation_alias="id")
    ticket_number: int | None
    title: str
    description: str | None
    category: str
    subcategory: str | None
    priority: str
    status: str
    property: NamedOut
    unit: NamedOut | None
    unit_number: str | None
    room: str | None
    room_instance: str | None
    permission_to_enter: bool
    preferred_access_time: str | None
    assignee: AssigneeOut | None
    assigned_vendor: NamedOut | None
    photo_url: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime
    completed_at: datetime.datetime | None
    cancelled_at: datetime.datetime | None
    cancellation_reason_code: str | None
    external_id: str | None
    source: str
    url: str


class TicketPage(BaseModel):
    data: list[TicketOut]
    next_cursor: str | None
    limit: int


class TicketFilters(BaseModel):
    """The query of GET /tickets; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid")

    limit: int = Field(50, ge=1)
    cursor: str | None = None
    property_id: int | None = None
    unit_id: int | None = None
    status: Status | None = None
    updated_since: AwareDatetime | None = None
    ticket_number: int | None = None


class TicketCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    unit_id: int
    title: Annotated[str, StringConstraints(min_length=1, max_length=150)]
    category: Category
    asset_id: int | None = None
    description: LongText = ""
    priority: Priority = "Medium"


class TicketChange(BaseModel):
    model_config = ConfigDict(extra="forbid")

    status: Status
    note: LongText | None = None
    cancellation_reason_code: CancellationReason | None = None
    cancellation_notes: LongText | None = None
