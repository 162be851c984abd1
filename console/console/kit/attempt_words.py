"""Attempts of webhook deliveries in words: what the receiver answered, and how each delivery stands.

Two areas show deliveries. This part knows no contract: it reads the fields of an attempt and a delivery by their names.
"""

from __future__ import annotations

import datetime
import math
from typing import Literal, Protocol

from google.protobuf.timestamp_pb2 import Timestamp

from console.kit.texts import _

SWEEP_SECONDS = 3600

WAITING, SUCCEEDED, PARKED, FAILED = STATES = ("waiting", "succeeded", "parked", "failed")
CAUSES = ("sweep", "retry", "manual", "resend", "test", "replay")
TONES = {
    WAITING: ("amber", "clock"),
    SUCCEEDED: ("green", "check"),
    PARKED: ("red", "x"),
    FAILED: ("red", "x"),
}
HELD = {"paused": _("the endpoint is paused"), "company_inactive": _("the company is inactive")}
# The classes of errors as svc-webhooks records them. `status` and `redirect` have a status of the receiver's.
ERRORS = {
    "timeout": ("timeout", _("It did not respond within 10 seconds.")),
    "connect": (_("no connection"), _("The connection was refused.")),
    "certificate": (_("invalid certificate"), _("Its certificate is not valid for that name.")),
    "tls": (_("TLS failed"), _("The connection could not be encrypted.")),
    "disconnected": (_("disconnected"), _("It closed the connection before the response was complete.")),
    "protocol": (_("not HTTP"), _("The response was not HTTP.")),
    "no_address": (_("no address"), _("The host name does not resolve.")),
    "destination_refused": (_("destination refused"), _("The host's address is not public, so nothing was sent.")),
    "redirect": ("", _("It redirects, and redirects are not followed. Use the final URL.")),
}
# Faults on Makeready's side. They use no step of the ladder.
OWN_FAULTS = {
    "egress": _("Makeready could not send at that moment"),
    "resolver": _("Makeready could not resolve the name at that moment"),
    "vault": _("Makeready could not open the signing secret"),
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


def sweep_of(due_at: Timestamp, now: datetime.datetime) -> datetime.datetime:
    """The sweep that makes an attempt which is due: sweeps start on the hour (spec 6.3)."""
    seconds = max(due_at.ToDatetime(datetime.UTC).timestamp(), now.timestamp() + 1)
    return datetime.datetime.fromtimestamp(math.ceil(seconds / SWEEP_SECONDS) * SWEEP_SECONDS, datetime.UTC)


def state_words(state: str) -> str:
    """A state as people read it: a parked delivery, whose automatic retries are used up, needs one by hand."""
    return {WAITING: _("waiting"), SUCCEEDED: _("delivered"), PARKED: _("needs retry"), FAILED: _("failed")}.get(
        state, ""
    )


def state_of(delivery: Stated) -> str:
    """ "waiting", "succeeded", "parked" or "failed"; also of an attempt: the delivery's state after it."""
    return STATES[delivery.state - 1] if 0 < delivery.state <= len(STATES) else ""


def cause_of(attempt: Attempt) -> str:
    """One of CAUSES."""
    return CAUSES[attempt.cause - 1] if 0 < attempt.cause <= len(CAUSES) else ""


def answer(attempt: Answered) -> str:
    """The shortest words: "503", "timeout", "our fault"."""
    if attempt.error in OWN_FAULTS:
        return _("not sent")
    words = ERRORS.get(attempt.error, (attempt.error, ""))[0]
    if attempt.HasField("status"):
        return str(attempt.status) if attempt.error in ("", "status", "redirect") else f"{attempt.status}, {words}"
    return words or str(attempt.error)


def explained(attempt: Attempt) -> str:
    """A sentence about a failure that its short words leave open; empty for an answer that explains itself."""
    if attempt.error in OWN_FAULTS:
        return _("%(fault)s; the attempt does not count as a retry.") % {"fault": OWN_FAULTS[attempt.error]}
    return ERRORS.get(attempt.error, ("", ""))[1]


def is_success(attempt: Attempt) -> bool:
    return not attempt.error


def seconds(milliseconds: int) -> str:
    """ "195 ms", "10.0 s" """
    return f"{milliseconds} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"
