"""Refusals: what a caller did that is answered with an error of spec 7. Standard library only.

A refusal is raised where the rule is, crosses gRPC once, and is rendered by the gateway alone.
"""

from __future__ import annotations


class Refusal(Exception):  # noqa: N818 - it is not a fault of ours
    """An answer of the error envelope.

    status: the HTTP status; code: the stable code of spec 7; message: one sentence that names cause and
    remedy, ends with a period, and never repeats a value of the caller's. field: the field at fault, where
    there is one (imports report it).
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
    """One sentence for a record that does not exist and for one of another company: nobody can tell which."""
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
    """Something that we stand on did not answer: a fault of ours, never the caller's. Worth a retry."""
