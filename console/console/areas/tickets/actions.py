"""What people do to one ticket: comment, move, take, assign and edit it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from chassis.refusals import Refusal
from console.areas.tickets import filters
from console.areas.tickets.words import REASON_CHOICES, number_of
from console.kit import pickers
from console.kit.context import PageContext
from console.kit.forms import Edit, Field, Form
from console.kit.texts import _
from makeready.tickets.v1 import ticket_commands_pb2 as pb
from makeready.tickets.v1 import ticket_views_pb2 as views

COMMENT = "tickets.TicketCommandsService/CommentOnTicket"
STATUS = "tickets.TicketCommandsService/SetTicketStatus"
ASSIGN = "tickets.TicketCommandsService/AssignTicket"
UPDATE = "tickets.TicketCommandsService/UpdateTicket"
GET = "tickets.TicketViewsService/GetTicketDetails"

HERE = "Tickets"
NOTE_WORDS = "5"
STATUSES = filters.CHOICES["status"][1]
COMPLETED, CANCELLED = "Completed", "Cancelled"
# The moves that a page offers besides Complete and Cancel, by the present status: the target, its icon and its words.
MOVES: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "Open": (("In Progress", "half", _("Start work")), ("On Hold", "pause", _("Put on hold"))),
    "In Progress": (("On Hold", "pause", _("Put on hold")), ("Open", "o", _("Set to Open"))),
    "On Hold": (("In Progress", "half", _("Resume work")), ("Open", "o", _("Set to Open"))),
    "Completed": (("Open", "o", _("Reopen")),),
    "Cancelled": (("Open", "o", _("Reopen")),),
}
AUTHORS = (("staff", _("Me")), ("vendor", _("Vendor")), ("resident", _("Resident")))
_ASSIGNMENT = (("assignee_id", "from_assignee_id", "assignee_name"), ("vendor_id", "from_vendor_id", "vendor_name"))


@dataclass
class TicketForms:
    """The forms on a ticket's page. opened: which of those that are closed at first stands open; fault: why an action
    without inputs was refused."""

    comment: Form
    complete: Form
    cancel: Form
    opened: str = ""
    fault: str = ""

    @classmethod
    def of(cls, ticket_id: int) -> TicketForms:
        note = Field(
            "note", _("Work done"), _("At least 5 words."), "area", required=True,
            more={"data-words": NOTE_WORDS, "rows": "3"},
        )  # fmt: skip
        notes = Field(
            "cancellation_notes", _("Notes"), _("Required for “Other”: at least 5 words."), "area",
            more={"data-words": NOTE_WORDS, "rows": "2"},
        )  # fmt: skip
        reason = Field("cancellation_reason_code", _("Reason"), choices=REASON_CHOICES, required=True)
        return cls(
            Form(pb.CommentOnTicketRequest(ticket_id=ticket_id), [
                Field("body", _("Comment"), kind="area", required=True), Field("by", _("From"), choices=AUTHORS),
            ]),
            Form(pb.SetTicketStatusRequest(ticket_id=ticket_id), [note]),
            Form(pb.SetTicketStatusRequest(ticket_id=ticket_id), [reason, notes]),
        )  # fmt: skip


def path_of(ticket_id: int, action: str = "") -> str:
    return f"{filters.PATH}/{ticket_id}/{action}" if action else f"{filters.PATH}/{ticket_id}"


async def comment(context: PageContext, forms: TicketForms) -> web.StreamResponse | None:
    """None if the page is to be shown again, with what is wrong."""
    form = forms.comment
    if not form.read(context.form):
        return None
    form.message.idempotency_key = context.form_token
    try:
        await context.rpcs.call(COMMENT, form.message)
    except Refusal as refusal:
        _refused(form, refusal)
        return None
    return context.redirect(path_of(form.message.ticket_id) + "#say", _("Comment added."))


async def move(context: PageContext, forms: TicketForms) -> web.StreamResponse | None:
    """As `comment`, for another status."""
    target = context.form.get("status", "")
    form = {COMPLETED: forms.complete, CANCELLED: forms.cancel}.get(target)
    forms.opened = target if form is not None else ""
    if target not in STATUSES:
        forms.fault = _("Choose a status.")
        return None
    if form is not None and not form.read(context.form):
        return None
    request = form.message if form is not None else pb.SetTicketStatusRequest(ticket_id=context.number("ticket_id"))
    request.idempotency_key, request.status = context.form_token, STATUSES[target]
    seen = context.form.get("from_status", "")
    if seen in STATUSES:
        request.from_status = STATUSES[seen]
    try:
        await context.rpcs.call(STATUS, request)
    except Refusal as refusal:
        if form is not None:
            _refused(form, refusal)
        elif refusal.status in (400, 409, 422):
            forms.fault = refusal.message
        else:
            raise
        return None
    words = {COMPLETED: _("Ticket completed."), CANCELLED: _("Ticket cancelled."), "Open": _("Ticket set to Open.")}
    return context.redirect(
        context.next_path(path_of(request.ticket_id)),
        words.get(target, _("Status set to %(status)s.") % {"status": target}),
    )


def _refused(form: Form, refusal: Refusal) -> None:
    """Shows what the form says wrong; another refusal has the error's page."""
    if refusal.status not in (400, 404, 409, 422) or (refusal.status == 404 and refusal.field not in form.fields):
        raise refusal
    form.refuse(refusal)


