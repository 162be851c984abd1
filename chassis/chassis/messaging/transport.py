"""The connection to NATS. It is made in the background, so nothing else waits for it, and retried forever."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import math
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import nats.errors
import nats.js.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js.api import Header
from nats.js.client import JetStreamContext
from prometheus_client import Gauge

from chassis.runtime.settings import nats_servers

STREAM = "EVENTS"
FAULTS = (nats.errors.Error, nats.js.errors.Error, TimeoutError, OSError)
ANSWER_SECONDS = 5
CHECK_SECONDS = 5
AGAIN_SECONDS = 1
# A server that says nothing for two or three of these is away. By default the library would wait for six minutes.
PING_SECONDS = 2
FORGET_SECONDS = 60
RENEW_SECONDS = 5
CANCEL_AGAIN_SECONDS = 0.1

# Codes of JetStream: insufficient resources, insufficient storage resources, the store failed.
NO_SPACE = (10023, 10047, 10077)
# The cluster has no leader, this server is none; a message expects another stream.
NO_LEADER = (10008, 10009)
OTHER_STREAM = 10060

log = structlog.stdlib.get_logger(__name__)
CONNECTED = Gauge(
    "makeready_nats_connected",
    "1 while events can be published; in a process that only listens, while the connection to NATS stands",
)
HAS_LEADER = Gauge(
    "makeready_stream_has_leader",
    "1 while the leader of the stream of events answers this process; NaN in one that only listens",
)


def lacks_space(error: BaseException) -> bool:
    """Whether NATS has no space for a message, on its disk or within its own limit."""
    if not isinstance(error, nats.js.errors.APIError):
        return False
    return error.err_code in NO_SPACE or "no space left" in (error.description or "")


def reason_of(error: BaseException) -> str:
    """What went wrong, for a log line."""
    return str(error) or type(error).__name__


def inbox_of(name: str) -> str:
    """The subjects on which a service receives messages and answers; its user may listen to no other."""
    return f"_INBOX.{name}"


class NatsConnection(Client):
    """A connection to one of the servers of a NATS. When that server goes, it is made to another one, for ever."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        """The `url` names one or several servers, see `nats_servers`, which raises ValueError; `tls` verifies them.
        With it, and for tls:// URLs, a server that asks for no TLS gets no password."""
        super().__init__()
        self._named = nats_servers(url)
        self._tls = tls or (ssl.create_default_context() if self._named.is_encrypted else None)
        self._reconnecting: asyncio.Task[object] | None = None
        self._lost_at = math.inf

    @property
    def is_returning(self) -> bool:
        """Whether it was lost and is being made again, or is in its first handshake. The library says "connecting" in
        every handshake. A second `open` would then leave it without the inbox of its answers."""
        return self.is_reconnecting or self.is_connecting

    def has_ended(self) -> bool:
        """Whether it has ended for good, or has not come back for RENEW_SECONDS: then a new one is needed.

        Its owner asks every second or so: RENEW_SECONDS begin with the first question after the loss.
        """
        # The library waits until the kernel has sent what a vanished server did not take, or has given up: up to a
        # quarter of an hour. Another server may be there sooner.
        self._lost_at = min(self._lost_at, time.monotonic()) if self.is_returning else math.inf
        return self.is_closed or time.monotonic() - self._lost_at > RENEW_SECONDS

    async def open(
        self, name: str, disconnected_cb: Callable[[], Awaitable[None]] | None = None, **options: Any
    ) -> None:
        """Tries all servers until one takes it; once. See `Client.connect`."""

        async def disconnected() -> None:
            if self.is_reconnecting:  # in the task that does it; else in the one that closes
                self._reconnecting = asyncio.current_task()
            if disconnected_cb is not None:
                await disconnected_cb()

        if self._named.user:  # not in the URLs: those of servers that the others tell of have none
            if self._named.password is None:
                options["token"] = functools.partial(self._in_secret, self._named.user)
            else:
                options["user"] = self._named.user
                options["password"] = functools.partial(self._in_secret, self._named.password)
        await self.connect(
            self._named.urls,
            name=name,
            tls=self._tls,
            connect_timeout=2,
            allow_reconnect=True,
            max_reconnect_attempts=-1,  # by default, it gives up after 60
            reconnect_time_wait=1,
            ping_interval=PING_SECONDS,
            max_outstanding_pings=2,
            flush_timeout=ANSWER_SECONDS,  # else a message that a frozen server does not take would be sent for ever
            disconnected_cb=disconnected,
            **options,
        )

    def _in_secret(self, text: str) -> str:
        """The text, for the server that is being connected to. Raises if the connection should be encrypted, and is
        not."""
        if self._tls is not None and not self._server_info.get("tls_required"):
            raise nats.errors.Error("nats: the server does not ask for TLS, so it gets no password")
        return text

    async def end(self) -> None:
        """Closes it for good, in two seconds at most."""
        # A client that is reconnecting writes to a closed socket, and its error may be of any type.
        closing = asyncio.ensure_future(self._close_for_good())
        await asyncio.wait({closing}, timeout=2)
        if not closing.cancel() and not closing.cancelled():
            closing.exception()

    async def _close_for_good(self) -> None:
        # `close` cancels the reconnecting once. Where a server has just refused it, `asyncio.wait_for` of Python 3.11
        # swallows that, and a closed client would connect again.
        while self._reconnecting is not None and not self._reconnecting.done():
            self._reconnecting.cancel()
            await asyncio.wait({self._reconnecting}, timeout=CANCEL_AGAIN_SECONDS)
        if self.is_returning:
            # `close` would send what waits to a closed socket. Its error would leave subscriptions' tasks running.
            # These names are the library's own, and it has no public way to drop what waits.
            self._pending, self._pending_data_size = [], 0
        await self.close()


