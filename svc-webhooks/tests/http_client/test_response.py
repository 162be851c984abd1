"""A response is parsed the same, wherever its bytes are cut on the way."""

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from svc_webhooks.http_client.response import EXCERPT_BYTES_MAX, HEAD_BYTES_MAX, Malformed, Response

STATUSES = st.sampled_from([200, 201, 204, 299, 301, 304, 400, 410, 500, 503, 599])
HEADERS = st.lists(
    st.sampled_from(
        [
            b"Server: x",
            b"Date: Sat, 21 Nov 2026 15:00:00 GMT",
            b"Connection: close",
            b"Set-Cookie: a=b; c",
            b"X-E:",
            b"no header",
        ]
    ),
    max_size=4,
)
BODIES = st.binary(max_size=6000)
INTERIM = st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"])
ANYTHING_AFTER = st.sampled_from([b"", b"more", b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", b"\x00\xff"])


@st.composite
def responses(draw: st.DrawFn) -> bytes:
    """Well-formed heads; bodies with a length, in chunks, until the end of the connection, or broken."""
    body = draw(BODIES)
    match draw(st.sampled_from(["length", "short", "chunks", "bad chunk", "end"])):
        case "length":
            framing = b"Content-Length: %d\r\n" % len(body)
        case "short":
            framing = b"Content-Length: %d\r\n" % (len(body) + 10)
        case "chunks":
            cut = draw(st.integers(1, 4000))
            pieces = [body[at : at + cut] for at in range(0, len(body), cut)]
            framing = b"Transfer-Encoding: chunked\r\n"
            body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
        case "bad chunk":
            framing, body = b"Transfer-Encoding: chunked\r\n", b"2\r\nok\r\nZZ\r\n" + body
        case _:
            framing = b""
    headers = b"".join(header + b"\r\n" for header in draw(HEADERS))
    head = b"HTTP/1.1 %d Reason\r\n%b%b\r\n" % (draw(STATUSES), headers, framing)
    return draw(INTERIM) + head + body + draw(ANYTHING_AFTER)


def read(pieces: list[bytes]) -> tuple[int | None, bytes, bool, bool]:
    """Status, excerpt, whether the connection is reusable, and whether the response is malformed."""
    response = Response()
    try:
        for piece in pieces:
            response.feed(piece)
        kept = response.ended and response.reusable
        response.closed()
    except Malformed:
        return response.status, bytes(response.excerpt), False, True
    return response.status, bytes(response.excerpt), kept, False


@given(responses(), st.data())
def test_a_response_cut_at_any_byte_is_the_same_response(raw: bytes, data: st.DataObject) -> None:
    cuts = sorted({0, len(raw), *data.draw(st.lists(st.integers(0, len(raw)), max_size=6))})
    pieces = [raw[since:until] for since, until in itertools.pairwise(cuts)]
    assert read(pieces) == read([raw])


@given(responses())
@example(b"HTTP/1.1 204 Reason\r\nContent-Length: 1\r\n\r\n\n")
def test_a_response_that_comes_byte_by_byte_is_the_same_response(raw: bytes) -> None:
    assert read([raw[at : at + 1] for at in range(len(raw))]) == read([raw])


@given(responses())
def test_a_status_that_has_come_is_never_taken_back(raw: bytes) -> None:
    status, excerpt, _, malformed = read([raw])
    assert (status, malformed) == (int(raw.rpartition(b" Reason")[0][-3:]), False)
    assert len(excerpt) <= EXCERPT_BYTES_MAX


@given(st.lists(st.binary(max_size=200), max_size=20))
def test_no_bytes_break_the_reader(pieces: list[bytes]) -> None:
    status, _, _, malformed = read(pieces)
    assert status is None or not malformed


@pytest.mark.parametrize(
    "endless",
    [b"X-Header: value\r\n" * 60, b"x" * 1000, b"\r\nHTTP/1.1 100 Continue\r\n"],
    ids=["lines", "line", "100"],
)
def test_a_head_without_end_is_malformed(endless: bytes) -> None:
    response = Response()
    response.feed(b"HTTP/1.1 100 Continue\r\nX: ")
    with pytest.raises(Malformed):
        for _ in range(HEAD_BYTES_MAX // len(endless) + 2):
            response.feed(endless)
