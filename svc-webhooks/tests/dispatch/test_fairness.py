"""Endpoints that hang, fail or are slow must not delay those that answer; the tests observe the order of events."""

import asyncio
import contextlib
import datetime
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable

import pytest

from chassis.db.database import Database
from svc_webhooks.dispatch import sweep as dispatch_sweep
from svc_webhooks.dispatch.scheduler import Scheduler
from svc_webhooks.dispatch.sweep import Sweep
from testkit.processes import free_port

from ..dispatcher import claims_stay_good, dispatcher, happened, now, subscribed
from ..harness import Client, Harness, until
from ..receivers import Authority, Received, Receiver, answering, receiver

FOR_EVER = 3600.0


class Endpoints:
    """Many endpoints of one receiver, with behaviour by the first part of the path. Those that hang do so until
    `let_go`."""

    def __init__(self, endpoint: Receiver) -> None:
        self.let_go = asyncio.Event()
        self.requests: Counter[str] = Counter()
        self.under_way: Counter[str] = Counter()
        self.most_under_way: Counter[str] = Counter()
        endpoint.answer = self._answer

    async def _answer(self, request: Received, writer: asyncio.StreamWriter) -> None:
        path = request.request_line.split()[1]
        kind = path.split("/")[1]
        self.requests[kind] += 1
        self.under_way[path] += 1
        self.most_under_way[path] = max(self.most_under_way[path], self.under_way[path])
        try:
            if kind == "hangs" or (kind == "recovers" and self.requests[kind] > 2):
                await self.let_go.wait()
            elif kind == "late":
                await asyncio.sleep(1.3)
            await answering(500 if kind == "fails" else 200)(request, writer)
        finally:
            self.under_way[path] -= 1


KINDS = {"hangs": 60, "answers": 100, "late": 20, "fails": 20, "recovers": 1}


def urls(kind: str, many: int) -> list[str]:
    return [f"https://{kind}-{number}.endpoints.test/{kind}/{number}" for number in range(many)]


def hosts_and_addresses() -> dict[str, str]:
    """Each endpoint is a host with an address of its own: test_hosts.py has those that share one."""
    return {
        f"{kind}-{number}.endpoints.test": f"127.0.{index}.{number + 1}"
        for index, (kind, many) in enumerate(KINDS.items(), start=10)
        for number in range(many)
    }


@pytest.fixture(scope="module")
async def many(authority: Authority) -> AsyncIterator[Receiver]:
    context = authority.context("*.endpoints.test")
    async with receiver(context, answering(200), free_port(), [*hosts_and_addresses().values()]) as listening:
        yield listening


@pytest.fixture(autouse=True)
def moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a prompt response may take longer: that delays the endpoint's next turn, but fails no test."""
    monkeypatch.setattr(dispatch_sweep, "SLOW_AFTER_SECONDS", 1.0)
    claims_stay_good(monkeypatch)


@pytest.fixture
async def scheduler(
    service: Harness, database: Database, many: Receiver, authority: Authority
) -> AsyncIterator[Scheduler]:
    """Its attempts have no deadline, so only the sweep's own rules let other endpoints through."""
    hosts = {host: (address, many.port) for host, address in hosts_and_addresses().items()}
    async with dispatcher(database, authority.file, hosts, deadline_seconds=FOR_EVER) as running:
        yield running


@pytest.fixture
def endpoints(many: Receiver) -> Endpoints:
    many.requests.clear()
    return Endpoints(many)


@contextlib.asynccontextmanager
async def sweeping(scheduler: Scheduler, endpoints: Endpoints) -> AsyncIterator[Sweep]:
    sweep = Sweep(scheduler.database, scheduler.attempts, now())
    running = asyncio.create_task(sweep.run())
    try:
        yield sweep
    finally:
        endpoints.let_go.set()
        await asyncio.wait_for(running, 60)


def got(endpoints: Endpoints, kind: str, many: int) -> Callable[[], bool]:
    return lambda: endpoints.requests[kind] >= many


