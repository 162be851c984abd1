"""What people do to several tickets at once."""

from __future__ import annotations

from collections.abc import Sequence

from console.areas.tickets import actions, filters
from console.areas.tickets.words import REASON_CHOICES, number_of
from console.kit.bulk import Act, Record, Records, Values
from console.kit.context import PageContext
from console.kit.forms import Field, Form
from console.kit.texts import _, ngettext
from makeready.tickets.v1 import ticket_commands_pb2 as pb
from makeready.tickets.v1 import ticket_views_pb2 as views

SEVERAL = "tickets.TicketViewsService/BatchGetTickets"
TICK = "ticket"
CHANGES = ("assignee_id", "vendor_id", "priority", "category", "status")
UNASSIGN = (("assignee_id", _("Remove staff member")), ("vendor_id", _("Remove vendor")))
PRIORITIES = [(word, word) for word in reversed(filters.CHOICES["priority"][1])]
CATEGORIES = [(word, word) for word in filters.CHOICES["category"][1]]


async def load(context: PageContext, ids: Sequence[int]) -> Sequence[Record]:
    """The tickets with these ids, in their order."""
    return [_record(ticket) for ticket in await tickets(context, ids)]


async def tickets(context: PageContext, ids: Sequence[int]) -> Sequence[views.TicketSummary]:
    """As `load`, as rows of the list."""
    response: views.BatchGetTicketsResponse = await context.rpcs.call(
        SEVERAL, views.BatchGetTicketsRequest(ticket_ids=ids)
    )
    return response.tickets


def _record(ticket: views.TicketSummary) -> Record:
    values = {name: getattr(ticket, name) or None for name in CHANGES}
    who = _(" and ").join(name for name in (ticket.assignee_name, ticket.vendor_name) if name) or _("Unassigned")
    place = ticket.unit_name or ticket.unit_number or ticket.property_name
    detail = " · ".join((number_of(ticket), place, ticket.priority, ticket.status, who))
    return Record(ticket.ticket_id, ticket.title, detail, actions.path_of(ticket.ticket_id), values)


def _assignment_fault(form: Form) -> str:
    message = form.message
    if not message.clear and not message.assignee_id and not message.vendor_id:
        return _("Choose a staff member, a vendor or what to unassign.")
    return ""


def _lasting(before: Values) -> str:
    if before.get("status") in (actions.COMPLETED, actions.CANCELLED):
        return _("It was %(status)s, which takes a note or a reason: close it on its own page.") % {
            "status": before["status"].lower()
        }
    return ""


RECORDS = Records(
    "Tickets", filters.PATH, TICK, "ticket_id", load,
    (
        Act(
            "assign", "people", _("Assign"),
            lambda n: ngettext("Assign %(n)s ticket", "Assign %(n)s tickets", n) % {"n": n},
            lambda n: ngettext("%(n)s ticket: assignment changed.", "%(n)s tickets: assignment changed.", n) % {"n": n},
            actions.ASSIGN, pb.AssignTicketRequest,
            (*actions.HANDS, Field("clear", _("Unassign"), choices=UNASSIGN)),
            ("assignee_id", "vendor_id"), _assignment_fault,
        ),
        Act(
            "priority", "up", _("Priority"),
            lambda n: ngettext("Set the priority of %(n)s ticket", "Set the priority of %(n)s tickets", n) % {"n": n},
            lambda n: ngettext("%(n)s ticket: priority changed.", "%(n)s tickets: priority changed.", n) % {"n": n},
            actions.UPDATE, pb.UpdateTicketRequest,
            (Field("priority", _("Priority"), kind="radios", choices=PRIORITIES, required=True),), ("priority",),
        ),
        Act(
            "status", "half", _("Status"),
            lambda n: ngettext("Set the status of %(n)s ticket", "Set the status of %(n)s tickets", n) % {"n": n},
            lambda n: ngettext("%(n)s ticket: status changed.", "%(n)s tickets: status changed.", n) % {"n": n},
            actions.STATUS, pb.SetTicketStatusRequest,
            (
                Field("status", _("Status"), kind="radios", required=True),
                Field("note", _("What was done"), _("Only with Completed: 5 words or more, the same for each ticket."),
                      "area", more={"data-words": actions.NOTE_WORDS, "rows": "2"}),
                Field("cancellation_reason_code", _("Reason"), _("Only with Cancelled."), choices=REASON_CHOICES),
                Field("cancellation_notes", _("Notes"), _("Only with “Other (see notes)”: 5 words or more."), "area",
                      more={"data-words": actions.NOTE_WORDS, "rows": "2"}),
            ),
            ("status",), lasting=_lasting,
        ),
        Act(
            "category", "wrench", _("Category"),
            lambda n: ngettext("Set the category of %(n)s ticket", "Set the category of %(n)s tickets", n) % {"n": n},
            lambda n: ngettext("%(n)s ticket: category changed.", "%(n)s tickets: category changed.", n) % {"n": n},
            actions.UPDATE, pb.UpdateTicketRequest,
            (Field("category", _("Category"), choices=CATEGORIES, required=True),), ("category",),
        ),
    ),
)  # fmt: skip
