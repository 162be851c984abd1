"""The permissions of each service's NATS user, on a real server: each service, each subject."""

import asyncio
import importlib
import json
from collections.abc import AsyncIterator, Iterator

import nats
import nats.errors
import nats.js.errors
import pytest
from nats.aio.client import Client

from chassis.messaging.streams import filters
from chassis.messaging.transport import FAULTS, STREAM, Transport
from makeready_cli.streams import CONSOLE, CONSUMERS, GATEWAY, SERVICES
from makeready_local.config import SettingsError, read
from makeready_local.nats import Nats, url_of
from testkit.nats_users import nats_url_of
from testkit.patience import PATIENCE_SECONDS
from testkit.plugin import embedded_nats

STREAM_API = ("STREAM.CREATE", "STREAM.UPDATE", "STREAM.DELETE", "STREAM.PURGE", "STREAM.INFO", "STREAM.MSG.DELETE")
MODULES = {
    "svc-catalog": "svc_catalog.consumers",
    "svc-tickets": "svc_tickets.consumers",
    "svc-occupancy": "svc_occupancy.replicas.consumers",
    "svc-webhooks": "svc_webhooks.events.consumer",
}


@pytest.fixture(scope="module")
def server() -> Iterator[Nats]:
    with embedded_nats() as running:
        yield running


@pytest.fixture(scope="module")
async def operator(server: Nats) -> AsyncIterator[Client]:
    client = await nats.connect(server.url)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                await client.jetstream().consumer_info(STREAM, "svc-webhooks")
                break
            except FAULTS:
                await asyncio.sleep(0.05)
    yield client
    await client.close()


class User:
    """A connection as a service that speaks the protocol itself: the answer to PING follows every refusal before it."""

    def __init__(self, service: str) -> None:
        self.service = service

    async def connect(self, server: Nats) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", server.port)
        await self._reader.readline()  # INFO
        options = {"user": self.service, "pass": server.users[self.service], "verbose": False, "headers": True}
        assert await self._is_accepted(f"CONNECT {json.dumps(options)}")

    async def may_publish(self, subject: str) -> bool:
        return await self._is_accepted(f"PUB {subject} 2\r\n{{}}")

    async def may_subscribe(self, subject: str) -> bool:
        self._number = getattr(self, "_number", 0) + 1
        return await self._is_accepted(f"SUB {subject} {self._number}")

    async def _is_accepted(self, words: str) -> bool:
        self._writer.write(f"{words}\r\nPING\r\n".encode())
        refused = []
        while (line := (await asyncio.wait_for(self._reader.readline(), PATIENCE_SECONDS)).decode().strip()) != "PONG":
            assert line, "the server closed the connection"
            if line.startswith("-ERR"):
                refused.append(line)
        assert all("Permissions Violation" in line_of_error for line_of_error in refused), refused
        return not refused

    def close(self) -> None:
        self._writer.close()


@pytest.fixture(scope="module", params=SERVICES)
async def user(request: pytest.FixtureRequest, server: Nats, operator: Client) -> AsyncIterator[User]:
    user = User(request.param)
    await user.connect(server)
    yield user
    user.close()


async def test_a_service_publishes_its_own_events_and_hints_and_no_others(user: User) -> None:
    for other in (*SERVICES, "makeready", ">"):
        is_own = other == user.service
        for subject in (f"events.{other}.causes.of-a-test", f"hints.{other}.7.ticket.1"):
            assert await user.may_publish(subject.replace(">", "strangers")) == is_own, subject
    for subject in ("events", "events.x", "hints.x", "elsewhere", "$SYS.REQ.SERVER.PING"):
        assert not await user.may_publish(subject), subject


