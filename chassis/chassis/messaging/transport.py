"""The connection to NATS. It is made in the background, so nothing else waits for it, and retried forever."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence

import nats.errors
import nats.js.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.client import JetStreamContext
from prometheus_client import Gauge

STREAM = "EVENTS"
FAULTS = (nats.errors.Error, nats.js.errors.Error, TimeoutError, OSError)

# Codes of JetStream: insufficient resources, insufficient storage resources, the store failed.
NO_SPACE = (10023, 10047, 10077)

log = structlog.stdlib.get_logger(__name__)
CONNECTED = Gauge("makeready_nats_connected", "1 while the connection to NATS stands")


def lacks_space(error: BaseException) -> bool:
    """Whether NATS has no space for a message, on its disk or within its own limit."""
    if not isinstance(error, nats.js.errors.APIError):
        return False
    return error.err_code in NO_SPACE or "no space left" in (error.description or "")


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
        self._failed = ""
        self.is_full = False
        """Whether NATS refused an event of the last batch because it has no space for more."""

    @property
    def is_connected(self) -> bool:
        return self._ready.is_set() and self._client.is_connected

    @property
    def reconnections(self) -> int:
        """How often the connection was lost and made again. What others sent meanwhile did not arrive."""
        return int(self._client.stats["reconnects"])

    @property
    def fault(self) -> str:
        """Why NATS takes no events; empty if it does, as far as this process has seen."""
        return self._failed or ("" if self.is_connected else "not connected")

    def observe(self, faults: Sequence[BaseException]) -> None:
        """Notes how the last batch of messages went, for `fault` and `is_full`; faults: of those that failed."""
        full = [fault for fault in faults if lacks_space(fault)]
        worst = next(iter([*full, *faults]), None)
        self._failed = "" if worst is None else str(worst) or type(worst).__name__
        self.is_full = bool(full)

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

    async def listen(self, subject: str, heard: Callable[[str], None]) -> Callable[[], Awaitable[None]]:
        """Calls `heard` with the subject of each message, until the returned function is called. Raises one of
        FAULTS."""

        async def hear(message: Msg) -> None:
            heard(message.subject)

        return (await self._client.subscribe(subject, cb=hear)).unsubscribe

    async def pull(self, durable: str) -> JetStreamContext.PullSubscription:
        """The messages of a durable consumer."""
        return await self.jetstream.pull_subscribe_bind(durable=durable, stream=STREAM)

    async def close(self) -> None:
        # A client that is reconnecting writes to a closed socket, and the event loop's error may be of any type.
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self._client.close(), 2)
