"""Hostile destinations at the moment of sending are never dialled, and are recorded as refused.

The tests do not rely on the recorded outcome: listeners on loopback count connections.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import pytest

from chassis.db.database import Database
from testkit.hostile_destinations import EVERY_ADDRESS, EVERY_DESTINATION

from ..harness import Client, Harness, Producer
from ..receivers import Authority, Receiver, answering, receiver
from ..wire import Resolver, http_client

NAME = "https://rebound.example.com/"


@contextlib.asynccontextmanager
async def listening(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[str]]:
    """The connections made. Listens on all loopback addresses, and makes the client dial its port."""
    came: list[str] = []

    def count(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(writer.get_extra_info("sockname")[0])
        writer.close()

    server = await asyncio.start_server(count, "0.0.0.0", 0)
    port = server.sockets[0].getsockname()[1]
    servers = [server]
    with contextlib.suppress(OSError):  # on machines without IPv6
        servers.append(await asyncio.start_server(count, "::1", port))
    monkeypatch.setattr("svc_webhooks.http_client.destinations.HTTPS_PORT", port)
    try:
        yield came
    finally:
        for each in servers:
            each.close()


async def test_the_listeners_would_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svc_webhooks.http_client.client.is_public", lambda _: True)
    async with listening(monkeypatch) as came, http_client(None, {}) as out:
        for address in ("127.0.0.1", "127.1.2.3", "0.0.0.0", "[::ffff:127.0.0.1]"):
            await out.post(f"https://{address}/", b"{}", {})
    assert len(came) == 4


async def test_no_hostile_destination_is_dialled(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening(monkeypatch) as came, http_client(None, {}, resolve=Resolver(["127.0.0.1"])) as out:
        outcomes = [await out.post(url, b"{}", {}) for url in EVERY_DESTINATION]
    assert {(outcome.error, outcome.is_internal_fault) for outcome in outcomes} == {("destination_refused", False)}
    assert came == []


async def test_no_name_leads_to_a_hostile_address_alone_or_among_others(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [
        answer
        for address in EVERY_ADDRESS
        for answer in ([address], ["8.8.8.8", address], [address, "2606:4700:4700::1111"])
    ]
    async with listening(monkeypatch) as came, http_client(None, {}, resolve=Resolver(*answers, ["8.8.8.8"])) as out:
        for number, answer in enumerate(answers):
            outcome = await out.post(f"https://name{number}.example.com/", b"{}", {})
            assert (outcome.error, outcome.address) == ("destination_refused", None), answer
    assert came == []


async def test_a_name_that_was_public_when_the_subscription_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svc_webhooks.http_client.resolver.KEPT_SECONDS", 0.0)
    resolver = Resolver(["8.8.8.8"], ["127.0.0.1"])
    async with listening(monkeypatch) as came, http_client(None, {}, resolve=resolver) as out:
        await out.check(NAME)
        assert (await out.post(NAME, b"{}", {})).error == "destination_refused"
    assert (came, len(resolver.asked)) == ([], 2)


async def test_the_address_that_was_checked_is_the_one_that_is_dialled(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No lookup takes place between the check and the connection, so a changed answer has no effect."""
    monkeypatch.setattr("svc_webhooks.http_client.client.is_public", lambda address: str(address) == "127.0.0.1")
    resolver = Resolver(["127.0.0.1"], ["127.0.0.2"])
    async with receiver(authority.context("rebound.example.com"), answering(200)) as endpoint:
        monkeypatch.setattr("svc_webhooks.http_client.destinations.HTTPS_PORT", endpoint.port)
        async with http_client(authority, {}, resolve=resolver) as out:
            outcome = await out.post(NAME, b"{}", {})
    assert (outcome.error, outcome.address, len(resolver.asked)) == ("", "127.0.0.1", 1)


