"""The guard against future instants: a sweep as of one is refused unless confirmed, because nothing undoes it.

Such a sweep does for every company what is not due yet. One ten weeks ahead moved most residents out of their homes.
"""

from __future__ import annotations

import datetime
from collections.abc import Awaitable, Callable
from typing import Protocol

from chassis.auth.identity import Call
from chassis.refusals import invalid_request
from chassis.schedule import instants

TOLERANCE = datetime.timedelta(minutes=15)  # an instant this far ahead of the clock is not a future one
ACCOUNT_LENGTH_MAX = 100

# Records in the audit log who starts a sweep ahead of the clock: the call, the sweep's name and instant, the account.
RecordSweep = Callable[[Call, str, datetime.datetime, str], Awaitable[None]]


class Request(Protocol):
    """The confirmation in a request, and the account that made it."""

    yes_for_all_companies: bool
    requested_by: str


def is_future(now: datetime.datetime, clock: datetime.datetime) -> bool:
    """Whether a sweep as of `now` needs a confirmation."""
    return now - clock > TOLERANCE


def consequence(sweep: str, now: datetime.datetime, clock: datetime.datetime) -> str:
    """What the sweep would do, in a sentence without a period."""
    effects = {
        "stale": "vacates the units whose residents leave until then, and sends the events of all that is overdue then",
        "retention": "forgets the Idempotency-Keys that are 30 days old then, and drops events with their deliveries",
    }
    return (
        f"{instants.printed(now)} is {_distance(now - clock)} ahead of the clock: the sweep {effects[sweep]}, in every "
        "company, and nothing undoes it"
    )


async def guard(sweep: str, now: datetime.datetime, request: Request, call: Call, record: RecordSweep | None) -> None:
    """Raises Refusal for a sweep ahead of the clock that is not confirmed, and has one that is confirmed recorded."""
    clock = instants.now()
    if not is_future(now, clock):
        return
    if not request.yes_for_all_companies:
        raise invalid_request(
            f"{consequence(sweep, now, clock)}; only a request with yes_for_all_companies does it.", "now"
        )
    account = request.requested_by
    if len(account) > ACCOUNT_LENGTH_MAX or "\0" in account:
        raise invalid_request(
            f"requested_by must have at most {ACCOUNT_LENGTH_MAX} characters, none of them NUL.", "requested_by"
        )
    if record is not None:
        await record(call, sweep, now, account)


def _distance(ahead: datetime.timedelta) -> str:
    if ahead.days:
        return f"{ahead.days} day{'s' if ahead.days > 1 else ''}"
    return f"{ahead.seconds // 3600} h {ahead.seconds % 3600 // 60} min"
