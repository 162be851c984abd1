"""A NATS of several servers: it loses one, and events and hints go on."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import nats.js.errors
import pytest
import structlog
import trustme
from nats.aio.msg import Msg
from nats.js.api import ConsumerInfo, StreamInfo
from nats.js.client import JetStreamContext

from chassis.auth.clients import ServiceClient
from chassis.auth.identity import TokenSigner, make_keys
from chassis.messaging import streams
from chassis.messaging.consumer import Consumer
from chassis.messaging.transport import CONNECTED, FAULTS, HAS_LEADER, STREAM, NatsConnection, Transport
from chassis.runtime.settings import Environment
from makeready_local.nats import Nats
from testkit.folders import server_folder
from testkit.nats_cluster import NatsCluster, nats_cluster
from testkit.plugin import PostgresServer, embedded_nats
from testkit.processes import free_port

from ..databases import database_with
from .test_consumer import Applied, Producer, consumed, inbox, produced

PATIENCE_SECONDS = 60  # a vote takes up to 9 s, and what was under way waits 5 s before
T = TypeVar("T")
NAME = "svc-of-clusters"
SUBJECTS = {"svc-other": ["references"]}


@pytest.fixture(scope="module")
def cluster() -> Iterator[NatsCluster]:
    with nats_cluster() as running:
        yield running


@pytest.fixture
async def operator(cluster: NatsCluster) -> AsyncIterator[NatsConnection]:
    """The operator's connection to the cluster, which has all its servers and no stream."""
    for server in cluster.servers.values():
        server.start()
    connection = NatsConnection(cluster.url)
    await connection.open("tests")
    jetstream = connection.jetstream(timeout=2)  # short: asked again until it is answered
    await until(lambda: deleted(jetstream))
    yield connection
    await connection.end()


async def deleted(jetstream: JetStreamContext) -> bool:
    try:
        return await jetstream.delete_stream(STREAM)
    except nats.js.errors.NotFoundError:
        return True


async def until(look: Callable[[], Awaitable[T]], pause_seconds: float = 0.05) -> T:
    """What `look` returns, once that is true; errors of NATS count as not yet."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                if seen := await look():
                    return seen
            except FAULTS:
                pass
            await asyncio.sleep(pause_seconds)


async def state_of(jetstream: JetStreamContext, consumer: str = NAME) -> tuple[StreamInfo, ConsumerInfo]:
    return await jetstream.stream_info(STREAM), await jetstream.consumer_info(STREAM, consumer)


async def on_servers(jetstream: JetStreamContext, count: int, consumer: str = NAME) -> bool:
    """Whether the stream and its consumer have as many replicas, and all of the stream's are up to date."""
    for info in await state_of(jetstream, consumer):
        if info.cluster is None:  # one that is being made says nothing of it yet
            return False
        others = info.cluster.replicas or []
        if not info.cluster.leader or len(others) != count - 1 or info.config.num_replicas not in (0, count):
            return False
        if isinstance(info, StreamInfo) and not all(peer.current for peer in others):
            return False
    return True


@asynccontextmanager
async def connected(
    url: str, name: str = NAME, tls: ssl.SSLContext | None = None, **more: Any
) -> AsyncIterator[Transport]:
    transport = Transport(url, name, tls, **more)
    running = asyncio.create_task(transport.run())
    try:
        await asyncio.wait_for(transport.connected(), PATIENCE_SECONDS)
        yield transport
    finally:
        running.cancel()
        await transport.close()


def server_of(transport: Transport, cluster: NatsCluster) -> str:
    """The name of the server that it is connected to."""
    url = transport._client.connected_url
    assert url is not None
    (name,) = [name for name, server in cluster.servers.items() if server.port == url.port]
    return name