async def take(context: PageContext) -> web.StreamResponse:
    """Staff take a ticket for themselves."""
    ticket_id = context.number("ticket_id")
    seen = context.form.get("from_assignee_id", "")
    request = pb.AssignTicketRequest(
        idempotency_key=context.form_token, ticket_id=ticket_id, assignee_id=context.session.person.person_id,
        from_assignee_id=int(seen) if seen.isascii() and seen.isdigit() and len(seen) < 19 else None,
    )  # fmt: skip
    try:
        await context.rpcs.call(ASSIGN, request)
    except Refusal as refusal:
        if refusal.status != 422:
            raise
        return context.redirect(path_of(ticket_id, "assign"), refusal.message)
    return context.redirect(path_of(ticket_id), _("Assigned to you."))


# One ticket's assignment


HANDS = (
    Field("assignee_id", _("Staff member"), kind="picker"),
    Field("vendor_id", _("Vendor"), _("Vendors on hold cannot get new work."), kind="picker"),
)


async def show_assign(context: PageContext) -> web.StreamResponse:
    details = await _details(context)
    return await _assign_page(context, details.ticket, _assignment(details.ticket))


def _assignment(ticket: views.TicketSummary) -> Edit:
    now = pb.AssignTicketRequest(
        ticket_id=ticket.ticket_id,
        assignee_id=_optional(ticket, "assignee_id"),
        vendor_id=_optional(ticket, "vendor_id"),
    )
    return Edit(now, HANDS)


async def _assign_page(
    context: PageContext, ticket: views.TicketSummary, form: Edit, status: int = 200
) -> web.StreamResponse:
    await pickers.fill(context, form)
    return context.render("tickets/assign.html", status, here=HERE, ticket=ticket, form=form, number=number_of(ticket))


async def assign(context: PageContext) -> web.StreamResponse:
    ticket = (await _details(context)).ticket
    form = _assignment(ticket)
    is_read = form.read(context.form)
    for name, _seen_field, name_field in _ASSIGNMENT:
        if form.errors.get(name, "").startswith(_("Meanwhile")):
            now = getattr(ticket, name_field) or _("no one")
            form.errors[name] = _("Meanwhile this was assigned to %(name)s. Submit again to replace that.") % {
                "name": now
            }
    if not is_read:
        return await _assign_page(context, ticket, form, form.status)
    if form.is_done:
        return context.redirect(path_of(ticket.ticket_id), form.summary(_("Assignment updated.")))
    form.message.idempotency_key = context.form_token
    for name, seen_field, _name_field in _ASSIGNMENT:
        if name in form.changed:
            setattr(form.message, seen_field, _optional(ticket, name) or 0)
    try:
        await context.rpcs.call(ASSIGN, form.message)
    except Refusal as refusal:
        _refused(form, refusal)
        return await _assign_page(context, ticket, form, 422)
    return context.redirect(path_of(ticket.ticket_id), _("Assignment updated."))


