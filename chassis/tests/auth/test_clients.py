"""Calls to other services: tokens and request ids are sent, refusals are raised, a fault is ServiceUnavailable."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
import structlog

from chassis.auth.clients import MESSAGE_BYTES_MAX, REFUSAL, ServiceClient, ServiceUnavailable, refusal_message
from chassis.auth.identity import INTEGRATION, SERVICE, Identity, TokenSigner, TokenVerifier, make_keys
from chassis.refusals import Refusal, Unavailable
from makeready.common.v1 import documents_pb2
from testkit.patience import PATIENCE_SECONDS
from testkit.processes import free_port

from ..contract import EchoRequest, EchoResponse

Handle = Callable[[Any, Any], Awaitable[Any]]
METHOD = "/makeready.parcels_of_tests.v1.EchoService/Echo"


class Echo:
    """A real gRPC server. Its one RPC does what a test sets, and records its calls."""

    def __init__(self) -> None:
        self.handle: Handle = self.echo
        self.metadata: dict[str, Any] = {}
        self.server = grpc.aio.server(options=[("grpc.max_receive_message_length", MESSAGE_BYTES_MAX)])
        handler = grpc.unary_unary_rpc_method_handler(
            self._answer,
            request_deserializer=EchoRequest.FromString,
            response_serializer=EchoResponse.SerializeToString,
        )
        service, name = METHOD.strip("/").split("/")
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {name: handler}),))
        self.target = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"

    async def _answer(self, request: Any, context: Any) -> Any:
        self.metadata = dict(context.invocation_metadata())
        return await self.handle(request, context)

    @staticmethod
    async def echo(request: Any, _context: Any) -> Any:
        return EchoResponse(text=request.text)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    make_keys(folder, ["gateway", "svc-orders"])
    return folder


@pytest.fixture
async def echo() -> AsyncIterator[Echo]:
    echo = Echo()
    await echo.server.start()
    yield echo
    await echo.server.stop(None)


@pytest.fixture
async def client(echo: Echo, keys: Path) -> AsyncIterator[ServiceClient]:
    client = ServiceClient("svc-echo", echo.target, TokenSigner(keys / "svc-orders.jwk"))
    yield client
    await client.close()


async def call(client: ServiceClient, text: str = "hello", **how: Any) -> str:
    answer: Any = await client.call(EchoRequest(text=text), EchoResponse, **how)
    return str(answer.text)


def caller(echo: Echo, keys: Path) -> Identity:
    """The caller's identity, as the server verifies it."""
    return TokenVerifier(keys / "ring.jwks", audience="svc-echo").verify(echo.metadata["authorization"])


async def test_a_call_is_made_as_this_service_for_the_company(echo: Echo, client: ServiceClient, keys: Path) -> None:
    assert await call(client) == "hello"
    assert caller(echo, keys) == Identity(SERVICE, "svc-orders", 0)
    await call(client, company_id=7)
    assert caller(echo, keys) == Identity(SERVICE, "svc-orders", 7)


async def test_a_call_may_be_made_for_another_actor(echo: Echo, client: ServiceClient, keys: Path) -> None:
    who = Identity(INTEGRATION, "gateway", 7, 3, "write", 5)
    await call(client, token=TokenSigner(keys / "gateway.jwk").token("svc-echo", who))
    assert caller(echo, keys) == who


async def test_the_id_of_the_request_travels_on(echo: Echo, client: ServiceClient) -> None:
    await call(client)
    assert "x-request-id" not in echo.metadata
    with structlog.contextvars.bound_contextvars(request_id="req-9"):
        await call(client)
    assert echo.metadata["x-request-id"] == "req-9"


async def test_a_refusal_crosses_as_it_was_raised(echo: Echo, client: ServiceClient) -> None:
    async def refuses(_request: Any, context: Any) -> None:
        sent = documents_pb2.Refusal(status=422, code="too_heavy", message="It is too heavy; send it in two parts.")
        await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "x", ((REFUSAL, sent.SerializeToString()),))

    echo.handle = refuses
    with pytest.raises(Refusal) as refusal:
        await call(client)
    refused = refusal.value
    assert (refused.status, refused.code, refused.message) == (
        422,
        "too_heavy",
        "It is too heavy; send it in two parts.",
    )


@pytest.mark.parametrize("field", ["", "destination_url"])
async def test_a_refusal_crosses_with_the_field_at_fault(echo: Echo, client: ServiceClient, field: str) -> None:
    async def refuses(_request: Any, context: Any) -> None:
        message = refusal_message(Refusal(422, "too_heavy", "It is too heavy.", field))
        await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "x", ((REFUSAL, message),))

    echo.handle = refuses
    with pytest.raises(Refusal) as refusal:
        await call(client)
    assert refusal.value.field == field


@pytest.mark.parametrize("code", [grpc.StatusCode.INTERNAL, grpc.StatusCode.PERMISSION_DENIED])
async def test_any_other_failure_is_the_service_not_available(
    code: grpc.StatusCode, echo: Echo, client: ServiceClient
) -> None:
    async def fails(_request: Any, context: Any) -> None:
        await context.abort(code, "why")

    echo.handle = fails
    with pytest.raises(ServiceUnavailable, match=f"svc-echo: {code.name}: why") as fault:
        await call(client)
    assert fault.value.code is code and isinstance(fault.value, Unavailable)


async def test_a_service_that_hangs_is_given_up_at_the_deadline(echo: Echo, client: ServiceClient) -> None:
    begun, given_up = asyncio.Event(), asyncio.Event()

    async def hangs(_request: Any, _context: Any) -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            given_up.set()

    echo.handle = hangs
    while not begun.is_set():  # the deadline may pass while the first call still connects
        started = time.monotonic()
        with pytest.raises(ServiceUnavailable) as fault:
            await call(client, deadline_seconds=0.2)
        assert fault.value.code is grpc.StatusCode.DEADLINE_EXCEEDED and 0.1 < time.monotonic() - started < 30
    await asyncio.wait_for(given_up.wait(), PATIENCE_SECONDS)


async def test_an_absent_service_is_reported_and_found_when_it_starts(keys: Path) -> None:
    client = ServiceClient("svc-echo", f"127.0.0.1:{free_port()}", TokenSigner(keys / "svc-orders.jwk"))
    with pytest.raises(ServiceUnavailable) as fault:
        await call(client)
    assert fault.value.code is grpc.StatusCode.UNAVAILABLE
    await client.close()


async def test_a_large_batch_passes(client: ServiceClient) -> None:
    """gRPC's default limit is 4 MiB."""
    assert len(await call(client, "x" * 6 * 1024 * 1024)) == 6 * 1024 * 1024