async def gauges(connected: int, leader: int) -> bool:
    return (CONNECTED._value.get(), HAS_LEADER._value.get()) == (connected, leader)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is checked every few seconds is checked at once."""
    monkeypatch.setattr(streams, "CHECK_SECONDS", 0.1)
    monkeypatch.setattr(streams, "AGAIN_SECONDS", 0.1)
    monkeypatch.setattr("chassis.messaging.transport.CHECK_SECONDS", 0.1)


@pytest.mark.chaos
@pytest.mark.parametrize("is_own", [False, True], ids=["another server", "the server of the connection"])
async def test_a_killed_leader_costs_seconds_and_no_event(
    cluster: NatsCluster,
    operator: NatsConnection,
    postgres_server: PostgresServer,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_own: bool,
) -> None:
    monkeypatch.setattr("chassis.messaging.transport.CHECK_SECONDS", 0.5)  # a vote may take less than 5 s
    async with (
        database_with(postgres_server, "cluster_producer", produced) as producing,
        database_with(postgres_server, "cluster_consumer", consumed) as consuming,
        connected(cluster.url) as transport,
    ):
        producer, applying = Producer(producing, transport), Applied()
        make_keys(tmp_path, ["svc-orders"])
        client = ServiceClient(producer.name, producer.target, TokenSigner(tmp_path / "svc-orders.jwk"))
        name, subjects = f"svc-orders-{secrets.token_hex(4)}", {producer.name: ["public"]}
        consumer = Consumer(name, consuming, inbox, transport, applying, subjects, {producer.name: client})
        written: list[str] = []
        has_enough = asyncio.Event()

        async def write() -> None:
            while not has_enough.is_set():
                written.extend(await producer.records("ticket.created"))
                await asyncio.sleep(0.02)

        keeping = asyncio.create_task(streams.keep(cluster.url, {name: subjects}, replicas=3))
        await until(lambda: on_servers(operator.jetstream(), 3, name))
        connected_to = server_of(transport, cluster)
        leader = connected_to if is_own else next(server for server in cluster.servers if server != connected_to)
        await until(lambda: led_by(operator, leader))
        tasks = [keeping, *map(asyncio.create_task, (producer.relay.run(), consumer.run()))]
        writing = asyncio.create_task(write())
        await until(lambda: applied_count(consuming))
        await until(lambda: gauges(1, 1))

        cluster.servers[leader].kill()
        killed, before = time.monotonic(), len(written)
        await until(lambda: gauges(0, 0))
        await until(lambda: published(producing, written[before:]))
        record_property("published again after seconds", round(time.monotonic() - killed, 1))
        await until(lambda: gauges(1, 1))
        has_enough.set()
        await writing

        async def all_arrived() -> bool:
            return await applied_count(consuming) >= len(written)

        await until(all_arrived)
        async with consuming.connection() as connection:
            arrived = [row["event_id"] for row in await connection.raw.fetch("SELECT event_id FROM applied")]
        assert sorted(arrived) == sorted(written)
        for task in tasks:
            task.cancel()
        await client.close()


async def led_by(operator: NatsConnection, server: str) -> bool:
    """Whether the stream's leader is that server; if not, it is asked to become it."""
    info = await operator.jetstream().stream_info(STREAM)
    if info.cluster is not None and info.cluster.leader == server:
        return True
    wish = b'{"placement": {"preferred": "%s"}}' % server.encode()
    await operator.request(f"$JS.API.STREAM.LEADER.STEPDOWN.{STREAM}", wish, timeout=PATIENCE_SECONDS)
    await asyncio.sleep(0.5)
    return False


async def applied_count(database: Any) -> int:
    async with database.connection() as connection:
        return int(await connection.raw.fetchval("SELECT count(*) FROM applied"))


async def published(database: Any, ids: list[str]) -> bool:
    """Whether one of the events is."""
    async with database.connection() as connection:
        query = "SELECT EXISTS (SELECT FROM outbox WHERE published_at IS NOT NULL AND event_id = ANY($1::uuid[]))"
        return bool(await connection.raw.fetchval(query, ids))


