"""The tables, with the same columns, constraints and indexes as Makeready's."""

from __future__ import annotations

import builtins
import datetime
import uuid

from sqlalchemy import BigInteger, DateTime, ForeignKey, Index, MetaData, Sequence, Text, UniqueConstraint, func
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from peer import settings


class Base(DeclarativeBase):
    metadata = MetaData()
    type_annotation_map = {  # noqa: RUF012 - declared so by SQLAlchemy
        int: BigInteger,
        str: Text,
        datetime.datetime: DateTime(timezone=True),
    }


class Company(Base):
    __tablename__ = "company"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    active: Mapped[bool] = mapped_column(default=True)


class ApiKey(Base):
    __tablename__ = "api_key"
    id: Mapped[int] = mapped_column(primary_key=True)
    company_id: Mapped[int] = mapped_column(ForeignKey("company.id"))
    digest: Mapped[str] = mapped_column(unique=True)
    scope: Mapped[str]
    administrator_id: Mapped[int | None]
    revoked_at: Mapped[datetime.datetime | None]
    company: Mapped[Company] = relationship()


class Property(Base):
    __tablename__ = "property"
    id: Mapped[int] = mapped_column(primary_key=True)
    company_id: Mapped[int]
    name: Mapped[str]
    external_id: Mapped[str | None]


class Unit(Base):
    __tablename__ = "unit"
    id: Mapped[int] = mapped_column(primary_key=True)
    company_id: Mapped[int]
    property_id: Mapped[int] = mapped_column(ForeignKey("property.id"))
    name: Mapped[str]
    unit_number: Mapped[str | None]
    external_id: Mapped[str | None]
    property: Mapped[Property] = relationship()


class Asset(Base):
    __tablename__ = "asset"
    id: Mapped[int] = mapped_column(primary_key=True)
    company_id: Mapped[int]
    property_id: Mapped[int] = mapped_column(ForeignKey("property.id"))
    name: Mapped[str]


class Staff(Base):
    __tablename__ = "staff"
    id: Mapped[int] = mapped_column(primary_key=True)
    company_id: Mapped[int]
    name: Mapped[str]


class Vendor(Base):
    __tablename__ = "vendor"
    id: Mapped[int] = mapped_column(primary_key=True)
    company_id: Mapped[int]
    name: Mapped[str]
    external_id: Mapped[str | None]


class Ticket(Base):
    __tablename__ = "ticket"
    __table_args__ = (
        UniqueConstraint("property_id", "ticket_number"),
        UniqueConstraint("company_id", "external_id"),
        Index("ticket_page", "company_id", "id"),
        Index("ticket_page_of_property", "company_id", "property_id", "id"),
        Index("ticket_page_of_unit", "company_id", "unit_id", "id"),
        Index("ticket_page_of_status", "company_id", "status", "id"),
        Index("ticket_updated", "company_id", "updated_at"),
    )
    id: Mapped[int] = mapped_column(Sequence("ticket_id"), primary_key=True)
    company_id: Mapped[int]
    ticket_number: Mapped[int | None]
    title: Mapped[str]
    description: Mapped[str | None]
    category: Mapped[str]
    subcategory: Mapped[str | None]
    priority: Mapped[str]
    status: Mapped[str]
    property_id: Mapped[int] = mapped_column(ForeignKey("property.id"))
    unit_id: Mapped[int | None] = mapped_column(ForeignKey("unit.id"))
    asset_id: Mapped[int | None] = mapped_column(ForeignKey("asset.id"))
    unit_number: Mapped[str | None]
    room: Mapped[str | None]
    room_instance: Mapped[str | None]
    permission_to_enter: Mapped[bool] = mapped_column(default=False)
    preferred_access_time: Mapped[str | None]
    assignee_id: Mapped[int | None] = mapped_column(ForeignKey("staff.id"))
    vendor_id: Mapped[int | None] = mapped_column(ForeignKey("vendor.id"))
    photo_url: Mapped[str | None]
    created_at: Mapped[datetime.datetime]
    updated_at: Mapped[datetime.datetime]
    completed_at: Mapped[datetime.datetime | None]
    cancelled_at: Mapped[datetime.datetime | None]
    cancellation_reason_code: Mapped[str | None]
    external_id: Mapped[str | None]
    source: Mapped[str]
    created_by_administrator_id: Mapped[int | None]

    property: Mapped[Property] = relationship()
    unit: Mapped[Unit | None] = relationship()
    assignee: Mapped[Staff | None] = relationship()
    assigned_vendor: Mapped[Vendor | None] = relationship()

    @builtins.property  # `property` is the relationship above
    def url(self) -> str:
        return f"{settings.LINKS_URL}/tickets/{self.id}"


class TicketNumber(Base):
    """The last ticket number of each property."""

    __tablename__ = "ticket_number"
    property_id: Mapped[int] = mapped_column(ForeignKey("property.id"), primary_key=True)
    last: Mapped[int]


class TicketPolicy(Base):
    """A company's rules for its tickets."""

    __tablename__ = "ticket_policy"
    company_id: Mapped[int] = mapped_column(primary_key=True)
    photo_required_to_complete: Mapped[bool] = mapped_column(default=False)


class Comment(Base):
    """A comment on a ticket."""

    __tablename__ = "ticket_comment"
    id: Mapped[int] = mapped_column(primary_key=True)
    ticket_id: Mapped[int] = mapped_column(ForeignKey("ticket.id"), index=True)
    kind: Mapped[str]
    body: Mapped[str]
    created_at: Mapped[datetime.datetime]
    administrator_id: Mapped[int]
    api_key_id: Mapped[int]


class StatusChange(Base):
    """An entry of a ticket's history."""

    __tablename__ = "ticket_status_change"
    id: Mapped[int] = mapped_column(primary_key=True)
    ticket_id: Mapped[int] = mapped_column(ForeignKey("ticket.id"), index=True)
    occurred_at: Mapped[datetime.datetime]
    from_status: Mapped[str]
    to_status: Mapped[str]
    cancellation_reason_code: Mapped[str | None]
    comment_id: Mapped[int | None] = mapped_column(ForeignKey("ticket_comment.id"))
    administrator_id: Mapped[int]
    api_key_id: Mapped[int]
    request_id: Mapped[str]

    comment: Mapped[Comment | None] = relationship()


class KeptReply(Base):
    """The reply to a write, for replays of its Idempotency-Key."""

    __tablename__ = "idempotency"
    company_id: Mapped[int] = mapped_column(primary_key=True)
    api_key_id: Mapped[int] = mapped_column(primary_key=True)
    idempotency_key: Mapped[str] = mapped_column(primary_key=True)
    fingerprint: Mapped[str]
    status: Mapped[int]
    body: Mapped[str]
    recorded_at: Mapped[datetime.datetime] = mapped_column(server_default=func.now(), index=True)


class Event(Base):
    """An event for the webhooks' sweep."""

    __tablename__ = "event"
    id: Mapped[uuid.UUID] = mapped_column(primary_key=True, default=uuid.uuid4)
    company_id: Mapped[int]
    event: Mapped[str]
    data: Mapped[str]
    change: Mapped[str | None]
    occurred_at: Mapped[datetime.datetime]
    swept_at: Mapped[datetime.datetime | None]
