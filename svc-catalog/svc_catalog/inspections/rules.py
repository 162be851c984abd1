"""Values and states of an inspection, and which inspections the API serves (spec 2.9). Pure.

Scheduled -> In Progress -> Completed: the first result of a row starts an inspection. It can be completed once all
of its rows have a result, and cannot be reopened. An open inspection can be cancelled, for good: the API then serves it
no more, as its contract has no such status.
"""

from __future__ import annotations

import datetime
import urllib.parse
from collections.abc import Collection, Sequence
from typing import Literal, get_args

from chassis.refusals import Refusal, invalid_request
from svc_catalog.inspection_templates.rules import ROWS_MAX

# As published and as stored: a legacy plain checklist has the stored status Finalized.
InspectionStatus = Literal["Scheduled", "In Progress", "Completed"]
StoredStatus = Literal["Scheduled", "In Progress", "Completed", "Finalized"]
InspectionResult = Literal["passed", "failed"]
# As imports name them. operations: the company's own. consulting_walk: a consultant's, through a property.
# acceptance_walk: accepts a unit.
InspectionKind = Literal["operations", "consulting_walk", "acceptance_walk"]

INSPECTION_STATUSES: tuple[str, ...] = get_args(InspectionStatus)
STORED_STATUSES: tuple[str, ...] = get_args(StoredStatus)
INSPECTION_RESULTS: tuple[str, ...] = get_args(InspectionResult)
INSPECTION_KINDS: tuple[str, ...] = get_args(InspectionKind)
# A cancelled inspection has this kind instead of the one that it had: all that reads only served inspections skips it.
CANCELLED = "cancelled"
STORED_KINDS: tuple[str, ...] = (*INSPECTION_KINDS, CANCELLED)

OPEN_STATUSES: tuple[InspectionStatus, ...] = ("Scheduled", "In Progress")
LEGACY_STATUS: StoredStatus = "Finalized"
LEGACY_PUBLISHED_AS: InspectionStatus = "Completed"
DEFAULT_STATUS: InspectionStatus = "Scheduled"
DEFAULT_KIND: InspectionKind = "operations"

# Far below the column's maximum: the numbers that follow an imported one must fit too.
NUMBER_MAX = 1_000_000_000


def is_served(kind: str, engagement: str | None) -> bool:
    """Whether the API serves it: an inspection of operations, or an acceptance walk outside consulting engagements."""
    return kind == "operations" or (kind == "acceptance_walk" and engagement is None)


def search_states(statuses: Collection[str], results: Collection[str]) -> list[str]:
    """The texts of tables.SEARCH_STATE of the inspections that a search wants. No status or result means all."""
    return [
        f"{status} {result}"
        for status in INSPECTION_STATUSES
        if not statuses or status in statuses
        for result in ("", *INSPECTION_RESULTS)
        if not results or result in results
    ]


def published_status(stored: str) -> str:
    return LEGACY_PUBLISHED_AS if stored == LEGACY_STATUS else stored


def is_numbered(stored_status: str) -> bool:
    """Whether an inspection gets a number from its property's sequence; legacy inspections do not."""
    return stored_status != LEGACY_STATUS


def may_become_stale(status: str, kind: str, engagement: str | None) -> bool:
    """Whether inspection.stale fires on the morning after its scheduled date: it is open and served."""
    return status in OPEN_STATUSES and is_served(kind, engagement)


# The fields of a failed row's ticket (spec 2.3): the labels of the enums in makeready.common.v1, maintenance.proto.
TicketCategory = Literal[
    "HVAC",
    "Plumbing",
    "Electrical",
    "Mechanical",
    "Life Safety",
    "Elevator",
    "Appliance",
    "Doors/Windows",
    "Flooring",
    "Painting",
    "Roofing",
    "Leak",
    "Pest Control",
    "Structural",
    "Grounds",
    "Parking Garage",
    "Pool",
    "Security",
    "Common Area",
    "General",
    "Other",
]
TicketPriority = Literal["Low", "Medium", "High", "Emergency"]
TICKET_CATEGORIES: tuple[str, ...] = get_args(TicketCategory)
TICKET_PRIORITIES: tuple[str, ...] = get_args(TicketPriority)
DEFAULT_CATEGORY: TicketCategory = "General"
DEFAULT_PRIORITY: TicketPriority = "Medium"

NOTE_POINTS_MAX = 10_000  # must fit into a ticket's description, after the text that precedes it
PHOTO_URL_POINTS_MAX = 2000
REASON_POINTS_MAX = 500
NOT_LOOKED_AT = "none"


def _completed() -> Refusal:
    return invalid_request("The inspection is completed; schedule another one.", status=422)


