"""The error table (spec 7): the meaning of each code, the remedy, and the operations that may answer it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reference.words import FILTER_422, WRITES

if TYPE_CHECKING:  # the pages are made without the gateway
    from gateway.http.routes import Operation


@dataclass(frozen=True, slots=True)
class Error:
    """A code. message: an example of its sentence."""

    statuses: tuple[int, ...]
    meaning: str
    remedy: str
    message: str


ERRORS = {
    "invalid_limit": Error(
        (400,),
        "`limit` is not a positive integer. Above 200 it is no error: it counts as 200.",
        "Correct the request.",
        "limit must be a positive integer in plain digits; above 200 it counts as 200.",
    ),
    "invalid_cursor": Error(
        (400,),
        "`cursor` was not issued for this list with these filters.",
        "Start again without a cursor.",
        "cursor was not issued for this list with these filters; start again without a cursor.",
    ),
    "idempotency_key_required": Error(
        (400,),
        "A write came without the header `Idempotency-Key`.",
        "Send one, and keep it for retries of the same write.",
        "Creating a ticket needs an Idempotency-Key header; send a new key with each new ticket.",
    ),
    "invalid_request": Error(
        (400, 422),
        "400: an unknown or repeated query key, a filter's bad value, an `Idempotency-Key` over 64 characters, a body "
        "that is not what the operation takes. 422: a value outside its published enum, and what a rule of the "
        "operation refuses.",
        "Correct the request; the message names the field.",
        "property_id must be an integer.",
    ),
    "unauthorized": Error(
        (401,),
        "No API key that is known, or a header that cannot be read.",
        "Send `Authorization: Bearer` and an active key.",
        "The request bears no API key that is known here; send the header Authorization: Bearer and an active key.",
    ),
    "key_revoked": Error(
        (401,),
        "The key was revoked.",
        "Stop retrying; ask an administrator for a new key.",
        "This API key was revoked; stop retrying and ask an administrator for a new one.",
    ),
    "insufficient_scope": Error(
        (403,),
        "The key's scope does not cover the operation.",
        "Use a key with a scope that does.",
        "This key's scope does not cover this operation; use a key with the scope write.",
    ),
    "company_inactive": Error(
        (403,),
        "The company account is inactive.",
        "Have it activated before you try again.",
        "The company account of this key is inactive; have it activated before you try again.",
    ),
    "not_found": Error(
        (404,),
        "No such path, or no record with that id is visible to the key. A record of another company answers this "
        "too, never 403.",
        "Check the path, the id and the key.",
        "No ticket with that id is visible to this key; check the id and the key.",
    ),
    "method_not_allowed": Error(
        (405,),
        "The path does not support the verb.",
        "Use a verb that the header `Allow` lists.",
        "This path does not support the request's verb; use one that the Allow header lists.",
    ),
    "cursor_expired": Error(
        (410,),
        "The cursor of a feed is from before a restore of the service's records, so it can't go on.",
        "Take a snapshot, or read the feed from its beginning, and go on from there.",
        "The cursor is from before a restore of the service's records; take a snapshot and go on from its cursor.",
    ),
    "idempotency_in_progress": Error(
        (409,),
        "A request with the same `Idempotency-Key` is still being processed.",
        "Wait and retry with the same key.",
        "A request with this Idempotency-Key is still being processed; wait and retry with the same key.",
    ),
    "idempotency_mismatch": Error(
        (409,),
        "The `Idempotency-Key` was already used with a different request.",
        "Use a new key.",
        "This Idempotency-Key was already used with a different request; use a new key.",
    ),
    "clock_advancing": Error(
        (409,),
        "An advance of the sandbox's clock is under way.",
        "Wait until `GET /sandbox/clock` says `ready`, and retry.",
        "The clock is advancing; wait until GET /sandbox/clock says ready, then try again.",
    ),
    "created_by_missing": Error(
        (422,),
        "The key has no minting administrator on record.",
        "Use a key that an administrator minted.",
        "This key has no minting administrator on record; use a key that an administrator minted.",
    ),
    "invalid_destination_url": Error(
        (422,),
        "`destination_url` is not https on port 443 of a public host, or has more than 2,048 characters. Nothing was "
        "created.",
        "Give another URL.",
        "destination_url must be an https URL.",
    ),
    "events_empty": Error(
        (422,),
        "`events` is empty or was left out.",
        "Name at least one event.",
        "events must name at least one of: ticket.created, ticket.status_changed.",
    ),
    "events_unknown_key": Error(
        (422,),
        "`events` names something that is no event key.",
        "Name event keys only.",
        "events may name only: ticket.created, ticket.status_changed.",
    ),
    "rate_limited": Error(
        (429,),
        "The key's 120 requests a minute are used up, or a snapshot of the same records is under way.",
        "Wait for `Retry-After` seconds, then retry.",
        "This key's 120 requests a minute are used up; wait for Retry-After seconds.",
    ),
    "internal_error": Error(
        (500,),
        "A fault on our side.",
        "Retry once with backoff.",
        "Something failed on our side; retry once with backoff.",
    ),
    "receiver_busy": Error(
        (503,),
        "The receiver of a test is at its limit of attempts. Nothing was sent.",
        "Retry in a minute.",
        "The receiver is at its limit of attempts; nothing was sent, try again in a minute.",
    ),
    "vault_unavailable": Error(
        (503,),
        "The signing secret could not be encrypted. Nothing was created.",
        "Retry with backoff.",
        "The signing secret could not be encrypted and nothing was created; retry with backoff.",
    ),
}

Codes = dict[int, tuple[str, ...]]


def codes(operation: Operation) -> Codes:
    """The codes that an operation may answer, by status."""
    route = operation.route
    if operation.scope == "public":
        return {400: ("invalid_request",), 405: ("method_not_allowed",)}
    codes_of_route: Codes = {
        400: ("invalid_request",),
        401: ("unauthorized", "key_revoked"),
        403: ("company_inactive",) if operation.scope == "any" else ("insufficient_scope", "company_inactive"),
        405: ("method_not_allowed",),
        429: ("rate_limited",),
        500: ("internal_error",),
    }
    if operation.id_field or route.path.startswith("/sandbox/"):
        codes_of_route[404] = ("not_found",)
    if operation.kind == "list":
        codes_of_route[400] = ("invalid_request", "invalid_limit", "invalid_cursor")
        if route.path in FILTER_422:
            codes_of_route[422] = ("invalid_request",)
    if operation.kind == "search":
        codes_of_route[422] = ("invalid_request",)
    if operation.kind == "report":
        codes_of_route[404] = ("not_found",)
        codes_of_route[422] = ("invalid_request",)
    if operation.kind == "feed":
        codes_of_route[400] = ("invalid_request", "invalid_limit", "invalid_cursor")
        codes_of_route[410] = ("cursor_expired",)
        codes_of_route[422] = ("invalid_request",)
    if operation.kind == "write":
        codes_of_route[400] = ("invalid_request", "idempotency_key_required")
        codes_of_route[409] = ("idempotency_in_progress", "idempotency_mismatch")
        codes_of_route |= WRITES[f"{route.method} {route.path}"].codes
    return dict(sorted(codes_of_route.items()))