def _optional(message: Any, name: str) -> Any:
    return getattr(message, name) if message.HasField(name) else None


async def _details(context: PageContext) -> views.GetTicketDetailsResponse:
    request = views.GetTicketDetailsRequest(ticket_id=context.number("ticket_id"))
    details: views.GetTicketDetailsResponse = await context.rpcs.call(GET, request)
    return details


# What a ticket says

TEXTS = {"title": {"maxlength": "150"}, "subcategory": {"maxlength": "200"}, "room": {"maxlength": "200"}}
WHAT = (
    Field("title", _("Issue, in one line"), required=True, more=TEXTS["title"]),
    Field("category", _("Category"), choices=[(word, word) for word in filters.CHOICES["category"][1]], required=True),
    Field("priority", _("Priority"), choices=[(word, word) for word in filters.CHOICES["priority"][1]], required=True),
    Field("description", _("Description"), kind="area", more={"rows": "5"}),
)
MORE = (
    Field("room", _("Room"), more=TEXTS["room"]),
    Field("room_instance", _("Which room"), more=TEXTS["room"]),
    Field(
        "subcategory",
        _("Subcategory"),
        _("Your own categories, for example “Garbage disposal”."),
        more=TEXTS["subcategory"],
    ),
    Field("permission_to_enter", _("Permission to enter when no one is home")),
    Field(
        "preferred_access_time", _("Preferred access time"), _("For example “Weekdays after 3 pm”."), more=TEXTS["room"]
    ),
)
PLACES = (
    Field("unit_id", _("Unit"), _("Leave blank for common areas."), kind="picker"),
    Field("asset_id", _("Asset"), kind="picker"),
)


async def show_edit(context: PageContext) -> web.StreamResponse:
    details = await _details(context)
    return await _edit_page(context, details, _correction(details))


def _correction(details: views.GetTicketDetailsResponse) -> Edit:
    ticket = details.ticket
    names = ("subcategory", "description", "room", "room_instance", "preferred_access_time")
    texts: dict[str, Any] = {name: getattr(details, name) or None for name in names}
    now = pb.UpdateTicketRequest(
        ticket_id=ticket.ticket_id, title=ticket.title, category=ticket.category, priority=ticket.priority,
        permission_to_enter=details.permission_to_enter, unit_id=_optional(ticket, "unit_id"),
        asset_id=_optional(ticket, "asset_id"), **texts,
    )  # fmt: skip
    return Edit(now, (*WHAT, *PLACES, *MORE))


async def _edit_page(
    context: PageContext, details: views.GetTicketDetailsResponse, form: Edit, status: int = 200
) -> web.StreamResponse:
    ticket = details.ticket
    await pickers.fill(context, form, property_id=ticket.property_id)
    return context.render(
        "tickets/edit.html", status, here=HERE, ticket=ticket, form=form, number=number_of(ticket),
        what_fields=[field.name for field in WHAT], places=[field.name for field in PLACES],
        more=[field.name for field in MORE],
    )  # fmt: skip


async def edit(context: PageContext) -> web.StreamResponse:
    details = await _details(context)
    form = _correction(details)
    if not form.read(context.form):
        return await _edit_page(context, details, form, form.status)
    ticket_id = details.ticket.ticket_id
    if form.is_done:
        return context.redirect(path_of(ticket_id), form.summary(_("Ticket updated.")))
    form.message.idempotency_key, form.message.version = context.form_token, details.document.version
    try:
        await context.rpcs.call(UPDATE, form.message)
    except Refusal as refusal:
        _refused(form, refusal)
        return await _edit_page(context, details, form, 422)
    return context.redirect(path_of(ticket_id), _("Ticket updated."))