@dataclass(slots=True)
class _Ear:
    """One listener to hints."""

    subject: str
    hear: Callable[[Msg], Awaitable[None]]
    subscription: Subscription


class Transport:
    """One connection a process. The stream of events and its consumers are the operator's: see `streams`."""

    def __init__(self, url: str, name: str, tls: ssl.SSLContext | None = None, *, publishes: bool = True) -> None:
        """See `NatsConnection`. A process that publishes no events listens to hints."""
        self._url, self._name, self._tls = url, name, tls
        self._publishes = publishes
        self._client = NatsConnection(url, tls)
        self.jetstream: JetStreamContext = self._client.jetstream(timeout=ANSWER_SECONDS)
        self._ready = asyncio.Event()
        self._look = asyncio.Event()
        self._refused = ""
        self._refused_at = 0.0
        self._is_full = False
        self._has_leader = False
        self._unanswered = ""
        self._ears: list[_Ear] = []
        self._earlier_reconnections = 0

    @property
    def is_connected(self) -> bool:
        """Whether the connection stands. Events can perhaps not be published all the same: see `fault`."""
        return self._ready.is_set() and self._client.is_connected

    @property
    def reconnections(self) -> int:
        """How often the connection was lost and made again. What others sent meanwhile did not arrive."""
        return self._earlier_reconnections + int(self._client.stats["reconnects"])

    @property
    def fault(self) -> str:
        """Why NATS takes no events; empty if it does, as far as this process has seen."""
        if not self.is_connected:
            return "not connected"
        return (self._refused if self._remembers else "") or self._unanswered

    @property
    def is_full(self) -> bool:
        """Whether NATS refused an event of the last batch because it has no space for more."""
        return self._is_full and self._remembers

    @property
    def _remembers(self) -> bool:
        # If another process publishes the refused events, no later batch of this process clears the refusal. So it is
        # forgotten after FORGET_SECONDS.
        return time.monotonic() - self._refused_at < FORGET_SECONDS

    def observe(self, faults: Sequence[BaseException]) -> None:
        """Notes how the last batch of messages went, for `fault` and `is_full`; `faults` are those of messages that
        failed."""
        full = [fault for fault in faults if lacks_space(fault)]
        worst = next(iter([*full, *faults]), None)
        self._refused = "" if worst is None else reason_of(worst)
        self._refused_at = time.monotonic()
        self._is_full = bool(full)
        if worst is None:
            self._has_leader, self._unanswered = True, ""
        else:
            self._look.set()
        self._tell()

    async def connected(self) -> None:
        """Waits for the first connection."""
        await self._ready.wait()

    async def run(self) -> None:
        """Connects, and watches the connection and the stream until cancelled."""
        while True:
            if self._client.has_ended():
                log.warning("nats_away", reason="the connection has ended, a new one is made")
                self._renew()
            if not self._client.is_connected and not self._client.is_returning:
                self._tell()
                try:
                    await self._open()
                except FAULTS as error:
                    log.warning("nats_away", reason=reason_of(error))
                    self._renew()
                    await asyncio.sleep(AGAIN_SECONDS)
                    continue
            self._look.clear()
            if self._publishes and self._client.is_connected:
                await self._ask_the_stream()
            self._tell()
            is_well = self._client.is_connected and (self._has_leader or not self._publishes)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CHECK_SECONDS if is_well else AGAIN_SECONDS):
                    await self._look.wait()

    def _renew(self) -> None:
        """Takes a new client in the place of one that has ended for good, with its subscriptions."""
        self._earlier_reconnections = self.reconnections + 1
        self._ending = asyncio.ensure_future(self._client.end())
        self._client = NatsConnection(self._url, self._tls)
        self.jetstream = self._client.jetstream(timeout=ANSWER_SECONDS)

    async def _open(self) -> None:
        await self._client.open(
            self._name,
            inbox_prefix=inbox_of(self._name),
            error_cb=self._on_error,
            disconnected_cb=self._on_disconnected,
            reconnected_cb=self._on_reconnected,
        )
        self._say_where()
        for ear in self._ears:
            ear.subscription = await self._client.subscribe(ear.subject, cb=ear.hear)
        self._ready.set()

    async def _ask_the_stream(self) -> None:
        """Asks its leader with a message that it has to refuse: it expects another stream, so nothing is stored. A user
        that may publish may ask this, and no more."""
        try:
            await self.jetstream.publish(f"events.{self._name}.probe", headers={Header.EXPECTED_STREAM: "NONE"})
        except nats.js.errors.APIError as error:
            self._has_leader = error.err_code not in NO_LEADER
            self._unanswered = "" if error.err_code == OTHER_STREAM else reason_of(error)
        except FAULTS as error:
            self._has_leader = False
            self._unanswered = f"the leader of the stream {STREAM} does not answer: {reason_of(error)}"

    def _tell(self) -> None:
        HAS_LEADER.set(int(self.is_connected and self._has_leader) if self._publishes else math.nan)
        CONNECTED.set(int(not self.fault and (self._has_leader or not self._publishes)))

    def _say_where(self) -> None:
        url = self._client.connected_url
        log.info("nats_connected", server=f"{url.hostname}:{url.port}" if url else "")

    async def _on_error(self, error: Exception) -> None:
        log.info("nats_error", reason=reason_of(error))

    async def _on_disconnected(self) -> None:
        if self._client.is_reconnecting:
            log.warning("nats_away", reason="the connection was lost")
        self._tell()

    async def _on_reconnected(self) -> None:
        self._say_where()
        self._look.set()

    async def send(self, subject: str) -> None:
        """Sends an empty message that nobody acknowledges. Raises one of FAULTS."""
        await self._client.publish(subject)

    async def listen(self, subject: str, heard: Callable[[str], None]) -> Callable[[], Awaitable[None]]:
        """Calls `heard` with the subject of each message, until the returned function is called. Raises one of
        FAULTS."""

        async def hear(message: Msg) -> None:
            heard(message.subject)

        ear = _Ear(subject, hear, await self._client.subscribe(subject, cb=hear))
        self._ears.append(ear)

        async def stop() -> None:
            self._ears.remove(ear)
            await ear.subscription.unsubscribe()

        return stop

    async def pull(self, durable: str) -> JetStreamContext.PullSubscription:
        """The messages of a durable consumer."""
        return await self.jetstream.pull_subscribe_bind(durable=durable, stream=STREAM)

    async def close(self) -> None:
        await self._client.end()