async def test_a_service_listens_to_its_own_inbox_and_the_gateway_to_hints_too(user: User) -> None:
    for other in SERVICES:
        assert await user.may_subscribe(f"_INBOX.{other}.x") == (other == user.service)
        assert await user.may_publish(f"_INBOX.{other}.x") is False
        for subject in (f"events.{other}.>", f"events.{other}.references"):
            assert not await user.may_subscribe(subject), subject
        assert await user.may_subscribe(f"hints.{other}.7.>") == (user.service == GATEWAY)
    for subject in (">", "_INBOX.>", "_INBOX.*.x", "events.>", "$JS.>", "$SYS.>", "$JS.EVENT.>"):
        assert not await user.may_subscribe(subject), subject
    assert await user.may_subscribe("hints.>") == (user.service == GATEWAY)


async def test_the_console_listens_to_hints_and_publishes_nothing(server: Nats, operator: Client) -> None:
    console = User(CONSOLE)
    await console.connect(server)
    for subject in ("hints.>", "hints.*.7.>"):
        assert await console.may_subscribe(subject)
    for subject in (">", "events.>", "*.svc-tickets.7.ticket.1", "_INBOX.>", "_INBOX.console.x", "$JS.>", "$SYS.>"):
        assert not await console.may_subscribe(subject), subject
    for subject in ("hints.svc-tickets.7.ticket.1", "hints.console.7.x.1", "events.console.x", "$JS.API.INFO", "x"):
        assert not await console.may_publish(subject), subject
    console.close()


async def test_a_service_fetches_and_acknowledges_for_its_own_consumer_and_manages_nothing(user: User) -> None:
    for name in (*CONSUMERS, "gateway"):
        is_own = name == user.service
        for api in ("INFO", "MSG.NEXT"):
            assert await user.may_publish(f"$JS.API.CONSUMER.{api}.{STREAM}.{name}") == is_own, (api, name)
        assert await user.may_publish(f"$JS.ACK.{STREAM}.{name}.1.1.1.1.0") == is_own
        for api in ("DELETE", "CREATE", "DURABLE.CREATE", "PAUSE", "UNPIN"):
            assert not await user.may_publish(f"$JS.API.CONSUMER.{api}.{STREAM}.{name}"), (api, name)
        assert not await user.may_publish(f"$JS.API.CONSUMER.CREATE.{STREAM}.{name}.events.references")
    for api in STREAM_API:
        assert not await user.may_publish(f"$JS.API.{api}.{STREAM}"), api
    for subject in ("$JS.API.INFO", "$JS.API.STREAM.NAMES", f"$JS.API.DIRECT.GET.{STREAM}", "$JS.API.STREAM.CREATE.X"):
        assert not await user.may_publish(subject), subject


async def test_the_stream_survives_a_service_that_deletes_it(user: User, operator: Client) -> None:
    for verb in ("DELETE", "PURGE"):
        assert not await user.may_publish(f"$JS.API.STREAM.{verb}.{STREAM}")
    assert (await operator.jetstream().stream_info(STREAM)).config.name == STREAM


async def test_a_service_receives_the_messages_of_its_consumer_and_acknowledges_them(
    server: Nats, operator: Client
) -> None:
    """The permissions suffice for what the chassis does."""
    for name, subjects in CONSUMERS.items():
        transport = Transport(nats_url_of(server.url, name), name)
        running = asyncio.create_task(transport.run())
        await asyncio.wait_for(transport.connected(), PATIENCE_SECONDS)
        messages = await transport.pull(name)
        for subject in filters(subjects):
            sent = f"{subject} to {name}".encode()
            await operator.jetstream().publish(subject, sent)
            async with asyncio.timeout(PATIENCE_SECONDS):
                while True:
                    (message,) = await messages.fetch(1, timeout=PATIENCE_SECONDS)
                    await message.ack_sync()
                    if message.data == sent:
                        break
            assert message.subject == subject
        info = await transport.jetstream.consumer_info(STREAM, name)
        assert (info.num_pending, info.num_ack_pending) == (0, 0)
        running.cancel()
        await transport.close()


def test_the_operator_makes_the_consumers_that_the_services_consume_from() -> None:
    for name, module in MODULES.items():
        assert CONSUMERS[name] == importlib.import_module(module).SUBJECTS


