"""Calls that a channel sends again: which, how often, within what time, and what the caller learns."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message

from chassis.auth.clients import CHANNEL_OPTIONS, DISK_FULL, NOT_AGAIN, ServiceClient, ServiceUnavailable
from chassis.auth.identity import TokenSigner, make_keys
from chassis.auth.rpcs import path_of, response_to, rpc_of
from makeready.common.v1 import sweeps_pb2
from makeready.events.v1 import events_pb2
from testkit.processes import free_port

READ, ONCE = events_pb2.BatchGetEventsRequest, sweeps_pb2.RunScheduledSweepsRequest
DONE = events_pb2.BatchGetEventsResponse()
READ_PATH = path_of(rpc_of(READ))
AWAY = grpc.StatusCode.UNAVAILABLE

Handle = Callable[[Any], Awaitable[bytes]]


class Server:
    """A real gRPC server; both of its RPCs do what a test sets."""

    def __init__(self, target: str = "127.0.0.1:0") -> None:
        self.calls = 0
        self.handle: Handle | None = None
        self.server = grpc.aio.server(options=[("grpc.max_receive_message_length", 2**24), ("grpc.so_reuseport", 0)])
        for request in (READ, ONCE):
            service, name = path_of(rpc_of(request)).strip("/").split("/")
            handlers: dict[str, Any] = {name: grpc.unary_unary_rpc_method_handler(self._answer)}
            self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
        self.target = f"127.0.0.1:{self.server.add_insecure_port(target)}"

    async def _answer(self, _request: bytes, context: Any) -> bytes:
        self.calls += 1
        return b"" if self.handle is None else await self.handle(context)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    await server.server.start()
    yield server
    await server.server.stop(None)


@pytest.fixture
def signer(tmp_path: Path) -> TokenSigner:
    make_keys(tmp_path, ["svc-orders"])
    return TokenSigner(tmp_path / "svc-orders.jwk")


@pytest.fixture
async def client(server: Server, signer: TokenSigner) -> AsyncIterator[ServiceClient]:
    client = ServiceClient("svc-echo", server.target, signer)
    yield client
    await client.close()


async def call(client: ServiceClient, request: Message | None = None, seconds: float = 10.0) -> Message:
    request = request or READ()
    answer: Message = await client.call(request, response_to(type(request)), deadline_seconds=seconds)
    return answer


def failing(times: int, code: grpc.StatusCode = AWAY, trailers: Any = ()) -> Handle:
    """Fails that many times, then answers."""
    remaining = [times]

    async def handle(context: Any) -> bytes:
        remaining[0] -= 1
        if remaining[0] >= 0:
            await context.abort(code, "why", trailers)
        return b""

    return handle


@pytest.mark.parametrize("code", [AWAY, grpc.StatusCode.CANCELLED])
async def test_a_call_whose_contract_allows_it_is_sent_again(
    server: Server, client: ServiceClient, code: grpc.StatusCode
) -> None:
    server.handle = failing(4, code)
    assert await call(client) == DONE
    assert server.calls == 5


@pytest.mark.parametrize(
    ("request_type", "code", "calls"),
    [
        (READ, AWAY, 5),
        (ONCE, AWAY, 1),
        (ONCE, grpc.StatusCode.CANCELLED, 1),
        (READ, grpc.StatusCode.INTERNAL, 1),
        (READ, grpc.StatusCode.ABORTED, 1),
    ],
)
async def test_other_calls_and_other_failures_are_not_and_no_call_for_ever(
    server: Server, client: ServiceClient, request_type: type[Message], code: grpc.StatusCode, calls: int
) -> None:
    server.handle = failing(99, code)
    with pytest.raises(ServiceUnavailable) as fault:
        await call(client, request_type())
    assert (server.calls, fault.value.code) == (calls, code)


async def test_a_service_that_lacks_what_it_needs_is_asked_once(server: Server, client: ServiceClient) -> None:
    server.handle = failing(99, trailers=((DISK_FULL, "svc-echo"), *NOT_AGAIN))
    with pytest.raises(ServiceUnavailable) as fault:
        await call(client)
    assert (server.calls, fault.value.code, fault.value.disk_full) == (1, AWAY, "svc-echo")


async def test_repeats_end_with_the_deadline(server: Server, client: ServiceClient) -> None:
    server.handle = failing(99)
    started = time.monotonic()
    with pytest.raises(ServiceUnavailable):
        await call(client, seconds=0.2)
    assert server.calls < 5 and time.monotonic() - started < 30


async def test_a_caller_who_leaves_ends_the_call(server: Server, client: ServiceClient) -> None:
    server.handle = failing(99)
    leaving = asyncio.create_task(call(client))
    while not server.calls:  # noqa: ASYNC110 - the server sets no event
        await asyncio.sleep(0.01)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    calls = server.calls
    await asyncio.sleep(0.5)
    assert server.calls <= calls + 1  # one may have been on its way


@pytest.mark.parametrize(("kilobytes", "is_repeated"), [(700, True), (1100, False)])
async def test_a_request_up_to_a_megabyte_is_kept_for_a_repeat(
    server: Server, client: ServiceClient, kilobytes: int, is_repeated: bool
) -> None:
    server.handle = failing(1)
    if is_repeated:
        assert await call(client, READ(event_ids=["x" * 1024 * kilobytes])) == DONE
    else:
        with pytest.raises(ServiceUnavailable):
            await call(client, READ(event_ids=["x" * 1024 * kilobytes]))


async def test_a_service_that_starts_late_answers_the_call_that_came_before(signer: TokenSigner) -> None:
    target = f"127.0.0.1:{free_port()}"
    client = ServiceClient("svc-late", target, signer)
    early = asyncio.create_task(call(client))
    await asyncio.sleep(0.1)
    server = Server(target)
    await server.server.start()
    assert await early == DONE
    await client.close()
    await server.server.stop(None)


# A process: a frozen event loop of this one would not answer pings either.
BUSY = """
import asyncio, sys, time, grpc
began = time.perf_counter()
sum(range(10**6))
a_second = 10**6 / (time.perf_counter() - began)  # so much work takes about a second on this machine
async def main():
    server = grpc.aio.server(options=[("grpc.http2.max_ping_strikes", 0)])  # any number of pings is welcome
    async def work(request, context):
        print("working", flush=True)
        sum(range(int(float(request or 0) * a_second)))  # nothing else runs in Python meanwhile
        return b""
    handlers = {sys.argv[3]: grpc.unary_unary_rpc_method_handler(work)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(sys.argv[2], handlers),))
    server.add_insecure_port(sys.argv[1])
    await server.start()
    print("serving", flush=True)
    await server.wait_for_termination()
