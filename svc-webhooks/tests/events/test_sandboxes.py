"""Events of a sandbox: their instants are those of its clock, and so is their retention."""

from __future__ import annotations

import asyncio
import datetime
import uuid
from functools import partial
from typing import Any

import pytest

from chassis.db.database import Database
from chassis.schedule.clocks import Companies, CompanyClocks
from makeready.common.v1.company_clock_pb2 import SettleRequest
from makeready.webhooks.v1 import webhooks_pb2 as pb
from svc_webhooks.events import partitions
from svc_webhooks.events.partitions import Partitions
from svc_webhooks.events.queries.feed import last_before
from svc_webhooks.schema import company

from ..dispatcher import happened, now, subscribed
from ..harness import HOUR, Client, Producer, companies, operator
from ..sandboxes import DAY, SandboxClient, make_sandbox


def _same(at: datetime.datetime) -> datetime.datetime:
    return at


async def rows(database: Database, query: str, *values: object) -> list[Any]:
    async with database.connection() as connection:
        return list(await connection.raw.fetch(query, *values))


async def stored_on(database: Database, company_id: int, day: datetime.datetime, events: int) -> list[uuid.UUID]:
    """Stores events as of this instant of the sandbox's clock."""
    await CompanyClocks(database, company).advance(company_id, day - now())
    return await happened(database, company_id, events, occurred_at=day)


async def kept(database: Database, sub_id: int) -> set[uuid.UUID]:
    """The events of a subscription's deliveries; checks that event, feed and delivery are there together."""
    query = """SELECT e.event_id, f.event_id AS fed FROM delivery d FULL JOIN event e USING (event_id)
        LEFT JOIN feed_entry f USING (event_id) WHERE d.subscription_id = $1"""
    of_subscription = await rows(database, query, sub_id)
    assert all(row["event_id"] is not None and row["fed"] is not None for row in of_subscription)
    return {uuid.UUID(int=row["event_id"].int) for row in of_subscription}


async def test_a_sandboxs_events_go_by_its_own_clock_and_no_others(
    sandbox_id: int, sandboxes_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "EVENTS_AT_ONCE", 2)
    other, live = next(companies), next(companies)
    await make_sandbox(sandboxes_database, other)
    subs = {
        company_id: (await subscribed(sandboxes_database, company_id, ["https://a.test/"]))[0]
        for company_id in (sandbox_id, other, live)
    }
    first = (now() + DAY).replace(hour=12)
    for company_id in (live, other):
        await happened(sandboxes_database, company_id, 3)
    old = await stored_on(sandboxes_database, sandbox_id, first, 5)
    new = await stored_on(sandboxes_database, sandbox_id, first + DAY, 3)
    async with sandboxes_database.connection() as connection:
        attempted = "INSERT INTO attempt (event_id, subscription_id, number, started_at, duration_milliseconds, error,"
        values = "response_excerpt, state) SELECT unnest($1::uuid[]), $2, 1, $3, 1, 'timeout', '', 'parked'"
        await connection.raw.execute(f"{attempted} {values}", [*old, *new], subs[sandbox_id], first)
    keeper = Partitions(sandboxes_database, now)
    last_instant = first.replace(hour=0, minute=0, second=0, microsecond=0) + 31 * DAY
    for at, remaining in ((last_instant - HOUR, {*old, *new}), (last_instant, {*new})):
        await keeper.expire(Companies(partial(_same, at), sandbox_id))
        assert await kept(sandboxes_database, subs[sandbox_id]) == remaining
    attempts = await rows(
        sandboxes_database, "SELECT event_id FROM attempt WHERE subscription_id = $1", subs[sandbox_id]
    )
    assert {uuid.UUID(int=row["event_id"].int) for row in attempts} == {*new}
    assert len(await kept(sandboxes_database, subs[live])) == len(await kept(sandboxes_database, subs[other])) == 3
    (feed,) = await rows(sandboxes_database, "SELECT * FROM feed WHERE company_id = $1", sandbox_id)
    assert (feed["begins_after"], feed["position"]) == (5, 8) and feed["begins_after_event_id"] == old[-1]