async def test_a_kept_connection_serves_no_send_whose_name_leads_elsewhere_by_now(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svc_webhooks.http_client.resolver.KEPT_SECONDS", 0.0)
    monkeypatch.setattr(
        "svc_webhooks.http_client.client.is_public", lambda address: str(address) in ("127.0.0.1", "127.0.0.2")
    )
    resolver = Resolver(["127.0.0.1"], ["127.0.0.2"], ["10.0.0.1"])
    async with receiver(authority.context("rebound.example.com"), answering(200)) as endpoint:
        monkeypatch.setattr("svc_webhooks.http_client.destinations.HTTPS_PORT", endpoint.port)
        async with http_client(authority, {}, resolve=resolver) as out:
            outcomes = [await out.post(NAME, b"{}", {}) for _ in range(3)]
    assert [(outcome.error, outcome.address) for outcome in outcomes] == [
        ("", "127.0.0.1"),
        ("connect", "127.0.0.2"),  # no receiver listens there
        ("destination_refused", None),
    ]
    assert (endpoint.connections, len(endpoint.requests)) == (1, 1)


async def test_a_redirect_to_a_private_address_leads_nowhere(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with listening(monkeypatch) as came:
        for status in (301, 302, 303, 307, 308):
            answer = answering(status, b"", "Location: https://127.0.0.1/")
            async with (
                receiver(authority.context("hooks.acme.com"), answer) as endpoint,
                http_client(authority, {"hooks.acme.com": ("127.0.0.1", endpoint.port)}) as out,
            ):
                outcome = await out.post("https://hooks.acme.com/", b"{}", {})
            assert (outcome.status, outcome.error, len(endpoint.requests)) == (status, "redirect", 1)
    assert came == []


# Through the whole service


async def test_a_stored_destination_that_is_hostile_is_refused_on_record_and_never_dialled(
    client: Client, tickets: Producer, database: Database, receivers: dict[str, Receiver]
) -> None:
    """Older rules, or a direct write to the table, could have stored such rows."""
    port = receivers["receiver.test"].port
    stored = [
        f"https://127.0.0.1:{port}/",
        f"https://localhost:{port}/",
        f"http://127.0.0.1:{port}/",
        f"https://user@127.0.0.1:{port}/",
        f"https://receiver.test:{port}/",
        "http://receiver.test/",
        "https://user:password@receiver.test/",
        "https://127.0.0.1/",
        "https://[::ffff:127.0.0.1]/",
        "https://[64:ff9b::7f00:1]/",
        "https://2130706433/",
        "https://169.254.169.254/latest/meta-data/",
        "https://metadata.google.internal/",
        "https://localhost/",
        "not a url",
        "",
    ]
    before = {host: receiver.connections for host, receiver in receivers.items()}
    sub_ids = [(await client.create())[1]["entity_id"] for _ in stored]
    async with database.connection() as connection:
        for sub_id, url in zip(sub_ids, stored, strict=True):
            await connection.raw.execute("UPDATE subscription SET destination_url = $2 WHERE id = $1", sub_id, url)
    await tickets.ticket_created(client.company_id)
    assert await client.sweep() == {"attempted": len(stored), "succeeded": 0, "failed": len(stored), "parked": 0}
    for sub_id, url in zip(sub_ids, stored, strict=True):
        ((attempt,),) = [delivery.attempts for delivery in await client.deliveries(sub_id)]
        assert (attempt.error, attempt.address) == ("destination_refused", ""), url
        assert not attempt.HasField("connect_milliseconds") and not attempt.HasField("status")
    assert {host: receiver.connections for host, receiver in receivers.items()} == before


@pytest.mark.parametrize(
    "body",
    [
        b"\x00\xff\xfe\x1b[2J\r\n\"\\{'" * 500,
        "\u2028\u202e\ud7ff".encode() * 900,
        b'{"level": "error", "event": "forged"}\n' * 100,
        b"\xe2\x82" * 4000,
    ],
    ids=["binary", "marks", "a line of a log", "half characters"],
)
async def test_whatever_a_receiver_answers_is_kept_as_it_came_and_breaks_no_log(
    service: Harness,
    client: Client,
    tickets: Producer,
    database: Database,
    receivers: dict[str, Receiver],
    body: bytes,
) -> None:
    logged = service.webhooks.log.stat().st_size
    receivers["receiver.test"].answer = answering(500, body)
    _, subscription, _ = await client.create()
    await tickets.ticket_created(client.company_id)
    assert (await client.sweep())["failed"] == 1
    async with database.connection() as connection:
        kept = await connection.raw.fetchval("SELECT response_excerpt FROM attempt")
    assert kept == body[:4096]
    ((attempt,),) = [delivery.attempts for delivery in await client.deliveries(subscription["entity_id"])]
    assert attempt.response_excerpt == body[:4096].decode(errors="replace")
    with service.webhooks.log.open("rb") as log:
        log.seek(logged)
        lines = log.read().splitlines()
    assert lines
    for line in lines:
        assert isinstance(json.loads(line), dict)
        assert b"forged" not in line and b"\x1b" not in line
