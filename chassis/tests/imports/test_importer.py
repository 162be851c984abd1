"""Imports: each row is created, changed, left or rejected by itself; a batch is one transaction."""

from __future__ import annotations

import asyncio
import datetime
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import sqlalchemy as sa

from chassis.auth.identity import IdentityError
from chassis.db.database import Connection, Database, DatabaseUnavailable
from chassis.db.statements import Statement
from chassis.imports.importer import (
    CHANGED,
    CREATED,
    REJECTED,
    ROWS_MAX,
    UNCHANGED,
    Batch,
    ExternalIds,
    Importer,
    ImportTable,
    lock_company_imports,
)
from chassis.messaging.outbox import Outbox
from chassis.refusals import Refusal, invalid_request
from chassis.schedule.clocks import CompanyClocks
from makeready.common.v1 import documents_pb2 as common
from makeready.events.v1.events_pb2 import AssetReference, Event, References
from testkit.patience import PATIENCE_SECONDS
from testkit.plugin import PostgresServer

from ..databases import database_with
from ..parcels import (
    COMPANY,
    OTHER_COMPANY,
    ParcelRow,
    claims,
    clear,
    count,
    metadata,
    operator,
    outbox,
    parcel,
    sender,
)

NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
HOUR = datetime.timedelta(hours=1)
PARCELS = ImportTable(parcel, "label", "grams", "sender_id", "created_at")
SENDERS = ExternalIds(sender)
Outcome = tuple[int, int, str]


class Request:
    """An import request of no particular contract."""

    def __init__(self, *rows: Mapping[str, Any] | bytes, dry_run: bool = False, key: str = "") -> None:
        self.dry_run, self.idempotency_key = dry_run, key
        self.rows = [
            common.ImportRow(line=line, json=row if isinstance(row, bytes) else json.dumps(row).encode())
            for line, row in enumerate(rows, start=2)
        ]


