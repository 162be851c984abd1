"""The pages of tickets: the list, one ticket, and their parts of other pages."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from google.protobuf.message import Message

from console.areas.tickets import actions, bulk, filters
from console.areas.tickets.photos import shown_photos
from console.areas.tickets.words import FIELDS, REASONS, VALUES, number_of, ordinal
from console.kit import csv_files, links
from console.kit.browser_session import STAFF
from console.kit.bulk import RECORDS_MAX
from console.kit.calls import Panel, together
from console.kit.context import PageContext
from console.kit.filters import number
from console.kit.names import RPC as NAMES
from console.kit.names import names_of
from console.kit.panels import include
from console.kit.texts import _
from console.kit.times import count
from console.kit.work import EMERGENCY, HIGH, LOW, USUAL
from makeready.tickets.v1 import ticket_views_pb2 as pb

HERE = "Tickets"
PATH = filters.PATH
SEARCH = "tickets.TicketViewsService/SearchTickets"
COUNT = "tickets.TicketViewsService/CountTickets"
GET = "tickets.TicketViewsService/GetTicketDetails"
TIMELINE = "tickets.TicketViewsService/ListTicketTimeline"
OF_INSPECTION = "tickets.TicketViewsService/ListTicketsOfInspection"
LISTS = (SEARCH, COUNT, bulk.SEVERAL)
SHOWS = (GET, TIMELINE, SEARCH, NAMES)
PARTS = (SEARCH, OF_INSPECTION)

SHOWN, CSV_PAGE, CSV_PAGES = 50, 200, 5
PART_ROWS, FOUND_ROWS, OTHER_ROWS, NUMBERED_ROWS, WORK_ROWS = 8, 8, 5, 200, 100
RANKS = {"Emergency": EMERGENCY, "High": HIGH, "Low": LOW}
TIMELINE_ROWS = 100
# What the timeline may be narrowed to.
NARROWED = {
    "comments": (pb.TIMELINE_KIND_COMMENT, pb.TIMELINE_KIND_PHOTO),
    "changes": (pb.TIMELINE_KIND_OPENED, pb.TIMELINE_KIND_STATUS, pb.TIMELINE_KIND_CHANGE),
}
# A panel's query, and the filter of the request and of the list that it is.
_OF = {
    "property_id": "property",
    "unit_id": "unit",
    "asset_id": "asset",
    "vendor_id": "vendor",
    "assignee_id": "assignee",
}
_CLOSED = ("Completed", "Cancelled")


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of the list that have something in common; an empty name for the only group."""

    name: str
    tickets: Sequence[pb.TicketSummary]


def grouped(tickets: Iterable[pb.TicketSummary], by: str) -> list[Group]:
    """The tickets by who has them, status or property, in their order, below the open emergencies."""
    groups: dict[str, list[pb.TicketSummary]] = {_("Emergencies"): []}
    if by == "who":
        groups |= {_("Unassigned"): [], _("Staff"): [], _("Vendors"): []}
    for ticket in tickets:
        groups.setdefault(_group_of(ticket, by), []).append(ticket)
    return [Group(name, rows) for name, rows in groups.items() if rows]


def _group_of(ticket: pb.TicketSummary, by: str) -> str:
    if by and ticket.priority == "Emergency" and not is_closed(ticket):
        return _("Emergencies")
    if by == "who":
        if ticket.HasField("assignee_id"):
            return _("Staff")
        return _("Vendors") if ticket.HasField("vendor_id") else _("Unassigned")
    return {"status": ticket.status, "property": ticket.property_name}.get(by, "")


