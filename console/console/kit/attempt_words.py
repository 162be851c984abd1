"""Attempts of webhook deliveries in words: what the receiver answered, and how each delivery stands.

Two areas show deliveries. This part knows no contract: it reads the fields of an attempt and a delivery by their names.
"""

from __future__ import annotations

from typing import Literal, Protocol

WAITING, SUCCEEDED, PARKED, FAILED = STATES = ("waiting", "succeeded", "parked", "failed")
CAUSES = ("sweep", "retry", "manual", "resend", "test", "replay")
TONES = {
    WAITING: ("amber", "clock"),
    SUCCEEDED: ("green", "check"),
    PARKED: ("red", "x"),
    FAILED: ("red", "x"),
}
HELD = {"paused": "the endpoint is paused", "company_inactive": "the company is inactive"}
# The classes of errors as svc-webhooks records them. `status` and `redirect` have a status of the receiver's.
ERRORS = {
    "timeout": ("timeout", "It did not answer within 10 seconds."),
    "connect": ("no connection", "The address took no connection."),
    "certificate": ("certificate refused", "Its certificate is not valid for that name."),
    "tls": ("TLS failed", "The connection could not be encrypted."),
    "disconnected": ("hung up", "It closed the connection before its answer was complete."),
    "protocol": ("not HTTP", "Its answer was no HTTP."),
    "no_address": ("no address", "The host's name has no address."),
    "destination_refused": ("destination refused", "The host's address is not public, so nothing was sent."),
    "redirect": ("", "It redirects, which is not followed: the endpoint's address must be the last one."),
}
# Faults on Makeready's side. They use no step of the ladder.
OWN_FAULTS = {
    "egress": "Makeready could not send at that moment",
    "resolver": "Makeready could not look the name up at that moment",
    "vault": "Makeready could not open the signing secret",
}


class Stated(Protocol):
    """A delivery, or an attempt."""

    @property
    def state(self) -> int: ...


class Answered(Protocol):
    """An attempt's answer, or attempts with the same one."""

    @property
    def error(self) -> str: ...
    @property
    def status(self) -> int: ...
    def HasField(self, field_name: Literal["status"], /) -> bool: ...


class Attempt(Answered, Protocol):
    """An attempt of a contract."""

    @property
    def cause(self) -> int: ...


def state_of(delivery: Stated) -> str:
    """ "waiting", "succeeded", "parked" or "failed"; also of an attempt: the delivery's state after it."""
    return STATES[delivery.state - 1] if 0 < delivery.state <= len(STATES) else ""


def cause_of(attempt: Attempt) -> str:
    """One of CAUSES."""
    return CAUSES[attempt.cause - 1] if 0 < attempt.cause <= len(CAUSES) else ""


def answer(attempt: Answered) -> str:
    """The shortest words: "503", "timeout", "our fault"."""
    if attempt.error in OWN_FAULTS:
        return "not sent"
    words = ERRORS.get(attempt.error, (attempt.error, ""))[0]
    if attempt.HasField("status"):
        return str(attempt.status) if attempt.error in ("", "status", "redirect") else f"{attempt.status}, {words}"
    return words or str(attempt.error)


def explained(attempt: Attempt) -> str:
    """A sentence about a failure that its short words leave open; empty for an answer that explains itself."""
    if attempt.error in OWN_FAULTS:
        return f"{OWN_FAULTS[attempt.error]}; the attempt uses no step of the ladder."
    return ERRORS.get(attempt.error, ("", ""))[1]


def is_success(attempt: Attempt) -> bool:
    return not attempt.error


def seconds(milliseconds: int) -> str:
    """ "195 ms", "10.0 s" """
    return f"{milliseconds} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"
