"""The client's connections to real receivers: their times, reuse and end."""

import asyncio
import os
import ssl
import tracemalloc
from pathlib import Path

import pytest

from ..harness import until
from ..receivers import HOST, Authority, Received, answering, disconnecting, receiver, saying
from ..wire import URL, Resolver, http_client


async def test_an_attempt_records_the_time_of_each_step_and_the_address(authority: Authority) -> None:
    async def slowly(request: Received, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.1)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
        await asyncio.sleep(0.1)
        writer.write(b"ok")

    async with receiver(authority.context(), slowly) as endpoint, http_client(authority, endpoint.override) as out:
        fresh, kept = await out.post(URL, b"{}", {}), await out.post(URL, b"{}", {})
    assert fresh.connect_milliseconds is not None and fresh.tls_milliseconds is not None
    assert fresh.first_byte_milliseconds is not None and fresh.first_byte_milliseconds >= 99
    assert fresh.connect_milliseconds + fresh.tls_milliseconds <= fresh.first_byte_milliseconds + 2
    assert fresh.duration_milliseconds >= max(199, fresh.first_byte_milliseconds)
    assert (kept.connect_milliseconds, kept.tls_milliseconds) == (None, None)
    assert kept.first_byte_milliseconds is not None and kept.first_byte_milliseconds >= 99
    assert fresh.address == kept.address == "127.0.0.1"
    assert endpoint.connections == 1


async def test_a_handshake_that_never_ends_has_connected_all_the_same(authority: Authority) -> None:
    async with (
        receiver(None, answering(200)) as endpoint,  # waits for a line of HTTP and sends nothing
        http_client(authority, endpoint.override, deadline_seconds=0.3) as out,
    ):
        outcome = await out.post(URL, b"{}", {})
    assert (outcome.error, outcome.is_internal_fault, outcome.address) == ("timeout", False, "127.0.0.1")
    assert outcome.connect_milliseconds is not None
    assert (outcome.tls_milliseconds, outcome.first_byte_milliseconds) == (None, None)


async def test_a_timeout_keeps_what_came_until_then(authority: Authority) -> None:
    async def stuck(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 9\r\n\r\nworking")
        await asyncio.sleep(30)

    async with (
        receiver(authority.context(), stuck) as endpoint,
        http_client(authority, endpoint.override, deadline_seconds=3.0) as out,
    ):
        outcome = await out.post(URL, b"{}", {})
    assert (outcome.status, outcome.error, outcome.excerpt) == (202, "timeout", b"working")
    assert outcome.first_byte_milliseconds is not None


async def test_what_was_never_dialled_has_no_address_and_no_times() -> None:
    async with http_client(None, {}, resolve=Resolver(["10.0.0.1"])) as out:
        outcome = await out.post("https://example.com/", b"{}", {})
    assert outcome.error == "destination_refused"
    assert (outcome.address, outcome.connect_milliseconds, outcome.first_byte_milliseconds) == (None, None, None)


@pytest.mark.parametrize(
    ("raw", "excerpt", "connections"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok", 1),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n1;x=y\r\n!\r\n0\r\nT: t\r\n\r\n", b"ok!", 1),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 P\r\n\r\nHTTP/1.1 204 N\r\n\r\n", b"", 1),
        (b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", b"", 1),
        (b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", b"ok", 1),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok", b"ok", 1),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok", 2),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok", b"ok", 2),
        (b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 500 No\r\n\r\n", b"", 2),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", b"", 2),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"", 2),
        (b"HTTP/1.1 200 OK\r\nno header\r\n\r\n", b"", 2),
    ],
)
async def test_a_connection_is_kept_where_the_response_says_that_it_may(
    authority: Authority, raw: bytes, excerpt: bytes, connections: int
) -> None:
    async with receiver(authority.context(), saying(raw)) as endpoint, http_client(authority, endpoint.override) as out:
        for _ in range(2):
            outcome = await out.post(URL, b"{}", {})
            assert (outcome.error, outcome.excerpt) == ("", excerpt)
    assert (endpoint.connections, len(endpoint.requests)) == (connections, 2)


