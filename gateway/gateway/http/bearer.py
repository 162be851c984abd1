"""Authenticates a request's key (spec 5) through a cache that a revocation reaches within a second.

Every gateway listens on its own database for revocations and changes of companies; NATS takes no part in it. A cached
key is trusted for five seconds, and only while the listener works: its connection is probed four times a second, and
from the moment it fails every request queries the database.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import asyncpg
import structlog
from asyncpg import Record
from prometheus_client import Gauge

from chassis.auth.identity import INTEGRATION, Identity
from chassis.db.database import LOST, Database, DatabaseUnavailable
from chassis.schedule.instants import printed
from gateway.identity.invalidation import CHANNEL
from gateway.identity.keys import queries, records, rules

API_VERSION: Literal["v1"] = "v1"
KEPT_SECONDS = 5.0
KNOWN_MAX = 8192
UNKNOWN_MAX = 4096
# Lookups of unknown keys use at most this many pool connections, so random keys cannot starve known ones.
STRANGERS_MAX = 3
READ_SECONDS_MAX = 3.0
PROBE_SECONDS = 0.25
PROBE_SECONDS_MAX = 0.5
RECONNECT_SECONDS = 0.2

log = structlog.stdlib.get_logger(__name__)
LISTENING = Gauge("makeready_key_listener_connected", "1 while revocations are heard and keys may be cached")


@dataclass(frozen=True, slots=True)
class Caller:
    """A key and its company, as of the last read."""

    api_key_id: int
    scope: str
    revoked: bool
    company_active: bool
    identity: Identity
    """The identity that the services receive."""
    whoami: bytes
    """The answer of GET /whoami."""


@dataclass(slots=True)
class _Kept:
    caller: Caller
    until: float


def digest(authorization: Sequence[str]) -> bytes | None:
    """SHA-256 of the key in the Authorization headers of a request; None if no API key has that form.

    The scheme word is matched in any case; everything after the first space is the key. Keys are compared by their
    digests alone, so that the response time reveals nothing about a key.
    """
    if len(authorization) != 1:
        return None
    scheme, _, key = authorization[0].partition(" ")
    if scheme.lower() != "bearer" or len(key) != rules.KEY_CHARACTERS or not key.isascii():
        return None
    return hashlib.sha256(key.encode()).digest()


class Keys:
    """The cache of keys."""

    def __init__(self, database: Database) -> None:
        self.listening = False
        self._database = database
        self._known: dict[bytes, _Kept] = {}
        self._unknown: dict[bytes, float] = {}
        self._reading: dict[bytes, asyncio.Future[Caller | None]] = {}
        self._strangers = asyncio.Semaphore(STRANGERS_MAX)
        # Grows with every notice and whenever the listener connects or fails: a read that began before is not cached.
        self._epoch = 0

    async def find(self, digest: bytes) -> Caller | None:
        """The key with this digest; None if no such key exists. Raises DatabaseUnavailable after READ_SECONDS_MAX."""
        if self.listening:
            now = asyncio.get_running_loop().time()
            cached = self._known.get(digest)
            if cached is None:
                if self._unknown.get(digest, 0.0) > now:
                    return None
            elif cached.until > now:
                return cached.caller
        reading = self._reading.get(digest)
        if reading is None:
            reading = asyncio.ensure_future(self._read(digest))
            self._reading[digest] = reading
        try:
            async with asyncio.timeout(READ_SECONDS_MAX):
                return await asyncio.shield(reading)
        except TimeoutError:
            raise DatabaseUnavailable("the key was not read in time") from None

    async def _read(self, digest: bytes) -> Caller | None:
        task = asyncio.current_task()
        epoch, started = self._epoch, asyncio.get_running_loop().time()
        try:
            if digest in self._known:
                row = await queries.key_by_digest(self._database, digest)
            else:
                async with self._strangers:
                    row = await queries.key_by_digest(self._database, digest)
        finally:
            if self._reading.get(digest) is task:
                del self._reading[digest]
        caller = None if row is None else _caller(row)
        if epoch == self._epoch:
            self._keep(digest, caller, started + KEPT_SECONDS)
        return caller

    def _keep(self, digest: bytes, caller: Caller | None, until: float) -> None:
        if caller is None:
            self._unknown[digest] = until
            if len(self._unknown) > UNKNOWN_MAX:
                del self._unknown[next(iter(self._unknown))]
            return
        self._known.pop(digest, None)  # to the end: eviction starts with the key read longest ago
        self._known[digest] = _Kept(caller, until)
        if len(self._known) > KNOWN_MAX:
            del self._known[next(iter(self._known))]

    async def listen(self) -> None:
        """Receives revocations until cancelled."""
        while True:
            try:
                await self._listen()
            except (*LOST, asyncpg.PostgresError) as error:
                if self.listening:
                    log.warning("key_listener_lost", reason=str(error) or type(error).__name__)
            finally:
                self._distrust()
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _listen(self) -> None:
        connection = await asyncpg.connect(
            self._database.url, timeout=2, server_settings={"application_name": "gateway-listener"}
        )
        lost = asyncio.Event()

        def on_end(_connection: Any) -> None:
            lost.set()
            self._distrust()

        try:
            connection.add_termination_listener(on_end)
            await connection.add_listener(CHANNEL, self._on_notice)
            self._forget_reads()
            for cached in self._known.values():
                cached.until = 0.0
            self._unknown.clear()
            self.listening = True
            LISTENING.set(1)
            log.info("key_listener_hears")
            while True:
                try:
                    await asyncio.wait_for(lost.wait(), PROBE_SECONDS)
                    raise ConnectionResetError("the server ended the connection")
                except TimeoutError:
                    await connection.execute("SELECT 1", timeout=PROBE_SECONDS_MAX)
        finally:
            connection.terminate()

    def _distrust(self) -> None:
        if self.listening:
            self.listening = False
            LISTENING.set(0)
            self._forget_reads()

    def _forget_reads(self) -> None:
        self._epoch += 1
        self._reading.clear()

    def _on_notice(self, _connection: Any, _pid: int, _channel: str, payload: object) -> None:
        kind, _, number = str(payload).partition(" ")
        self._forget_reads()
        for cached in self._known.values():
            named = cached.caller.api_key_id if kind == "key" else cached.caller.identity.company_id
            if str(named) == number:
                cached.until = 0.0


def _caller(row: Record) -> Caller:
    return Caller(
        api_key_id=row["id"],
        scope=row["scope"],
        revoked=row["revoked_at"] is not None,
        company_active=row["active"],
        identity=Identity(
            INTEGRATION,
            "gateway",
            company_id=row["company_id"],
            api_key_id=row["id"],
            scope=row["scope"],
            administrator_id=row["administrator_id"],
        ),
        whoami=records.encode(
            records.Whoami(
                API_VERSION,
                records.Company(row["company_id"], row["company_name"], row["timezone"]),
                records.Key(row["id"], row["name"], row["prefix"], row["scope"], printed(row["created_at"])),
            )
        ),
    )
