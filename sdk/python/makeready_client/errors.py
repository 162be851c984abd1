"""A class for each error code of the API, and the errors of this library.

Made by `make openapi` from the tables of the API: change openapi/reference instead.
"""

from makeready_client.failures import ApiError, ConnectionFailed, MakereadyError, SignatureInvalid

__all__ = [
    "BY_CODE",
    "ApiError",
    "ClockAdvancing",
    "CompanyInactive",
    "ConnectionFailed",
    "CreatedByMissing",
    "CursorExpired",
    "EventsEmpty",
    "EventsUnknownKey",
    "IdempotencyInProgress",
    "IdempotencyKeyRequired",
    "IdempotencyMismatch",
    "InsufficientScope",
    "InternalError",
    "InvalidCursor",
    "InvalidDestinationUrl",
    "InvalidLimit",
    "InvalidRequest",
    "KeyRevoked",
    "MakereadyError",
    "MethodNotAllowed",
    "NotFound",
    "RateLimited",
    "ReceiverBusy",
    "SignatureInvalid",
    "Unauthorized",
    "VaultUnavailable",
]


class InvalidLimit(ApiError):
    """400 `invalid_limit`. `limit` is not a positive integer. Above 200 it is no error: it counts as 200. Correct
    the request.
    """


class InvalidCursor(ApiError):
    """400 `invalid_cursor`. `cursor` was not issued for this list with these filters. Start again without a cursor."""


class IdempotencyKeyRequired(ApiError):
    """400 `idempotency_key_required`. A write came without the header `Idempotency-Key`. Send one, and keep it for
    retries of the same write.
    """


class InvalidRequest(ApiError):
    """400 or 422 `invalid_request`. 400: an unknown or repeated query key, a filter's bad value, an
    `Idempotency-Key` over 64 characters, a body that is not what the operation takes. 422: a value outside its
    published enum, and what a rule of the operation refuses. Correct the request; the message names the field.
    """


class Unauthorized(ApiError):
    """401 `unauthorized`. No API key that is known, or a header that cannot be read. Send `Authorization: Bearer`
    and an active key.
    """


class KeyRevoked(ApiError):
    """401 `key_revoked`. The key was revoked. Stop retrying; ask an administrator for a new key."""


class InsufficientScope(ApiError):
    """403 `insufficient_scope`. The key's scope does not cover the operation. Use a key with a scope that does."""


class CompanyInactive(ApiError):
    """403 `company_inactive`. The company account is inactive. Have it activated before you try again."""


class NotFound(ApiError):
    """404 `not_found`. No such path, or no record with that id is visible to the key. A record of another company
    answers this too, never 403. Check the path, the id and the key.
    """


class MethodNotAllowed(ApiError):
    """405 `method_not_allowed`. The path does not support the verb. Use a verb that the header `Allow` lists."""


class CursorExpired(ApiError):
    """410 `cursor_expired`. The cursor of a feed is from before a restore of the service's records, so it can't go
    on. Take a snapshot, or read the feed from its beginning, and go on from there.
    """


class IdempotencyInProgress(ApiError):
    """409 `idempotency_in_progress`. A request with the same `Idempotency-Key` is still being processed. Wait and
    retry with the same key.
    """


class IdempotencyMismatch(ApiError):
    """409 `idempotency_mismatch`. The `Idempotency-Key` was already used with a different request. Use a new key."""


class ClockAdvancing(ApiError):
    """409 `clock_advancing`. An advance of the sandbox's clock is under way. Wait until `GET /sandbox/clock` says
    `ready`, and retry.
    """


class CreatedByMissing(ApiError):
    """422 `created_by_missing`. The key has no minting administrator on record. Use a key that an administrator
    minted.
    """


class InvalidDestinationUrl(ApiError):
    """422 `invalid_destination_url`. `destination_url` is not https on port 443 of a public host, or has more than
    2,048 characters. Nothing was created. Give another URL.
    """


class EventsEmpty(ApiError):
    """422 `events_empty`. `events` is empty or was left out. Name at least one event."""


class EventsUnknownKey(ApiError):
    """422 `events_unknown_key`. `events` names something that is no event key. Name event keys only."""


class RateLimited(ApiError):
    """429 `rate_limited`. The key's 120 requests a minute are used up, or a snapshot of the same records is under
    way. Wait for `Retry-After` seconds, then retry.
    """


class InternalError(ApiError):
    """500 `internal_error`. A fault on our side. Retry once with backoff."""


class ReceiverBusy(ApiError):
    """503 `receiver_busy`. The receiver of a test is at its limit of attempts. Nothing was sent. Retry in a minute."""


class VaultUnavailable(ApiError):
    """503 `vault_unavailable`. The signing secret could not be encrypted. Nothing was created. Retry with backoff."""


BY_CODE: dict[str, type[ApiError]] = {
    "invalid_limit": InvalidLimit,
    "invalid_cursor": InvalidCursor,
    "idempotency_key_required": IdempotencyKeyRequired,
    "invalid_request": InvalidRequest,
    "unauthorized": Unauthorized,
    "key_revoked": KeyRevoked,
    "insufficient_scope": InsufficientScope,
    "company_inactive": CompanyInactive,
    "not_found": NotFound,
    "method_not_allowed": MethodNotAllowed,
    "cursor_expired": CursorExpired,
    "idempotency_in_progress": IdempotencyInProgress,
    "idempotency_mismatch": IdempotencyMismatch,
    "clock_advancing": ClockAdvancing,
    "created_by_missing": CreatedByMissing,
    "invalid_destination_url": InvalidDestinationUrl,
    "events_empty": EventsEmpty,
    "events_unknown_key": EventsUnknownKey,
    "rate_limited": RateLimited,
    "internal_error": InternalError,
    "receiver_busy": ReceiverBusy,
    "vault_unavailable": VaultUnavailable,
}
