"""The connection to NATS. It is made in the background, so nothing else waits for it, and retried forever."""

from __future__ import annotations

import asyncio
import contextlib

import nats.errors
import nats.js.errors
import structlog
from nats.aio.client import Client
from nats.js.client import JetStreamContext
from prometheus_client import Gauge

STREAM = "EVENTS"
FAULTS = (nats.errors.Error, nats.js.errors.Error, TimeoutError, OSError)

log = structlog.stdlib.get_logger(__name__)
CONNECTED = Gauge("makeready_nats_connected", "1 while the connection to NATS stands")


def inbox_of(name: str) -> str:
    """The subjects on which a service receives messages and answers; its user may listen to no other."""
    return f"_INBOX.{name}"


class Transport:
    """One connection a process. The stream of events and its consumers are the operator's: see `streams`."""

    def __init__(self, url: str, name: str) -> None:
        self._url = url
        self._name = name
        self._client = Client()
        self.jetstream: JetStreamContext = self._client.jetstream(timeout=5)
        self._ready = asyncio.Event()

    @property
    def is_connected(self) -> bool:
        return self._ready.is_set() and self._client.is_connected

    async def connected(self) -> None:
        """Waits for the first connection."""
        await self._ready.wait()

    async def run(self) -> None:
        """Connects, and watches the connection until cancelled."""
        while True:
            try:
                if not self._client.is_connected and not self._client.is_reconnecting:
                    await self._connect()
            except FAULTS as error:
                CONNECTED.set(0)
                log.warning("nats_away", reason=str(error) or type(error).__name__)
                await asyncio.sleep(1)
                continue
            self._ready.set()
            CONNECTED.set(int(self._client.is_connected))
            await asyncio.sleep(5)

    async def _connect(self) -> None:
        # By default, the library gives up after 60 reconnections.
        await self._client.connect(
            self._url,
            name=self._name,
            inbox_prefix=inbox_of(self._name),
            connect_timeout=2,
            allow_reconnect=True,
            max_reconnect_attempts=-1,
            reconnect_time_wait=1,
            error_cb=self._on_error,
        )

    async def _on_error(self, error: Exception) -> None:
        log.info("nats_error", reason=str(error) or type(error).__name__)

    async def send(self, subject: str) -> None:
        """Sends an empty message that nobody acknowledges. Raises one of FAULTS."""
        await self._client.publish(subject)

    async def pull(self, durable: str) -> JetStreamContext.PullSubscription:
        """The messages of a durable consumer."""
        return await self.jetstream.pull_subscribe_bind(durable=durable, stream=STREAM)

    async def close(self) -> None:
        # A client that is reconnecting writes to a closed socket, and the event loop's error may be of any type.
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self._client.close(), 2)
