"""The words that pages of tickets have for values and fields."""

from __future__ import annotations

from console.kit.texts import _

# The cancellation reasons, in a sentence.
REASONS = {
    "duplicate_ticket": _("duplicate"),
    "no_access_repeated": _("repeated no access"),
    "resident_cancelled": _("cancelled by resident"),
    "resolved_independently": _("resolved on its own"),
    "scheduled_for_later": _("scheduled for later"),
    "see_notes": _("other, see notes"),
    "wrong_property": _("wrong property"),
}
# The same as choices.
REASON_CHOICES = (
    ("duplicate_ticket", _("Duplicate")),
    ("no_access_repeated", _("Repeated no access")),
    ("resident_cancelled", _("Cancelled by resident")),
    ("resolved_independently", _("Resolved on its own")),
    ("scheduled_for_later", _("Scheduled for later")),
    ("wrong_property", _("Wrong property")),
    ("see_notes", _("Other (see notes)")),
)
# The fields of a change that have a word other than their name.
FIELDS = {
    "photo_url": _("photo"),
    "external_id": _("external ID"),
    "permission_to_enter": _("permission to enter"),
    "preferred_access_time": _("preferred access time"),
    "resident_asked": _("asked by a resident"),
    "quiet_since": _("time of last activity"),
    "room_instance": _("which room"),
}
# The values of a change that have a word other than themselves.
VALUES = {"true": _("yes"), "false": _("no")}


def ordinal(number: int) -> str:
    """ "3rd" """
    suffix = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def number_of(ticket: object) -> str:
    """ "#28", or "Ticket 102" for one without a number."""
    has = ticket.HasField("ticket_number")  # type: ignore[attr-defined]
    return f"#{ticket.ticket_number}" if has else _("Ticket %(id)s") % {"id": ticket.ticket_id}  # type: ignore[attr-defined]
