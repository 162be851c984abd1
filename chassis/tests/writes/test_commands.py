"""Commands: each runs once for its key and actor, in one transaction with its audit entry and events."""

from __future__ import annotations

import asyncio
import datetime
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from asyncpg import CheckViolationError, UniqueViolationError

from chassis.auth.identity import Call, IdentityError
from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.messaging.outbox import Outbox
from chassis.refusals import Refusal
from chassis.schedule.clocks import CompanyClocks
from chassis.writes.audit import Audit
from chassis.writes.commands import Command, CommandRunner, fields
from chassis.writes.idempotency import KEY_CHARACTERS_MAX
from makeready.common.v1.documents_pb2 import Document
from makeready.events.v1.events_pb2 import CompanyReference, Event, References
from testkit.patience import eventually
from testkit.plugin import PostgresServer
from testkit.processes import READY_SECONDS

from ..contract import AddParcelRequest, UpdateParcelRequest
from ..databases import database_with
from ..parcels import (
    COMPANY,
    OTHER_COMPANY,
    audit,
    claims,
    clear,
    count,
    metadata,
    operator,
    outbox,
    parcel,
    parcel_row,
    person,
)
from . import dying

NOW = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
SECOND = datetime.timedelta(seconds=1)
DEAD = "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = $1 AND datname = current_database()"
INSERT = Statement(
    sa.insert(parcel).values({name: sa.bindparam(name, type_=parcel.c[name].type) for name in parcel_row(1)})
)


@pytest.fixture(scope="module")
async def opened(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    async with database_with(postgres_server, "chassis_commands", metadata) as database:
        yield database


@pytest.fixture
async def database(opened: Database) -> Database:
    await clear(opened)
    return opened


@pytest.fixture
def commands(database: Database) -> CommandRunner:
    return CommandRunner(
        database,
        claims,
        Audit(audit, database),
        Outbox("svc-parcels", outbox),
        CompanyClocks(database, real=lambda: NOW),
    )


def request(key: str = "key-1", **values: object) -> object:
    return AddParcelRequest(**{"idempotency_key": key, "label": "a box", "sender_id": 1, **values})


class AddParcel:
    """The work of a command; counts its runs."""

    def __init__(self, entity_id: int = 1) -> None:
        self.entity_id = entity_id
        self.times = 0

    async def __call__(self, command: Command) -> Document:
        self.times += 1
        row = parcel_row(self.entity_id, company_id=command.company_id, created_at=command.now, updated_at=command.now)
        await command.connection.execute(INSERT, **row)
        await command.audit("parcel.added", "parcel", self.entity_id, {}, {"label": "a box"})
        await command.publish_event("ticket.created", self.entity_id, command.now, b'{"a": 1}')
        return Document(json=b"{}", entity_id=self.entity_id, version=1)


async def stored(database: Database) -> list[int]:
    return [await count(database, table) for table in (parcel, audit, outbox, claims)]


async def refused(commands: CommandRunner, call: Call, message: object) -> str:
    with pytest.raises(Refusal) as refusal:
        await commands.run(call, message, Document, AddParcel(99))
    return refusal.value.code


async def test_a_command_writes_its_rows_its_audit_entry_its_event_and_its_reply(
    database: Database, commands: CommandRunner
) -> None:
    reply = await commands.run(person(), request(), Document, AddParcel())
    assert reply == Document(json=b"{}", entity_id=1, version=1)
    assert await stored(database) == [1, 1, 1, 1]
    assert commands.outbox.woken.is_set()
    entry = await database.row(Statement(sa.select(audit)))
    assert entry is not None
    assert (entry["actor"], entry["action"], entry["subject"], entry["subject_id"], entry["request_id"]) == (
        "administrator:3",
        "parcel.added",
        "parcel",
        1,
        "req-1",
    )
    assert (json.loads(entry["before"]), json.loads(entry["after"])) == ({}, {"label": "a box"})
    event = Event.FromString(await database.value(Statement(sa.select(outbox.c.message))))
    assert (event.company_id, event.request_id, event.public.event, event.public.entity_id, event.public.data) == (
        COMPANY,
        "req-1",
        "ticket.created",
        1,
        b'{"a": 1}',
    )
    assert event.occurred_at.ToDatetime(datetime.UTC) == NOW


async def test_a_key_that_comes_again_is_answered_with_the_first_reply(
    database: Database, commands: CommandRunner
) -> None:
    first = await commands.run(person(), request(), Document, AddParcel())
    commands.outbox.woken.clear()
    again = AddParcel(2)
    assert await commands.run(person(), request(), Document, again) == first
    assert again.times == 0 and await stored(database) == [1, 1, 1, 1]
    assert not commands.outbox.woken.is_set()


async def test_a_key_of_another_request_is_a_mismatch_and_does_nothing(
    database: Database, commands: CommandRunner
) -> None:
    await commands.run(person(), request(), Document, AddParcel())
    assert await refused(commands, person(), request(label="another box")) == "idempotency_mismatch"
    assert await stored(database) == [1, 1, 1, 1]


async def test_the_same_fields_of_another_command_are_another_request(commands: CommandRunner) -> None:
    await commands.run(person(), AddParcelRequest(idempotency_key="key-1"), Document, AddParcel())
    assert await refused(commands, person(), UpdateParcelRequest(idempotency_key="key-1")) == "idempotency_mismatch"


async def test_actors_and_companies_do_not_share_keys(database: Database, commands: CommandRunner) -> None:
    calls = [person(3), person(4), operator(), person(3, OTHER_COMPANY)]
    for number, call in enumerate(calls, start=1):
        await commands.run(call, request(), Document, AddParcel(number))
    assert await stored(database) == [4, 4, 4, 4]


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("", "idempotency_key_required"),
        ("ü", "invalid_request"),
        ("a\n", "invalid_request"),
        ("x" * 65, "invalid_request"),
    ],
)
async def test_a_key_that_is_none_is_refused(key: str, code: str, commands: CommandRunner) -> None:
    assert await refused(commands, person(), request(key)) == code


