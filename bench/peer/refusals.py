"""What a request is refused with (spec 7)."""

from __future__ import annotations

from collections.abc import Mapping


class ApiError(Exception):
    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = headers


def not_found(noun: str) -> ApiError:
    return ApiError(404, "not_found", f"No {noun} with that id is visible to this key; check the id and the key.")


def mismatch() -> ApiError:
    return ApiError(409, "idempotency_mismatch", "This Idempotency-Key was used with a different request.")


def in_progress() -> ApiError:
    return ApiError(409, "idempotency_in_progress", "A request with this Idempotency-Key is in progress.")


def number_without_property() -> ApiError:
    return ApiError(400, "invalid_request", "ticket_number needs property_id.")