def check_not_cancelled(kind: str) -> None:
    """Raises Refusal 422 if it is cancelled. kind: as stored."""
    if kind == CANCELLED:
        raise invalid_request("The inspection is cancelled; schedule another one.", status=422)


def check_open(status: str) -> None:
    """Raises Refusal 422 if it is completed."""
    if status not in OPEN_STATUSES:
        raise _completed()


def check_has_room(rows: int) -> None:
    """Raises Refusal 422 if no further row fits. rows: how many the inspection has."""
    if rows >= ROWS_MAX:
        raise invalid_request(f"An inspection has at most {ROWS_MAX} rows.", "label", 422)


def check_seen(seen: str | None, now: str | None, recorded: InspectionResult) -> None:
    """Raises Refusal 422 if another person has recorded another result meanwhile. seen: the one that the person saw,
    NOT_LOOKED_AT or a result; None: not said. now: the row's result. recorded: the one to record."""
    if seen not in (None, NOT_LOOKED_AT, *INSPECTION_RESULTS):
        words = ", ".join((*INSPECTION_RESULTS, NOT_LOOKED_AT))
        raise invalid_request(f"seen_result must be one of: {words}.", "seen_result", 422)
    # Two who passed it agree. Of two who failed it, each has a note.
    if seen is not None and now not in (None, seen) and not now == recorded == "passed":
        raise invalid_request(f"Another person has recorded meanwhile that the row {now}.", "seen_result", 422)


def check_plan_seen(field: str, seen: str | None, now: object, after: object) -> None:
    """Raises Refusal 422 if another person has changed the assignee or the day meanwhile, unless to the same value.
    field: assignee_id or scheduled_date; seen: what the person saw, "" for none; None: not said."""
    stands = "" if now is None else str(now)
    if seen is not None and seen != stands and now != after:
        noun = "assignee" if field == "assignee_id" else "day"
        raise invalid_request(
            f"Another person has changed the {noun} meanwhile; look at it again.", f"from_{field}", 422
        )


def check_removable(result: str | None, failed_at: datetime.datetime | None) -> None:
    """Raises Refusal 422 if the row has a result, or a ticket: what was found stays on record."""
    if failed_at is not None:
        raise invalid_request("The row failed and opened a ticket, so it stays.", "row_id", 422)
    if result is not None:
        raise invalid_request("The row is looked at already, so it stays.", "row_id", 422)


def check_photo_changes(photo_url: str | None, failed_at: datetime.datetime | None) -> None:
    """Raises Refusal 422 if the row's ticket has the photo. photo_url: the row's."""
    if photo_url is not None and failed_at is not None:
        raise invalid_request("The row failed and its ticket has the photo, so it stays.", "photo_url", 422)


def started(status: str) -> str:
    """The status of an inspection after its start. Raises Refusal 422 if it is completed."""
    check_open(status)
    return "In Progress"


def check_completes(status: str, results: Sequence[str | None]) -> None:
    """Raises Refusal 422 if it is completed already or a row has no result. results: those of its rows."""
    check_open(status)
    if None in results:
        raise invalid_request(
            "Not every row of the inspection is looked at; pass or fail the others first.", status=422
        )


def outcome(results: Sequence[str | None]) -> InspectionResult:
    """An inspection's result from those of its rows; without rows it is passed."""
    return "failed" if "failed" in results else "passed"


def is_same_completion(status: str, completed_date: datetime.date | None, requested_date: datetime.date | None) -> bool:
    """Whether it is completed already, on this date. requested_date: the request's; None matches every date."""
    return status == "Completed" and requested_date in (None, completed_date)


def check_photo_url(photo_url: str | None) -> None:
    """Raises Refusal 400 if it is no absolute http(s) address: the ticket shows it as a link."""
    if photo_url is None:
        return
    try:
        address = urllib.parse.urlsplit(photo_url)
        leads_somewhere = address.scheme in ("http", "https") and bool(address.hostname)
    except ValueError:
        leads_somewhere = False
    if not leads_somewhere or not photo_url.isprintable() or " " in photo_url:
        raise invalid_request("photo_url must be an absolute http or https address.", "photo_url")


def ticket_title(label: str) -> str:
    """The title of a failed row's ticket: its label alone, such as "Walls", says nothing in a list of tickets."""
    return f"Failed inspection: {label}"


def ticket_description(number: int | None, title: str | None, label: str, note: str | None) -> str:
    """The description of a failed row's ticket."""
    named = " ".join(part for part in (f"#{number}" if number else "", title or "") if part)
    first = f"Failed in inspection {named}: {label}." if named else f"Failed in an inspection: {label}."
    return f"{first}\n\n{note}" if note else first
