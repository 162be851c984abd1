"""Whatever bytes arrive, the answer is in the envelope: never text, HTML, or a dropped connection."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from random import Random

import pytest

from chassis.http.heads import HEADERS_MAX, LINE_BYTES_MAX
from testkit.gateways import Operator
from testkit.patience import PATIENCE_SECONDS
from testkit.raw_http import MALFORMED_CHUNKS, Api, RawConnection
from testkit.stub_contexts import Contexts

HOST = b"Host: test\r\n"
LONG_HEAD = b"GET /api/v1/whoami HTTP/1.1\r\n" + HOST + (b"X: " + b"x" * 4000 + b"\r\n") * 9
MALFORMED = {
    "verb with a bracket": b"GET[ /api/v1/whoami HTTP/1.1\r\n" + HOST + b"\r\n",
    "verb outside ASCII": b"G\xc3\x89T /api/v1/whoami HTTP/1.1\r\n" + HOST + b"\r\n",
    "no verb": b" /api/v1/whoami HTTP/1.1\r\n" + HOST + b"\r\n",
    "verb longer than a line may be": b"A" * LINE_BYTES_MAX + b" /api/v1/whoami HTTP/1.1\r\n" + HOST + b"\r\n",
    "garbage": b"\x00\x01\x02\x03\r\n\r\n",
    "TLS on the plain port": bytes.fromhex("16030100c8010000c40303") + bytes(200) + b"\r\n\r\n",
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "unknown version": b"GET /api/v1/whoami HTTP/3.7\r\n" + HOST + b"\r\n",
    "version 0.9": b"GET /api/v1/whoami\r\n\r\n",
    "version 0.9 by name": b"GET /api/v1/whoami HTTP/0.9\r\n" + HOST + b"\r\n",
    "version 1.2": b"GET /api/v1/whoami HTTP/1.2\r\n" + HOST + b"\r\n",
    "version 2.0": b"GET /api/v1/whoami HTTP/2.0\r\n" + HOST + b"\r\n",
    "two blanks before the target": b"GET  /api/v1/whoami HTTP/1.1\r\n" + HOST + b"\r\n",
    "two blanks before the version": b"GET /api/v1/whoami  HTTP/1.1\r\n" + HOST + b"\r\n",
    "blank behind the version": b"GET /api/v1/whoami HTTP/1.1 \r\n" + HOST + b"\r\n",
    "long head of short headers": LONG_HEAD + b"\r\n",
    "long head that does not end": LONG_HEAD,
    "TLS on the plain port, without a line": bytes.fromhex("16030100c8010000c40303") + bytes(200),
    "no target": b"GET  HTTP/1.1\r\n" + HOST + b"\r\n",
    "relative target": b"GET whoami HTTP/1.1\r\n" + HOST + b"\r\n",
    "space in the target": b"GET /api/v1/who ami HTTP/1.1\r\n" + HOST + b"\r\n",
    "bytes outside ASCII in the target": b"GET /api/v1/\xff\xfe HTTP/1.1\r\n" + HOST + b"\r\n",
    "long request line": b"GET /api/v1/whoami?q=" + b"x" * LINE_BYTES_MAX + b" HTTP/1.1\r\n" + HOST + b"\r\n",
    "long header": b"GET /api/v1/whoami HTTP/1.1\r\n" + HOST + b"X-Long: " + b"x" * (LINE_BYTES_MAX + 1) + b"\r\n\r\n",
    "huge header": b"GET /api/v1/whoami HTTP/1.1\r\n" + HOST + b"X-Long: " + b"x" * 2_000_000 + b"\r\n\r\n",
    "long header name": b"GET /api/v1/whoami HTTP/1.1\r\n" + HOST + b"x" * (LINE_BYTES_MAX + 1) + b": 1\r\n\r\n",
    "many headers": b"GET /api/v1/whoami HTTP/1.1\r\n" + HOST + b"X-A: 1\r\n" * (HEADERS_MAX + 1) + b"\r\n",
    "no host": b"GET /api/v1/whoami HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /api/v1/whoami HTTP/1.1\r\n" + HOST + HOST + b"\r\n",
    "header without colon": b"GET /api/v1/whoami HTTP/1.1\r\n" + HOST + b"nonsense\r\n\r\n",
    "space before the colon": b"GET /api/v1/whoami HTTP/1.1\r\n" + HOST + b"X-A : 1\r\n\r\n",
    "NUL in a header": b"GET /api/v1/whoami HTTP/1.1\r\n" + HOST + b"X-A: a\x00b\r\n\r\n",
    "folded header": b"GET /api/v1/whoami HTTP/1.1\r\n" + HOST + b"X-A: a\r\n b\r\n\r\n",
    "negative length": b"POST /api/v1/tickets HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n",
    "length in words": b"POST /api/v1/tickets HTTP/1.1\r\n" + HOST + b"Content-Length: ten\r\n\r\n",
    "length beyond counting": b"POST /api/v1/tickets HTTP/1.1\r\n" + HOST + b"Content-Length: %s\r\n\r\n" % (b"9" * 30),
    "two lengths": b"POST /api/v1/tickets HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "length and chunks": b"POST /api/v1/tickets HTTP/1.1\r\n"
    + HOST
    + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    **{
        f"transfer encoding {number}": b"POST /api/v1/tickets HTTP/1.1\r\n" + HOST + encoding + b"\r\n0\r\n\r\n"
        for number, encoding in enumerate(
            (
                b"Transfer-Encoding: gzip, chunked\r\n",
                b"Transfer-Encoding: identity, chunked\r\n",
                b"Transfer-Encoding: chunked, chunked\r\n",
                b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
                b"Transfer-Encoding: \r\n",
            )
        )
    },
    "chunks in HTTP/1.0": b"POST /api/v1/tickets HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "unknown transfer encoding": b"POST /api/v1/tickets HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip\r\n\r\nab",
}


@pytest.mark.parametrize("sent", MALFORMED.values(), ids=MALFORMED)
async def test_bytes_that_are_no_request_get_400_in_the_envelope(api: Api, sent: bytes) -> None:
    connection = await api.connect()
    await connection.send(sent)
    response = await connection.receive()
    assert (response.status, response.code) == (400, "invalid_request")
    assert response.header("Connection") == "close"
    assert await connection.is_closed()


async def test_a_request_that_never_ends_its_headers_is_answered_when_the_client_stops(api: Api) -> None:
    response = await api.raw(b"GET /api/v1/whoami HTTP/1.1\r\nHost: te", then_eof=True)
    assert (response.status, response.code) == (400, "invalid_request")


async def test_requests_before_the_malformed_one_are_answered_first(api: Api) -> None:
    connection = await api.connect()
    await connection.send(api.bytes("GET", "/nothing"))
    await asyncio.sleep(0.1)
    await connection.send(b"nonsense\r\n\r\n")
    assert (await connection.receive()).status == 404
    assert (await connection.receive()).status == 400
    assert await connection.is_closed()


async def test_a_verb_that_nobody_knows_is_a_request_like_any_other(api: Api, key: str) -> None:
    connection = await api.connect()
    foobar = api.bytes("FOOBAR", "/tickets", key, b"{}" * 40_000)
    chunked = api.bytes("foobar", "/tickets", Transfer_Encoding="chunked") + b"2\r\n{}\r\n0\r\n\r\n"
    await connection.send(api.bytes("GET", "/whoami", key) + foobar + chunked + api.bytes("FOOBAR", "/nothing"))
    assert (await connection.receive()).status == 200
    for _ in range(2):
        response = await connection.receive()
        assert (response.status, response.code) == (405, "method_not_allowed")
        assert response.header("Allow") == "GET, POST"
    assert (await connection.receive()).status == 404
    for byte in api.bytes("FOOBAR", "/tickets"):
        await connection.send(bytes([byte]))
        await asyncio.sleep(0)
    assert (await connection.receive()).status == 405


@pytest.mark.parametrize("target", ["*", "test:443", "http://elsewhere/api/v1/nothing"])
async def test_other_forms_of_target_are_answered(api: Api, target: str) -> None:
    verb = {"*": "OPTIONS", "test:443": "CONNECT"}.get(target, "GET")
    response = await api.raw(f"{verb} {target} HTTP/1.1\r\nHost: test\r\n\r\n".encode(), verb)
    assert (response.status, response.code) == (404, "not_found")


async def test_an_absolute_target_names_the_same_resource(api: Api, key: str) -> None:
    sent = f"GET http://test/api/v1/whoami HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {key}\r\n\r\n"
    assert (await api.raw(sent.encode())).status == 200
    sent = sent.replace("whoami", "whoami?x=1")
    assert (await api.raw(sent.encode())).code == "invalid_request"


@pytest.mark.parametrize(
    "path",
    [
        "//api/v1",
        "//api/v1/",
        "//api/v2/whoami",
        "//API/v1/whoami",
        "//favicon.ico",
        "//api/v1//whoami",
        "/whoami/",
        "/tickets/",
        "/tickets/1/",
        "/tickets/1/2",
        "/tickets%2F1",
        "/tickets/../whoami",
        "/nothing",
        "/%",
        "/%zz",
        "/%00",
        "/%ff%fe",
    ],
)
async def test_an_unknown_path_is_not_found_for_everybody(api: Api, key: str, path: str) -> None:
    for response in (await api.get(path), await api.get(path, key)):
        assert (response.status, response.code) == (404, "not_found")


async def test_an_encoded_letter_is_the_letter(api: Api, key: str) -> None:
    assert (await api.get("/who%61mi", key)).status == 200


@pytest.mark.parametrize("upgrade", ["websocket", "h2c", "TLS/1.0"])
async def test_an_upgrade_is_answered_in_http_1_and_closed(api: Api, key: str, upgrade: str) -> None:
    connection = await api.connect()
    await connection.send(api.bytes("GET", "/whoami", key, Connection="Upgrade", Upgrade=upgrade) + b"\x81\x05hello")
    response = await connection.receive()
    assert response.status == 200
    assert response.header("Connection") == "close"
    assert await connection.is_closed()


async def test_a_client_that_half_closes_gets_its_answer(api: Api, key: str) -> None:
    assert (await api.raw(api.bytes("GET", "/whoami", key), then_eof=True)).status == 200


async def test_http_1_0_is_answered_and_closed_unless_it_asks_to_stay(api: Api, key: str) -> None:
    sent = f"GET /api/v1/whoami HTTP/1.0\r\nAuthorization: Bearer {key}\r\n\r\n".encode()
    connection = await api.connect()
    await connection.send(sent)
    assert (await connection.receive()).status == 200
    assert await connection.is_closed()
    connection = await api.connect()
    for _ in range(2):
        await connection.send(sent.replace(b"\r\n\r\n", b"\r\nConnection: keep-alive\r\n\r\n"))
        assert (await connection.receive()).header("Connection") == "keep-alive"


async def test_requests_on_one_connection_are_answered_one_after_the_other(api: Api, key: str) -> None:
    connection = await api.connect()
    for _ in range(3):
        await connection.send(api.bytes("GET", "/whoami", key))
        response = await connection.receive()
        assert response.status == 200
        assert response.header("Connection") is None
    await connection.send(api.bytes("GET", "/whoami", key, Connection="close"))
    assert (await connection.receive()).header("Connection") == "close"
    assert await connection.is_closed()


async def test_pipelined_requests_are_answered_in_order(api: Api, key: str) -> None:
    connection = await api.connect()
    paths = ["/whoami", "/nothing", "/tickets?limit=3", "/tickets/0"] * 10
    requests = [api.bytes("GET", path, key) for path in paths]
    post = api.bytes("POST", "/tickets", key, b"{}" * 40_000, Idempotency_Key="one")
    await connection.send(b"".join([*requests, post, *requests]))
    expected = [200, 404, 200, 404] * 10
    assert [(await connection.receive()).status for _ in requests] == expected
    assert (await connection.receive()).status == 201
    assert [(await connection.receive()).status for _ in requests] == expected


async def test_pipelining_clients_that_do_not_read_are_held_back(api: Api) -> None:
    connection = await api.connect()
    connection.writer.transport.set_write_buffer_limits(high=0)
    request = api.bytes("GET", "/nothing", X_Padding="x" * 4000)
    sent = 0
    with contextlib.suppress(TimeoutError):
        while sent < 50_000:
            connection.writer.write(request * 100)
            sent += 100
            await asyncio.wait_for(connection.writer.drain(), 1)  # short: nothing takes it in
    assert sent < 50_000, "it took everything in"
    for _ in range(sent):
        assert (await connection.receive()).status == 404
    connection.close()


async def post(api: Api, key: str, head: str, *parts: bytes, eof: bool = False, pause: float = 0.05) -> RawConnection:
    """A POST /tickets whose body is sent in parts."""
    connection = await api.connect()
    lines = (
        f"POST /api/v1/tickets HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {key}\r\nIdempotency-Key: k\r\n{head}"
    )
    await connection.send(lines.encode() + b"\r\n")
    for part in parts:
        await asyncio.sleep(pause)
        await connection.send(part)
    if eof:
        connection.writer.write_eof()
    return connection


async def test_a_body_in_small_pieces_arrives_whole(api: Api, key: str, contexts: Contexts) -> None:
    connection = await post(api, key, "Content-Length: 8\r\n", *(b"%d" % n for n in range(8)))
    assert (await connection.receive()).status == 201
    assert contexts.seen[-1].request.body == b"01234567"


async def test_a_body_in_chunks_arrives_whole(api: Api, key: str, contexts: Contexts) -> None:
    head = "Transfer-Encoding: chunked\r\n"
    connection = await post(api, key, head, b"3\r\nabc\r\n", b"2;x=y\r\nde\r\n", b"0\r\nTrailer: 1\r\n\r\n")
    assert (await connection.receive()).status == 201
    assert contexts.seen[-1].request.body == b"abcde"
    await connection.send(api.bytes("GET", "/whoami", key))
    assert (await connection.receive()).status == 200


@pytest.mark.parametrize(
    ("head", "parts"),
    [
        ("Content-Length: 100\r\n", [b"{"]),
        ("Transfer-Encoding: chunked\r\n", [b"5\r\nab"]),
        ("Transfer-Encoding: chunked\r\n", [b"5\r\nabcde\r\n"]),
    ],
)
async def test_a_truncated_body_gets_400(api: Api, key: str, contexts: Contexts, head: str, parts: list[bytes]) -> None:
    connection = await post(api, key, head, *parts, eof=True)
    response = await connection.receive()
    assert (response.status, response.code) == (400, "invalid_request")
    assert await connection.is_closed()
    assert not contexts.seen


async def test_malformed_chunks_get_400(api: Api, key: str, contexts: Contexts) -> None:
    """All at the same time, because each waits for the longest pause of a body; `test_connection.py` tests them one by
    one."""

    async def refused(*parts: bytes) -> None:
        started = time.monotonic()
        connection = await post(api, key, "Transfer-Encoding: chunked\r\n", *parts)
        response = await connection.receive()
        assert (response.status, response.code) == (400, "invalid_request"), parts
        assert await connection.is_closed()
        assert time.monotonic() - started < 28, parts  # a body that goes on has 30 s

    await asyncio.gather(*(refused(*before, junk) for junk in MALFORMED_CHUNKS for before in ((), (b"2\r\nab\r\n",))))
    assert not contexts.seen


async def test_malformed_chunks_right_behind_the_headers_get_400(api: Api, key: str) -> None:
    head = api.bytes("POST", "/tickets", key, Idempotency_Key="k", Transfer_Encoding="chunked")
    assert (await api.raw(head + b"zz\r\n")).code == "invalid_request"


async def test_an_oversized_body_reaches_the_service_cut_for_it_to_refuse(
    api: Api, key: str, contexts: Contexts
) -> None:
    most = 256 * 1024
    for size, arrived in ((most, most), (most + 1, most + 1), (most + 2, most + 1), (3_000_000, most + 1)):
        response = await api.request("POST", "/tickets", key, b"x" * size, Idempotency_Key=f"k{size}")
        assert response.status == 201
        assert len(contexts.seen[-1].request.body) == arrived


async def test_an_endless_body_is_answered_and_cut_off(api: Api, key: str) -> None:
    connection = await post(api, key, "Content-Length: 1000000000000\r\n", b"x" * 300_000)
    response = await connection.receive()
    assert response.header("Connection") == "close"
    with pytest.raises((ConnectionError, TimeoutError)):
        async with asyncio.timeout(10):  # short: nothing takes it in
            while True:
                await connection.send(b"x" * 100_000)
                await asyncio.sleep(0)


async def test_an_unexpected_body_is_skipped(api: Api, key: str) -> None:
    connection = await api.connect()
    for size in (1, 100_000, 300_000):
        await connection.send(api.bytes("GET", "/whoami", key, b"x" * size))
        assert (await connection.receive()).status == 200
    await connection.send(api.bytes("DELETE", "/webhooks/0", key, b"x" * 10))
    assert (await connection.receive("DELETE")).status == 404


async def test_a_refused_write_does_not_need_its_body(api: Api) -> None:
    connection = await api.connect()
    await connection.send(b"POST /api/v1/tickets HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\n")
    assert (await connection.receive()).code == "unauthorized"
    await connection.send(b"0123456789" + api.bytes("GET", "/nothing"))
    assert (await connection.receive()).status == 404


async def test_a_client_is_asked_to_continue_once_its_body_is_wanted(api: Api, key: str) -> None:
    connection = await post(api, key, "Expect: 100-continue\r\nContent-Length: 2\r\n")
    assert await connection.reader.readexactly(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
    await connection.send(b"{}")
    assert (await connection.receive()).status == 201


async def test_a_refused_client_is_not_asked_to_continue_and_its_connection_ends(api: Api) -> None:
    connection = await post(api, "mk_none", "Expect: 100-continue\r\nContent-Length: 2\r\n")
    response = await connection.receive()
    assert (response.status, response.interim) == (401, ())
    assert response.header("Connection") == "close"
    assert await connection.is_closed()


async def test_content_encoding_and_type_are_not_looked_at(api: Api, key: str, contexts: Contexts) -> None:
    for number, encoding in enumerate(("gzip", "deflate", "br", "zstd", "nonsense")):
        response = await api.request(
            "POST", "/tickets", key, b"{}", Idempotency_Key=str(number), Content_Encoding=encoding, Content_Type="x/y"
        )
        assert response.status == 201
        assert contexts.seen[-1].request.body == b"{}"


async def test_header_bytes_outside_ascii_are_answered(api: Api, key: str) -> None:
    assert (await api.get("/whoami", key, X_Name="caf\xe9")).status == 200
    assert (await api.get("/whoami", "mk_caf\xe9")).code == "unauthorized"
    response = await api.request("POST", "/tickets", key, b"{}", Idempotency_Key="caf\xe9")
    assert response.code == "invalid_request"


SEEDS = [
    "GET /api/v1/tickets?limit=5&status=Open&updated_since=2026-01-01T00:00:00Z HTTP/1.1\r\nHost: a\r\n"
    "Authorization: Bearer {key}\r\nUser-Agent: fuzz\r\n\r\n",
    "POST /api/v1/tickets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\nIdempotency-Key: k\r\n"
    'Content-Length: 12\r\nExpect: 100-continue\r\n\r\n{{"unit_id":1}}',
    "POST /api/v1/webhooks HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\nIdempotency-Key: k\r\n"
    "Transfer-Encoding: chunked\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n",
    "DELETE /api/v1/webhooks/1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\nTE: trailers\r\n\r\n",
]
SPLICES = [
    b"\r\n",
    b"\n",
    b"\r",
    b"\x00",
    b" ",
    b":",
    b"/",
    b"%",
    b"?",
    b"&",
    b"\xff",
    b"Content-Length: 5\r\n",
    b"0\r\n\r\n",
]


async def test_requests_mutated_at_random_are_answered_and_never_a_fault(api: Api, operator: Operator) -> None:
    random = Random(20260131)
    company_id = await operator.company()
    for number in range(600):
        if number % 100 == 0:
            key = await operator.key(company_id)
        sent = bytearray(random.choice(SEEDS).format(key=key).encode())
        for _ in range(random.randint(1, 4)):
            place = random.randrange(len(sent))
            splice = random.choice([*SPLICES, bytes([random.randrange(256)])])
            end = place + random.choice([0, 0, 1, len(splice), 20])
            sent[place : min(end, len(sent))] = splice
        connection = await api.connect()
        await connection.send(bytes(sent))
        connection.writer.write_eof()
        async with asyncio.timeout(PATIENCE_SECONDS):
            answered = await connection.reader.read()
        connection.close()
        statuses = [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", answered)]
        assert [status for status in statuses if status >= 200], (bytes(sent), answered)
        assert not [status for status in statuses if status >= 500], (bytes(sent), answered)
        assert b"Traceback" not in answered and b"<html" not in answered