async def test_the_longest_key_is_one(commands: CommandRunner) -> None:
    assert (await commands.run(person(), request("x" * KEY_CHARACTERS_MAX), Document, AddParcel())).entity_id == 1


async def test_of_one_key_at_once_one_command_is_done_and_the_others_are_refused(
    database: Database, commands: CommandRunner
) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def slow(command: Command) -> Document:
        begun.set()
        await may_end.wait()
        return await AddParcel()(command)

    first = asyncio.create_task(commands.run(person(), request(), Document, slow))
    await begun.wait()
    assert await refused(commands, person(), request()) == "idempotency_in_progress"
    may_end.set()
    assert (await first).entity_id == 1
    assert await stored(database) == [1, 1, 1, 1]


@pytest.mark.parametrize("fault", [Refusal(422, "no", "No."), RuntimeError()])
async def test_what_the_work_raises_leaves_nothing_and_frees_the_key(
    fault: Exception, database: Database, commands: CommandRunner
) -> None:
    async def fails(command: Command) -> Document:
        await AddParcel()(command)
        raise fault

    with pytest.raises(type(fault)):
        await commands.run(person(), request(), Document, fails)
    assert await stored(database) == [0, 0, 0, 0] and not commands.outbox.woken.is_set()
    assert (await commands.run(person(), request(), Document, AddParcel())).entity_id == 1


async def test_a_constraint_that_the_work_breaks_is_the_callers_to_name(
    database: Database, commands: CommandRunner
) -> None:
    """Only a violation of the claim's key means that the first request has committed meanwhile."""
    await commands.run(person(), request("one"), Document, AddParcel())
    with pytest.raises(UniqueViolationError) as fault:
        await commands.run(person(), request("two"), Document, AddParcel())
    assert fault.value.constraint_name == "parcel_pkey"

    async def too_long(command: Command) -> Document:
        await command.connection.execute(INSERT, **parcel_row(2, label="longer than a label may be"))
        return Document()

    with pytest.raises(CheckViolationError):
        await commands.run(person(), request("three"), Document, too_long)
    assert await stored(database) == [1, 1, 1, 1]