async def test_one_endpoint_hangs_and_the_others_get_all_of_theirs(
    scheduler: Scheduler, client: Client, database: Database, endpoints: Endpoints
) -> None:
    await subscribed(database, client.company_id, [*urls("hangs", 1), *urls("answers", 99)])
    await happened(database, client.company_id, 8)
    async with sweeping(scheduler, endpoints) as sweep:
        await until(got(endpoints, "answers", 99 * 8), 60)
        assert 0 < endpoints.requests["hangs"] <= dispatch_sweep.OF_A_SUBSCRIPTION_MAX
        await until(lambda: sweep.counts.attempted == 99 * 8)
    assert sweep.counts.succeeded == 100 * 8


async def test_sixty_that_were_healthy_until_now_hang_and_take_no_place_of_those_that_answer(
    scheduler: Scheduler, client: Client, database: Database, endpoints: Endpoints
) -> None:
    await subscribed(database, client.company_id, [*urls("hangs", 60), *urls("answers", 40)])
    await happened(database, client.company_id, 4)
    async with sweeping(scheduler, endpoints) as sweep:
        await until(lambda: sweep.counts.attempted == 40 * 4, 60)
        assert endpoints.requests["hangs"] > 60  # they had as many attempts as the others
    assert sweep.counts.succeeded == 100 * 4


async def test_more_that_hang_than_there_are_places_give_them_back_after_a_moment(
    scheduler: Scheduler, client: Client, database: Database, endpoints: Endpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch_sweep, "PROMPT_ATTEMPTS_MAX", 8)
    monkeypatch.setattr(dispatch_sweep, "SLOW_ATTEMPTS_MAX", 8)
    monkeypatch.setattr(dispatch_sweep, "UNDER_WAY_MAX", 48)
    await subscribed(database, client.company_id, urls("hangs", 12))
    await subscribed(database, client.company_id, urls("answers", 4))  # last in the queue
    await happened(database, client.company_id, 5)
    async with sweeping(scheduler, endpoints) as sweep:
        await until(lambda: sweep.counts.attempted == 4 * 5, 60)
        assert endpoints.requests["hangs"] <= 48
    assert sweep.counts.succeeded == 16 * 5


async def test_what_is_under_way_has_a_bound_however_many_hang(
    scheduler: Scheduler, client: Client, database: Database, endpoints: Endpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch_sweep, "SLOW_AFTER_SECONDS", 0.05)
    monkeypatch.setattr(dispatch_sweep, "PROMPT_ATTEMPTS_MAX", 8)
    monkeypatch.setattr(dispatch_sweep, "UNDER_WAY_MAX", 24)
    await subscribed(database, client.company_id, urls("hangs", 40))
    await happened(database, client.company_id, 2)
    async with sweeping(scheduler, endpoints) as sweep:
        await until(got(endpoints, "hangs", 24))
        await asyncio.sleep(0.5)
        assert endpoints.under_way.total() == 24
        async with database.connection() as connection:
            claimed = await connection.raw.fetchval("SELECT count(*) FROM delivery WHERE leased_until IS NOT NULL")
        assert claimed == 24  # deliveries that can't be sent are not claimed
    assert sweep.counts.succeeded == 80


async def test_a_subscription_has_so_many_requests_under_way_and_no_more(
    scheduler: Scheduler, client: Client, database: Database, endpoints: Endpoints
) -> None:
    await subscribed(database, client.company_id, [*urls("late", 1), *urls("answers", 1)])
    await happened(database, client.company_id, 40)
    async with sweeping(scheduler, endpoints) as sweep:
        await until(lambda: sweep.counts.attempted == 80, 60)
    assert max(endpoints.most_under_way.values()) <= dispatch_sweep.OF_A_SUBSCRIPTION_MAX


async def test_endpoints_that_fail_or_are_late_delay_no_other(
    scheduler: Scheduler, client: Client, database: Database, endpoints: Endpoints
) -> None:
    await subscribed(
        database, client.company_id, [*urls("late", 20), *urls("fails", 20), *urls("hangs", 20), *urls("answers", 20)]
    )
    await happened(database, client.company_id, 6)
    async with sweeping(scheduler, endpoints) as sweep:
        await until(lambda: sweep.counts.attempted == 60 * 6, 60)
        assert (sweep.counts.succeeded, sweep.counts.failed) == (40 * 6, 20 * 6)
    assert sweep.counts.succeeded == 60 * 6