async def test_a_kill_between_two_batches_is_made_good_by_the_next_call(
    sandbox_id: int, sandboxes_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "EVENTS_AT_ONCE", 2)
    (sub_id,) = await subscribed(sandboxes_database, sandbox_id, ["https://a.test/"])
    await stored_on(sandboxes_database, sandbox_id, now() + DAY, 5)

    def killed(point: str) -> None:
        assert point == "sandbox-shortened"
        raise KeyboardInterrupt

    later = Companies(lambda: now() + 40 * DAY, sandbox_id)
    for remaining in (3, 1):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(partitions, "failpoint", killed)
            await Partitions(sandboxes_database, now).expire(later)
        assert len(await kept(sandboxes_database, sub_id)) == remaining
    await asyncio.gather(*(Partitions(sandboxes_database, now).expire(later) for _ in range(3)))
    assert not await kept(sandboxes_database, sub_id)


async def test_a_sandboxs_tests_go_too(client: Client, database: Database) -> None:
    await make_sandbox(database, client.company_id)
    sandbox = SandboxClient(client)
    sub_id = (await client.create(who=sandbox.caller))[1]["entity_id"]
    await client.call(pb.SendTestRequest(sub_id=sub_id, idempotency_key="test"), operator())
    assert len(await client.deliveries(sub_id)) == 1
    await sandbox.set_clock(32 * DAY)
    await sandbox.do_due()
    assert not await client.deliveries(sub_id)


async def test_stored_instants_never_go_back_while_the_clock_moves(
    sandbox_id: int, sandboxes_database: Database
) -> None:
    clocks = CompanyClocks(sandboxes_database, company)
    await subscribed(sandboxes_database, sandbox_id, ["https://a.test/"])
    moving = True

    async def write() -> None:
        while moving:
            occurred_at = (await clocks.of_company(sandbox_id))()
            await happened(sandboxes_database, sandbox_id, 2, occurred_at=occurred_at)

    writers = [asyncio.create_task(write()) for _ in range(4)]
    for days in range(1, 31):
        await clocks.advance(sandbox_id, days * DAY)
        began = now() + days * DAY
        await happened(sandboxes_database, sandbox_id, occurred_at=began)
        (newest,) = await rows(
            sandboxes_database, "SELECT max(stored_at) AS at FROM event WHERE company_id = $1", sandbox_id
        )
        assert newest["at"] >= began
    moving = False
    await asyncio.gather(*writers)
    query = """SELECT f.stored_at, e.occurred_at, e.stored_at AS event_stored_at, d.due_at
        FROM feed_entry f JOIN event e USING (event_id) JOIN delivery d USING (event_id)
        WHERE f.company_id = $1 ORDER BY f.position"""
    feed = await rows(sandboxes_database, query, sandbox_id)
    instants = [row["stored_at"] for row in feed]
    assert len(feed) > 60 and instants == sorted(instants)
    for row in feed:
        assert row["occurred_at"] <= row["event_stored_at"] and row["occurred_at"] <= row["stored_at"]
        assert row["due_at"] == row["occurred_at"].replace(microsecond=0)
    for days in (3, 17):
        at = now() + days * DAY
        assert await last_before(sandboxes_database, sandbox_id, at) == sum(instant < at for instant in instants)


async def test_lists_since_an_instant_of_the_sandboxs_clock_begin_there(
    client: Client, database: Database, tickets: Producer
) -> None:
    await make_sandbox(database, client.company_id)
    sandbox = SandboxClient(client)
    sub_id = (await client.create(who=sandbox.caller))[1]["entity_id"]
    by_day = {}
    for day in (10, 20, 35):
        await sandbox.set_clock(day * DAY)
        by_day[day] = await tickets.ticket_created(client.company_id, occurred_at=now() + day * DAY)
        await sandbox.ask(SettleRequest())
    assert len(by_day) == 3
    for since, until, days in ((0, None, [20, 10]), (15, None, [20]), (25, None, []), (5, 15, [10]), (15, 40, [20])):
        request = pb.ListDeliveriesRequest(sub_id=sub_id)
        request.since.FromDatetime(now() + since * DAY)
        if until is not None:
            request.until.FromDatetime(now() + until * DAY)
        listed = [delivery.event_id for delivery in (await client.call(request, operator())).deliveries]
        assert [event_id for event_id in listed if event_id != by_day[35]] == [by_day[day] for day in days]
        assert (by_day[35] in listed) == (until is None or until > 35)
    counted = await client.call(pb.CountDeliveriesRequest(sub_id=sub_id), operator())
    first, last = (at.ToDatetime(datetime.UTC) - now() for at in (counted.first_made_at, counted.last_made_at))
    assert 9 * DAY < first < 10 * DAY and 34 * DAY < last < 35 * DAY
    assert 40 * DAY < counted.first_expires_at.ToDatetime(datetime.UTC) - now() < 42 * DAY