@pytest.mark.chaos
@pytest.mark.parametrize("unsent_megabytes", [0, 40])
async def test_hints_are_heard_again_when_their_server_says_nothing_more(
    cluster: NatsCluster, operator: NatsConnection, unsent_megabytes: int
) -> None:
    heard: set[str] = set()
    async with connected(cluster.url, publishes=False) as transport:
        await transport.listen("hints.svc-other.>", heard.add)
        frozen = cluster.servers[server_of(transport, cluster)]
        others = ",".join(server.url for server in cluster.servers.values() if server is not frozen)
        async with connected(others, "svc-other", publishes=False) as sender:
            numbers = iter(range(10**6))

            async def hint() -> bool:
                await sender.send(f"hints.svc-other.7.ticket.{next(numbers)}")
                return bool(heard)

            await until(hint)
            os.kill(frozen.child.pid, signal.SIGSTOP)
            publish = transport._client.publish
            sending = [asyncio.ensure_future(publish("hints.x", bytes(1_000_000))) for _ in range(unsent_megabytes)]
            try:
                await until(lambda: reconnected(transport))
                heard.clear()
                await until(hint)
            finally:
                os.kill(frozen.child.pid, signal.SIGCONT)
                await asyncio.gather(*sending, return_exceptions=True)


async def knows(transport: Transport, fault: str) -> bool:
    return fault in transport.fault


async def reconnected(transport: Transport) -> bool:
    return transport.is_connected and transport.reconnections >= 1  # one may be lost again at once


async def test_a_stream_and_its_consumers_move_to_three_servers_and_back(operator: NatsConnection) -> None:
    consumers, jetstream = {NAME: SUBJECTS}, operator.jetstream()

    async def made(replicas: int | None) -> bool:
        await streams.make(jetstream, consumers, replicas)
        return True

    await until(lambda: made(None))
    assert await on_servers(jetstream, 1)
    for number in range(3):
        await jetstream.publish("events.svc-other.references", str(number).encode())
    messages = await jetstream.pull_subscribe_bind(durable=NAME, stream=STREAM)
    (message,) = await messages.fetch(1, timeout=PATIENCE_SECONDS)
    await message.ack_sync()
    for replicas in (3, None, 1):
        await until(lambda: made(replicas))  # noqa: B023 - called at once
        await until(lambda: on_servers(jetstream, replicas or 3))  # noqa: B023 - called at once
    stream, consumer = await state_of(jetstream)
    assert (stream.state.messages, consumer.num_pending) == (3, 2), "they keep their messages and their place"


async def test_a_cluster_that_is_too_small_is_reported_once_and_has_one_replica_meanwhile(often: None) -> None:
    with embedded_nats(streams=False) as server:
        connection = NatsConnection(server.url)
        await connection.open("tests")
        with structlog.testing.capture_logs() as lines:
            keeping = asyncio.create_task(streams.keep(server.url, {NAME: SUBJECTS}, replicas=3))
            jetstream = connection.jetstream(timeout=20)
            await until(lambda: state_of(jetstream))
            await asyncio.sleep(0.5)  # several checks
            assert not keeping.done()
            keeping.cancel()
        assert (await jetstream.stream_info(STREAM)).config.num_replicas == 1
        (line,) = [line for line in lines if line["log_level"] == "warning"]
        assert line["event"] == "stream_lacks_replicas"
        assert "3 replicas are wanted, the stream of events has 1" in line["reason"]
        await connection.end()


async def test_a_dead_server_that_is_named_first_is_passed_over(cluster: NatsCluster) -> None:
    url = f"nats://127.0.0.1:{free_port()},{cluster.url}"
    transports = [Transport(url, NAME, publishes=False) for _ in range(8)]  # each tries the servers in its own order
    running = [asyncio.create_task(transport.run()) for transport in transports]
    await asyncio.wait_for(asyncio.gather(*(transport.connected() for transport in transports)), PATIENCE_SECONDS)
    for task, transport in zip(running, transports, strict=True):
        task.cancel()
        await transport.close()


