"""The page on which people open a ticket, and the tickets there that may say the same."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aiohttp import web

from chassis.refusals import Refusal
from console.areas.tickets import filters
from console.areas.tickets.actions import HERE, MORE, PLACES, WHAT, path_of
from console.kit import pickers
from console.kit.calls import Panel, together
from console.kit.context import PageContext
from console.kit.filters import number
from console.kit.forms import Field, Form
from console.kit.panels import Included, include
from console.kit.texts import _
from makeready.tickets.v1 import ticket_commands_pb2 as pb
from makeready.tickets.v1 import ticket_views_pb2 as views

OPEN = "tickets.TicketCommandsService/OpenTicket"
PLACE = "tickets.TicketViewsService/GetTicketPlace"
SEARCH = "tickets.TicketViewsService/SearchTickets"
PATH = f"{filters.PATH}/new"
CALLERS_PATH = "/residents/callers"
ALIKE_PATH = f"{filters.PATH}/alike"
PRESET = ("property_id", "unit_id", "asset_id", "title", "category", "priority", "description", "room", "by")
FOUND_MAX, SHOWN_MAX, WORD_LETTERS = 20, 6, 4
WHERE = (Field("property_id", _("Property"), kind="picker", required=True), *PLACES)
# Who has called is asked whether somebody may come in: it stands beside the unit.
ACCESS = ("permission_to_enter", "preferred_access_time")
CALLER, CALLER_UNIT, CALLER_MAX = "caller", "caller_unit", 200
WHO = Field(
    "by", _("Reported by"), _("Response times are tracked for tickets that residents report."), "radios",
    (("resident", _("Resident (call, email or in person)")), ("staff", _("Staff"))), required=True,
)  # fmt: skip


def _form() -> Form:
    request = pb.OpenTicketRequest(priority="Medium", by=pb.OPENER_STAFF)
    return Form(request, (*WHERE, WHO, *WHAT, *MORE))


async def show_new(context: PageContext) -> web.StreamResponse:
    form = _form()
    form.preset(context.query, *PRESET)
    await _complete(context, form)
    return await _page(context, form)


async def _complete(context: PageContext, form: Form) -> None:
    """An address may name a unit or an asset alone: the property follows."""
    ids = {name: int(form.values[name]) for name in ("unit_id", "asset_id") if form.values[name]}
    if form.values["property_id"] or not ids:
        return
    place = await context.rpcs.panel(PLACE, views.GetTicketPlaceRequest(**ids))
    if place.ok:
        form.preset({"property_id": str(place.property_id)}, "property_id")


async def _page(context: PageContext, form: Form, status: int = 200) -> web.StreamResponse:
    # What was typed to find the caller is in the form alone: no address has it.
    caller, unit_id = context.form.get(CALLER, "")[:CALLER_MAX], form.values["unit_id"]
    _, alike, callers, contacts = await together(
        pickers.fill(context, form),
        _alike_of(context, form.values),
        include(context, CALLERS_PATH, caller=caller) if caller and not unit_id else _nothing(),
        include(context, "/residents/contacts", unit_id=unit_id) if caller and unit_id else _nothing(),
    )
    return context.render(
        "tickets/new.html", status, here=HERE, form=form, where=[field.name for field in WHERE],
        what_fields=[field.name for field in WHAT], access=ACCESS,
        more=[field.name for field in MORE if field.name not in ACCESS],
        alike=alike, caller_words=caller, callers=callers, contacts=contacts, callers_path=CALLERS_PATH,
    )  # fmt: skip


async def _nothing() -> Included:
    return Included()


async def _called(context: PageContext, form: Form, unit_id: str) -> web.StreamResponse:
    """The form with the unit of the resident who calls, and with all that was typed."""
    form.read(context.form)
    form.errors = {}
    form.values |= {"property_id": "", "asset_id": ""}
    form.preset({"unit_id": unit_id, "by": "resident"}, "unit_id", "by")
    await _complete(context, form)
    return await _page(context, form)


async def open_ticket(context: PageContext) -> web.StreamResponse:
    form = _form()
    if unit_id := context.form.get(CALLER_UNIT, ""):
        return await _called(context, form, unit_id)
    if not form.read(context.form):
        return await _page(context, form, form.status)
    form.message.idempotency_key = context.form_token
    try:
        opened = await context.rpcs.call(OPEN, form.message)
    except Refusal as refusal:
        if refusal.status not in (400, 404, 409, 422):
            raise
        form.refuse(refusal)
        return await _page(context, form, 422)
    return context.redirect(path_of(opened.document.entity_id), _("Ticket opened."))


async def alike(context: PageContext) -> web.StreamResponse:
    """The open tickets where the new one would be: those that are like it first."""
    names = ("property_id", "unit_id", "asset_id", "title", "category")
    values = {name: context.query.get(name, "")[:200] for name in names}
    return context.render("tickets/alike.html", alike=await _alike_of(context, values))


@dataclass(frozen=True, slots=True)
class Alike:
    """The open tickets where the new one would be. tickets: each with whether it may say the same, those first."""

    open_tickets: Panel[Sequence[views.TicketSummary]]
    tickets: Sequence[tuple[bool, views.TicketSummary]]
    has_place: bool
    """Whether a unit or an asset is chosen, so that tickets are looked for."""

    @property
    def likely(self) -> int:
        """How many may say the same."""
        return sum(is_likely for is_likely, _ in self.tickets)

    @property
    def first(self) -> Sequence[tuple[bool, views.TicketSummary]]:
        return self.tickets[:SHOWN_MAX]


async def _alike_of(context: PageContext, values: Mapping[str, str]) -> Alike:
    """values: those of the form, by field."""
    open_tickets = await _open_tickets(context, values)
    tickets = ranked(
        open_tickets.value or (), values.get("title", ""), values.get("category", ""), values.get("asset_id", "")
    )
    return Alike(open_tickets, tickets, bool(values.get("unit_id") or values.get("asset_id")))


async def _open_tickets(context: PageContext, values: Mapping[str, str]) -> Panel[Sequence[views.TicketSummary]]:
    """The open tickets of the unit and of the asset."""
    searches = []
    for name in ("unit_id", "asset_id"):
        if record_id := number(values.get(name) or ""):
            request = views.SearchTicketsRequest(
                statuses=filters.OPEN, order=views.TICKET_ORDER_PRIORITY, limit=FOUND_MAX
            )
            setattr(request, name, record_id)
            searches.append(context.rpcs.panel(SEARCH, request))
    answers = await together(*searches)
    if missing := next((answer for answer in answers if not answer.ok), None):
        return Panel(None, missing.reason)
    return Panel(list({ticket.ticket_id: ticket for answer in answers for ticket in answer.tickets}.values()))


def ranked(
    tickets: Sequence[views.TicketSummary], title: str, category: str, asset_id: str
) -> list[tuple[bool, views.TicketSummary]]:
    """Whether each may say the same as the new one; those first, and emergencies first of each. They share the asset,
    the category or a word."""
    words = _words(title)

    def is_likely(ticket: views.TicketSummary) -> bool:
        same_asset = bool(asset_id) and ticket.HasField("asset_id") and str(ticket.asset_id) == asset_id
        return same_asset or (bool(category) and ticket.category == category) or bool(words & _words(ticket.title))

    judged = [(is_likely(ticket), ticket) for ticket in tickets]
    return sorted(judged, key=lambda pair: (not pair[0], pair[1].priority != "Emergency"))


def _words(text: str) -> set[str]:
    """The words that say something: long ones, and each pair of signs of a script without blanks."""
    words = set()
    for word in re.findall(r"\w+", text.casefold()):
        if word.isascii() or not any("\u2e80" <= sign <= "\uffdc" for sign in word):
            words |= {word} if len(word) >= WORD_LETTERS else set()
        else:
            words |= {word[index : index + 2] for index in range(len(word) - 1)}
    return words