@pytest.mark.parametrize(
    ("raw", "status", "error", "excerpt"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", 200, "", b"until the end"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ncut off", 200, "", b"cut off"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ncut", 200, "", b"cut"),
        (b"HTTP/1.1 500 No\r\n\r\nsorry", 500, "status", b"sorry"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nx", 101, "status", b""),
        (b"HTTP/1.1 200 OK\r\nContent-Le", None, "disconnected", b""),
        (b"", None, "disconnected", b""),
        (b"HTTP/1.1 100 Continue\r\n\r\n", None, "disconnected", b""),
        (b"HTTP/1.1 500 No\r\nno header\r\n\r\n", 500, "status", b""),
        (b"HTTP/1.1 100 Continue\r\nno header\r\n\r\n", None, "protocol", b""),
        (b"HTTP/1.1 100 Continue\r\n\r\nno response", None, "protocol", b""),
        (b"HTTP/1.1 20 OK\r\n\r\n", None, "protocol", b""),
        (b"HTTP/1.1 2000 OK\r\n\r\n", None, "protocol", b""),
        (b"HTTP/2 200\r\n\r\n", None, "protocol", b""),
        (b"HTTP/1.1 abc OK\r\n\r\n", None, "protocol", b""),
        (b"SSH-2.0-OpenSSH_9.9\r\n", None, "protocol", b""),
        (b"\x00" * 100, None, "protocol", b""),
    ],
)
async def test_a_response_that_the_receiver_ends_counts_as_far_as_it_came(
    authority: Authority, raw: bytes, status: int | None, error: str, excerpt: bytes
) -> None:
    async def say_and_close(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)
        writer.close()

    async with (
        receiver(authority.context(), say_and_close) as endpoint,
        http_client(authority, endpoint.override) as out,
    ):
        outcome = await out.post(URL, b"{}", {})
    assert (outcome.status, outcome.error, outcome.excerpt) == (status, error, excerpt)


@pytest.mark.parametrize(
    "again", [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n"], ids=["100", "103"]
)
async def test_interim_responses_without_end_are_no_response(authority: Authority, again: bytes) -> None:
    async def flood(_: Received, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(again * 1000)
            await writer.drain()

    async with receiver(authority.context(), flood) as endpoint, http_client(authority, endpoint.override) as out:
        assert (await out.post(URL, b"{}", {})).error == "protocol"


async def test_trailers_without_end_are_not_read(authority: Authority) -> None:
    async def flood(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n")
        while True:
            writer.write(b"Trailer: x\r\n" * 1000)
            await writer.drain()

    async with receiver(authority.context(), flood) as endpoint, http_client(authority, endpoint.override) as out:
        outcome = await out.post(URL, b"{}", {})
    assert (outcome.error, outcome.excerpt) == ("", b"ok")


async def test_what_comes_unasked_for_ends_a_kept_connection(authority: Authority) -> None:
    """Some servers send 408 before they close; it must not become the response to the next request."""
    async with (
        receiver(authority.context(), answering(200)) as endpoint,
        http_client(authority, endpoint.override) as out,
    ):
        assert (await out.post(URL, b"{}", {})).succeeded
        for writer in endpoint.writers:
            writer.write(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
        await asyncio.sleep(0.1)
        assert (await out.post(URL, b"{}", {})).succeeded
    assert endpoint.connections == 2


async def test_a_receiver_that_hangs_up_on_every_second_request_loses_none(authority: Authority) -> None:
    seen: set[int] = set()

    async def once_each(request: Received, writer: asyncio.StreamWriter) -> None:
        if request.connection in seen:
            await disconnecting(request, writer)
            return
        seen.add(request.connection)
        await answering(200)(request, writer)

    async with receiver(authority.context(), once_each) as endpoint, http_client(authority, endpoint.override) as out:
        outcomes = [await out.post(URL, b"{}", {}) for _ in range(6)]
    assert [outcome.error for outcome in outcomes] == [""] * 6
    assert endpoint.connections == 6
    assert outcomes[1].connect_milliseconds is not None  # from the fresh connection that served the request


async def test_connections_are_closed_when_nothing_was_sent_for_a_while(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svc_webhooks.http_client.pool.IDLE_SECONDS_MAX", 0.2)
    async with (
        receiver(authority.context(), answering(200)) as endpoint,
        http_client(authority, endpoint.override) as out,
    ):
        await asyncio.gather(*(out.post(URL, b"{}", {}) for _ in range(3)))
        assert endpoint.connections == 3
        await until(lambda: not endpoint.writers)
        assert (await out.post(URL, b"{}", {})).succeeded
    assert endpoint.connections == 4


async def test_no_more_connections_are_kept_than_allowed(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svc_webhooks.http_client.pool.KEPT_MAX", 2)
    async with (
        receiver(authority.context(), answering(200)) as endpoint,
        http_client(authority, endpoint.override) as out,
    ):
        outcomes = await asyncio.gather(*(out.post(URL, b"{}", {}) for _ in range(5)))
        assert all(outcome.succeeded for outcome in outcomes)
        await until(lambda: len(endpoint.writers) == 2)


async def test_closing_closes_what_was_kept(authority: Authority) -> None:
    async with receiver(authority.context(), answering(200)) as endpoint:
        async with http_client(authority, endpoint.override) as out:
            assert (await out.post(URL, b"{}", {})).succeeded
            assert len(endpoint.writers) == 1
        await until(lambda: not endpoint.writers)


async def test_failures_leave_no_descriptor_open(authority: Authority) -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    async with (
        receiver(None, answering(200)) as silent,
        receiver(Authority().context(), answering(200)) as strange,
        receiver(authority.context(), disconnecting) as rude,
    ):
        before = descriptors()
        for endpoint in (silent, strange, rude):
            async with http_client(authority, endpoint.override, deadline_seconds=0.2) as out:
                outcomes = await asyncio.gather(*(out.post(URL, b"{}", {}) for _ in range(10)))
                assert not any(outcome.succeeded for outcome in outcomes)
        async with http_client(authority, {HOST: ("127.0.0.1", 1)}) as out:
            assert (await out.post(URL, b"{}", {})).error == "connect"
        await until(lambda: not (silent.writers or strange.writers or rude.writers))
        await asyncio.sleep(0.05)
        assert descriptors() <= before


async def test_a_kept_connection_to_any_of_the_addresses_is_used_before_one_is_dialled(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address that is down then costs its timeout once, not with every delivery."""
    monkeypatch.setattr("svc_webhooks.http_client.client.is_public", lambda _: True)
    async with receiver(authority.context("two.example.com"), answering(200)) as endpoint:
        monkeypatch.setattr("svc_webhooks.http_client.destinations.HTTPS_PORT", endpoint.port)
        async with http_client(authority, {}, resolve=Resolver(["127.0.0.9", "127.0.0.1"])) as out:
            outcomes = [await out.post("https://two.example.com/", b"{}", {}) for _ in range(3)]
    assert [(outcome.error, outcome.address) for outcome in outcomes] == [("", "127.0.0.1")] * 3
    assert [outcome.connect_milliseconds is None for outcome in outcomes] == [False, True, True]


async def test_an_address_that_never_shakes_hands_gives_way_to_the_next(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svc_webhooks.http_client.client.is_public", lambda _: True)
    monkeypatch.setattr("svc_webhooks.http_client.client.CONNECT_SECONDS_MAX", 0.2)
    async with receiver(authority.context("two.example.com"), answering(200)) as endpoint:
        silent = await asyncio.start_server(lambda _, __: asyncio.sleep(5), "127.0.0.2", endpoint.port)
        monkeypatch.setattr("svc_webhooks.http_client.destinations.HTTPS_PORT", endpoint.port)
        async with http_client(authority, {}, resolve=Resolver(["127.0.0.2", "127.0.0.1"])) as out:
            outcome = await out.post("https://two.example.com/", b"{}", {})
        silent.close()
    assert (outcome.error, outcome.address) == ("", "127.0.0.1")


async def test_http_1_1_is_all_that_is_offered(authority: Authority) -> None:
    context = authority.context()
    context.set_alpn_protocols(["h2", "http/1.1"])
    agreed: list[str | None] = []

    async def note(request: Received, writer: asyncio.StreamWriter) -> None:
        tls: ssl.SSLObject = writer.get_extra_info("ssl_object")
        agreed.append(tls.selected_alpn_protocol())
        await answering(200)(request, writer)

    async with receiver(context, note) as endpoint, http_client(authority, endpoint.override) as out:
        assert (await out.post(URL, b"{}", {})).succeeded
    assert agreed == ["http/1.1"]


async def test_a_large_body_goes_out_whole_and_a_large_answer_comes_in(authority: Authority) -> None:
    body = os.urandom(3_000_000)
    async with (
        receiver(authority.context(), answering(200, b"y" * 60_000)) as endpoint,
        http_client(authority, endpoint.override) as out,
    ):
        outcomes = [await out.post(URL, body, {}) for _ in range(2)]
    assert [request.body == body for request in endpoint.requests] == [True, True]
    assert [(outcome.error, outcome.excerpt) for outcome in outcomes] == [("", b"y" * 4096)] * 2
    assert endpoint.connections == 1


async def test_a_body_that_the_receiver_does_not_take_is_held_once(authority: Authority) -> None:
    """A thousand attempts may hang at once, with bodies of a hundred kilobytes each."""
    body = os.urandom(16_000_000)

    async def deaf(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await over.wait()
        writer.close()

    over = asyncio.Event()
    server = await asyncio.start_server(deaf, "127.0.0.1", 0, ssl=authority.context())
    override = {HOST: ("127.0.0.1", server.sockets[0].getsockname()[1])}
    async with server, http_client(authority, override, deadline_seconds=1) as out:
        tracemalloc.start()
        outcome = await out.post(URL, body, {})
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        over.set()
    assert outcome.error == "timeout"
    assert most < len(body) / 4


async def test_an_answer_before_the_end_of_the_request_counts_and_ends_the_connection(authority: Authority) -> None:
    connections = 0

    async def hasty(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        await over.wait()
        writer.close()

    over = asyncio.Event()
    server = await asyncio.start_server(hasty, "127.0.0.1", 0, ssl=authority.context())
    override = {HOST: ("127.0.0.1", server.sockets[0].getsockname()[1])}
    async with server, http_client(authority, override) as out:
        outcomes = [await out.post(URL, bytes(16_000_000), {}) for _ in range(2)]
        over.set()
    assert [(outcome.status, outcome.error) for outcome in outcomes] == [(413, "status")] * 2
    assert connections == 2
