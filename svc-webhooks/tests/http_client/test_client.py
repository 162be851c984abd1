"""The HTTP client, against real receivers on loopback and resolvers that lie."""

import asyncio
import datetime
import time
from collections.abc import Sequence

import pytest
import uvloop

from svc_webhooks.http_client.destinations import DestinationRefused
from svc_webhooks.http_client.resolver import NoAddress, ResolverFault

from ..receivers import (
    HOST,
    Answer,
    Authority,
    Received,
    answering,
    disconnecting,
    endless_header,
    garbage,
    gigabyte,
    hanging,
    receiver,
    saying,
    trickling,
    trickling_headers,
)
from ..wire import URL, Resolver, http_client

NOW = datetime.datetime.now(datetime.UTC)


# These tests use the product's event loop; other tests that send use the standard library's.
pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore:Overriding:pytest.PytestDeprecationWarning"),
]


@pytest.fixture(scope="module")
def event_loop_policy() -> asyncio.AbstractEventLoopPolicy:
    policy: asyncio.AbstractEventLoopPolicy = uvloop.EventLoopPolicy()
    return policy


async def test_the_body_is_sent_as_it_is_with_host_and_name_of_the_destination(authority: Authority) -> None:
    async with (
        receiver(authority.context(), answering(204)) as endpoint,
        http_client(authority, endpoint.override) as out,
    ):
        outcome = await out.post(URL, b'{"a": 1}', {"Content-Type": "application/json"})
    assert (outcome.status, outcome.error, outcome.succeeded, outcome.is_internal_fault) == (204, "", True, False)
    (request,) = endpoint.requests
    assert request.request_line == "POST /hook?a=b HTTP/1.1"
    assert request.body == b'{"a": 1}'
    assert request.headers == {
        "host": HOST,
        "content-type": "application/json",
        "content-length": "8",
        "user-agent": "Makeready-Webhooks/1",
    }


@pytest.mark.parametrize(
    "authority_part", ["receiver.test.", "receiver.test:", "RECEIVER.test.:", "receiver.test.:443"]
)
async def test_a_final_dot_and_an_empty_port_stay_out_of_the_request(authority: Authority, authority_part: str) -> None:
    """No certificate has the dot, and a receiver that chooses its site by SNI and Host must find one."""
    context, names = authority.context(), []
    context.sni_callback = lambda _socket, name, _context: names.append(name)
    async with receiver(context, answering(204)) as endpoint, http_client(authority, endpoint.override) as out:
        outcome = await out.post(f"https://{authority_part}/hook", b"{}", {})
        assert (await out.post(URL, b"{}", {})).succeeded
        assert out.name_of(f"https://{authority_part}/hook") == out.name_of(URL) == HOST
    assert (outcome.error, outcome.succeeded) == ("", True)
    assert [request.headers["host"] for request in endpoint.requests] == [HOST, HOST]
    assert names == [HOST] and endpoint.connections == 1  # both use one connection


async def test_a_final_dot_hides_no_wrong_certificate(authority: Authority) -> None:
    async with (
        receiver(authority.context("elsewhere.test"), answering(204)) as endpoint,
        http_client(authority, endpoint.override) as out,
    ):
        assert (await out.post(f"https://{HOST}./hook", b"{}", {})).error == "certificate"
    assert endpoint.requests == []


async def test_a_name_with_a_final_dot_is_resolved_without_it() -> None:
    """The resolver adds the dot by itself."""
    resolver = Resolver(["10.0.0.1"])
    async with http_client(None, {}, resolve=resolver) as out:
        with pytest.raises(DestinationRefused):
            await out.check("https://hooks.example.com./in")
    assert resolver.asked == ["hooks.example.com"]


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
async def test_any_2xx_is_success(authority: Authority, status: int) -> None:
    async with (
        receiver(authority.context(), answering(status)) as endpoint,
        http_client(authority, endpoint.override) as out,
    ):
        assert (await out.post(URL, b"{}", {})).succeeded


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n<html></html>",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\nok\r\n",
        b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ],
)
async def test_what_follows_a_2xx_takes_nothing_back(authority: Authority, raw: bytes) -> None:
    async with (
        receiver(authority.context(), saying(raw)) as endpoint,
        http_client(authority, endpoint.override) as out,
    ):
        for _ in range(2):
            assert (await out.post(URL, b"{}", {})).succeeded
    assert len(endpoint.requests) == 2


