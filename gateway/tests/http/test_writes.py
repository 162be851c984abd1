"""Writes through the API handler: Idempotency-Key, replays, deletes (spec 4.13), and faults of a service."""

from __future__ import annotations

import asyncio
import time

import grpc
import pytest

from chassis.refusals import Refusal
from gateway.http.routes import OPERATIONS, OWN_SERVICE, Operation
from testkit.gateways import Operator
from testkit.patience import PATIENCE_SECONDS
from testkit.raw_http import Api
from testkit.stub_contexts import Contexts, fail, first_id, hang

WRITES = {
    f"{operation.route.method} {operation.route.path}": operation
    for operation in OPERATIONS
    if operation.kind == "write" and operation.service != OWN_SERVICE
}
every_write = pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)


@pytest.fixture
def target(write: Operation, company_id: int) -> tuple[str, str]:
    """Method and path of a write to a record that the company has."""
    path = write.route.path.replace("{" + write.id_field + "}", str(first_id(company_id)))
    return write.route.method, path


@every_write
async def test_a_write_passes_its_body_and_key_on(
    api: Api, key: str, contexts: Contexts, target: tuple[str, str]
) -> None:
    body = b'  {"title": "\xc3\xa9", "x": [1, 2.50]}\r\n'
    response = await api.request(*target, key, body, Idempotency_Key="key one")
    assert response.status == 201
    assert response.header("X-Idempotent-Replay") is None
    request = contexts.seen[-1].request
    assert (request.body, request.idempotency_key) == (body, "key one")
    again = await api.request(*target, key, body, Idempotency_Key="key one")
    assert (again.status, again.body, again.header("X-Idempotent-Replay")) == (201, response.body, "1")
    other = await api.request(*target, key, b"{}", Idempotency_Key="key one")
    assert (other.status, other.code) == (409, "idempotency_mismatch")


@every_write
async def test_a_missing_idempotency_key_has_a_sentence_of_its_own(
    api: Api, key: str, target: tuple[str, str], write: Operation
) -> None:
    for headers in ({}, {"Idempotency_Key": ""}, {"Idempotency_Key": "   "}):
        response = await api.request(*target, key, b"{}", **headers)
        assert (response.status, response.code) == (400, "idempotency_key_required")
        assert response.message == write.route.key_sentence


@every_write
async def test_an_idempotency_key_is_1_to_64_printable_ascii_characters(
    api: Api, key: str, target: tuple[str, str]
) -> None:
    for good in ("k", "k" * 64, "!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~", "a b"):
        assert (await api.request(*target, key, b"{}", Idempotency_Key=good)).status == 201
    for bad in ("k" * 65, "k" * 5000, "caf\xe9", "a\tb"):
        response = await api.request(*target, key, b"{}", Idempotency_Key=bad)
        assert (response.status, response.code) == (400, "invalid_request")
    twice = await api.request(*target, key, b"{}", Idempotency_Key="a", idempotency_key="a")
    assert (twice.status, twice.code) == (400, "invalid_request")


async def test_a_delete_answers_204_without_a_body(api: Api, key: str, company_id: int) -> None:
    connection = await api.connect()
    for number in range(2):
        await connection.send(api.bytes("DELETE", f"/webhooks/{first_id(company_id) + number}", key))
        response = await connection.receive("DELETE")
        assert (response.status, response.body) == (204, b"")
    await connection.send(api.bytes("GET", "/whoami", key))
    assert (await connection.receive()).status == 200


async def test_checks_come_in_their_order(api: Api, operator: Operator, contexts: Contexts) -> None:
    company_id = await operator.company()
    read, write = await operator.key(company_id, "read"), await operator.key(company_id, "write")
    assert (await api.request("POST", "/nothing", None)).status == 404
    assert (await api.request("PUT", "/tickets?x=1", None)).status == 405
    assert (await api.request("POST", "/tickets?x=1", None)).status == 401
    assert (await api.request("POST", "/tickets?x=1", read)).code == "insufficient_scope"
    no_key = await api.request("POST", "/tickets?x=1", write)
    assert (no_key.status, no_key.code) == (400, "invalid_request")
    assert (await api.request("POST", "/tickets", write)).code == "idempotency_key_required"
    assert not contexts.seen


