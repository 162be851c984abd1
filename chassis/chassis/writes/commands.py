"""Commands: each runs once for its idempotency key, is audited, and is one transaction.

They are the back office's, and those writes of the public API that do the same. The API's hot paths use
`chassis.writes.idempotency` directly; a command can afford a few more round trips.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import sqlalchemy as sa
from google.protobuf.message import Message

from chassis.auth.identity import Call, company_id
from chassis.db.database import Connection, Database
from chassis.db.statements import NewValues, Values
from chassis.messaging.outbox import Outbox
from chassis.refusals import Refusal, created_by_missing, invalid_request
from chassis.runtime.failpoints import failpoint
from chassis.schedule.clocks import CompanyClocks
from chassis.schedule.instants import Clock
from chassis.writes.audit import Audit
from chassis.writes.idempotency import IDEMPOTENCY_KEY, Claim, Ledger, check_key
from makeready.common.v1.documents_pb2 import WriteReply
from makeready.events.v1.events_pb2 import References

Reply = TypeVar("Reply", bound=Message)
_TICK = datetime.timedelta(microseconds=1)


def fields(request: Message, *names: str) -> NewValues:
    """The values of these fields in a request, by name, for `bodies.check`, which knows their types and bounds.

    A field without presence always has a value, an optional one if it is set. A field named in `clear`, a list that
    some requests have, has the value None. Raises Refusal 400 for a name that can't be cleared, for one that is both
    set and cleared, and for a text with the character NUL, which can't be stored.
    """
    descriptors: Any = request.DESCRIPTOR.fields_by_name
    values = {
        name: getattr(request, name) for name in names if not descriptors[name].has_presence or request.HasField(name)
    }
    for name, value in values.items():
        several = value if descriptors[name].is_repeated else [value]
        if any(isinstance(text, str) and "\0" in text for text in several):
            raise invalid_request(f"{name} must not hold the character NUL.", name)
    for name in getattr(request, "clear", ()):
        if name not in names or not descriptors[name].has_presence:
            raise invalid_request("clear may name the optional fields of the request only.", "clear")
        if name in values:
            raise invalid_request("A field can be set or cleared, not both.", name)
        values[name] = None
    return values


def claim_of_actor(call: Call, request: Any, company: int) -> Claim:
    """The claim of a person's request about a company, whose other fields and actor define "the same request".

    No API key has the id 0, and the key holds the actor, so none is shared. Raises Refusal 400 for a bad key.
    """
    key: str = request.idempotency_key
    if not key:
        raise Refusal(
            400,
            "idempotency_key_required",
            "idempotency_key is required to do this once; send a new one.",
            IDEMPOTENCY_KEY,
        )
    check_key(key)
    same = type(request)()
    same.CopyFrom(request)
    same.ClearField("idempotency_key")
    whole = request.DESCRIPTOR.full_name.encode() + b"\0" + same.SerializeToString(deterministic=True)
    fingerprint = hashlib.blake2b(whole, digest_size=32).digest()
    return Claim(company, 0, f"{call.identity.actor} {key}", fingerprint)


class Command:
    """One command in its transaction."""

    def __init__(
        self, commands: CommandRunner, connection: Connection, call: Call, company: int | None, clock: Clock
    ) -> None:
        """The clock is the company's."""
        self._commands, self._clock = commands, clock
        self.connection = connection
        self.call = call
        self.company_id = company or company_id(call)
        self.now = clock()
        self._last_instant = self.now - _TICK

    @property
    def real_now(self) -> datetime.datetime:
        """The real clock, which `now` is ahead of in a sandbox. What is retained has its instants."""
        return self._commands.clocks.real()

    def next_instant(self, updated_at: datetime.datetime) -> datetime.datetime:
        """The instant of a locked record's change: later than its last change, even if the clock is behind, and later
        than every event published about it while this command waited for the lock. Each call returns a later one, so
        that two events of one record differ in occurred_at; the record's updated_at is the last of them."""
        self._last_instant = max(self._clock(), updated_at + _TICK, self._last_instant + _TICK)
        return self._last_instant

    async def audit(self, action: str, subject: str, subject_id: int, before: Values, after: Values) -> None:
        """Adds an entry to the audit log. Of the values by name only those that differ are stored."""
        await self._commands.audit.add(
            self.connection, self.call, self.company_id, action, subject, subject_id, before, after
        )

    async def publish_event(
        self, event: str, entity_id: int, at: datetime.datetime, data: bytes, change: bytes = b""
    ) -> None:
        """Publishes an event that subscriptions can name. Its `data` is the record as its GET serves it from now on.

        Raises ValueError for a key that is not in EventKey, and for an instant that is not later than that of the
        record's event before.
        """
        outbox = self._commands.outbox
        row = outbox.public(
            event,
            company_id=self.company_id,
            entity_id=entity_id,
            occurred_at=at,
            data=data,
            change=change,
            request_id=self.call.request_id,
        )
        await outbox.add(self.connection, row)

    async def publish_references(self, references: References) -> None:
        """Publishes rows for other contexts' replicas."""
        outbox = self._commands.outbox
        row = outbox.references(
            references, company_id=self.company_id, occurred_at=self.now, request_id=self.call.request_id
        )
        await outbox.add(self.connection, row)


