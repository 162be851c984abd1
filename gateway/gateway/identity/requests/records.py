"""A logged request: its details as they are stored, and the public record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from asyncpg import Record

from chassis.schedule.instants import printed


class Details(msgspec.Struct, array_like=True, gc=False):
    """What nobody filters by. Fields may be added at the end, with a default."""

    ids: tuple[str, ...]
    """The ids in the path."""
    query: str
    message: str
    field: str
    milliseconds: float
    bytes_in: int
    bytes_out: int
    address: str
    user_agent: str
    idempotency_key_hash: str
    is_replay: bool
    record_type: str
    record_id: int
    trace_id: str


class LoggedRequest(msgspec.Struct, kw_only=True):
    """A request with a key of the company, and what it was answered."""

    schema_version: Literal[1] = 1
    entity_type: Literal["request"] = "request"
    entity_id: int
    """Ascends in the order in which requests were stored."""
    request_id: str
    """The answer's header `X-Request-Id`, for example 019c36e8f1a05c1f0b8a77d1."""
    requested_at: str
    """When it came."""
    key_id: int
    """The key's id, as `GET /whoami` has it."""
    method: str
    """The verb, for example PATCH."""
    route: str
    """The path with the names of its ids, for example /tickets/{ticket_id}."""
    path: str
    """The path, for example /tickets/318."""
    query: str
    """The query, in which ids, states and instants stand as they came. Other values begin with `~`: a hash, the same
    for the same value."""
    status: int
    """The answer's HTTP status, for example 422."""
    code: str | None
    """The error's code, for example invalid_request."""
    message: str | None
    """The error's sentence, for example Completing a ticket needs a note of 5 or more words."""
    field: str | None
    """The field or parameter at fault, if the refusal names one."""
    milliseconds: float
    """From the request to the answer, without what a feed waited, for example 8.4."""
    bytes_in: int
    """The length of the body, for example 31."""
    bytes_out: int
    """The length of the answer's body, for example 120."""
    address: str
    """Where it came from, for example 203.0.113.9."""
    user_agent: str
    """The header `User-Agent`, for example makeready-client/0.3."""
    idempotency_key_hash: str | None
    """A hash of the `Idempotency-Key`, the same for the same key."""
    is_replay: bool
    """Whether the answer to an earlier request with the `Idempotency-Key` was repeated."""
    record_type: str | None
    """The `entity_type` of the record that a write made or changed, for example ticket."""
    record_id: int | None
    """Its `entity_id`."""
    trace_id: str
    """The id of its trace, for example 4bf92f3577b34da6a3ce929d0e0e4736."""


class LoggedRequestBodies(LoggedRequest, kw_only=True):
    """A request with a key of the company, with the bodies that are kept of it in a sandbox."""

    request_body: str | None
    """What is kept of the body that was sent, as JSON: its first 16 KiB. A value that may say who somebody is stands
    there as `[redacted string]`, and so does a value of a type that the operation does not take; a key that it does not
    know begins with `~`: a hash. null if there was no body, and always for a live company, of which no body is kept."""
    response_body: str | None
    """What is kept of the answer's body, in the same way."""


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Details).decode


def path(route: str, ids: Sequence[str]) -> str:
    """The path of a route with these ids; of no route, it is the only one of them."""
    if not route:
        return ids[0]
    text, *segments = route.split("{")
    for entity_id, segment in zip(ids, segments, strict=True):
        text += entity_id + segment.partition("}")[2]
    return text


def document(row: Record) -> bytes:
    """The public record of a stored row, without bodies."""
    return encode(LoggedRequest(**_fields(row)))


def document_with_bodies(row: Record) -> bytes:
    """The public record of a stored row, whose columns have the bodies."""
    return encode(
        LoggedRequestBodies(**_fields(row), request_body=row["request_body"], response_body=row["response_body"])
    )


def _fields(row: Record) -> dict[str, Any]:
    details = decode(row["details"])
    return {
        "entity_id": row["id"],
        "request_id": row["request_id"],
        "requested_at": printed(row["requested_at"]),
        "key_id": row["api_key_id"],
        "method": row["method"],
        "route": row["route"],
        "path": path(row["route"], details.ids),
        "query": details.query,
        "status": row["status"],
        "code": row["code"] or None,
        "message": details.message or None,
        "field": details.field or None,
        "milliseconds": details.milliseconds,
        "bytes_in": details.bytes_in,
        "bytes_out": details.bytes_out,
        "address": details.address,
        "user_agent": details.user_agent,
        "idempotency_key_hash": details.idempotency_key_hash or None,
        "is_replay": details.is_replay,
        "record_type": details.record_type or None,
        "record_id": details.record_id or None,
        "trace_id": details.trace_id,
    }