@pytest.mark.parametrize(
    ("status", "error"),
    [(301, "redirect"), (307, "redirect"), (410, "status"), (500, "status")],
)
async def test_any_other_status_fails(authority: Authority, status: int, error: str) -> None:
    async with (
        receiver(authority.context(), answering(status, b"no")) as endpoint,
        http_client(authority, endpoint.override) as out,
    ):
        outcome = await out.post(URL, b"{}", {})
    assert (outcome.status, outcome.error, outcome.excerpt) == (status, error, b"no")


async def test_a_redirect_is_not_followed(authority: Authority) -> None:
    answer = answering(302, b"", f"Location: https://{HOST}/elsewhere")
    async with receiver(authority.context(), answer) as endpoint, http_client(authority, endpoint.override) as out:
        outcome = await out.post(URL, b"{}", {})
    assert (outcome.status, outcome.error, len(endpoint.requests)) == (302, "redirect", 1)


async def test_connections_are_kept_and_reused(authority: Authority) -> None:
    answer = answering(200, b"x" * 6000)
    async with receiver(authority.context(), answer) as endpoint, http_client(authority, endpoint.override) as out:
        for _ in range(5):
            assert (await out.post(URL, b"{}", {})).succeeded
    assert (len(endpoint.requests), endpoint.connections) == (5, 1)


async def test_a_kept_connection_closed_by_the_receiver_is_no_failure(authority: Authority) -> None:
    async def once(request: Received, writer: asyncio.StreamWriter) -> None:
        if request.connection == 1 and len(endpoint.requests) == 2:
            writer.close()
            return
        await answering(200)(request, writer)

    async with receiver(authority.context(), once) as endpoint, http_client(authority, endpoint.override) as out:
        assert (await out.post(URL, b"{}", {})).succeeded
        assert (await out.post(URL, b"{}", {})).succeeded
    assert endpoint.connections == 2


async def test_a_receiver_that_always_hangs_up_fails_once(authority: Authority) -> None:
    async with (
        receiver(authority.context(), disconnecting) as endpoint,
        http_client(authority, endpoint.override) as out,
    ):
        outcome = await out.post(URL, b"{}", {})
    assert (outcome.error, len(endpoint.requests)) == ("disconnected", 1)


@pytest.mark.parametrize(
    ("answer", "error"), [(hanging, "timeout"), (trickling, "timeout"), (trickling_headers, "timeout")]
)
async def test_a_slow_receiver_ends_at_the_deadline(authority: Authority, answer: Answer, error: str) -> None:
    started = time.monotonic()
    async with (
        receiver(authority.context(), answer) as endpoint,
        http_client(authority, endpoint.override, deadline_seconds=0.6) as out,
    ):
        outcome = await out.post(URL, b"{}", {})
    assert outcome.error == error
    assert 0.5 < time.monotonic() - started < 30
    assert 500 <= outcome.duration_milliseconds < 30_000


async def test_a_receiver_that_never_shakes_hands_ends_at_the_deadline(authority: Authority) -> None:
    silent = await asyncio.start_server(lambda _, __: asyncio.sleep(5), "127.0.0.1", 0)
    override = {HOST: ("127.0.0.1", silent.sockets[0].getsockname()[1])}
    async with http_client(authority, override, deadline_seconds=0.4) as out:
        outcome = await out.post(URL, b"{}", {})
    silent.close()
    assert outcome.error == "timeout"


async def test_a_gigabyte_is_not_read(authority: Authority) -> None:
    started = time.monotonic()
    async with receiver(authority.context(), gigabyte) as endpoint, http_client(authority, endpoint.override) as out:
        outcome = await out.post(URL, b"{}", {})
    assert outcome.succeeded
    assert outcome.excerpt == b"x" * 4096
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("answer", [garbage, endless_header])
async def test_garbage_is_a_failure_of_the_protocol(authority: Authority, answer: Answer) -> None:
    async with receiver(authority.context(), answer) as endpoint, http_client(authority, endpoint.override) as out:
        outcome = await out.post(URL, b"{}", {})
    assert outcome.error == "protocol"