async def list_tickets(context: PageContext) -> web.StreamResponse:
    search = filters.read(context)
    if "csv" in context.query:
        return await _csv(context, search)
    search.request.limit = SHOWN
    page_query: dict[str, str] = {}
    for name in ("after", "before"):
        if cursor := context.query.get(name, ""):
            setattr(search.request, name, cursor)
            page_query[name] = cursor
            break
    page, counts = await together(
        context.rpcs.call(SEARCH, search.request), context.rpcs.panel(COUNT, pb.CountTicketsRequest())
    )
    return context.render(
        "tickets/list.html", here=HERE, search=search, page=page, counts=counts,
        groups=grouped(page.tickets, search.group), tabs=_tabs(context, search, counts),
        chips=filters.chips(search, counts.value, page.tickets), others=filters.others(search), orders=filters.ORDERS,
        group_words=filters.GROUPS, is_closed=is_closed, bulk=bulk.RECORDS, page_query=page_query,
        ticks_all=context.query.get("tick") == "all",
    )  # fmt: skip


def is_closed(ticket: pb.TicketSummary) -> bool:
    return ticket.status in _CLOSED


def _tabs(
    context: PageContext, search: filters.TicketSearch, counts: Panel[pb.CountTicketsResponse]
) -> list[tuple[str, str, bool]]:
    """The words, the path and whether it is this one. Filters go along, the order and the groups do not."""
    numbers: dict[str, int] = {}
    if counts.ok:
        mine = next((row.tickets for row in counts.by_assignee if row.id == context.session.person.person_id), 0)
        numbers = {"open": counts.open, "mine": mine, "waiting": counts.stale, "soon": counts.soon_stale}
    tabs = []
    for view, (words, *_more) in filters.VIEWS.items():
        if view != "mine" or context.session.kind == STAFF:
            number = f" {numbers[view]:,}" if view in numbers else ""
            path = search.path("status", "order", "group", view="" if view == "open" else view)
            tabs.append((words + number, path, view == search.view))
    return tabs


async def _csv(context: PageContext, search: filters.TicketSearch) -> web.Response:
    header = (
        "id", "number", "title", "status", "priority", "category", "property", "unit", "asset", "assignee", "vendor",
        "opened_at", "closed_at", "quiet_since", "stale_from", "source", "resident_asked", "external_id",
    )  # fmt: skip
    rows: list[Sequence[object]] = []
    for page in await _of_csv(context, search):
        for ticket in page:
            stamps = [_iso(ticket, name) for name in ("created_at", "closed_at", "quiet_since", "stale_from")]
            number = ticket.ticket_number if ticket.HasField("ticket_number") else ""
            rows.append(
                (ticket.ticket_id, number, ticket.title, ticket.status, ticket.priority, ticket.category,
                 ticket.property_name, ticket.unit_name, ticket.asset_name, ticket.assignee_name, ticket.vendor_name,
                 *stamps, ticket.source, "yes" if ticket.resident_asked else "no", ticket.external_id)
            )  # fmt: skip
    return csv_files.answer("tickets", header, rows)


async def _of_csv(context: PageContext, search: filters.TicketSearch) -> Sequence[Iterable[pb.TicketSummary]]:
    """The tickets of the file: those that are ticked, or all that the filters find, CSV_PAGES at most."""
    if ticked := context.request.query.getall(bulk.TICK, []):
        ids = [ticket_id for text in ticked if (ticket_id := number(text))]
        return [await bulk.tickets(context, ids[:RECORDS_MAX])] if ids else []
    search.request.limit = CSV_PAGE
    pages: list[Iterable[pb.TicketSummary]] = []
    while len(pages) < CSV_PAGES:
        page = await context.rpcs.call(SEARCH, search.request)
        pages.append(page.tickets)
        if not page.HasField("next"):
            break
        search.request.after = page.next
    return pages


def _iso(message: Message, name: str) -> str:
    return getattr(message, name).ToJsonString() if message.HasField(name) else ""


async def show_ticket(context: PageContext) -> web.StreamResponse:
    return await _ticket_page(context, actions.TicketForms.of(context.number("ticket_id")))


async def comment(context: PageContext) -> web.StreamResponse:
    forms = actions.TicketForms.of(context.number("ticket_id"))
    return await actions.comment(context, forms) or await _ticket_page(context, forms, 422)


async def move(context: PageContext) -> web.StreamResponse:
    forms = actions.TicketForms.of(context.number("ticket_id"))
    return await actions.move(context, forms) or await _ticket_page(context, forms, 422)


