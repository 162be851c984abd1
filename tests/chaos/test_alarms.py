"""Every alarm once for real: processes are brought into the state, and promtool finds it in what they serve.

`make alarms` runs it. The alarms of states into which no process can be brought from outside (its clock, its memory)
are where the tests of these are: they call `testkit.alarms.check_fires`.
"""

import asyncio
import datetime
import os
import signal
import socket
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from chassis.auth.rpcs import method_on
from makeready.events.v1.events_pb2 import CatchUpRequest, Event, PropertyReference, PublicEvent, References
from testkit.alarms import Scrape, firing, promtool, scraped
from testkit.requirements import lacks

from ..e2e.receiver import Receiver
from ..e2e.system import Company
from .harness import Harness
from .processes import PATIENCE_SECONDS, SERVICES
from .test_forged_messages import publish, thief

pytestmark = pytest.mark.chaos

PATH = "/alarms"
VENDOR = (Path(__file__).parents[2] / "openapi/examples/Vendor.json").read_bytes()
OTHER_KEY = "2:" + "b3RoZXJvdGhlcm90aGVyb3RoZXJvdGhlcm90aGVyMTI="


@pytest.fixture(scope="session", autouse=True)
def asked_for() -> None:
    """Before the session's harness, which would start for nothing."""
    if os.environ.get("MAKEREADY_ALARMS") != "1":
        lacks("alarms", "`make alarms` fires every alarm once")
    promtool()


@pytest.fixture(scope="module")
async def company(harness: Harness) -> Company:
    """A company with a unit, and a subscription to what tests publish."""
    alarms_company = await harness.company("Alarms")
    await asyncio.to_thread(
        alarms_company.import_rows, "properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}]
    )
    await asyncio.to_thread(
        alarms_company.import_rows, "units", [{"external_id": "U1", "property": "P1", "name": "Unit 1"}]
    )
    body = {"destination_url": f"https://receiver.test{PATH}", "events": ["ticket.created", "vendor.hold"]}
    reply = await asyncio.to_thread(harness.system.post, "/webhooks", alarms_company.keys["write"], body, "alarms")
    assert reply.status == 201
    await harness.all_published()
    return alarms_company


@pytest.fixture
async def mended(harness: Harness) -> AsyncIterator[None]:
    """Afterwards all services run again, as they were."""
    yield
    await harness.mend()
    for name in SERVICES:
        if name in CHANGED:
            await harness.kill(name)
            await harness.start(name)
    CHANGED.clear()


CHANGED: set[str] = set()
"""Services that run with other settings."""


async def restarted(harness: Harness, name: str, **settings: str) -> None:
    CHANGED.add(name)
    await harness.kill(name)
    await asyncio.to_thread(harness.restart, name, **settings)


def scrapes(harness: Harness) -> dict[str, Scrape]:
    return {name: scraped(harness.settings_of(name)["MAKEREADY_METRICS_LISTEN"]) for name in SERVICES}


async def fires(
    harness: Harness, *alarms: str, before: dict[str, Scrape], again: Callable[[], Awaitable[object]] | None = None
) -> None:
    """Waits until all these alarms fire. again: what makes the state again, if it passes."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        after = await asyncio.to_thread(scrapes, harness)
        fired = await asyncio.to_thread(firing, {name: [scrape, after[name]] for name, scrape in before.items()})
        if set(alarms) <= fired:
            return
        assert time.monotonic() < deadline, fired
        if again is not None:
            await again()
        await asyncio.sleep(0.5)


@asynccontextmanager
async def asked(harness: Harness, company: Company, requests: int = 1) -> AsyncIterator[None]:
    """GET /tickets under way."""
    key = company.keys["read"]
    under_way = [asyncio.create_task(asyncio.to_thread(harness.system.get, "/tickets", key)) for _ in range(requests)]
    await asyncio.sleep(0.2)
    yield
    await asyncio.gather(*under_way, return_exceptions=True)


async def opened(company: Company, title: str) -> None:
    units = await asyncio.to_thread(lambda: list(company.walk("/units")))
    reply = await asyncio.to_thread(company.create_ticket, units[0]["entity_id"], title, title)
    assert reply.status == 201


def public(event_id: uuid.UUID, company: Company, occurred_at: datetime.datetime) -> Event:
    """An event vendor.hold."""
    event = Event(event_id=str(event_id), company_id=company.company_id)
    change = b'{"field":"on_hold","from":false,"to":true}'
    event.public.CopyFrom(PublicEvent(event="vendor.hold", data=VENDOR, change=change, entity_id=1))
    event.occurred_at.FromDatetime(occurred_at)
    return event


def id_at(instant: datetime.datetime) -> uuid.UUID:
    """A UUIDv7 of that instant."""
    number = int(instant.timestamp() * 1000) << 80 | 0x7 << 76 | int.from_bytes(os.urandom(9)) & ~(0x3 << 62)
    return uuid.UUID(int=number & ~(0xF << 76) | 0x7 << 76 | 0x2 << 62)


async def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


async def test_all_is_well_but_that_no_console_runs(harness: Harness, company: Company) -> None:
    """ServiceGone, of the console; nothing else, though requests, writes, imports and events have just been made."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        before = scrapes(harness)
        await asyncio.sleep(1)
        fired = firing(
            {
                name: [scraped_before, scraped_after]
                for (name, scraped_before), scraped_after in zip(before.items(), scrapes(harness).values(), strict=True)
            },
            minutes=100,
        )
        if fired == {"ServiceGone"}:
            return
        assert time.monotonic() < deadline, fired


