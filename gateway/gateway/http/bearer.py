"""Authenticates a request's key (spec 5) through a cache that a revocation reaches within a second.

A key that is not cached is looked up only if it may be one of ours: its check is good, or it is among the keys without
a check that can be verified here, whose digests are in memory. So random keys cost no query, however many come.

Every gateway listens on its own database for revocations and changes of companies; NATS takes no part in it. A cached
key is trusted for five seconds, and only while the listener works: its connection is probed four times a second, and
from the moment it fails every request queries the database.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import sys
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import asyncpg
import structlog
from asyncpg import Record
from prometheus_client import Gauge

from chassis.auth.identity import INTEGRATION, Identity
from chassis.db.database import LOST, Database, DatabaseUnavailable
from chassis.runtime.stalls import within
from chassis.schedule.instants import printed
from gateway.identity.invalidation import CHANNEL
from gateway.identity.keys import queries, records, rules

API_VERSION: Literal["v1"] = "v1"
KEPT_SECONDS = 5.0
KNOWN_MAX = 8192
UNKNOWN_MAX = 4096
# Look-ups of keys that this process has not read yet use at most this many pool connections: they cannot starve those
# of known keys.
STRANGERS_MAX = 3
# Within the deadline of every operation.
READ_SECONDS_MAX = 4.0
# Keys without a check can only become fewer, but a gateway of release 0.2.0 may still mint one during an upgrade.
UNCHECKED_SECONDS = 60.0
# The least time between two loads of key digests, for keys of a ring that is unknown here: ten times as long as the
# last load took, within these bounds. The upper one is shorter than a request waits.
RELOAD_SECONDS, RELOAD_SECONDS_MAX = 1.0, 3.0
KEY_CHARACTERS_MAX = 100
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
    expires_at: float
    """In seconds since 1970; infinite for a key that does not expire."""
    company_active: bool
    identity: Identity
    """The identity that the services receive."""
    whoami: bytes
    """The answer of GET /whoami."""


@dataclass(slots=True)
class _Kept:
    caller: Caller
    until: float


def presented(authorization: Sequence[str]) -> str | None:
    """The key in the Authorization headers of a request; None if there is none, or none can be so long.

    The scheme word is matched in any case; everything after the first space is the key.
    """
    if len(authorization) != 1:
        return None
    scheme, _, key = authorization[0].partition(" ")
    return key if scheme.lower() == "bearer" and len(key) <= KEY_CHARACTERS_MAX and key.isascii() else None


class _Digests:
    """The keys without a check that can be verified here, by the first bytes of their digests: 8 bytes a key.

    That two keys have the same first bytes is unlikely and costs a look-up.
    """

    def __init__(self, heads: bytes = b"") -> None:
        """heads: those of `queries.unchecked_digests`."""
        self._heads = array("Q", heads)
        if sys.byteorder == "little":
            self._heads.byteswap()

    def __len__(self) -> int:
        return len(self._heads)

    def __contains__(self, digest: bytes) -> bool:
        head = int.from_bytes(digest[: queries.DIGEST_HEAD_BYTES], "big")
        place = bisect_left(self._heads, head)
        return place < len(self._heads) and self._heads[place] == head


class Keys:
    """The cache of keys. They are compared by their digests alone: the response time reveals nothing about a key."""

    def __init__(self, database: Database, checks: rules.KeyChecks) -> None:
        self.listening = False
        self._database = database
        self._checks = checks
        self._unchecked: _Digests | None = None
        """None until they are loaded."""
        self._next_load: asyncio.Future[None] | None = None
        """The load of `_unchecked` that has not begun yet."""
        self._load_at = 0.0
        self._known: dict[bytes, _Kept] = {}
        self._unknown: dict[bytes, float] = {}
        self._reading: dict[bytes, asyncio.Future[Caller | None]] = {}
        self._strangers = asyncio.Semaphore(STRANGERS_MAX)
        # Grows with every notice and whenever the listener connects or fails: a read that began before is not cached.
        self._epoch = 0

    async def find(self, key: str) -> Caller | None:
        """The key; None if no such key exists. Raises DatabaseUnavailable after READ_SECONDS_MAX."""
        digest = hashlib.sha256(key.encode()).digest()
        if self.listening:
            now = asyncio.get_running_loop().time()
            cached = self._known.get(digest)
            if cached is None:
                if self._unknown.get(digest, 0.0) > now:
                    return None
            elif cached.until > now:
                return cached.caller
        ends_at = asyncio.get_running_loop().time() + READ_SECONDS_MAX
        try:
            async with asyncio.timeout_at(ends_at):
                if digest not in self._known and not await self._may_be_ours(key, digest):
                    return None
            reading = self._reading.get(digest)
            if reading is None:
                reading = self._reading[digest] = asyncio.ensure_future(self._read(digest))
            return await within(ends_at - asyncio.get_running_loop().time(), reading)
        except TimeoutError:
            raise DatabaseUnavailable("the key was not read in time") from None

    async def _may_be_ours(self, key: str, digest: bytes) -> bool:
        """Whether a look-up may find the key. Costs a query only for a ring that is not known here, one a second."""
        verdict = self._checks.verdict(key)
        if verdict in ("good", "bad"):
            return verdict == "good"
        if self._unchecked is not None and digest in self._unchecked:
            return True
        if self._unchecked is None or verdict == "unknown ring":
            # A gateway with another ring may have minted the key after the last load.
            await self._loaded_from_now()
        return self._unchecked is not None and digest in self._unchecked

    async def _loaded_from_now(self) -> None:
        """Returns when a load that began after this call has ended. Loads are RELOAD_SECONDS apart, shared by all."""
        if self._next_load is None:
            self._next_load = asyncio.ensure_future(self._load())
            # The requests that wait may all have left when it fails.
            self._next_load.add_done_callback(lambda load: load.cancelled() or load.exception())
        await asyncio.shield(self._next_load)

    async def _load(self) -> None:
        loop = asyncio.get_running_loop()
        if (wait := self._load_at - loop.time()) > 0:
            await asyncio.sleep(wait)
        self._next_load = None
        begun = loop.time()
        self._load_at = begun + RELOAD_SECONDS
        self._unchecked = _Digests(await queries.unchecked_digests(self._database, self._checks.marks))
        took = loop.time() - begun
        self._load_at = begun + max(RELOAD_SECONDS, min(RELOAD_SECONDS_MAX, 10 * took))

    async def load_unchecked(self) -> None:
        """Loads the digests of keys without a verifiable check, and again while any exist, until cancelled."""
        await self._loaded_from_now()
        while True:
            await asyncio.sleep(UNCHECKED_SECONDS)
            if self._unchecked:
                await self._loaded_from_now()

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
        async with self._database.session("gateway-listener", connect_seconds=2) as connection:
            lost = asyncio.Event()

            def on_end(_connection: object) -> None:
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
                        await _probe(connection)
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

    def _on_notice(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        kind, _, number = str(payload).partition(" ")
        self._forget_reads()
        for cached in self._known.values():
            named = cached.caller.api_key_id if kind == "key" else cached.caller.identity.company_id
            if str(named) == number:
                cached.until = 0.0


async def _probe(connection: Any) -> None:
    """Asks for an answer, behind which no notice can be outstanding. Raises TimeoutError after PROBE_SECONDS_MAX."""
    probe = asyncio.ensure_future(connection.execute("SELECT 1"))
    try:
        await within(PROBE_SECONDS_MAX, probe)
    finally:
        probe.cancel()


def _caller(row: Record) -> Caller:
    return Caller(
        api_key_id=row["id"],
        scope=row["scope"],
        revoked=row["revoked_at"] is not None,
        expires_at=math.inf if row["expires_at"] is None else row["expires_at"].timestamp(),
        company_active=row["active"],
        identity=Identity(
            INTEGRATION,
            "gateway",
            company_id=row["company_id"],
            api_key_id=row["id"],
            scope=row["scope"],
            administrator_id=row["administrator_id"],
            is_sandbox=row["is_sandbox"],
        ),
        whoami=records.encode(
            records.Whoami(
                API_VERSION,
                records.Company(
                    row["company_id"],
                    row["company_name"],
                    row["timezone"],
                    "sandbox" if row["is_sandbox"] else "live",
                ),
                records.Key(row["id"], row["name"], row["prefix"], row["scope"], printed(row["created_at"])),
            )
        ),
    )
