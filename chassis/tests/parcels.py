"""A small context for the tests: parcels and their senders, with all tables of a context that writes."""

from __future__ import annotations

import datetime
from typing import Annotated, Any, Literal

import msgspec
import sqlalchemy as sa

from chassis.auth.identity import ADMINISTRATOR, INTEGRATION, OPERATOR, SERVICE, Call, Identity
from chassis.db.database import Database
from chassis.db.statements import TIME, Statement, param
from chassis.messaging.outbox import outbox_table
from chassis.records.bodies import Between, Text
from chassis.records.shapes import Nested, Shape
from chassis.writes.audit import audit_table
from chassis.writes.idempotency import ledger

COMPANY, OTHER_COMPANY = 7, 8

metadata = sa.MetaData()
claims = ledger(metadata)
audit = audit_table(metadata)
outbox = outbox_table(metadata)
parcel_id = sa.Sequence("parcel_id", metadata=metadata, data_type=sa.BigInteger)
sender = sa.Table(
    "sender",
    metadata,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("company_id", sa.BigInteger, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("external_id", sa.Text),
)
parcel = sa.Table(
    "parcel",
    metadata,
    sa.Column("company_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column(
        "id", sa.BigInteger, primary_key=True, autoincrement=False, server_default=sa.text("nextval('parcel_id')")
    ),
    sa.Column("version", sa.BigInteger, nullable=False, server_default=sa.text("1")),
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("grams", sa.Integer),
    sa.Column("status", sa.Text, nullable=False, server_default=sa.text("'Received'")),
    sa.Column("sender_id", sa.BigInteger, sa.ForeignKey("sender.id"), nullable=False),
    sa.Column("created_at", TIME, nullable=False),
    sa.Column("updated_at", TIME, nullable=False),
    sa.Column("external_id", sa.Text),
    sa.Column("source", sa.Text, nullable=False),
    sa.UniqueConstraint("company_id", "external_id", name="parcel_external_id"),
    sa.CheckConstraint("char_length(label) <= 20", name="parcel_label"),
)


class Sender(msgspec.Struct):
    id: int
    name: str


class Parcel(msgspec.Struct):
    schema_version: Literal[1]
    entity_type: Literal["parcel"]
    entity_id: int
    label: str
    grams: int | None
    status: str
    sender: Sender
    external_id: str | None
    source: str
    created_at: str
    updated_at: str


class ParcelRow(msgspec.Struct, kw_only=True):
    """A parcel's row in an import; sender is an external_id."""

    external_id: Annotated[str, Text(longest=10, blank=False)]
    label: Annotated[str, Text(blank=False)]
    sender: str
    grams: Annotated[int, Between(1, 100_000)] | None = None
    created_at: datetime.datetime | None = None


PARCEL = Shape(Parcel, parcel, sender=Nested(Sender, sender), version=parcel.c.version)
PARCELS = PARCEL.select(parcel.join(sender, sender.c.id == parcel.c.sender_id))
ONE_PARCEL = Statement(
    PARCELS.where(
        parcel.c.company_id == param("company_id", sa.BigInteger), parcel.c.id == param("entity_id", sa.BigInteger)
    )
)


def person(administrator_id: int = 3, company_id: int = COMPANY, request_id: str = "req-1") -> Call:
    """A call of a company's administrator."""
    return Call(Identity(ADMINISTRATOR, "gateway", company_id, administrator_id=administrator_id), request_id)


def integration(api_key_id: int = 1, company_id: int = COMPANY) -> Call:
    """A call of an integration."""
    who = Identity(INTEGRATION, "gateway", company_id, api_key_id, "write", administrator_id=3)
    return Call(who, "req-1")


def operator(company_id: int = COMPANY) -> Call:
    """A call of the operator for a company."""
    return Call(Identity(OPERATOR, "operator", company_id), "req-1")


def service(name: str = "svc-orders", company_id: int = 0) -> Call:
    """A call of another service."""
    return Call(Identity(SERVICE, name, company_id), "")


async def count(database: Database, table: sa.Table, *where: sa.ColumnElement[bool]) -> int:
    """The number of rows."""
    rows: int = await database.value(Statement(sa.select(sa.func.count()).select_from(table).where(*where)))
    return rows


async def clear(database: Database) -> None:
    """Empties every table, except two senders of the company and one of the other company."""
    async with database.connection() as connection:
        await connection.raw.execute("TRUNCATE idempotency, audit, outbox, parcel, sender")
        await connection.raw.execute(
            "INSERT INTO sender VALUES (1, 7, 'Ann', 'S1'), (2, 7, 'Ben', 'S2'), (3, 8, 'Cid', 'S3')"
        )


def parcel_row(entity_id: int, label: str = "a box", **values: Any) -> dict[str, Any]:
    """A whole row for an insert."""
    now = datetime.datetime.now(datetime.UTC)
    fresh = {"company_id": COMPANY, "id": entity_id, "version": 1, "label": label, "status": "Received", "sender_id": 1}
    fresh |= {"created_at": now, "updated_at": now, "source": "api"}
    return dict.fromkeys(parcel.c.keys()) | fresh | values