async def test_a_service_that_is_killed(harness: Harness, company: Company, mended: None) -> None:
    before = scrapes(harness)
    await harness.kill("svc-tickets")
    async with asked(harness, company, 3):
        pass
    await fires(harness, "ServiceGone", "PodDown", "HttpFaults", before=before)


async def test_a_pod_that_stops_and_does_not_end(harness: Harness, mended: None) -> None:
    before = scrapes(harness)
    await restarted(harness, "svc-tickets", MAKEREADY_DRAIN_SECONDS="60")
    os.kill(harness.pid("svc-tickets"), signal.SIGTERM)
    await fires(harness, "PodNotReady", "ServiceGone", before=before)


async def test_another_version_that_restarts_again_and_again(harness: Harness, mended: None) -> None:
    scraped = {name: [scrape] for name, scrape in scrapes(harness).items()}
    for _ in range(4):
        await restarted(harness, "svc-tickets", MAKEREADY_REVISION="another")
        for name, scrape in scrapes(harness).items():
            scraped[name].append(scrape)
        await asyncio.sleep(1)  # starts are told apart by their seconds
    assert {"PodRestarts", "VersionsMixed"} <= firing(scraped)


async def test_slow_requests(harness: Harness, company: Company, mended: None) -> None:
    async def freeze() -> None:
        harness.freeze("svc-tickets")
        async with asked(harness, company):
            await asyncio.sleep(1.5)
            harness.go_on("svc-tickets")

    before = scrapes(harness)
    await freeze()
    await fires(harness, "HttpSlow", before=before, again=freeze)


async def test_calls_that_fail(harness: Harness) -> None:
    before = scrapes(harness)
    async with harness.services["svc-tickets"].channel() as channel:
        with pytest.raises(Exception, match="PERMISSION_DENIED"):
            await method_on(channel, CatchUpRequest)(CatchUpRequest(), metadata=(("authorization", "nonsense"),))
    await fires(harness, "RpcFaults", before=before)


async def test_calls_that_are_sent_again(harness: Harness, company: Company, mended: None) -> None:
    async def killed_under_a_call() -> None:
        await harness.kill("svc-tickets")
        async with asked(harness, company):
            await harness.start("svc-tickets")

    before = scrapes(harness)
    await killed_under_a_call()
    await fires(harness, "RpcRepeated", before=before, again=killed_under_a_call)


async def test_too_many_connections(harness: Harness, mended: None) -> None:
    await restarted(harness, "gateway", MAKEREADY_CONNECTIONS_MAX="1")
    before = scrapes(harness)
    address = ("127.0.0.1", int(harness.system.ports["MAKEREADY_API_PORT"]))

    async def crowd() -> None:
        with socket.create_connection(address), socket.create_connection(address) as second:
            second.settimeout(PATIENCE_SECONDS)
            await asyncio.to_thread(second.recv, 1)

    await crowd()
    await fires(harness, "ConnectionsRefused", before=before, again=crowd)


async def test_a_store_of_limits_that_is_away(harness: Harness, company: Company, mended: None) -> None:
    before = scrapes(harness)
    await restarted(harness, "gateway", MAKEREADY_RATE_LIMIT_URL="valkey://127.0.0.1:1")
    async with asked(harness, company):
        pass
    await fires(harness, "RateLimitAlone", before=before)


async def test_usage_of_keys_that_cannot_be_stored(harness: Harness, company: Company) -> None:
    before = scrapes(harness)
    await harness.query("gateway", "ALTER TABLE key_usage RENAME TO key_usage_gone")
    try:
        async with asked(harness, company):
            pass
        await fires(harness, "KeyUsageLost", before=before)
    finally:
        await harness.query("gateway", "ALTER TABLE key_usage_gone RENAME TO key_usage")


