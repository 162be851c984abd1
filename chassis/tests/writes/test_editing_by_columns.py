"""The record editor with audited columns, and with another name of the kind in messages."""

from __future__ import annotations

import datetime
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import msgspec
import pytest
import sqlalchemy as sa

from chassis.auth.identity import OPERATOR, Call, Identity
from chassis.db.database import Database
from chassis.db.statements import TIME, Statement, param
from chassis.messaging.outbox import Outbox, outbox_table
from chassis.records.shapes import Shape
from chassis.refusals import Refusal
from chassis.writes.audit import Audit, audit_table
from chassis.writes.commands import Command, CommandRunner
from chassis.writes.editing import EditableTable, RecordEditor, RecordWording, audited_columns
from chassis.writes.idempotency import ledger
from makeready.catalog.v1 import place_commands_pb2 as pb
from testkit.plugin import PostgresServer

from ..databases import database_with

Answer = TypeVar("Answer")

metadata = sa.MetaData()
claims, audit, outbox = ledger(metadata), audit_table(metadata), outbox_table(metadata)
boat = sa.Table(
    "boat",
    metadata,
    sa.Column("company_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
    sa.Column("version", sa.BigInteger, nullable=False, server_default=sa.text("1")),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("harbour_id", sa.BigInteger),
    sa.Column("state", sa.Text, nullable=False, server_default=sa.text("'Afloat'")),
    sa.Column("external_id", sa.Text),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("created_at", TIME, nullable=False),
    sa.Column("updated_at", TIME, nullable=False),
    sa.UniqueConstraint("company_id", "external_id", name="boat_external_id"),
)


class Boat(msgspec.Struct):
    entity_id: int
    name: str
    state: str


BOAT = Shape(Boat, boat, version=boat.c.version)
TABLE = EditableTable(boat, "name", "harbour_id", "state", later=("state",))
_same = (boat.c.company_id == param("company_id", sa.BigInteger), boat.c.id == param("entity_id", sa.BigInteger))
ONE = BOAT.select(boat).where(*_same)
PLAIN = RecordEditor("boat", TABLE, Statement(ONE), BOAT.renderer())
BY_COLUMNS = RecordEditor(
    "boat",
    TABLE,
    Statement(ONE.add_columns((sa.func.length(boat.c.name)).label("letters"))),
    BOAT.renderer(),
    audit=audited_columns(("name", "harbour_id")),
    wording=RecordWording("motor boat", lambda: Refusal(404, "not_found", "There is no such boat.", "boat_id")),
)
CALL = Call(Identity(OPERATOR, "operator", 7), "req")


@pytest.fixture(scope="module")
async def database(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    async with database_with(postgres_server, "editing_by_columns", metadata) as database:
        yield database


async def run(database: Database, work: Callable[[Command], Awaitable[Answer]]) -> Answer:
    """Runs the work in a command of its own; returns its answer."""
    answers: list[Answer] = []

    async def once(command: Command) -> pb.AddPropertyResponse:
        answers.append(await work(command))
        return pb.AddPropertyResponse()

    runner = CommandRunner(database, claims, Audit(audit, database), Outbox("tests", outbox))
    request = pb.AddPropertyRequest(idempotency_key=secrets.token_hex(8))
    await runner.run(CALL, request, pb.AddPropertyResponse, once)
    return answers[0]


async def entries(database: Database, boat_id: int) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """The action, before and after of each audit entry, the oldest first."""
    rows = await database.rows(
        Statement(
            sa.select(audit.c.action, *(sa.cast(audit.c[name], sa.Text).label(name) for name in ("before", "after")))
            .where(audit.c.subject_id == param("boat_id", sa.BigInteger))
            .order_by(audit.c.id)
        ),
        boat_id=boat_id,
    )
    return [(row["action"], json.loads(row["before"]), json.loads(row["after"])) for row in rows]


async def test_a_new_record_has_the_defaults_of_what_changes_alone_set(database: Database) -> None:
    added = await run(database, lambda command: PLAIN.add(command, {"name": "Ida"}))
    assert json.loads(added.json) == {"entity_id": added.entity_id, "name": "Ida", "state": "Afloat"}
    assert await entries(database, added.entity_id) == [("boat.added", {}, {"name": "Ida", "state": "Afloat"})]


async def test_a_change_moves_the_version_and_keeps_what_differs(database: Database) -> None:
    added = await run(database, lambda command: PLAIN.add(command, {"name": "Ida"}))

    async def change(command: Command) -> Any:
        return await PLAIN.change(command, await PLAIN.lock(command, added.entity_id), {"state": "Ashore"})

    first, again = await run(database, change), await run(database, change)
    assert (first.version, again.version) == (2, 2) and first.json == again.json
    assert (await entries(database, added.entity_id))[1:] == [
        ("boat.updated", {"state": "Afloat"}, {"state": "Ashore"})
    ]


async def test_entries_by_columns_hold_those_and_what_is_said_besides(database: Database) -> None:
    added = await run(database, lambda command: BY_COLUMNS.save_new(command, {"name": "Ida"}))
    record, boat_id = added.record, added.document.entity_id
    assert record == Boat(boat_id, "Ida", "Afloat")
    at = datetime.datetime(2090, 1, 1, tzinfo=datetime.UTC)

    async def change(command: Command) -> Any:
        locked = await BY_COLUMNS.lock(command, boat_id)
        assert (locked.facts["letters"], locked.record) == (3, record)
        values = {"harbour_id": 5, "state": "Ashore"}
        return await BY_COLUMNS.save(command, locked, values, action="moved", at=at, also={"tide": "high"})

    changed = await run(database, change)
    assert (changed.record.state, changed.document.version) == ("Ashore", 2)
    assert await entries(database, boat_id) == [
        ("boat.added", {}, {"name": "Ida"}),
        ("boat.moved", {"harbour_id": None}, {"harbour_id": 5, "tide": "high"}),
    ]
    updated = Statement(sa.select(boat.c.updated_at).where(*_same))
    assert await database.value(updated, company_id=7, entity_id=boat_id) == at


@pytest.mark.parametrize(
    ("editor", "missing", "taken"),
    [
        (PLAIN, ("The company has no boat with that id; check the id.", ""), "A boat with that external_id exists"),
        (BY_COLUMNS, ("There is no such boat.", "boat_id"), "A motor boat with that external_id exists"),
    ],
)
async def test_refusals_name_the_kind_as_people_do(
    database: Database, editor: Any, missing: tuple[str, str], taken: str
) -> None:
    with pytest.raises(Refusal) as absent:
        await run(database, lambda command: editor.lock(command, 10**12))
    assert (absent.value.status, absent.value.message, absent.value.field) == (404, *missing)
    values = {"name": "Ida", "external_id": secrets.token_hex(8)}
    await run(database, lambda command: editor.add(command, values))
    with pytest.raises(Refusal, match=taken) as refused:
        await run(database, lambda command: editor.add(command, values))
    assert (refused.value.status, refused.value.field) == (422, "external_id")