async def test_a_compressed_response_is_not_unpacked(authority: Authority) -> None:
    answer = answering(200, b"not gzip at all", "Content-Encoding: gzip")
    async with receiver(authority.context(), answer) as endpoint, http_client(authority, endpoint.override) as out:
        outcome = await out.post(URL, b"{}", {})
    assert (outcome.succeeded, outcome.excerpt) == (True, b"not gzip at all")


async def test_a_certificate_that_has_expired_is_refused(authority: Authority) -> None:
    context = authority.context(not_after=NOW - datetime.timedelta(days=1))
    async with receiver(context, answering(200)) as endpoint, http_client(authority, endpoint.override) as out:
        outcome = await out.post(URL, b"{}", {})
    assert (outcome.error, endpoint.requests) == ("certificate", [])


async def test_a_certificate_of_another_name_is_refused(authority: Authority) -> None:
    context = authority.context("other.test")
    async with receiver(context, answering(200)) as endpoint, http_client(authority, endpoint.override) as out:
        outcome = await out.post(URL, b"{}", {})
    assert (outcome.error, endpoint.requests) == ("certificate", [])


async def test_a_certificate_of_an_unknown_authority_is_refused(authority: Authority) -> None:
    async with (
        receiver(Authority().context(), answering(200)) as endpoint,
        http_client(authority, endpoint.override) as out,
    ):
        outcome = await out.post(URL, b"{}", {})
    assert (outcome.error, endpoint.requests) == ("certificate", [])


async def test_without_the_extra_authority_its_certificates_are_refused(authority: Authority) -> None:
    async with receiver(authority.context(), answering(200)) as endpoint, http_client(None, endpoint.override) as out:
        outcome = await out.post(URL, b"{}", {})
    assert outcome.error == "certificate"


async def test_a_receiver_without_tls_is_refused(authority: Authority) -> None:
    heard = []

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(1000))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    async with http_client(authority, {HOST: ("127.0.0.1", server.sockets[0].getsockname()[1])}) as out:
        outcome = await out.post(URL, b"in the clear", {})
    server.close()
    assert (outcome.status, outcome.error) == (None, "tls")
    assert b"in the clear" not in b"".join(heard)


async def test_a_closed_port_is_a_failure_to_connect(authority: Authority) -> None:
    async with receiver(authority.context(), answering(200)) as endpoint:
        pass
    async with http_client(authority, endpoint.override) as out:
        assert (await out.post(URL, b"{}", {})).error == "connect"


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["10.1.2.3"],
        ["8.8.8.8", "10.1.2.3"],  # one private address among several
        ["10.1.2.3", "8.8.8.8"],
        ["2606:4700:4700::1111", "fd00::1"],
        ["::ffff:169.254.169.254"],
        ["64:ff9b::a9fe:a9fe"],
        ["169.254.169.254"],
        ["100.64.1.1"],
        ["0.0.0.0"],
        ["::"],
        ["ff02::1"],
        ["fe80::1%eth0"],
    ],
    ids=str,
)
async def test_a_name_with_an_address_that_is_not_public_is_refused_and_never_dialled(
    addresses: list[str],
) -> None:
    async with http_client(None, {}, resolve=Resolver(addresses)) as out:
        with pytest.raises(DestinationRefused, match="public host"):
            await out.check("https://rebound.example.com/")
        outcome = await out.post("https://rebound.example.com/", b"{}", {})
    assert (outcome.status, outcome.error, outcome.is_internal_fault) == (None, "destination_refused", False)


