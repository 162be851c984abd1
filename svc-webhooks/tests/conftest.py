"""Real servers for the tests: svc-webhooks in its own process, with database, keys, producers and receivers."""

import asyncio
import base64
import datetime
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import grpc
import pytest
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

from chassis.auth.identity import make_keys
from chassis.db.database import Database
from svc_webhooks import tables
from svc_webhooks.events.partitions import Partitions
from testkit import databases
from testkit.clocks import quiet_period
from testkit.nats_users import nats_url_of
from testkit.plugin import PostgresServer, Server
from testkit.processes import free_port
from testkit.schemas import declare

from .dispatcher import now
from .harness import HERE, Client, Harness, Process, Producer, companies
from .producer import metadata as producer_metadata
from .receivers import Authority, Receiver, answering, receiver, with_old_tls
from .sandboxes import make_sandbox

POSTGRESQL = postgresql.dialect()  # type: ignore[no-untyped-call]


@pytest.fixture(scope="package", autouse=True)
def without_the_machines_authorities() -> Iterator[None]:
    """Receivers of the tests have certificates of an authority of their own. To load the machine's 140 takes each new
    client 25 ms of CPU."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", os.devnull)
        yield


@pytest.fixture(scope="session")
def authority() -> Iterator[Authority]:
    yield Authority()


@pytest.fixture(scope="session")
async def receivers(authority: Authority) -> AsyncIterator[dict[str, Receiver]]:
    """Receivers by host: some with valid certificates, some with invalid ones."""
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    contexts = {
        "receiver.test": authority.context("receiver.test"),
        "second.test": authority.context("second.test"),
        "unwilling.test": authority.context("unwilling.test"),
        "expired.test": authority.context("expired.test", not_after=now - day),
        "notyet.test": authority.context("notyet.test", not_before=now + day, not_after=now + 2 * day),
        "renamed.test": authority.context("elsewhere.test"),
        "too.deep.test": authority.context("*.test"),
        "oldtls.test": with_old_tls(authority.context("oldtls.test")),
        "selfsigned.test": Authority().context("selfsigned.test"),
    }
    by_host: dict[str, Receiver] = {}
    async with AsyncExitStack() as stack:
        for host, context in contexts.items():
            by_host[host] = await stack.enter_async_context(receiver(context, answering(200, b"thanks")))
        yield by_host


@pytest.fixture(scope="session")
async def service(
    postgres_server: PostgresServer,
    nats_server: Server,
    receivers: dict[str, Receiver],
    authority: Authority,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Harness]:
    folder = tmp_path_factory.mktemp("svc-webhooks")
    make_keys(folder / "keys", ["gateway", "operator", "svc-catalog", "svc-tickets", "svc-occupancy", "svc-webhooks"])
    names = ("gateway", "svc-catalog", "svc-tickets", "svc-occupancy", "svc-webhooks")
    targets = {name: f"127.0.0.1:{free_port()}" for name in names}
    shared = os.environ | {
        "MAKEREADY_IDENTITY_RING_FILE": str(folder / "keys" / "ring.jwks"),
        "MAKEREADY_GATEWAY_ADDRESS": targets["gateway"],
        "MAKEREADY_CATALOG_ADDRESS": targets["svc-catalog"],
        "MAKEREADY_TICKETS_ADDRESS": targets["svc-tickets"],
        "MAKEREADY_OCCUPANCY_ADDRESS": targets["svc-occupancy"],
    }

    def process(name: str, command: list[str], **more: str) -> Process:
        database = name.replace("-", "_") + "_of_webhooks_tests"
        settings = {
            **databases.environment(postgres_server.create_database(database)),
            "MAKEREADY_NATS_URL": nats_url_of(nats_server.url, name),
            "MAKEREADY_GRPC_LISTEN": targets[name],
            "MAKEREADY_METRICS_LISTEN": f"127.0.0.1:{free_port()}",
            "MAKEREADY_IDENTITY_KEY_FILE": str(folder / "keys" / f"{name}.jwk"),
        }
        return Process([sys.executable, *command], shared | settings | more, targets[name], folder / f"{name}.log")

    producers = {name: process(name, [str(HERE / "producer.py"), name]) for name in names[:-1]}
    for child in producers.values():
        await _create_outbox(child.environment["MAKEREADY_DATABASE_OWNER_URL"])
        child.start()
    webhooks = process(
        "svc-webhooks",
        ["-m", "svc_webhooks"],
        WEBHOOKS_SWEEP_SECONDS=str(quiet_period()),
        WEBHOOKS_EGRESS_CA_FILE=str(authority.file),
        WEBHOOKS_EGRESS_HOSTS=",".join(f"{host}=127.0.0.1:{receiver.port}" for host, receiver in receivers.items()),
        WEBHOOKS_VAULT_KEYS="k1:" + base64.b64encode(b"v" * 32).decode(),
        MAKEREADY_LOG_LEVEL="debug",
    )
    await asyncio.to_thread(webhooks.run_to_end, "migrate")
    webhooks.start()
    for child in (*producers.values(), webhooks):
        await child.serving()
    yield Harness(webhooks, producers, folder / "keys")
    for child in (webhooks, *producers.values()):
        await asyncio.to_thread(child.stop)


async def _create_outbox(url: str) -> None:
    database = Database(url, application="tests")
    await database.open()
    async with database.connection() as connection:
        for table in producer_metadata.sorted_tables:
            await connection.raw.execute(str(CreateTable(table).compile(dialect=POSTGRESQL)))
            for index in table.indexes:
                await connection.raw.execute(str(CreateIndex(index).compile(dialect=POSTGRESQL)))
    await database.close()
    await databases.grant_to_service(url)


CLEARED = (
    "attempt", "answered_receiver", "erasure", "delivery", "event", "feed_entry", "feed", "replay", "subscription",
)  # fmt: skip


@pytest.fixture(scope="session")
async def opened(service: Harness) -> AsyncIterator[dict[str, Database]]:
    """The open databases, by service."""
    channels = {}
    for name, process in {**service.producers, "svc-webhooks": service.webhooks}.items():
        channels[name] = Database(process.environment["MAKEREADY_DATABASE_OWNER_URL"], application="tests")
        await channels[name].open()
    yield channels
    for database in channels.values():
        await database.close()


@pytest.fixture
async def database(opened: dict[str, Database], receivers: dict[str, Receiver]) -> AsyncIterator[Database]:
    """The database of svc-webhooks; tables and receivers are cleared after each test."""
    yield opened["svc-webhooks"]
    async with opened["svc-webhooks"].connection() as connection:
        # TRUNCATE would lock every partition, and meet the service's statements in another order.
        await connection.raw.execute(";".join(f"DELETE FROM {table}" for table in CLEARED))
    for host_receiver in receivers.values():
        host_receiver.answer = answering(200, b"thanks")
        host_receiver.requests.clear()


@pytest.fixture(scope="session")
async def sandboxes_database(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    """A database for sandboxes that the running service does not sweep."""
    url = postgres_server.create_database("webhooks_sandboxes")
    await declare(url, tables.metadata)
    database = Database(url, application="tests", plans="auto")
    await database.open()
    async with database.connection() as connection:
        await connection.raw.execute("CREATE SCHEMA partitions")
    await Partitions(database, now).ahead()
    yield database
    await database.close()


@pytest.fixture
async def sandbox_id(sandboxes_database: Database, receivers: dict[str, Receiver]) -> AsyncIterator[int]:
    """A sandbox in that database that no other test uses; receivers are cleared after each test."""
    sandbox_id = next(companies)
    await make_sandbox(sandboxes_database, sandbox_id)
    yield sandbox_id
    for host_receiver in receivers.values():
        host_receiver.answer = answering(200, b"thanks")
        host_receiver.requests.clear()


@pytest.fixture
async def mended(service: Harness) -> AsyncIterator[None]:
    """Restores the processes after the test, in whatever state the test leaves them."""
    yield
    for process in (*service.producers.values(), service.webhooks):
        if not process.as_always:
            await asyncio.to_thread(process.stop)
            process.start()
    for process in (*service.producers.values(), service.webhooks):
        await process.serving()


@pytest.fixture
def tickets(opened: dict[str, Database]) -> Producer:
    return Producer("svc-tickets", opened["svc-tickets"])


@pytest.fixture
def gateway(opened: dict[str, Database]) -> Producer:
    return Producer("gateway", opened["gateway"])


@pytest.fixture(scope="session")
async def channel(service: Harness) -> AsyncIterator[grpc.aio.Channel]:
    options = [("grpc.max_reconnect_backoff_ms", 200), ("grpc.initial_reconnect_backoff_ms", 50)]
    async with grpc.aio.insecure_channel(service.webhooks.target, options=options) as channel:
        yield channel


@pytest.fixture
def client(service: Harness, channel: grpc.aio.Channel, database: Database) -> Client:
    """A client of a company that no other test uses."""
    return Client(service, channel, next(companies))