async def test_a_connection_that_ends_as_a_server_refuses_it_does_not_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    open_connection = asyncio.open_connection
    endings: list[asyncio.Future[None]] = []
    connection: NatsConnection | None = None
    mine: asyncio.AbstractEventLoop | None = None  # clients of other tests may connect meanwhile, in other loops

    async def ends_when_refused(*at: Any, **options: Any) -> Any:
        try:
            return await open_connection(*at, **options)
        except OSError:
            if not endings and connection is not None and asyncio.get_running_loop() is mine:
                await connection.publish("hints.lost", b"")  # it waits for the next connection, which never comes
                endings.append(asyncio.ensure_future(connection.end()))
            raise

    async def attempted() -> bool:
        return bool(endings)

    async def lose_and_end() -> None:
        nonlocal connection, mine
        connection, mine = NatsConnection(server.url), asyncio.get_running_loop()
        await connection.open("tests", error_cb=_quiet)
        await connection.subscribe("hints.>", cb=_unheard)
        monkeypatch.setattr(asyncio, "open_connection", ends_when_refused)
        server.kill()
        await until(attempted)
        await asyncio.gather(*endings)
        monkeypatch.undo()
        assert connection.is_closed
        assert asyncio.all_tasks() == {asyncio.current_task()}, "nothing of it runs on"

    with embedded_nats(streams=False) as server:
        await asyncio.to_thread(asyncio.run, lose_and_end())  # in a loop with no tasks of other tests


async def _quiet(_error: Exception) -> None:
    """The server is away, as it should be."""


async def _unheard(_message: Msg) -> None:
    """Nothing is sent to it."""


class Door:
    """A way to a server that can cut its connections, and let new ones wait for the server's first words."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._writers: set[asyncio.StreamWriter] = set()
        self.wait_seconds = 0.0

    async def passes(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        theirs, ours = await asyncio.open_connection("127.0.0.1", self._server_port)
        self._writers |= {writer, ours}
        await asyncio.sleep(self.wait_seconds)
        await asyncio.gather(self._pass_on(reader, ours), self._pass_on(theirs, writer))

    @staticmethod
    async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                writer.write(data)
        writer.close()

    def cut(self) -> None:
        for writer in self._writers:
            writer.close()
        self._writers.clear()


async def test_a_server_that_takes_a_connection_slowly_gets_events_afterwards(
    often: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chassis.messaging.transport.AGAIN_SECONDS", 0.1)
    with embedded_nats(streams=False) as server:
        operator = NatsConnection(server.url)
        await operator.open("tests")
        await streams.make(operator.jetstream(), {})
        door = Door(urlsplit(server.url).port or 0)
        async with await asyncio.start_server(door.passes, "127.0.0.1") as listening:
            url = server.url.replace(f":{urlsplit(server.url).port}", f":{listening.sockets[0].getsockname()[1]}")
            async with connected(url) as transport:
                await until(lambda: gauges(1, 1))
                door.wait_seconds = 1  # the client waits twice as long; it is neither connected nor reconnecting
                door.cut()
                await until(lambda: reconnected(transport))
                await transport.jetstream.publish("events.svc-other.references", b"")
            door.cut()
        await operator.end()


async def test_the_gauges_say_whether_events_can_be_published(often: None) -> None:
    with embedded_nats(streams=False) as server:
        connection = NatsConnection(server.url)
        await connection.open("tests")
        jetstream = connection.jetstream()
        async with connected(server.url) as transport:
            assert transport.is_connected
            await until(lambda: gauges(0, 0))
            await until(lambda: knows(transport, f"stream {STREAM}"))
            await streams.make(jetstream, {})
            await until(lambda: gauges(1, 1))
            assert transport.fault == ""
            assert (await jetstream.stream_info(STREAM)).state.last_seq == 0, "asking stores nothing"
            await jetstream.delete_stream(STREAM)
            await until(lambda: gauges(0, 0))
        await connection.end()


async def test_hints_are_heard_again_after_the_server_has_ended_the_connection_for_good(often: None) -> None:
    with embedded_nats(streams=False) as server:
        heard: set[str] = set()
        async with connected(server.url, publishes=False) as transport:
            stop = await transport.listen("hints.svc-other.>", heard.add)
            await transport._client.close()  # as when the server says that it has too many
            await until(lambda: reconnected(transport))

            async def hint() -> bool:
                await transport.send("hints.svc-other.7.ticket.1")
                return bool(heard)

            await until(hint)
            await stop()


class Tls:
    """A certificate authority of a test, and files with its certificates."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        self.ca_file = folder / "ca.pem"
        authority.cert_pem.write_to_path(self.ca_file)
        self.files: dict[str, tuple[Path, Path]] = {}
        for name in ("127.0.0.1", "svc-tickets"):
            issued = authority.issue_cert(name)
            certificate, key = self.files[name] = folder / f"{name}.pem", folder / f"{name}.key"
            certificate.write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))
            issued.private_key_pem.write_to_path(key)

    def context(self, name: str | None = None) -> ssl.SSLContext | None:
        """As a service reads it. name: of the client's own certificate."""
        values = {"MAKEREADY_NATS_CA_FILE": str(self.ca_file)}
        if name is not None:
            values |= dict(
                zip(("MAKEREADY_NATS_CERT_FILE", "MAKEREADY_NATS_KEY_FILE"), map(str, self.files[name]), strict=True)
            )
        return Environment(values).nats_tls()