@pytest.mark.parametrize(
    "url", ["https://127.0.0.1/", "https://[::1]/", "https://169.254.169.254/", "https://[::ffff:10.0.0.1]/"]
)
async def test_an_address_that_is_not_public_is_refused_without_a_resolver(url: str) -> None:
    resolver = Resolver(["8.8.8.8"])
    async with http_client(None, {}, resolve=resolver) as out:
        with pytest.raises(DestinationRefused):
            await out.check(url)
        assert (await out.post(url, b"{}", {})).error == "destination_refused"
    assert resolver.asked == []


async def test_public_at_create_and_private_at_send_is_refused_at_send(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("svc_webhooks.http_client.resolver.KEPT_SECONDS", 0.0)
    async with http_client(None, {}, resolve=Resolver(["8.8.8.8"], ["127.0.0.1"])) as out:
        await out.check("https://rebound.example.com/")
        assert (await out.post("https://rebound.example.com/", b"{}", {})).error == "destination_refused"


async def test_a_kept_connection_does_not_outlive_a_change_to_a_private_address(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The receiver's loopback address counts as public at first, then as private."""
    monkeypatch.setattr("svc_webhooks.http_client.resolver.KEPT_SECONDS", 0.0)
    public = [True]
    monkeypatch.setattr("svc_webhooks.http_client.client.is_public", lambda _: public[0])
    async with receiver(authority.context("moved.example.com"), answering(200)) as listening:
        endpoint = listening.port
        original = __import__("svc_webhooks.http_client.client", fromlist=["Endpoint"]).Endpoint
        monkeypatch.setattr("svc_webhooks.http_client.client.Endpoint", lambda address, *_: original(address, endpoint))
        async with http_client(authority, {}, resolve=Resolver(["127.0.0.1"])) as out:
            assert (await out.post("https://moved.example.com/", b"{}", {})).succeeded
            public[0] = False
            assert (await out.post("https://moved.example.com/", b"{}", {})).error == "destination_refused"
    assert (len(listening.requests), listening.connections) == (1, 1)


@pytest.mark.parametrize("answer", [NoAddress(), []], ids=str)
async def test_a_name_without_an_address_is_refused(answer: Sequence[str] | Exception) -> None:
    async with http_client(None, {}, resolve=Resolver(answer)) as out:
        with pytest.raises(DestinationRefused):
            await out.check("https://nobody.example.com/")
        assert (await out.post("https://nobody.example.com/", b"{}", {})).error == "no_address"


async def test_a_resolver_that_fails_is_a_fault_of_ours() -> None:
    async with http_client(None, {}, resolve=Resolver(ResolverFault())) as out:
        with pytest.raises(ResolverFault):
            await out.check("https://somebody.example.com/")
        outcome = await out.post("https://somebody.example.com/", b"{}", {})
    assert (outcome.error, outcome.is_internal_fault) == ("resolver", True)


async def test_a_resolver_that_hangs_is_a_fault_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svc_webhooks.http_client.resolver.RESOLVE_SECONDS_MAX", 0.2)
    async with http_client(None, {}, resolve=Resolver(30.0)) as out:
        with pytest.raises(ResolverFault):
            await out.check("https://somebody.example.com/")


async def test_simultaneous_sends_to_one_name_share_one_lookup() -> None:
    resolver = Resolver(["127.0.0.1"])
    async with http_client(None, {}, resolve=resolver) as out:
        await asyncio.gather(*(out.post("https://busy.example.com/", b"{}", {}) for _ in range(20)))
    assert resolver.asked == ["busy.example.com"]


async def test_the_next_address_is_tried_where_one_refuses(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svc_webhooks.http_client.client.is_public", lambda _: True)
    async with receiver(authority.context("two.example.com"), answering(200)) as endpoint:
        monkeypatch.setattr("svc_webhooks.http_client.destinations.HTTPS_PORT", endpoint.port)
        async with http_client(authority, {}, resolve=Resolver(["127.0.0.9", "127.0.0.1"])) as out:
            assert (await out.post("https://two.example.com/", b"{}", {})).succeeded


async def test_the_system_resolver_distinguishes_a_missing_name_from_its_own_failure() -> None:
    async with http_client(None, {}) as out:
        with pytest.raises((DestinationRefused, ResolverFault)):
            await out.check("https://makeready-no-such-name.com/")
