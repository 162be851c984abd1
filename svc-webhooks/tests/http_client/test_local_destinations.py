"""Local receivers, which sandboxes may have where the operator allows it: http, any port, private hosts."""

from __future__ import annotations

import json

import pytest

from svc_webhooks.http_client.destinations import DestinationRefused, is_local, parse
from svc_webhooks.http_client.resolver import NoAddress
from testkit.hostile_destinations import EVERY_DESTINATION

from ..receivers import Authority, answering, receiver
from ..wire import Resolver, http_client

LOCAL = [
    ("http://localhost:8000/hook", "localhost:8000", "/hook"),
    ("http://localhost", "localhost", "/"),
    ("HTTP://Localhost:80/", "localhost", "/"),
    ("https://localhost:8443/?a=b", "localhost:8443", "/?a=b"),
    ("http://127.0.0.1:1/", "127.0.0.1:1", "/"),
    ("http://[::1]:65535/", "[::1]:65535", "/"),
    ("http://10.1.2.3/", "10.1.2.3", "/"),
    ("http://receiver/", "receiver", "/"),
    ("http://hooks.internal:3000/", "hooks.internal:3000", "/"),
    ("https://example.com:443/", "example.com", "/"),
]
NEVER = [
    "http://169.254.169.254/latest/meta-data",
    "http://[fe80::1]/",
    "http://[fd00:ec2::254]/latest/meta-data",
    "http://[fd20:ce::254]/",
    "http://0.0.0.0:8000/",
    "http://[::]/",
    "http://224.0.0.1/",
    "http://100.100.100.200/",
    "http://168.63.129.16/",
    "http://[::ffff:169.254.169.254]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://2130706433/",
    "http://0x7f.1/",
    "http://127.1/",
    "http://localhost:0/",
    "http://localhost:65536/",
    "http://localhost:080/",
    "http://localhost:80a/",
    "http://user@localhost/",
    "http://localhost\\@example.com/",
    "ftp://localhost/",
    "ws://localhost/",
    "file:///etc/passwd",
    "http:///hook",
    "//localhost/",
]


@pytest.mark.parametrize(("url", "authority", "target"), LOCAL)
def test_a_local_receiver_is_named_by_scheme_host_and_port(url: str, authority: str, target: str) -> None:
    destination = parse(url, may_be_local=True)
    assert (destination.authority, destination.target) == (authority, target)
    assert destination.is_plain == url.lower().startswith("http:")


@pytest.mark.parametrize("url", [url for url, *_ in LOCAL if url != "https://example.com:443/"] + NEVER)
async def test_without_the_setting_none_is_taken(authority: Authority, url: str) -> None:
    resolver = Resolver(["8.8.8.8"])
    async with http_client(authority, {}, resolve=resolver) as out:
        with pytest.raises(DestinationRefused):
            await out.check(url)
        assert (await out.post(url, b"{}", {})).error == "destination_refused"
    assert resolver.asked == []


@pytest.mark.parametrize("url", NEVER)
async def test_with_it_none_leads_to_metadata_or_is_read_in_two_ways(authority: Authority, url: str) -> None:
    resolver = Resolver(["127.0.0.1"])
    async with http_client(authority, {}, resolve=resolver) as out:
        with pytest.raises(DestinationRefused):
            await out.check(url, may_be_local=True)
        assert (await out.post(url, b"{}", {}, may_be_local=True)).error == "destination_refused"
    assert resolver.asked == []


@pytest.mark.parametrize("answer", ["169.254.169.254", "100.64.0.1", "0.0.0.0", "fe80::1", "fd00:ec2::254", "ff02::1"])
async def test_a_name_that_leads_elsewhere_is_refused_at_creation_and_at_each_send(
    authority: Authority, answer: str
) -> None:
    async with http_client(authority, {}, resolve=Resolver(["127.0.0.1", answer])) as out:
        with pytest.raises(DestinationRefused, match="private"):
            await out.check("http://receiver:8000/", may_be_local=True)
        outcome = await out.post("http://receiver:8000/", b"{}", {}, may_be_local=True)
        assert (outcome.error, outcome.address) == ("destination_refused", None)


async def test_a_delivery_goes_by_http_and_the_connection_is_kept(authority: Authority) -> None:
    async with receiver(None, answering(200, b"thanks")) as listening, http_client(authority, {}) as out:
        url = f"http://127.0.0.1:{listening.port}/hook"
        await out.check(url, may_be_local=True)
        body = json.dumps({"text": "x" * 200_000}).encode()
        for _ in range(3):
            outcome = await out.post(url, body, {"X-Request-Id": "r"}, may_be_local=True)
            assert (outcome.status, outcome.error, outcome.excerpt, outcome.tls_milliseconds) == (
                200,
                "",
                b"thanks",
                None,
            )
        assert listening.connections == 1
        (first, *_) = listening.requests
        assert first.body == body and first.headers["host"] == f"127.0.0.1:{listening.port}"
        assert out.name_of(url) == f"127.0.0.1:{listening.port}"
        # What one may dial, others may not, though a connection is open.
        assert (await out.post(url, body, {})).error == "destination_refused"


async def test_a_kept_connection_without_tls_serves_no_request_that_asks_for_it(authority: Authority) -> None:
    async with receiver(None, answering(200)) as listening, http_client(authority, {}) as out:
        plain, secure = (f"{scheme}://127.0.0.1:{listening.port}/" for scheme in ("http", "https"))
        assert (await out.post(plain, b"{}", {}, may_be_local=True)).succeeded
        outcome = await out.post(secure, b"{}", {}, may_be_local=True)
        assert outcome.error in ("tls", "disconnected", "protocol", "timeout") and len(listening.requests) == 1


@pytest.mark.parametrize("url", ["http://example.com/", "https://example.com:8443/", "http://8.8.8.8/"])
async def test_public_receivers_are_reached_by_https_on_port_443_alone(authority: Authority, url: str) -> None:
    async with http_client(authority, {}, resolve=Resolver(["8.8.8.8"])) as out:
        with pytest.raises(DestinationRefused, match="port 443"):
            await out.check(url, may_be_local=True)
        await out.check("https://example.com/", may_be_local=True)
    async with http_client(authority, {}, resolve=Resolver(["127.0.0.1", "8.8.8.8"])) as out:
        with pytest.raises(DestinationRefused):
            await out.check("http://both.example/", may_be_local=True)


async def test_a_name_that_is_not_there_has_no_address(authority: Authority) -> None:
    async with http_client(authority, {}, resolve=Resolver(NoAddress())) as out:
        assert (await out.post("http://nowhere/", b"{}", {}, may_be_local=True)).error == "no_address"


async def test_what_is_hostile_is_local_at_most(authority: Authority) -> None:
    """Of all the spellings that are refused otherwise, those that are taken lead to loopback or private addresses."""
    resolver = Resolver(["127.0.0.1"])
    async with http_client(authority, {}, resolve=resolver) as out:
        for url in EVERY_DESTINATION:
            try:
                destination = parse(url, may_be_local=True)
            except DestinationRefused:
                continue
            if destination.address is not None and not is_local(destination.address):
                with pytest.raises(DestinationRefused):
                    await out.check(url, may_be_local=True)
