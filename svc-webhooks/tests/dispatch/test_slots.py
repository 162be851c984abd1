"""Slots when the clock is set or the database goes away."""

import asyncio
import datetime

import pytest

from chassis.db.database import Database
from svc_webhooks.dispatch import sweep
from testkit.patience import PATIENCE_SECONDS

from ..dispatcher import dispatcher, happened, now, subscribed
from ..harness import Client, until
from ..receivers import Authority, Received, Receiver, answering


async def test_a_clock_that_was_years_ahead_and_is_set_right_stops_no_sweep(
    client: Client, database: Database, receivers: dict[str, Receiver], authority: Authority
) -> None:
    endpoint = receivers["receiver.test"]
    ahead = [datetime.timedelta(days=1000)]
    async with dispatcher(
        database,
        authority.file,
        {"receiver.test": ("127.0.0.1", endpoint.port)},
        period_seconds=1,
        clock=lambda: now() + ahead[0],
    ) as scheduler:
        await subscribed(database, client.company_id, ["https://receiver.test/hook"])
        await happened(database, client.company_id)
        sweeps = asyncio.create_task(scheduler.run())
        await until(lambda: len(endpoint.requests) == 1)
        await until(lambda: not scheduler._sweeps)
        ahead[0] = datetime.timedelta()
        await happened(database, client.company_id)
        await until(lambda: len(endpoint.requests) == 2)
        sweeps.cancel()
        await asyncio.wait({sweeps})


async def test_a_database_that_is_away_when_a_slot_begins_cuts_off_no_attempt_of_the_last_one(
    client: Client,
    database: Database,
    receivers: dict[str, Receiver],
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sweep, "STOP_SECONDS", 0.1)
    endpoint = receivers["receiver.test"]
    go_on = asyncio.Event()

    async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
        await go_on.wait()
        await answering(200)(request, writer)

    endpoint.answer = answer
    dispatcher_database = Database(database.url, application="dispatcher of tests")
    await dispatcher_database.open()
    async with dispatcher(
        dispatcher_database, authority.file, {"receiver.test": ("127.0.0.1", endpoint.port)}, period_seconds=1
    ) as scheduler:
        (sub_id,) = await subscribed(database, client.company_id, ["https://receiver.test/hook"])
        await happened(database, client.company_id)
        sweeps = asyncio.create_task(scheduler.run())
        await until(lambda: len(endpoint.requests) == 1)
        dispatcher_database._pool.terminate()
        await asyncio.sleep(2.5)  # new slots begin meanwhile
        await dispatcher_database.open()
        go_on.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (delivery := (await client.deliveries(sub_id))[0]).attempts:  # noqa: ASYNC110 - polls a process
                await asyncio.sleep(0.1)
        assert (len(delivery.attempts), len(endpoint.requests)) == (1, 1)
        assert not sweeps.done()
        sweeps.cancel()
        await asyncio.wait({sweeps})
    await dispatcher_database.close()
