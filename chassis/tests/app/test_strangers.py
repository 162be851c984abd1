"""Callers without a token: refused before their requests are received, with and without an end of the request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from chassis.app.health import LIVENESS
from chassis.auth.clients import CHANNEL_OPTIONS
from chassis.auth.identity import SERVICE, Identity
from testkit.patience import PATIENCE_SECONDS
from testkit.plugin import PostgresServer

from ..contract import EchoRequest, EchoResponse
from .test_server import METHOD, EchoProcess, echo_process

HEALTH = "/grpc.health.v1.Health/Check"
STRANGERS = 24
BODY_BYTES = 8 * 1024 * 1024
# Bodies that are received take more than the strangers' 192 MiB. Refused unread, they took 12 MB.
GROWTH_BYTES_MAX = 64 * 1024 * 1024


@pytest.fixture
def running(postgres_server: PostgresServer, tmp_path: Path) -> Iterator[EchoProcess]:
    """A new process for each test: the memory's peak is that of its start."""
    process = echo_process(postgres_server, tmp_path)
    process.start()
    yield process
    process.stop()


def memory_bytes(process: EchoProcess, name: str) -> int:
    """VmRSS: resident memory; VmHWM: its peak since the start."""
    assert process.process is not None
    lines = Path(f"/proc/{process.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


async def growth_bytes(process: EchoProcess, ask: Callable[[grpc.aio.Channel, bytes], Awaitable[None]]) -> int:
    """By how much the service's memory grows while all strangers ask at once, each on a connection of its own."""
    before, body = memory_bytes(process, "VmRSS"), b"x" * BODY_BYTES

    async def stranger() -> None:
        options = [*CHANNEL_OPTIONS, ("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.insecure_channel(process.target, options=options) as channel:
            await ask(channel, body)

    await asyncio.gather(*(stranger() for _ in range(STRANGERS)))
    return memory_bytes(process, "VmHWM") - before


async def refused(channel: grpc.aio.Channel, body: bytes) -> None:
    method: Any = channel.unary_unary(METHOD)
    with pytest.raises(grpc.aio.AioRpcError) as fault:
        await method(body, timeout=60)
    assert fault.value.code() is grpc.StatusCode.PERMISSION_DENIED


async def healthy(channel: grpc.aio.Channel, body: bytes) -> None:
    method: Any = channel.unary_unary(HEALTH)
    assert await method(body, timeout=60) == b"\x08\x01"


async def waited_for(channel: grpc.aio.Channel, body: bytes) -> None:
    """While the process starts, a health check is read, because its answer depends on the service that it names."""
    method: Any = channel.unary_unary(HEALTH)
    assert await method(body, timeout=60) == b"\x08\x02"


async def test_large_health_checks_of_strangers_take_no_memory_while_the_process_starts(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    process = await asyncio.to_thread(echo_process, postgres_server, tmp_path, migrated=False)
    process.launch()
    try:
        assert await process.health(LIVENESS) == "SERVING"
        assert await growth_bytes(process, waited_for) < GROWTH_BYTES_MAX
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await process.health(LIVENESS) != "SERVING":  # noqa: ASYNC110 - none is read for a while
                await asyncio.sleep(0.2)
    finally:
        process.stop()


@pytest.mark.parametrize("ask", [refused, healthy])
async def test_large_requests_of_strangers_take_no_memory(
    ask: Callable[[grpc.aio.Channel, bytes], Awaitable[None]], running: EchoProcess
) -> None:
    assert await growth_bytes(running, ask) < GROWTH_BYTES_MAX


async def test_a_stranger_is_refused_before_the_request_has_ended(running: EchoProcess) -> None:
    async with running.channel() as channel:
        call: Any = channel.stream_unary(METHOD)(timeout=60)
        assert await call.code() is grpc.StatusCode.PERMISSION_DENIED  # the client has sent its metadata alone


async def test_a_known_caller_may_send_a_large_request(running: EchoProcess) -> None:
    token = running.keys.token(Identity(SERVICE, "svc-tickets", 7), running.name)
    request = EchoRequest(text="x" * BODY_BYTES)
    async with running.channel() as channel:
        method = channel.unary_unary(METHOD, EchoRequest.SerializeToString, EchoResponse.FromString)
        answer = await method(request, metadata=[("authorization", token)], timeout=60)
    assert len(answer.text) == BODY_BYTES