def _is_mine(context: PageContext, ticket: pb.TicketSummary) -> bool:
    return context.session.kind == STAFF and ticket.assignee_id == context.session.person.person_id


async def _ticket_page(context: PageContext, forms: actions.TicketForms, status: int = 200) -> web.StreamResponse:
    """status: 422 if an action was refused; the forms say why."""
    ticket_id = context.number("ticket_id")
    narrowed = context.query.get("show", "")
    narrowed = narrowed if narrowed in NARROWED else ""
    request = pb.ListTicketTimelineRequest(ticket_id=ticket_id, kinds=NARROWED.get(narrowed, ()), limit=TIMELINE_ROWS)
    request.after = context.query.get("after", "")[:80]
    details, timeline = await together(
        context.rpcs.call(GET, pb.GetTicketDetailsRequest(ticket_id=ticket_id)), context.rpcs.panel(TIMELINE, request)
    )
    ticket = details.ticket
    entries = list(reversed(timeline.entries)) if timeline.ok else []
    actors = [entry.actor for entry in entries]
    if details.HasField("created_by_administrator_id"):
        actors.append(f"administrator:{details.created_by_administrator_id}")
    names, of_unit, of_asset, board, vendor, events, audit = await together(
        names_of(context.rpcs, actors),
        _others(context, "unit_id", ticket),
        _others(context, "asset_id", ticket),
        include(context, "/board/panel", unit_id=_optional(ticket, "unit_id")) if ticket.unit_id else _nothing(),
        include(context, "/vendors/panel", vendor_id=ticket.vendor_id) if ticket.vendor_id else _nothing(),
        include(context, "/events/panel", kind="ticket", id=ticket_id),
        include(context, "/audit/panel", kind="ticket", id=ticket_id),
    )
    return context.render(
        "tickets/ticket.html", status, here=HERE, details=details, ticket=ticket, timeline=timeline, entries=entries,
        narrowed=narrowed, names=names, of_unit=of_unit, of_asset=of_asset, panels=[board, vendor],
        history=[audit, events],
        closed=is_closed(ticket), unit_path=unit_path(context, ticket), reported_by=filters.reported_by, kinds=_KINDS,
        shown_photos=shown_photos(context, details), is_elsewhere=links.of_another_site,
        host=links.host_of, older=_older(context, timeline),
        reason=REASONS.get(details.cancellation_reason_code, details.cancellation_reason_code), reasons=REASONS,
        ordinal=ordinal, fields=FIELDS, values=VALUES, forms=forms, moves=actions.MOVES.get(ticket.status, ()),
        number=number_of(ticket), is_mine=_is_mine(context, ticket),
    )  # fmt: skip


_KINDS = {
    pb.TIMELINE_KIND_OPENED: "opened",
    pb.TIMELINE_KIND_COMMENT: "comment",
    pb.TIMELINE_KIND_PHOTO: "photo",
    pb.TIMELINE_KIND_STATUS: "status",
    pb.TIMELINE_KIND_CHANGE: "change",
}


async def _nothing() -> str:
    return ""


def _optional(message: Any, name: str) -> Any:
    return getattr(message, name) if message.HasField(name) else None


async def _others(context: PageContext, name: str, ticket: pb.TicketSummary) -> Panel[Sequence[pb.TicketSummary]]:
    """Other tickets of the unit or the asset, the newest first."""
    if not ticket.HasField(name):  # type: ignore[arg-type]
        return Panel(())
    request = pb.SearchTicketsRequest(limit=OTHER_ROWS + 1, **{name: getattr(ticket, name)})
    page = await context.rpcs.panel(SEARCH, request)
    if not page.ok:
        return page
    return Panel([other for other in page.tickets if other.ticket_id != ticket.ticket_id][:OTHER_ROWS])


