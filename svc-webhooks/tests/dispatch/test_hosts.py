"""What a receiver gets at once, whichever companies and subscriptions its deliveries are of."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from chassis.db.database import Database
from svc_webhooks.dispatch import hosts as dispatch_hosts
from svc_webhooks.dispatch.hosts import Hosts
from svc_webhooks.dispatch.queries.hosts import answered
from svc_webhooks.dispatch.scheduler import Scheduler
from svc_webhooks.dispatch.sweep import Sweep

from ..administrator import Administrator
from ..dispatcher import claims_stay_good, dispatcher, happened, now, subscribed
from ..harness import Client, Harness, Producer, until
from ..receivers import Answer, Authority, Received, Receiver, answering, receiver

NAMES = [f"name-{number}.many.test" for number in range(40)]


@pytest.fixture
async def failing(authority: Authority) -> AsyncIterator[Receiver]:
    """A receiver that has never answered 2xx, under many names."""
    async with receiver(authority.context("*.many.test"), answering(500)) as unproven:
        yield unproven


@pytest.fixture
async def scheduler(
    service: Harness,
    database: Database,
    failing: Receiver,
    receivers: dict[str, Receiver],
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Scheduler]:
    claims_stay_good(monkeypatch)
    hosts = dict.fromkeys(NAMES, ("127.0.0.1", failing.port))
    hosts["second.test"] = ("127.0.0.1", receivers["second.test"].port)
    async with dispatcher(database, authority.file, hosts) as running:
        yield running


def urls(names: list[str], many: int = 1) -> list[str]:
    return [f"https://{name}/{number}" for number in range(many) for name in names]


def held(until_set: asyncio.Event, status: int = 500) -> Answer:
    async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
        await until_set.wait()
        await answering(status)(request, writer)

    return answer


@contextlib.asynccontextmanager
async def sweeping(scheduler: Scheduler, let_go: asyncio.Event) -> AsyncIterator[Sweep]:
    """Ends without what still waits for its receiver."""
    sweep = Sweep(scheduler.database, scheduler.attempts, now())
    running = asyncio.create_task(sweep.run())
    try:
        yield sweep
    finally:
        sweep.retire()
        let_go.set()
        await asyncio.wait_for(running, 60)


async def used(database: Database) -> int:
    """Deliveries that used a rung of the ladder."""
    async with database.connection() as connection:
        count: int = await connection.raw.fetchval("SELECT count(*) FROM delivery WHERE rung > 0 OR attempts > 0")
    return count


async def test_eight_hundred_subscriptions_to_one_host_make_no_weapon(
    client: Client, tickets: Producer, database: Database, receivers: dict[str, Receiver]
) -> None:
    """Before: 4,000 posts in one sweep."""
    victim, other = receivers["unwilling.test"], client.of(client.company_id + 700)
    victim.answer = answering(404)
    ids = await subscribed(database, client.company_id, [f"https://unwilling.test/?{number}" for number in range(800)])
    await other.create({"destination_url": "https://second.test/", "events": ["ticket.created"]})
    for number in range(5):
        await tickets.ticket_created(client.company_id, number)
        await tickets.ticket_created(other.company_id, number)
    counts = await client.sweep()
    assert len(receivers["second.test"].requests) == 5
    assert len(victim.requests) <= 600
    assert victim.most_at_once <= 16
    assert counts["succeeded"] == 5
    # A post may come twice in an attempt: a pooled connection that the receiver closes at its reuse is replaced.
    assert 100 < counts["attempted"] - 5 <= len(victim.requests)
    assert counts["attempted"] + counts["waiting_for_host"] == 5 + 4000
    assert await used(database) == counts["attempted"]  # what waits has used no rung
    again = await client.sweep()  # within the minute
    assert len(victim.requests) <= 600
    assert again["waiting_for_host"] == 4000 - (counts["attempted"] - 5) - again["attempted"]
    assert {len(delivery.attempts) for delivery in await client.deliveries(ids[-1])} <= {0, 1}


async def test_a_new_receiver_gets_so_many_a_minute_and_the_rest_follows(
    scheduler: Scheduler, client: Client, database: Database, failing: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch_hosts, "NEW_IN_A_MINUTE", 20)
    monkeypatch.setattr(dispatch_hosts, "MINUTE_SECONDS", 3600.0)
    await subscribed(database, client.company_id, urls(NAMES[:1], 10))
    await happened(database, client.company_id, 5)
    _, counts = await asyncio.wait_for(scheduler.sweep(now()), 60)
    assert counts.attempted + counts.waiting_for_host == 50
    assert 0 < counts.attempted <= 20
    monkeypatch.setattr(dispatch_hosts, "MINUTE_SECONDS", 2.0)
    await until(lambda: len(failing.requests) == 50, 60)  # without another command
    await until(lambda: not scheduler._sweeps)
    assert await used(database) == 50


def test_a_minute_is_any_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    instant = 1000.0
    monkeypatch.setattr("svc_webhooks.dispatch.hosts.time.monotonic", lambda: instant)
    host = dispatch_hosts._Receiver("victim.test")
    begun = 0
    for _ in range(100):  # ten a second, each over at once
        for _ in range(10):
            if host.enter_at_once(1):
                begun += 1
                host.leave(1)
        instant += 1.0
        if instant == 1059.0:
            assert begun == 450
    assert 450 + 390 <= begun <= 450 + 400
    assert host.enter_at_once(2)  # another company has its part of the minute
    host.take_back(2)  # an attempt that was not made
    instant += 60.0
    assert host.is_idle


async def test_many_names_of_one_address_share_its_places(
    scheduler: Scheduler, client: Client, database: Database, failing: Receiver
) -> None:
    let_go = asyncio.Event()
    failing.answer = held(let_go)
    await subscribed(database, client.company_id, urls(NAMES))
    await happened(database, client.company_id, 3)
    async with sweeping(scheduler, let_go) as sweep:
        await until(lambda: len(failing.requests) == 12)
        await until(lambda: len(sweep.aside) >= len(NAMES) - 12)
        async with database.connection() as connection:
            claimed = await connection.raw.fetchval("SELECT count(*) FROM delivery WHERE leased_until IS NOT NULL")
        assert claimed == 12
        await asyncio.sleep(dispatch_hosts.PATIENCE_SECONDS)
        assert failing.most_at_once == 12
    assert failing.most_at_once == 12
    assert await used(database) == sweep.counts.attempted == len(failing.requests)


async def test_companies_share_a_receivers_places(
    scheduler: Scheduler, client: Client, database: Database, failing: Receiver
) -> None:
    let_go = asyncio.Event()
    failing.answer = held(let_go)
    for company_id in (client.company_id, client.company_id + 700):
        await subscribed(database, company_id, [f"https://{NAMES[0]}/{company_id}/{number}" for number in range(30)])
        await happened(database, company_id, 3)
    async with sweeping(scheduler, let_go):
        await until(lambda: len(failing.requests) == 14)
        paths = [request.request_line.split("/")[1] for request in failing.requests]
        assert min(paths.count(str(client.company_id)), paths.count(str(client.company_id + 700))) >= 6


async def test_the_first_2xx_makes_a_receiver_one_of_many_places_for_ever(
    scheduler: Scheduler, client: Client, database: Database, failing: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch_hosts, "NEW_IN_A_MINUTE", 10)
    failing.answer = answering(200)
    await subscribed(database, client.company_id, urls(NAMES[:1], 10))
    await happened(database, client.company_id, 5)
    _, counts = await asyncio.wait_for(scheduler.sweep(now()), 60)
    assert (counts.succeeded, counts.waiting_for_host) == (50, 0)
    keys = {NAMES[0], f"127.0.0.1:{failing.port}"}
    assert await answered(database, [*keys, NAMES[1]]) == keys
    later = Hosts(database)  # as after a restart
    await later.learn([NAMES[0], NAMES[1]])
    assert [later.is_new(name) for name in NAMES[:2]] == [False, True]


async def test_a_known_receiver_has_so_many_at_once_and_slow_attempts_give_their_places_back(
    scheduler: Scheduler, client: Client, database: Database, failing: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svc_webhooks.dispatch.sweep.SLOW_AFTER_SECONDS", 3600.0)
    failing.answer = answering(200)
    await subscribed(database, client.company_id, urls(NAMES[:1], 100))
    await happened(database, client.company_id)
    await asyncio.wait_for(scheduler.sweep(now()), 60)
    let_go = asyncio.Event()
    failing.answer, before = held(let_go), len(failing.requests)
    await happened(database, client.company_id)
    async with sweeping(scheduler, let_go):
        await until(lambda: len(failing.requests) == before + 48)
        await asyncio.sleep(0.3)
        assert len(failing.requests) == before + 48
        monkeypatch.setattr("svc_webhooks.dispatch.sweep.SLOW_AFTER_SECONDS", 0.0)
        await until(lambda: len(failing.requests) >= before + 96)  # the first ones have not ended
    assert await used(database) == 200 - await due(database)


async def due(database: Database) -> int:
    async with database.connection() as connection:
        count: int = await connection.raw.fetchval("SELECT count(*) FROM delivery WHERE attempts = 0")
    return count


async def test_a_retry_counts_as_well_and_waits_if_there_is_no_place(
    scheduler: Scheduler, client: Client, database: Database, failing: Receiver
) -> None:
    let_go = asyncio.Event()
    failing.answer = held(let_go)
    await subscribed(database, client.company_id, urls(NAMES[:1], 12))
    ids = await happened(database, client.company_id)
    async with sweeping(scheduler, let_go):
        await until(lambda: len(failing.requests) == 12)
        (sub_id,) = await subscribed(database, client.company_id, urls(NAMES[:1]))
        async with database.connection() as connection:
            await connection.raw.execute(
                "INSERT INTO delivery (event_id, subscription_id, due_at, rung, attempts) VALUES ($1, $2, now(), 6, 6)",
                ids[0],
                sub_id,
            )
        assert not await scheduler.attempt_now(ids[0], sub_id)
        assert len(failing.requests) == 12
        async with database.connection() as connection:
            row = await connection.raw.fetchrow("SELECT * FROM delivery WHERE subscription_id = $1", sub_id)
        assert (row["state"], row["attempts"], row["leased_until"]) == ("waiting", 6, None)
    assert await scheduler.attempt_now(ids[0], sub_id)
    (delivery,) = await Administrator(client).deliveries(sub_id)
    assert [(attempt.number, attempt.status) for attempt in delivery.attempts] == [(7, 500)]


async def test_a_sweep_that_is_requested_again_takes_over_what_waits(
    scheduler: Scheduler, client: Client, database: Database, failing: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch_hosts, "NEW_IN_A_MINUTE", 8)
    await subscribed(database, client.company_id, urls(NAMES[:1], 5))
    await happened(database, client.company_id, 10)
    for _ in range(4):
        _, counts = await asyncio.wait_for(scheduler.sweep(now()), 60)
        assert counts.waiting_for_host == 50 - len(failing.requests)
        assert len(scheduler._sweeps) <= 2
    await until(lambda: len(scheduler._sweeps) == 1)
    assert len(failing.requests) <= 8
