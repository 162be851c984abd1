"""Refusals: the errors of spec 7 that answer a caller's fault. Standard library only.

A rule raises a refusal; it crosses gRPC once, and only the gateway renders it.
"""

from __future__ import annotations


class Refusal(Exception):  # noqa: N818 - it is an answer, not a fault
    """An answer of the error envelope.

    It has the HTTP `status` and the stable `code` of spec 7. The `message` is one sentence that names cause and remedy,
    ends with a period, and never repeats a value of the caller's. The `field` is the one at fault, if any, by its name
    in the request; it is never a name of the caller's.
    """

    def __init__(self, status: int, code: str, message: str, field: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.field = field


def invalid_request(message: str, field: str = "", status: int = 400) -> Refusal:
    return Refusal(status, "invalid_request", message, field)


def not_found(noun: str) -> Refusal:
    """The same sentence for a missing record and for another company's, so callers cannot tell them apart."""
    return Refusal(404, "not_found", f"No {noun} with that id is visible to this key; check the id and the key.")


def created_by_missing() -> Refusal:
    return Refusal(
        422,
        "created_by_missing",
        "This key has no minting administrator on record; use a key that an administrator minted.",
    )


def idempotency_in_progress() -> Refusal:
    return Refusal(
        409,
        "idempotency_in_progress",
        "A request with this Idempotency-Key is still being processed; wait and retry with the same key.",
    )


def idempotency_mismatch() -> Refusal:
    return Refusal(
        409, "idempotency_mismatch", "This Idempotency-Key was already used with a different request; use a new key."
    )


class Unavailable(Exception):  # noqa: N818 - says what is the matter
    """A dependency did not answer: an internal fault, never the caller's. A retry may succeed.

    If a database has no disk space, `disk_full` is its service; else "".
    """

    disk_full = ""