def _older(context: PageContext, timeline: Panel[pb.ListTicketTimelineResponse]) -> str:
    """The page of this ticket with the timeline's earlier entries."""
    if not timeline.ok or not timeline.HasField("next"):
        return ""
    values = {"show": context.query.get("show", ""), "after": timeline.next}
    return links.with_query(actions.path_of(context.number("ticket_id")), values)


def unit_path(context: PageContext, ticket: pb.TicketSummary) -> str:
    """The page of the ticket's unit; empty if there is none."""
    if not ticket.unit_id or not context.navigation.opens("/properties/{property_id}/units/{unit_id}"):
        return ""
    return f"/properties/{ticket.property_id}/units/{ticket.unit_id}"


async def panel(context: PageContext) -> web.StreamResponse:
    """The tickets of a property, unit, asset, vendor, inspection or member of staff."""
    inspection = context.query.get("inspection_id", "")
    if inspection:
        of_inspection = pb.ListTicketsOfInspectionRequest(inspection_id=_id(inspection))
        page = (await context.rpcs.call(OF_INSPECTION, of_inspection)).tickets
        return context.render("tickets/of_inspection.html", rows=page, is_closed=is_closed)
    name = next((name for name in _OF if context.query.get(name)), "")
    if not name:
        raise web.HTTPNotFound
    number = _id(context.query[name])
    request = pb.SearchTicketsRequest(limit=PART_ROWS, statuses=filters.OPEN, order=pb.TICKET_ORDER_PRIORITY)
    setattr(request, name, number)
    page = await context.rpcs.call(SEARCH, request)
    place = {_OF[name]: number}
    return context.render(
        "tickets/panel.html", tickets=page.tickets, has_more=page.HasField("next"), name=name, number=number,
        open_path=links.with_query(PATH, place), all_path=links.with_query(PATH, {"view": "all", **place}),
    )  # fmt: skip


async def work(context: PageContext) -> web.StreamResponse:
    """The open tickets of a member of staff, for their list of work."""
    staff_id = _id(context.query.get("staff_id", ""))
    request = pb.SearchTicketsRequest(
        limit=WORK_ROWS, statuses=filters.OPEN, order=pb.TICKET_ORDER_PRIORITY, assignee_id=staff_id
    )
    page = await context.rpcs.call(SEARCH, request)
    return context.render(
        "tickets/work.html", tickets=page.tickets, has_more=page.HasField("next"), staff_id=staff_id,
        day_of=lambda ticket: _due(context, ticket), rank_of=lambda ticket: RANKS.get(ticket.priority, USUAL),
    )  # fmt: skip


def _due(context: PageContext, ticket: pb.TicketSummary) -> str:
    """The day on which a ticket wants an answer: an emergency today, another one when the quiet gets too long. Empty
    for one that can wait."""
    today = context.wall.now.date()
    days = [today] if ticket.priority == "Emergency" else []
    if ticket.HasField("stale_from"):
        days.append(ticket.stale_from.ToDatetime(datetime.UTC).astimezone(context.wall.zone).date())
    return min(days).isoformat() if days else ""


def _id(text: str) -> int:
    """An id of a panel's query. Raises HTTPNotFound for a text that is none."""
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 19):
        raise web.HTTPNotFound
    return int(text)


def _first(page: Panel[pb.SearchTicketsResponse]) -> pb.TicketSummary | None:
    return page.tickets[0] if page.ok and page.tickets else None


async def home(context: PageContext) -> web.StreamResponse:
    """The first page's counts of tickets, and the open ones by age."""
    emergency = filters.CHOICES["priority"][1]["Emergency"]
    urgent = [filters.CHOICES["priority"][1]["High"], emergency]
    first = pb.SearchTicketsRequest(limit=1, statuses=filters.OPEN, order=pb.TICKET_ORDER_PRIORITY)
    counts, burning, waiting, lonely = await together(
        context.rpcs.call(COUNT, pb.CountTicketsRequest()),
        context.rpcs.panel(SEARCH, _with(first, priorities=[emergency])),
        context.rpcs.panel(SEARCH, _with(first, stale=True, order=pb.TICKET_ORDER_STALE)),
        context.rpcs.panel(SEARCH, _with(first, priorities=urgent, has_assignee=False, has_vendor=False)),
    )
    return context.render(
        "tickets/home.html", counts=counts, burning=_first(burning), waiting=_first(waiting), lonely=_first(lonely),
        ages=_ages(counts.by_age),
    )  # fmt: skip