async def refused(url: str, tls: ssl.SSLContext | None, word: str) -> bool:
    """Whether no connection is made, for a reason with this word."""
    transport = Transport(url, NAME, tls)
    with structlog.testing.capture_logs() as lines:
        running = asyncio.create_task(transport.run())

        async def said() -> bool:
            return any(word in str(line.get("reason")) for line in lines)

        await until(said)
    running.cancel()
    is_refused = not transport.is_connected
    await transport.close()
    return is_refused


@pytest.mark.parametrize("verify", [False, True], ids=["the servers", "clients too"])
async def test_a_connection_is_encrypted_and_its_server_verified(tmp_path: Path, *, verify: bool) -> None:
    tls = Tls(tmp_path)
    certificate, key = tls.files["127.0.0.1"]
    settings = {"cert_file": str(certificate), "key_file": str(key), "ca_file": str(tls.ca_file), "verify": verify}
    with server_folder() as folder:
        server = Nats(folder / "nats", "test", log=folder / "nats.log", more={"tls": settings})
        server.start()
        try:
            url = server.url.replace("nats://", "tls://")
            async with connected(url, tls=tls.context("svc-tickets" if verify else None)) as transport:
                await streams.make(transport.jetstream, {})
                await transport.jetstream.publish("events.svc-tickets.references", b"1")
            async with connected(server.url, tls=tls.context("svc-tickets" if verify else None)):
                """A setting of certificates is enough: the URL may begin with nats://."""
            assert await refused(url, None, "CERTIFICATE_VERIFY_FAILED")
            if verify:
                assert await refused(url, tls.context(), "")
        finally:
            server.stop()


async def test_a_server_that_asks_for_no_tls_gets_no_password(tmp_path: Path) -> None:
    sent: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"server_id": "x", "version": "2.15.1", "headers": true, "max_payload": 1048576}\r\n')
        sent.append(await reader.read(4096))
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    place = f"op:secret@127.0.0.1:{server.sockets[0].getsockname()[1]}"
    assert await refused(f"tls://{place}", None, "TLS")
    assert await refused(f"nats://{place}", Tls(tmp_path).context(), "TLS")
    server.close()
    await server.wait_closed()
    assert set(sent) == {b""}
