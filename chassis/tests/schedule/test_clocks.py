"""A company's clock: the real one for live companies, without a query; ahead of it for a sandbox, and never back."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import AsyncIterator, Collection
from typing import Any

import pytest
import sqlalchemy as sa

from chassis.auth.identity import ADMINISTRATOR, INTEGRATION, OPERATOR, SERVICE, STAFF, Call, Identity
from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from chassis.replicas.tables import company_replica
from chassis.schedule.clock_service import CompanyClockService
from chassis.schedule.clocks import OFFSET_MAX, CompanyClocks, offset_of
from chassis.schedule.sweeps import Due
from makeready.common.v1 import company_clock_pb2 as pb
from testkit.plugin import PostgresServer

from ..databases import database_with

NOON = datetime.datetime(2026, 3, 8, 12, tzinfo=datetime.UTC)
DAY = datetime.timedelta(days=1)
LIVE_COMPANY, SANDBOX, INACTIVE, ENDED, NOT_ARRIVED = 1, 2, 3, 4, 5
metadata = sa.MetaData()
company = company_replica(metadata)


@pytest.fixture(scope="module")
async def opened(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    async with database_with(postgres_server, "clocks_test", metadata) as database:
        yield database


@pytest.fixture
async def database(opened: Database) -> Database:
    async with opened.connection() as connection:
        await connection.raw.execute("TRUNCATE company")
        await connection.raw.execute(
            "INSERT INTO company (id, version, active, is_sandbox, ended, clock_offset) VALUES"
            " (1, 1, true, false, false, '0'), (2, 1, true, true, false, '1 day'), (3, 1, false, true, false, '1 day'),"
            " (4, 1, true, true, true, '1 day'), (5, 0, true, true, false, '1 day')"
        )
    return opened


@pytest.fixture
def clocks(database: Database) -> CompanyClocks:
    return CompanyClocks(database, company, lambda: NOON)


def call(kind: str, company_id: int, *, is_sandbox: bool = False) -> Call:
    return Call(Identity(kind, "gateway", company_id=company_id, is_sandbox=is_sandbox), "")


@pytest.mark.parametrize("kind", [INTEGRATION, ADMINISTRATOR, STAFF])
async def test_a_live_companys_people_and_integrations_ask_no_database(kind: str) -> None:
    no_database: Any = None
    clocks = CompanyClocks(no_database, company, lambda: NOON)
    assert await clocks.of(call(kind, LIVE_COMPANY)) is clocks.real
    assert await clocks.now(call(kind, LIVE_COMPANY)) == NOON


@pytest.mark.parametrize("kind", [INTEGRATION, ADMINISTRATOR, STAFF, OPERATOR, SERVICE])
async def test_a_sandbox_is_ahead_for_every_caller(clocks: CompanyClocks, kind: str) -> None:
    assert await clocks.now(call(kind, SANDBOX, is_sandbox=kind not in (OPERATOR, SERVICE))) == NOON + DAY


@pytest.mark.parametrize("company_id", [LIVE_COMPANY, 99])
async def test_other_callers_find_the_real_clock_of_a_live_company(clocks: CompanyClocks, company_id: int) -> None:
    assert await clocks.now(call(OPERATOR, company_id)) == NOON


@pytest.mark.parametrize(("company_id", "is_sandbox"), [(LIVE_COMPANY, False), (SANDBOX, True), (99, False)])
async def test_the_replica_says_whether_a_company_is_a_sandbox_where_the_token_does_not(
    clocks: CompanyClocks, company_id: int, is_sandbox: bool
) -> None:
    assert await clocks.is_sandbox(call(OPERATOR, 0), company_id) is is_sandbox
    assert await clocks.is_sandbox(call(INTEGRATION, company_id, is_sandbox=is_sandbox)) is is_sandbox


async def test_a_command_about_a_record_of_another_company_has_that_companys_clock(clocks: CompanyClocks) -> None:
    assert (await clocks.of(call(OPERATOR, 0), company_id=SANDBOX))() == NOON + DAY


async def test_statements_read_the_offset_with_what_they_read_anyway(database: Database, clocks: CompanyClocks) -> None:
    rows = sa.select(company.c.id, offset_of(company.alias("of"), company.c.id)).order_by(company.c.id)
    offsets = [row["clock_offset"] for row in await database.rows(Statement(rows))]
    assert [clocks.ahead_by(offset)() for offset in (*offsets[:2], None)] == [NOON, NOON + DAY, NOON]


async def test_a_clock_goes_forward_and_never_back(clocks: CompanyClocks) -> None:
    async def now() -> datetime.datetime:
        return (await clocks.of_company(SANDBOX))()

    for days, after in ((3, 3), (2, 3), (3, 3), (400, 400)):
        await clocks.advance(SANDBOX, days * DAY)
        assert await now() == NOON + after * DAY
    offsets = [days * DAY for days in range(401, 421)]
    await asyncio.gather(*(clocks.advance(SANDBOX, offset) for offset in reversed(offsets)))
    assert await now() == NOON + offsets[-1]


async def test_a_sandbox_that_has_not_arrived_keeps_its_offset(database: Database, clocks: CompanyClocks) -> None:
    await clocks.advance(77, DAY)
    assert (await clocks.of_company(77))() == NOON + DAY
    stored = await database.row(Statement(sa.text("SELECT version, is_sandbox FROM company WHERE id = 77")))
    assert stored is not None and tuple(stored) == (0, True)


@pytest.mark.parametrize("offset", [-DAY, OFFSET_MAX + datetime.timedelta(microseconds=1)])
async def test_an_offset_out_of_range_is_refused(clocks: CompanyClocks, offset: datetime.timedelta) -> None:
    with pytest.raises(Refusal) as refusal:
        await clocks.advance(SANDBOX, offset)
    assert (refusal.value.status, refusal.value.field) == (400, "offset")


async def test_a_live_companys_clock_is_not_moved(clocks: CompanyClocks) -> None:
    with pytest.raises(Refusal) as refusal:
        await clocks.advance(LIVE_COMPANY, DAY)
    assert refusal.value.status == 404
    assert (await clocks.of_company(LIVE_COMPANY))() == NOON


async def test_active_sandboxes_that_have_arrived_are_swept(clocks: CompanyClocks) -> None:
    assert [(sandbox.sandbox_id, sandbox.clock()) for sandbox in await clocks.sandboxes()] == [(SANDBOX, NOON + DAY)]
    assert (await clocks.sandbox(SANDBOX)).clock() == NOON + DAY
    for company_id in (LIVE_COMPANY, INACTIVE, ENDED, NOT_ARRIVED, 99):
        with pytest.raises(Refusal) as refusal:
            await clocks.sandbox(company_id)
        assert refusal.value.status == 404


async def test_the_gateway_moves_a_clock_and_learns_what_is_due(clocks: CompanyClocks) -> None:
    dues: dict[int, Due] = {SANDBOX: Due(NOON, "ticket.stale")}

    async def next_due(company_id: int) -> Due | None:
        return dues.get(company_id)

    async def do_due(company_id: int) -> dict[str, int]:
        return {"ticket.stale": company_id}

    async def settle(company_id: int, producers: Collection[str]) -> bool:
        return company_id == SANDBOX and list(producers) == ["svc-orders"]

    service, gateway = CompanyClockService(clocks, next_due, do_due, settle), call(SERVICE, 0)
    moved = pb.SetClockRequest(company_id=SANDBOX)
    moved.offset.FromTimedelta(2 * DAY)
    await service.SetClock(moved, gateway)
    assert (await clocks.of_company(SANDBOX))() == NOON + 2 * DAY
    due = await service.NextDue(pb.NextDueRequest(company_id=SANDBOX), gateway)
    assert (due.due_at.ToDatetime(datetime.UTC), due.what) == (NOON, "ticket.stale")
    assert not (await service.NextDue(pb.NextDueRequest(company_id=99), gateway)).HasField("due_at")
    with pytest.raises(Refusal) as refusal:
        await service.NextDue(pb.NextDueRequest(company_id=LIVE_COMPANY), gateway)
    assert refusal.value.status == 404
    assert (await service.DoDue(pb.DoDueRequest(company_id=SANDBOX), gateway)).done == {"ticket.stale": SANDBOX}
    assert (await service.Settle(pb.SettleRequest(company_id=SANDBOX, producers=["svc-orders"]), gateway)).is_settled
    moved.offset.seconds = 10**15
    with pytest.raises(Refusal, match="duration"):
        await service.SetClock(moved, gateway)