asyncio.run(main())
"""


@pytest.fixture
def process() -> Iterator[tuple[subprocess.Popen[str], str]]:
    target = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-c", BUSY, target, *READ_PATH.strip("/").split("/")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "serving\n"
        yield running, target
        running.kill()


async def test_a_replica_that_hangs_is_given_up_and_the_call_goes_to_another(
    process: tuple[subprocess.Popen[str], str], server: Server, signer: TokenSigner
) -> None:
    running, target = process
    client = ServiceClient("svc-echo", f"ipv4:{target},{server.target}", signer)
    for _ in range(8):
        assert await call(client) == DONE
    running.send_signal(signal.SIGSTOP)
    before = server.calls
    assert await asyncio.gather(*(call(client) for _ in range(4))) == [DONE] * 4
    assert server.calls == before + 4
    await client.close()


async def test_a_process_that_is_busy_with_python_answers_pings(
    process: tuple[subprocess.Popen[str], str], signer: TokenSigner
) -> None:
    _, target = process
    # As the product's, but faster, so that the work lasts many pings; and without repeats, which would hide a loss.
    options = dict(CHANNEL_OPTIONS) | {"grpc.keepalive_time_ms": 200, "grpc.http2.ping_timeout_ms": 2000}
    del options["grpc.service_config"]
    channel = grpc.aio.insecure_channel(target, options=list(options.items()))
    method: Any = channel.unary_unary(READ_PATH)
    assert await method(b"5", timeout=60) == b""
    await channel.close()
