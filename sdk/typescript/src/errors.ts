// A class for each error code of the API.
// Made by `make openapi` from the tables of the API: change openapi/reference instead.

import { ApiError } from "./failures.ts";

export { ApiError, ConnectionFailed, MakereadyError, SignatureInvalid } from "./failures.ts";

/**
 * 400 `invalid_limit`. `limit` is not a positive integer. Above 200 it is no error: it counts as 200. Correct the
 * request.
 */
export class InvalidLimit extends ApiError {}

/** 400 `invalid_cursor`. `cursor` was not issued for this list with these filters. Start again without a cursor. */
export class InvalidCursor extends ApiError {}

/**
 * 400 `idempotency_key_required`. A write came without the header `Idempotency-Key`. Send one, and keep it for retries
 * of the same write.
 */
export class IdempotencyKeyRequired extends ApiError {}

/**
 * 400 or 422 `invalid_request`. 400: an unknown or repeated query key, a filter's bad value, an `Idempotency-Key` over
 * 64 characters, a body that is not what the operation takes. 422: a value outside its published enum, and what a rule
 * of the operation refuses. Correct the request; the message names the field.
 */
export class InvalidRequest extends ApiError {}

/**
 * 401 `unauthorized`. No API key that is known, or a header that cannot be read. Send `Authorization: Bearer` and an
 * active key.
 */
export class Unauthorized extends ApiError {}

/** 401 `key_revoked`. The key was revoked. Stop retrying; ask an administrator for a new key. */
export class KeyRevoked extends ApiError {}

/** 403 `insufficient_scope`. The key's scope does not cover the operation. Use a key with a scope that does. */
export class InsufficientScope extends ApiError {}

/** 403 `company_inactive`. The company account is inactive. Have it activated before you try again. */
export class CompanyInactive extends ApiError {}

/**
 * 404 `not_found`. No such path, or no record with that id is visible to the key. A record of another company answers
 * this too, never 403. Check the path, the id and the key.
 */
export class NotFound extends ApiError {}

/** 405 `method_not_allowed`. The path does not support the verb. Use a verb that the header `Allow` lists. */
export class MethodNotAllowed extends ApiError {}

/**
 * 410 `cursor_expired`. The cursor of a feed is from before a restore of the service's records, so it can't go on. Take
 * a snapshot, or read the feed from its beginning, and go on from there.
 */
export class CursorExpired extends ApiError {}

/**
 * 409 `idempotency_in_progress`. A request with the same `Idempotency-Key` is still being processed. Wait and retry
 * with the same key.
 */
export class IdempotencyInProgress extends ApiError {}

/** 409 `idempotency_mismatch`. The `Idempotency-Key` was already used with a different request. Use a new key. */
export class IdempotencyMismatch extends ApiError {}

/**
 * 409 `clock_advancing`. An advance of the sandbox's clock is under way. Wait until `GET /sandbox/clock` says `ready`,
 * and retry.
 */
export class ClockAdvancing extends ApiError {}

/** 422 `created_by_missing`. The key has no minting administrator on record. Use a key that an administrator minted. */
export class CreatedByMissing extends ApiError {}

/**
 * 422 `invalid_destination_url`. `destination_url` is not https on port 443 of a public host, or has more than 2,048
 * characters. Nothing was created. Give another URL.
 */
export class InvalidDestinationUrl extends ApiError {}

/** 422 `events_empty`. `events` is empty or was left out. Name at least one event. */
export class EventsEmpty extends ApiError {}

/** 422 `events_unknown_key`. `events` names something that is no event key. Name event keys only. */
export class EventsUnknownKey extends ApiError {}

/**
 * 429 `rate_limited`. The key's 120 requests a minute are used up, or a snapshot of the same records is under way. Wait
 * for `Retry-After` seconds, then retry.
 */
export class RateLimited extends ApiError {}

/** 500 `internal_error`. A fault on our side. Retry once with backoff. */
export class InternalError extends ApiError {}

/** 503 `receiver_busy`. The receiver of a test is at its limit of attempts. Nothing was sent. Retry in a minute. */
export class ReceiverBusy extends ApiError {}

/** 503 `vault_unavailable`. The signing secret could not be encrypted. Nothing was created. Retry with backoff. */
export class VaultUnavailable extends ApiError {}

export const BY_CODE: Readonly<Record<string, typeof ApiError>> = {
  invalid_limit: InvalidLimit,
  invalid_cursor: InvalidCursor,
  idempotency_key_required: IdempotencyKeyRequired,
  invalid_request: InvalidRequest,
  unauthorized: Unauthorized,
  key_revoked: KeyRevoked,
  insufficient_scope: InsufficientScope,
  company_inactive: CompanyInactive,
  not_found: NotFound,
  method_not_allowed: MethodNotAllowed,
  cursor_expired: CursorExpired,
  idempotency_in_progress: IdempotencyInProgress,
  idempotency_mismatch: IdempotencyMismatch,
  clock_advancing: ClockAdvancing,
  created_by_missing: CreatedByMissing,
  invalid_destination_url: InvalidDestinationUrl,
  events_empty: EventsEmpty,
  events_unknown_key: EventsUnknownKey,
  rate_limited: RateLimited,
  internal_error: InternalError,
  receiver_busy: ReceiverBusy,
  vault_unavailable: VaultUnavailable,
};