async def test_a_database_that_is_away(harness: Harness, mended: None) -> None:
    before = scrapes(harness)
    harness.postgres.kill()
    await fires(harness, "KeyListenerAway", before=before)


async def test_a_pool_that_is_used_up(harness: Harness, company: Company, mended: None) -> None:
    await restarted(harness, "svc-tickets", MAKEREADY_DATABASE_CONNECTIONS="2")
    before = scrapes(harness)
    lock = await asyncpg.connect(harness.services["svc-tickets"].database_url)
    try:
        async with lock.transaction():
            await lock.execute("LOCK TABLE ticket IN ACCESS EXCLUSIVE MODE")
            async with asked(harness, company, 6):
                await fires(harness, "DatabaseWaits", before=before)
    finally:
        await lock.close()


async def test_nats_that_is_away(harness: Harness, company: Company, mended: None) -> None:
    before = scrapes(harness)
    harness.nats.kill()
    await opened(company, "Without NATS")
    await fires(harness, "NatsAway", "StreamWithoutLeader", "EventsUnpublished", before=before)


async def test_events_that_are_forged_too_old_or_poison(harness: Harness, company: Company) -> None:
    await harness.all_published()
    before = scrapes(harness)
    instant = await now()
    poison = public(id_at(instant), company, instant)
    poison.occurred_at.seconds = 10**17
    async with thief(harness, "svc-catalog") as client:
        forged = Event(event_id=str(id_at(instant)), references=References(properties=[PropertyReference(id=1)]))
        assert await publish(client, "svc-catalog", forged, content="public.vendor.hold")
        old = public(id_at(instant - datetime.timedelta(days=60)), company, instant)
        assert await publish(client, "svc-catalog", old) and await publish(client, "svc-catalog", poison)
    await fires(harness, "EventsForged", "EventsTooOld", "EventPoison", before=before)


async def test_a_replica_that_contradicts_its_owner(harness: Harness, company: Company, mended: None) -> None:
    await restarted(harness, "svc-tickets", MAKEREADY_REPLICA_CHECK_SECONDS="1")
    before = scrapes(harness)

    async def spoil() -> None:
        sql = "UPDATE property SET name = 'Somebody else', version = version + 5 WHERE company_id = $1 RETURNING id"
        assert await harness.query("svc-tickets", sql, company.company_id)

    await spoil()
    await fires(harness, "ReplicaCorrected", before=before)


async def test_a_transaction_that_stays_open(harness: Harness) -> None:
    connection = await asyncpg.connect(harness.services["svc-tickets"].database_url)
    try:
        async with connection.transaction():
            await connection.execute("SELECT pg_current_xact_id()")
            before = scrapes(harness)
            await asyncio.sleep(3)
            await fires(harness, "ChangesLag", before=before)
    finally:
        await connection.close()


async def test_deliveries_that_nobody_attempts(harness: Harness, company: Company, mended: None) -> None:
    """The processes sweep once a day."""
    await opened(company, "Late")
    await harness.all_published()
    CHANGED.add("svc-webhooks")
    await fires(harness, "SweepsStand", before=scrapes(harness))

    async def looked_at() -> None:  # a process looks at its start, and then every minute
        await harness.kill("svc-webhooks")
        await harness.start("svc-webhooks")

    await looked_at()
    before = scrapes(harness)
    await asyncio.sleep(2)
    await fires(harness, "DeliveriesLate", before=before, again=looked_at)


async def test_deliveries_that_fail_and_expire(
    harness: Harness, company: Company, receiver: Receiver, mended: None
) -> None:
    receiver.answers[PATH] = [503] * 100
    before = scrapes(harness)
    for number in range(12):
        await opened(company, f"Fails {number}")
    today = datetime.datetime.combine((await now()).date(), datetime.time(12), datetime.UTC)
    async with thief(harness, "svc-catalog") as client:
        message = public(id_at(today - datetime.timedelta(days=30)), company, today)
        assert await publish(client, "svc-catalog", message)
    await harness.all_published()
    await asyncio.to_thread(harness.system.makeready, "sweep", "webhooks")
    await fires(harness, "DeliveriesFail", before=before)
    CHANGED.add("svc-webhooks")
    await harness.kill("svc-webhooks")
    await harness.start("svc-webhooks")  # it looks at its start, and then every hour
    await fires(harness, "DeliveriesExpire", before=before)


async def test_a_vault_key_that_is_gone(harness: Harness, company: Company, mended: None) -> None:
    before = scrapes(harness)
    await restarted(harness, "svc-webhooks", WEBHOOKS_VAULT_KEYS=OTHER_KEY)
    await fires(harness, "SecretsSealed", before=before)