async def test_a_token_without_a_company_does_nothing(commands: CommandRunner) -> None:
    with pytest.raises(IdentityError):
        await commands.run(operator(company_id=0), request(), Document, AddParcel())


async def test_references_are_published_with_the_instant_of_the_command(
    database: Database, commands: CommandRunner
) -> None:
    references = References(companies=[CompanyReference(id=COMPANY, version=3, name="Elm")])

    async def renames(command: Command) -> Document:
        await command.publish_references(references)
        return Document()

    await commands.run(person(), request(), Document, renames)
    row = await database.row(Statement(sa.select(outbox.c.subject, outbox.c.message)))
    assert row is not None and row["subject"] == "events.svc-parcels.references"
    event = Event.FromString(row["message"])
    assert event.references == references and event.occurred_at.ToDatetime(datetime.UTC) == NOW


async def test_a_change_is_always_after_the_records_last_one(database: Database) -> None:
    clock = iter([NOW, NOW, NOW + SECOND, NOW])
    clocks = CompanyClocks(database, real=lambda: next(clock))
    commands = CommandRunner(database, claims, Audit(audit, database), Outbox("svc-parcels", outbox), clocks)

    async def asks(command: Command) -> Document:
        tick = datetime.timedelta(microseconds=1)
        assert command.next_instant(NOW - SECOND) == NOW
        assert command.next_instant(NOW) == NOW + SECOND, "read anew: a lock may have been waited for"
        assert command.next_instant(NOW + SECOND) == NOW + SECOND + tick, "the clock went back"
        return Document()

    await commands.run(person(), request(), Document, asks)


# A process that dies


@pytest.mark.parametrize(
    ("point", "rows_each"), [("write-decided", 0), ("write-before-commit", 0), ("write-after-commit", 1)]
)
async def test_a_process_that_dies_leaves_all_of_a_command_or_nothing(
    point: str, rows_each: int, database: Database, commands: CommandRunner
) -> None:
    ended = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "tests.writes.dying", database.url],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "MAKEREADY_KILL_AT": point},
        timeout=READY_SECONDS,
        check=False,
        capture_output=True,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    async with database.connection() as connection:  # the server keeps its locks until it notices
        await eventually(lambda: connection.raw.fetchval(DEAD, dying.APPLICATION))
    assert await stored(database) == [0, rows_each, rows_each, rows_each]
    reply = await commands.run(person(), dying.REQUEST, Document, dying.work)
    assert reply.json == b"a document" and await stored(database) == [0, 1, 1, 1]


# The fields of a request


def test_fields_are_what_the_request_gives() -> None:
    names = ("label", "grams", "external_id", "sender_id")
    assert fields(AddParcelRequest(label="a", grams=0), *names) == {"label": "a", "grams": 0, "sender_id": 0}
    changed = UpdateParcelRequest(label="b", clear=["grams", "external_id"])
    assert fields(changed, *names) == {"label": "b", "grams": None, "external_id": None}


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (UpdateParcelRequest(clear=["parcel_id"]), "clear"),
        (UpdateParcelRequest(clear=["nothing"]), "clear"),
        (UpdateParcelRequest(label="a", clear=["label"]), "label"),
        (UpdateParcelRequest(label="a\0"), "label"),
        (UpdateParcelRequest(tags=["a", "b\0"]), "tags"),
    ],
)
def test_fields_that_cannot_be_are_refused_by_name(message: object, field: str) -> None:
    with pytest.raises(Refusal) as refusal:
        fields(message, "label", "grams", "tags")  # type: ignore[arg-type]
    assert (refusal.value.status, refusal.value.field) == (400, field)