async def test_a_fault_of_a_service_is_ours(api: Api, key: str, contexts: Contexts) -> None:
    for rpc, method, path in (
        ("tickets.TicketsService/GetTicket", "GET", "/tickets/1"),
        ("tickets.TicketsService/ListTickets", "GET", "/tickets"),
        ("tickets.TicketsService/CreateTicket", "POST", "/tickets"),
        ("webhooks.SubscriptionsService/DeleteSubscription", "DELETE", "/webhooks/1"),
    ):
        contexts.behaviours[rpc] = fail
        response = await api.request(method, path, key, b"{}", Idempotency_Key="k")
        assert (response.status, response.code) == (500, "internal_error")


async def test_a_refusal_of_a_service_is_passed_on(api: Api, key: str, contexts: Contexts) -> None:
    async def vault(_context: object) -> None:
        raise Refusal(503, "vault_unavailable", "The signing secret can't be encrypted now; retry with backoff.")

    contexts.behaviours["webhooks.SubscriptionsService/CreateSubscription"] = vault
    response = await api.request("POST", "/webhooks", key, b"{}", Idempotency_Key="k")
    assert (response.status, response.code) == (503, "vault_unavailable")


async def test_a_service_that_refuses_our_identity_is_a_fault(api: Api, key: str, contexts: Contexts) -> None:
    async def stranger(context: grpc.aio.ServicerContext[object, object]) -> None:
        await context.abort(grpc.StatusCode.PERMISSION_DENIED, "who are you")

    contexts.behaviours["tickets.TicketsService/GetTicket"] = stranger
    response = await api.get("/tickets/1", key)
    assert (response.status, response.code) == (500, "internal_error")
    assert "who" not in response.message


async def test_a_deadline_that_passes_is_ours(api: Api, key: str, contexts: Contexts) -> None:
    contexts.behaviours |= {
        "tickets.TicketsService/GetTicket": hang,
        "tickets.TicketsService/CreateTicket": hang,
    }
    started = time.monotonic()

    async def timed(method: str, path: str) -> float:
        response = await api.request(method, path, key, b"{}", Idempotency_Key="k")
        assert (response.status, response.code) == (500, "internal_error")
        return time.monotonic() - started

    read, write = await asyncio.gather(timed("GET", "/tickets/1"), timed("POST", "/tickets"))
    assert 4.5 < read < write and write > 9.5


async def test_a_service_that_is_down_takes_its_own_routes_alone(
    api: Api, key: str, company_id: int, contexts: Contexts
) -> None:
    first = first_id(company_id)
    await contexts.stop("svc-tickets")
    try:
        for method, path in (("GET", "/tickets"), ("GET", f"/tickets/{first}"), ("POST", "/tickets")):
            response = await api.request(method, path, key, b"{}", Idempotency_Key="down")
            assert (response.status, response.code) == (500, "internal_error")
        for path in ("/whoami", "/units", f"/properties/{first}", "/webhooks", "//readyz", "//healthz"):
            assert (await api.get(path, key)).status == 200
    finally:
        await contexts.start("svc-tickets")
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await api.get(f"/tickets/{first}", key)).status != 200:  # noqa: ASYNC110 - polling
            await asyncio.sleep(0.2)


async def test_a_client_that_leaves_does_not_stop_its_write(api: Api, key: str, contexts: Contexts) -> None:
    begun, done = asyncio.Event(), asyncio.Event()

    async def slow(_context: object) -> None:
        begun.set()
        await asyncio.sleep(0.3)
        done.set()

    contexts.behaviours["tickets.TicketsService/CreateTicket"] = slow
    connection = await api.connect()
    await connection.send(api.bytes("POST", "/tickets", key, b"{}", Idempotency_Key="k"))
    await asyncio.wait_for(begun.wait(), PATIENCE_SECONDS)
    connection.close()
    await asyncio.wait_for(done.wait(), PATIENCE_SECONDS)
