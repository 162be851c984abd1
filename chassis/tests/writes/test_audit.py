"""The audit log: entries hold the values that differ, and lists are newest first, for one company."""

from __future__ import annotations

import datetime
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from chassis.auth.identity import STAFF, Call, Identity, IdentityError
from chassis.db.database import Database
from chassis.refusals import Refusal
from chassis.writes.audit import ENTRIES_MAX, Audit
from makeready.common.v1 import audit_pb2 as pb
from testkit.plans import statement_plan
from testkit.plugin import PostgresServer

from ..databases import database_with
from ..parcels import COMPANY, OTHER_COMPANY, audit, clear, metadata, operator, person, service

NOON = datetime.datetime(2031, 5, 6, 12, tzinfo=datetime.UTC)
AGES_AGO, IN_AGES = NOON.replace(year=1980), NOON.replace(year=2200)


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
    instants = {name: request.pop(name) for name in ("since", "until") if name in request}
    list_request = pb.ListAuditRequest(**{"limit": 50, **request})
    for name, instant in instants.items():
        getattr(list_request, name).FromDatetime(instant)
    response = await log.ListAudit(list_request, call or operator())
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


async def test_staff_see_the_entries_of_one_record_of_a_kind_that_they_may_open(database: Database) -> None:
    log = Audit(audit, database, for_staff=["parcel"])
    for subject, number in (("parcel", 1), ("parcel", 2), ("company", COMPANY)):
        await add(database, log, subject, number, after={"a": 1})
    staff = Call(Identity(STAFF, "gateway", COMPANY, staff_id=5), "req-1")
    assert ids(await listed(log, staff, subject="parcel", subject_id=1)) == [1]
    for more in ({}, {"subject": "parcel"}, {"subject": "company", "subject_id": COMPANY}, {"actor": "staff:5"}):
        with pytest.raises(Refusal) as refusal:
            await listed(log, staff, **more)
        assert refusal.value.status == 403, more
    stranger = Call(Identity(STAFF, "gateway", OTHER_COMPANY, staff_id=6), "req-1")
    assert await listed(log, stranger, subject="parcel", subject_id=1) == []


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
    second = await listed(log, limit=3, before_id=first[-1].id)
    assert (ids(first), ids(second)) == ([5, 4, 3], [2, 1])


async def test_a_kind_and_one_record_of_it_can_be_asked_for(database: Database, log: Audit) -> None:
    for subject, number in (("parcel", 1), ("sender", 1), ("parcel", 2), ("parcel", 1)):
        await add(database, log, subject, number)
    assert [(entry.subject, entry.subject_id) for entry in await listed(log, subject="parcel")] == [
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
        ({"actor": "a\0"}, "actor"),
        ({"request_id": "a\0"}, "request_id"),
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
            " SELECT 7 + n % 2, CASE WHEN n % 20 < 10 THEN 'staff:3' ELSE 'staff:4' END, '', CASE WHEN n % 100 = 1 THEN"
            " 'rare' ELSE 'parcel' END, n % 1000, '{}', '{}', 'r-' || n FROM generate_series(1, 20000) n"
        )
    values: dict[str, Any] = {"company_id": OTHER_COMPANY, "after_id": 0, "before_id": 2**63 - 1, "rows": 10}
    values |= {"since": AGES_AGO, "until": IN_AGES}
    filters: tuple[dict[str, Any], ...] = (
        {},
        {"subject": "rare"},
        {"subject": "rare", "subject_id": 501},
        {"subject": "nothing"},
        {"actor": "staff:3"},
        {"actor": "nobody"},
        {"actor": "staff:3", "subject": "rare"},
        {"actor": "staff:3", "subject": "nothing"},
        {"actor": "nobody", "subject": "rare", "subject_id": 501},
        {"request_id": "r-7"},
        {"request_id": "r-7", "actor": "nobody", "subject": "rare", "subject_id": 501},
    )
    for more in filters:
        plan = await statement_plan(database, log._pages[frozenset(more)], **values, **more)
        assert plan.rows_met <= 2 * 10 and not plan.whole_tables, more
    for statement, instant in ((log._last_before, {"since": IN_AGES}), (log._first_after, {"until": AGES_AGO})):
        plan = await statement_plan(database, statement, company_id=OTHER_COMPANY, **instant)
        assert plan.returned == 1 and plan.rows_met <= 1 and not plan.whole_tables


async def recorded(database: Database, *minutes: int, subject: str = "parcel") -> None:
    """Entries of these ages, in minutes, in the order of their ids."""
    async with database.connection() as connection:
        for number, age in enumerate(minutes, start=1):
            await connection.raw.execute(
                "INSERT INTO audit (company_id, actor, action, subject, subject_id, before, after, request_id,"
                " recorded_at) VALUES ($1, 'staff:' || $2 % 2, '', $3, $2, '{}', '{}', 'r', $4)",
                COMPANY,
                number,
                subject,
                NOON - datetime.timedelta(minutes=age),
            )


