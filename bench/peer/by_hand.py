"""The contract's routes on asyncpg by hand, without a framework: what the peers on aiohttp and Litestar share.

A request is answered by one process with as few statements as the contract allows: a floor for what it can cost.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import asyncpg
import msgspec

from peer import settings, statements, structs
from peer.callers import READERS, WRITERS, Caller, administrator_of, admit, bearer, check_scope, lock_of
from peer.paging import make_cursor, read_cursor
from peer.refusals import ApiError, in_progress, mismatch, not_found, number_without_property
from peer.rules import check, photo_missing

PAGE_MAX = 200
CONNECTIONS = 20
IDEMPOTENCY_KEY_MAX = 64

Replied = tuple[int, bytes, dict[str, str]]
"""A status, a body, and headers."""
_JSON = "application/json"


async def _nothing(_connection: object) -> None:
    """In place of asyncpg's reset, which costs a round trip: no statement leaves anything in a session."""


class ByHand:
    """The routes of tickets."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, Caller]] = {}

    async def open(self) -> None:
        self._pool = await asyncpg.create_pool(
            settings.DATABASE_URL, min_size=CONNECTIONS, max_size=CONNECTIONS, reset=_nothing
        )

    async def close(self) -> None:
        await self._pool.close()

    async def answer(
        self,
        name: str,
        headers: Mapping[str, str],
        ticket_id: str = "",
        query: Mapping[str, str] = MappingProxyType({}),
        body: bytes = b"",
    ) -> Replied:
        """The answer to a request of the route with the name. query: of a list. body: of a write."""
        request_id = uuid.uuid4().hex
        more = {"X-Request-Id": request_id, "Cache-Control": "no-store", "Content-Type": _JSON}
        try:
            caller = await self._caller_of(bearer(headers.get("Authorization")))
            more |= admit(caller)
            assert caller is not None
            if name in ("get", "list"):
                check_scope(caller, READERS)
                if name == "get":
                    return 200, await self._get(caller, _id(ticket_id)), more
                return 200, await self._list(caller, query), more
            check_scope(caller, WRITERS)
            key = _key(headers)
            status = 201 if name == "create" else 200
            try:
                if name == "create":
                    reply, replayed = await self._create(caller, key, body)
                else:
                    reply, replayed = await self._change(caller, key, _id(ticket_id), body, request_id)
            except asyncpg.UniqueViolationError:  # by another request with the key, after this one's snapshot
                raise in_progress() from None
            if replayed:
                more["X-Idempotent-Replay"] = "1"
            return status, reply, more
        except ApiError as error:
            envelope = {"error": {"code": error.code, "message": error.message}}
            return error.status, structs.encode(envelope), {**more, **(error.headers or {})}

    async def _caller_of(self, key: str) -> Caller | None:
        """The key's caller, cached for a few seconds."""
        digest = hashlib.sha256(key.encode()).hexdigest()
        kept = self._known.get(digest)
        if kept is not None and kept[0] > time.monotonic():
            return kept[1]
        row = await self._pool.fetchrow(statements.CALLER, digest)
        if row is None:
            return None
        caller = Caller(*row)
        self._known[digest] = (time.monotonic() + settings.KEY_CACHE_SECONDS, caller)
        return caller

    async def _get(self, caller: Caller, ticket_id: int) -> bytes:
        row = await self._pool.fetchrow(statements.TICKET, caller.company_id, ticket_id)
        if row is None:
            raise not_found("ticket")
        return structs.encode(structs.ticket(row))

    async def _list(self, caller: Caller, query: Mapping[str, str]) -> bytes:
        try:
            parameters = msgspec.convert(dict(query), structs.Filters, strict=False)
        except msgspec.ValidationError as error:
            raise structs.invalid(error) from None
        if parameters.ticket_number is not None and parameters.property_id is None:
            raise number_without_property()
        limit = min(parameters.limit, PAGE_MAX)
        filters = {name: value for name in statements.FILTERS if (value := getattr(parameters, name)) is not None}
        signed = structs.encode(filters).decode()
        after_id = read_cursor(caller.company_id, parameters.cursor, signed)
        statement = statements.page(tuple(filters), limit + 1)
        rows = await self._pool.fetch(statement, caller.company_id, after_id, *filters.values())
        tickets = [structs.ticket(row) for row in rows[:limit]]
        cursor = make_cursor(caller.company_id, tickets[-1].entity_id, signed) if len(rows) > limit else None
        return structs.encode(structs.Page(tickets, cursor, limit))

    async def _create(self, caller: Caller, key: str, body: bytes) -> tuple[bytes, bool]:
        """The reply, and whether it is that of an earlier request."""
        try:
            creation = structs.creation(body)
        except msgspec.MsgspecError as error:
            raise structs.invalid(error) from None
        company_id = caller.company_id
        fingerprint = _fingerprint("POST /tickets", creation)
        async with self._pool.acquire() as connection, connection.transaction():
            if kept := await _claim(connection, caller, key, fingerprint):
                return kept, True
            administrator_id = administrator_of(caller)
            place = await connection.fetchrow(statements.PLACE, company_id, creation.unit_id, creation.asset_id)
            if place is None:
                raise not_found("unit")
            if not place["has_asset"]:
                raise not_found("asset")
            ticket = structs.Ticket(
                1, "ticket", place["id"], place["last"], creation.title, creation.description, creation.category, None,
                creation.priority, "Open",
                structs.Named(place["property_id"], place["property_name"], place["property_external_id"]),
                structs.Named(place["unit_id"], place["unit_name"], place["unit_external_id"]), place["unit_number"],
                None, None, False, None, None, None, None, place["moment"], place["moment"], None, None, None, None,
                "api", f"{settings.LINKS_URL}/tickets/{place['id']}",
            )  # fmt: skip
            reply = structs.encode(ticket)
            await connection.execute(
                statements.CREATE, place["id"], company_id, place["last"], creation.title, creation.description,
                creation.category, creation.priority, place["property_id"], place["unit_id"], creation.asset_id,
                place["unit_number"], place["moment"], administrator_id, reply.decode(),
                caller.key_id, key, fingerprint,
            )  # fmt: skip
            return reply, False

    async def _change(
        self, caller: Caller, key: str, ticket_id: int, body: bytes, request_id: str
    ) -> tuple[bytes, bool]:
        """The reply, and whether it is that of an earlier request."""
        try:
            new_status = structs.status_change(body)
        except msgspec.MsgspecError as error:
            raise structs.invalid(error, unknown=422) from None
        check(new_status)
        fingerprint = _fingerprint(f"PATCH /tickets/{ticket_id}", new_status)
        async with self._pool.acquire() as connection, connection.transaction():
            if kept := await _claim(connection, caller, key, fingerprint):
                return kept, True
            administrator_id = administrator_of(caller)
            row = await connection.fetchrow(statements.HELD, caller.company_id, ticket_id)
            if row is None:
                raise not_found("ticket")
            ticket = structs.ticket(row)
            *_, moment, needs_photo = row
            if needs_photo and new_status.status == "Completed" and not ticket.photo_url:
                raise photo_missing()
            text, before = new_status.note or new_status.cancellation_notes, ticket.status
            is_new = (
                new_status.status != before or new_status.cancellation_reason_code != ticket.cancellation_reason_code
            )
            if not is_new and text is None:
                reply = structs.encode(ticket)
                await connection.execute(
                    statements.KEEP, caller.company_id, caller.key_id, key, fingerprint, reply.decode()
                )
                return reply, False
            ticket.status, ticket.updated_at = new_status.status, moment
            ticket.completed_at = (ticket.completed_at or moment) if new_status.status == "Completed" else None
            ticket.cancelled_at = (ticket.cancelled_at or moment) if new_status.status == "Cancelled" else None
            ticket.cancellation_reason_code = new_status.cancellation_reason_code
            reply = structs.encode(ticket)
            change = structs.encode({"field": "status", "from": before, "to": new_status.status}).decode()
            await connection.execute(
                statements.CHANGE, ticket_id, new_status.status, moment, ticket.completed_at, ticket.cancelled_at,
                new_status.cancellation_reason_code, "closing_note" if new_status.note else "cancellation_notes", text,
                administrator_id, caller.key_id, before, request_id, caller.company_id, reply.decode(),
                change if new_status.status != before else None, key, fingerprint,
            )  # fmt: skip
            return reply, False


def _id(text: str) -> int:
    if not text.isdecimal():
        raise not_found("ticket")
    return int(text)


def _key(headers: Mapping[str, str]) -> str:
    key = headers.get("Idempotency-Key")
    if key is None:
        raise ApiError(400, "idempotency_key_required", "Send an Idempotency-Key header with every write.")
    if not 0 < len(key) <= IDEMPOTENCY_KEY_MAX:
        raise ApiError(400, "invalid_request", "Idempotency-Key is not valid.")
    return key


def _fingerprint(operation: str, body: msgspec.Struct) -> str:
    return hashlib.sha256(operation.encode() + b"\0" + structs.encode(body)).hexdigest()


async def _claim(connection: Any, caller: Caller, key: str, fingerprint: str) -> bytes | None:
    """The reply that an earlier request with the key stored; None if this request is the first. Raises ApiError."""
    row = await connection.fetchrow(statements.CLAIM, lock_of(caller, key), caller.company_id, caller.key_id, key)
    if row["fingerprint"] is None:
        if not row["is_free"]:
            raise in_progress()
        return None
    if row["fingerprint"] != fingerprint:
        raise mismatch()
    body: str = row["body"]
    return body.encode()
