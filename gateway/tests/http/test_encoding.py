"""Compressed answers: who gets one, and that it is the same answer."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis.http.replies import Reply, json
from gateway.http import encoding, replies
from gateway.http.encoding import BYTES_MIN, accepted, encoded
from gateway.http.routes import OPERATIONS, PUBLIC, SANDBOX
from testkit.gateways import Operator
from testkit.raw_http import Api
from testkit.stub_contexts import first_id

LONG = b"[" + b'{"a":"b"},' * 1000 + b"1]"


@pytest.mark.parametrize(
    ("accept", "takes_gzip", "takes_identity"),
    [
        ("gzip", True, True),
        ("GZip", True, True),
        ("x-gzip", True, True),
        ("gzip, deflate, br, zstd", True, True),
        ("br;q=1.0, gzip;q=0.8, *;q=0.1", True, True),
        (" deflate ,\tgzip ; q=0.001", True, True),
        ("*", True, True),
        ("gzip;q=0", False, True),
        ("gzip;q=0, *", False, True),
        ("gzip;q=0.000", False, True),
        ("identity", False, True),
        ("gzip;q=0.5, identity", False, True),
        ("gzip;q=0.5, identity;q=0.5", True, True),
        ("gzip, identity;q=0", True, False),
        ("gzip, *;q=0", True, False),
        ("*;q=0", False, False),
        ("br", False, True),
        ("", False, True),
        # What can't be read counts as nothing.
        ("gzip;q=2", False, True),
        ("gzip;q=-1", False, True),
        ("gzip;q=", False, True),
        ("gzip;level=1", False, True),
        ("gzip deflate", False, True),
        (";;;,,,=", False, True),
        ("gzip;q=0.0001", False, True),
        ("ｇｚｉｐ", False, True),
        ("gzip," * 200, False, True),
    ],
)
def test_a_callers_header_says_what_it_takes(accept: str, takes_gzip: bool, takes_identity: bool) -> None:
    assert accepted([accept]) == (takes_gzip, takes_identity)


def test_several_headers_are_one() -> None:
    assert accepted(["br", "gzip"]) == (True, True)
    assert accepted(["gzip", "gzip;q=0, identity;q=0"]) == (True, False)
    assert accepted([]) == (False, True)


@given(st.lists(st.text(st.characters(codec="latin-1"), max_size=80), max_size=3))
def test_no_header_is_an_error(accept: list[str]) -> None:
    accepted(accept)


def test_only_a_long_answer_to_a_read_is_compressed() -> None:
    long, short = replies.read(LONG), replies.read(b"x" * (BYTES_MIN - 1))
    packed = encoded(long, ["gzip"])
    assert gzip.decompress(packed.body) == LONG and b"Content-Encoding: gzip\r\n" in packed.headers
    assert encoded(long, []).body == LONG
    assert encoded(short, ["gzip"]).body == short.body
    assert gzip.decompress(encoded(short, ["gzip, identity;q=0"]).body) == short.body
    for reply in (encoded(long, ["gzip"]), encoded(long, []), encoded(short, ["gzip"])):
        assert reply.headers.count(b"Vary: Accept-Encoding\r\n") == 1
    for other in (json(LONG, 201), json(LONG), replies.error(400, "invalid_request", "x" * 5000)):
        assert encoded(other, ["gzip, identity;q=0"]) is other


def test_what_stays_in_memory_is_compressed_once() -> None:
    shared = encoding.compressed_once(Reply(200, LONG, is_shared=True))
    assert encoded(shared, ["gzip"]).body is shared.compressed


async def test_every_operation_answers_the_same_in_both_codings(api: Api, operator: Operator) -> None:
    """An answer to a read is compressed, any other never: so neither is one with a signing secret."""
    company_id = await operator.company()
    keys = [await operator.key(company_id) for _ in range(2)]  # each has its own limit of requests
    # What sandboxes have, a live company's key does not find.
    # The log has a request a moment after its answer.
    operations = [
        operation
        for operation in OPERATIONS
        if not operation.route.path.startswith(SANDBOX) and operation.route.path != "/requests/{request_id}"
    ]
    for number, operation in enumerate(operations):
        method, key = operation.route.method, keys[number % 2]
        path = operation.route.path.replace(f"{{{operation.id_field}}}", str(first_id(company_id)))
        path = "/".join("1" if part.startswith("{") else part for part in path.split("/"))
        path += "?external_id=x" if operation.kind == "search" else ""
        body = b'{"long":"%b"}' % (b"x" * 2000) if operation.kind == "write" else None
        headers = {"Idempotency_Key": f"encoding {path}"} if operation.kind == "write" else {}
        plain = await api.request(method, path, key, body, **headers)
        packed = await api.request(method, path, key, body, Accept_Encoding="gzip, identity;q=0", **headers)
        is_read = method == "GET"
        name = f"{method} {path}"
        assert plain.status == packed.status < 300, name
        assert plain.header("Content-Encoding") is None
        assert packed.header("Content-Encoding") == ("gzip" if is_read else None), name
        assert plain.header("Vary") == packed.header("Vary") == ("Accept-Encoding" if is_read else None)
        assert (gzip.decompress(packed.body) if is_read else packed.body) == plain.body, name
        if operation.scope != PUBLIC:
            refused = await api.request(method, path, None, body, Accept_Encoding="gzip, identity;q=0")
            assert (refused.status, refused.header("Content-Encoding")) == (401, None)


async def test_a_page_of_records_is_much_smaller(api: Api, key: str) -> None:
    plain = await api.get("/tickets?limit=100", key)
    packed = await api.get("/tickets?limit=100", key, Accept_Encoding="gzip, deflate, br")
    assert gzip.decompress(packed.body) == plain.body and len(packed.body) * 5 < len(plain.body)


@pytest.mark.parametrize("path", ["/openapi.json", "//docs", "//docs/style.css", "//docs/webhooks/receiver.py"])
async def test_documents_are_compressed_too_and_head_agrees(api: Api, path: str) -> None:
    plain, packed = await api.get(path), await api.get(path, Accept_Encoding="gzip")
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) * 2 < len(plain.body)
    if path.startswith("//"):
        head = await api.request("HEAD", path, Accept_Encoding="gzip")
        assert [header for header in head.headers if header[0] not in ("X-Request-Id", "Date")] == [
            header for header in packed.headers if header[0] not in ("X-Request-Id", "Date")
        ]


@pytest.mark.parametrize("accept", [";;;", "gzip;q=nan", "\xff", "gzip;q=1;q=0", "*/*", "," * 5000])
async def test_a_header_that_cannot_be_read_is_no_error(api: Api, key: str, accept: str) -> None:
    response = await api.get("/tickets?limit=100", key, Accept_Encoding=accept)
    assert (response.status, response.header("Content-Encoding")) == (200, None)