class CommandRunner(Ledger):
    """Runs the commands of one context."""

    def __init__(
        self,
        database: Database,
        claims: sa.Table,
        audit: Audit,
        outbox: Outbox | None = None,
        clocks: CompanyClocks | None = None,
    ) -> None:
        """A context that publishes no events has no outbox; one whose records know no sandboxes has the real clock."""
        super().__init__(claims)
        self._database = database
        self.audit, self._outbox = audit, outbox
        self.clocks = clocks or CompanyClocks(database)

    @property
    def outbox(self) -> Outbox:
        """Of a context that publishes events."""
        assert self._outbox is not None
        return self._outbox

    async def done(self, call: Call, request: Any, reply: type[Reply], company: int | None = None) -> Reply | None:
        """The reply of an earlier request with the key; None if the key is free. For `company` see `run`.

        For work outside the transaction of `run`: a repeat must not depend on it. Raises Refusal as `run` does.
        """
        stored = await self.stored(self._database, claim_of_actor(call, request, company or company_id(call)))
        return None if stored is None else reply.FromString(stored.body)

    async def run(
        self,
        call: Call,
        request: Any,
        reply: type[Reply],
        work: Callable[[Command], Awaitable[Reply]],
        company: int | None = None,
    ) -> Reply:
        """Does the work in one transaction and stores its reply for 30 days, or returns an earlier request's reply.

        The request has `idempotency_key`; its other fields and the actor define "the same request". It is about a
        record of `company`, for callers whose token names none; by default of the token's. If the work raises,
        everything is rolled back. Raises Refusal 400 for a bad key, 409 (mismatch, in progress), DatabaseUnavailable.
        """
        record_company = company or company_id(call)
        claim = claim_of_actor(call, request, record_company)

        async def answer(command: Command) -> bytes:
            return (await work(command)).SerializeToString()

        return reply.FromString((await self._run(call, claim, answer, record_company)).body)

    async def write(
        self,
        call: Call,
        claim: Claim,
        status: int,
        work: Callable[[Command], Awaitable[bytes]],
        prepare: Callable[[], Awaitable[None]] | None = None,
    ) -> WriteReply:
        """Does a write of the public API, as `run`. Its work returns the JSON of the answer with this HTTP status.

        For the claim see `claim_of`. What must be done before the transaction is `prepare`: a replay does not depend on
        it. Raises Refusal 422 for a key without administrator, and as `run`.
        """

        async def answer(command: Command) -> bytes:
            _check_administrator(call)
            return await work(command)

        if prepare is not None:
            stored = await self.stored(self._database, claim)
            if stored is not None:
                return stored
            _check_administrator(call)
            await prepare()
        return await self._run(call, claim, answer, claim.company_id, status)

    async def _run(
        self,
        call: Call,
        claim: Claim,
        work: Callable[[Command], Awaitable[bytes]],
        company: int,
        status: int = 200,
    ) -> WriteReply:
        async def answer(connection: Connection) -> bytes:
            clock = await self.clocks.of(call, connection, company)
            return await work(Command(self, connection, call, company, clock))

        written = await self.once(self._database, claim, answer, status=status)
        if not written.replayed:
            if self._outbox is not None:
                self._outbox.wake()
            failpoint("write-after-commit")
        return written


def _check_administrator(call: Call) -> None:
    """Raises Refusal 422 if the caller's API key has no minting administrator (spec 4.13)."""
    if call.identity.administrator_id is None:
        raise created_by_missing()
