"""The audit log: entries hold the values that differ, and lists are newest first, for one company."""

from __future__ import annotations

import datetime
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from chassis.auth.identity import Call, IdentityError
from chassis.db.database import Database
from chassis.refusals import Refusal
from chassis.writes.audit import ENTRIES_MAX, Audit
from makeready.common.v1 import audit_pb2 as pb
from testkit.plans import statement_plan
from testkit.plugin import PostgresServer

from ..databases import database_with
from ..parcels import COMPANY, OTHER_COMPANY, audit, clear, metadata, operator, person, service


@pytest.fixture(scope="module")
async def opened(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    async with database_with(postgres_server, "chassis_audit", metadata) as database:
        yield database


@pytest.fixture
async def database(opened: Database) -> Database:
    await clear(opened)
    return opened


@pytest.fixture
def log(database: Database) -> Audit:
    return Audit(audit, database)


async def add(
    database: Database,
    log: Audit,
    subject: str,
    subject_id: int,
    *,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    call: Call | None = None,
    company_id: int = COMPANY,
) -> None:
    async with database.transaction() as connection:
        await log.add(
            connection,
            call or person(),
            company_id,
            f"{subject}.changed",
            subject,
            subject_id,
            before or {},
            after or {},
        )


async def listed(log: Audit, call: Call | None = None, **request: Any) -> list[pb.AuditEntry]:
    response = await log.ListAudit(pb.ListAuditRequest(**{"limit": 50, **request}), call or operator())
    return list(response.entries)


def ids(entries: Sequence[pb.AuditEntry]) -> list[int]:
    return [entry.subject_id for entry in entries]


async def test_an_entry_keeps_the_values_that_differ(database: Database, log: Audit) -> None:
    day = datetime.date(2026, 3, 1)
    await add(
        database,
        log,
        "parcel",
        1,
        before={"label": "a", "grams": 5, "gone": 1, "due": None},
        after={"label": "a", "grams": 6, "fresh": [1], "due": day},
    )
    (entry,) = await listed(log)
    assert json.loads(entry.before) == {"grams": 5, "gone": 1, "due": None}
    assert json.loads(entry.after) == {"grams": 6, "fresh": [1], "due": "2026-03-01"}
    assert (entry.actor, entry.action, entry.subject, entry.subject_id, entry.request_id) == (
        "administrator:3",
        "parcel.changed",
        "parcel",
        1,
        "req-1",
    )
    age = datetime.datetime.now(datetime.UTC) - entry.recorded_at.ToDatetime(datetime.UTC)
    assert abs(age) < datetime.timedelta(minutes=1)


async def test_actors_are_named_by_kind_and_services_by_name(database: Database, log: Audit) -> None:
    for call in (operator(), service("svc-orders"), person(9)):
        await add(database, log, "parcel", 1, call=call)
    assert [entry.actor for entry in await listed(log)] == ["administrator:9", "svc-orders", "operator"]


async def test_an_entry_goes_where_its_transaction_goes(database: Database, log: Audit) -> None:
    with pytest.raises(RuntimeError):
        async with database.transaction() as connection:
            await log.add(connection, person(), COMPANY, "parcel.changed", "parcel", 1, {}, {})
            raise RuntimeError
    assert await listed(log) == []


async def test_entries_are_read_newest_first_a_page_at_a_time(database: Database, log: Audit) -> None:
    for number in range(1, 6):
        await add(database, log, "parcel", number)
    first = await listed(log, limit=3)
    rest = await listed(log, limit=3, before_id=first[-1].id)
    assert (ids(first), ids(rest)) == ([5, 4, 3], [2, 1])


async def test_a_kind_and_one_record_of_it_can_be_asked_for(database: Database, log: Audit) -> None:
    for subject, number in (("parcel", 1), ("sender", 1), ("parcel", 2), ("parcel", 1)):
        await add(database, log, subject, number)
    assert [(one.subject, one.subject_id) for one in await listed(log, subject="parcel")] == [
        ("parcel", 1),
        ("parcel", 2),
        ("parcel", 1),
    ]
    assert ids(await listed(log, subject="parcel", subject_id=1)) == [1, 1]
    assert await listed(log, subject="parcel", subject_id=0) == []


async def test_a_company_reads_its_own_entries_alone(database: Database, log: Audit) -> None:
    await add(database, log, "parcel", 1)
    await add(database, log, "parcel", 2, company_id=OTHER_COMPANY)
    assert ids(await listed(log)) == [1]
    assert ids(await listed(log, operator(OTHER_COMPANY))) == [2]
    with pytest.raises(IdentityError):
        await listed(log, operator(company_id=0))


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": ENTRIES_MAX + 1}, "limit"),
        ({"subject_id": 1}, "subject_id"),
        ({"subject": "a\0"}, "subject"),
    ],
)
async def test_a_request_that_cannot_be_is_refused_by_field(request_: dict[str, Any], field: str, log: Audit) -> None:
    with pytest.raises(Refusal) as refusal:
        await listed(log, **request_)
    assert (refusal.value.status, refusal.value.field) == (400, field)


async def test_a_page_meets_its_own_entries_alone_however_many_there_are(database: Database, log: Audit) -> None:
    async with database.connection() as connection:
        await connection.raw.execute(
            "INSERT INTO audit (company_id, actor, action, subject, subject_id, before, after, request_id)"
            " SELECT 7 + n % 2, '', '', CASE WHEN n % 100 = 1 THEN 'rare' ELSE 'parcel' END, n % 1000, '{}', '{}', ''"
            " FROM generate_series(1, 20000) n"
        )
    values: dict[str, Any] = {"company_id": OTHER_COMPANY, "before_id": 2**63 - 1, "rows": 10}
    for statement, more in (
        (log._all, {}),
        (log._of_kind, {"subject": "rare"}),
        (log._of_one, {"subject": "rare", "subject_id": 501}),
        (log._of_kind, {"subject": "nothing"}),
    ):
        plan = await statement_plan(database, statement, **values, **more)
        assert plan.rows_met <= 2 * 10 and not plan.whole_tables, more
