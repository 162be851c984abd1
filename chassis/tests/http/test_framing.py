"""Where a body in chunks ends, however its bytes are cut, beside aiohttp's own parser; and first lines."""

from __future__ import annotations

import pytest

from chassis.http.framing import TRAILER_BYTES_MAX, Chunks, Length, MalformedChunks, is_request_line, is_whole_and_small
from testkit.raw_http import MALFORMED_CHUNKS

BODIES = (
    b"0\r\n\r\n",
    b"3\r\nabc\r\n0\r\n\r\n",
    b"2;x=y\r\nde\r\n0\r\nTrailer: 1\r\nOther: 2\r\n\r\n",
    b"00a\r\n0\r\n\r\n12345\r\nA \r\n\r\n\r\n\r\n\r\n\r\n\r\n0\r\n\r\n",
)


@pytest.mark.parametrize("body", BODIES)
def test_a_body_in_chunks_ends_at_the_same_byte_however_it_is_cut(body: bytes) -> None:
    following = b"GET / HTTP/1.1\r\n\r\n"
    for size in range(1, len(body) + 2):
        chunks, taken = Chunks(), 0
        for at in range(0, len(body + following), size):
            piece = (body + following)[at : at + size]
            count = chunks.take(piece)
            taken += count
            if count < len(piece) or chunks.has_ended:
                break
        assert (taken, chunks.has_ended) == (len(body), True), size


@pytest.mark.parametrize(
    "junk", [*MALFORMED_CHUNKS, b"\r\n", b" 1\r\n", b"1\r\nab", b"0\r\nX: 1\n", b"1;" + b"x" * 300]
)
def test_malformed_chunks_are_found_at_once(junk: bytes) -> None:
    with pytest.raises(MalformedChunks):
        Chunks().take(junk + b"\r\n")


def test_trailers_have_a_budget() -> None:
    chunks = Chunks()
    chunks.take(b"0\r\n")
    with pytest.raises(MalformedChunks):
        for _ in range(TRAILER_BYTES_MAX):
            chunks.take(b"X: 1\r\n")


def test_a_body_of_a_declared_length_ends_there() -> None:
    length = Length(5)
    assert [length.take(b"abc"), length.has_ended, length.take(b"defg"), length.has_ended] == [3, False, 2, True]


@pytest.mark.parametrize(
    ("line", "good"),
    [
        (b"GET / HTTP/1.1", True),
        (b"GET / HTTP/1.0", True),
        (b"GET  / HTTP/1.1", False),
        (b"GET /  HTTP/1.1", False),
        (b"GET / HTTP/1.1 ", False),
        (b"GET / HTTP/0.9", False),
        (b"GET / HTTP/2.0", False),
        (b"GET / HTTP/1.10", False),
        (b"GET /", False),
        (b"FOOBAR / HTTP/1.1", True),
        (b"m-search / HTTP/1.1", True),
        (b"GET: / HTTP/1.1", False),
        (b" / HTTP/1.1", False),
    ],
)
def test_first_lines(line: bytes, good: bool) -> None:
    assert is_request_line(line) is good


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", True),
        (b"GET / HTTP/1.0\r\n\r\n", True),
        (b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", True),
        (b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n", True),
        (b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab", False),
        (b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcd", False),
        (b"POST / HTTP/1.1\r\nX: Content-Length: 3\r\n\r\nabc", False),
        (b"POST / HTTP/1.1\r\nContent-Length: 2000\r\n\r\n" + b"x" * 2000, False),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", False),
        (b"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n", False),
        (b"GET  / HTTP/1.1\r\n\r\n", False),
        (b"FOOBAR / HTTP/1.1\r\n\r\n", False),
        (b"GET / HTTP/1.2\r\n\r\n", False),
        (b"GET / HTTP/1.1\r\nHost: a\r\n", False),
        (b"\r\nGET / HTTP/1.1\r\n\r\n", False),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 5000 + b"\r\n\r\n", False),
        (b"", False),
    ],
)
def test_only_one_small_request_that_is_whole_needs_no_closer_look(data: bytes, expected: bool) -> None:
    assert is_whole_and_small(data) is expected
