"""Writes: one Idempotency-Key of an API key is one request, whichever service it goes to (spec 4.13).

Each service's ledger tells the writes within it apart. Before a write is sent, a note says to which service the key
goes. A write of another service finds the note, asks that service what has become of the key, and tells its own
service, which refuses it after the body's checks. If all requests of a note were refused, it is erased.
"""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import asyncpg
import structlog

from chassis.auth.clients import ServiceClient, ServiceUnavailable
from chassis.db.coalescing import Coalescer
from chassis.db.database import Database, DatabaseUnavailable
from chassis.refusals import Refusal, Unavailable, idempotency_mismatch
from chassis.runtime.failpoints import failpoint
from gateway.http.bearer import Caller
from gateway.http.calls import Calls, OwnService
from gateway.http.routes import Operation
from gateway.identity.idempotency import queries
from gateway.identity.idempotency.queries import Taking
from makeready.common.v1 import idempotency_pb2 as pb

# A claim outlasts its call by so much. A call that could begin later than that is not made.
MARGIN_SECONDS = 5.0
ASK_SECONDS = 2.0
ERASE_SECONDS = 2.0
_MISMATCH = idempotency_mismatch().code

log = structlog.stdlib.get_logger(__name__)
_Lease = datetime.datetime | None


class Writes:
    """The writes of all connections."""

    def __init__(self, database: Database, calls: Calls, clients: Mapping[str, ServiceClient | OwnService]) -> None:
        self._database = database
        self._calls = calls
        self._clients = clients
        # None for a key whose note says another service.
        self._notes: Coalescer[Taking, _Lease] = Coalescer(self._take_several, self._take)

    async def call(self, operation: Operation, message: Any, caller: Caller, request_id: str) -> Any:
        """The response to a write, whose request is complete but for `used_elsewhere`. Raises as `Calls.call`, and
        Unavailable before the service is called."""
        begun = asyncio.get_running_loop().time()
        digest = queries.digest(caller.api_key_id, message.idempotency_key)
        taking = Taking(digest, operation.service, operation.deadline_seconds + MARGIN_SECONDS)
        leased_until = await self._notes.ask(taking)
        if leased_until is None:
            begun = asyncio.get_running_loop().time()
            message.used_elsewhere, leased_until = await self._of_another(taking, message.idempotency_key, caller)
        if asyncio.get_running_loop().time() - begun > MARGIN_SECONDS:
            raise Unavailable("noting the key took too long")
        failpoint("api-before-call")
        try:
            response = await self._calls.call(operation, message, caller, request_id)
        except Refusal as refusal:
            # A mismatch says that the service has the key.
            if leased_until is not None and refusal.code != _MISMATCH:
                failpoint("api-refused")
                await self._erase(taking, leased_until)
            raise
        failpoint("api-after-call")
        return response

    async def _take_several(self, takings: Sequence[Taking]) -> Sequence[_Lease]:
        by_key: dict[bytes, Taking] = {}
        for taking in takings:
            before = by_key.get(taking.digest)
            if before is None:
                by_key[taking.digest] = taking
            elif before.service == taking.service:
                seconds = max(before.seconds, taking.seconds)
                by_key[taking.digest] = before._replace(seconds=seconds, requests=before.requests + 1)
        claims = await queries.take(self._database, list(by_key.values()))
        return [
            claims.get(taking.digest) if by_key[taking.digest].service == taking.service else None for taking in takings
        ]

    async def _take(self, taking: Taking) -> _Lease:
        return (await queries.take(self._database, [taking])).get(taking.digest)

    async def _of_another(self, taking: Taking, key: str, caller: Caller) -> tuple[pb.KeyUse.ValueType, _Lease]:
        """What `used_elsewhere` says about a key whose note says another service, and the claim if the note was taken
        over."""
        note = await queries.note_of(self._database, taking.digest)
        if note is None or note.service == taking.service:
            return pb.KEY_USE_IN_PROGRESS, None  # it has changed just now
        ours, theirs = await asyncio.gather(
            self._use(taking.service, key, caller), self._use(note.service, key, caller)
        )
        if ours == pb.KEY_USE_USED:  # its own ledger answers, for example a replay of before there were notes
            return pb.KEY_USE_FREE, None
        if theirs == pb.KEY_USE_FREE and not note.is_living:
            leased_until = await queries.take_over(self._database, taking, note)
            if leased_until is not None:
                return pb.KEY_USE_FREE, leased_until
        return pb.KEY_USE_USED if theirs == pb.KEY_USE_USED else pb.KEY_USE_IN_PROGRESS, None

    async def _use(self, service: str, key: str, caller: Caller) -> pb.KeyUse.ValueType:
        """What a service has used the key for; not specified if it does not answer."""
        try:
            answer = await self._clients[service].call(
                pb.GetKeyUseRequest(idempotency_key=key),
                pb.GetKeyUseResponse,
                identity=caller.identity,
                deadline_seconds=ASK_SECONDS,
            )
        except ServiceUnavailable as error:
            log.warning("key_use_unknown", service=service, reason=str(error))
            return pb.KEY_USE_UNSPECIFIED
        return answer.use

    async def _erase(self, taking: Taking, leased_until: datetime.datetime) -> None:
        """Forgets a refused request. If that fails, the note stays until another write finds that its claim is over."""
        try:
            async with asyncio.timeout(ERASE_SECONDS):
                await queries.release(self._database, taking.digest, taking.service, leased_until)
        except (DatabaseUnavailable, TimeoutError, asyncpg.PostgresError) as error:
            log.warning("note_not_erased", reason=str(error) or type(error).__name__)

    async def delete_old(self, now: datetime.datetime) -> int:
        """Deletes notes that are as old as the ledgers' claims become. Raises DatabaseUnavailable."""
        await self._database.check_clock()
        return await queries.delete_old(self._database, now)