class Parcels:
    """The import of parcels; its clock can be set."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.now = NOON
        self.events = Outbox("svc-parcels", outbox)
        self.importer = Importer(database, self.events, claims, CompanyClocks(database, real=lambda: self.now))
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()
        self.may_end.set()

    async def save(self, connection: Connection, batch: Batch[ParcelRow]) -> References:
        batch.resolve("sender", await SENDERS.by_external_id(connection, batch.company_id, batch.named("sender")))
        await batch.lock_existing(connection, PARCELS)

        def heavier(row: Any) -> None:
            if (
                row.stored("grams") is not None
                and row.after("grams") is not None
                and row.after("grams") < row.stored("grams")
            ):
                raise invalid_request("A parcel does not become lighter.", "grams")

        batch.each(heavier)
        saved = await batch.save(connection, PARCELS, {"grams": 1})
        self.begun.set()
        await self.may_end.wait()
        return References(
            assets=[AssetReference(id=row["id"], company_id=batch.company_id, version=row["version"]) for row in saved]
        )

    async def run(
        self, *rows: Mapping[str, Any] | bytes, company_id: int = COMPANY, dry_run: bool = False, key: str = ""
    ) -> list[Outcome]:
        request = Request(*rows, dry_run=dry_run, key=key)
        results = await self.importer.run(self.save, ParcelRow, request, operator(company_id))
        return [(result.line, result.outcome, result.field) for result in results]


@pytest.fixture(scope="module")
async def opened(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    async with database_with(postgres_server, "chassis_imports", metadata) as database:
        yield database


@pytest.fixture
async def parcels(opened: Database) -> Parcels:
    await clear(opened)
    return Parcels(opened)


def row(external_id: str = "P1", **values: Any) -> dict[str, Any]:
    return {"external_id": external_id, "label": "a box", "sender": "S1", **values}


async def stored(parcels: Parcels, external_id: str = "P1") -> dict[str, Any]:
    select = sa.select(parcel).where(parcel.c.external_id == sa.literal_column(f"'{external_id}'"))
    row = await parcels.database.row(Statement(select))
    assert row is not None
    return dict(row)


async def test_a_new_row_is_created_with_its_defaults(parcels: Parcels) -> None:
    assert await parcels.run(row(), row("P2", grams="250", created_at="2026-02-01")) == [
        (2, CREATED, ""),
        (3, CREATED, ""),
    ]
    first, second = await stored(parcels), await stored(parcels, "P2")
    assert {
        "company_id": COMPANY,
        "label": "a box",
        "grams": 1,
        "sender_id": 1,
        "source": "import",
    }.items() <= first.items()
    assert (first["created_at"], first["updated_at"], first["version"]) == (NOON, NOON, 1)
    assert (second["grams"], second["created_at"].isoformat()) == (250, "2026-02-01T00:00:00+00:00")


async def test_a_batch_that_is_sent_again_with_its_key_gets_the_outcomes_of_the_first_time(parcels: Parcels) -> None:
    rows = row(), row("P2", grams="heavy"), row("P3")
    first = await parcels.run(*rows, key="job-1")
    assert first == [(2, CREATED, ""), (3, REJECTED, "grams"), (4, CREATED, "")]
    before = await stored(parcels)
    assert await parcels.run(*rows, key="job-1") == first
    assert await stored(parcels) == before
    assert [result[1] for result in await parcels.run(*rows, key="job-2")] == [UNCHANGED, REJECTED, UNCHANGED]
    assert [result[1] for result in await parcels.run(*rows, key="job-1", dry_run=True)] == [
        UNCHANGED,
        REJECTED,
        UNCHANGED,
    ]
    assert [result[1] for result in await parcels.run(*rows[:1], company_id=OTHER_COMPANY, key="job-1")] == [REJECTED]
    with pytest.raises(Refusal) as refused:
        await parcels.run(*rows[:1], key="job-1")
    assert (refused.value.status, refused.value.code) == (409, "idempotency_mismatch")
    for key in ("k" * 65, "kéy"):
        with pytest.raises(Refusal, match="1 to 64 printable"):
            await parcels.run(*rows, key=key)


async def test_a_batch_that_is_under_way_is_refused_while_it_is(parcels: Parcels) -> None:
    parcels.may_end.clear()
    first = asyncio.create_task(parcels.run(row(), key="job-1"))
    await parcels.begun.wait()
    with pytest.raises(Refusal) as refused:
        await parcels.run(row(), key="job-1")
    assert refused.value.code == "idempotency_in_progress"
    parcels.may_end.set()
    assert await first == [(2, CREATED, "")] == await parcels.run(row(), key="job-1")


async def test_the_same_row_again_is_unchanged_and_another_value_is_a_change(parcels: Parcels) -> None:
    await parcels.run(row(grams=5))
    before = await stored(parcels)
    parcels.now += HOUR
    assert await parcels.run(row(grams=5)) == [(2, UNCHANGED, "")]
    assert await stored(parcels) == before
    assert await parcels.run(row(grams=6, sender="S2")) == [(2, CHANGED, "")]
    after = await stored(parcels)
    assert {name for name in after if after[name] != before[name]} == {"grams", "sender_id", "updated_at", "version"}
    assert (after["version"], after["updated_at"]) == (2, NOON + HOUR)


async def test_a_blank_clears_its_field_and_a_missing_one_leaves_it(parcels: Parcels) -> None:
    await parcels.run(row(grams=5))
    assert await parcels.run(row()) == [(2, UNCHANGED, "")]
    assert await parcels.run(row(grams="")) == [(2, CHANGED, "")]
    assert (await stored(parcels))["grams"] == 1, "where a default is, it comes back"


async def test_a_change_is_after_the_last_one_though_the_clock_went_back(parcels: Parcels) -> None:
    await parcels.run(row(grams=5))
    parcels.now -= HOUR
    await parcels.run(row(grams=6))
    assert (await stored(parcels))["updated_at"] == NOON + datetime.timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (b"[]", ""),
        (b'{"external_id": "P1"', ""),
        (row(label=" "), "label"),
        (row(grams="heavy"), "grams"),
        (row(grams=0), "grams"),
        (row(colour="red"), "colour"),
        (row(sender="S9"), "sender"),
        (row(sender="S3"), "sender"),  # another company's
        ({"label": "a box", "sender": "S1"}, "external_id"),
        (row("P2"), "external_id"),  # twice in the file
    ],
)
async def test_a_bad_row_is_rejected_by_field_and_holds_up_no_other(bad: Any, field: str, parcels: Parcels) -> None:
    assert await parcels.run(row("P2"), bad, row("P3")) == [(2, CREATED, ""), (3, REJECTED, field), (4, CREATED, "")]
    assert await count(parcels.database, parcel) == 2


async def test_a_rule_sees_the_record_as_it_is_and_as_it_will_be(parcels: Parcels) -> None:
    await parcels.run(row(grams=5))
    assert await parcels.run(row(grams=4), row("P2", grams=4)) == [(2, REJECTED, "grams"), (3, CREATED, "")]
    assert (await stored(parcels))["grams"] == 5


async def test_a_dry_run_reports_the_same_and_does_nothing(parcels: Parcels) -> None:
    await parcels.run(row(grams=5))
    rows = (row(grams=6), row("P2"), row("P3", sender="S9"))
    expected = await parcels.run(*rows, dry_run=True)
    assert (await stored(parcels))["grams"] == 5 and await count(parcels.database, parcel) == 1
    assert await count(parcels.database, outbox) == 1
    assert await parcels.run(*rows) == expected


async def test_what_other_contexts_keep_is_published_in_one_event(parcels: Parcels) -> None:
    await parcels.run(row(), row("P2"))
    assert parcels.events.woken.is_set()
    event = Event.FromString(await parcels.database.value(Statement(sa.select(outbox.c.message))))
    ids = {(await stored(parcels, name))["id"] for name in ("P1", "P2")}
    assert {asset.id for asset in event.references.assets} == ids
    parcels.events.woken.clear()
    await parcels.run(row(), row("P2"))
    assert await count(parcels.database, outbox) == 1 and not parcels.events.woken.is_set(), "nothing changed"


async def test_companies_have_external_ids_of_their_own(parcels: Parcels) -> None:
    await parcels.run(row())
    assert await parcels.run(row(sender="S3"), company_id=OTHER_COMPANY) == [(2, CREATED, "")]
    assert await count(parcels.database, parcel) == 2
    with pytest.raises(IdentityError):
        await parcels.run(row(), company_id=0)


async def test_batches_of_one_company_go_one_after_another(parcels: Parcels) -> None:
    parcels.may_end.clear()
    first = asyncio.create_task(parcels.run(row(grams=5)))
    await parcels.begun.wait()
    second = asyncio.create_task(parcels.run(row(grams=6)))
    await asyncio.sleep(0.1)
    assert not second.done()
    parcels.may_end.set()
    assert [await first, await second] == [[(2, CREATED, "")], [(2, CHANGED, "")]]


async def test_the_lock_of_one_company_is_not_anothers(parcels: Parcels) -> None:
    async with parcels.database.transaction() as first, parcels.database.transaction() as second:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await lock_company_imports(first, COMPANY)
            await lock_company_imports(second, OTHER_COMPANY)


async def test_a_record_that_is_created_meanwhile_causes_a_retry(parcels: Parcels) -> None:
    """A command need not take the imports' lock."""
    save = parcels.save

    async def late(connection: Connection, batch: Batch[ParcelRow]) -> References:
        lock = batch.lock_existing

        async def then(connection: Connection, table: ImportTable) -> None:
            await lock(connection, table)
            async with parcels.database.connection() as other:
                await other.raw.execute(
                    "INSERT INTO parcel (company_id, label, sender_id, created_at, updated_at, external_id, source)"
                    " VALUES (7, 'b', 1, now(), now(), 'P1', 'staff')"
                )

        batch.lock_existing = then  # type: ignore[assignment, method-assign]
        return await save(connection, batch)

    with pytest.raises(DatabaseUnavailable, match="another request has just made"):
        await parcels.importer.run(late, ParcelRow, Request(row(), row("P2")), operator())
    assert await parcels.run(row(), row("P2")) == [(2, CHANGED, ""), (3, CREATED, "")]


async def test_a_batch_has_its_limit(parcels: Parcels) -> None:
    with pytest.raises(Refusal, match=f"at most {ROWS_MAX} rows"):
        await parcels.run(*[row(f"P{number}") for number in range(ROWS_MAX + 1)])
    assert len(await parcels.run(*[row(f"P{number}") for number in range(ROWS_MAX)])) == ROWS_MAX
    assert await count(parcels.database, parcel) == ROWS_MAX


async def test_other_contexts_are_asked_before_the_transaction(parcels: Parcels) -> None:
    senders: list[list[str]] = []

    async def prepare(batch: Batch[ParcelRow]) -> None:
        senders.append(batch.named("sender"))

    rows = Request(row(), row("P2", sender="S2"), row("P3", label=""))
    await parcels.importer.run(parcels.save, ParcelRow, rows, operator(), prepare)
    assert senders == [["S1", "S2"]]
