"""How the status of a ticket changes (spec 3.1, 4.2). Pure."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from chassis.refusals import invalid_request
from svc_tickets.tickets.rules.fields import CANCELLATION_REASONS
from svc_tickets.tickets.rules.words import words

NOTE_WORDS_MIN = 5


@dataclass(frozen=True, slots=True)
class TicketState:
    """A ticket's status and the fields that belong to it."""

    status: str
    completed_at: datetime.datetime | None
    cancelled_at: datetime.datetime | None
    cancellation_reason_code: str | None


def state_on_import(
    status: str,
    completed_at: datetime.datetime | None,
    cancelled_at: datetime.datetime | None,
    cancellation_reason_code: str | None,
) -> TicketState:
    """The state that an import row describes. A closed ticket may lack the instant: the file did not know it.

    Raises Refusal, with the field, if a field belongs to another status.
    """
    if completed_at is not None and status != "Completed":
        raise invalid_request("completed_at belongs to status Completed alone.", "completed_at")
    if cancelled_at is not None and status != "Cancelled":
        raise invalid_request("cancelled_at belongs to status Cancelled alone.", "cancelled_at")
    if cancellation_reason_code is not None and status != "Cancelled":
        raise invalid_request("cancellation_reason_code belongs to status Cancelled alone.", "cancellation_reason_code")
    return TicketState(status, completed_at, cancelled_at, cancellation_reason_code)


@dataclass(frozen=True, slots=True)
class TargetStatus:
    """The status that a valid request asks for. comment: the note, or the notes of a cancellation."""

    status: str
    cancellation_reason_code: str | None
    comment: str | None


def target_status(
    status: str, note: str | None, cancellation_reason_code: str | None, cancellation_notes: str | None
) -> TargetStatus:
    """The status that a request asks for, checked without the ticket (the field table of spec 4.2). None stands for a
    field that was not sent.

    Raises Refusal with the first invalid field, in the order of the parameters.
    """
    completes, cancels = status == "Completed", status == "Cancelled"
    if note is not None and not completes:
        raise invalid_request("note is accepted with status Completed alone; leave it out.", "note", 422)
    if completes:
        _check_words("note", note, "status Completed")
    if not cancels:
        for field, value in (
            ("cancellation_reason_code", cancellation_reason_code),
            ("cancellation_notes", cancellation_notes),
        ):
            if value is not None:
                raise invalid_request(f"{field} is accepted with status Cancelled alone; leave it out.", field, 422)
        return TargetStatus(status, None, note)
    if cancellation_reason_code is None:
        raise invalid_request(
            f"cancellation_reason_code is required with status Cancelled: one of {', '.join(CANCELLATION_REASONS)}.",
            "cancellation_reason_code",
            422,
        )
    if cancellation_reason_code == "see_notes":
        _check_words("cancellation_notes", cancellation_notes, "cancellation_reason_code see_notes")
    elif cancellation_notes is not None:
        raise invalid_request(
            "cancellation_notes is accepted with cancellation_reason_code see_notes alone; leave it out.",
            "cancellation_notes",
        )
    return TargetStatus(status, cancellation_reason_code, cancellation_notes)


def _check_words(field: str, text: str | None, needed_with: str) -> None:
    if text is None:
        raise invalid_request(f"{field} is required with {needed_with}: {NOTE_WORDS_MIN} or more words.", field, 422)
    if words(text) < NOTE_WORDS_MIN:
        raise invalid_request(f"{field} must have {NOTE_WORDS_MIN} or more words.", field, 422)


@dataclass(frozen=True, slots=True)
class Changed:
    """The result of a change. at: the instant of the change; None if nothing changes."""

    state: TicketState
    at: datetime.datetime | None


def change_status(
    before: TicketState,
    notes: str | None,
    updated_at: datetime.datetime,
    target: TargetStatus,
    clock: datetime.datetime,
    *,
    photo_required: bool,
    has_photo: bool,
) -> Changed:
    """Every status can follow every status, itself included. The fields of the old status are cleared; the history
    retains them. The instant lies after the last change, even if the clock does not.

    Completed and Cancelled close a ticket anew each time, except a cancellation with the reason and the notes that are
    stored. A file may have brought a cancelled ticket without the instant; the first request for Cancelled sets it.

    notes: those of the present cancellation. Raises Refusal if the company requires a photo of a completed ticket.
    """
    if target.status == "Completed" and photo_required and not has_photo:
        raise invalid_request(
            "The company requires a photo to complete a ticket and this one has none; add one (photo_url) first, with "
            "POST /tickets/{ticket_id}/photos or in the administrator interface.",
            "photo_url",
            422,
        )
    is_same = (before.status, before.cancellation_reason_code) == (target.status, target.cancellation_reason_code)
    is_stored = target.status != "Cancelled" or (before.cancelled_at is not None and notes == target.comment)
    if is_same and is_stored and target.status != "Completed":
        return Changed(before, None)
    at = max(clock, updated_at + datetime.timedelta(microseconds=1))
    state = TicketState(
        target.status,
        at if target.status == "Completed" else None,
        at if target.status == "Cancelled" else None,
        target.cancellation_reason_code,
    )
    return Changed(state, at)