def test_a_producer_tells_each_consumer_exactly_what_it_consumes() -> None:
    for producer in SERVICES:
        package = importlib.import_module(f"{producer.replace('-', '_')}.__main__")
        granted = {name: set(contents) for name, contents in getattr(package, "CONSUMERS", {}).items()}
        consumed = {name: set(producers[producer]) for name, producers in CONSUMERS.items() if producer in producers}
        assert {
            name: {subject.partition(".")[0] for subject in subjects} for name, subjects in consumed.items()
        } == granted


async def test_a_password_of_another_user_opens_nothing(server: Nats) -> None:
    stranger = Nats(server.directory, "x", log=server.log, users={name: f"p-{name}" for name in SERVICES})
    assert len({url_of(server.url, name, stranger.users) for name in SERVICES}) == len(SERVICES)
    for name in SERVICES:
        with pytest.raises((nats.errors.Error, nats.js.errors.Error)):
            await nats.connect(url_of(server.url, name, stranger.users), allow_reconnect=False, error_cb=_silent)


async def _silent(_error: Exception) -> None:
    """The test expects the refusal."""


def test_a_service_gets_its_user_in_each_of_the_given_urls() -> None:
    users = {"svc-tickets": "a:b@c/d"}
    both = "nats://op:secret@one:4222, tls://two:4223"
    assert url_of(both, "svc-tickets", users) == (
        "nats://svc-tickets:a%3Ab%40c%2Fd@one:4222,tls://svc-tickets:a%3Ab%40c%2Fd@two:4223"
    )
    assert url_of(both, "svc-catalog", users) == both


ALL = ",".join(f"{name}:pw-{number}" for number, name in enumerate(SERVICES))


def test_users_of_a_given_server_come_from_a_setting() -> None:
    users = read({"MAKEREADY_NATS_URL": "nats://op:x@nats:4222", "MAKEREADY_NATS_USERS": ALL}).nats_users
    assert users == {name: f"pw-{number}" for number, name in enumerate(SERVICES)}
    assert read({"MAKEREADY_NATS_URL": "nats://op:x@nats:4222"}).nats_users == {}


def test_the_console_may_have_a_user_on_a_given_server() -> None:
    settings = read({"MAKEREADY_NATS_URL": "nats://op:x@nats:4222", "MAKEREADY_NATS_USERS": f"{ALL},console:x"})
    assert settings.nats_users == {name: f"pw-{number}" for number, name in enumerate(SERVICES)} | {"console": "x"}


@pytest.mark.parametrize(
    "users",
    ["gateway:x", f"{ALL},stranger:x", ALL.replace("gateway:pw-0", "gateway:"), f"{ALL},", f"{ALL},{ALL}", "x", ":"],
)
def test_users_that_are_not_the_services_are_refused(users: str) -> None:
    with pytest.raises(SettingsError, match="MAKEREADY_NATS_USERS must be gateway:PASSWORD,"):
        read({"MAKEREADY_NATS_URL": "nats://op:x@nats:4222", "MAKEREADY_NATS_USERS": users})


@pytest.mark.parametrize("name", ["USERS", "REPLICAS", "CA_FILE", "CERT_FILE", "KEY_FILE"])
def test_settings_of_a_given_server_without_one_are_refused(name: str) -> None:
    with pytest.raises(SettingsError, match=rf"^MAKEREADY_NATS_{name} is for the servers? at MAKEREADY_NATS_URL"):
        read({f"MAKEREADY_NATS_{name}": ALL})


def test_several_servers_may_be_given_with_replicas_of_the_stream() -> None:
    url = "nats://op:x@one:4222,nats://op:x@two:4222"
    settings = read({"MAKEREADY_NATS_URL": url, "MAKEREADY_NATS_REPLICAS": "3"})
    assert (settings.nats_url, settings.nats_replicas, settings.nats_tls) == (url, 3, None)
    with pytest.raises(SettingsError, match=r"^MAKEREADY_NATS_URL must have the same user"):
        read({"MAKEREADY_NATS_URL": url.replace("op:x@two", "op:y@two")})
