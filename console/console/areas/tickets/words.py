"""The words that pages of tickets have for values and fields."""

from __future__ import annotations

# The cancellation reasons, after "because".
REASONS = {
    "duplicate_ticket": "it is a duplicate",
    "no_access_repeated": "no access, repeatedly",
    "resident_cancelled": "the resident cancelled it",
    "resolved_independently": "it resolved itself",
    "scheduled_for_later": "it is scheduled for later",
    "see_notes": "see the notes",
    "wrong_property": "wrong property",
}
# The same as choices.
REASON_CHOICES = (
    ("duplicate_ticket", "It is a duplicate"),
    ("no_access_repeated", "No access, repeatedly"),
    ("resident_cancelled", "The resident cancelled it"),
    ("resolved_independently", "It resolved itself"),
    ("scheduled_for_later", "It is scheduled for later"),
    ("wrong_property", "Wrong property"),
    ("see_notes", "Another reason, which the notes say"),
)
# The fields of a change that have a word other than their name.
FIELDS = {
    "photo_url": "photo",
    "external_id": "external id",
    "permission_to_enter": "permission to enter",
    "preferred_access_time": "the best time",
    "quiet_since": "quiet since",
    "room_instance": "which room",
}
# The values of a change that have a word other than themselves.
VALUES = {"true": "yes", "false": "no"}


def ordinal(number: int) -> str:
    """ "3rd" """
    suffix = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def number_of(ticket: object) -> str:
    """ "#28", or "Ticket 102" for one without a number."""
    has = ticket.HasField("ticket_number")  # type: ignore[attr-defined]
    return f"#{ticket.ticket_number}" if has else f"Ticket {ticket.ticket_id}"  # type: ignore[attr-defined]
