"""The ten events (spec 6.1): when and how often each fires, its data, its `change`, an example.

The OpenAPI document's `webhooks`, the reference and docs/events.md are made from this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Schema = dict[str, Any]
"""A JSON Schema, or another object of the document."""
REF = "#/components/schemas/"
DAY: Schema = {"type": ["string", "null"], "format": "date"}
URL: Schema = {"description": "Link that opens the record for a person.", "type": "string", "format": "uri"}
MORNING = "at 06:00 in the company's timezone"


@dataclass(frozen=True, slots=True)
class Moved:
    """The content of `change`: the field, the schemas of its two values, and an example of them."""

    field: str
    before: Schema
    after: Schema
    example: tuple[object, object]


@dataclass(frozen=True, slots=True)
class Event:
    """data: the name of the record, or of an inline shape; change: None if `change` is null. occurred_at and differing
    belong to the example: its instant, and the fields in which its data differ from the record's example."""

    key: str
    fires_when: str
    how_often: str
    data: str
    occurred_at: str
    change: Moved | None = None
    differing: Mapping[str, object] = field(default_factory=dict)

    @property
    def description(self) -> str:
        return f"{self.fires_when} {self.how_often}"


EVENTS = (
    Event(
        "ticket.created",
        "A ticket was opened by staff, by a resident, by a failed row of an inspection, or with `POST /tickets`; the "
        "ticket's `source` says which.",
        "Once for each ticket; a row that fails again opens no second ticket.",
        "Ticket",
        "2026-03-02T14:05:09.120000Z",
    ),
    Event(
        "ticket.status_changed",
        "A ticket's status changed, or a closed ticket was closed again: by staff or with "
        "`PATCH /tickets/{ticket_id}`. If it was closed again, `from` and `to` are equal: Completed again has another "
        "`completed_at`; Cancelled again has another `cancelled_at`, and another `cancellation_reason_code` or other "
        "notes.",
        "Once for each change. Cancelled again with the stored reason and notes fires nothing; neither does Open, "
        "In Progress or On Hold again.",
        "Ticket",
        "2026-03-02T15:31:40.006000Z",
        Moved("status", {"$ref": REF + "TicketStatus"}, {"$ref": REF + "TicketStatus"}, ("Open", "In Progress")),
        {"status": "In Progress", "updated_at": "2026-03-02T15:31:40.006000Z"},
    ),
    Event(
        "turn.status_changed",
        "A unit with a turn changed status: by a notice, a move-in that begins, staff on the turn board, or "
        f"{MORNING} because its resident's move-out date was the day before and no resident follows. A move-in of a "
        "later date fires when it begins, just after midnight in the company's timezone. `from` and `to` are the "
        "unit's old and new status; `from` is null if the unit had none. `data` is the unit's current turn, or else "
        "its newest.",
        "Once for each change. A unit that never had a turn fires nothing.",
        "Turn",
        "2026-03-02T06:00:03.000000Z",
        Moved(
            "unit_status",
            {"anyOf": [{"$ref": REF + "UnitStatus"}, {"type": "null"}]},
            {"$ref": REF + "UnitStatus"},
            ("Occupied", "Notice"),
        ),
        {"projected_ready_on": None},
    ),
    Event(
        "turn.schedule_changed",
        "A turn's projected ready date changed. Either date may be null: there was none before, or there is none now.",
        "Once for each change. Changes of make-ready tasks do not change the date.",
        "Turn",
        "2026-03-05T17:48:20.310000Z",
        Moved("projected_ready_on", DAY, DAY, ("2026-04-09", "2026-04-12")),
        {"projected_ready_on": "2026-04-12", "updated_at": "2026-03-05T17:48:20.310000Z"},
    ),
    Event(
        "vendor.hold",
        "A vendor was placed on hold, by an administrator or because its insurance has lapsed.",
        "Once for each hold. The end of a hold fires nothing.",
        "Vendor",
        "2026-04-01T05:00:00.870000Z",
        Moved("on_hold", {"type": "boolean", "const": False}, {"type": "boolean", "const": True}, (False, True)),
        {"last_compliance_state": "noncompliant"},
    ),
    Event(
        "ticket.stale",
        "Neither staff nor a vendor did anything about a ticket that a resident opened for longer than the company's "
        "threshold (72 hours unless the company has set another). Residents' own comments and changes do not count. A "
        "ticket that is Completed or Cancelled is never stale.",
        "Again after each further threshold; after an outage once for all that were missed.",
        "Ticket",
        "2026-03-05T14:15:00.420000Z",
    ),
    Event(
        "inspection.stale",
        f"An inspection was not completed by the morning after its scheduled date, {MORNING}.",
        "Once for each inspection, even if it is postponed later.",
        "Inspection",
        "2026-03-21T11:00:00.530000Z",
    ),
    Event(
        "property.notice.published",
        "A notice to the residents of a property was published.",
        "Once for each notice.",
        "PropertyNotice",
        "2026-03-02T14:05:09.120000Z",
    ),
    Event(
        "turn.task.stale",
        f"A make-ready task of a turn was still open on the morning after its scheduled date, {MORNING}.",
        "Once for each task, even if it is postponed later.",
        "StaleTurnTask",
        "2026-04-08T11:00:00.610000Z",
    ),
    Event(
        "pm.stale",
        f"A preventive-maintenance task was still open on the morning after its due date, {MORNING}.",
        "Once for each task, even if it is postponed later. A recurring task's next occurrence is a task of its own.",
        "StalePmTask",
        "2026-03-02T12:00:00.290000Z",
    ),
)


def _inline(description: str, **properties: Schema) -> Schema:
    described = f"{description} It has no id, and there is nothing to fetch afterwards."
    return {"description": described, "type": "object", "properties": properties, "required": list(properties)}


def _text(description: str) -> Schema:
    return {"description": description, "type": "string"}


INLINE = {
    "PropertyNotice": _inline(
        "A notice to the residents of a property.",
        subject=_text("The subject of the notice."),
        property=_text("The property's name."),
        unit=_text("Whom it is for: a unit or an area, a number of units, or the whole property, in words."),
        url=URL,
        created_at={"description": "When it was published.", "type": "string", "format": "date-time"},
        when=_text("When the announced work or event takes place, in words."),
    ),
    "StaleTurnTask": _inline(
        "A make-ready task that is overdue.",
        task_type=_text("The kind of work."),
        property=_text("The property's name."),
        unit=_text("The unit's name."),
        url=URL,
    ),
    "StalePmTask": _inline(
        "A preventive-maintenance task that is overdue.",
        task_name=_text("The work to be done."),
        property=_text("The property's name."),
        unit=_text("Where: a unit, an area, or the whole property, in words."),
        due_date={"description": "The day by which it was due.", "type": "string", "format": "date"},
        url=URL,
    ),
}
