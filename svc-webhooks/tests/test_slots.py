"""Slots by a clock that is set."""

import asyncio
import datetime

from webhooks_dispatcher import dispatcher, happened, now, subscribed
from webhooks_house import Client, until
from webhooks_receivers import Authority, Receiver

from chassis.database import Database


async def test_a_clock_that_was_years_ahead_and_is_set_right_stops_no_sweep(
    client: Client, database: Database, receivers: dict[str, Receiver], authority: Authority
) -> None:
    found = receivers["receiver.test"]
    ahead = [datetime.timedelta(days=1000)]
    async with dispatcher(
        database,
        authority.file,
        {"receiver.test": ("127.0.0.1", found.port)},
        period_seconds=1,
        clock=lambda: now() + ahead[0],
    ) as sweeper:
        await subscribed(database, client.company_id, ["https://receiver.test/hook"])
        await happened(database, client.company_id)
        sweeps = asyncio.create_task(sweeper.run())
        await until(lambda: len(found.requests) == 1)
        await until(lambda: not sweeper._sweeps)
        ahead[0] = datetime.timedelta()
        await happened(database, client.company_id)
        await until(lambda: len(found.requests) == 2)
        sweeps.cancel()
        await asyncio.wait({sweeps})