async def test_one_that_was_failing_and_answers_again_is_served_like_any_other(
    scheduler: Scheduler, client: Client, database: Database, endpoints: Endpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch_sweep, "SLOW_ATTEMPTS_MAX", 2)
    monkeypatch.setattr(dispatch_sweep, "SLOW_AFTER_SECONDS", 3600.0)  # it is slow by its health alone
    await subscribed(database, client.company_id, urls("recovers", 1))
    await happened(database, client.company_id, 30)
    async with database.connection() as connection:
        await connection.raw.execute("UPDATE subscription SET health = 'dead_lettered', failures_in_a_row = 20")
    async with sweeping(scheduler, endpoints) as sweep:
        await until(lambda: endpoints.under_way.total() == dispatch_sweep.OF_A_SUBSCRIPTION_MAX)
    assert sweep.counts.succeeded == 30


async def test_what_is_due_longest_goes_first(
    scheduler: Scheduler, client: Client, database: Database, endpoints: Endpoints, many: Receiver
) -> None:
    await subscribed(database, client.company_id, urls("answers", 1))
    later = await happened(database, client.company_id, 40)
    hour_ago = now() - datetime.timedelta(hours=1)
    sooner = await happened(database, client.company_id, 3, due_at=hour_ago)
    async with sweeping(scheduler, endpoints) as sweep:
        await until(lambda: sweep.counts.attempted == 43)
    assert len(later) == 40 and len(sooner) == 3
    first = [json.loads(request.body)["number"] for request in many.requests]
    assert {0, 1, 2} <= set(first[: dispatch_sweep.OF_A_SUBSCRIPTION_MAX])


async def test_an_attempt_that_cannot_be_recorded_delays_no_other(
    scheduler: Scheduler, client: Client, database: Database, endpoints: Endpoints
) -> None:
    worn_out, *_ = await subscribed(database, client.company_id, [*urls("answers", 1), *urls("late", 1)])
    await happened(database, client.company_id, 30)
    async with database.connection() as connection:  # the number of its next attempt would overflow
        await connection.raw.execute("UPDATE delivery SET attempts = 2147483647 WHERE subscription_id = $1", worn_out)
    async with sweeping(scheduler, endpoints) as sweep:
        await until(lambda: sweep.counts.attempted == 30, 60)
    assert endpoints.requests["answers"] == 30


@pytest.fixture
async def dead(authority: Authority) -> AsyncIterator[dict[str, tuple[str, int]]]:
    """800 hosts, each with an address of its own, that accept connections and say nothing."""
    hosts = {f"dead-{number}.test": f"127.1.{number // 200}.{number % 200 + 1}" for number in range(800)}
    port = free_port()

    async def say_nothing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(FOR_EVER)
        writer.transport.abort()

    server = await asyncio.start_server(say_nothing, [*hosts.values()], port)
    yield {host: (address, port) for host, address in hosts.items()}
    server.close()


@pytest.mark.parametrize("when", ["at once", "meanwhile"])
async def test_eight_hundred_dead_subscriptions_of_one_company_delay_no_other_company(
    service: Harness,
    client: Client,
    database: Database,
    authority: Authority,
    endpoints: Endpoints,
    many: Receiver,
    dead: dict[str, tuple[str, int]],
    when: str,
) -> None:
    """Before: 1,024 attempts hung until their deadline, which is an hour here, and the other company waited for it."""
    hosts = dead | {host: (address, many.port) for host, address in hosts_and_addresses().items()}
    async with dispatcher(database, authority.file, hosts, deadline_seconds=FOR_EVER) as scheduler:
        await subscribed(database, client.company_id, [f"https://{host}/" for host in dead])
        await happened(database, client.company_id, 5)
        await subscribed(database, client.company_id + 700, urls("answers", 1))
        if when == "at once":
            await happened(database, client.company_id + 700, 5)
        sweep = Sweep(scheduler.database, scheduler.attempts, now())
        running = asyncio.create_task(sweep.run())
        if when == "meanwhile":
            await until(lambda: len(sweep._under_way) == dispatch_sweep.UNDER_WAY_MAX, 60)
            await happened(database, client.company_id + 700, 5)
            await sweep.look()
        await until(lambda: sweep.counts.succeeded == 5, 60)
        assert sweep.counts.attempted == 5  # none of the others' has ended
        assert len(sweep._under_way) <= dispatch_sweep.UNDER_WAY_MAX
        running.cancel()
        await asyncio.wait({running})
        for task in list(sweep._under_way):
            task.cancel()
        await until(lambda: not sweep._under_way, 60)
