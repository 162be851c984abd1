"""The back office's editor: adds and changes records, checks their fields, audits and publishes what differs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import sqlalchemy as sa

from chassis.auth.identity import Call
from chassis.db.database import Connection, Database
from chassis.db.statements import Statement
from chassis.messaging.outbox import Outbox
from chassis.records.shapes import Renderer
from chassis.refusals import Refusal
from chassis.writes.audit import Audit
from chassis.writes.commands import Command, CommandRunner
from chassis.writes.editing import EditableFields, EditableTable, RecordEditor, audited
from makeready.common.v1.documents_pb2 import Document
from makeready.events.v1.events_pb2 import AssetReference, Event, References
from testkit.plugin import PostgresServer

from ..contract import AddParcelRequest, UpdateParcelRequest
from ..databases import database_with
from ..parcels import (
    COMPANY,
    ONE_PARCEL,
    OTHER_COMPANY,
    PARCEL,
    Parcel,
    ParcelRow,
    audit,
    claims,
    clear,
    count,
    metadata,
    outbox,
    parcel,
    person,
)

FIELDS = EditableFields(ParcelRow, "external_id", "label", "grams", "created_at", ids=("sender_id",))


async def references(_connection: Connection, company_id: int, entity_id: int) -> References:
    return References(assets=[AssetReference(id=entity_id, company_id=company_id)])


EDITOR: RecordEditor[Parcel] = RecordEditor(
    "parcel",
    EditableTable(parcel, "label", "grams", "sender_id", "created_at"),
    ONE_PARCEL,
    Renderer(PARCEL, ""),
    references,
)


@pytest.fixture(scope="module")
async def opened(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    async with database_with(postgres_server, "chassis_editing_in_commands", metadata) as database:
        yield database


@pytest.fixture
async def database(opened: Database) -> Database:
    await clear(opened)
    return opened


@pytest.fixture
def commands(database: Database) -> CommandRunner:
    return CommandRunner(database, claims, Audit(audit, database), Outbox("svc-parcels", outbox))


async def run(
    commands: CommandRunner, key: str, work: Callable[[Command], Awaitable[Document]], call: Call | None = None
) -> Document:
    return await commands.run(call or person(), AddParcelRequest(idempotency_key=key), Document, work)


async def add(commands: CommandRunner, key: str, call: Call | None = None, **values: Any) -> Document:
    request = AddParcelRequest(**{"label": "a box", "sender_id": 1, **values})
    return await run(commands, key, lambda command: EDITOR.add(command, FIELDS.of(request)), call)


async def change(
    commands: CommandRunner, key: str, entity_id: int, call: Call | None = None, **values: Any
) -> Document:
    async def work(command: Command) -> Document:
        locked = await EDITOR.lock(command, entity_id)
        return await EDITOR.change(command, locked, FIELDS.of(UpdateParcelRequest(**values)))

    return await run(commands, key, work, call)


async def entries(database: Database) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    rows = await database.rows(Statement(sa.select(audit).order_by(audit.c.id)))
    return [(row["action"], json.loads(row["before"]), json.loads(row["after"])) for row in rows]


async def test_a_record_is_added_with_its_audit_entry_and_its_references(
    database: Database, commands: CommandRunner
) -> None:
    added = await add(commands, "k", grams=5, external_id="P1")
    record = json.loads(added.json)
    expected = {"label": "a box", "grams": 5, "external_id": "P1", "source": "staff", "status": "Received"}
    assert expected.items() <= record.items() and record["sender"] == {"id": 1, "name": "Ann"}
    assert (added.entity_id, added.version) == (record["entity_id"], 1)
    ((action, before, after),) = await entries(database)
    assert (action, before) == ("parcel.added", {})
    # The entry leaves out values that it has in columns of its own, and values that stay null.
    assert after == {
        "label": "a box", "grams": 5, "status": "Received", "sender": {"id": 1, "name": "Ann"}, "external_id": "P1",
    }  # fmt: skip
    event = Event.FromString(await database.value(Statement(sa.select(outbox.c.message))))
    assert event.references == await references(None, COMPANY, added.entity_id)  # type: ignore[arg-type]


async def test_a_change_saves_what_is_given_and_audits_what_differs(
    database: Database, commands: CommandRunner
) -> None:
    added = await add(commands, "k", grams=5)
    changed = await change(commands, "k2", added.entity_id, grams=6, label="a box")
    assert changed.version == 2
    before, after = json.loads(added.json), json.loads(changed.json)
    assert after["updated_at"] > before["updated_at"]
    assert {name for name in after if after[name] != before[name]} == {"grams", "updated_at"}
    assert (await entries(database))[-1] == ("parcel.updated", {"grams": 5}, {"grams": 6})
    assert await count(database, outbox) == 2


async def test_a_change_that_changes_nothing_leaves_the_record(database: Database, commands: CommandRunner) -> None:
    added = await add(commands, "k", grams=5)
    assert await change(commands, "k2", added.entity_id, grams=5) == added
    assert len(await entries(database)) == 1 and await count(database, outbox) == 1


async def test_a_record_changes_by_what_it_names_where_the_caller_says_so(
    database: Database, commands: CommandRunner
) -> None:
    added = await add(commands, "k")

    async def work(command: Command) -> Document:
        return await EDITOR.change(
            command, await EDITOR.lock(command, added.entity_id), {}, touched=True, action="moved"
        )

    assert (await run(commands, "k2", work)).version == 2
    assert (await entries(database))[-1] == ("parcel.moved", {}, {})


async def test_an_optional_field_is_cleared(commands: CommandRunner) -> None:
    added = await add(commands, "k", grams=5, external_id="P1")
    changed = json.loads((await change(commands, "k2", added.entity_id, clear=["grams", "external_id"])).json)
    assert (changed["grams"], changed["external_id"]) == (None, None)


async def test_a_record_of_another_company_is_not_found(commands: CommandRunner) -> None:
    added = await add(commands, "k")
    for work in (EDITOR.lock, EDITOR.find):
        for entity_id, company_id in ((added.entity_id, OTHER_COMPANY), (added.entity_id + 1, COMPANY)):
            with pytest.raises(Refusal) as refusal:
                await run(commands, "k2", lambda command: work(command, entity_id), person(3, company_id))  # type: ignore[arg-type, return-value]  # noqa: B023
            assert (refusal.value.status, str(refusal.value)) == (
                404,
                "The company has no parcel with that id; check the id.",
            )


async def test_an_external_id_that_is_taken_is_refused(commands: CommandRunner) -> None:
    first = await add(commands, "k", external_id="P1")
    second = await add(commands, "k2", external_id="P2")
    for again in (add(commands, "k3", external_id="P1"), change(commands, "k4", second.entity_id, external_id="P1")):
        with pytest.raises(Refusal) as refusal:
            await again
        assert (refusal.value.status, refusal.value.field) == (422, "external_id")
    assert (await change(commands, "k5", first.entity_id, external_id="P1")).version == 1


async def test_other_constraints_are_not_taken_for_the_external_id(commands: CommandRunner) -> None:
    with pytest.raises(Exception, match="parcel_label"):
        await add(commands, "k", label="longer than a label may be")


@pytest.mark.parametrize(
    ("request_", "status", "field"),
    [
        (AddParcelRequest(label=" ", sender_id=1), 400, "label"),
        (AddParcelRequest(label="a", sender_id=1, grams=0), 400, "grams"),
        (AddParcelRequest(label="a", sender_id=1, external_id="longer than 10"), 400, "external_id"),
        (AddParcelRequest(label="a", sender_id=1, created_at="yesterday"), 400, "created_at"),
        (UpdateParcelRequest(clear=["label"]), 400, "label"),
        (UpdateParcelRequest(clear=["sender_id"]), 400, "sender_id"),
    ],
)
def test_fields_are_checked_by_the_rules_of_the_row(request_: Any, status: int, field: str) -> None:
    with pytest.raises(Refusal) as refusal:
        FIELDS.of(request_)
    assert (refusal.value.status, refusal.value.field) == (status, field)


def test_a_date_stands_for_its_midnight() -> None:
    values = FIELDS.of(AddParcelRequest(label="a", sender_id=1, created_at="2026-03-01"))
    assert values["created_at"].isoformat() == "2026-03-01T00:00:00+00:00"


def test_an_id_that_no_record_can_have_is_an_unknown_id() -> None:
    assert FIELDS.of(AddParcelRequest(label="a", sender_id=-5))["sender_id"] == 0


def test_audited_values_leave_out_what_the_entry_says_itself() -> None:
    record = Renderer(PARCEL, "").of_values({parcel.c.label: "a", parcel.c.id: 4})
    assert audited(record).keys() == {"label", "grams", "status", "sender", "external_id"}
