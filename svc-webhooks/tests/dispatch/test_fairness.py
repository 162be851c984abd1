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

from ..dispatcher import dispatcher, happened, now, subscribed
from ..harness import Client, Harness, until
from ..receivers import Authority, Received, Receiver, answering

FOR_EVER = 3600.0


class Endpoints:
    """Many endpoints of one receiver, with behaviour by the first part of the path. Those that hang do so until
    `let_go`."""

    def __init__(self, found: Receiver) -> None:
        self.let_go = asyncio.Event()
        self.requests: Counter[str] = Counter()
        self.under_way: Counter[str] = Counter()
        self.most_under_way: Counter[str] = Counter()
        found.answer = self._answer

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


def urls(kind: str, many: int) -> list[str]:
    return [f"https://receiver.test/{kind}/{number}" for number in range(many)]


@pytest.fixture(autouse=True)
def moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a prompt response may take longer: that delays the endpoint's next turn, but fails no test."""
    monkeypatch.setattr(dispatch_sweep, "SLOW_AFTER_SECONDS", 1.0)


@pytest.fixture
async def scheduler(
    service: Harness, database: Database, receivers: dict[str, Receiver], authority: Authority
) -> AsyncIterator[Scheduler]:
    """Its attempts have no deadline, so only the sweep's own rules let other endpoints through."""
    hosts = {host: ("127.0.0.1", one.port) for host, one in receivers.items()}
    async with dispatcher(database, authority.file, hosts, deadline_seconds=FOR_EVER) as found:
        yield found


@pytest.fixture
def endpoints(receivers: dict[str, Receiver]) -> Endpoints:
    return Endpoints(receivers["receiver.test"])


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
        await until(lambda: sweep.counts.attempted == 99 * 8, 30)
    assert sweep.counts.succeeded == 100 * 8


async def test_sixty_that_were_healthy_until_now_hang_and_take_no_place_of_those_that_answer(
    scheduler: Scheduler, client: Client, database: Database, endpoints: Endpoints
) -> None:
    await subscribed(database, client.company_id, [*urls("hangs", 60), *urls("answers", 40)])
    await happened(database, client.company_id, 4)
    async with sweeping(scheduler, endpoints) as sweep:
        await until(lambda: sweep.counts.attempted == 40 * 4, 60)
        assert endpoints.requests["hangs"] > 60  # they had as many permits as the others
    assert sweep.counts.succeeded == 100 * 4


async def test_more_that_hang_than_there_are_places_give_them_back_after_a_moment(
    scheduler: Scheduler, client: Client, database: Database, endpoints: Endpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch_sweep, "PERMITS_MAX", 8)
    monkeypatch.setattr(dispatch_sweep, "SLOW_PERMITS_MAX", 8)
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
    monkeypatch.setattr(dispatch_sweep, "PERMITS_MAX", 8)
    monkeypatch.setattr(dispatch_sweep, "UNDER_WAY_MAX", 24)
    await subscribed(database, client.company_id, urls("hangs", 40))
    await happened(database, client.company_id, 2)
    async with sweeping(scheduler, endpoints) as sweep:
        await until(got(endpoints, "hangs", 24), 30)
        await asyncio.sleep(0.5)
        assert endpoints.under_way.total() == 24
        async with database.connection() as connection:
            leased = await connection.raw.fetchval("SELECT count(*) FROM delivery WHERE leased_until IS NOT NULL")
        assert leased == 24  # deliveries that can't be sent are not claimed
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
    monkeypatch.setattr(dispatch_sweep, "SLOW_PERMITS_MAX", 2)
    await subscribed(database, client.company_id, urls("recovers", 1))
    await happened(database, client.company_id, 30)
    async with database.connection() as connection:
        await connection.raw.execute("UPDATE subscription SET health = 'dead_lettered', failures_in_a_row = 20")
    async with sweeping(scheduler, endpoints) as sweep:
        await until(lambda: endpoints.under_way.total() == dispatch_sweep.OF_A_SUBSCRIPTION_MAX, 30)
    assert sweep.counts.succeeded == 30


async def test_what_is_due_longest_goes_first(
    scheduler: Scheduler, client: Client, database: Database, endpoints: Endpoints, receivers: dict[str, Receiver]
) -> None:
    await subscribed(database, client.company_id, urls("answers", 1))
    later = await happened(database, client.company_id, 40)
    hour_ago = now() - datetime.timedelta(hours=1)
    sooner = await happened(database, client.company_id, 3, due_at=hour_ago)
    async with sweeping(scheduler, endpoints) as sweep:
        await until(lambda: sweep.counts.attempted == 43, 30)
    assert len(later) == 40 and len(sooner) == 3
    first = [json.loads(one.body)["number"] for one in receivers["receiver.test"].requests]
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
