"""A receiver's certificate must be valid, signed by a trusted authority, and issued for the exact name."""

import datetime
import ssl
from typing import Any

import pytest

from svc_webhooks.http_client.destinations import parse

from ..harness import Client, Producer
from ..receivers import Authority, Receiver, answering, receiver, with_old_tls
from ..wire import http_client

NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)


async def sent(authority: Authority, context: ssl.SSLContext, host: str) -> tuple[str, int | None, int]:
    """Error and status of an attempt, and the number of requests that arrived."""
    async with receiver(context, answering(200)) as endpoint:
        url = f"https://{host}/"
        async with http_client(authority, {parse(url).host: ("127.0.0.1", endpoint.port)}) as out:
            outcome = await out.post(url, b"{}", {})
    assert not outcome.is_internal_fault
    assert outcome.connect_milliseconds is not None  # the address was dialled, and the outcome says so
    return outcome.error, outcome.status, len(endpoint.requests)


@pytest.mark.parametrize(
    ("host", "names"),
    [
        ("hooks.acme.com", ["hooks.acme.com"]),
        ("hooks.acme.com", ["*.acme.com"]),
        ("hooks.acme.com", ["elsewhere.com", "hooks.acme.com"]),
        ("HOOKS.acme.com", ["hooks.acme.com"]),
        ("bücher.de", ["xn--bcher-kva.de"]),
        ("8.8.8.8", ["8.8.8.8"]),
        ("[2606:4700:4700::1111]", ["2606:4700:4700::1111"]),
    ],
)
async def test_a_certificate_of_the_destinations_name_is_taken(
    authority: Authority, host: str, names: list[str]
) -> None:
    assert await sent(authority, authority.context(*names), host) == ("", 200, 1)


@pytest.mark.parametrize(
    ("host", "names"),
    [
        ("hooks.acme.com", ["acme.com"]),
        ("acme.com", ["*.acme.com"]),  # a wildcard stands for exactly one label, not none
        ("eu.hooks.acme.com", ["*.acme.com"]),  # and not two
        ("hooks.acme.com", ["hooks.acme.com.evil.com"]),
        ("hooks.acme.com", ["evilhooks.acme.com"]),
        ("8.8.8.8", ["8.8.4.4"]),
        ("8.8.8.8", ["dns.google"]),
        ("8.8.8.8", ["127.0.0.1"]),  # the dialled address does not count
        ("[2606:4700:4700::1111]", ["2606:4700:4700::1001"]),
    ],
)
async def test_a_certificate_of_another_name_is_not(authority: Authority, host: str, names: list[str]) -> None:
    assert await sent(authority, authority.context(*names), host) == ("certificate", None, 0)


@pytest.mark.parametrize(
    "validity",
    [{"not_after": NOW - DAY}, {"not_before": NOW + DAY, "not_after": NOW + 2 * DAY}],
    ids=["expired", "not yet valid"],
)
async def test_a_certificate_out_of_its_time_is_not(authority: Authority, validity: dict[str, Any]) -> None:
    context = authority.context("hooks.acme.com", **validity)
    assert await sent(authority, context, "hooks.acme.com") == ("certificate", None, 0)


async def test_a_certificate_that_signs_itself_is_not(authority: Authority) -> None:
    context = Authority().context("hooks.acme.com")
    assert await sent(authority, context, "hooks.acme.com") == ("certificate", None, 0)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1], ids=str)
async def test_tls_of_old_is_not_spoken(authority: Authority, version: ssl.TLSVersion) -> None:
    context = with_old_tls(authority.context("hooks.acme.com"), version)
    assert await sent(authority, context, "hooks.acme.com") == ("tls", None, 0)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=str)
async def test_tls_of_today_is_spoken(authority: Authority, version: ssl.TLSVersion) -> None:
    context = authority.context("hooks.acme.com")
    context.minimum_version = context.maximum_version = version
    assert await sent(authority, context, "hooks.acme.com") == ("", 200, 1)


async def test_a_receiver_that_asks_for_a_certificate_of_ours_gets_none(authority: Authority) -> None:
    context = authority.context("hooks.acme.com")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cafile=authority.file)
    error, status, requests = await sent(authority, context, "hooks.acme.com")
    assert (error in ("tls", "disconnected"), status, requests) == (True, None, 0)


async def test_one_address_proves_each_of_its_names(authority: Authority) -> None:
    """A pooled connection or a TLS session to one name does not serve another name at the same address."""
    context = authority.context("good.acme.com")
    async with receiver(context, answering(200)) as endpoint:
        address = ("127.0.0.1", endpoint.port)
        async with http_client(authority, {"good.acme.com": address, "bad.acme.com": address}) as out:
            errors = [
                (await out.post(f"https://{host}.acme.com/", b"{}", {})).error
                for host in ("good", "bad", "good", "bad")
            ]
    assert errors == ["", "certificate", "", "certificate"]
    assert len(endpoint.requests) == 2


async def test_no_session_is_resumed(authority: Authority) -> None:
    """Each connection verifies the name anew, even if the receiver issues session tickets."""
    context = authority.context("hooks.acme.com")
    async with (
        receiver(context, answering(200, b"", "Connection: close")) as endpoint,
        http_client(authority, {"hooks.acme.com": ("127.0.0.1", endpoint.port)}) as out,
    ):
        for _ in range(3):
            assert (await out.post("https://hooks.acme.com/", b"{}", {})).succeeded
    assert endpoint.connections == 3
    assert context.session_stats()["hits"] == 0


@pytest.mark.parametrize(
    ("host", "error"),
    [
        ("expired.test", "certificate"),
        ("notyet.test", "certificate"),
        ("selfsigned.test", "certificate"),
        ("renamed.test", "certificate"),
        ("too.deep.test", "certificate"),
        ("oldtls.test", "tls"),
    ],
)
async def test_a_receiver_that_proves_nothing_gets_nothing_and_the_attempt_is_on_record(
    client: Client, tickets: Producer, receivers: dict[str, Receiver], host: str, error: str
) -> None:
    _, endpoint, _ = await client.create({"destination_url": f"https://{host}/hook", "events": ["ticket.created"]})
    await tickets.ticket_created(client.company_id)
    assert (await client.sweep())["failed"] == 1
    ((attempt,),) = [delivery.attempts for delivery in await client.deliveries(endpoint["entity_id"])]
    assert (attempt.error, attempt.address, attempt.HasField("status")) == (error, "127.0.0.1", False)
    assert attempt.HasField("connect_milliseconds") and not attempt.HasField("tls_milliseconds")
    assert receivers[host].requests == []