async def test_entries_of_one_actor_and_of_one_request_can_be_asked_for(database: Database, log: Audit) -> None:
    for number, call in enumerate((operator(), person(9), person(8), person(9)), start=1):
        await add(database, log, "parcel", number, call=call)
    await add(database, log, "sender", 5, call=person(9))
    await add(database, log, "sender", 6, call=Call(person(9).identity, "req-2"))
    await add(database, log, "sender", 7, call=person(9), company_id=OTHER_COMPANY)
    assert ids(await listed(log, actor="administrator:9")) == [6, 5, 4, 2]
    assert ids(await listed(log, actor="administrator:9", subject="parcel")) == [4, 2]
    assert ids(await listed(log, actor="administrator:9", subject="parcel", subject_id=2)) == [2]
    assert ids(await listed(log, actor="administrator:8", subject="parcel", subject_id=2)) == []
    assert ids(await listed(log, request_id="req-2")) == [6]
    assert ids(await listed(log, request_id="req-2", subject="parcel")) == []
    assert await listed(log, actor="") == []


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [(None, None, [6, 5, 4, 3, 2, 1]), (60, None, [6, 5, 4, 3]), (None, 60, [2, 1]), (90, 20, [4, 3, 2]), (5, 0, [6])],
)
async def test_entries_of_a_time_can_be_asked_for(
    database: Database, log: Audit, since: int | None, until: int | None, expected: list[int]
) -> None:
    await recorded(database, 600, 90, 60, 30, 20, 5)
    for more in ({}, {"subject": "parcel"}, {"request_id": "r"}):
        instants = {"since": since, "until": until}
        within: dict[str, Any] = {
            name: NOON - datetime.timedelta(minutes=age) for name, age in instants.items() if age is not None
        }
        assert ids(await listed(log, **(within | more))) == expected


async def test_an_entry_is_found_though_the_databases_clock_was_set_back_before_it(
    database: Database, log: Audit
) -> None:
    await recorded(database, 60, 50, 59, 49)
    within: dict[str, Any] = {"since": NOON - datetime.timedelta(minutes=55)}
    assert ids(await listed(log, **within)) == [4, 2]
    within = {"until": NOON - datetime.timedelta(minutes=55)}
    assert ids(await listed(log, **within)) == [3, 1]


async def test_pages_of_a_filter_follow_one_another(database: Database, log: Audit) -> None:
    await recorded(database, *range(20, 0, -1))
    entry_ids: list[int] = []
    more: dict[str, Any] = {}
    pages = 0
    while True:
        request = pb.ListAuditRequest(actor="staff:1", limit=4, **more)
        request.since.FromDatetime(NOON - datetime.timedelta(minutes=18))
        page = await log.ListAudit(request, operator())
        entry_ids += ids(page.entries)
        pages += 1
        if not page.HasField("next_before_id"):
            break
        more = {"before_id": page.next_before_id}
    assert (entry_ids, pages) == ([19, 17, 15, 13, 11, 9, 7, 5, 3], 3)


async def test_a_time_long_ago_costs_its_own_entries_alone(database: Database, log: Audit) -> None:
    async with database.connection() as connection:
        await connection.raw.execute(
            "INSERT INTO audit (company_id, actor, action, subject, subject_id, before, after, request_id, recorded_at)"
            " SELECT $1, '', '', 'parcel', n, '{}', '{}', '', $2::timestamptz + n * interval '1 minute'"
            " FROM generate_series(1, 20000) n",
            COMPANY,
            NOON,
        )
    since, until = (NOON + datetime.timedelta(minutes=minutes) for minutes in (1000, 1005))
    values: dict[str, Any] = {"company_id": COMPANY, "since": since, "until": until, "rows": 50}
    values["after_id"] = await log._id_before(COMPANY, since)
    values["before_id"] = await log._id_after(COMPANY, until)
    plan = await statement_plan(database, log._pages[frozenset()], **values)
    assert plan.returned == 5 and plan.rows_met <= 5 + 2 * 11 and not plan.whole_tables


async def test_values_that_were_removed_from_a_record_are_not_returned(database: Database) -> None:
    """The context finds them, and each page asks once for all of its entries. The rows stay as they are."""
    questions: list[tuple[int, list[int]]] = []

    async def removed(asked_database: Database, company_id: int, entries: Sequence[Any]) -> dict[int, Sequence[str]]:
        assert asked_database is database
        questions.append((company_id, [entry["subject_id"] for entry in entries]))
        return {entry["id"]: ("words", "size") for entry in entries if entry["subject_id"] == 12}

    log = Audit(audit, database, removed=removed)
    for subject_id in (12, 13):
        values = {"words": "Ada has the key", "size": 4, "colour": "red"}
        await add(
            database, log, "parcel", subject_id, before=values, after=values | {"words": "x", "size": 5, "colour": None}
        )
    answer = await log.ListAudit(pb.ListAuditRequest(limit=10), person())
    assert [(json.loads(entry.before), json.loads(entry.after)) for entry in answer.entries] == [
        (
            {"words": "Ada has the key", "size": 4, "colour": "red"},
            {"words": "x", "size": 5, "colour": None},
        ),
        ({"colour": "red"}, {"colour": None}),
    ]
    assert questions == [(COMPANY, [13, 12])]
    async with database.connection() as connection:
        (row,) = await connection.raw.fetch(f"SELECT before::text FROM {audit.name} WHERE subject_id = 12")
    assert "Ada has the key" in row["before"]
    await log.ListAudit(pb.ListAuditRequest(limit=10, subject="crate"), person())
    assert len(questions) == 1, "an empty page has nothing to ask for"
