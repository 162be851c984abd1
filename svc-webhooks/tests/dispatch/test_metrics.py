"""The metrics of deliveries for an operator's dashboard."""

import asyncio
import datetime
import time
import urllib.request

import pytest
from prometheus_client import REGISTRY

from chassis.db.database import Database
from svc_webhooks.dispatch import sweep

from ..dispatcher import dispatcher, happened, now, subscribed
from ..harness import HOUR, Client, Harness, until
from ..receivers import Authority, Received, Receiver, answering

URL = "https://receiver.test/a-path-that-is-nobody-elses-business"


def sample(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"makeready_webhooks_{name}", labels) or 0.0


async def test_who_waits_and_for_how_long_and_when_a_sweep_was_through(
    client: Client,
    database: Database,
    receivers: dict[str, Receiver],
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("svc_webhooks.dispatch.scheduler.WATCH_SECONDS", 0.05)
    hosts = {"receiver.test": ("127.0.0.1", receivers["receiver.test"].port)}
    await subscribed(database, client.company_id, [URL] * 3)
    await happened(database, client.company_id, 2)
    await happened(database, client.company_id, due_at=now() - HOUR)
    await happened(database, client.company_id, due_at=now() + HOUR)
    (paused,) = await subscribed(database, client.company_id + 1, [URL])
    await happened(database, client.company_id + 1, due_at=now() - 24 * HOUR)
    async with database.connection() as connection:
        await connection.raw.execute(
            "UPDATE subscription SET health = 'paused', paused_at = now() WHERE id = $1", paused
        )
    async with dispatcher(database, authority.file, hosts) as scheduler:
        watching = asyncio.create_task(scheduler.watch())
        await until(lambda: sample("subscriptions_due") == 3)
        assert 3600 <= sample("oldest_due_seconds") < 3900
        await scheduler.sweep(now())
        assert time.time() - sample("sweep_timestamp_seconds") < 60
        await until(lambda: sample("subscriptions_due") == sample("oldest_due_seconds") == 0)
        watching.cancel()
        await asyncio.wait({watching})


@pytest.mark.parametrize("before", ["sending", "recording"])
async def test_claims_that_another_dispatcher_may_have_are_counted(
    client: Client,
    database: Database,
    receivers: dict[str, Receiver],
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
    before: str,
) -> None:
    lost = sample("claims_lost_total", before=before)
    if before == "sending":
        monkeypatch.setattr("svc_webhooks.dispatch.sender.BEGIN_SECONDS_MAX", -1.0)
    hosts = {"receiver.test": ("127.0.0.1", receivers["receiver.test"].port)}
    await subscribed(database, client.company_id, [URL])
    await happened(database, client.company_id)
    async with dispatcher(database, authority.file, hosts) as scheduler, database.connection() as connection:

        async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
            await connection.raw.execute("UPDATE delivery SET fence = fence + 1")
            await answering(200)(request, writer)

        receivers["receiver.test"].answer = answer
        assert (await sweep.Sweep(scheduler.database, scheduler.attempts, now()).run()).attempted == 0
    assert sample("claims_lost_total", before=before) == lost + 1


async def test_no_url_and_no_event_becomes_a_label(
    client: Client, service: Harness, database: Database, receivers: dict[str, Receiver]
) -> None:
    await subscribed(database, client.company_id, [URL])
    (event_id,) = await happened(database, client.company_id)
    await client.sweep(now() + datetime.timedelta(seconds=1))
    listen = service.webhooks.environment["MAKEREADY_METRICS_LISTEN"]
    page = await asyncio.to_thread(lambda: urllib.request.urlopen(f"http://{listen}/metrics", timeout=60).read())
    assert b'makeready_webhooks_attempts_total{error="none"}' in page
    assert b"receiver.test" not in page and str(event_id).encode() not in page
