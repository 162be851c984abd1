"""The two HTTP ports: opened once every service serves, closed without dropping requests under way."""

from __future__ import annotations

import asyncio
import os
import resource
import ssl
from collections.abc import Mapping

import grpc
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc

from chassis.auth.clients import ServiceClient
from chassis.runtime.settings import SettingsError
from gateway.http.connection import STALL_SECONDS, Answer, HttpServer

ASK_SECONDS = 0.1
TELL_SECONDS = 5.0
GRACE_SECONDS = 10.0
BACKLOG = 1024

log = structlog.stdlib.get_logger(__name__)


async def every_service_serves(peers: Mapping[str, ServiceClient], wait_seconds: int) -> None:
    """Waits until all services report SERVING, at most `wait_seconds`, and logs the missing ones now and then."""
    loop = asyncio.get_running_loop()
    waiting = dict(peers)
    give_up_at, tell_at = loop.time() + wait_seconds, loop.time() + TELL_SECONDS
    while waiting:
        serving = await asyncio.gather(*(_serves(peer) for peer in waiting.values()))
        came = [name for name, serves in zip(waiting, serving, strict=True) if serves]
        for name in came:
            del waiting[name]
        if waiting and (came or loop.time() >= tell_at):
            log.info("waiting_for_services", waiting=sorted(waiting))
            tell_at = loop.time() + TELL_SECONDS
        if waiting and loop.time() >= give_up_at:
            log.warning("opening_without", services=sorted(waiting))
            return
        if waiting:
            await asyncio.sleep(ASK_SECONDS)


async def _serves(peer: ServiceClient) -> bool:
    try:
        answer = await health_pb2_grpc.HealthStub(peer.channel).Check(health_pb2.HealthCheckRequest(), timeout=1)
    except grpc.aio.AioRpcError:
        return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


class Port:
    """One listening port and its connections."""

    def __init__(
        self,
        setting: str,
        host: str,
        port: int,
        answer: Answer,
        tls: ssl.SSLContext | None,
        stall_seconds: float = STALL_SECONDS,
    ) -> None:
        """setting: the variable that sets the port, for the operator. stall_seconds: see `HttpServer`."""
        self._setting = setting
        self._host = host
        self.number = port
        self._tls = tls
        self._http = HttpServer(answer, stall_seconds)
        self._server: asyncio.Server | None = None
        self._watch: asyncio.Task[None] | None = None

    @property
    def connections(self) -> int:
        """The number of connections, including those whose client left before its answer was ready."""
        return len(self._http.connections())

    async def open(self) -> None:
        """Opens the port. Raises SettingsError if it can't."""
        loop = asyncio.get_running_loop()
        _allow_many_connections()
        try:
            self._server = await loop.create_server(
                self._http,
                self._host,
                self.number,
                ssl=self._tls,
                ssl_handshake_timeout=10 if self._tls else None,
                backlog=BACKLOG,
            )
        except OSError as error:
            raise SettingsError(
                f"{self._setting}: {self._host}:{self.number} can't be listened on: {os.strerror(error.errno or 0)}."
            ) from None
        self._watch = asyncio.create_task(self._look_at_the_clock())
        log.info("port_open", setting=self._setting, host=self._host, port=self.number)

    async def close(self) -> None:
        """Accepts no more connections, closes the idle ones, and lets requests under way finish for 10 s."""
        if self._server is None or self._watch is None:
            return
        self._server.close()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + GRACE_SECONDS
        while (connections := self._http.connections()) and loop.time() < deadline:
            for connection in connections:
                connection.retire()
            await asyncio.sleep(0.02)
        await self._http.abort()
        self._watch.cancel()

    async def _look_at_the_clock(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(1)
            now = loop.time()
            for connection in self._http.connections():
                connection.look_at_the_clock(now)


def _allow_many_connections() -> None:
    """Raises the limit of open files to the machine's maximum; the usual 1,024 would cap the connections."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