def _with(request: pb.SearchTicketsRequest, **values: Any) -> pb.SearchTicketsRequest:
    changes = pb.SearchTicketsRequest(**values)
    merged = pb.SearchTicketsRequest()
    merged.CopyFrom(request)
    merged.MergeFrom(changes)
    return merged


def _ages(counts: Iterable[pb.TicketCount]) -> list[tuple[str, int, str, str]]:
    """The words of an age, its number of tickets, what else is to say, and their list."""
    rows = []
    for row in counts:
        note = _("%(number)s on hold") % {"number": row.on_hold} if row.on_hold else ""
        query = {"older": row.hours_from, "younger": row.hours_to}
        rows.append((row.name, row.tickets, note, links.with_query(PATH, query)))
    return rows


# "ticket 17", "work order #17", "17", and "#17 Alder": a number, and in which property.
_NOUN = r"(?:work\s+orders?|tickets?|wo)\b\.?"
_NUMBERED = re.compile(
    rf"(?:{_NOUN}\s*)?(?:#|no\.?|number)?\s*([0-9]{{1,9}})(?:\s+(?:at|in)?\s*(\D.*))?", re.IGNORECASE
)
_OF_NOUN = re.compile(rf"{_NOUN}\s*", re.IGNORECASE)


def numbered(text: str) -> tuple[int, str]:
    """The ticket number that a search names, and the beginning of a property's name; 0 for no number."""
    match = _NUMBERED.fullmatch(text)
    return (int(match[1]), match[2] or "") if match else (0, "")


async def search_hits(context: PageContext) -> web.StreamResponse:
    """Tickets by number, words and external id. The only one with a number or an external id opens at once."""
    text = context.query.get("q", "").strip()[: filters.TEXT_MAX]
    number, place = numbered(text)
    words = _OF_NOUN.sub("", text, count=1) if _OF_NOUN.match(text) else text
    searches: dict[str, Mapping[str, Any]] = {}
    if number:
        searches["number"] = {"ticket_number": number, "limit": NUMBERED_ROWS if place else FOUND_ROWS}
    if text:
        searches["external"] = {"external_id": text}
    if any(sign.isalnum() for sign in words):
        searches["words"] = {"words": words}
    elif text != words:
        searches["words"] = {"statuses": filters.OPEN}
    answers = await together(
        *(
            context.rpcs.call(SEARCH, pb.SearchTicketsRequest(**{"limit": FOUND_ROWS, **values}))
            for values in searches.values()
        )
    )
    by = {name: list(answer.tickets) for name, answer in zip(searches, answers, strict=True)}
    of_number = [ticket for ticket in by.get("number", ()) if _is_in(ticket, place)]
    exact = {ticket.ticket_id: ticket for ticket in (*by.get("external", ()), *of_number)}
    # A number with a property may be a unit's, too.
    if len(exact) == 1 and not place:
        return context.redirect(f"{PATH}/{next(iter(exact))}")
    hits = exact | {ticket.ticket_id: ticket for ticket in by.get("words", ()) if ticket.ticket_id not in exact}
    is_close = not exact and any(answer.is_close for answer in answers)
    return context.render(
        "tickets/found.html", tickets=list(hits.values())[:FOUND_ROWS], text=text, is_closed=is_closed,
        is_close=is_close, all_path=links.with_query(PATH, {"view": "all", "q": words}), count=count,
    )  # fmt: skip


def _is_in(ticket: pb.TicketSummary, place: str) -> bool:
    """Whether each word of the place begins one of the property's name."""
    names = ticket.property_name.casefold().split()
    return all(any(name.startswith(word) for name in names) for word in place.casefold().split())
