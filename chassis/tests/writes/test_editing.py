"""The record editor stores, audits and publishes records that people add and change."""

from __future__ import annotations

import datetime
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.message_factory import GetMessageClass

from chassis.auth.identity import OPERATOR, Call, Identity
from chassis.db.database import Connection, Database
from chassis.db.statements import Statement, param
from chassis.messaging.outbox import Outbox, outbox_table
from chassis.records.shapes import Shape
from chassis.refusals import Refusal
from chassis.schedule import instants
from chassis.writes.audit import Audit, audit_table
from chassis.writes.commands import Command, CommandRunner
from chassis.writes.editing import EditableFields, EditableTable, RecordEditor, audited
from chassis.writes.idempotency import ledger
from makeready.events.v1.events_pb2 import Event, References
from testkit.plugin import PostgresServer

metadata = sa.MetaData()
outbox, audit, claims = outbox_table(metadata), audit_table(metadata), ledger(metadata)
boat = sa.Table(
    "boat",
    metadata,
    sa.Column("company_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
    sa.Column("version", sa.BigInteger, nullable=False, server_default=sa.text("1")),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("oars", sa.Integer),
    sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("external_id", sa.Text),
    sa.Column("source", sa.Text, nullable=False),
    sa.UniqueConstraint("company_id", "external_id", name="boat_external_id"),
)
COMPANY = 7


class Boat(msgspec.Struct):
    entity_id: int
    name: str
    oars: int | None
    updated_at: str


BOAT = Shape(Boat, boat, version=boat.c.version)
ONE = Statement(
    BOAT.select(boat).where(
        boat.c.company_id == param("company_id", sa.BigInteger), boat.c.id == param("entity_id", sa.BigInteger)
    )
)
OUTBOX = Statement(sa.select(outbox.c.message).order_by(outbox.c.event_id))
AUDIT = Statement(sa.select(audit.c.action, audit.c.before, audit.c.after).order_by(audit.c.id))


async def references(_connection: Connection, company_id: int, entity_id: int) -> References:
    published = References()
    published.properties.add(id=entity_id, company_id=company_id)
    return published


def editor(**options: Any) -> RecordEditor[Boat]:
    return RecordEditor("boat", EditableTable(boat, "name", "oars"), ONE, BOAT.renderer(), references, **options)


@pytest.fixture
async def database(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    opened = Database(postgres_server.create_database("chassis_editing"), application="tests")
    await opened.open()
    statements: list[str] = []
    dialect = sa.create_mock_engine("postgresql://", lambda *_: None).dialect

    def collect(sql: Any, *_: Any) -> None:
        statements.append(str(sql.compile(dialect=dialect)))

    collecting = sa.create_mock_engine("postgresql://", collect)
    metadata.create_all(collecting, checkfirst=False)
    async with opened.connection() as connection:
        for statement in statements:
            await connection.raw.execute(statement)
    yield opened
    await opened.close()


class Editing:
    """Runs commands, each in a transaction of its own."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._runner = CommandRunner(database, claims, Audit(audit, database), Outbox("tests", outbox))
        self._call = Call(Identity(OPERATOR, "operator", COMPANY), "req-1")

    async def add(self, boats: RecordEditor[Boat], *, parts: Any = None, **values: Any) -> int:
        async with self.database.transaction() as connection:
            command = Command(self._runner, connection, self._call, None, instants.now)
            return (await boats.save_new(command, values, parts=parts)).record.entity_id

    async def change(self, boats: RecordEditor[Boat], boat_id: int, at: Any = None, **values: Any) -> Boat:
        async with self.database.transaction() as connection:
            command = Command(self._runner, connection, self._call, None, instants.now)
            locked = await boats.lock(command, boat_id)
            return (await boats.save(command, locked, values, at=at)).record

    async def published(self) -> int:
        """How many times references were published."""
        rows = [Event.FromString(row["message"]) for row in await self.database.rows(OUTBOX)]
        return sum(event.HasField("references") for event in rows)

    async def entries(self) -> list[tuple[str, Any, Any]]:
        rows = await self.database.rows(AUDIT)
        return [(row["action"], json.loads(row["before"]), json.loads(row["after"])) for row in rows]


@pytest.fixture
def editing(database: Database) -> Editing:
    return Editing(database)


async def test_each_change_is_audited_and_published_and_what_changes_nothing_is_not(editing: Editing) -> None:
    boats = editor()
    boat_id = await editing.add(boats, name="Swan", oars=2)
    changed = await editing.change(boats, boat_id, oars=4)
    assert await editing.change(boats, boat_id, oars=4) == changed
    assert await editing.entries() == [
        ("boat.added", {}, {"name": "Swan", "oars": 2}),
        ("boat.updated", {"oars": 2}, {"oars": 4}),
    ]
    assert await editing.published() == 2


async def test_references_are_published_where_a_replicated_value_differs_alone(editing: Editing) -> None:
    boats = editor(replicated=("name",))
    boat_id = await editing.add(boats, name="Swan")
    await editing.change(boats, boat_id, oars=4)
    assert await editing.published() == 1
    await editing.change(boats, boat_id, name="Heron")
    assert await editing.published() == 2


async def test_an_audit_entry_holds_the_fields_that_the_editor_selects(editing: Editing) -> None:
    def kept(record: Boat, row: Mapping[str, Any]) -> dict[str, Any]:
        return audited(record) | {"external_id": row["external_id"]}

    boats = editor(audit=kept)
    boat_id = await editing.add(boats, name="Swan", external_id="B1")
    await editing.add(boats, name="Duck")
    await editing.change(boats, boat_id, external_id="B2")
    assert [entry[1:] for entry in await editing.entries()] == [
        ({}, {"name": "Swan", "external_id": "B1"}),
        ({}, {"name": "Duck"}),
        ({"external_id": "B1"}, {"external_id": "B2"}),
    ]


async def test_the_parts_of_a_new_record_are_saved_before_it_is_read(editing: Editing, database: Database) -> None:
    async def paint(boat_id: int) -> None:
        painted.append(boat_id)

    painted: list[int] = []
    assert await editing.add(editor(), name="Swan", parts=paint) == painted[0]


async def test_a_change_happens_when_it_is_said_to(editing: Editing) -> None:
    boat_id = await editing.add(editor(), name="Swan")
    at = datetime.datetime(2031, 1, 2, tzinfo=datetime.UTC)
    assert (await editing.change(editor(), boat_id, at, oars=1)).updated_at == "2031-01-02T00:00:00.000000Z"


async def test_an_external_id_is_one_records(editing: Editing) -> None:
    await editing.add(editor(), name="Swan", external_id="B1")
    second = await editing.add(editor(), name="Duck")
    with pytest.raises(Refusal) as refused:
        await editing.change(editor(), second, external_id="B1")
    assert (refused.value.status, refused.value.field) == (422, "external_id")


class BoatRow(msgspec.Struct, kw_only=True):
    name: str
    oars: int | None = None
    color: str | None = None


def update_boat_request() -> Any:
    """A message with the optional fields name and oars, and `clear`."""
    file = descriptor_pb2.FileDescriptorProto(name="boat.proto", package="boat", syntax="proto3")
    message = file.message_type.add(name="UpdateBoatRequest")
    types = descriptor_pb2.FieldDescriptorProto
    for number, (name, kind) in enumerate({"name": types.TYPE_STRING, "oars": types.TYPE_INT32}.items(), start=1):
        message.oneof_decl.add(name=f"_{name}")
        message.field.add(
            name=name,
            number=number,
            type=kind,
            label=types.LABEL_OPTIONAL,
            proto3_optional=True,
            oneof_index=number - 1,
        )
    message.field.add(name="clear", number=30, type=types.TYPE_STRING, label=types.LABEL_REPEATED)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName("boat.UpdateBoatRequest"))()


def test_a_request_gives_the_fields_that_it_has_and_clears_those_that_may_be() -> None:
    request = update_boat_request()
    request.name = "Swan"
    request.clear.append("oars")
    assert EditableFields(BoatRow, *BoatRow.__struct_fields__).of(request) == {"name": "Swan", "oars": None}
    assert EditableFields(BoatRow, "name", "oars", clearable=("oars",)).of(request) == {"name": "Swan", "oars": None}
    with pytest.raises(Refusal) as refused:
        EditableFields(BoatRow, "name", "oars", clearable=("color",)).of(request)
    assert refused.value.message == "clear may name color only."


def test_what_a_row_requires_is_not_cleared() -> None:
    request = update_boat_request()
    request.clear.append("name")
    with pytest.raises(Refusal) as refused:
        EditableFields(BoatRow, "name", "oars").of(request)
    assert refused.value.field == "name"
